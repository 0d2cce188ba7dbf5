-- Who may call what (runs last). What a worker does goes through functions that run with their owner's rights, so that its
-- login needs no right to write to any table but its own node rows: see sql/roles.sql. Re-runnable.
DO $$
DECLARE
    f regprocedure;
BEGIN
    FOR f IN
        SELECT p.oid::regprocedure FROM pg_proc p
        WHERE p.pronamespace = current_schema()::regnamespace AND p.proname IN (
            'job_claim_any', 'job_renew', 'job_complete', 'job_release', 'job_fail', 'job_halve', 'job_sweep',
            'embed_read', 'embed_complete', 'chunk_complete')
    LOOP
        EXECUTE format('ALTER FUNCTION %s SECURITY DEFINER SET search_path = %I, pg_temp', f, current_schema());
        EXECUTE format('REVOKE EXECUTE ON FUNCTION %s FROM PUBLIC', f);
        IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'brain_worker') THEN
            EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO brain_worker', f);
        END IF;
    END LOOP;
END
$$;
