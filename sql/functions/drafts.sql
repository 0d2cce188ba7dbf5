-- Drafts: texts that were read anew and take the place of the older ones when they are embedded. Re-runnable.

-- Lets those drafts of the documents serve that are ready: each of their passages has its embedding under the active encoder,
-- or was set aside as one that cannot have any. Text, pages, passages and, where they came from the file, the paper's title and
-- abstract change in the caller's one transaction; a passage whose slice is unchanged keeps its row. Returns how many changed.
-- The document's row is locked before the look: of two who embed a draft's last passages the later one sees both.
CREATE OR REPLACE FUNCTION draft_settle(wanted_ids bigint[]) RETURNS bigint LANGUAGE plpgsql VOLATILE SET enable_seqscan = off AS $$
DECLARE
    serving integer := active_encoder_id();
    wanted bigint;
    draft document_draft;
    owner paper;
    has_new_words boolean;
    gone_hashes bytea[];
    n bigint := 0;
BEGIN
    FOREACH wanted IN ARRAY ARRAY(SELECT DISTINCT w FROM unnest(wanted_ids) AS w ORDER BY w) LOOP
        SELECT p.* INTO owner FROM document d JOIN paper p USING (paper_pk) WHERE d.document_id = wanted FOR UPDATE OF d;
        CONTINUE WHEN NOT FOUND;
        SELECT * INTO draft FROM document_draft WHERE document_id = wanted;
        CONTINUE WHEN NOT FOUND;
        CONTINUE WHEN serving IS NOT NULL AND EXISTS (
            SELECT FROM passage_draft p WHERE p.document_id = wanted
              AND NOT EXISTS (SELECT FROM passage_embedding x WHERE x.encoder_id = serving AND x.text_sha256 = p.text_sha256)
              AND NOT EXISTS (SELECT FROM job j WHERE j.state = 'failed' AND j.kind = 'embed_passages' AND j.encoder_id = serving
                              AND j.item_ids @> ARRAY[p.passage_id]));
        IF draft.has_words THEN -- whoever writes the paper's words at this moment goes first, and theirs stay
            SELECT * INTO owner FROM paper WHERE paper_pk = owner.paper_pk FOR NO KEY UPDATE;
        END IF;
        has_new_words := draft.has_words AND owner.text_sha256 IS NOT DISTINCT FROM draft.base_sha256;

        WITH gone AS (
            DELETE FROM passage p
            WHERE (p.document_id = wanted OR (has_new_words AND p.paper_pk = owner.paper_pk AND p.part = 'abstract'))
              AND NOT EXISTS (SELECT FROM passage_draft n WHERE n.document_id = wanted AND n.part = p.part
                              AND n.char_start = p.char_start AND n.text_sha256 = p.text_sha256)
            RETURNING p.text_sha256
        ) SELECT array_agg(DISTINCT gone.text_sha256) INTO gone_hashes FROM gone;
        INSERT INTO passage AS p (passage_id, paper_pk, document_id, part, ordinal, char_start, char_end, section, page_from, page_to, text, text_sha256)
            OVERRIDING SYSTEM VALUE
        SELECT n.passage_id, owner.paper_pk, CASE WHEN n.part = 'document' THEN wanted END, n.part, n.ordinal, n.char_start, n.char_end,
               n.section, n.page_from, n.page_to, n.text, n.text_sha256
        FROM passage_draft n WHERE n.document_id = wanted AND (n.part = 'document' OR has_new_words) ORDER BY n.part, n.ordinal
        ON CONFLICT (paper_pk, part, document_id, char_start) DO UPDATE
            SET ordinal = excluded.ordinal, section = excluded.section, page_from = excluded.page_from, page_to = excluded.page_to
            WHERE (p.ordinal, p.section, p.page_from, p.page_to)
                IS DISTINCT FROM (excluded.ordinal, excluded.section, excluded.page_from, excluded.page_to);
        UPDATE document SET reason = CASE WHEN owner.same_as IS NULL THEN draft.reason ELSE reason END, verdict = 'ok', warnings = draft.warnings,
               n_pages = draft.n_pages, text = draft.text, text_sha256 = draft.text_sha256, page_starts = draft.page_starts,
               sections = draft.sections, extractor_version = draft.extractor_version, extracted_at = draft.made_at, is_cut = true
        WHERE document_id = wanted;
        IF has_new_words THEN
            UPDATE paper SET title = draft.title, abstract = draft.abstract, text = draft.paper_text,
                   text_sha256 = sha256(convert_to(draft.paper_text, 'UTF8')), updated_at = now()
            WHERE paper_pk = owner.paper_pk;
            PERFORM embedding_want(ARRAY[owner.paper_pk], '{}', 10);
            DELETE FROM paper_embedding x WHERE x.encoder_id = ANY (ARRAY(SELECT encoder_id FROM encoder))
                AND x.text_sha256 = owner.text_sha256
                AND NOT EXISTS (SELECT FROM paper p WHERE p.text_sha256 = x.text_sha256);
        END IF;
        gone_hashes := gone_hashes || ARRAY(SELECT p.text_sha256 FROM passage_draft p WHERE p.document_id = wanted);
        DELETE FROM document_draft WHERE document_id = wanted;
        DELETE FROM passage_embedding x WHERE x.encoder_id = ANY (ARRAY(SELECT encoder_id FROM encoder))
            AND x.text_sha256 = ANY (gone_hashes)
            AND NOT EXISTS (SELECT FROM passage_any p WHERE p.text_sha256 = x.text_sha256);
        n := n + 1;
    END LOOP;
    RETURN n;
END
$$;

-- Looks at the drafts that items of an embed job, or texts that were embedded, belong to. Costs nothing where there are none.
CREATE OR REPLACE FUNCTION draft_settle_of(passage_ids bigint[], hashes bytea[]) RETURNS bigint LANGUAGE plpgsql VOLATILE SET enable_seqscan = off AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM document_draft) THEN RETURN 0; END IF;
    RETURN draft_settle(ARRAY(SELECT document_id FROM passage_draft WHERE passage_id = ANY (passage_ids)
                              UNION SELECT document_id FROM passage_draft WHERE text_sha256 = ANY (hashes)));
END
$$;

-- Looks at every draft: after an encoder began to serve, or embeddings came from elsewhere.
CREATE OR REPLACE FUNCTION draft_settle_all() RETURNS bigint LANGUAGE sql VOLATILE AS $$
    SELECT draft_settle(ARRAY(SELECT document_id FROM document_draft))
$$;

-- Gives the passages of a draft what is known of them and queues the rest, then lets it serve if nothing is missing.
CREATE OR REPLACE FUNCTION draft_want(wanted_id bigint, wanted_priority integer) RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    PERFORM embedding_want('{}', ARRAY(SELECT passage_id FROM passage_draft WHERE document_id = wanted_id ORDER BY passage_id), wanted_priority);
    RETURN draft_settle(ARRAY[wanted_id]);
END
$$;
