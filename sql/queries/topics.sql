-- Topics, and what the export of seed files reads.

-- name: upsert_topic
INSERT INTO topic (name, title, description, queries, meta) VALUES (%(name)s, %(title)s, %(description)s, %(queries)s, %(meta)s)
ON CONFLICT (name) DO UPDATE SET title = coalesce(excluded.title, topic.title), description = coalesce(excluded.description, topic.description),
    queries = CASE WHEN excluded.queries = '[]' THEN topic.queries ELSE excluded.queries END, meta = topic.meta || excluded.meta

-- name: list_topics
SELECT t.name, t.title, t.description, count(pt.paper_pk) AS n_papers FROM topic t LEFT JOIN paper_topic pt USING (topic_id)
GROUP BY t.topic_id ORDER BY t.name

-- name: select_topic_names
SELECT name FROM topic ORDER BY name

-- name: select_topic
SELECT title, description, queries, meta, fetched_at FROM topic WHERE name = %s

-- name: select_papers
SELECT p.paper_pk, p.paper_id, p.kind, p.is_prefixed, p.title, p.abstract, p.authors, p.year, p.published_on::text, p.venue, p.url,
       p.n_citations, p.velocity, p.tldr, p.licence, p.is_retracted, p.mark, o.paper_id AS same_as, p.raw, p.provenance,
       p.text IS NULL AND coalesce(p.title, p.abstract) IS NOT NULL AS is_wordless
FROM paper p LEFT JOIN paper o ON o.paper_pk = p.same_as ORDER BY p.paper_id

-- name: select_identifiers
SELECT paper_pk, kind, value FROM paper_identifier ORDER BY paper_pk, kind, value

-- name: select_paper_topics
SELECT pt.paper_pk, t.name FROM paper_topic pt JOIN topic t USING (topic_id) ORDER BY pt.paper_pk, t.name

-- name: select_documents
SELECT paper_pk, encode(sha256, 'hex') AS sha256, file_name, source_url, licence, content_type, verdict, reason, n_bytes
FROM document ORDER BY paper_pk, (verdict = 'ok') DESC, document_id

-- name: find_key
SELECT p.paper_id FROM paper_resolve(ARRAY[%(paper_id)s]) r JOIN paper p USING (paper_pk)

-- name: set_mark
UPDATE paper SET mark = %(mark)s WHERE paper_id = %(paper_id)s AND mark IS DISTINCT FROM %(mark)s

-- name: set_fetched_at
UPDATE topic SET fetched_at = now() WHERE name = %s

-- name: add_papers_to_topic
INSERT INTO paper_topic (paper_pk, topic_id)
SELECT DISTINCT r.paper_pk, t.topic_id FROM paper_resolve(%(paper_ids)s) r, topic t WHERE t.name = ANY (%(names)s)
ORDER BY 1, 2 ON CONFLICT DO NOTHING

-- name: find_pk
SELECT paper_pk FROM paper_resolve(ARRAY[%(paper_id)s])

-- name: list_pks
SELECT DISTINCT pt.paper_pk FROM paper_topic pt JOIN topic t USING (topic_id) WHERE t.name = ANY (%s) ORDER BY 1

-- name: list_unknown
-- Papers of which nothing but an identifier is known after every source has had its say.
SELECT p.paper_id, string_agg(k.source || ' ' || k.outcome, ', ' ORDER BY k.source) FROM paper p JOIN lookup k USING (paper_pk)
WHERE p.paper_pk = ANY (%s) AND p.title IS NULL GROUP BY p.paper_id HAVING NOT bool_or(k.outcome IN ('throttled', 'down')) ORDER BY 1
