-- What `brain doctor` asks.

-- name: vector_indexes
SELECT c.relname, i.indisvalid FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_am a ON a.oid = c.relam
WHERE a.amname = 'hnsw' AND i.indrelid IN (to_regclass('passage_embedding_' || active_encoder_id()), to_regclass('paper_embedding_' || active_encoder_id()))

-- name: memory
SELECT greatest(0, c.reltuples)::bigint, current_setting('shared_buffers') FROM pg_class c
WHERE c.oid = coalesce(to_regclass('passage_embedding_' || active_encoder_id()), 'passage'::regclass)

-- name: maintenance_mb
SELECT setting::bigint / 1024 FROM pg_settings WHERE name = 'maintenance_work_mem'

-- name: count_missing
SELECT (SELECT count(*) FROM paper p WHERE p.text_sha256 IS NOT NULL
          AND NOT EXISTS (SELECT FROM paper_embedding e WHERE e.encoder_id = active_encoder_id() AND e.text_sha256 = p.text_sha256)
          AND p.paper_pk NOT IN (SELECT unnest(item_ids) FROM job WHERE kind = 'embed_papers' AND encoder_id = active_encoder_id())),
       (SELECT count(*) FROM passage_any p
        WHERE NOT EXISTS (SELECT FROM passage_embedding e WHERE e.encoder_id = active_encoder_id() AND e.text_sha256 = p.text_sha256)
          AND p.passage_id NOT IN (SELECT unnest(item_ids) FROM job WHERE kind = 'embed_passages' AND encoder_id = active_encoder_id()))

-- name: enqueue_missing
SELECT job_enqueue_missing(active_encoder_id(), 100)

-- name: count_failures
SELECT count(*) FROM job WHERE state = 'failed'

-- name: nodes
SELECT (SELECT count(*) FROM job WHERE state = 'waiting'),
       (SELECT count(*) FROM node WHERE role = 'worker' AND state <> 'stopped' AND last_seen_at > now() - interval '2 minutes'),
       (SELECT coalesce(array_agg(name ORDER BY name), '{}') FROM node WHERE role = 'worker' AND state <> 'stopped'
          AND last_seen_at BETWEEN now() - interval '7 days' AND now() - interval '2 minutes')

-- name: documents
SELECT DISTINCT ON (sha256) encode(sha256, 'hex'), file_name FROM document ORDER BY sha256
