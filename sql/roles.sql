-- Rights for logins that are not the owner: farm nodes and search servers. Run by the owner (or a superuser), once after
-- `brain init`, and again after an upgrade; safe each time:
--
--     psql "$(brain db url)" -f sql/roles.sql
--     psql "$(brain db url)" -c "CREATE ROLE laptop LOGIN PASSWORD '…' IN ROLE brain_worker"
--     psql "$(brain db url)" -c "CREATE ROLE web LOGIN PASSWORD '…' IN ROLE brain_search"
--
-- A worker can claim, read texts, insert passages and jobs, write embeddings, all through the functions of a lease's
-- holder, and write its own node rows. A search server can read and write its own node row. Neither can anything else:
-- the owner migrates, ingests, tunes and activates.

DO $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'brain_worker') THEN
        CREATE ROLE brain_worker NOLOGIN;
    END IF;
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'brain_search') THEN
        CREATE ROLE brain_search NOLOGIN;
    END IF;
EXCEPTION WHEN duplicate_object OR unique_violation THEN
    NULL;  -- another database of this server made them at the same moment
END
$$;

DO $$
DECLARE
    f regprocedure;
    r text;
BEGIN
    FOREACH r IN ARRAY ARRAY['brain_worker', 'brain_search'] LOOP
        EXECUTE format('GRANT USAGE ON SCHEMA %I TO %I', current_schema(), r);
        EXECUTE format('GRANT CONNECT ON DATABASE %I TO %I', current_database(), r);
    END LOOP;
    FOR f IN
        SELECT p.oid::regprocedure FROM pg_proc p
        WHERE p.pronamespace = current_schema()::regnamespace AND p.prosecdef
          AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.objid = p.oid AND d.deptype = 'e')
    LOOP
        EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO brain_worker', f);
    END LOOP;
END
$$;

GRANT SELECT ON encoder, document, passage, paper, job, node, setting, _yoyo_migration TO brain_worker;
GRANT SELECT ON ALL TABLES IN SCHEMA public TO brain_search;
ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT SELECT ON TABLES TO brain_search;

GRANT INSERT, UPDATE ON node TO brain_worker, brain_search;
ALTER TABLE node ENABLE ROW LEVEL SECURITY;
DROP POLICY IF EXISTS node_read ON node;
CREATE POLICY node_read ON node FOR SELECT USING (true);
DROP POLICY IF EXISTS node_worker_insert ON node;
CREATE POLICY node_worker_insert ON node FOR INSERT TO brain_worker WITH CHECK (role = 'worker' AND login = current_user);
DROP POLICY IF EXISTS node_worker_update ON node;
CREATE POLICY node_worker_update ON node FOR UPDATE TO brain_worker
    USING (role = 'worker' AND login = current_user) WITH CHECK (role = 'worker' AND login = current_user);
DROP POLICY IF EXISTS node_search_insert ON node;
CREATE POLICY node_search_insert ON node FOR INSERT TO brain_search WITH CHECK (role = 'search' AND login = current_user);
DROP POLICY IF EXISTS node_search_update ON node;
CREATE POLICY node_search_update ON node FOR UPDATE TO brain_search
    USING (role = 'search' AND login = current_user) WITH CHECK (role = 'search' AND login = current_user);
