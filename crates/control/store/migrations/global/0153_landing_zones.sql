-- Where environments live: a zone per cloud with an account, templates for environments in it, and the environments.
--
-- A zone of the operator is everybody's, once it is published.
CREATE TABLE landing_zones (
    tenant_id uuid NOT NULL DEFAULT current_tenant() REFERENCES tenants (id),
    id uuid NOT NULL,
    name text NOT NULL CHECK (name ~ '^[a-z]([a-z0-9-]{0,38}[a-z0-9])?$'),
    display_name text NOT NULL CHECK (length(display_name) <= 200),
    description text NOT NULL DEFAULT '' CHECK (length(description) <= 2000),
    provider text NOT NULL REFERENCES semantic_providers (name),
    -- The name of one of the tenant's cloud accounts.
    account text,
    region text NOT NULL DEFAULT '' CHECK (length(region) <= 100),
    -- Components of the zone itself, with their parameters.
    system_services jsonb NOT NULL DEFAULT '[]' CHECK (jsonb_typeof(system_services) = 'array'),
    system_services_topology_id uuid,
    status text NOT NULL DEFAULT 'draft' CHECK (status IN ('draft', 'published', 'retired')),
    revision bigint NOT NULL DEFAULT 1,
    created_by uuid NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    published_at timestamptz,
    deleted_at timestamptz,
    PRIMARY KEY (tenant_id, id)
);
CREATE UNIQUE INDEX landing_zones_name ON landing_zones (tenant_id, name) WHERE deleted_at IS NULL;
SELECT protect_tenant_table('landing_zones');

CREATE TABLE environment_templates (
    tenant_id uuid NOT NULL DEFAULT current_tenant() REFERENCES tenants (id),
    id uuid NOT NULL,
    zone_id uuid NOT NULL,
    name text NOT NULL CHECK (name ~ '^[a-z]([a-z0-9-]{0,38}[a-z0-9])?$'),
    description text NOT NULL DEFAULT '' CHECK (length(description) <= 2000),
    -- Components that every environment made from it has, with their parameters.
    mandatory_components jsonb NOT NULL DEFAULT '[]' CHECK (jsonb_typeof(mandatory_components) = 'array'),
    updated_at timestamptz NOT NULL DEFAULT now(),
    updated_by uuid NOT NULL,
    PRIMARY KEY (tenant_id, id),
    UNIQUE (tenant_id, zone_id, name),
    FOREIGN KEY (tenant_id, zone_id) REFERENCES landing_zones (tenant_id, id)
);
SELECT protect_tenant_table('environment_templates');

CREATE TABLE tenant_environments (
    tenant_id uuid NOT NULL DEFAULT current_tenant() REFERENCES tenants (id),
    id uuid NOT NULL,
    name text NOT NULL CHECK (name ~ '^[a-z]([a-z0-9-]{0,18}[a-z0-9])?$'),
    -- The zone may be the operator's.
    zone_owner uuid NOT NULL,
    zone_id uuid NOT NULL,
    zone_name text NOT NULL,
    template text,
    -- As they were when the environment was made.
    mandatory_components jsonb NOT NULL DEFAULT '[]',
    is_platform boolean NOT NULL DEFAULT false,
    rehearsal boolean NOT NULL DEFAULT false,
    status text NOT NULL CHECK (status IN ('provisioning', 'active', 'failed', 'deleting', 'deleted')),
    -- What its mandatory components are a deployment of, and the run that it waits for.
    deployment text,
    run uuid,
    created_by uuid NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    deleted_at timestamptz,
    PRIMARY KEY (tenant_id, id)
);
CREATE UNIQUE INDEX tenant_environments_name ON tenant_environments (tenant_id, zone_id, name) WHERE deleted_at IS NULL;
CREATE INDEX tenant_environments_run ON tenant_environments (tenant_id, run) WHERE run IS NOT NULL;
SELECT protect_tenant_table('tenant_environments');

-- Published zones of the operator, with their templates.
CREATE FUNCTION shared_zones() RETURNS SETOF landing_zones
LANGUAGE plpgsql SECURITY DEFINER SET search_path = nimbus_core, pg_temp
AS $$
DECLARE
    acting text := COALESCE(current_setting('nimbus.tenant_id', true), '');
BEGIN
    PERFORM set_config('nimbus.tenant_id', '', true);
    PERFORM set_config('nimbus.tenant_id', COALESCE((SELECT id::text FROM tenants WHERE parent_id IS NULL), ''), true);
    RETURN QUERY SELECT z.* FROM landing_zones z WHERE z.deleted_at IS NULL AND z.status = 'published' ORDER BY z.name;
    PERFORM set_config('nimbus.tenant_id', acting, true);
END $$;

CREATE FUNCTION shared_environment_templates(wanted uuid) RETURNS SETOF environment_templates
LANGUAGE plpgsql SECURITY DEFINER SET search_path = nimbus_core, pg_temp
AS $$
DECLARE
    acting text := COALESCE(current_setting('nimbus.tenant_id', true), '');
BEGIN
    PERFORM set_config('nimbus.tenant_id', '', true);
    PERFORM set_config('nimbus.tenant_id', COALESCE((SELECT id::text FROM tenants WHERE parent_id IS NULL), ''), true);
    RETURN QUERY SELECT e.* FROM environment_templates e JOIN landing_zones z ON z.tenant_id = e.tenant_id AND z.id = e.zone_id
        WHERE e.zone_id = wanted AND z.status = 'published' AND z.deleted_at IS NULL ORDER BY e.name;
    PERFORM set_config('nimbus.tenant_id', acting, true);
END $$;

-- How many environments a zone has, in all tenants; for the operator's zones that is everybody.
CREATE FUNCTION zone_use(wanted uuid) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = nimbus_core, pg_temp
AS $$
DECLARE
    acting text := COALESCE(current_setting('nimbus.tenant_id', true), '');
    one uuid;
    ids uuid[];
    part bigint;
    total bigint := 0;
BEGIN
    IF NOT EXISTS (SELECT FROM landing_zones WHERE id = wanted AND tenant_id = current_tenant()) THEN
        RETURN 0;
    END IF;
    PERFORM set_config('nimbus.tenant_id', '', true);
    SELECT array_agg(t.id) INTO ids FROM tenants t WHERE t.deleted_at IS NULL;
    FOREACH one IN ARRAY COALESCE(ids, '{}') LOOP
        PERFORM set_config('nimbus.tenant_id', one::text, true);
        SELECT count(*) INTO part FROM tenant_environments e
            WHERE e.tenant_id = one AND e.zone_id = wanted AND e.deleted_at IS NULL AND NOT e.is_platform;
        total := total + part;
    END LOOP;
    PERFORM set_config('nimbus.tenant_id', acting, true);
    RETURN total;
END $$;

REVOKE ALL ON FUNCTION shared_zones(), shared_environment_templates(uuid), zone_use(uuid) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION shared_zones(), shared_environment_templates(uuid) TO {{app}}, {{readonly}};
GRANT EXECUTE ON FUNCTION zone_use(uuid) TO {{app}};
