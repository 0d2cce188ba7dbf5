-- What the self-test reads of a database's own catalogue.

-- name: shape
-- Everything of the schema by a name that people understand, and what must be equal. Leaves of partitions are left out.
WITH own AS (
    SELECT c.oid, c.relname FROM pg_class c WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
      AND c.relname !~ '^_?yoyo' AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.objid = c.oid AND d.deptype = 'e')
)
SELECT 'table ' || relname, '' FROM own
UNION ALL
SELECT format('column %s.%s', o.relname, a.attname), format('%s%s', format_type(a.atttypid, a.atttypmod), CASE WHEN a.attnotnull THEN ' not null' ELSE '' END)
FROM own o JOIN pg_attribute a ON a.attrelid = o.oid WHERE a.attnum > 0 AND NOT a.attisdropped
UNION ALL
SELECT format('constraint %s of %s', k.conname, o.relname), pg_get_constraintdef(k.oid)
FROM own o JOIN pg_constraint k ON k.conrelid = o.oid WHERE k.contype IN ('p', 'u', 'f', 'c')
UNION ALL
SELECT format('index %s of %s', i.relname, o.relname), pg_get_indexdef(i.oid) || CASE WHEN x.indisvalid THEN '' ELSE ' invalid' END
FROM own o JOIN pg_index x ON x.indrelid = o.oid JOIN pg_class i ON i.oid = x.indexrelid
UNION ALL
SELECT format('trigger %s of %s', t.tgname, o.relname), pg_get_triggerdef(t.oid) || CASE t.tgenabled WHEN 'O' THEN '' ELSE ' disabled' END
FROM own o JOIN pg_trigger t ON t.tgrelid = o.oid WHERE NOT t.tgisinternal
UNION ALL
SELECT format('function %s', p.oid::regprocedure), md5(pg_get_functiondef(p.oid)) FROM pg_proc p
WHERE p.pronamespace = 'public'::regnamespace AND p.prokind = 'f' AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.objid = p.oid AND d.deptype = 'e')
ORDER BY 1

-- name: rights
-- Rights that intake and farm need and this login lacks.
SELECT format('%s on %s', r.what, c.relname), 1 FROM pg_class c, unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE']) AS r (what)
WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition AND c.relname !~ '^_?yoyo'
  AND NOT has_table_privilege(c.oid, r.what)
UNION ALL
SELECT format('EXECUTE on %s', p.oid::regprocedure), 2 FROM pg_proc p WHERE p.pronamespace = 'public'::regnamespace AND NOT has_function_privilege(p.oid, 'EXECUTE')
ORDER BY 2, 1

-- name: old_scratch
-- Scratch databases that a killed self-test left: nobody is in them.
SELECT d.datname FROM pg_database d WHERE d.datname LIKE 'brain\_selftest\_%%' AND NOT EXISTS (SELECT FROM pg_stat_activity a WHERE a.datname = d.datname)

-- name: save
INSERT INTO setting (name, value) VALUES ('selftest', %(value)s)
ON CONFLICT (name) DO UPDATE SET value = excluded.value, updated_at = now()

-- name: stale
-- Whether anything that an index has not seen was written more than that many seconds ago.
SELECT count(*) FROM change
WHERE xid >= pg_snapshot_xmin(%(last)s::pg_snapshot) AND NOT pg_visible_in_snapshot(xid, %(last)s::pg_snapshot)
  AND xid < pg_snapshot_xmax(pg_current_snapshot()) AND at < now() - make_interval(secs => %(older_s)s)

-- name: embedded
SELECT (SELECT count(*) FROM passage), (SELECT count(*) FROM passage p WHERE EXISTS (
            SELECT FROM passage_embedding e WHERE e.encoder_id = active_encoder_id() AND e.text_sha256 = p.text_sha256)),
       (SELECT count(*) FROM paper WHERE text_sha256 IS NOT NULL), (SELECT count(*) FROM paper p WHERE EXISTS (
            SELECT FROM paper_embedding e WHERE e.encoder_id = active_encoder_id() AND e.text_sha256 = p.text_sha256)),
       (SELECT coalesce(string_agg(DISTINCT error, '; '), '') FROM job WHERE state = 'failed')

-- name: citing
-- Papers that cite one, and which source said so.
SELECT a.paper_id, c.source FROM citation c JOIN paper a ON a.paper_pk = c.citing_pk JOIN paper b ON b.paper_pk = c.cited_pk
WHERE b.paper_id = %(cited)s
