-- Documents that are read anew by a newer extractor.

-- name: list_outdated
-- Documents that were read, by an older extractor than the wanted one unless all are meant; a draft counts as read.
-- With text recognition also those that need it.
SELECT d.document_id, encode(d.sha256, 'hex') AS sha256, coalesce(d.file_name, '') AS file_name, p.paper_id, d.verdict,
       d.extractor_version, 'ocr' = ANY (d.warnings) AS is_ocr
FROM document d JOIN paper p USING (paper_pk) LEFT JOIN document_draft f USING (document_id)
WHERE d.verdict IS NOT NULL AND (%(is_all)s OR (%(is_ocr)s AND d.verdict = 'needs_ocr') OR greatest(d.extractor_version, f.extractor_version, 0) < %(version)s)
  AND (%(topics)s::text[] IS NULL OR EXISTS (
      SELECT FROM paper_topic pt JOIN topic t USING (topic_id) WHERE pt.paper_pk = d.paper_pk AND t.name = ANY (%(topics)s)))
  AND (%(pks)s::bigint[] IS NULL OR d.paper_pk = ANY (%(pks)s))
ORDER BY d.document_id

-- name: unknown_topics
SELECT n FROM unnest(%(names)s::text[]) AS n WHERE n NOT IN (SELECT name FROM topic)

-- name: resolve_papers
SELECT k, r.paper_pk FROM unnest(%(keys)s::text[]) AS k LEFT JOIN paper_resolve(%(keys)s::text[]) r ON r.key = k

-- name: lock_document
-- The document as it is now, held until the transaction ends; no row when it is gone.
SELECT d.document_id, p.paper_pk, d.verdict, d.text_sha256, d.sections, d.page_starts, d.is_cut,
       greatest(d.extractor_version, (SELECT f.extractor_version FROM document_draft f WHERE f.document_id = d.document_id)) AS version,
       p.same_as IS NOT NULL AS is_copy, p.title, p.abstract, p.text_sha256 AS words_sha256,
       p.provenance ->> 'title' IS NOT DISTINCT FROM 'file' AS is_title_of_file,
       p.provenance ->> 'abstract' IS NOT DISTINCT FROM 'file' AS is_abstract_of_file
FROM document d JOIN paper p USING (paper_pk) WHERE d.document_id = %s FOR UPDATE OF d

-- name: set_read
-- The text is as it was: only what is said of it is new.
UPDATE document SET extractor_version = %(extractor_version)s, warnings = %(warnings)s, extracted_at = now() WHERE document_id = %(document_id)s

-- name: set_kept
-- Today's extractor gives no text: the older one stays, and says so.
UPDATE document SET extractor_version = %(extractor_version)s,
       warnings = ARRAY(SELECT w FROM unnest(warnings) AS w WHERE w NOT LIKE 'older_text:%%') || ARRAY[%(warning)s::text]
WHERE document_id = %(document_id)s

-- name: insert_draft
INSERT INTO document_draft (document_id, reason, warnings, n_pages, text, text_sha256, page_starts, sections, extractor_version,
                            has_words, base_sha256, title, abstract, paper_text)
VALUES (%(document_id)s, %(reason)s, %(warnings)s, %(n_pages)s, %(text)s, %(text_sha256)s, %(page_starts)s, %(sections)s,
        %(extractor_version)s, %(has_words)s, %(base_sha256)s, %(title)s, %(abstract)s, %(paper_text)s)

-- name: insert_passage_drafts
INSERT INTO passage_draft (document_id, part, ordinal, char_start, char_end, section, page_from, page_to, text, text_sha256)
SELECT %(document_id)s, %(part)s, n.ordinal - 1, n.char_start, n.char_end, n.section, n.page_from, n.page_to, n.text, n.hash
FROM unnest(%(starts)s::integer[], %(ends)s::integer[], %(sections)s::text[], %(pages_from)s::integer[], %(pages_to)s::integer[],
            %(texts)s::text[], %(hashes)s::bytea[]) WITH ORDINALITY
    AS n (char_start, char_end, section, page_from, page_to, text, hash, ordinal) ORDER BY n.ordinal

-- name: want
SELECT draft_want(%(document_id)s, %(priority)s)

-- name: settle_all
SELECT draft_settle_all()

-- name: count_drafts
SELECT count(*) FROM document_draft
