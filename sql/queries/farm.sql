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
