-- Generations of embeddings: one encoder serves, others are filled beside it.

-- name: list
SELECT e.encoder_id, e.name, e.revision, e.weights_sha256, e.max_tokens, e.prompts, e.spec, e.canary, e.state
FROM encoder e ORDER BY e.state <> 'active', e.encoder_id

-- name: count_missing
-- Papers and passages whose text has no embedding under the encoder.
SELECT (SELECT count(*) FROM paper p WHERE p.text_sha256 IS NOT NULL
            AND NOT EXISTS (SELECT FROM paper_embedding e WHERE e.encoder_id = %(encoder_id)s AND e.text_sha256 = p.text_sha256)),
       (SELECT count(*) FROM passage p
            WHERE NOT EXISTS (SELECT FROM passage_embedding e WHERE e.encoder_id = %(encoder_id)s AND e.text_sha256 = p.text_sha256))

-- name: count_embedded
SELECT (SELECT count(*) FROM paper_embedding WHERE encoder_id = %(encoder_id)s),
       (SELECT count(*) FROM passage_embedding WHERE encoder_id = %(encoder_id)s),
       (SELECT coalesce(sum(n_items), 0) FROM job WHERE encoder_id = %(encoder_id)s AND state = 'failed')

-- name: set_state
UPDATE encoder SET state = %(state)s WHERE encoder_id = %(encoder_id)s AND state <> 'active'

-- name: announce
-- What search servers should load beside the encoder that serves.
INSERT INTO setting (name, value) VALUES ('encoder_next', to_jsonb(%(encoder_id)s::integer))
ON CONFLICT (name) DO UPDATE SET value = excluded.value, updated_at = now()

-- name: unannounce
DELETE FROM setting WHERE name = 'encoder_next'

-- name: servers_without
-- Live search servers that have not loaded the encoder.
SELECT name FROM node WHERE role = 'search' AND state <> 'stopped' AND last_seen_at > clock_timestamp() - interval '15 seconds'
    AND NOT coalesce(detail -> 'encoders' @> to_jsonb(%(encoder_id)s::integer), false) ORDER BY name

-- name: drop_jobs
DELETE FROM job WHERE encoder_id = %(encoder_id)s

-- name: drop_imported
DELETE FROM imported_embedding WHERE encoder_id = %(encoder_id)s

-- name: drop_waiting
DELETE FROM job WHERE encoder_id = %(encoder_id)s AND state = 'waiting'

-- name: nearest_papers
-- The papers nearest to a query by an exact scan: each by its own embedding or its best passage.
WITH near AS (
    SELECT p.paper_id, e.embedding <=> %(query)s::halfvec AS distance FROM paper_embedding e JOIN paper p USING (text_sha256) WHERE e.encoder_id = %(encoder_id)s
    UNION ALL
    SELECT p.paper_id, e.embedding <=> %(query)s::halfvec FROM passage_embedding e JOIN passage s USING (text_sha256) JOIN paper p USING (paper_pk)
    WHERE e.encoder_id = %(encoder_id)s
)
SELECT paper_id, min(distance) FROM near GROUP BY paper_id ORDER BY min(distance), paper_id LIMIT %(k)s

-- name: titles
-- A fixed sample: papers of which a passage speaks that is not the title itself, by the hash of their text.
SELECT p.paper_id, p.title FROM paper p
WHERE length(p.title) > 20 AND EXISTS (SELECT FROM passage s WHERE s.paper_pk = p.paper_pk)
ORDER BY p.text_sha256, p.paper_id LIMIT %(n)s
