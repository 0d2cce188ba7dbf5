-- Writing papers in batches. The batch lies in the temporary table "incoming".

-- name: create_incoming
CREATE TEMPORARY TABLE IF NOT EXISTS incoming (
    paper_id text PRIMARY KEY, kind text, is_prefixed boolean, title text, abstract text, text text, text_sha256 bytea,
    authors text[], year integer, venue text, url text, raw jsonb
) ON COMMIT DELETE ROWS

-- name: copy_incoming
COPY incoming (paper_id, kind, is_prefixed, title, abstract, text, text_sha256, authors, year, venue, url, raw) FROM STDIN

-- name: select_changed_texts
SELECT p.paper_id, p.text_sha256 FROM paper p JOIN incoming i USING (paper_id)
WHERE p.text_sha256 IS DISTINCT FROM i.text_sha256

-- name: upsert_papers
INSERT INTO paper AS p (paper_id, kind, is_prefixed, title, abstract, text, text_sha256, authors, year, venue, url, raw)
SELECT paper_id, kind, is_prefixed, title, abstract, text, text_sha256, authors, year, venue, url, raw FROM incoming ORDER BY paper_id
ON CONFLICT (paper_id) DO UPDATE
SET kind = excluded.kind, title = excluded.title, abstract = excluded.abstract, text = excluded.text,
    text_sha256 = excluded.text_sha256, authors = excluded.authors, year = excluded.year, venue = excluded.venue,
    url = excluded.url, raw = excluded.raw, updated_at = now()
WHERE (p.kind, p.title, p.abstract, p.text_sha256, p.authors, p.year, p.venue, p.url, p.raw)
   IS DISTINCT FROM (excluded.kind, excluded.title, excluded.abstract, excluded.text_sha256, excluded.authors, excluded.year, excluded.venue, excluded.url, excluded.raw)
RETURNING p.paper_pk, p.paper_id, (p.xmax = 0) AS is_new

-- name: select_incoming_pks
SELECT p.paper_id, p.paper_pk FROM paper p JOIN incoming i USING (paper_id)

-- name: replace_identifiers
WITH stated AS (
    SELECT DISTINCT kind, value, paper_pk FROM unnest(%(kinds)s::text[], %(values)s::text[], %(pks)s::bigint[]) AS s (kind, value, paper_pk)
), gone AS (
    DELETE FROM paper_identifier i WHERE i.paper_pk = ANY (%(all_pks)s) AND i.kind IN (SELECT kind FROM stated s WHERE s.paper_pk = i.paper_pk)
      AND NOT EXISTS (SELECT FROM stated s WHERE (s.kind, s.value, s.paper_pk) = (i.kind, i.value, i.paper_pk))
      -- What a source says of the paper is not taken back by an input that states another value of the kind.
      AND NOT EXISTS (SELECT FROM work w WHERE w.paper_pk = i.paper_pk AND w.nodes @> ARRAY[i.kind || ':' || i.value])
)
INSERT INTO paper_identifier (kind, value, paper_pk) SELECT kind, value, paper_pk FROM stated ORDER BY 1, 2, 3 ON CONFLICT DO NOTHING

-- name: insert_topics
INSERT INTO topic (name) SELECT unnest(%(names)s::text[]) ON CONFLICT DO NOTHING

-- name: delete_paper_topics
DELETE FROM paper_topic pt USING topic t
WHERE pt.topic_id = t.topic_id AND pt.paper_pk = ANY (%(all_pks)s)
  AND NOT EXISTS (SELECT FROM unnest(%(pks)s::bigint[], %(names)s::text[]) AS s (pk, name) WHERE s.pk = pt.paper_pk AND s.name = t.name)

-- name: insert_paper_topics
INSERT INTO paper_topic (paper_pk, topic_id)
SELECT DISTINCT s.pk, t.topic_id FROM unnest(%(pks)s::bigint[], %(names)s::text[]) AS s (pk, name) JOIN topic t USING (name)
ORDER BY 1, 2 ON CONFLICT DO NOTHING

-- name: delete_abstract_passages
DELETE FROM passage WHERE paper_pk = ANY (%s) AND part = 'abstract' RETURNING text_sha256

-- name: copy_abstract_passages
COPY passage (paper_pk, part, ordinal, char_start, char_end, section, text, text_sha256) FROM STDIN

-- name: select_encoders
SELECT encoder_id, state FROM encoder WHERE state IN ('active', 'filling') ORDER BY encoder_id

-- name: adopt
SELECT embedding_adopt(%(encoder_id)s, %(paper_hashes)s::bytea[], %(passage_hashes)s::bytea[])

-- name: enqueue
SELECT job_enqueue_papers(%(encoder_id)s, %(pks)s::bigint[], %(priority)s),
       job_enqueue_passages(%(encoder_id)s, ARRAY(SELECT passage_id FROM passage WHERE paper_pk = ANY (%(pks)s) AND part = 'abstract'), %(priority)s)

-- name: delete_orphan_paper_embeddings
-- Every encoder is named, as the index begins with it.
DELETE FROM paper_embedding e WHERE e.encoder_id = ANY (ARRAY(SELECT encoder_id FROM encoder))
  AND e.text_sha256 = ANY (%s::bytea[])
  AND NOT EXISTS (SELECT FROM paper p WHERE p.text_sha256 = e.text_sha256)

-- name: delete_orphan_passage_embeddings
DELETE FROM passage_embedding e WHERE e.encoder_id = ANY (ARRAY(SELECT encoder_id FROM encoder))
  AND e.text_sha256 = ANY (%s::bytea[])
  AND NOT EXISTS (SELECT FROM passage_any p WHERE p.text_sha256 = e.text_sha256)

-- name: find_paper_by_identifier
SELECT p.paper_pk, p.paper_id FROM paper_identifier i JOIN paper p USING (paper_pk)
WHERE (i.kind, i.value) IN (SELECT * FROM unnest(%(kinds)s::text[], %(values)s::text[])) AND NOT p.is_prefixed
ORDER BY p.paper_pk LIMIT 1

-- name: select_keys
SELECT paper_id FROM paper WHERE paper_id = ANY (%s)

-- name: select_stored
SELECT paper_id, title, abstract, authors, year, venue, url, raw FROM paper WHERE paper_id = ANY (%s)

-- name: select_owners
SELECT DISTINCT ON (a.key) a.key, p.paper_id
FROM unnest(%(keys)s::text[], %(kinds)s::text[], %(values)s::text[]) AS a (key, kind, value)
JOIN paper_identifier i ON i.kind = a.kind AND i.value = a.value JOIN paper p USING (paper_pk)
WHERE NOT p.is_prefixed ORDER BY a.key, p.paper_pk
