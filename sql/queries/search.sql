-- The statements of answering and of the word index's following. Named; read by sql.files.queries("search").

-- name: index_database
-- Which database this is: our instance, the database within its cluster, the schema, the last row of the feed.
SELECT (SELECT value #>> '{}' FROM setting WHERE name = 'instance') AS instance,
       (SELECT oid::bigint FROM pg_database WHERE datname = current_database()) AS database_oid,
       (SELECT string_agg(migration_id, ' ' ORDER BY migration_id) FROM _yoyo_migration) AS schema,
       pg_current_snapshot()::text AS snapshot,
       f.change_id, f.token
FROM (SELECT 1) one LEFT JOIN (SELECT change_id, token FROM change ORDER BY change_id DESC LIMIT 1) f ON true

-- name: index_system
SELECT system_identifier::text FROM pg_control_system()

-- name: index_remembered
-- Whether the last row that the index saw is still there; a database that went back in time does not hold it.
SELECT EXISTS (SELECT FROM change WHERE change_id = %(change_id)s AND token = %(token)s)
   AND pg_snapshot_xmax(%(last)s::pg_snapshot) <= pg_snapshot_xmax(pg_current_snapshot()) AS is_known

-- name: index_changed
-- Papers changed by transactions that the last snapshot did not see. Numbers at or above our own snapshot's end belong to
-- rows that came with a dump of another cluster: no transaction of ours wrote them.
SELECT DISTINCT paper_pk FROM change
WHERE xid >= pg_snapshot_xmin(%(last)s::pg_snapshot) AND NOT pg_visible_in_snapshot(xid, %(last)s::pg_snapshot)
  AND xid < pg_snapshot_xmax(pg_current_snapshot())

-- name: index_rows
-- What the word index holds of some papers. Copies of another paper are found there and stay out.
SELECT g.passage_id, g.paper_pk, g.part, g.char_start, g.text, p.title, p.kind, p.year, t.topics
FROM passage g JOIN paper p ON p.paper_pk = g.paper_pk AND p.same_as IS NULL
LEFT JOIN LATERAL (SELECT array_agg(topic_id) AS topics FROM paper_topic WHERE paper_pk = p.paper_pk) t ON true
WHERE g.paper_pk = ANY (%(pks)s)
ORDER BY g.passage_id

-- name: index_all_rows
SELECT g.passage_id, g.paper_pk, g.part, g.char_start, g.text, p.title, p.kind, p.year, t.topics
FROM passage g JOIN paper p ON p.paper_pk = g.paper_pk AND p.same_as IS NULL
LEFT JOIN (SELECT paper_pk, array_agg(topic_id) AS topics FROM paper_topic GROUP BY paper_pk) t ON t.paper_pk = p.paper_pk

-- name: index_size
SELECT count(*) FROM passage
