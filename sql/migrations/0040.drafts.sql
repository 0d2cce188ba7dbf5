-- Texts that were read anew: they wait beside the ones that serve until their passages are embedded.

CREATE TABLE document_draft (
    document_id        bigint CONSTRAINT document_draft_pkey PRIMARY KEY
                       CONSTRAINT document_draft_document_id_fkey REFERENCES document ON DELETE CASCADE,
    reason             text,
    warnings           text[] NOT NULL DEFAULT '{}',
    n_pages            integer,
    text               text NOT NULL,
    text_sha256        bytea NOT NULL CONSTRAINT document_draft_text_sha256_check CHECK (octet_length(text_sha256) = 32),
    page_starts        integer[] NOT NULL DEFAULT '{}',
    sections           jsonb NOT NULL DEFAULT '[]',
    extractor_version  integer NOT NULL,
    has_words          boolean NOT NULL DEFAULT false,
    base_sha256        bytea,
    title              text,
    abstract           text,
    paper_text         text,
    made_at            timestamptz NOT NULL DEFAULT now()
);
COMMENT ON TABLE document_draft IS 'What today''s extractor made of a document whose older text still serves; see draft_settle.';
COMMENT ON COLUMN document_draft.has_words IS 'The paper''s title or abstract came from the file and changes with it.';
COMMENT ON COLUMN document_draft.base_sha256 IS 'The paper''s text when the draft was made: another one by then stays.';

CREATE TABLE passage_draft (
    passage_id   bigint NOT NULL DEFAULT nextval(pg_get_serial_sequence('passage', 'passage_id'))
                 CONSTRAINT passage_draft_pkey PRIMARY KEY,
    document_id  bigint NOT NULL CONSTRAINT passage_draft_document_id_fkey REFERENCES document_draft ON DELETE CASCADE,
    part         text NOT NULL CONSTRAINT passage_draft_part_check CHECK (part IN ('abstract', 'document')),
    ordinal      integer NOT NULL,
    char_start   integer NOT NULL,
    char_end     integer NOT NULL,
    section      text,
    page_from    integer,
    page_to      integer,
    text         text NOT NULL,
    text_sha256  bytea NOT NULL CONSTRAINT passage_draft_text_sha256_check CHECK (octet_length(text_sha256) = 32),
    CONSTRAINT passage_draft_char_end_check CHECK (char_end > char_start)
);
COMMENT ON TABLE passage_draft IS 'Passages of drafts, with the number that they will have: jobs embed them, no search sees them.';
CREATE UNIQUE INDEX passage_draft_document_id_key ON passage_draft (document_id, part, char_start);
CREATE INDEX passage_draft_text_sha256_idx ON passage_draft (text_sha256);

CREATE VIEW passage_any AS
    SELECT passage_id, document_id, text, text_sha256 FROM passage
    UNION ALL
    SELECT passage_id, document_id, text, text_sha256 FROM passage_draft;
COMMENT ON VIEW passage_any IS 'What can be embedded: passages that serve, and those of drafts.';
