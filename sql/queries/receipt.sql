-- What the corpus is, paper by paper, in an order and in forms that are the same in every database.

-- name: plan
-- For this transaction: by index, paper by paper. A database that was just restored or loaded has no statistics, and without
-- them the planner may read every embedding once for each paper.
SELECT set_config(name, 'off', true) FROM unnest(ARRAY['enable_seqscan', 'enable_hashjoin', 'enable_mergejoin', 'enable_material']) AS name

-- name: papers
-- One row a paper, by its key: short hashes of its words, facts and identifiers, its topics, files, passages and embeddings.
SELECT p.paper_id,
       left(encode(sha256(convert_to(jsonb_build_array(p.title, p.abstract, encode(p.text_sha256, 'hex'))::text, 'UTF8')), 'hex'), 16) AS words,
       left(encode(sha256(convert_to(jsonb_build_array(p.kind, p.is_prefixed, p.authors, p.year, p.published_on, p.venue, p.url, p.n_citations,
            p.velocity, p.tldr, p.licence, p.is_retracted, p.mark, p.raw, p.provenance, o.paper_id)::text, 'UTF8')), 'hex'), 16) AS facts,
       left(encode(sha256(convert_to(coalesce(i.ids, ''), 'UTF8')), 'hex'), 16) AS identifiers,
       coalesce(t.names, '{}') AS topics, coalesce(d.files, '[]') AS documents,
       coalesce(s.n, 0) AS n_passages, coalesce(left(encode(s.hash, 'hex'), 16), '') AS passages,
       coalesce(e.n, 0) AS n_embeddings, coalesce(left(encode(e.hash, 'hex'), 16), '') AS embeddings
FROM paper p LEFT JOIN paper o ON o.paper_pk = p.same_as
LEFT JOIN LATERAL (
    SELECT string_agg(i.kind || ':' || i.value, ' ' ORDER BY i.kind COLLATE "C", i.value COLLATE "C") AS ids
    FROM paper_identifier i WHERE i.paper_pk = p.paper_pk) i ON true
LEFT JOIN LATERAL (
    SELECT array_agg(t.name ORDER BY t.name COLLATE "C") AS names FROM paper_topic pt JOIN topic t USING (topic_id) WHERE pt.paper_pk = p.paper_pk) t ON true
LEFT JOIN LATERAL (
    SELECT jsonb_agg(jsonb_build_array(encode(d.sha256, 'hex'), left(encode(sha256(convert_to(jsonb_build_array(
        d.source_url, d.licence, d.verdict, d.reason, d.n_pages, encode(d.text_sha256, 'hex'), d.is_cut)::text, 'UTF8')), 'hex'), 16), d.file_name)
        ORDER BY d.sha256) AS files
    FROM document d WHERE d.paper_pk = p.paper_pk) d ON true
LEFT JOIN LATERAL (
    SELECT count(*) AS n, sha256(string_agg(convert_to(s.part || s.char_start || ' ', 'UTF8') || s.text_sha256, '' ORDER BY s.part COLLATE "C", s.text_sha256, s.char_start)) AS hash
    FROM passage s WHERE s.paper_pk = p.paper_pk) s ON true
LEFT JOIN LATERAL (
    SELECT count(*) AS n, sha256(string_agg(v.what, '' ORDER BY v.what)) AS hash FROM (
        SELECT DISTINCT '\x70'::bytea || x.text_sha256 || sha256(halfvec_send(x.embedding)) AS what FROM passage s
        JOIN passage_embedding x ON x.encoder_id = %(encoder_id)s AND x.text_sha256 = s.text_sha256 WHERE s.paper_pk = p.paper_pk
        UNION ALL
        SELECT '\x77'::bytea || x.text_sha256 || sha256(halfvec_send(x.embedding)) FROM paper_embedding x
        WHERE x.encoder_id = %(encoder_id)s AND x.text_sha256 = p.text_sha256
    ) v) e ON true
ORDER BY p.paper_id COLLATE "C"

-- name: topics
SELECT name, left(encode(sha256(convert_to(jsonb_build_array(title, description, queries, meta)::text, 'UTF8')), 'hex'), 16) AS meta
FROM topic ORDER BY name COLLATE "C"

-- name: citations
SELECT a.paper_id, b.paper_id, c.source FROM citation c JOIN paper a ON a.paper_pk = c.citing_pk JOIN paper b ON b.paper_pk = c.cited_pk
ORDER BY a.paper_id COLLATE "C", b.paper_id COLLATE "C"

-- name: apart
SELECT one, other FROM apart ORDER BY one COLLATE "C", other COLLATE "C"

-- name: settings
SELECT name, value FROM setting WHERE NOT name = ANY (%(own)s) ORDER BY name COLLATE "C"

-- name: versions
SELECT current_setting('server_version') AS postgresql, (SELECT extversion FROM pg_extension WHERE extname = 'vector') AS pgvector,
       (SELECT max(extractor_version) FROM document) AS extractor
