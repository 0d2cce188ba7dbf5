-- The statements of looking around: papers, topics, texts, counts, nodes. Read by sql.files.queries("browse").

-- name: papers_page
-- One page of papers with their state, in the order in which they came. The state is worked out for the page's rows only.
WITH page AS (
    SELECT p.* FROM paper p
    WHERE p.paper_pk > %(after)s AND {matches}
    ORDER BY p.paper_pk LIMIT %(limit)s
)
SELECT s.* FROM (SELECT p.* FROM page p) p CROSS JOIN LATERAL ({state}) s ORDER BY s.paper_pk

-- name: papers_in_state
SELECT s.* FROM paper p CROSS JOIN LATERAL ({state}) s
WHERE p.paper_pk > %(after)s AND {matches} AND s.state = %(state)s ORDER BY s.paper_pk LIMIT %(limit)s

-- name: papers_count
SELECT count(*) FROM paper p WHERE {matches}

-- name: papers_count_in_state
SELECT count(*) FROM paper p CROSS JOIN LATERAL ({state}) s WHERE {matches} AND s.state = %(state)s

-- name: match_topic
EXISTS (SELECT FROM paper_topic x WHERE x.paper_pk = p.paper_pk AND x.topic_id = %(topic)s)

-- name: match_words
NOT EXISTS (
    SELECT FROM unnest(%(words)s::text[]) AS w (word)
    WHERE position(w.word IN lower(coalesce(p.title, ''))) = 0
      AND NOT EXISTS (SELECT FROM document x WHERE x.paper_pk = p.paper_pk AND p.title IS NULL AND position(w.word IN lower(coalesce(x.file_name, ''))) > 0)
)

-- name: paper_state
-- What has become of a paper: its best document (one with text before one without), its passages and embeddings.
SELECT p.paper_pk, p.paper_id, coalesce(p.title, d.file_name) AS title, p.year,
       CASE WHEN p.same_as IS NOT NULL THEN 'duplicate'
            WHEN g.n_passages = 0 AND d.document_id IS NOT NULL AND d.verdict IS NULL THEN 'waiting'
            WHEN g.n_passages = 0 AND d.verdict <> 'ok' THEN 'refused'
            WHEN d.verdict = 'ok' AND NOT d.is_cut THEN 'cutting'
            WHEN g.n_passages = 0 AND p.text IS NULL THEN 'empty'
            WHEN g.n_passages = 0 THEN 'empty'
            WHEN d.document_id IS NOT NULL AND d.verdict IS NULL THEN 'waiting'
            WHEN g.n_embedded < g.n_passages THEN 'embedding'
            ELSE 'ready' END AS state,
       d.verdict, coalesce(
           d.reason,
           CASE WHEN p.same_as IS NOT NULL THEN 'another copy of ' || (SELECT o.paper_id FROM paper o WHERE o.paper_pk = p.same_as)
                WHEN d.document_id IS NULL THEN full_text_word(p.paper_pk) END,
           CASE WHEN p.text IS NULL AND g.n_passages = 0 AND d.document_id IS NULL THEN 'neither title, abstract nor full text is known' ||
                coalesce(': ' || (SELECT string_agg(k.source || ' ' || k.outcome, ', ' ORDER BY k.source) FROM lookup k WHERE k.paper_pk = p.paper_pk), '') END
       ) AS reason,
       g.n_passages, g.n_embedded
FROM (SELECT count(*) AS n_passages, count(e.text_sha256) AS n_embedded
      FROM passage x LEFT JOIN passage_embedding e ON e.encoder_id = %(encoder)s AND e.text_sha256 = x.text_sha256
      WHERE x.paper_pk = p.paper_pk) g
LEFT JOIN LATERAL (
    SELECT x.document_id, x.verdict, x.reason, x.file_name, x.is_cut FROM document x WHERE x.paper_pk = p.paper_pk
    ORDER BY (x.verdict = 'ok') DESC NULLS LAST, x.document_id LIMIT 1
) d ON true

-- name: paper_one
-- All that is known of one paper.
SELECT p.paper_pk, p.paper_id, p.kind, p.title, p.abstract, p.authors, p.year, p.published_on::text AS published_on, p.venue, p.url,
       p.n_citations, p.velocity, p.tldr, p.licence, p.is_retracted, p.mark, p.created_at, p.updated_at,
       (SELECT o.paper_id FROM paper o WHERE o.paper_pk = p.same_as) AS same_as,
       (SELECT coalesce(array_agg(o.name ORDER BY o.name), '{}') FROM paper_topic x JOIN topic o USING (topic_id) WHERE x.paper_pk = p.paper_pk) AS topics,
       (SELECT coalesce(jsonb_agg(jsonb_build_object('kind', i.kind, 'value', i.value) ORDER BY i.kind, i.value), '[]')
        FROM paper_identifier i WHERE i.paper_pk = p.paper_pk) AS identifiers,
       (SELECT coalesce(jsonb_agg(jsonb_build_object(
            'sha256', encode(d.sha256, 'hex'), 'file_name', d.file_name, 'source_url', d.source_url, 'licence', d.licence,
            'content_type', d.content_type, 'n_bytes', d.n_bytes, 'n_pages', d.n_pages, 'verdict', d.verdict, 'reason', d.reason,
            'warnings', to_jsonb(d.warnings), 'n_chars', length(d.text)) ORDER BY d.document_id), '[]')
        FROM document d WHERE d.paper_pk = p.paper_pk) AS documents
FROM paper p WHERE p.paper_pk = %(paper)s

-- name: paper_text_document
SELECT text, encode(text_sha256, 'hex') AS text_sha256, page_starts FROM document
WHERE paper_pk = %(paper)s AND text IS NOT NULL
ORDER BY is_cut DESC, (verdict = 'ok') DESC NULLS LAST, document_id LIMIT 1

-- name: paper_text_abstract
SELECT text, encode(text_sha256, 'hex') AS text_sha256, '{}'::integer[] AS page_starts FROM paper
WHERE paper_pk = %(paper)s AND text IS NOT NULL

-- name: topics_all
SELECT t.name AS topic, t.title, t.description, count(x.paper_pk) AS n_papers, t.fetched_at
FROM topic t LEFT JOIN paper_topic x USING (topic_id) GROUP BY t.topic_id ORDER BY t.name

-- name: counts
SELECT (SELECT count(*) FROM paper) AS papers,
       (SELECT count(DISTINCT paper_pk) FROM document WHERE text IS NOT NULL) AS full_texts,
       (SELECT count(*) FROM passage) AS passages,
       (SELECT count(*) FROM topic) AS topics,
       (SELECT count(*) FROM passage_embedding WHERE encoder_id = %(encoder)s) AS passage_embeddings,
       (SELECT count(*) FROM paper_embedding WHERE encoder_id = %(encoder)s) AS paper_embeddings

-- name: nodes
SELECT name, role, host, pid, device, backend, version, state, last_seen_at, round(extract(epoch FROM now() - last_seen_at)::numeric, 1)::float8 AS seen_s_ago,
       n_jobs, n_texts, last_error, detail
FROM node ORDER BY last_seen_at DESC LIMIT 200

-- name: node_upsert
INSERT INTO node (name, role, host, pid, encoder_id, version, state, detail, device, backend)
VALUES (%(name)s, 'search', %(host)s, %(pid)s, %(encoder_id)s, %(version)s, %(state)s, %(detail)s, %(device)s, %(backend)s)
ON CONFLICT (role, name) DO UPDATE SET host = excluded.host, pid = excluded.pid, encoder_id = excluded.encoder_id,
    version = excluded.version, state = excluded.state, detail = excluded.detail, device = excluded.device,
    backend = excluded.backend, last_seen_at = now()

-- name: node_stopped
UPDATE node SET state = 'stopped', last_seen_at = now() WHERE role = 'search' AND name = %(name)s AND pid = %(pid)s
