-- Settings and quotas go down the tree.
--
-- A tenant cannot read the rows of its ancestors, so what it inherits comes from functions that run
-- as the owner and answer only for the tenant that is set and what is below it.

-- How much of a resource a tenant and everything below it use.
CREATE TABLE quota_usage (
    tenant_id uuid NOT NULL REFERENCES tenants (id),
    resource text NOT NULL CHECK (resource ~ '^[a-z][a-z0-9_]{0,62}$'),
    used bigint NOT NULL DEFAULT 0 CHECK (used >= 0),
    PRIMARY KEY (tenant_id, resource)
);
SELECT protect_tenant_table('quota_usage');
-- Reserving counts at every ancestor as well.
CREATE POLICY counting ON quota_usage TO {{owner}} USING (true) WITH CHECK (true);
REVOKE INSERT, UPDATE, DELETE ON quota_usage FROM {{app}};

-- The path of a tenant that the caller may ask about, from the root down.
CREATE FUNCTION visible_path(tenant uuid) RETURNS uuid[]
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = nimbus_core, pg_temp
AS $$
    SELECT path FROM tenants WHERE id = tenant AND deleted_at IS NULL AND current_tenant() = ANY (path)
$$;

-- A tenant that the caller may ask about and its ancestors, from the root down. The owner sees ancestors
-- only while nobody is set.
CREATE FUNCTION lineage(tenant uuid) RETURNS TABLE (id uuid, settings jsonb, quotas jsonb, depth integer)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = nimbus_core, pg_temp
AS $$
DECLARE
    acting text := COALESCE(current_setting('nimbus.tenant_id', true), '');
    ancestors uuid[] := visible_path(tenant);
BEGIN
    PERFORM set_config('nimbus.tenant_id', '', true);
    RETURN QUERY
        SELECT a.id, a.settings, a.quotas, cardinality(a.path) FROM tenants a
        WHERE a.id = ANY (ancestors)
        ORDER BY cardinality(a.path);
    PERFORM set_config('nimbus.tenant_id', acting, true);
END $$;
REVOKE ALL ON FUNCTION lineage(uuid) FROM PUBLIC;

-- The nearest value wins, key by key.
CREATE FUNCTION effective_settings(tenant uuid)
RETURNS TABLE (key text, value jsonb, inherited boolean)
LANGUAGE sql SECURITY DEFINER SET search_path = nimbus_core, pg_temp
AS $$
    SELECT DISTINCT ON (s.key) s.key, s.value, l.id <> tenant
    FROM lineage(tenant) l, jsonb_each(l.settings) s
    ORDER BY s.key, l.depth DESC
$$;

-- The smallest limit on the way to the root wins: a child never has more than its parent.
CREATE FUNCTION effective_quotas(tenant uuid)
RETURNS TABLE (resource text, quota bigint, used bigint, inherited boolean)
LANGUAGE sql SECURITY DEFINER SET search_path = nimbus_core, pg_temp
AS $$
    SELECT DISTINCT ON (q.key) q.key, q.value::text::bigint,
           COALESCE((SELECT u.used FROM quota_usage u WHERE u.tenant_id = tenant AND u.resource = q.key), 0),
           l.id <> tenant
    FROM lineage(tenant) l, jsonb_each(l.quotas) q
    ORDER BY q.key, q.value::text::bigint, l.depth DESC
$$;

-- Takes some of a resource for the tenant that is set, or fails with the limit that is in the way.
-- Rows are locked from the root down, so two reservations never wait for each other in a circle.
CREATE FUNCTION quota_reserve(wanted text, amount bigint) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = nimbus_core, pg_temp
AS $$
DECLARE
    tenant uuid := current_tenant();
    ancestor record;
BEGIN
    IF amount <= 0 OR visible_path(tenant) IS NULL THEN
        RAISE EXCEPTION 'nothing to reserve' USING ERRCODE = 'NB003';
    END IF;
    FOR ancestor IN SELECT l.id, (l.quotas ->> wanted)::bigint AS quota FROM lineage(tenant) l ORDER BY l.depth LOOP
        INSERT INTO quota_usage (tenant_id, resource) VALUES (ancestor.id, wanted) ON CONFLICT DO NOTHING;
        UPDATE quota_usage u SET used = u.used + amount
            WHERE u.tenant_id = ancestor.id AND u.resource = wanted
              AND (ancestor.quota IS NULL OR u.used + amount <= ancestor.quota);
        IF NOT FOUND THEN
            RAISE EXCEPTION 'quota' USING ERRCODE = 'NB002', DETAIL = ancestor.quota::text;
        END IF;
    END LOOP;
END $$;

-- Gives back what was reserved; never more than the tenant has.
CREATE FUNCTION quota_release(wanted text, amount bigint) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = nimbus_core, pg_temp
AS $$
DECLARE
    tenant uuid := current_tenant();
BEGIN
    PERFORM FROM quota_usage u WHERE u.tenant_id IN (SELECT l.id FROM lineage(tenant) l) AND u.resource = wanted
        ORDER BY array_position(visible_path(tenant), u.tenant_id) FOR UPDATE;
    PERFORM FROM quota_usage u WHERE u.tenant_id = tenant AND u.resource = wanted AND u.used >= amount;
    IF amount <= 0 OR NOT FOUND THEN
        RAISE EXCEPTION 'nothing to release' USING ERRCODE = 'NB003';
    END IF;
    UPDATE quota_usage u SET used = u.used - amount
        WHERE u.tenant_id IN (SELECT l.id FROM lineage(tenant) l) AND u.resource = wanted;
END $$;

REVOKE ALL ON FUNCTION visible_path(uuid), effective_settings(uuid), effective_quotas(uuid),
    quota_reserve(text, bigint), quota_release(text, bigint) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION effective_settings(uuid), effective_quotas(uuid) TO {{app}}, {{readonly}};
GRANT EXECUTE ON FUNCTION quota_reserve(text, bigint), quota_release(text, bigint) TO {{app}};
