-- Whoever watches a run hears that something about it changed, when that is committed. The news name the run
-- and nothing else: what changed is read where row-level security holds.
CREATE FUNCTION run_changed() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    PERFORM pg_notify('nimbus_runs', NEW.id::text);
    RETURN NULL;
END $$;
REVOKE ALL ON FUNCTION run_changed() FROM PUBLIC;
