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

-- Why a paper has no full text, as far as asking for one has come; null where nobody has asked. Re-runnable.
CREATE OR REPLACE FUNCTION full_text_word(pk bigint) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT coalesce(
        (SELECT CASE WHEN j.error LIKE 'waits: %' AND j.run_after > now()
                     THEN 'full text ' || j.error || '; it is asked for again after ' || to_char(j.run_after AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI "UTC"')
                     WHEN j.error LIKE 'waits: %' THEN 'full text ' || j.error || '; the next run asks again'
                     ELSE 'its full text is still to be asked for' END
         FROM job j WHERE j.kind = 'fetch' AND j.state = 'waiting' AND j.item_ids = ARRAY[pk] LIMIT 1),
        (SELECT 'its full text is being fetched' FROM job j WHERE j.kind = 'fetch' AND j.state = 'running' AND j.item_ids = ARRAY[pk] LIMIT 1),
        (SELECT 'no full text: ' || coalesce(j.error, 'it failed without a reason')
         FROM job j WHERE j.kind = 'fetch' AND j.state = 'failed' AND j.item_ids = ARRAY[pk] LIMIT 1),
        (SELECT 'no full text: ' || string_agg(l.word, '; ' ORDER BY l.place) FROM (
            SELECT CASE WHEN f.url = '' THEN coalesce(f.reason, f.outcome) ELSE f.url || ': ' || f.outcome || coalesce(', ' || f.reason, '') END AS word,
                   row_number() OVER (ORDER BY f.url = '', f.outcome <> 'quarantined', f.fetch_attempt_id DESC) AS place
            FROM (SELECT DISTINCT ON (a.url) a.* FROM fetch_attempt a WHERE a.paper_pk = pk ORDER BY a.url, a.fetch_attempt_id DESC) f
            WHERE f.outcome <> 'ok'
              AND (f.url <> '' OR NOT EXISTS (SELECT FROM fetch_attempt o WHERE o.paper_pk = pk AND o.url <> '' AND o.outcome <> 'ok'))
        ) l WHERE l.place <= 5))
$$;
