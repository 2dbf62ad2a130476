-- What tenants may do with components. A rule is for a tenant and everything below it; all rules on the way to the root
-- hold, so that one further down can only allow less.
CREATE TABLE component_governance (
    tenant_id uuid NOT NULL DEFAULT current_tenant() REFERENCES tenants (id),
    id uuid NOT NULL,
    -- The component's name, or * for all that have no rule of their own here.
    component text NOT NULL CHECK (component <> '' AND length(component) <= 200),
    is_allowed boolean NOT NULL,
    parameter_constraints jsonb NOT NULL DEFAULT '{}' CHECK (jsonb_typeof(parameter_constraints) = 'object'),
    max_instances integer CHECK (max_instances >= 0),
    reason text NOT NULL DEFAULT '' CHECK (length(reason) <= 500),
    -- Who set it, by a name that stays when they are gone, and the tenant they acted from.
    set_by uuid NOT NULL,
    set_by_name text NOT NULL,
    set_from uuid NOT NULL,
    set_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, component),
    UNIQUE (tenant_id, id)
);
SELECT protect_tenant_table('component_governance');

-- Every rule that holds for a tenant that the caller may ask about, from the root down.
CREATE FUNCTION governance_rules(of_tenant uuid)
RETURNS TABLE (owner uuid, owner_name text, depth integer, id uuid, component text, is_allowed boolean,
    parameter_constraints jsonb, max_instances integer, reason text, set_by_name text, set_from uuid, set_at timestamptz)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = nimbus_core, pg_temp
AS $$
DECLARE
    acting text := COALESCE(current_setting('nimbus.tenant_id', true), '');
    ancestors uuid[] := visible_path(of_tenant);
    names text[];
BEGIN
    PERFORM set_config('nimbus.tenant_id', '', true);
    SELECT array_agg(t.name ORDER BY cardinality(t.path)) INTO names FROM tenants t WHERE t.id = ANY (ancestors);
    FOR place IN 1 .. COALESCE(cardinality(ancestors), 0) LOOP
        PERFORM set_config('nimbus.tenant_id', ancestors[place]::text, true);
        RETURN QUERY SELECT ancestors[place], names[place], place, g.id, g.component, g.is_allowed,
            g.parameter_constraints, g.max_instances, g.reason, g.set_by_name, g.set_from, g.set_at
            FROM component_governance g ORDER BY g.component;
    END LOOP;
    PERFORM set_config('nimbus.tenant_id', acting, true);
END $$;

-- Instances of a component that a tenant and everything below it have, or are about to have.
CREATE FUNCTION instance_count(top uuid, wanted text, rehearsed boolean) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = nimbus_core, pg_temp
AS $$
DECLARE
    acting text := COALESCE(current_setting('nimbus.tenant_id', true), '');
    ids uuid[];
    schemas text[];
    part bigint;
    total bigint := 0;
BEGIN
    -- All of them before the first is entered, from where the others cannot be seen.
    PERFORM set_config('nimbus.tenant_id', '', true);
    SELECT array_agg(t.id), array_agg(t.schema_name) INTO ids, schemas
        FROM tenants t WHERE t.path @> ARRAY[top] AND t.deleted_at IS NULL;
    FOR place IN 1 .. COALESCE(cardinality(ids), 0) LOOP
        PERFORM set_config('nimbus.tenant_id', ids[place]::text, true);
        EXECUTE format('SELECT count(*) FROM %I.deployed_components
                        WHERE tenant_id = $1 AND component = $2 AND rehearsal = $3 AND status <> ''destroyed''',
                       schemas[place]) INTO part USING ids[place], wanted, rehearsed;
        total := total + part;
    END LOOP;
    PERFORM set_config('nimbus.tenant_id', acting, true);
    RETURN total;
END $$;

-- Refuses when a tenant, or one above it, has more instances of a component than a rule allows. After they were put down,
-- in the same transaction: of two that want the last one, the second waits here and then sees the first. Locks are taken
-- from the root down, so that nobody waits in a circle.
CREATE FUNCTION instances_check(wanted text, rehearsed boolean, added bigint) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = nimbus_core, pg_temp
AS $$
DECLARE
    rule record;
    used bigint;
BEGIN
    FOR rule IN SELECT DISTINCT ON (g.depth) g.owner, g.owner_name, g.id, g.max_instances
                FROM governance_rules(current_tenant()) g WHERE g.component IN (wanted, '*')
                ORDER BY g.depth, (g.component = '*') LOOP
        CONTINUE WHEN rule.max_instances IS NULL;
        PERFORM pg_catalog.pg_advisory_xact_lock(
            pg_catalog.hashtextextended(pg_catalog.format('instances %s %s', wanted, rule.owner), 0));
        -- A statement of its own: what was committed during the wait counts.
        used := instance_count(rule.owner, wanted, rehearsed);
        IF used > rule.max_instances THEN
            RAISE EXCEPTION 'instances' USING ERRCODE = 'NB004',
                DETAIL = pg_catalog.format('%s %s %s', rule.max_instances, GREATEST(used - added, 0), rule.id);
        END IF;
    END LOOP;
END $$;

-- Who uses a component: instances of the acting tenant, or of everybody when the operator asks about one of its own. Those
-- that have another component of this name, by its owner, are not among them.
CREATE FUNCTION component_users(wanted text)
RETURNS TABLE (tenant uuid, tenant_name text, deployment text, environment text, rehearsal boolean, stack text,
    version integer, manifest text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = nimbus_core, pg_temp
AS $$
DECLARE
    acting text := COALESCE(current_setting('nimbus.tenant_id', true), '');
    own uuid := current_tenant();
    ids uuid[];
    schemas text[];
    names text[];
BEGIN
    IF own IS NULL THEN
        RETURN;
    END IF;
    PERFORM set_config('nimbus.tenant_id', '', true);
    SELECT array_agg(t.id), array_agg(t.schema_name), array_agg(t.name) INTO ids, schemas, names
        FROM tenants t WHERE t.deleted_at IS NULL
          AND (t.id = own OR EXISTS (SELECT FROM tenants r WHERE r.id = own AND r.parent_id IS NULL));
    FOR place IN 1 .. COALESCE(cardinality(ids), 0) LOOP
        PERFORM set_config('nimbus.tenant_id', ids[place]::text, true);
        RETURN QUERY EXECUTE format(
            'SELECT $1, $4, d.deployment, d.environment, d.rehearsal, d.stack, d.component_version, p.manifest
             FROM %I.deployed_components d JOIN %I.deployments p ON p.tenant_id = d.tenant_id AND p.id = d.deployment
             WHERE d.tenant_id = $1 AND d.component = $2 AND d.component_owner = $3 AND d.status <> ''destroyed''
               AND p.archived_at IS NULL ORDER BY d.deployment, d.environment, d.stack',
            schemas[place], schemas[place]) USING ids[place], wanted, own, names[place];
    END LOOP;
    PERFORM set_config('nimbus.tenant_id', acting, true);
END $$;

-- A run that begins or ends moves the instances that it is about.
CREATE FUNCTION run_moves_components() RETURNS trigger
LANGUAGE plpgsql SET search_path = nimbus_core, pg_temp
AS $$
DECLARE
    chosen jsonb := NEW.request -> 'options' -> 'stacks';
    others boolean := false;
    becomes text;
BEGIN
    IF NEW.action NOT IN ('deploy', 'destroy') OR NEW.status NOT IN ('running', 'ended')
        OR (OLD.status = NEW.status AND OLD.result IS NOT DISTINCT FROM NEW.result) THEN
        RETURN NULL;
    END IF;
    IF NEW.status = 'ended' THEN
        -- Another run that is still to come keeps the instances that it was queued for.
        EXECUTE pg_catalog.format('SELECT EXISTS (SELECT FROM %I.runs WHERE tenant_id = $1 AND deployment = $2
                AND environment = $3 AND rehearsal = $4 AND id <> $5 AND action = ''deploy''
                AND status IN (''queued'', ''running'', ''paused''))', TG_TABLE_SCHEMA)
            INTO others USING NEW.tenant_id, NEW.deployment, NEW.environment, NEW.rehearsal, NEW.id;
    END IF;
    becomes := CASE
        WHEN NEW.status = 'running' AND NEW.action = 'deploy' THEN 'CASE WHEN status = ''deployed'' THEN ''upgrading'' ELSE ''deploying'' END'
        WHEN NEW.status = 'running' THEN '''destroying'''
        WHEN NEW.action = 'destroy' AND NEW.result = 'succeeded' THEN
            CASE WHEN others THEN '''pending''' ELSE '''destroyed''' END
        WHEN NEW.result = 'succeeded' THEN '''deployed'''
        -- Taken back, and proved: what was there before is there again.
        WHEN NEW.result = 'rolled_back' THEN
            'CASE WHEN deployed_at IS NULL THEN ' || CASE WHEN others THEN '''pending''' ELSE '''destroyed''' END || ' ELSE ''deployed'' END'
        -- It never began, so nothing was made.
        WHEN NEW.began_at IS NULL THEN
            'CASE WHEN status = ''pending'' AND deployed_at IS NULL THEN ' || CASE WHEN others THEN '''pending''' ELSE '''destroyed''' END || ' ELSE status END'
        ELSE '''failed'''
    END;
    EXECUTE pg_catalog.format('UPDATE %I.deployed_components SET status = %s, updated_at = now(),
            deployed_at = CASE WHEN $6 THEN now() WHEN $7 THEN NULL ELSE deployed_at END,
            error_message = CASE WHEN $8 IS NULL THEN NULL ELSE $8 END
        WHERE tenant_id = $1 AND deployment = $2 AND environment = $3 AND rehearsal = $4 AND status <> ''destroyed''
          AND ($5 IS NULL OR jsonb_typeof($5) <> ''array'' OR $5 ? stack)', TG_TABLE_SCHEMA, becomes)
        USING NEW.tenant_id, NEW.deployment, NEW.environment, NEW.rehearsal, chosen,
            NEW.status = 'ended' AND NEW.action = 'deploy' AND NEW.result = 'succeeded',
            NEW.status = 'ended' AND NEW.action = 'destroy' AND NEW.result = 'succeeded',
            CASE WHEN NEW.status = 'ended' AND NEW.result IS DISTINCT FROM 'succeeded'
                THEN COALESCE(NEW.problem ->> 'message', 'the run ended ' || COALESCE(NEW.result, 'early')) END;
    -- An environment that waits for this run is ready, or is not.
    IF NEW.status = 'ended' THEN
        UPDATE tenant_environments SET status = CASE
                WHEN NEW.action = 'destroy' THEN CASE WHEN NEW.result = 'succeeded' THEN 'deleted' ELSE 'failed' END
                WHEN NEW.result = 'succeeded' THEN 'active' ELSE 'failed' END,
            deleted_at = CASE WHEN NEW.action = 'destroy' AND NEW.result = 'succeeded' THEN now() END, updated_at = now()
            WHERE tenant_id = NEW.tenant_id AND run = NEW.id AND status IN ('provisioning', 'deleting');
    END IF;
    RETURN NULL;
END $$;

REVOKE ALL ON FUNCTION governance_rules(uuid), instance_count(uuid, text, boolean), instances_check(text, boolean, bigint),
    component_users(text), run_moves_components() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION governance_rules(uuid), instances_check(text, boolean, bigint), component_users(text) TO {{app}};
