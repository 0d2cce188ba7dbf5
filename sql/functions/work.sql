-- The two pieces of work that a node does under a lease, each begun by one statement and ended by one. Re-runnable.

-- What a claimed slice still needs: embeddings that are known by content are adopted, then one row for each item that
-- is left, its text only at the first item of a text. Items that are no more are simply not there.
CREATE OR REPLACE FUNCTION embed_read(wanted_kind text, wanted_encoder_id integer, wanted_ids bigint[])
RETURNS TABLE (item_id bigint, text_sha256 bytea, text text)
LANGUAGE plpgsql VOLATILE SET enable_seqscan = off AS $$
BEGIN
    IF wanted_kind = 'embed_papers' THEN
        PERFORM embedding_adopt(wanted_encoder_id, ARRAY(
            SELECT DISTINCT p.text_sha256 FROM paper p WHERE p.paper_pk = ANY (wanted_ids) AND p.text_sha256 IS NOT NULL
            AND NOT EXISTS (SELECT FROM paper_embedding e WHERE e.encoder_id = wanted_encoder_id AND e.text_sha256 = p.text_sha256)), '{}');
        RETURN QUERY SELECT p.paper_pk, p.text_sha256, p.text FROM paper p
            WHERE p.paper_pk = ANY (wanted_ids) AND p.text_sha256 IS NOT NULL
              AND NOT EXISTS (SELECT FROM paper_embedding e WHERE e.encoder_id = wanted_encoder_id AND e.text_sha256 = p.text_sha256);
    ELSE
        PERFORM embedding_adopt(wanted_encoder_id, '{}', ARRAY(
            SELECT DISTINCT p.text_sha256 FROM passage_any p WHERE p.passage_id = ANY (wanted_ids)
            AND NOT EXISTS (SELECT FROM passage_embedding e WHERE e.encoder_id = wanted_encoder_id AND e.text_sha256 = p.text_sha256)));
        RETURN QUERY SELECT p.passage_id, p.text_sha256, p.text FROM passage_any p
            WHERE p.passage_id = ANY (wanted_ids)
              AND NOT EXISTS (SELECT FROM passage_embedding e WHERE e.encoder_id = wanted_encoder_id AND e.text_sha256 = p.text_sha256);
    END IF;
END
$$;

-- Ends slices: those whose token still matches are deleted, their embeddings written, their bad items set aside as jobs of
-- their own, and the node's counts raised; texts that were read anew and are complete by that begin to serve. Returns the jobs it ended; of the others nothing is kept.
-- Embeddings are written in the order of their hashes, so that two nodes with the same texts cannot block each other.
CREATE OR REPLACE FUNCTION embed_complete(
    wanted_kind text, wanted_encoder_id integer, wanted_node_id bigint, held_ids bigint[], held_tokens uuid[], more_s double precision,
    row_jobs bigint[], row_hashes bytea[], row_embeddings halfvec[],
    bad_jobs bigint[], bad_items bigint[], bad_classes text[], bad_reasons text[], bad_details jsonb[]
) RETURNS SETOF bigint LANGUAGE plpgsql VOLATILE SET enable_seqscan = off AS $$
DECLARE
    done_ids bigint[];
    done_items bigint[];
    n_done_texts bigint;
BEGIN
    WITH held AS MATERIALIZED (
        SELECT j.job_id FROM unnest(held_ids, held_tokens) AS h (job_id, token)
        JOIN job j ON j.job_id = h.job_id AND j.lease_token = h.token AND j.state = 'running'
        ORDER BY j.job_id FOR UPDATE OF j
    ), aside AS (
        INSERT INTO job (kind, encoder_id, priority, state, item_ids, n_attempts, error_class, error, error_detail, failed_at, node_id)
        SELECT j.kind, j.encoder_id, j.priority, 'failed', ARRAY[b.item], j.n_attempts, b.class, b.reason, b.detail, clock_timestamp(),
               (SELECT n.node_id FROM node n WHERE n.node_id = wanted_node_id)
        FROM unnest(bad_jobs, bad_items, bad_classes, bad_reasons, bad_details) AS b (job_id, item, class, reason, detail)
        JOIN job j ON j.job_id = b.job_id WHERE j.job_id = ANY (ARRAY(SELECT held.job_id FROM held))
    ), gone AS (
        DELETE FROM job j WHERE j.job_id = ANY (ARRAY(SELECT held.job_id FROM held)) RETURNING j.job_id, j.n_items, j.item_ids
    )
    SELECT coalesce(array_agg(gone.job_id), '{}'), coalesce(sum(gone.n_items), 0),
           ARRAY(SELECT i FROM gone g, unnest(g.item_ids) AS i) INTO done_ids, n_done_texts, done_items FROM gone;
    IF cardinality(done_ids) = 0 THEN RETURN; END IF;

    IF wanted_kind = 'embed_papers' THEN
        INSERT INTO paper_embedding (encoder_id, text_sha256, embedding)
        SELECT wanted_encoder_id, r.hash, r.embedding FROM unnest(row_jobs, row_hashes, row_embeddings) AS r (job_id, hash, embedding)
        WHERE r.job_id = ANY (done_ids) ORDER BY r.hash ON CONFLICT DO NOTHING;
    ELSE
        INSERT INTO passage_embedding (encoder_id, text_sha256, embedding)
        SELECT wanted_encoder_id, r.hash, r.embedding FROM unnest(row_jobs, row_hashes, row_embeddings) AS r (job_id, hash, embedding)
        WHERE r.job_id = ANY (done_ids) ORDER BY r.hash ON CONFLICT DO NOTHING;
        PERFORM draft_settle_of(done_items, row_hashes);
    END IF;
    PERFORM node_count(wanted_node_id, wanted_kind, cardinality(done_ids), n_done_texts - cardinality(bad_items), more_s);
    RETURN QUERY SELECT unnest(done_ids);
END
$$;

-- Ends a chunk job: replaces the document's passages (a passage whose slice is unchanged keeps its row), marks it as cut
-- and queues what has no embedding, all or nothing. False when the lease is gone: then nothing is kept.
-- A document that is no more, or whose text is another one by now, gets nothing: the new text has a job of its own.
CREATE OR REPLACE FUNCTION chunk_complete(
    held_id bigint, held_token uuid, wanted_node_id bigint, more_s double precision, wanted_document_id bigint, cut_sha256 bytea,
    starts integer[], ends integer[], sections text[], pages_from integer[], pages_to integer[], texts text[], hashes bytea[]
) RETURNS boolean LANGUAGE plpgsql VOLATILE SET enable_seqscan = off AS $$
DECLARE
    held_priority smallint;
    owner_pk bigint;
    gone_hashes bytea[];
    ids bigint[];
    serving encoder;
BEGIN
    DELETE FROM job j WHERE j.job_id = held_id AND j.lease_token = held_token AND j.state = 'running'
        RETURNING j.priority INTO held_priority;
    IF NOT FOUND THEN RETURN false; END IF;
    PERFORM node_count(wanted_node_id, 'chunk', 1, cardinality(starts), more_s);
    SELECT d.paper_pk INTO owner_pk FROM document d
        WHERE d.document_id = wanted_document_id AND d.text_sha256 IS NOT DISTINCT FROM cut_sha256 FOR UPDATE;
    IF NOT FOUND THEN RETURN true; END IF;

    WITH gone AS (
        DELETE FROM passage p WHERE p.document_id = wanted_document_id AND NOT EXISTS (
            SELECT FROM unnest(starts, hashes) AS n (char_start, hash) WHERE n.char_start = p.char_start AND n.hash = p.text_sha256)
        RETURNING p.text_sha256
    ) SELECT array_agg(DISTINCT gone.text_sha256) INTO gone_hashes FROM gone;
    -- Embeddings whose text nobody has any more go with it. Every encoder is named, as the index begins with it.
    IF gone_hashes IS NOT NULL THEN
        DELETE FROM passage_embedding e WHERE e.encoder_id = ANY (ARRAY(SELECT encoder_id FROM encoder))
            AND e.text_sha256 = ANY (gone_hashes) AND NOT e.text_sha256 = ANY (hashes)
            AND NOT EXISTS (SELECT FROM passage_any p WHERE p.text_sha256 = e.text_sha256);
    END IF;
    INSERT INTO passage AS p (paper_pk, document_id, part, ordinal, char_start, char_end, section, page_from, page_to, text, text_sha256)
    SELECT owner_pk, wanted_document_id, 'document', n.ordinal - 1, n.char_start, n.char_end, n.section, n.page_from, n.page_to, n.text, n.hash
    FROM unnest(starts, ends, sections, pages_from, pages_to, texts, hashes) WITH ORDINALITY
        AS n (char_start, char_end, section, page_from, page_to, text, hash, ordinal)
    ORDER BY n.ordinal
    ON CONFLICT (paper_pk, part, document_id, char_start) DO UPDATE
        SET ordinal = excluded.ordinal, section = excluded.section, page_from = excluded.page_from, page_to = excluded.page_to
        WHERE (p.ordinal, p.section, p.page_from, p.page_to)
            IS DISTINCT FROM (excluded.ordinal, excluded.section, excluded.page_from, excluded.page_to);
    UPDATE document SET is_cut = true WHERE document_id = wanted_document_id;

    ids := ARRAY(SELECT p.passage_id FROM passage p WHERE p.document_id = wanted_document_id);
    FOR serving IN SELECT * FROM encoder WHERE state IN ('active', 'filling') ORDER BY encoder_id LOOP
        PERFORM embedding_adopt(serving.encoder_id, '{}', hashes);
        PERFORM job_enqueue_passages(serving.encoder_id, ids, CASE WHEN serving.state = 'active' THEN held_priority ELSE greatest(held_priority, 200) END);
    END LOOP;
    RETURN true;
END
$$;
