-- Fetching full texts.

-- name: claim
SELECT c.job_id, c.lease_token, c.priority, p.paper_pk, p.paper_id, p.kind, p.title, p.authors, p.year, p.raw->>'pdf_url' AS pdf_url,
       j.error IS NULL OR j.error LIKE 'waits: %%' AS is_same_life
FROM job_claim('fetch', NULL, NULL, %(n)s, %(lease_s)s) c JOIN paper p ON p.paper_pk = c.item_ids[1] JOIN job j USING (job_id)

-- name: drop_ownerless
DELETE FROM job j WHERE j.kind = 'fetch' AND j.state IN ('waiting', 'failed') AND NOT EXISTS (SELECT FROM paper p WHERE p.paper_pk = j.item_ids[1])

-- name: select_identifiers
SELECT kind, value FROM paper_identifier WHERE paper_pk = %s AND kind <> 'key' ORDER BY kind, value

-- name: select_works
SELECT payload->'title', payload->'locations', payload->'arxiv_version', payload->'authors' FROM work WHERE paper_pk = %s ORDER BY work_id

-- name: select_tried
-- Places that have had their say, and files that were put aside.
SELECT url, outcome, encode(sha256, 'hex') FROM fetch_attempt
WHERE paper_pk = %(paper_pk)s AND outcome IN ('absent', 'refused', 'nonsense', 'quarantined') AND coalesce(ended_at, started_at) > now() - make_interval(days => %(days)s)

-- name: select_hosts
SELECT lower(substring(url FROM '^https?://([^/:?#]+)')) AS host, count(*) FILTER (WHERE outcome = 'ok')::integer,
       count(*) FILTER (WHERE outcome IN ('refused', 'nonsense', 'quarantined', 'absent'))::integer
FROM fetch_attempt WHERE url <> '' GROUP BY 1 HAVING lower(substring(url FROM '^https?://([^/:?#]+)')) IS NOT NULL

-- name: record_attempt
INSERT INTO fetch_attempt (paper_pk, url, outcome, reason, sha256, ended_at)
VALUES (%(paper_pk)s, %(url)s, %(outcome)s, %(reason)s, %(sha256)s, now())

-- name: take_extract_job
DELETE FROM job WHERE kind = 'extract' AND state = 'waiting' AND item_ids = ARRAY[%s::bigint] RETURNING job_id

-- name: complete
SELECT job_complete(ARRAY[%(job_id)s::bigint], ARRAY[%(token)s::uuid])

-- name: later
SELECT job_release(ARRAY[%(job_id)s::bigint], ARRAY[%(token)s::uuid], %(later_s)s, false, %(reason)s)

-- name: fail
SELECT job_fail(%(job_id)s, %(token)s, 'absent', %(reason)s, jsonb_build_object('url', %(url)s::text))

-- name: count_held
SELECT count(*) FROM job WHERE kind = 'fetch' AND state = 'running'

-- name: count_waiting
SELECT count(*) FROM job WHERE kind = 'fetch' AND state = 'waiting'

-- name: enqueue
-- Papers that have an address or an identifier and no full text, unless places were tried lately and nothing is new since.
INSERT INTO job (kind, priority, item_ids)
SELECT 'fetch', %(priority)s, ARRAY[p.paper_pk] FROM paper p
WHERE p.paper_pk = ANY (%(pks)s) AND NOT p.is_prefixed AND p.same_as IS NULL
  AND (p.raw ? 'pdf_url' OR (p.kind IN ('paper', 'book') AND EXISTS (SELECT FROM paper_identifier i WHERE i.paper_pk = p.paper_pk AND i.kind NOT IN ('key', 'file'))))
  AND NOT EXISTS (SELECT FROM document d WHERE d.paper_pk = p.paper_pk)
  AND NOT EXISTS (SELECT FROM job j WHERE j.kind = 'fetch' AND j.item_ids = ARRAY[p.paper_pk])
  AND coalesce((SELECT max(f.ended_at) FROM fetch_attempt f WHERE f.paper_pk = p.paper_pk AND f.outcome NOT IN ('throttled', 'down')), '-infinity')
      < greatest(now() - make_interval(days => %(days)s), (SELECT max(w.changed_at) FROM work w WHERE w.paper_pk = p.paper_pk))
ORDER BY p.paper_pk
