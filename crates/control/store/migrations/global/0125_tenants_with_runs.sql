-- Whether a run of a tenant, or of one below it, is under way, for whoever acts for the tenant or one above it.
-- Turns at work are held until the transaction ends, so that no run begins in between.
CREATE FUNCTION work_is_running(above uuid) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = nimbus_core, pg_temp
AS $$
DECLARE
    acting text := COALESCE(current_setting('nimbus.tenant_id', true), '');
    ids uuid[];
    schemas text[];
    under_way boolean := false;
BEGIN
    IF NOT EXISTS (SELECT FROM tenants WHERE id = above AND path @> ARRAY[current_tenant()]) THEN
        RETURN false;
    END IF;
    -- All of them before the first is entered, from where the others cannot be seen.
    SELECT array_agg(p.id), array_agg(p.schema_name) INTO ids, schemas
        FROM (SELECT t.id, t.schema_name FROM tenants t JOIN work_turns w ON w.tenant = t.id
              WHERE t.path @> ARRAY[above] AND t.deleted_at IS NULL ORDER BY t.id FOR UPDATE OF w) p;
    FOR place IN 1 .. COALESCE(array_length(ids, 1), 0) LOOP
        PERFORM pg_catalog.set_config('nimbus.tenant_id', ids[place]::text, true);
        EXECUTE pg_catalog.format('SELECT EXISTS (SELECT FROM %I.runs WHERE tenant_id = $1 AND status = ''running'')',
                                  schemas[place]) INTO under_way USING ids[place];
        EXIT WHEN under_way;
    END LOOP;
    PERFORM pg_catalog.set_config('nimbus.tenant_id', acting, true);
    RETURN under_way;
END $$;
REVOKE ALL ON FUNCTION work_is_running(uuid) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION work_is_running(uuid) TO {{app}};
