-- Files of papers: registering them, what extraction made of them, copies of one paper.

-- name: find_by_sha256
SELECT d.document_id, d.paper_pk, d.verdict FROM document d JOIN paper p USING (paper_pk)
WHERE d.sha256 = %s ORDER BY p.is_prefixed, d.document_id LIMIT 1

-- name: insert_file_paper
INSERT INTO paper (paper_id) VALUES (%s) ON CONFLICT (paper_id) DO UPDATE SET updated_at = paper.updated_at RETURNING paper_pk

-- name: insert_document
INSERT INTO document (paper_pk, sha256, file_name, source_url, content_type, n_bytes, licence)
VALUES (%(paper_pk)s, %(sha256)s, %(file_name)s, %(source_url)s, %(content_type)s, %(n_bytes)s, %(licence)s)
ON CONFLICT (paper_pk, sha256) DO UPDATE SET source_url = coalesce(document.source_url, excluded.source_url),
    licence = coalesce(document.licence, excluded.licence)
RETURNING document_id, verdict

-- name: enqueue_extract
INSERT INTO job (kind, priority, item_ids)
SELECT 'extract', %(priority)s, ARRAY[%(document_id)s::bigint]
WHERE NOT EXISTS (SELECT FROM job WHERE kind = 'extract' AND item_ids = ARRAY[%(document_id)s::bigint])

-- name: select_document
SELECT d.document_id, d.paper_pk, encode(d.sha256, 'hex') AS sha256, d.file_name, d.verdict, p.paper_id, p.is_prefixed, p.title, p.abstract,
       p.text_sha256, p.year, p.url
FROM document d JOIN paper p USING (paper_pk) WHERE d.document_id = %s

-- name: update_extracted
UPDATE document SET verdict = %(verdict)s, reason = %(reason)s, warnings = %(warnings)s, n_pages = %(n_pages)s, text = %(text)s,
       text_sha256 = %(text_sha256)s, page_starts = %(page_starts)s, sections = %(sections)s,
       extractor_version = %(extractor_version)s, extracted_at = now(), is_cut = false
WHERE document_id = %(document_id)s

-- name: discard_draft
-- A text that was read anew and never served goes; the hashes of its passages.
WITH gone AS (DELETE FROM passage_draft WHERE document_id = %(document_id)s RETURNING text_sha256),
     draft AS (DELETE FROM document_draft WHERE document_id = %(document_id)s)
SELECT DISTINCT text_sha256 FROM gone

-- name: find_same_text
SELECT d.paper_pk, p.paper_id, p.title FROM document d JOIN paper p USING (paper_pk)
WHERE d.text_sha256 = %(text_sha256)s AND d.verdict = 'ok' AND d.paper_pk <> %(paper_pk)s AND NOT p.is_prefixed AND p.same_as IS NULL
ORDER BY d.paper_pk LIMIT 1

-- name: find_owner
SELECT p.paper_pk, p.paper_id, p.title,
       EXISTS (SELECT FROM document d WHERE d.paper_pk = p.paper_pk AND d.verdict = 'ok') AS has_document
FROM paper_identifier i JOIN paper p USING (paper_pk)
WHERE (i.kind, i.value) IN (SELECT * FROM unnest(%(kinds)s::text[], %(values)s::text[]))
  AND NOT p.is_prefixed AND p.paper_pk <> %(paper_pk)s ORDER BY p.paper_pk LIMIT 1

-- name: set_same_as
UPDATE paper SET same_as = %(same_as)s, title = coalesce(title, %(title)s), updated_at = now() WHERE paper_pk = %(paper_pk)s

-- name: set_document_reason
UPDATE document SET reason = %(reason)s WHERE document_id = %(document_id)s

-- name: move_document
UPDATE document SET paper_pk = %(to_pk)s WHERE document_id = %(document_id)s

-- name: move_topics
INSERT INTO paper_topic (paper_pk, topic_id) SELECT %(to_pk)s, topic_id FROM paper_topic WHERE paper_pk = %(from_pk)s ON CONFLICT DO NOTHING

-- name: move_identifiers
INSERT INTO paper_identifier (kind, value, paper_pk) SELECT kind, value, %(to_pk)s FROM paper_identifier WHERE paper_pk = %(from_pk)s
UNION SELECT 'key', paper_id, %(to_pk)s FROM paper WHERE paper_pk = %(from_pk)s ON CONFLICT DO NOTHING

-- name: delete_paper
DELETE FROM paper WHERE paper_pk = %s

-- name: insert_identifier
INSERT INTO paper_identifier (kind, value, paper_pk) VALUES (%s, %s, %s) ON CONFLICT DO NOTHING

-- name: update_paper_from_document
UPDATE paper SET title = %(title)s, abstract = %(abstract)s, text = %(text)s, text_sha256 = %(text_sha256)s,
       year = coalesce(year, %(year)s), url = coalesce(url, %(url)s), updated_at = now(),
       provenance = provenance || jsonb_strip_nulls(jsonb_build_object(
           'title', CASE WHEN title IS NULL AND %(title)s::text IS NOT NULL THEN 'file' END,
           'abstract', CASE WHEN abstract IS NULL AND %(abstract)s::text IS NOT NULL THEN 'file' END))
WHERE paper_pk = %(paper_pk)s

-- name: enqueue_chunk
INSERT INTO job (kind, priority, item_ids)
SELECT 'chunk', %(priority)s, ARRAY[%(document_id)s::bigint]
WHERE NOT EXISTS (SELECT FROM job WHERE kind = 'chunk' AND state = 'waiting' AND item_ids = ARRAY[%(document_id)s::bigint])

-- name: add_topic
INSERT INTO paper_topic (paper_pk, topic_id) SELECT %(paper_pk)s, topic_id FROM topic WHERE name = ANY (%(names)s) ON CONFLICT DO NOTHING

-- name: count_extract_jobs
SELECT count(*) FILTER (WHERE state IN ('waiting', 'running')), count(*) FILTER (WHERE state = 'failed') FROM job WHERE kind = 'extract'
