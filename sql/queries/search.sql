-- The statements of answering and of the word index's following. Named; read by sql.files.queries("search").

-- name: index_database
-- Which database this is: our instance, the database within its cluster, the schema, the last row of the feed.
-- A standby's snapshot does not name the transactions that are under way: there only what is below xmin counts as seen.
SELECT (SELECT value #>> '{}' FROM setting WHERE name = 'instance') AS instance,
       (SELECT oid::bigint FROM pg_database WHERE datname = current_database()) AS database_oid,
       (SELECT string_agg(migration_id, ' ' ORDER BY migration_id) FROM _yoyo_migration) AS schema,
       CASE WHEN pg_is_in_recovery() THEN x.xmin || ':' || x.xmin || ':' ELSE pg_current_snapshot()::text END AS snapshot,
       pg_is_in_recovery() AS is_standby, f.change_id, f.token
FROM (SELECT pg_snapshot_xmin(pg_current_snapshot())::text AS xmin) x
LEFT JOIN (SELECT change_id, token FROM change ORDER BY change_id DESC LIMIT 1) f ON true

-- name: index_system
SELECT system_identifier::text FROM pg_control_system()

-- name: index_remembered
-- Whether the last row that the index saw is there (a database that went back in time does not hold it, a standby that is
-- behind does not yet), and whether transaction numbers are as far as they were then.
SELECT EXISTS (SELECT FROM change WHERE change_id = %(change_id)s AND token = %(token)s) AS is_there,
       pg_snapshot_xmax(%(last)s::pg_snapshot) <= pg_snapshot_xmax(pg_current_snapshot()) AS is_as_far

-- name: index_changed
-- Papers changed by transactions that the last snapshot did not see. Numbers at or above our own snapshot's end belong to
-- rows that came with a dump of another cluster: no transaction of ours wrote them.
SELECT change_id, paper_pk FROM change
WHERE xid >= pg_snapshot_xmin(%(last)s::pg_snapshot) AND NOT pg_visible_in_snapshot(xid, %(last)s::pg_snapshot)
  AND xid < pg_snapshot_xmax(pg_current_snapshot())

-- name: index_rows
-- What the word index holds of some papers. Copies of another paper are found there and stay out.
SELECT g.passage_id, g.paper_pk, g.part, g.char_start, g.text, left(p.title, 1000) AS title, p.kind, p.year, t.topics
FROM passage g JOIN paper p ON p.paper_pk = g.paper_pk AND p.same_as IS NULL
LEFT JOIN LATERAL (SELECT array_agg(topic_id) AS topics FROM paper_topic WHERE paper_pk = p.paper_pk) t ON true
WHERE g.paper_pk = ANY (%(pks)s)
ORDER BY g.passage_id

-- name: index_all_rows
SELECT g.passage_id, g.paper_pk, g.part, g.char_start, g.text, left(p.title, 1000) AS title, p.kind, p.year, t.topics
FROM passage g JOIN paper p ON p.paper_pk = g.paper_pk AND p.same_as IS NULL
LEFT JOIN (SELECT paper_pk, array_agg(topic_id) AS topics FROM paper_topic GROUP BY paper_pk) t ON t.paper_pk = p.paper_pk

-- name: index_size
SELECT count(*) FROM passage

-- name: filter_topics
EXISTS (SELECT FROM paper_topic t WHERE t.paper_pk = p.paper_pk AND t.topic_id = ANY (%(topics)s))

-- name: filter_without_topics
NOT EXISTS (SELECT FROM paper_topic t WHERE t.paper_pk = p.paper_pk AND t.topic_id = ANY (%(without_topics)s))

-- name: filter_kinds
p.kind = ANY (%(kinds)s)

-- name: filter_without_kinds
p.kind <> ALL (%(without_kinds)s)

-- name: filter_year_from
p.year >= %(year_from)s

-- name: filter_year_to
p.year <= %(year_to)s

-- name: session_settings
-- Settings of the vector library live in the session and are lost behind a pooler: set inside each searching transaction.
SELECT set_config('hnsw.ef_search', %(ef_search)s, true), set_config('hnsw.iterative_scan', 'relaxed_order', true),
       set_config('hnsw.max_scan_tuples', %(max_scan_tuples)s, true), set_config('hnsw.scan_mem_multiplier', '4', true),
       set_config('enable_seqscan', 'off', true), set_config('enable_sort', 'off', true),
       set_config('statement_timeout', %(timeout_ms)s, true)

-- name: exact_settings
-- Planned for the filter's own values: a plan for any filter reads every passage where a topic has ten.
SELECT set_config('statement_timeout', %(timeout_ms)s, true), set_config('max_parallel_workers_per_gather', %(n_workers)s, true),
       set_config('plan_cache_mode', 'force_custom_plan', true)

-- name: nearest_passages
-- OFFSET 0 keeps each lookup inside the ordered scan and by its own key, whatever the statistics say: the order comes from
-- the index alone, and no filter's index is walked once for every row.
SELECT g.passage_id, g.paper_pk, 1 - e.distance AS score
FROM (SELECT text_sha256, embedding <=> %(embedding)s AS distance FROM {leaf} ORDER BY embedding <=> %(embedding)s) e
CROSS JOIN LATERAL (SELECT x.passage_id, x.paper_pk FROM passage x WHERE x.text_sha256 = e.text_sha256 OFFSET 0) g
CROSS JOIN LATERAL (SELECT x.* FROM paper x WHERE x.paper_pk = g.paper_pk AND x.same_as IS NULL OFFSET 0) p
WHERE {filters}
LIMIT %(n)s

-- name: binary_passages
-- By the index over signs: the nearest by Hamming distance, with the exact distance that they are sorted by afterwards.
SELECT g.passage_id, g.paper_pk, 1 - e.distance AS score
FROM (SELECT text_sha256, embedding <=> %(embedding)s AS distance FROM {leaf}
      ORDER BY binary_quantize(embedding)::bit(768) <~> binary_quantize(%(embedding)s)::bit(768)) e
CROSS JOIN LATERAL (SELECT x.passage_id, x.paper_pk FROM passage x WHERE x.text_sha256 = e.text_sha256 OFFSET 0) g
CROSS JOIN LATERAL (SELECT x.* FROM paper x WHERE x.paper_pk = g.paper_pk AND x.same_as IS NULL OFFSET 0) p
WHERE {filters}
LIMIT %(n)s

-- name: exact_passages
WITH wanted AS MATERIALIZED (
    SELECT g.passage_id, g.paper_pk, g.text_sha256 FROM passage g JOIN paper p ON p.paper_pk = g.paper_pk
    WHERE p.same_as IS NULL AND {filters}
)
SELECT w.passage_id, w.paper_pk, 1 - (e.embedding <=> %(embedding)s) AS score
FROM wanted w JOIN {leaf} e ON e.encoder_id = {encoder_id} AND e.text_sha256 = w.text_sha256
ORDER BY (e.embedding <=> %(embedding)s) + 0, w.passage_id LIMIT %(n)s

-- name: nearest_papers
SELECT p.paper_pk, 1 - e.distance AS score
FROM (SELECT text_sha256, embedding <=> %(embedding)s AS distance FROM {leaf} ORDER BY embedding <=> %(embedding)s) e
CROSS JOIN LATERAL (SELECT x.* FROM paper x WHERE x.text_sha256 = e.text_sha256 AND x.same_as IS NULL OFFSET 0) p
WHERE {filters}
LIMIT %(n)s

-- name: exact_papers
WITH wanted AS MATERIALIZED (
    SELECT p.paper_pk, p.text_sha256 FROM paper p WHERE p.same_as IS NULL AND {filters} AND p.text_sha256 IS NOT NULL
)
SELECT w.paper_pk, 1 - (e.embedding <=> %(embedding)s) AS score
FROM wanted w JOIN {leaf} e ON e.encoder_id = {encoder_id} AND e.text_sha256 = w.text_sha256
ORDER BY (e.embedding <=> %(embedding)s) + 0, w.paper_pk LIMIT %(n)s

-- name: count_papers
SELECT count(*) FROM (SELECT FROM paper p WHERE p.same_as IS NULL AND {filters} LIMIT %(n)s) few

-- name: cosines
-- Exact cosines of given passages and papers, wherever the lists placed them.
SELECT 'passage' AS what, g.passage_id AS id, 1 - (e.embedding <=> %(embedding)s) AS score
FROM passage g JOIN {passage_leaf} e ON e.encoder_id = {encoder_id} AND e.text_sha256 = g.text_sha256
WHERE g.passage_id = ANY (%(passages)s)
UNION ALL
SELECT 'paper', p.paper_pk, 1 - (e.embedding <=> %(embedding)s)
FROM paper p JOIN {paper_leaf} e ON e.encoder_id = {encoder_id} AND e.text_sha256 = p.text_sha256
WHERE p.paper_pk = ANY (%(papers)s)

-- name: active_encoder
SELECT e.encoder_id, e.name, e.revision, e.weights_sha256, e.max_tokens, e.prompts, e.spec, e.canary, e.state,
       EXISTS (SELECT FROM passage_embedding WHERE encoder_id = e.encoder_id) AS has_passages,
       EXISTS (SELECT FROM paper_embedding WHERE encoder_id = e.encoder_id) AS has_papers
FROM encoder e WHERE e.state = 'active'

-- name: hit_rows
-- What an answer shows of each paper, with the passage that carried it; passage 0 where none did.
SELECT w.paper_pk, p.paper_id, p.is_prefixed, p.kind, p.title, p.authors, p.year, p.url, p.n_citations, p.velocity,
       t.topics, g.passage_id, g.part, g.text, g.section, g.page_from, g.page_to, g.char_start, g.char_end,
       encode(g.text_sha256, 'hex') AS text_sha256, d.file_name
FROM unnest(%(papers)s::bigint[], %(passages)s::bigint[]) AS w (paper_pk, passage_id)
JOIN paper p ON p.paper_pk = w.paper_pk
LEFT JOIN LATERAL (
    SELECT array_agg(o.name ORDER BY o.name) AS topics FROM paper_topic x JOIN topic o USING (topic_id) WHERE x.paper_pk = p.paper_pk
) t ON true
LEFT JOIN LATERAL (
    SELECT * FROM passage x WHERE x.paper_pk = p.paper_pk AND (w.passage_id = 0 OR x.passage_id = w.passage_id)
    ORDER BY x.part, x.ordinal LIMIT 1
) g ON true
LEFT JOIN LATERAL (
    SELECT file_name FROM document x WHERE x.paper_pk = p.paper_pk AND p.title IS NULL ORDER BY document_id LIMIT 1
) d ON true

-- name: boost_values
SELECT paper_pk, n_citations, velocity, year FROM paper WHERE paper_pk = ANY (%(papers)s)

-- name: papers_by_keys
-- Papers that one of the given (kind, value) pairs names; those of their own key before those loaded with a prefix.
SELECT p.paper_pk, p.paper_id FROM paper p WHERE p.paper_id = ANY (%(ids)s)
UNION
SELECT p.paper_pk, p.paper_id FROM paper_identifier i JOIN paper p USING (paper_pk)
WHERE (i.kind, i.value) IN (SELECT * FROM unnest(%(kinds)s::text[], %(values)s::text[]))

-- name: topics
SELECT topic_id, name FROM topic

-- name: next_encoder
-- The encoder that is about to be activated: servers load it beside the one that serves.
SELECT e.encoder_id, e.name, e.revision, e.weights_sha256, e.max_tokens, e.prompts, e.spec, e.canary, e.state
FROM encoder e JOIN setting s ON s.name = 'encoder_next' AND s.value = to_jsonb(e.encoder_id)

-- name: search_setting
SELECT value FROM setting WHERE name = 'search'

-- name: papers_allowed
SELECT p.paper_pk FROM paper p WHERE p.paper_pk = ANY (%(papers)s) AND p.same_as IS NULL AND {filters}

-- name: paper_ids
SELECT paper_pk, paper_id FROM paper WHERE paper_pk = ANY (%(papers)s)

-- name: passages_by_id
SELECT passage_id, part, text, section, page_from, page_to, char_start, char_end, encode(text_sha256, 'hex') AS text_sha256
FROM passage WHERE passage_id = ANY (%(passages)s)

-- name: store_search_setting
-- What `brain tune` chose, beside what was stored before, with the evidence.
INSERT INTO setting (name, value, evidence) VALUES ('search', %(value)s::jsonb, %(evidence)s::jsonb)
ON CONFLICT (name) DO UPDATE SET value = setting.value || excluded.value, evidence = excluded.evidence, updated_at = now()
