-- What the corpus holds: topics, works, papers, documents, passages. See docs/data.md for each table's purpose.

CREATE EXTENSION IF NOT EXISTS vector;

CREATE TABLE setting (
    name        text PRIMARY KEY,
    value       jsonb NOT NULL,
    evidence    jsonb,
    updated_at  timestamptz NOT NULL DEFAULT now()
);
COMMENT ON TABLE setting IS 'One value a name: the instance, the active encoder, tuned search settings with their evidence.';

CREATE TABLE topic (
    topic_id     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name         text NOT NULL CONSTRAINT topic_name_key UNIQUE,
    title        text,
    description  text,
    queries      jsonb NOT NULL DEFAULT '[]',
    meta         jsonb NOT NULL DEFAULT '{}',
    fetched_at   timestamptz,
    created_at   timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE paper (
    paper_pk      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    paper_id      text NOT NULL CONSTRAINT paper_paper_id_key UNIQUE,
    kind          text NOT NULL DEFAULT 'paper'
                  CONSTRAINT paper_kind_check CHECK (kind IN ('paper', 'book', 'news', 'note', 'session', 'exam')),
    is_prefixed   boolean NOT NULL DEFAULT false,
    title         text,
    abstract      text,
    text          text,
    text_sha256   bytea CONSTRAINT paper_text_sha256_check CHECK (octet_length(text_sha256) = 32),
    authors       text[] NOT NULL DEFAULT '{}',
    year          integer CONSTRAINT paper_year_check CHECK (year BETWEEN 1000 AND 2999),
    published_on  date,
    venue         text,
    url           text,
    n_citations   integer,
    velocity      real,
    tldr          text,
    licence       text,
    is_retracted  boolean NOT NULL DEFAULT false,
    mark          text CONSTRAINT paper_mark_check CHECK (mark IN ('star', 'read', 'skip')),
    same_as       bigint CONSTRAINT paper_same_as_fkey REFERENCES paper (paper_pk) ON DELETE SET NULL,
    raw           jsonb NOT NULL DEFAULT '{}',
    provenance    jsonb NOT NULL DEFAULT '{}',
    created_at    timestamptz NOT NULL DEFAULT now(),
    updated_at    timestamptz NOT NULL DEFAULT now()
);
COMMENT ON COLUMN paper.is_prefixed IS 'Loaded with a prefix: never merged with, or hidden behind, another paper.';
COMMENT ON COLUMN paper.text IS 'Title and abstract as one text: what the paper embedding stands for, and what part "abstract" is cut from.';
COMMENT ON COLUMN paper.same_as IS 'This file turned out to be another copy of that paper; its words are found there.';
CREATE INDEX paper_text_sha256_idx ON paper (text_sha256);
CREATE INDEX paper_year_idx ON paper (year);

CREATE TABLE paper_identifier (
    kind      text NOT NULL,
    value     text NOT NULL,
    paper_pk  bigint NOT NULL CONSTRAINT paper_identifier_paper_pk_fkey REFERENCES paper ON DELETE CASCADE,
    CONSTRAINT paper_identifier_pkey PRIMARY KEY (kind, value, paper_pk)
);
COMMENT ON TABLE paper_identifier IS
    'Every known identifier, keys of merged papers included (kind "key"). Papers loaded with a prefix may share one; others may not: see paper_identifier_owner.';
CREATE INDEX paper_identifier_paper_pk_idx ON paper_identifier (paper_pk);

CREATE TABLE paper_topic (
    paper_pk  bigint NOT NULL CONSTRAINT paper_topic_paper_pk_fkey REFERENCES paper ON DELETE CASCADE,
    topic_id  bigint NOT NULL CONSTRAINT paper_topic_topic_id_fkey REFERENCES topic ON DELETE CASCADE,
    CONSTRAINT paper_topic_pkey PRIMARY KEY (paper_pk, topic_id)
);
CREATE INDEX paper_topic_topic_id_idx ON paper_topic (topic_id, paper_pk);

CREATE TABLE work (
    work_id     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    source      text NOT NULL,
    source_id   text NOT NULL,
    paper_pk    bigint CONSTRAINT work_paper_pk_fkey REFERENCES paper ON DELETE SET NULL,
    payload     jsonb NOT NULL,
    fetched_at  timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT work_source_source_id_key UNIQUE (source, source_id)
);
CREATE INDEX work_paper_pk_idx ON work (paper_pk);

CREATE TABLE citation (
    citing_pk  bigint NOT NULL CONSTRAINT citation_citing_pk_fkey REFERENCES paper ON DELETE CASCADE,
    cited_pk   bigint NOT NULL CONSTRAINT citation_cited_pk_fkey REFERENCES paper ON DELETE CASCADE,
    source     text NOT NULL,
    CONSTRAINT citation_pkey PRIMARY KEY (citing_pk, cited_pk)
);
CREATE INDEX citation_cited_pk_idx ON citation (cited_pk);

CREATE TABLE document (
    document_id        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    paper_pk           bigint NOT NULL CONSTRAINT document_paper_pk_fkey REFERENCES paper ON DELETE CASCADE,
    sha256             bytea NOT NULL CONSTRAINT document_sha256_check CHECK (octet_length(sha256) = 32),
    file_name          text,
    source_url         text,
    licence            text,
    content_type       text,
    n_bytes            bigint NOT NULL,
    n_pages            integer,
    verdict            text CONSTRAINT document_verdict_check CHECK (verdict IN
                       ('ok', 'needs_ocr', 'encrypted', 'not_pdf', 'no_pages', 'damaged', 'incomplete', 'too_large', 'timeout')),
    reason             text,
    warnings           text[] NOT NULL DEFAULT '{}',
    text               text,
    text_sha256        bytea CONSTRAINT document_text_sha256_check CHECK (octet_length(text_sha256) = 32),
    page_starts        integer[] NOT NULL DEFAULT '{}',
    sections           jsonb NOT NULL DEFAULT '[]',
    extractor_version  integer,
    is_cut             boolean NOT NULL DEFAULT false,
    created_at         timestamptz NOT NULL DEFAULT now(),
    extracted_at       timestamptz,
    CONSTRAINT document_paper_pk_sha256_key UNIQUE (paper_pk, sha256)
);
COMMENT ON COLUMN document.verdict IS 'Null until the file has been read.';
COMMENT ON COLUMN document.is_cut IS 'Its passages have been made.';
CREATE INDEX document_sha256_idx ON document (sha256);

CREATE TABLE fetch_attempt (
    fetch_attempt_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    paper_pk     bigint NOT NULL CONSTRAINT fetch_attempt_paper_pk_fkey REFERENCES paper ON DELETE CASCADE,
    url          text NOT NULL,
    outcome      text NOT NULL,
    reason       text,
    sha256       bytea,
    started_at   timestamptz NOT NULL DEFAULT now(),
    ended_at     timestamptz
);
CREATE INDEX fetch_attempt_paper_pk_idx ON fetch_attempt (paper_pk, started_at DESC);

CREATE TABLE passage (
    passage_id   bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    paper_pk     bigint NOT NULL CONSTRAINT passage_paper_pk_fkey REFERENCES paper ON DELETE CASCADE,
    document_id  bigint CONSTRAINT passage_document_id_fkey REFERENCES document ON DELETE CASCADE,
    part         text NOT NULL CONSTRAINT passage_part_check CHECK (part IN ('abstract', 'document')),
    ordinal      integer NOT NULL,
    char_start   integer NOT NULL,
    char_end     integer NOT NULL,
    section      text,
    page_from    integer,
    page_to      integer,
    text         text NOT NULL,
    text_sha256  bytea NOT NULL CONSTRAINT passage_text_sha256_check CHECK (octet_length(text_sha256) = 32),
    CONSTRAINT passage_char_end_check CHECK (char_end > char_start),
    CONSTRAINT passage_part_document_id_check CHECK ((part = 'document') = (document_id IS NOT NULL))
);
CREATE UNIQUE INDEX passage_paper_pk_part_char_start_key ON passage (paper_pk, part, document_id, char_start) NULLS NOT DISTINCT;
CREATE INDEX passage_text_sha256_idx ON passage (text_sha256);
CREATE INDEX passage_document_id_idx ON passage (document_id);

CREATE TABLE daily_count (
    day           date PRIMARY KEY,
    n_papers      bigint NOT NULL,
    n_documents   bigint NOT NULL,
    n_passages    bigint NOT NULL,
    n_embeddings  bigint NOT NULL,
    by_topic      jsonb NOT NULL DEFAULT '{}'
);
COMMENT ON TABLE daily_count IS 'Growth cannot be made up later: one row a day, written by whoever comes first.';
