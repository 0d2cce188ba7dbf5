-- Works, what they are merged into, and what is asked of sources.

-- name: upsert_works
INSERT INTO work AS w (source, source_id, payload, nodes, title_key, answer_id)
SELECT source, source_id, payload, ARRAY(SELECT jsonb_array_elements_text(nodes)), title_key, %(answer_id)s::bigint
FROM unnest(%(sources)s::text[], %(source_ids)s::text[], %(payloads)s::jsonb[], %(nodes)s::jsonb[], %(title_keys)s::text[])
     AS i (source, source_id, payload, nodes, title_key)
ON CONFLICT (source, source_id) DO UPDATE SET payload = excluded.payload, nodes = excluded.nodes, title_key = excluded.title_key,
    answer_id = coalesce(excluded.answer_id, w.answer_id), fetched_at = now(),
    changed_at = CASE WHEN w.payload = excluded.payload THEN w.changed_at ELSE now() END

-- name: find_touched
-- The papers that works with these identifiers and titles may belong to.
SELECT DISTINCT coalesce(p.same_as, p.paper_pk) FROM (
    SELECT i.paper_pk FROM unnest(%(nodes)s::text[]) AS n (node)
    JOIN paper_identifier i ON i.kind = split_part(n.node, ':', 1) AND i.value = substr(n.node, strpos(n.node, ':') + 1)
    UNION SELECT i.paper_pk FROM paper_identifier i WHERE i.kind = 'key' AND i.value = ANY (%(nodes)s)
    UNION SELECT q.paper_pk FROM paper q WHERE q.paper_id = ANY (%(nodes)s)
    UNION SELECT w.paper_pk FROM work w WHERE w.nodes && %(nodes)s::text[]
    UNION SELECT w.paper_pk FROM work w WHERE w.title_key = ANY (%(title_keys)s)
) f JOIN paper p USING (paper_pk) WHERE NOT p.is_prefixed ORDER BY 1

-- name: select_works
SELECT w.work_id, w.paper_pk, w.payload FROM work w
WHERE w.paper_pk = ANY (%(pks)s) OR w.nodes && %(nodes)s::text[] OR w.title_key = ANY (%(title_keys)s) ORDER BY w.work_id

-- name: select_papers
SELECT p.paper_pk, p.paper_id, p.kind, p.title, p.abstract, p.authors, p.year, p.venue, p.url, p.raw, p.provenance, p.mark,
       ARRAY(SELECT i.kind || ':' || i.value FROM paper_identifier i WHERE i.paper_pk = p.paper_pk AND i.kind <> 'key' ORDER BY 1) AS nodes
FROM paper p WHERE p.paper_pk = ANY (%s) ORDER BY p.paper_pk

-- name: select_apart
SELECT one, other FROM apart

-- name: insert_apart
INSERT INTO apart (one, other) VALUES (least(%(one)s, %(other)s), greatest(%(one)s, %(other)s)) ON CONFLICT DO NOTHING

-- name: delete_nodes
DELETE FROM paper_identifier WHERE paper_pk = %(pk)s AND (kind || ':' || value = ANY (%(nodes)s) OR (kind = 'key' AND value = ANY (%(nodes)s)))

-- name: list_used_keys
SELECT paper_id FROM paper WHERE paper_id = ANY (%s)

-- name: find_pks
SELECT paper_id, paper_pk FROM paper WHERE paper_id = ANY (%s)

-- name: set_works_paper
UPDATE work w SET paper_pk = i.paper_pk FROM unnest(%(work_ids)s::bigint[], %(pks)s::bigint[]) AS i (work_id, paper_pk)
WHERE w.work_id = i.work_id AND w.paper_pk IS DISTINCT FROM i.paper_pk

-- name: set_facts
UPDATE paper p SET published_on = coalesce(f.published_on, p.published_on), n_citations = coalesce(f.n_citations, p.n_citations),
       velocity = coalesce(f.velocity, p.velocity), tldr = coalesce(f.tldr, p.tldr), licence = coalesce(f.licence, p.licence),
       is_retracted = p.is_retracted OR f.is_retracted, provenance = f.provenance
FROM unnest(%(pks)s::bigint[], %(published_on)s::date[], %(n_citations)s::integer[], %(velocity)s::real[], %(tldr)s::text[],
            %(licence)s::text[], %(is_retracted)s::boolean[], %(provenance)s::jsonb[])
     AS f (paper_pk, published_on, n_citations, velocity, tldr, licence, is_retracted, provenance)
WHERE p.paper_pk = f.paper_pk

-- name: insert_identifiers
INSERT INTO paper_identifier (kind, value, paper_pk)
SELECT kind, value, paper_pk FROM unnest(%(kinds)s::text[], %(values)s::text[], %(pks)s::bigint[]) AS i (kind, value, paper_pk)
ORDER BY 1, 2, 3 ON CONFLICT DO NOTHING

-- name: insert_references
-- Papers of the corpus that these papers cite.
INSERT INTO citation (citing_pk, cited_pk, source)
SELECT DISTINCT ON (r.pk, i.paper_pk) r.pk, i.paper_pk, r.source
FROM unnest(%(pks)s::bigint[], %(cited)s::text[], %(sources)s::text[]) AS r (pk, cited, source)
JOIN paper_identifier i ON i.kind = split_part(r.cited, ':', 1) AND i.value = substr(r.cited, strpos(r.cited, ':') + 1)
JOIN paper p ON p.paper_pk = i.paper_pk AND NOT p.is_prefixed
WHERE i.paper_pk <> r.pk ORDER BY r.pk, i.paper_pk, r.source ON CONFLICT DO NOTHING

-- name: insert_citing
-- Papers of the corpus that cite these papers, by the references of their works.
INSERT INTO citation (citing_pk, cited_pk, source)
SELECT DISTINCT ON (w.paper_pk, n.pk) w.paper_pk, n.pk, w.source
FROM (SELECT pk, array_agg(node) AS nodes FROM unnest(%(pks)s::bigint[], %(nodes)s::text[]) AS s (pk, node) GROUP BY pk) n
JOIN work w ON w.payload -> 'references' ?| n.nodes
WHERE w.paper_pk IS NOT NULL AND w.paper_pk <> n.pk ORDER BY w.paper_pk, n.pk, w.source ON CONFLICT DO NOTHING

-- name: insert_citing_works
-- Papers of the corpus among the works that a source says cite a paper.
INSERT INTO citation (citing_pk, cited_pk, source)
SELECT DISTINCT coalesce(p.same_as, p.paper_pk), %(cited_pk)s::bigint, %(source)s FROM unnest(%(nodes)s::text[]) AS n (node)
JOIN paper_identifier i ON i.kind = split_part(n.node, ':', 1) AND i.value = substr(n.node, strpos(n.node, ':') + 1)
JOIN paper p ON p.paper_pk = i.paper_pk AND NOT p.is_prefixed
WHERE coalesce(p.same_as, p.paper_pk) <> %(cited_pk)s AND EXISTS (SELECT FROM paper c WHERE c.paper_pk = %(cited_pk)s)
ORDER BY 1 ON CONFLICT DO NOTHING

-- name: add_to_topic
INSERT INTO paper_topic (paper_pk, topic_id) SELECT unnest(%(pks)s::bigint[]), %(topic_id)s ORDER BY 1 ON CONFLICT DO NOTHING

-- name: insert_found
INSERT INTO topic_found (topic_id, paper_pk, source, is_new)
SELECT %(topic_id)s, pk, source, is_new FROM unnest(%(pks)s::bigint[], %(sources)s::text[], %(are_new)s::boolean[]) AS i (pk, source, is_new)
ORDER BY 2, 3 ON CONFLICT DO NOTHING

-- name: has_ok_document
SELECT EXISTS (SELECT FROM document WHERE paper_pk = %s AND verdict = 'ok')

-- name: move_documents
UPDATE document d SET paper_pk = %(to_pk)s WHERE d.paper_pk = %(from_pk)s
  AND NOT EXISTS (SELECT FROM document o WHERE o.paper_pk = %(to_pk)s AND o.sha256 = d.sha256)

-- name: move_passages
UPDATE passage p SET paper_pk = %(to_pk)s FROM document d
WHERE p.document_id = d.document_id AND d.paper_pk = %(to_pk)s AND p.paper_pk = %(from_pk)s AND p.part = 'document'

-- name: delete_passages
DELETE FROM passage WHERE paper_pk = %(from_pk)s RETURNING text_sha256

-- name: move_topics
INSERT INTO paper_topic (paper_pk, topic_id) SELECT %(to_pk)s, topic_id FROM paper_topic WHERE paper_pk = %(from_pk)s ON CONFLICT DO NOTHING

-- name: move_identifiers
INSERT INTO paper_identifier (kind, value, paper_pk) SELECT kind, value, %(to_pk)s FROM paper_identifier WHERE paper_pk = %(from_pk)s
UNION SELECT 'key', paper_id, %(to_pk)s FROM paper WHERE paper_pk = %(from_pk)s ON CONFLICT DO NOTHING

-- name: move_found
INSERT INTO topic_found (topic_id, paper_pk, source, is_new, found_at)
SELECT topic_id, %(to_pk)s, source, is_new, found_at FROM topic_found WHERE paper_pk = %(from_pk)s ON CONFLICT DO NOTHING

-- name: move_lookups
INSERT INTO lookup (paper_pk, source, outcome, detail, asked_at)
SELECT %(to_pk)s, source, outcome, detail, asked_at FROM lookup WHERE paper_pk = %(from_pk)s ON CONFLICT DO NOTHING

-- name: move_citations
WITH moved AS (
    SELECT CASE WHEN citing_pk = %(from_pk)s THEN %(to_pk)s ELSE citing_pk END AS a,
           CASE WHEN cited_pk = %(from_pk)s THEN %(to_pk)s ELSE cited_pk END AS b, source
    FROM citation WHERE citing_pk = %(from_pk)s OR cited_pk = %(from_pk)s
)
INSERT INTO citation (citing_pk, cited_pk, source) SELECT a, b, source FROM moved WHERE a <> b ON CONFLICT DO NOTHING

-- name: move_attempts
UPDATE fetch_attempt SET paper_pk = %(to_pk)s WHERE paper_pk = %(from_pk)s

-- name: move_copies
UPDATE paper SET same_as = %(to_pk)s WHERE same_as = %(from_pk)s

-- name: move_works
UPDATE work SET paper_pk = %(to_pk)s WHERE paper_pk = %(from_pk)s

-- name: move_mark
UPDATE paper t SET mark = coalesce(t.mark, f.mark) FROM paper f WHERE t.paper_pk = %(to_pk)s AND f.paper_pk = %(from_pk)s

-- name: delete_fetch_jobs
DELETE FROM job WHERE kind = 'fetch' AND item_ids = ARRAY[%(from_pk)s::bigint] AND state <> 'running'

-- name: delete_paper
DELETE FROM paper WHERE paper_pk = %(from_pk)s RETURNING text_sha256

-- name: keep_answer
INSERT INTO source_answer (request_key, source, url, status, content_type, body)
VALUES (%(request_key)s, %(source)s, %(url)s, %(status)s, %(content_type)s, %(body)s)
ON CONFLICT (request_key) DO UPDATE SET status = excluded.status, content_type = excluded.content_type, body = excluded.body, fetched_at = now()
RETURNING answer_id

-- name: drop_old_answers
DELETE FROM source_answer a WHERE a.fetched_at < now() - make_interval(days => %(days)s)
  AND NOT EXISTS (SELECT FROM work w WHERE w.answer_id = a.answer_id)

-- name: count_day
INSERT INTO source_day AS d (source, n_asked, n_found, n_new, n_absent, n_throttled, n_down, n_refused, n_nonsense, last_answer, last_at)
VALUES (%(source)s, %(asked)s, %(found)s, %(new)s, %(absent)s, %(throttled)s, %(down)s, %(refused)s, %(nonsense)s, %(last_answer)s,
        CASE WHEN %(last_answer)s::text IS NULL THEN NULL ELSE clock_timestamp() END)
ON CONFLICT (day, source) DO UPDATE SET n_asked = d.n_asked + excluded.n_asked, n_found = d.n_found + excluded.n_found,
    n_new = d.n_new + excluded.n_new, n_absent = d.n_absent + excluded.n_absent, n_throttled = d.n_throttled + excluded.n_throttled,
    n_down = d.n_down + excluded.n_down, n_refused = d.n_refused + excluded.n_refused, n_nonsense = d.n_nonsense + excluded.n_nonsense,
    last_answer = coalesce(excluded.last_answer, d.last_answer), last_at = coalesce(excluded.last_at, d.last_at)

-- name: select_today
SELECT s.source, coalesce(d.n_asked, 0) AS n_asked, coalesce(d.n_found, 0) AS n_found, coalesce(d.n_new, 0) AS n_new,
       coalesce(d.n_absent, 0) AS n_absent, coalesce(d.n_throttled, 0) AS n_throttled, coalesce(d.n_down, 0) AS n_down,
       coalesce(d.n_refused, 0) AS n_refused, coalesce(d.n_nonsense, 0) AS n_nonsense, l.last_answer, l.last_at
FROM (SELECT DISTINCT source FROM source_day) s LEFT JOIN source_day d ON d.source = s.source AND d.day = current_date
LEFT JOIN LATERAL (SELECT o.last_answer, o.last_at FROM source_day o WHERE o.source = s.source AND o.last_answer IS NOT NULL
                   ORDER BY o.day DESC LIMIT 1) l ON true
ORDER BY s.source

-- name: list_lookup_papers
-- What is known of papers when it is decided which sources to ask for them.
SELECT p.paper_pk, p.title IS NOT NULL AS has_title, p.abstract IS NOT NULL AS has_abstract,
       ARRAY(SELECT i.kind || ':' || i.value FROM paper_identifier i WHERE i.paper_pk = p.paper_pk AND i.kind <> 'key' ORDER BY 1) AS nodes,
       EXISTS (SELECT FROM document d WHERE d.paper_pk = p.paper_pk AND coalesce(d.verdict, 'ok') = 'ok') AS has_document,
       EXISTS (SELECT FROM work w, jsonb_array_elements(w.payload -> 'locations') l
               WHERE w.paper_pk = p.paper_pk AND l ->> 'kind' <> 'landing' AND coalesce((l ->> 'is_open')::boolean, true)) AS has_location,
       p.raw ? 'pdf_url' AS has_address,
       coalesce((SELECT jsonb_object_agg(k.source, jsonb_build_array(k.outcome, extract(epoch FROM now() - k.asked_at)))
                 FROM lookup k WHERE k.paper_pk = p.paper_pk), '{}') AS asked
FROM paper p WHERE p.paper_pk = ANY (%s) AND NOT p.is_prefixed AND p.kind IN ('paper', 'book') AND p.same_as IS NULL ORDER BY p.paper_pk

-- name: note_lookup
INSERT INTO lookup (paper_pk, source, outcome, detail)
SELECT p.paper_pk, %(source)s, i.outcome, i.detail
FROM unnest(%(pks)s::bigint[], %(outcomes)s::text[], %(details)s::text[]) AS i (paper_pk, outcome, detail) JOIN paper p USING (paper_pk)
ON CONFLICT (paper_pk, source) DO UPDATE SET outcome = excluded.outcome, detail = excluded.detail, asked_at = now()

-- name: list_stale
-- Papers that sources gave, whose counts have not been asked for in a while: the oldest first.
SELECT p.paper_pk FROM paper p JOIN paper_topic pt USING (paper_pk) JOIN topic t USING (topic_id)
JOIN LATERAL (SELECT max(k.asked_at) AS asked_at FROM lookup k WHERE k.paper_pk = p.paper_pk) k ON k.asked_at < now() - make_interval(days => %(days)s)
WHERE t.name = ANY (%(topics)s) AND NOT p.is_prefixed GROUP BY p.paper_pk, k.asked_at ORDER BY k.asked_at, p.paper_pk LIMIT %(most)s

-- name: list_topic_pks
SELECT pt.paper_pk FROM paper_topic pt JOIN topic t USING (topic_id) WHERE t.name = ANY (%s) ORDER BY 1

-- name: find_topic
SELECT topic_id FROM topic WHERE name = %s

-- name: begin_search
INSERT INTO topic_search AS s (topic_id, query, source) VALUES (%(topic_id)s, %(query)s, %(source)s)
ON CONFLICT (topic_id, query, source) DO UPDATE SET topic_id = excluded.topic_id
RETURNING since, cursor, outcome, started_at::date, searched_at::date, extract(epoch FROM now() - searched_at), n_found

-- name: begin_since
-- The first searches of a topic in this database, whose file says that it was fetched before.
INSERT INTO topic_search (topic_id, query, source, since)
SELECT %(topic_id)s, q, s, %(since)s FROM unnest(%(queries)s::text[]) AS a (q), unnest(%(sources)s::text[]) AS b (s)
WHERE NOT EXISTS (SELECT FROM topic_search t WHERE t.topic_id = %(topic_id)s) ON CONFLICT DO NOTHING

-- name: list_fresh_searches
SELECT s.query, s.source FROM topic_search s JOIN topic t USING (topic_id)
WHERE t.name = %(topic)s AND s.searched_at > now() - make_interval(secs => %(after_s)s) AND s.outcome NOT IN ('going_on', 'throttled', 'down')

-- name: restart_search
UPDATE topic_search SET since = %(since)s, cursor = NULL, outcome = NULL, detail = NULL, n_found = 0, started_at = now()
WHERE topic_id = %(topic_id)s AND query = %(query)s AND source = %(source)s

-- name: note_page
UPDATE topic_search SET cursor = %(cursor)s, n_found = n_found + %(n_found)s, outcome = 'going_on', detail = NULL
WHERE topic_id = %(topic_id)s AND query = %(query)s AND source = %(source)s

-- name: end_search
UPDATE topic_search SET outcome = %(outcome)s, detail = %(detail)s, cursor = CASE WHEN %(is_done)s THEN NULL ELSE cursor END,
       searched_at = CASE WHEN %(is_done)s THEN started_at ELSE searched_at END
WHERE topic_id = %(topic_id)s AND query = %(query)s AND source = %(source)s

-- name: report_counts
SELECT count(*) AS n_papers,
       count(*) FILTER (WHERE EXISTS (SELECT FROM document d WHERE d.paper_pk = p.paper_pk AND d.verdict = 'ok')) AS n_full_texts
FROM paper_topic pt JOIN topic t USING (topic_id) JOIN paper p USING (paper_pk) WHERE t.name = %(topic)s AND p.same_as IS NULL

-- name: report_rounds
SELECT f.found_at::date::text AS round, f.source, count(*) AS n_found, count(*) FILTER (WHERE f.is_new) AS n_new
FROM topic_found f JOIN topic t USING (topic_id) WHERE t.name = %(topic)s GROUP BY 1, 2 ORDER BY 1, 2

-- name: report_captures
SELECT n_sources, count(*) FROM (
    SELECT count(DISTINCT f.source) AS n_sources FROM topic_found f JOIN topic t USING (topic_id) WHERE t.name = %(topic)s GROUP BY f.paper_pk
) c GROUP BY 1 ORDER BY 1

-- name: report_missing
-- Papers without a full text, with the last word about each place that was tried.
SELECT p.paper_id, p.title, coalesce(
         (SELECT d.verdict || coalesce(': ' || d.reason, '') FROM document d WHERE d.paper_pk = p.paper_pk ORDER BY d.document_id DESC LIMIT 1),
         full_text_word(p.paper_pk), 'not asked for') AS why
FROM paper_topic pt JOIN topic t USING (topic_id) JOIN paper p USING (paper_pk)
WHERE t.name = %(topic)s AND p.same_as IS NULL AND NOT EXISTS (SELECT FROM document d WHERE d.paper_pk = p.paper_pk AND d.verdict = 'ok')
ORDER BY p.paper_id

-- name: report_found
-- What searches and harvests gave to a topic, with the words by which it can be told whether it fits.
SELECT p.paper_id, p.title, p.abstract, array_agg(DISTINCT f.source ORDER BY f.source) AS sources
FROM topic_found f JOIN topic t USING (topic_id) JOIN paper p USING (paper_pk) WHERE t.name = %(topic)s AND p.text IS NOT NULL
GROUP BY p.paper_pk ORDER BY p.paper_id

-- name: report_searches
SELECT s.query, s.source, s.outcome, s.detail, s.n_found, s.searched_at FROM topic_search s JOIN topic t USING (topic_id)
WHERE t.name = %(topic)s ORDER BY s.query, s.source

-- name: set_mark
UPDATE paper p SET mark = %(mark)s FROM paper_resolve(ARRAY[%(id)s]) r WHERE p.paper_pk = r.paper_pk RETURNING p.paper_id, p.title
