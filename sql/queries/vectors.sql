-- Embeddings in and out by content.

-- name: incoming_make
CREATE TEMP TABLE IF NOT EXISTS incoming_embedding (text_sha256 bytea NOT NULL, embedding halfvec(768) NOT NULL)

-- name: incoming_clear
TRUNCATE incoming_embedding

-- name: incoming_copy
COPY incoming_embedding (text_sha256, embedding) FROM STDIN (FORMAT binary)

-- name: count_new
-- How many rows each vector index would get.
SELECT (SELECT count(*) FROM incoming_embedding i WHERE EXISTS (SELECT FROM paper p WHERE p.text_sha256 = i.text_sha256)
            AND NOT EXISTS (SELECT FROM paper_embedding e WHERE e.encoder_id = %(encoder_id)s AND e.text_sha256 = i.text_sha256)),
       (SELECT count(*) FROM incoming_embedding i WHERE EXISTS (SELECT FROM passage_any p WHERE p.text_sha256 = i.text_sha256)
            AND NOT EXISTS (SELECT FROM passage_embedding e WHERE e.encoder_id = %(encoder_id)s AND e.text_sha256 = i.text_sha256))

-- name: write_papers
INSERT INTO paper_embedding (encoder_id, text_sha256, embedding)
SELECT %(encoder_id)s, i.text_sha256, i.embedding FROM incoming_embedding i
WHERE EXISTS (SELECT FROM paper p WHERE p.text_sha256 = i.text_sha256) ORDER BY i.text_sha256 ON CONFLICT DO NOTHING

-- name: write_passages
INSERT INTO passage_embedding (encoder_id, text_sha256, embedding)
SELECT %(encoder_id)s, i.text_sha256, i.embedding FROM incoming_embedding i
WHERE EXISTS (SELECT FROM passage_any p WHERE p.text_sha256 = i.text_sha256) ORDER BY i.text_sha256 ON CONFLICT DO NOTHING

-- name: write_imported
INSERT INTO imported_embedding (encoder_id, text_sha256, embedding)
SELECT %(encoder_id)s, i.text_sha256, i.embedding FROM incoming_embedding i
WHERE NOT EXISTS (SELECT FROM paper p WHERE p.text_sha256 = i.text_sha256)
  AND NOT EXISTS (SELECT FROM passage_any p WHERE p.text_sha256 = i.text_sha256)
ORDER BY i.text_sha256 ON CONFLICT DO NOTHING

-- name: reslice
SELECT job_reslice(%(encoder_id)s)

-- name: settle_drafts
SELECT draft_settle_all()

-- name: count_jobs
SELECT count(*) FROM (SELECT FROM job WHERE state IN ('waiting', 'failed') AND encoder_id = %(encoder_id)s LIMIT %(most)s) j

-- name: export
-- Everything that is known under the encoder, each text once.
SELECT e.text_sha256, halfvec_send(e.embedding) FROM passage_embedding e WHERE e.encoder_id = %(encoder_id)s
UNION ALL
SELECT e.text_sha256, halfvec_send(e.embedding) FROM paper_embedding e WHERE e.encoder_id = %(encoder_id)s
    AND NOT EXISTS (SELECT FROM passage_embedding p WHERE p.encoder_id = %(encoder_id)s AND p.text_sha256 = e.text_sha256)
UNION ALL
SELECT e.text_sha256, halfvec_send(e.embedding) FROM imported_embedding e WHERE e.encoder_id = %(encoder_id)s
    AND NOT EXISTS (SELECT FROM passage_embedding p WHERE p.encoder_id = %(encoder_id)s AND p.text_sha256 = e.text_sha256)
    AND NOT EXISTS (SELECT FROM paper_embedding p WHERE p.encoder_id = %(encoder_id)s AND p.text_sha256 = e.text_sha256)

-- name: list_identities
SELECT encoder_id, name, revision, weights_sha256, max_tokens, prompts, spec, canary, state FROM encoder
WHERE state <> 'retired' ORDER BY state <> 'active', encoder_id

-- name: index_state
-- The vector indexes of an encoder: whether each is there and whole.
SELECT t.part, to_regclass(format('%%s_embedding_%%s', t.part, %(encoder_id)s::integer)) IS NOT NULL,
       (SELECT i.indisvalid FROM pg_index i WHERE i.indexrelid = to_regclass(format('%%s_embedding_%%s_hnsw_idx', t.part, %(encoder_id)s::integer)))
FROM (VALUES ('passage'), ('paper')) AS t (part)

-- name: index_kind
-- How the passages' index compares: halfvec, or binary with exact rescoring.
SELECT coalesce((SELECT value ->> 'vector_index' FROM setting WHERE name = 'search'), 'halfvec')

-- name: set_index_kind
INSERT INTO setting (name, value) VALUES ('search', jsonb_build_object('vector_index', %(kind)s::text))
ON CONFLICT (name) DO UPDATE SET value = setting.value || excluded.value, updated_at = now()

-- name: count_leaf
-- About how many rows a leaf holds, from its size: statistics may be missing.
SELECT coalesce(pg_relation_size(to_regclass(%(leaf)s)) / 1650, 0)

-- name: index_memory
-- About how many rows a leaf has, and the server's memory for building and for its buffers, in bytes.
SELECT greatest(c.reltuples, pg_relation_size(c.oid) / 1700)::bigint, pg_size_bytes(current_setting('maintenance_work_mem')),
       pg_size_bytes(current_setting('shared_buffers'))
FROM pg_class c WHERE c.oid = to_regclass(%(leaf)s)
