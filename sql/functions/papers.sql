-- Finding papers. Re-runnable.

-- The paper that each key stands for: its own key, an identifier written as kind:value, or the key of a merged paper.
-- Papers loaded with a prefix answer to their own key first; by an identifier that they share only when no other paper has it.
CREATE OR REPLACE FUNCTION paper_resolve(keys text[]) RETURNS TABLE (key text, paper_pk bigint) LANGUAGE sql STABLE AS $$
    SELECT DISTINCT ON (f.key) f.key, f.paper_pk FROM (
        SELECT k.key, p.paper_pk, 0 AS place FROM unnest(keys) AS k (key) JOIN paper p ON p.paper_id = k.key
        UNION ALL
        SELECT k.key, i.paper_pk, CASE WHEN p.is_prefixed THEN 3 ELSE 1 END
        FROM unnest(keys) AS k (key)
        JOIN paper_identifier i ON i.kind = split_part(k.key, ':', 1) AND i.value = substr(k.key, strpos(k.key, ':') + 1)
        JOIN paper p ON p.paper_pk = i.paper_pk
        UNION ALL
        SELECT k.key, i.paper_pk, 2 FROM unnest(keys) AS k (key)
        JOIN paper_identifier i ON i.kind = 'key' AND i.value = k.key
    ) f ORDER BY f.key, f.place, f.paper_pk
$$;
