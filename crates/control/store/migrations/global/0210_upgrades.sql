-- How instances get over a version that breaks the contract of the one before it, as its publisher said.
ALTER TABLE component_versions ADD COLUMN upgrade_workflow text CHECK (upgrade_workflow <> '' AND length(upgrade_workflow) <= 100);

-- Tenants with roll-outs that are to go on. It names tenants and nothing of theirs.
CREATE TABLE rollout_turns (
    tenant uuid PRIMARY KEY
);
SELECT protect_installation_table('rollout_turns');

-- The acting tenant has a roll-out. In the transaction that makes it or lets it go on.
CREATE FUNCTION rollout_note() RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = nimbus_core, pg_temp
AS $$
    INSERT INTO rollout_turns AS t (tenant) SELECT current_tenant() WHERE current_tenant() IS NOT NULL
    ON CONFLICT (tenant) DO UPDATE SET tenant = t.tenant
$$;

-- Every tenant may have one: after a start, when nobody knows.
CREATE FUNCTION rollout_note_all() RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = nimbus_core, pg_temp
AS $$
    INSERT INTO rollout_turns (tenant) SELECT id FROM tenants WHERE deleted_at IS NULL ORDER BY id ON CONFLICT DO NOTHING
$$;

CREATE FUNCTION rollout_tenants() RETURNS SETOF uuid
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = nimbus_core, pg_temp
AS $$
    SELECT tenant FROM rollout_turns ORDER BY tenant
$$;

-- Holds the acting tenant's turn until the transaction ends: whoever makes a roll-out waits, or is waited for.
CREATE FUNCTION rollout_turn() RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = nimbus_core, pg_temp
AS $$
    SELECT FROM rollout_turns WHERE tenant = current_tenant() FOR UPDATE
$$;

-- The acting tenant has none left. After rollout_turn, in its transaction.
CREATE FUNCTION rollout_none() RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = nimbus_core, pg_temp
AS $$
    DELETE FROM rollout_turns WHERE tenant = current_tenant()
$$;

-- A tenant that is gone has none either.
CREATE FUNCTION rollout_forget(gone uuid) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = nimbus_core, pg_temp
AS $$
    DELETE FROM rollout_turns WHERE tenant = gone
        AND NOT EXISTS (SELECT FROM tenants WHERE id = gone AND deleted_at IS NULL)
$$;

-- Instances of a component, by its owner, in the acting tenant and all below it.
CREATE FUNCTION fleet_instances(wanted text, whose uuid, most bigint)
RETURNS TABLE (tenant uuid, tenant_name text, tenant_path uuid[], id uuid, deployment text, environment text,
    rehearsal boolean, stack text, version integer, status text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = nimbus_core, pg_temp
AS $$
DECLARE
    acting text := COALESCE(current_setting('nimbus.tenant_id', true), '');
    own uuid := current_tenant();
    ids uuid[];
    schemas text[];
    names text[];
    paths text[];
    seen bigint := 0;
    part bigint;
BEGIN
    IF own IS NULL THEN
        RETURN;
    END IF;
    -- All of them before the first is entered, from where the others cannot be seen. Paths are of different lengths.
    PERFORM set_config('nimbus.tenant_id', '', true);
    SELECT array_agg(t.id ORDER BY t.path), array_agg(t.schema_name ORDER BY t.path), array_agg(t.name ORDER BY t.path),
           array_agg(t.path::text ORDER BY t.path)
        INTO ids, schemas, names, paths
        FROM tenants t WHERE t.deleted_at IS NULL AND t.path @> ARRAY[own];
    FOR place IN 1 .. COALESCE(cardinality(ids), 0) LOOP
        EXIT WHEN seen >= most;
        PERFORM set_config('nimbus.tenant_id', ids[place]::text, true);
        RETURN QUERY EXECUTE format(
            'SELECT $1, $4, $5, d.id, d.deployment, d.environment, d.rehearsal, d.stack, d.component_version, d.status
             FROM %I.deployed_components d JOIN %I.deployments p ON p.tenant_id = d.tenant_id AND p.id = d.deployment
             WHERE d.tenant_id = $1 AND d.component = $2 AND d.component_owner = $3 AND d.status <> ''destroyed''
               AND p.archived_at IS NULL ORDER BY d.deployment, d.environment, d.rehearsal, d.stack LIMIT $6',
            schemas[place], schemas[place])
            USING ids[place], wanted, whose, names[place], paths[place]::uuid[], most - seen;
        GET DIAGNOSTICS part = ROW_COUNT;
        seen := seen + part;
    END LOOP;
    PERFORM set_config('nimbus.tenant_id', acting, true);
END $$;

-- What a run leaves an instance with. What was deployed is what the run was made of; an upgrade that came to nothing
-- leaves the version of before. After run_moves_components, which comes first by its name.
CREATE FUNCTION run_settles_upgrades() RETURNS trigger
LANGUAGE plpgsql SET search_path = nimbus_core, pg_temp
AS $$
DECLARE
    chosen jsonb := NEW.request -> 'options' -> 'stacks';
BEGIN
    IF NEW.action <> 'deploy' OR NEW.status NOT IN ('running', 'ended')
        OR (OLD.status = NEW.status AND OLD.result IS NOT DISTINCT FROM NEW.result) THEN
        RETURN NULL;
    END IF;
    IF NEW.status = 'running' THEN
        EXECUTE pg_catalog.format('UPDATE %I.deployed_components SET status = ''upgrading'', updated_at = now()
            WHERE tenant_id = $1 AND upgrade_run = $2', TG_TABLE_SCHEMA) USING NEW.tenant_id, NEW.id;
    ELSIF NEW.result = 'succeeded' THEN
        -- An upgrade that waits keeps the version that it was asked for.
        EXECUTE pg_catalog.format('UPDATE %I.deployed_components d SET component_version = (c.value ->> ''version'')::integer,
                component_owner = (c.value ->> ''owner'')::uuid, upgrade_run = NULL, upgrade_from = NULL
            FROM jsonb_each($5) c WHERE d.tenant_id = $1 AND d.deployment = $2 AND d.environment = $3 AND d.rehearsal = $4
                AND d.stack = c.key AND (d.upgrade_run IS NULL OR d.upgrade_run = $7)
                AND ($6 IS NULL OR jsonb_typeof($6) <> ''array'' OR $6 ? d.stack)', TG_TABLE_SCHEMA)
            USING NEW.tenant_id, NEW.deployment, NEW.environment, NEW.rehearsal, NEW.catalog, chosen, NEW.id;
    ELSE
        EXECUTE pg_catalog.format('UPDATE %I.deployed_components SET component_version = upgrade_from, upgrade_run = NULL,
                upgrade_from = NULL WHERE tenant_id = $1 AND upgrade_run = $2', TG_TABLE_SCHEMA)
            USING NEW.tenant_id, NEW.id;
    END IF;
    RETURN NULL;
END $$;

REVOKE ALL ON FUNCTION rollout_note(), rollout_note_all(), rollout_tenants(), rollout_turn(), rollout_none(),
    rollout_forget(uuid), fleet_instances(text, uuid, bigint), run_settles_upgrades() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION rollout_note(), rollout_note_all(), rollout_tenants(), rollout_turn(), rollout_none(),
    rollout_forget(uuid), fleet_instances(text, uuid, bigint) TO {{app}};
