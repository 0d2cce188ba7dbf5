-- Nodes: their rows, their signs of life; what `brain status` and GET /farm show.

-- name: node_register
-- A name is taken over when its holder has ended, has been silent, or is a dead process of the same machine.
INSERT INTO node AS n (name, role, host, pid, device, backend, version, state, detail)
VALUES (%(name)s, %(role)s, %(host)s, %(pid)s, %(device)s, %(backend)s, %(version)s, 'starting', %(detail)s::jsonb)
ON CONFLICT (role, name) DO UPDATE
    SET host = excluded.host, pid = excluded.pid, device = excluded.device, backend = excluded.backend, version = excluded.version,
        state = 'starting', detail = excluded.detail, last_seen_at = clock_timestamp(), rate = '{}'
    WHERE n.state = 'stopped' OR n.last_seen_at < clock_timestamp() - interval '60 seconds' OR (n.host = excluded.host AND n.pid = ANY (%(dead_pids)s::integer[]))
RETURNING node_id

-- name: node_pids
SELECT pid FROM node WHERE role = %(role)s AND host = %(host)s AND state <> 'stopped'

-- name: node_beat
UPDATE node SET last_seen_at = clock_timestamp(), state = %(state)s, device = %(device)s, backend = %(backend)s, encoder_id = %(encoder_id)s,
    rate = %(rate)s::jsonb, detail = %(detail)s::jsonb, last_error = coalesce(%(error)s, last_error),
    last_error_at = CASE WHEN %(error)s::text IS NULL THEN last_error_at ELSE clock_timestamp() END
WHERE node_id = %(node_id)s

-- name: encoders_wanted
SELECT encoder_id, name, revision, weights_sha256, max_tokens, prompts, spec, canary, state
FROM encoder WHERE state IN ('active', 'filling') ORDER BY state <> 'active', encoder_id

-- name: count_jobs
SELECT kind, encoder_id, state, count(*), sum(n_items)::bigint FROM job GROUP BY kind, encoder_id, state

-- name: count_jobs_waiting_sampled
-- Of a queue too long to count in time: a fiftieth of its pages, scaled.
SELECT kind, encoder_id, 'waiting', count(*) * 50, sum(n_items)::bigint * 50 FROM job TABLESAMPLE SYSTEM (2)
WHERE state = 'waiting' GROUP BY kind, encoder_id

-- name: count_jobs_not_waiting
SELECT kind, encoder_id, state, count(*), sum(n_items)::bigint FROM job WHERE state = 'running' GROUP BY kind, encoder_id, state
UNION ALL
SELECT kind, encoder_id, state, count(*), sum(n_items)::bigint FROM job WHERE state = 'failed' GROUP BY kind, encoder_id, state

-- name: list_live_encoders
SELECT encoder_id FROM encoder WHERE state IN ('active', 'filling') ORDER BY encoder_id

-- name: count_texts
SELECT (SELECT count(*) FROM paper WHERE text_sha256 IS NOT NULL), (SELECT count(*) FROM passage)

-- name: count_texts_roughly
SELECT (SELECT greatest(reltuples, 0)::bigint FROM pg_class WHERE oid = 'paper'::regclass),
       (SELECT greatest(reltuples, 0)::bigint FROM pg_class WHERE oid = 'passage'::regclass)

-- name: count_documents
SELECT count(*), count(*) FILTER (WHERE verdict IS NOT NULL), count(*) FILTER (WHERE is_cut) FROM document

-- name: count_verdicts
SELECT verdict, count(*) FROM document WHERE verdict IS NOT NULL GROUP BY verdict ORDER BY count(*) DESC, verdict

-- name: list_topics
SELECT t.name AS topic, t.title, count(pt.paper_pk) AS n_papers,
       count(pt.paper_pk) FILTER (WHERE EXISTS (SELECT FROM document d WHERE d.paper_pk = pt.paper_pk AND d.verdict = 'ok')) AS n_full_texts
FROM topic t LEFT JOIN paper_topic pt USING (topic_id) GROUP BY t.topic_id ORDER BY t.name

-- name: list_nodes
SELECT n.node_id, n.name, n.role, n.host, n.pid, n.device, n.backend, e.name AS encoder, n.version, n.state, n.first_seen_at, n.last_seen_at,
       extract(epoch FROM clock_timestamp() - n.last_seen_at)::double precision AS silent_s, n.n_jobs, n.n_texts, n.rate, n.last_error, n.last_error_at,
       n.detail, (SELECT count(*) FROM job j WHERE j.state = 'running' AND j.node_id = n.node_id) AS n_held
FROM node n LEFT JOIN encoder e USING (encoder_id)
WHERE n.last_seen_at > clock_timestamp() - interval '30 days' ORDER BY n.role DESC, n.name

-- name: rate_of_hour
-- Texts a second over the last full hour in which the farm worked.
SELECT sum(n_texts) / 3600.0 FROM node_hour
WHERE kind IN ('embed_papers', 'embed_passages') AND hour = date_trunc('hour', clock_timestamp()) - interval '1 hour'

-- name: list_failures
SELECT j.job_id AS id, j.kind, p.paper_id, d.file_name AS file, j.error AS reason, j.error_class AS class, j.n_attempts, j.failed_at AS at,
       j.error_detail AS detail
FROM job j
LEFT JOIN passage s ON j.kind = 'embed_passages' AND s.passage_id = j.item_ids[1]
LEFT JOIN passage_draft f ON j.kind = 'embed_passages' AND f.passage_id = j.item_ids[1]
LEFT JOIN document d ON d.document_id = CASE WHEN j.kind IN ('chunk', 'extract') THEN j.item_ids[1] ELSE coalesce(s.document_id, f.document_id) END
LEFT JOIN paper p ON p.paper_pk = CASE WHEN j.kind IN ('fetch', 'embed_papers') THEN j.item_ids[1] ELSE coalesce(d.paper_pk, s.paper_pk) END
WHERE j.state = 'failed' ORDER BY j.failed_at DESC, j.job_id LIMIT %(most)s

-- name: retry_failures
WITH back AS (
    UPDATE job SET state = 'waiting', n_attempts = 0, run_after = '-infinity', node_id = NULL, failed_at = NULL,
        error_class = NULL, error_detail = NULL
    WHERE state = 'failed' AND (%(ids)s::bigint[] IS NULL OR job_id = ANY (%(ids)s::bigint[]))
    RETURNING job_id, kind
), told AS (SELECT pg_notify('job_' || kind, '') FROM back GROUP BY kind)
SELECT job_id, (SELECT count(*) FROM told) FROM back ORDER BY job_id

-- name: find_selftest
-- What the last self-test found; no row before the first.
SELECT value FROM setting WHERE name = 'selftest'
