-- Jobs: what a holder of a lease may do. All time is the database's. Re-runnable.
-- The planner is told to walk the indexes: a plan made while the queue was empty must not read a million rows later.

DROP FUNCTION IF EXISTS job_claim_any(text[], integer[], integer, bigint, double precision, smallint[], bigint[], boolean);

-- Claims waiting jobs of one kind, the most urgent first, for lease_s seconds: for each priority of step_priorities in
-- turn, for each kind in turn, up to n_wanted of that kind. The first that has any ends the search.
-- step_from holds, priority by priority and kind by kind, the job_id to begin with: the head of a long queue is dead
-- rows that an old snapshot keeps, and walking over them for each claim is what makes queues collapse. (The bounds are
-- ranges because with equal priority the primary key gives the order too, and is the wrong way when there is nothing.)
-- A slow node takes no more than most_items of a slice; the rest goes back as a slice of its own, without a call.
-- With is_full the whole queue is looked through when the steps found nothing: other priorities, and jobs that came back.
CREATE OR REPLACE FUNCTION job_claim_any(
    wanted_kinds text[], n_wanted integer[], wanted_encoder_id integer, wanted_node_id bigint, lease_s double precision,
    step_priorities smallint[], step_from bigint[], is_full boolean, most_items integer DEFAULT NULL
) RETURNS TABLE (job_id bigint, kind text, item_ids bigint[], n_attempts smallint, priority smallint, lease_token uuid)
LANGUAGE plpgsql VOLATILE SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off AS $$
#variable_conflict use_column
DECLARE
    begun_at timestamptz := clock_timestamp();
    n_kinds integer := cardinality(wanted_kinds);
    ids bigint[];
BEGIN
    <<search>>
    FOR s IN 1 .. cardinality(step_priorities) + is_full::integer LOOP
        FOR k IN 1 .. n_kinds LOOP
            IF s > cardinality(step_priorities) THEN
                IF wanted_kinds[k] NOT IN ('embed_papers', 'embed_passages') THEN
                    ids := ARRAY(SELECT j.job_id FROM job j
                        WHERE j.state = 'waiting' AND j.kind = wanted_kinds[k] AND j.encoder_id IS NULL AND j.run_after <= begun_at
                        ORDER BY j.priority, j.job_id LIMIT n_wanted[k] FOR UPDATE SKIP LOCKED);
                ELSE
                    ids := ARRAY(SELECT j.job_id FROM job j
                        WHERE j.state = 'waiting' AND j.kind = wanted_kinds[k] AND j.encoder_id = wanted_encoder_id AND j.run_after <= begun_at
                        ORDER BY j.priority, j.job_id LIMIT n_wanted[k] FOR UPDATE SKIP LOCKED);
                END IF;
            ELSIF wanted_kinds[k] NOT IN ('embed_papers', 'embed_passages') THEN
                ids := ARRAY(SELECT j.job_id FROM job j
                    WHERE j.state = 'waiting' AND j.kind = wanted_kinds[k] AND j.encoder_id IS NULL AND j.run_after <= begun_at
                      AND (j.priority, j.job_id) >= (step_priorities[s], step_from[(s - 1) * n_kinds + k]) AND j.priority <= step_priorities[s]
                    ORDER BY j.priority, j.job_id LIMIT n_wanted[k] FOR UPDATE SKIP LOCKED);
            ELSE
                ids := ARRAY(SELECT j.job_id FROM job j
                    WHERE j.state = 'waiting' AND j.kind = wanted_kinds[k] AND j.encoder_id = wanted_encoder_id AND j.run_after <= begun_at
                      AND (j.priority, j.job_id) >= (step_priorities[s], step_from[(s - 1) * n_kinds + k]) AND j.priority <= step_priorities[s]
                    ORDER BY j.priority, j.job_id LIMIT n_wanted[k] FOR UPDATE SKIP LOCKED);
            END IF;
            EXIT search WHEN cardinality(ids) > 0;
        END LOOP;
    END LOOP;
    IF cardinality(ids) > 0 THEN
        IF most_items IS NOT NULL THEN
            PERFORM set_config('brain.is_quiet', 'on', true);
            INSERT INTO job (kind, encoder_id, priority, item_ids, n_attempts, error)
            SELECT j.kind, j.encoder_id, j.priority, j.item_ids[most_items + 1:], j.n_attempts, j.error
            FROM job j WHERE j.job_id = ANY (ids) AND j.encoder_id IS NOT NULL AND j.n_items > most_items;
            PERFORM set_config('brain.is_quiet', 'off', true);
        END IF;
        RETURN QUERY UPDATE job j
            SET item_ids = CASE WHEN most_items IS NULL OR j.encoder_id IS NULL THEN j.item_ids ELSE j.item_ids[:most_items] END,
                state = 'running', node_id = wanted_node_id, lease_token = gen_random_uuid(), n_attempts = j.n_attempts + 1,
                lease_expires_at = clock_timestamp() + make_interval(secs => lease_s)
            WHERE j.job_id = ANY (ids)
            RETURNING j.job_id, j.kind, j.item_ids, j.n_attempts, j.priority, j.lease_token;
    END IF;
END
$$;

-- Claims waiting jobs of one kind, after taking back what dead holders left.
CREATE OR REPLACE FUNCTION job_claim(
    wanted_kind text, wanted_encoder_id integer, wanted_node_id bigint, n_wanted integer, lease_s double precision,
    from_job_id bigint DEFAULT 0  -- kept for callers; the whole queue is looked through
) RETURNS TABLE (job_id bigint, kind text, item_ids bigint[], n_attempts smallint, priority smallint, lease_token uuid)
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    PERFORM job_sweep(5);
    RETURN QUERY SELECT c.* FROM job_claim_any(
        ARRAY[wanted_kind], ARRAY[n_wanted], wanted_encoder_id, wanted_node_id, lease_s, '{}', '{}', true) c;
END
$$;

-- Extends the leases that are still held; returns the jobs whose lease is still the caller's.
CREATE OR REPLACE FUNCTION job_renew(held_ids bigint[], held_tokens uuid[], lease_s double precision)
RETURNS SETOF bigint LANGUAGE sql VOLATILE SET enable_seqscan = off AS $$
    WITH held AS MATERIALIZED (
        SELECT j.job_id FROM unnest(held_ids, held_tokens) AS h (job_id, token)
        JOIN job j ON j.job_id = h.job_id AND j.lease_token = h.token AND j.state = 'running'
        ORDER BY j.job_id FOR UPDATE OF j
    )
    UPDATE job j SET lease_expires_at = clock_timestamp() + make_interval(secs => lease_s)
    WHERE j.job_id = ANY (ARRAY(SELECT held.job_id FROM held))
    RETURNING j.job_id
$$;

-- Ends jobs whose token still matches; returns those it ended. The others' results must be discarded.
CREATE OR REPLACE FUNCTION job_complete(held_ids bigint[], held_tokens uuid[])
RETURNS SETOF bigint LANGUAGE sql VOLATILE SET enable_seqscan = off AS $$
    WITH held AS MATERIALIZED (
        SELECT j.job_id FROM unnest(held_ids, held_tokens) AS h (job_id, token)
        JOIN job j ON j.job_id = h.job_id AND j.lease_token = h.token AND j.state = 'running'
        ORDER BY j.job_id FOR UPDATE OF j
    )
    DELETE FROM job j WHERE j.job_id = ANY (ARRAY(SELECT held.job_id FROM held)) RETURNING j.job_id
$$;

-- Gives jobs back to the queue, after wait_s seconds. An attempt that was no fault of the texts is not counted.
CREATE OR REPLACE FUNCTION job_release(held_ids bigint[], held_tokens uuid[], wait_s double precision, is_counted boolean, why text)
RETURNS SETOF bigint LANGUAGE plpgsql VOLATILE SET enable_seqscan = off AS $$
BEGIN
    RETURN QUERY WITH held AS MATERIALIZED (
        SELECT j.job_id FROM unnest(held_ids, held_tokens) AS h (job_id, token)
        JOIN job j ON j.job_id = h.job_id AND j.lease_token = h.token AND j.state = 'running'
        ORDER BY j.job_id FOR UPDATE OF j
    )
    UPDATE job j SET state = 'waiting', node_id = NULL, lease_token = NULL, lease_expires_at = NULL,
           run_after = CASE WHEN wait_s > 0 THEN clock_timestamp() + make_interval(secs => wait_s) ELSE '-infinity'::timestamptz END,
           n_attempts = CASE WHEN is_counted THEN j.n_attempts ELSE greatest(0, j.n_attempts - 1)::smallint END,
           error = coalesce(why, j.error)
    WHERE j.job_id = ANY (ARRAY(SELECT held.job_id FROM held))
    RETURNING j.job_id;
    IF FOUND AND wait_s <= 0 THEN
        PERFORM pg_notify('job_' || k, '') FROM (SELECT DISTINCT j.kind AS k FROM job j WHERE j.job_id = ANY (held_ids)) q;
    END IF;
END
$$;

-- Sets a job aside with its reason; `brain failures` lists it and can send it back.
CREATE OR REPLACE FUNCTION job_fail(held_id bigint, held_token uuid, why_class text, why text, detail jsonb)
RETURNS SETOF bigint LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    failed job;
BEGIN
    UPDATE job j SET state = 'failed', lease_token = NULL, lease_expires_at = NULL, failed_at = clock_timestamp(),
           error_class = why_class, error = why, error_detail = detail
    WHERE j.job_id = held_id AND j.lease_token = held_token AND j.state = 'running'
    RETURNING j.* INTO failed;
    IF NOT FOUND THEN RETURN; END IF;
    IF failed.kind = 'embed_passages' THEN PERFORM draft_settle_of(failed.item_ids, '{}'); END IF;
    RETURN NEXT failed.job_id;
END
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

-- Takes back the jobs of dead holders: their lease ran out. One whose holders died max_attempts times is halved, since
-- a text that kills its worker must come to stand alone; such a text alone fails as "lost". Returns how many came back,
-- were halved, and failed. One caller at a time does it; the others get zeros at once.
CREATE OR REPLACE FUNCTION job_sweep(max_attempts integer, OUT n_back bigint, OUT n_halved bigint, OUT n_failed bigint)
LANGUAGE plpgsql VOLATILE SET enable_seqscan = off AS $$
DECLARE
    begun_at timestamptz := clock_timestamp();
    ids bigint[];
BEGIN
    n_back := 0; n_halved := 0; n_failed := 0;
    IF NOT pg_try_advisory_xact_lock(hashtext('job_sweep')) THEN RETURN; END IF;
    ids := ARRAY(SELECT j.job_id FROM job j WHERE j.state = 'running' AND j.lease_expires_at < begun_at
                 ORDER BY j.lease_expires_at LIMIT 10000 FOR UPDATE SKIP LOCKED);
    IF cardinality(ids) = 0 THEN RETURN; END IF;

    UPDATE job j SET state = 'failed', lease_token = NULL, lease_expires_at = NULL, failed_at = begun_at, error_class = 'lost',
           error = format('%s workers in a row ended while they held it; the last error: %s', j.n_attempts, coalesce(j.error, 'none')),
           error_detail = jsonb_build_object('node', (SELECT n.name FROM node n WHERE n.node_id = j.node_id))
    WHERE j.job_id = ANY (ids) AND j.n_attempts >= max_attempts AND j.n_items = 1;
    GET DIAGNOSTICS n_failed = ROW_COUNT;
    IF n_failed > 0 THEN
        PERFORM draft_settle_of(ARRAY(SELECT i FROM job j, unnest(j.item_ids) AS i
                                      WHERE j.job_id = ANY (ids) AND j.state = 'failed' AND j.kind = 'embed_passages'), '{}');
    END IF;

    WITH gone AS (
        DELETE FROM job j WHERE j.job_id = ANY (ids) AND j.state = 'running' AND j.n_attempts >= max_attempts AND j.n_items > 1 RETURNING j.*
    )
    INSERT INTO job (kind, encoder_id, priority, item_ids, n_attempts, error)
    SELECT g.kind, g.encoder_id, g.priority, h.ids, greatest(0, max_attempts - 3)::smallint, g.error
    FROM gone g, LATERAL (VALUES (g.item_ids[:g.n_items / 2]), (g.item_ids[g.n_items / 2 + 1:])) AS h (ids);
    GET DIAGNOSTICS n_halved = ROW_COUNT;
    n_halved := n_halved / 2;

    UPDATE job j SET state = 'waiting', node_id = NULL, lease_token = NULL, lease_expires_at = NULL, run_after = '-infinity'
    WHERE j.job_id = ANY (ids) AND j.state = 'running';
    GET DIAGNOSTICS n_back = ROW_COUNT;
    PERFORM pg_notify('job_' || k, '') FROM (SELECT DISTINCT j.kind AS k FROM job j WHERE j.job_id = ANY (ids) AND j.state = 'waiting') q;
END
$$;

-- One NOTIFY per inserting statement and kind, empty, so that equal ones fold into one; none for what is set aside.
CREATE OR REPLACE FUNCTION job_notify() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    k text;
BEGIN
    IF current_setting('brain.is_quiet', true) = 'on' THEN RETURN NULL; END IF;
    FOR k IN SELECT DISTINCT kind FROM inserted WHERE state = 'waiting' LOOP
        PERFORM pg_notify('job_' || k, '');
    END LOOP;
    RETURN NULL;
END
$$;
CREATE OR REPLACE TRIGGER job_notify_trigger AFTER INSERT ON job
    REFERENCING NEW TABLE AS inserted FOR EACH STATEMENT EXECUTE FUNCTION job_notify();

-- Counts finished work at the node and in its hour.
CREATE OR REPLACE FUNCTION node_count(wanted_node_id bigint, wanted_kind text, more_jobs bigint, more_texts bigint, more_s double precision)
RETURNS void LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    UPDATE node SET n_jobs = n_jobs + more_jobs, n_texts = n_texts + more_texts, last_seen_at = clock_timestamp()
    WHERE node_id = wanted_node_id;
    IF NOT FOUND THEN RETURN; END IF;
    INSERT INTO node_hour AS h (node_id, hour, kind, n_jobs, n_texts, seconds)
    VALUES (wanted_node_id, date_trunc('hour', clock_timestamp()), wanted_kind, more_jobs, more_texts, more_s)
    ON CONFLICT (node_id, hour, kind) DO UPDATE
        SET n_jobs = h.n_jobs + excluded.n_jobs, n_texts = h.n_texts + excluded.n_texts, seconds = h.seconds + excluded.seconds;
END
$$;
