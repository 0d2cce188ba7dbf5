-- Jobs: what a holder of a lease may do. All time is the database's. Re-runnable.

-- Claims up to n_wanted waiting or abandoned jobs of one kind, the most urgent first, for lease_s seconds.
-- An abandoned job (its lease ran out) counts as an attempt of its own; from_job_id skips the dead head of a long queue.
CREATE OR REPLACE FUNCTION job_claim(
    wanted_kind text, wanted_encoder_id integer, wanted_node_id bigint, n_wanted integer, lease_s double precision,
    from_job_id bigint DEFAULT 0
) RETURNS TABLE (job_id bigint, kind text, item_ids bigint[], n_attempts smallint, priority smallint, lease_token uuid)
LANGUAGE sql VOLATILE AS $$
    WITH abandoned AS MATERIALIZED (
        SELECT j.job_id FROM job j
        WHERE j.state = 'running' AND j.lease_expires_at < clock_timestamp()
          AND j.kind = wanted_kind AND j.encoder_id IS NOT DISTINCT FROM wanted_encoder_id
        ORDER BY j.lease_expires_at LIMIT n_wanted
        FOR UPDATE SKIP LOCKED
    ), waiting AS MATERIALIZED (
        SELECT j.job_id FROM job j
        WHERE j.state = 'waiting' AND j.kind = wanted_kind
          AND (j.encoder_id = wanted_encoder_id OR (wanted_encoder_id IS NULL AND j.encoder_id IS NULL))
          AND j.job_id >= from_job_id AND j.run_after <= clock_timestamp()
        ORDER BY j.priority, j.job_id LIMIT n_wanted
        FOR UPDATE SKIP LOCKED
    ), chosen AS (
        SELECT a.job_id FROM abandoned a UNION ALL SELECT w.job_id FROM waiting w LIMIT n_wanted
    )
    UPDATE job j SET state = 'running', node_id = wanted_node_id, lease_token = gen_random_uuid(),
           lease_expires_at = clock_timestamp() + make_interval(secs => lease_s), n_attempts = j.n_attempts + 1
    FROM chosen WHERE j.job_id = chosen.job_id
    RETURNING j.job_id, j.kind, j.item_ids, j.n_attempts, j.priority, j.lease_token
$$;

-- Extends the leases that are still held; returns the jobs whose lease is still the caller's.
CREATE OR REPLACE FUNCTION job_renew(held_ids bigint[], held_tokens uuid[], lease_s double precision)
RETURNS SETOF bigint LANGUAGE sql VOLATILE AS $$
    UPDATE job j SET lease_expires_at = clock_timestamp() + make_interval(secs => lease_s)
    FROM unnest(held_ids, held_tokens) AS h (job_id, token)
    WHERE j.job_id = h.job_id AND j.lease_token = h.token AND j.state = 'running'
    RETURNING j.job_id
$$;

-- Ends jobs whose token still matches; returns those it ended. The others' results must be discarded.
CREATE OR REPLACE FUNCTION job_complete(held_ids bigint[], held_tokens uuid[])
RETURNS SETOF bigint LANGUAGE sql VOLATILE AS $$
    DELETE FROM job j USING unnest(held_ids, held_tokens) AS h (job_id, token)
    WHERE j.job_id = h.job_id AND j.lease_token = h.token AND j.state = 'running'
    RETURNING j.job_id
$$;

-- Gives jobs back to the queue. An attempt that was no fault of the texts is not counted.
CREATE OR REPLACE FUNCTION job_release(held_ids bigint[], held_tokens uuid[], wait_s double precision, is_counted boolean, why text)
RETURNS SETOF bigint LANGUAGE sql VOLATILE AS $$
    UPDATE job j SET state = 'waiting', node_id = NULL, lease_token = NULL, lease_expires_at = NULL,
           run_after = CASE WHEN wait_s > 0 THEN clock_timestamp() + make_interval(secs => wait_s) ELSE '-infinity'::timestamptz END,
           n_attempts = CASE WHEN is_counted THEN j.n_attempts ELSE greatest(0, j.n_attempts - 1)::smallint END,
           error = coalesce(why, j.error)
    FROM unnest(held_ids, held_tokens) AS h (job_id, token)
    WHERE j.job_id = h.job_id AND j.lease_token = h.token AND j.state = 'running'
    RETURNING j.job_id
$$;

-- Sets a job aside with its reason; `brain failures` lists it and can send it back.
CREATE OR REPLACE FUNCTION job_fail(held_id bigint, held_token uuid, why_class text, why text, detail jsonb)
RETURNS SETOF bigint LANGUAGE sql VOLATILE AS $$
    UPDATE job j SET state = 'failed', lease_token = NULL, lease_expires_at = NULL, failed_at = clock_timestamp(),
           error_class = why_class, error = why, error_detail = detail
    WHERE j.job_id = held_id AND j.lease_token = held_token AND j.state = 'running'
    RETURNING j.job_id
$$;

-- Cuts a job in two halves so that a bad row can stand alone; false when the lease is gone or one item is left.
CREATE OR REPLACE FUNCTION job_halve(held_id bigint, held_token uuid)
RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    held job;
    half integer;
BEGIN
    DELETE FROM job j WHERE j.job_id = held_id AND j.lease_token = held_token AND j.state = 'running'
        AND cardinality(j.item_ids) > 1 RETURNING * INTO held;
    IF NOT FOUND THEN RETURN false; END IF;
    half := cardinality(held.item_ids) / 2;
    INSERT INTO job (kind, encoder_id, priority, item_ids, n_attempts, error)
    VALUES (held.kind, held.encoder_id, held.priority, held.item_ids[:half], held.n_attempts, held.error),
           (held.kind, held.encoder_id, held.priority, held.item_ids[half + 1:], held.n_attempts, held.error);
    RETURN true;
END
$$;

-- One NOTIFY per inserting statement and kind, empty, so that equal ones fold into one.
CREATE OR REPLACE FUNCTION job_notify() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    k text;
BEGIN
    FOR k IN SELECT DISTINCT kind FROM inserted LOOP
        PERFORM pg_notify('job_' || k, '');
    END LOOP;
    RETURN NULL;
END
$$;
CREATE OR REPLACE TRIGGER job_notify_trigger AFTER INSERT ON job
    REFERENCING NEW TABLE AS inserted FOR EACH STATEMENT EXECUTE FUNCTION job_notify();
