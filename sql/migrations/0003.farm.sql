-- The farm: nodes, jobs, hourly totals; and the change feed that word indexes follow.

CREATE TABLE node (
    node_id        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name           text NOT NULL,
    role           text NOT NULL CONSTRAINT node_role_check CHECK (role IN ('worker', 'search', 'ingest')),
    host           text NOT NULL,
    pid            integer NOT NULL,
    device         text,
    backend        text,
    encoder_id     integer CONSTRAINT node_encoder_id_fkey REFERENCES encoder ON DELETE SET NULL,
    version        text NOT NULL,
    state          text NOT NULL DEFAULT 'starting',
    first_seen_at  timestamptz NOT NULL DEFAULT now(),
    last_seen_at   timestamptz NOT NULL DEFAULT now(),
    n_jobs         bigint NOT NULL DEFAULT 0,
    n_texts        bigint NOT NULL DEFAULT 0,
    rate           jsonb NOT NULL DEFAULT '{}',
    last_error     text,
    last_error_at  timestamptz,
    detail         jsonb NOT NULL DEFAULT '{}',
    CONSTRAINT node_role_name_key UNIQUE (role, name)
);

CREATE TABLE node_hour (
    node_id    bigint NOT NULL CONSTRAINT node_hour_node_id_fkey REFERENCES node ON DELETE CASCADE,
    hour       timestamptz NOT NULL,
    kind       text NOT NULL,
    n_jobs     bigint NOT NULL DEFAULT 0,
    n_texts    bigint NOT NULL DEFAULT 0,
    seconds    real NOT NULL DEFAULT 0,
    CONSTRAINT node_hour_pkey PRIMARY KEY (node_id, hour, kind)
);

CREATE TABLE job (
    job_id            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind              text NOT NULL
                      CONSTRAINT job_kind_check CHECK (kind IN ('fetch', 'extract', 'chunk', 'embed_papers', 'embed_passages')),
    encoder_id        integer CONSTRAINT job_encoder_id_fkey REFERENCES encoder ON DELETE CASCADE,
    priority          smallint NOT NULL DEFAULT 100,
    state             text NOT NULL DEFAULT 'waiting' CONSTRAINT job_state_check CHECK (state IN ('waiting', 'running', 'failed')),
    item_ids          bigint[] NOT NULL CONSTRAINT job_item_ids_check CHECK (cardinality(item_ids) BETWEEN 1 AND 64),
    n_items           smallint NOT NULL GENERATED ALWAYS AS (cardinality(item_ids)) STORED,
    n_attempts        smallint NOT NULL DEFAULT 0,
    run_after         timestamptz NOT NULL DEFAULT '-infinity',
    node_id           bigint CONSTRAINT job_node_id_fkey REFERENCES node ON DELETE SET NULL,
    lease_token       uuid,
    lease_expires_at  timestamptz,
    error_class       text,
    error             text,
    error_detail      jsonb,
    created_at        timestamptz NOT NULL DEFAULT now(),
    failed_at         timestamptz,
    CONSTRAINT job_encoder_id_check CHECK ((kind IN ('embed_papers', 'embed_passages')) = (encoder_id IS NOT NULL)),
    CONSTRAINT job_lease_check CHECK ((state = 'running') = (lease_token IS NOT NULL AND lease_expires_at IS NOT NULL))
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.0, autovacuum_vacuum_threshold = 2000,
        autovacuum_analyze_scale_factor = 0.0, autovacuum_analyze_threshold = 20000, autovacuum_vacuum_cost_delay = 0);
COMMENT ON COLUMN job.priority IS 'Lower goes first: 10 single new papers, 100 backlogs, 200 a generation being filled.';
COMMENT ON COLUMN job.item_ids IS 'embed_papers: paper_pk; embed_passages: passage_id; chunk and extract: document_id; fetch: paper_pk.';
CREATE INDEX job_waiting_idx ON job (kind, encoder_id, priority, job_id) WHERE state = 'waiting';
CREATE INDEX job_running_idx ON job (lease_expires_at) WHERE state = 'running';
CREATE INDEX job_failed_idx ON job (failed_at) WHERE state = 'failed';
CREATE INDEX job_node_id_idx ON job (node_id) WHERE state = 'running';

CREATE TABLE change (
    change_id  bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    paper_pk   bigint NOT NULL,
    xid        xid8 NOT NULL DEFAULT pg_current_xact_id(),
    token      bigint NOT NULL DEFAULT (random() * 9e18)::bigint,
    at         timestamptz NOT NULL DEFAULT now()
) WITH (autovacuum_vacuum_scale_factor = 0.05);
COMMENT ON TABLE change IS
    'Papers whose words or filters changed, by transaction. A word index follows by snapshot, not by highest id, and knows a database that went back in time by the token of the last row that it saw.';
CREATE INDEX change_xid_idx ON change (xid);
