-- Embeddings belong to one encoder and to one text: (encoder, hash of the text) is the key, so that two encoders cannot
-- mix, equal text is embedded once, and a text that comes back has its embedding already.

CREATE TABLE encoder (
    encoder_id      integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name            text NOT NULL,
    revision        text NOT NULL DEFAULT '',
    weights_sha256  text NOT NULL,
    dim             integer NOT NULL DEFAULT 768 CONSTRAINT encoder_dim_check CHECK (dim = 768),
    max_tokens      integer NOT NULL,
    prompts         jsonb NOT NULL DEFAULT '{}',
    spec            jsonb NOT NULL DEFAULT '{}',
    canary          jsonb,
    state           text NOT NULL DEFAULT 'added'
                    CONSTRAINT encoder_state_check CHECK (state IN ('added', 'filling', 'active', 'retired')),
    created_at      timestamptz NOT NULL DEFAULT now(),
    activated_at    timestamptz,
    CONSTRAINT encoder_identity_key UNIQUE (name, revision, weights_sha256, max_tokens, prompts)
);
CREATE UNIQUE INDEX encoder_state_active_key ON encoder (state) WHERE state = 'active';
COMMENT ON COLUMN encoder.spec IS 'How a worker loads it again: name or address as the user gave it.';
COMMENT ON COLUMN encoder.canary IS 'Reference embeddings of the canary strings; a worker that disagrees may not claim.';

CREATE TABLE passage_embedding (
    encoder_id   integer NOT NULL,
    text_sha256  bytea NOT NULL,
    embedding    halfvec(768) NOT NULL,
    CONSTRAINT passage_embedding_pkey PRIMARY KEY (encoder_id, text_sha256)
) PARTITION BY LIST (encoder_id);

CREATE TABLE paper_embedding (
    encoder_id   integer NOT NULL,
    text_sha256  bytea NOT NULL,
    embedding    halfvec(768) NOT NULL,
    CONSTRAINT paper_embedding_pkey PRIMARY KEY (encoder_id, text_sha256)
) PARTITION BY LIST (encoder_id);

CREATE TABLE imported_embedding (
    encoder_id   integer NOT NULL CONSTRAINT imported_embedding_encoder_id_fkey REFERENCES encoder ON DELETE CASCADE,
    text_sha256  bytea NOT NULL,
    embedding    halfvec(768) NOT NULL,
    CONSTRAINT imported_embedding_pkey PRIMARY KEY (encoder_id, text_sha256)
);
COMMENT ON TABLE imported_embedding IS 'Imported by content before any paper or passage has the text; adopted when one comes.';
