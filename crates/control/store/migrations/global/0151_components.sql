-- The catalog: components as somebody edits them, and their versions, which stay as they were published.
--
-- A component of the operator's own tenant is everybody's, once it is published. Whoever acts for another tenant reads
-- it through the functions below and not through the tables.
CREATE TABLE components (
    tenant_id uuid NOT NULL DEFAULT current_tenant() REFERENCES tenants (id),
    id uuid NOT NULL,
    name text NOT NULL CHECK (name <> '' AND length(name) <= 200),
    display_name text NOT NULL CHECK (length(display_name) <= 200),
    description text NOT NULL DEFAULT '' CHECK (length(description) <= 2000),
    provider text NOT NULL REFERENCES semantic_providers (name),
    semantic_type text NOT NULL REFERENCES semantic_resource_types (name),
    language text NOT NULL CHECK (language IN ('typescript', 'python')),
    -- Texts of the draft's files by path, its contract, and what else its stack template says.
    code jsonb NOT NULL CHECK (jsonb_typeof(code) = 'object'),
    input_schema jsonb NOT NULL,
    output_schema jsonb NOT NULL,
    resolver_bindings jsonb NOT NULL DEFAULT '{}',
    settings jsonb NOT NULL DEFAULT '{}',
    -- The newest version; none of it is published while it is zero.
    version integer NOT NULL DEFAULT 0 CHECK (version >= 0),
    is_published boolean NOT NULL DEFAULT false,
    is_system boolean NOT NULL DEFAULT false,
    upgrade_workflow_id uuid,
    -- Counts changes of the draft; the entity tag of the API.
    revision bigint NOT NULL DEFAULT 1,
    created_by uuid NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    updated_by uuid NOT NULL,
    deleted_at timestamptz,
    PRIMARY KEY (tenant_id, id)
);
-- Manifests name components, so a tenant has each name once, whatever the cloud.
CREATE UNIQUE INDEX components_name ON components (tenant_id, name) WHERE deleted_at IS NULL;
SELECT protect_tenant_table('components');

CREATE TABLE component_versions (
    tenant_id uuid NOT NULL DEFAULT current_tenant() REFERENCES tenants (id),
    id uuid NOT NULL,
    component_id uuid NOT NULL,
    version integer NOT NULL CHECK (version > 0),
    -- Major, minor, patch: from what the contract changed.
    semantic_version text NOT NULL,
    -- All of the component as it was.
    name text NOT NULL,
    display_name text NOT NULL,
    description text NOT NULL,
    provider text NOT NULL,
    semantic_type text NOT NULL,
    language text NOT NULL,
    code jsonb NOT NULL,
    input_schema jsonb NOT NULL,
    output_schema jsonb NOT NULL,
    resolver_bindings jsonb NOT NULL,
    settings jsonb NOT NULL,
    -- SHA-256 over everything that a deployment is made from.
    digest bytea NOT NULL CHECK (length(digest) = 32),
    changelog text NOT NULL CHECK (changelog <> '' AND length(changelog) <= 10000),
    -- What changed in the contract since the version before.
    changes jsonb NOT NULL DEFAULT '[]',
    published_at timestamptz NOT NULL DEFAULT now(),
    published_by uuid NOT NULL,
    deprecated_at timestamptz,
    deprecation text CHECK (length(deprecation) <= 1000),
    PRIMARY KEY (tenant_id, component_id, version),
    UNIQUE (tenant_id, id),
    FOREIGN KEY (tenant_id, component_id) REFERENCES components (tenant_id, id)
);
SELECT protect_tenant_table('component_versions');
-- What was published stays; only that it should not be used any more can be said later.
REVOKE UPDATE, DELETE ON component_versions FROM {{app}};
GRANT UPDATE (deprecated_at, deprecation) ON component_versions TO {{app}};

-- The newest version of each component of the operator that can be deployed, without code.
CREATE FUNCTION shared_components() RETURNS SETOF components
LANGUAGE plpgsql SECURITY DEFINER SET search_path = nimbus_core, pg_temp
AS $$
DECLARE
    acting text := COALESCE(current_setting('nimbus.tenant_id', true), '');
BEGIN
    PERFORM set_config('nimbus.tenant_id', '', true);
    PERFORM set_config('nimbus.tenant_id', COALESCE((SELECT id::text FROM tenants WHERE parent_id IS NULL), ''), true);
    RETURN QUERY SELECT c.tenant_id, c.id, c.name, v.display_name, v.description, v.provider, v.semantic_type, v.language,
        '{}'::jsonb, v.input_schema, v.output_schema, v.resolver_bindings, v.settings, c.version, c.is_published,
        c.is_system, c.upgrade_workflow_id, c.revision, c.created_by, c.created_at, c.updated_at, c.updated_by, c.deleted_at
        FROM components c JOIN component_versions v
            ON v.tenant_id = c.tenant_id AND v.component_id = c.id AND v.version = c.version
        WHERE c.deleted_at IS NULL AND c.version > 0 ORDER BY c.name;
    PERFORM set_config('nimbus.tenant_id', acting, true);
END $$;

-- Versions of a component of the operator, newest first. Those of one that was deleted as well: instances go on with them.
CREATE FUNCTION shared_versions(wanted text) RETURNS SETOF component_versions
LANGUAGE plpgsql SECURITY DEFINER SET search_path = nimbus_core, pg_temp
AS $$
DECLARE
    acting text := COALESCE(current_setting('nimbus.tenant_id', true), '');
BEGIN
    PERFORM set_config('nimbus.tenant_id', '', true);
    PERFORM set_config('nimbus.tenant_id', COALESCE((SELECT id::text FROM tenants WHERE parent_id IS NULL), ''), true);
    RETURN QUERY SELECT v.* FROM component_versions v WHERE v.name = wanted ORDER BY v.published_at DESC, v.version DESC;
    PERFORM set_config('nimbus.tenant_id', acting, true);
END $$;

REVOKE ALL ON FUNCTION shared_components(), shared_versions(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION shared_components(), shared_versions(text) TO {{app}}, {{readonly}};
