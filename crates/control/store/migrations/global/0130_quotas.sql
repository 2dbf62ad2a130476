-- Quotas are held against what there is, not against a count that is kept beside it: nothing has to be given
-- back, and no way of making or ending something is forgotten.
DROP FUNCTION quota_reserve(text, bigint);
DROP FUNCTION quota_release(text, bigint);

-- What a tenant and everything below it have of a resource. A tenant is none of its own tenants.
CREATE FUNCTION quota_count(top uuid, wanted text) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = nimbus_core, pg_temp
AS $$
DECLARE
    acting text := COALESCE(current_setting('nimbus.tenant_id', true), '');
    ids uuid[];
    schemas text[];
    counting text;
    part bigint;
    total bigint := 0;
BEGIN
    -- All of them before the first is entered, from where the others cannot be seen.
    PERFORM pg_catalog.set_config('nimbus.tenant_id', '', true);
    SELECT array_agg(t.id), array_agg(t.schema_name) INTO ids, schemas
        FROM tenants t WHERE t.path @> ARRAY[top] AND t.deleted_at IS NULL;
    counting := CASE wanted
        WHEN 'users' THEN 'SELECT count(*) FROM nimbus_core.users WHERE tenant_id = $1 AND deleted_at IS NULL'
        WHEN 'deployments' THEN 'SELECT count(*) FROM %I.deployments WHERE tenant_id = $1 AND archived_at IS NULL'
        WHEN 'runs' THEN 'SELECT count(*) FROM %I.runs WHERE tenant_id = $1 AND status IN (''queued'', ''running'')'
    END;
    IF wanted = 'tenants' THEN
        total := GREATEST(COALESCE(cardinality(ids), 0) - 1, 0);
    ELSIF counting IS NOT NULL THEN
        FOR place IN 1 .. COALESCE(cardinality(ids), 0) LOOP
            PERFORM pg_catalog.set_config('nimbus.tenant_id', ids[place]::text, true);
            EXECUTE pg_catalog.format(counting, schemas[place]) INTO part USING ids[place];
            total := total + part;
        END LOOP;
    END IF;
    PERFORM pg_catalog.set_config('nimbus.tenant_id', acting, true);
    RETURN total;
END $$;

-- Refuses when a tenant, or one above it, has more of a resource than its limit. After it was made, in its
-- transaction: of two that make the last one, the second waits here and then sees the first. Locks are taken
-- from the root down, so that nobody waits in a circle. `amount` is what this transaction made.
CREATE FUNCTION quota_check(of_tenant uuid, wanted text, amount bigint) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = nimbus_core, pg_temp
AS $$
DECLARE
    ancestor record;
    used bigint;
BEGIN
    FOR ancestor IN SELECT l.id, (l.quotas ->> wanted)::bigint AS quota FROM lineage(of_tenant) l
                    WHERE l.quotas ? wanted ORDER BY l.depth LOOP
        PERFORM pg_catalog.pg_advisory_xact_lock(
            pg_catalog.hashtextextended(pg_catalog.format('quota %s %s', wanted, ancestor.id), 0));
        -- A statement of its own: what was committed during the wait counts.
        used := quota_count(ancestor.id, wanted);
        IF used > ancestor.quota THEN
            RAISE EXCEPTION 'quota' USING ERRCODE = 'NB002',
                DETAIL = pg_catalog.format('%s %s', ancestor.quota, GREATEST(used - amount, 0));
        END IF;
    END LOOP;
END $$;

-- The smallest limit on the way to the root wins: a child never has more than its parent.
CREATE OR REPLACE FUNCTION effective_quotas(tenant uuid)
RETURNS TABLE (resource text, quota bigint, used bigint, inherited boolean)
LANGUAGE sql SECURITY DEFINER SET search_path = nimbus_core, pg_temp
AS $$
    SELECT s.key, s.quota, quota_count(tenant, s.key), s.inherited FROM (
        SELECT DISTINCT ON (q.key) q.key, q.value::text::bigint AS quota, l.id <> tenant AS inherited
        FROM lineage(tenant) l, jsonb_each(l.quotas) q
        ORDER BY q.key, q.value::text::bigint, l.depth DESC) s
    ORDER BY s.key
$$;

DROP TABLE quota_usage;

REVOKE ALL ON FUNCTION quota_count(uuid, text), quota_check(uuid, text, bigint) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION quota_check(uuid, text, bigint) TO {{app}};
