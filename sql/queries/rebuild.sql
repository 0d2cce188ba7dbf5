-- What a rebuild writes beside papers, and what it asks of the database on its way.

-- name: is_known_to_rebuild
SELECT (SELECT value FROM setting WHERE name = 'rebuild'), EXISTS (SELECT FROM paper),
       (SELECT count(*) FROM paper WHERE updated_at > (SELECT updated_at FROM setting WHERE name = 'rebuild'))

-- name: set_state
INSERT INTO setting (name, value, updated_at) VALUES ('rebuild', %(value)s, clock_timestamp())
ON CONFLICT (name) DO UPDATE SET value = excluded.value, updated_at = clock_timestamp()

-- name: set_facts
-- What no file and no JSONL row states of a paper: dates, counts, marks, where each field came from.
UPDATE paper p SET published_on = f.published_on, n_citations = f.n_citations, velocity = f.velocity, tldr = f.tldr, licence = f.licence,
       is_retracted = f.is_retracted, mark = f.mark, provenance = f.provenance
FROM unnest(%(ids)s::text[], %(published_on)s::date[], %(n_citations)s::integer[], %(velocity)s::real[], %(tldr)s::text[],
            %(licence)s::text[], %(is_retracted)s::boolean[], %(mark)s::text[], %(provenance)s::jsonb[])
     AS f (paper_id, published_on, n_citations, velocity, tldr, licence, is_retracted, mark, provenance)
WHERE p.paper_id = f.paper_id
  AND (p.published_on, p.n_citations, p.velocity, p.tldr, p.licence, p.is_retracted, p.mark, p.provenance)
      IS DISTINCT FROM (f.published_on, f.n_citations, f.velocity, f.tldr, f.licence, f.is_retracted, f.mark, f.provenance)

-- name: set_wordless
-- A copy of another paper keeps its title and makes no passages.
UPDATE paper p SET title = f.title, abstract = f.abstract FROM unnest(%(ids)s::text[], %(titles)s::text[], %(abstracts)s::text[]) AS f (paper_id, title, abstract)
WHERE p.paper_id = f.paper_id

-- name: list_keys
SELECT paper_id FROM paper WHERE paper_id = ANY (%s)

-- name: insert_identifiers
INSERT INTO paper_identifier (kind, value, paper_pk)
SELECT i.kind, i.value, p.paper_pk FROM unnest(%(ids)s::text[], %(kinds)s::text[], %(values)s::text[]) AS i (paper_id, kind, value)
JOIN paper p USING (paper_id) ORDER BY 1, 2, 3 ON CONFLICT DO NOTHING

-- name: insert_paper_topics
INSERT INTO paper_topic (paper_pk, topic_id)
SELECT p.paper_pk, t.topic_id FROM unnest(%(ids)s::text[], %(names)s::text[]) AS i (paper_id, name)
JOIN paper p USING (paper_id) JOIN topic t USING (name) ORDER BY 1, 2 ON CONFLICT DO NOTHING

-- name: set_same_as
UPDATE paper p SET same_as = o.paper_pk
FROM unnest(%(ids)s::text[], %(owners)s::text[]) AS i (paper_id, owner) JOIN paper o ON o.paper_id = i.owner
WHERE p.paper_id = i.paper_id AND p.same_as IS DISTINCT FROM o.paper_pk

-- name: insert_document
-- A reason that stands here before the file is read is what was said of it when it was known last.
INSERT INTO document (paper_pk, sha256, file_name, source_url, licence, content_type, reason, n_bytes)
SELECT p.paper_pk, %(sha256)s, %(file_name)s, %(source_url)s, %(licence)s, %(content_type)s, %(reason)s, %(n_bytes)s
FROM paper p WHERE p.paper_id = %(paper_id)s
ON CONFLICT (paper_pk, sha256) DO UPDATE SET source_url = coalesce(document.source_url, excluded.source_url),
    file_name = coalesce(excluded.file_name, document.file_name), licence = coalesce(document.licence, excluded.licence),
    content_type = coalesce(document.content_type, excluded.content_type)

-- name: list_unread
SELECT d.document_id, encode(d.sha256, 'hex') AS sha256, coalesce(d.file_name, '') AS file_name FROM document d
WHERE d.verdict IS NULL AND NOT EXISTS (SELECT FROM job j WHERE j.kind = 'extract' AND j.item_ids = ARRAY[d.document_id])
ORDER BY d.document_id

-- name: lock_unread
SELECT d.paper_pk, d.reason, p.same_as, p.title FROM document d JOIN paper p USING (paper_pk)
WHERE d.document_id = %s AND d.verdict IS NULL FOR UPDATE OF d

-- name: enqueue_chunk
INSERT INTO job (kind, priority, item_ids) SELECT 'chunk', 100, ARRAY[%(document_id)s::bigint]
WHERE NOT EXISTS (SELECT FROM job WHERE kind = 'chunk' AND item_ids = ARRAY[%(document_id)s::bigint])

-- name: list_uncut
-- Documents with a text whose passages have not been made, and that no job stands for any more.
INSERT INTO job (kind, priority, item_ids) SELECT 'chunk', 100, ARRAY[d.document_id] FROM document d JOIN paper p USING (paper_pk)
WHERE d.verdict = 'ok' AND NOT d.is_cut AND p.same_as IS NULL
  AND NOT EXISTS (SELECT FROM job j WHERE j.kind = 'chunk' AND j.item_ids = ARRAY[d.document_id]) ORDER BY d.document_id

-- name: count_chunk_jobs
SELECT count(*) FROM job WHERE kind = 'chunk' AND state IN ('waiting', 'running')

-- name: insert_settings
INSERT INTO setting (name, value, evidence) SELECT %(name)s, %(value)s, %(evidence)s ON CONFLICT (name) DO NOTHING

-- name: select_settings
SELECT name, value, evidence FROM setting WHERE NOT name = ANY (%(own)s) ORDER BY name

-- name: select_encoders
SELECT name, revision, weights_sha256, max_tokens, prompts, spec, canary, state FROM encoder
WHERE state IN ('active', 'filling') ORDER BY state, name, encoder_id

-- name: select_daily
SELECT day::text, n_papers, n_documents, n_passages, n_embeddings, by_topic FROM daily_count ORDER BY day

-- name: insert_daily
INSERT INTO daily_count (day, n_papers, n_documents, n_passages, n_embeddings, by_topic)
VALUES (%(day)s, %(n_papers)s, %(n_documents)s, %(n_passages)s, %(n_embeddings)s, %(by_topic)s) ON CONFLICT (day) DO NOTHING

-- name: select_refused
SELECT DISTINCT p.paper_id, f.url, f.outcome, f.reason, encode(f.sha256, 'hex') AS sha256 FROM fetch_attempt f JOIN paper p USING (paper_pk)
WHERE f.outcome NOT IN ('ok', 'throttled', 'down') ORDER BY 1, 2, 3

-- name: insert_refused
INSERT INTO fetch_attempt (paper_pk, url, outcome, reason, sha256, ended_at)
SELECT p.paper_pk, %(url)s, %(outcome)s, %(reason)s, decode(%(sha256)s, 'hex'), now() FROM paper p WHERE p.paper_id = %(paper_id)s
  AND NOT EXISTS (SELECT FROM fetch_attempt f WHERE f.paper_pk = p.paper_pk AND f.url = %(url)s AND f.outcome = %(outcome)s)

-- name: select_citations
SELECT a.paper_id, b.paper_id, c.source FROM citation c JOIN paper a ON a.paper_pk = c.citing_pk JOIN paper b ON b.paper_pk = c.cited_pk
ORDER BY a.paper_id COLLATE "C", b.paper_id COLLATE "C"

-- name: insert_citations
INSERT INTO citation (citing_pk, cited_pk, source)
SELECT a.paper_pk, b.paper_pk, i.source FROM unnest(%(citing)s::text[], %(cited)s::text[], %(sources)s::text[]) AS i (citing, cited, source)
JOIN paper a ON a.paper_id = i.citing JOIN paper b ON b.paper_id = i.cited ORDER BY 1, 2 ON CONFLICT DO NOTHING

-- name: select_apart
SELECT one, other FROM apart ORDER BY one COLLATE "C", other COLLATE "C"

-- name: insert_apart
INSERT INTO apart (one, other) VALUES (%s, %s) ON CONFLICT DO NOTHING
