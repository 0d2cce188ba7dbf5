-- Acquisition: works with what they are united by, raw answers, look-ups and searches with their state, counts of the day.

ALTER TABLE work
    ADD COLUMN nodes       text[] NOT NULL DEFAULT '{}',
    ADD COLUMN title_key   text,
    ADD COLUMN answer_id   bigint,
    ADD COLUMN changed_at  timestamptz NOT NULL DEFAULT now();
COMMENT ON COLUMN work.nodes IS 'Its identifiers, and those that it is linked to as another version, as kind:value.';
COMMENT ON COLUMN work.title_key IS 'Title and first author where a title is long enough to be one paper''s own.';
CREATE INDEX work_nodes_idx ON work USING gin (nodes);
CREATE INDEX work_title_key_idx ON work (title_key) WHERE title_key IS NOT NULL;
CREATE INDEX work_references_idx ON work USING gin ((payload -> 'references'));

CREATE TABLE source_answer (
    answer_id     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    request_key   text NOT NULL CONSTRAINT source_answer_request_key_key UNIQUE,
    source        text NOT NULL,
    url           text NOT NULL,
    status        integer,
    content_type  text NOT NULL DEFAULT '',
    body          bytea NOT NULL,
    fetched_at    timestamptz NOT NULL DEFAULT now()
);
COMMENT ON TABLE source_answer IS
    'What a source sent, before anything was read in it (deflated): the last answer to each request. Addresses without keys.';
CREATE INDEX source_answer_fetched_at_idx ON source_answer (fetched_at);

CREATE TABLE lookup (
    paper_pk  bigint NOT NULL CONSTRAINT lookup_paper_pk_fkey REFERENCES paper ON DELETE CASCADE,
    source    text NOT NULL,
    outcome   text NOT NULL,
    detail    text,
    asked_at  timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT lookup_pkey PRIMARY KEY (paper_pk, source)
);
COMMENT ON TABLE lookup IS 'How asking a source for a paper ended last; throttled and down are asked again, the others by age.';
CREATE INDEX lookup_asked_at_idx ON lookup (asked_at);

CREATE TABLE topic_search (
    topic_id     bigint NOT NULL CONSTRAINT topic_search_topic_id_fkey REFERENCES topic ON DELETE CASCADE,
    query        text NOT NULL,
    source       text NOT NULL,
    since        date,
    cursor       text,
    n_found      integer NOT NULL DEFAULT 0,
    outcome      text,
    detail       text,
    started_at   timestamptz NOT NULL DEFAULT now(),
    searched_at  timestamptz,
    CONSTRAINT topic_search_pkey PRIMARY KEY (topic_id, query, source)
);
COMMENT ON TABLE topic_search IS 'Where a search of a topic''s query stands at a source: it goes on from its cursor; searched_at is when it ended last.';

CREATE TABLE topic_found (
    topic_id  bigint NOT NULL CONSTRAINT topic_found_topic_id_fkey REFERENCES topic ON DELETE CASCADE,
    paper_pk  bigint NOT NULL CONSTRAINT topic_found_paper_pk_fkey REFERENCES paper ON DELETE CASCADE,
    source    text NOT NULL,
    is_new    boolean NOT NULL,
    found_at  timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT topic_found_pkey PRIMARY KEY (topic_id, paper_pk, source)
);
COMMENT ON TABLE topic_found IS 'Which source gave which paper to a topic, and whether the corpus had it before.';
CREATE INDEX topic_found_paper_pk_idx ON topic_found (paper_pk);

CREATE TABLE source_day (
    day          date NOT NULL DEFAULT current_date,
    source       text NOT NULL,
    n_asked      integer NOT NULL DEFAULT 0,
    n_found      integer NOT NULL DEFAULT 0,
    n_new        integer NOT NULL DEFAULT 0,
    n_absent     integer NOT NULL DEFAULT 0,
    n_throttled  integer NOT NULL DEFAULT 0,
    n_down       integer NOT NULL DEFAULT 0,
    n_refused    integer NOT NULL DEFAULT 0,
    n_nonsense   integer NOT NULL DEFAULT 0,
    last_answer  text,
    last_at      timestamptz,
    CONSTRAINT source_day_pkey PRIMARY KEY (day, source)
);
COMMENT ON TABLE source_day IS 'What asking each source gave on each day; the outcomes are counted apart.';

CREATE TABLE apart (
    one      text NOT NULL,
    other    text NOT NULL,
    made_at  timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT apart_pkey PRIMARY KEY (one, other),
    CONSTRAINT apart_other_check CHECK (one < other)
);
COMMENT ON TABLE apart IS 'Two identifiers (kind:value) that a person has taken apart: never one paper again.';
