-- The worker's statements. Each is a whole transaction of its own, so that none is open while a model runs.

-- name: claim
SELECT job_id, kind, item_ids, n_attempts, priority, lease_token
FROM job_claim_any(%(kinds)s::text[], %(n_wanted)s::integer[], %(encoder_id)s::integer, %(node_id)s::bigint, %(lease_s)s::double precision,
               %(priorities)s::smallint[], %(from_ids)s::bigint[], %(is_full)s::boolean, %(most_items)s::integer)

-- name: renew
SELECT * FROM job_renew(%(ids)s::bigint[], %(tokens)s::uuid[], %(lease_s)s::double precision)

-- name: release
SELECT * FROM job_release(%(ids)s::bigint[], %(tokens)s::uuid[], %(wait_s)s::double precision, %(is_counted)s::boolean, %(why)s::text)

-- name: fail
SELECT * FROM job_fail(%(id)s::bigint, %(token)s::uuid, %(class)s::text, %(why)s::text, %(detail)s::jsonb)

-- name: sweep
SELECT n_back, n_halved, n_failed FROM job_sweep(%(max_attempts)s::integer)

-- name: left
-- Whether anything of these kinds waits or runs, and whether anything of them failed; encoders: those that this node serves.
SELECT EXISTS (SELECT FROM job WHERE state = 'waiting' AND (kind = 'chunk' OR (kind IN ('embed_papers', 'embed_passages') AND encoder_id = ANY (%(encoder_ids)s::integer[])))),
       EXISTS (SELECT FROM job WHERE state = 'running' AND (kind = 'chunk' OR (kind IN ('embed_papers', 'embed_passages') AND encoder_id = ANY (%(encoder_ids)s::integer[])))),
       (SELECT count(*) FROM job WHERE state = 'failed' AND kind IN ('chunk', 'embed_papers', 'embed_passages') AND (encoder_id IS NULL OR encoder_id = ANY (%(encoder_ids)s::integer[])))

-- name: embed_read
SELECT item_id, text_sha256, text FROM embed_read(%(kind)s::text, %(encoder_id)s::integer, %(item_ids)s::bigint[])

-- name: embed_complete
SELECT * FROM embed_complete(
    %(kind)s::text, %(encoder_id)s::integer, %(node_id)s::bigint, %(ids)s::bigint[], %(tokens)s::uuid[], %(seconds)s::double precision,
    %(row_jobs)s::bigint[], %(row_hashes)s::bytea[], %(row_embeddings)s::halfvec[],
    %(bad_jobs)s::bigint[], %(bad_items)s::bigint[], %(bad_classes)s::text[], %(bad_reasons)s::text[], %(bad_details)s::jsonb[])

-- name: chunk_read
SELECT document_id, text, text_sha256, sections, page_starts FROM document WHERE document_id = ANY (%(ids)s::bigint[]) AND text IS NOT NULL

-- name: chunk_complete
SELECT chunk_complete(
    %(id)s::bigint, %(token)s::uuid, %(node_id)s::bigint, %(seconds)s::double precision, %(document_id)s::bigint, %(cut_sha256)s::bytea,
    %(starts)s::integer[], %(ends)s::integer[], %(sections)s::text[], %(pages_from)s::integer[], %(pages_to)s::integer[],
    %(texts)s::text[], %(hashes)s::bytea[])
