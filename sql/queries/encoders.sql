-- The encoder rows.

-- name: find_same
SELECT encoder_id, name, revision, weights_sha256, max_tokens, prompts, spec, canary, state FROM encoder
WHERE name = %s AND revision = %s AND weights_sha256 = %s AND max_tokens = %s AND prompts = %s::jsonb

-- name: insert
INSERT INTO encoder (name, revision, weights_sha256, max_tokens, prompts, spec, canary) VALUES (%s, %s, %s, %s, %s, %s, %s)
RETURNING encoder_id, name, revision, weights_sha256, max_tokens, prompts, spec, canary, state

-- name: find_active
SELECT encoder_id, name, revision, weights_sha256, max_tokens, prompts, spec, canary, state FROM encoder WHERE state = 'active'
