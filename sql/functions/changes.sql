-- The change feed: one narrow row per paper and statement whose words or filters changed. Re-runnable.

CREATE OR REPLACE FUNCTION change_record() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO change (paper_pk) SELECT DISTINCT paper_pk FROM changed;
    PERFORM pg_notify('change', '');
    RETURN NULL;
END
$$;

CREATE OR REPLACE FUNCTION paper_change_record() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO change (paper_pk)
    SELECT n.paper_pk FROM changed n JOIN old_rows o USING (paper_pk)
    WHERE (n.title, n.kind, n.year, n.same_as) IS DISTINCT FROM (o.title, o.kind, o.year, o.same_as);
    IF FOUND THEN PERFORM pg_notify('change', ''); END IF;
    RETURN NULL;
END
$$;

CREATE OR REPLACE TRIGGER passage_insert_change AFTER INSERT ON passage
    REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION change_record();
CREATE OR REPLACE TRIGGER passage_update_change AFTER UPDATE ON passage
    REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION change_record();
CREATE OR REPLACE TRIGGER passage_delete_change AFTER DELETE ON passage
    REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION change_record();
CREATE OR REPLACE TRIGGER paper_topic_insert_change AFTER INSERT ON paper_topic
    REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION change_record();
CREATE OR REPLACE TRIGGER paper_topic_delete_change AFTER DELETE ON paper_topic
    REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION change_record();
CREATE OR REPLACE TRIGGER paper_update_change AFTER UPDATE ON paper
    REFERENCING NEW TABLE AS changed OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION paper_change_record();
CREATE OR REPLACE TRIGGER paper_delete_change AFTER DELETE ON paper
    REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION change_record();
