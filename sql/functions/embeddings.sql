-- Embeddings: partitions, adoption of known embeddings by content, and the queue of what is missing. Re-runnable.

-- The leaf partitions of an encoder; safe twice. Made apart and then attached, which lets others read and write meanwhile.
CREATE OR REPLACE FUNCTION encoder_partitions(wanted_encoder_id integer) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    parent text;
    leaf text;
BEGIN
    FOREACH parent IN ARRAY ARRAY['passage_embedding', 'paper_embedding'] LOOP
        leaf := format('%s_%s', parent, wanted_encoder_id);
        CONTINUE WHEN to_regclass(leaf) IS NOT NULL;
        EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING DEFAULTS INCLUDING CONSTRAINTS)', leaf, parent);
        -- A halfvec(768) row of 1,544 bytes stays in line: a detour by TOAST would cost each distance a second read.
        EXECUTE format('ALTER TABLE %I ALTER COLUMN embedding SET STORAGE PLAIN', leaf);
        -- Vacuum of HNSW costs nearly what a build does, and dead rows in it cost searches nearly nothing: it comes when a
        -- third of the rows is dead, and slowly, as questions go first.
        EXECUTE format('ALTER TABLE %I SET (autovacuum_vacuum_scale_factor = 0.5, autovacuum_vacuum_insert_scale_factor = 0.5,'
            ' autovacuum_vacuum_cost_delay = 20)', leaf);
        EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES IN (%s)', parent, leaf, wanted_encoder_id);
    END LOOP;
END
$$;

-- The vector indexes of an encoder that serves, small and empty here; a generation that is filled gets them on activation.
CREATE OR REPLACE FUNCTION encoder_indexes(wanted_encoder_id integer) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('CREATE INDEX IF NOT EXISTS passage_embedding_%s_hnsw_idx ON passage_embedding_%s USING hnsw (embedding halfvec_cosine_ops) WITH (ef_construction = 128)', wanted_encoder_id, wanted_encoder_id);
    EXECUTE format('CREATE INDEX IF NOT EXISTS paper_embedding_%s_hnsw_idx ON paper_embedding_%s USING hnsw (embedding halfvec_cosine_ops) WITH (ef_construction = 128)', wanted_encoder_id, wanted_encoder_id);
END
$$;

CREATE OR REPLACE FUNCTION active_encoder_id() RETURNS integer LANGUAGE sql STABLE AS $$
    SELECT encoder_id FROM encoder WHERE state = 'active'
$$;

-- Gives papers and passages the embeddings that are known already for their text; returns how many were adopted.
CREATE OR REPLACE FUNCTION embedding_adopt(wanted_encoder_id integer, paper_hashes bytea[], passage_hashes bytea[])
RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    n_papers bigint;
    n_passages bigint;
BEGIN
    INSERT INTO paper_embedding (encoder_id, text_sha256, embedding)
    SELECT wanted_encoder_id, h.hash, coalesce(i.embedding, p.embedding)
    FROM (SELECT DISTINCT unnest(paper_hashes) AS hash) h
    LEFT JOIN imported_embedding i ON i.encoder_id = wanted_encoder_id AND i.text_sha256 = h.hash
    LEFT JOIN passage_embedding p ON p.encoder_id = wanted_encoder_id AND p.text_sha256 = h.hash
    WHERE coalesce(i.embedding, p.embedding) IS NOT NULL
    ORDER BY h.hash ON CONFLICT DO NOTHING;
    GET DIAGNOSTICS n_papers = ROW_COUNT;
    INSERT INTO passage_embedding (encoder_id, text_sha256, embedding)
    SELECT wanted_encoder_id, h.hash, coalesce(i.embedding, p.embedding)
    FROM (SELECT DISTINCT unnest(passage_hashes) AS hash) h
    LEFT JOIN imported_embedding i ON i.encoder_id = wanted_encoder_id AND i.text_sha256 = h.hash
    LEFT JOIN paper_embedding p ON p.encoder_id = wanted_encoder_id AND p.text_sha256 = h.hash
    WHERE coalesce(i.embedding, p.embedding) IS NOT NULL
    ORDER BY h.hash ON CONFLICT DO NOTHING;
    GET DIAGNOSTICS n_passages = ROW_COUNT;
    RETURN n_papers + n_passages;
END
$$;

-- Queues the papers' and passages' texts that have no embedding under the encoder, in slices of at most 64, in order of
-- their size so that a slice holds texts of like length. Returns the number of jobs.
CREATE OR REPLACE FUNCTION job_enqueue_papers(wanted_encoder_id integer, wanted_pks bigint[], wanted_priority integer)
RETURNS bigint LANGUAGE sql VOLATILE AS $$
    WITH missing AS (
        SELECT p.paper_pk, (row_number() OVER (ORDER BY p.paper_pk) - 1) / 64 AS slice
        FROM paper p
        WHERE p.paper_pk = ANY (wanted_pks) AND p.text_sha256 IS NOT NULL
          AND NOT EXISTS (SELECT FROM paper_embedding e WHERE e.encoder_id = wanted_encoder_id AND e.text_sha256 = p.text_sha256)
    ), made AS (
        INSERT INTO job (kind, encoder_id, priority, item_ids)
        SELECT 'embed_papers', wanted_encoder_id, wanted_priority, array_agg(paper_pk ORDER BY paper_pk) FROM missing GROUP BY slice ORDER BY slice
        RETURNING 1
    ) SELECT count(*) FROM made
$$;

CREATE OR REPLACE FUNCTION job_enqueue_passages(wanted_encoder_id integer, wanted_ids bigint[], wanted_priority integer)
RETURNS bigint LANGUAGE sql VOLATILE AS $$
    WITH missing AS (
        SELECT p.passage_id, (row_number() OVER (ORDER BY p.passage_id) - 1) / 64 AS slice
        FROM passage_any p
        WHERE p.passage_id = ANY (wanted_ids)
          AND NOT EXISTS (SELECT FROM passage_embedding e WHERE e.encoder_id = wanted_encoder_id AND e.text_sha256 = p.text_sha256)
    ), made AS (
        INSERT INTO job (kind, encoder_id, priority, item_ids)
        SELECT 'embed_passages', wanted_encoder_id, wanted_priority, array_agg(passage_id ORDER BY passage_id) FROM missing GROUP BY slice ORDER BY slice
        RETURNING 1
    ) SELECT count(*) FROM made
$$;

-- Queues everything that has neither an embedding nor a job under the encoder: the fill of a generation, and the mend
-- after vectors were lost. Returns the number of jobs.
CREATE OR REPLACE FUNCTION job_enqueue_missing(wanted_encoder_id integer, wanted_priority integer)
RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    n bigint;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtext('job_enqueue_missing'), wanted_encoder_id);
    SELECT coalesce(sum(made), 0) INTO n FROM (
        SELECT job_enqueue_papers(wanted_encoder_id, ids, wanted_priority) AS made FROM (
            SELECT array_agg(paper_pk) AS ids FROM (
                SELECT p.paper_pk, (row_number() OVER (ORDER BY p.paper_pk) - 1) / 6400 AS part FROM paper p
                WHERE p.text_sha256 IS NOT NULL
                  AND NOT EXISTS (SELECT FROM paper_embedding e WHERE e.encoder_id = wanted_encoder_id AND e.text_sha256 = p.text_sha256)
                  AND NOT EXISTS (SELECT FROM (SELECT unnest(j.item_ids) AS pk FROM job j WHERE j.kind = 'embed_papers' AND j.encoder_id = wanted_encoder_id) q WHERE q.pk = p.paper_pk)
            ) m GROUP BY part
        ) parts
        UNION ALL
        SELECT job_enqueue_passages(wanted_encoder_id, ids, wanted_priority) FROM (
            SELECT array_agg(passage_id) AS ids FROM (
                SELECT p.passage_id, (row_number() OVER (ORDER BY p.passage_id) - 1) / 6400 AS part FROM passage_any p
                WHERE NOT EXISTS (SELECT FROM passage_embedding e WHERE e.encoder_id = wanted_encoder_id AND e.text_sha256 = p.text_sha256)
                  AND NOT EXISTS (SELECT FROM (SELECT unnest(j.item_ids) AS id FROM job j WHERE j.kind = 'embed_passages' AND j.encoder_id = wanted_encoder_id) q WHERE q.id = p.passage_id)
            ) m GROUP BY part
        ) parts
    ) jobs;
    RETURN n;
END
$$;

-- Cuts the waiting jobs of an encoder anew after embeddings came from elsewhere: what is embedded by now leaves the queue,
-- what is left stands in full slices. Failed jobs whose items all have their embedding go too. Running ones end by
-- themselves. Returns how many items left the queue.
CREATE OR REPLACE FUNCTION job_reslice(wanted_encoder_id integer) RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    ids bigint[];
    n_before bigint;
    n_after bigint;
BEGIN
    ids := ARRAY(SELECT j.job_id FROM job j WHERE j.state IN ('waiting', 'failed') AND j.encoder_id = wanted_encoder_id
                 ORDER BY j.job_id FOR UPDATE SKIP LOCKED);
    SELECT coalesce(sum(j.n_items), 0) INTO n_before FROM job j WHERE j.encoder_id = wanted_encoder_id AND j.state IN ('waiting', 'failed');
    DELETE FROM job j WHERE j.job_id = ANY (ids) AND j.state = 'failed' AND (
        (j.kind = 'embed_papers' AND NOT EXISTS (
            SELECT FROM paper p WHERE p.paper_pk = ANY (j.item_ids) AND p.text_sha256 IS NOT NULL
            AND NOT EXISTS (SELECT FROM paper_embedding e WHERE e.encoder_id = wanted_encoder_id AND e.text_sha256 = p.text_sha256)))
     OR (j.kind = 'embed_passages' AND NOT EXISTS (
            SELECT FROM passage_any p WHERE p.passage_id = ANY (j.item_ids)
            AND NOT EXISTS (SELECT FROM passage_embedding e WHERE e.encoder_id = wanted_encoder_id AND e.text_sha256 = p.text_sha256))));
    WITH gone AS (
        DELETE FROM job j WHERE j.job_id = ANY (ids) AND j.state = 'waiting' RETURNING j.kind, j.priority, j.item_ids
    ), items AS (
        SELECT g.kind, g.priority, array_agg(DISTINCT i.id) AS item_ids FROM gone g, unnest(g.item_ids) AS i (id) GROUP BY g.kind, g.priority
    )
    SELECT sum(CASE WHEN kind = 'embed_papers' THEN job_enqueue_papers(wanted_encoder_id, item_ids, priority)
                    ELSE job_enqueue_passages(wanted_encoder_id, item_ids, priority) END)
    INTO n_after FROM items;
    SELECT coalesce(sum(j.n_items), 0) INTO n_after FROM job j WHERE j.encoder_id = wanted_encoder_id AND j.state IN ('waiting', 'failed');
    PERFORM draft_settle_all();
    RETURN n_before - n_after;
END
$$;

-- Gives papers and passages what is known of them and queues the rest, for every encoder that serves or is filled: what
-- whoever writes papers, passages or drafts calls in the same transaction. Returns the number of jobs.
CREATE OR REPLACE FUNCTION embedding_want(wanted_pks bigint[], wanted_passage_ids bigint[], wanted_priority integer)
RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    e encoder;
    n bigint := 0;
BEGIN
    FOR e IN SELECT * FROM encoder WHERE state IN ('active', 'filling') ORDER BY encoder_id LOOP
        PERFORM embedding_adopt(e.encoder_id,
            ARRAY(SELECT p.text_sha256 FROM paper p WHERE p.paper_pk = ANY (wanted_pks) AND p.text_sha256 IS NOT NULL),
            ARRAY(SELECT p.text_sha256 FROM passage_any p WHERE p.passage_id = ANY (wanted_passage_ids)));
        n := n + job_enqueue_papers(e.encoder_id, wanted_pks, CASE WHEN e.state = 'active' THEN wanted_priority ELSE greatest(wanted_priority, 200) END)
               + job_enqueue_passages(e.encoder_id, wanted_passage_ids, CASE WHEN e.state = 'active' THEN wanted_priority ELSE greatest(wanted_priority, 200) END);
    END LOOP;
    RETURN n;
END
$$;

-- Lets an encoder serve instead of the one that does, in one statement; that one is kept, and filled no more. False when
-- there is no such encoder.
CREATE OR REPLACE FUNCTION encoder_activate(wanted_encoder_id integer) RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    LOCK TABLE encoder IN SHARE ROW EXCLUSIVE MODE;
    PERFORM FROM encoder WHERE encoder_id = wanted_encoder_id;
    IF NOT FOUND THEN RETURN false; END IF;
    UPDATE encoder SET state = 'added' WHERE state = 'active' AND encoder_id <> wanted_encoder_id;
    UPDATE encoder SET state = 'active', activated_at = clock_timestamp() WHERE encoder_id = wanted_encoder_id AND state <> 'active';
    DELETE FROM setting WHERE name = 'encoder_next';
    PERFORM draft_settle_all();
    RETURN true;
END
$$;
