-- Fetching full texts.

-- name: claim
SELECT c.job_id, c.lease_token, p.paper_pk, p.paper_id, p.raw->>'pdf_url'
FROM job_claim('fetch', NULL, NULL, %(n)s, %(lease_s)s) c JOIN paper p ON p.paper_pk = c.item_ids[1]

-- name: record_attempt
INSERT INTO fetch_attempt (paper_pk, url, outcome, reason, sha256, ended_at)
VALUES (%(paper_pk)s, %(url)s, %(outcome)s, %(reason)s, %(sha256)s, now())

-- name: complete
SELECT job_complete(ARRAY[%(job_id)s::bigint], ARRAY[%(token)s::uuid])

-- name: later
SELECT job_release(ARRAY[%(job_id)s::bigint], ARRAY[%(token)s::uuid], %(later_s)s, false, %(reason)s)

-- name: fail
SELECT job_fail(%(job_id)s, %(token)s, %(class)s, %(reason)s, jsonb_build_object('url', %(url)s::text))

-- name: enqueue
INSERT INTO job (kind, priority, item_ids)
SELECT 'fetch', %(priority)s, ARRAY[p.paper_pk] FROM paper p
WHERE p.paper_id = ANY (%(paper_ids)s) AND p.raw ? 'pdf_url'
  AND NOT EXISTS (SELECT FROM document d WHERE d.paper_pk = p.paper_pk)
  AND NOT EXISTS (SELECT FROM job j WHERE j.kind = 'fetch' AND j.item_ids = ARRAY[p.paper_pk])
