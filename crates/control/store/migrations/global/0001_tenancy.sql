-- The registry of tenants, and how tables are kept apart.
--
-- Files here run once per installation with the search path at nimbus_core; files of ../tenant run
-- once per tenant schema. {{owner}}, {{app}} and {{readonly}} are the three roles.

-- Who the caller acts for. An absent or empty setting is nobody, a malformed one is an error.
CREATE FUNCTION current_tenant() RETURNS uuid
LANGUAGE sql STABLE PARALLEL SAFE
RETURN NULLIF(pg_catalog.current_setting('nimbus.tenant_id', true), '')::uuid;

-- Every table with rows of tenants goes through this: rows are seen and written only by the tenant
-- that is set, by the owner of the table as well.
CREATE FUNCTION protect_tenant_table(target regclass) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    EXECUTE format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY', target);
    EXECUTE format('ALTER TABLE %s FORCE ROW LEVEL SECURITY', target);
    EXECUTE format(
        'CREATE POLICY tenant_isolation ON %s
             USING (tenant_id = (SELECT nimbus_core.current_tenant()))
             WITH CHECK (tenant_id = (SELECT nimbus_core.current_tenant()))', target);
    EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %s TO {{app}}', target);
    EXECUTE format('GRANT SELECT ON %s TO {{readonly}}', target);
END $$;

-- A table without rows of tenants: the owner's alone unless the migration grants and allows more.
CREATE FUNCTION protect_installation_table(target regclass) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    EXECUTE format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY', target);
    EXECUTE format('ALTER TABLE %s FORCE ROW LEVEL SECURITY', target);
    EXECUTE format('CREATE POLICY installation ON %s TO {{owner}} USING (true) WITH CHECK (true)', target);
END $$;

REVOKE ALL ON FUNCTION protect_tenant_table(regclass) FROM PUBLIC;
REVOKE ALL ON FUNCTION protect_installation_table(regclass) FROM PUBLIC;

SELECT protect_installation_table('migrations');
SELECT protect_installation_table('tenant_migrations');

-- One row: this installation.
CREATE TABLE installation (
    singleton boolean PRIMARY KEY DEFAULT true CHECK (singleton),
    id uuid NOT NULL,
    isolation text NOT NULL CHECK (isolation IN ('schema_with_rls', 'shared')),
    setup_token_hash bytea,
    setup_completed_at timestamptz,
    created_at timestamptz NOT NULL DEFAULT now()
);
SELECT protect_installation_table('installation');
CREATE POLICY setup ON installation TO {{app}} USING (true) WITH CHECK (true);
GRANT SELECT, UPDATE (setup_token_hash, setup_completed_at) ON installation TO {{app}};

-- The operator of the installation.
CREATE TABLE providers (
    id uuid PRIMARY KEY,
    name text NOT NULL CHECK (name <> '' AND length(name) <= 200),
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    deleted_at timestamptz
);

CREATE SEQUENCE tenant_numbers;

-- The tree. The row without a parent is the operator's own; path is every ancestor from it down to
-- the row itself.
CREATE TABLE tenants (
    id uuid PRIMARY KEY,
    provider_id uuid NOT NULL REFERENCES providers (id),
    parent_id uuid REFERENCES tenants (id),
    path uuid[] NOT NULL,
    slug text NOT NULL CHECK (slug ~ '^[a-z][a-z0-9]*(-[a-z0-9]+)*$' AND length(slug) <= 40),
    name text NOT NULL CHECK (name <> '' AND length(name) <= 200),
    isolation_type text NOT NULL CHECK (isolation_type IN ('schema_with_rls', 'shared')),
    schema_name text NOT NULL CHECK (schema_name ~ '^nimbus_(tenant_[0-9]+|shared)$'),
    settings jsonb NOT NULL DEFAULT '{}' CHECK (jsonb_typeof(settings) = 'object'),
    quotas jsonb NOT NULL DEFAULT '{}' CHECK (jsonb_typeof(quotas) = 'object'),
    generation bigint NOT NULL DEFAULT 1,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    deleted_at timestamptz,
    purge_after timestamptz,
    CHECK (path[cardinality(path)] = id),
    CHECK ((parent_id IS NULL) = (cardinality(path) = 1)),
    CHECK ((deleted_at IS NULL) = (purge_after IS NULL))
);
CREATE UNIQUE INDEX tenants_slug ON tenants (parent_id, slug) WHERE deleted_at IS NULL;
CREATE UNIQUE INDEX tenants_root ON tenants (provider_id) WHERE parent_id IS NULL;
CREATE INDEX tenants_path ON tenants USING gin (path);
CREATE INDEX tenants_purge ON tenants (purge_after) WHERE purge_after IS NOT NULL;

ALTER TABLE tenants ENABLE ROW LEVEL SECURITY;
ALTER TABLE tenants FORCE ROW LEVEL SECURITY;
-- A tenant sees itself and what is below it, so the operator sees all. Deleted ones are hidden.
CREATE POLICY subtree ON tenants FOR SELECT TO {{app}}, {{readonly}}
    USING (deleted_at IS NULL AND (SELECT current_tenant()) = ANY (path));
-- The owner changes the registry for a tenant within its subtree, and all of it for nobody.
CREATE POLICY registry ON tenants TO {{owner}}
    USING ((SELECT current_tenant()) IS NULL OR (SELECT current_tenant()) = ANY (path))
    WITH CHECK ((SELECT current_tenant()) IS NULL OR (SELECT current_tenant()) = ANY (path));
GRANT SELECT ON tenants TO {{app}}, {{readonly}};

ALTER TABLE providers ENABLE ROW LEVEL SECURITY;
ALTER TABLE providers FORCE ROW LEVEL SECURITY;
CREATE POLICY own ON providers FOR SELECT TO {{app}}, {{readonly}}
    USING (EXISTS (SELECT FROM tenants t WHERE t.provider_id = providers.id));
CREATE POLICY registry ON providers TO {{owner}} USING (true) WITH CHECK (true);
GRANT SELECT ON providers TO {{app}}, {{readonly}};

-- The one door into a tenant: sets who acts and where its tables are, for this transaction only.
CREATE FUNCTION enter_tenant(tenant uuid) RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    place text;
BEGIN
    PERFORM pg_catalog.set_config('nimbus.tenant_id', tenant::text, true);
    SELECT t.schema_name INTO place FROM nimbus_core.tenants t
        WHERE t.id = tenant AND t.deleted_at IS NULL;
    IF place IS NULL THEN
        PERFORM pg_catalog.set_config('nimbus.tenant_id', '', true);
        RAISE EXCEPTION 'no such tenant' USING ERRCODE = 'NB001';
    END IF;
    PERFORM pg_catalog.set_config('search_path', pg_catalog.quote_ident(place) || ', pg_temp', true);
END $$;

-- The tenant at the end of a path of slugs below the operator's; no slugs at all is the operator's
-- own. Signing in needs it before there is a tenant to act for, and it tells nothing but the id.
-- The owner sees the whole tree only while nobody is set.
CREATE FUNCTION find_tenant(slugs text[]) RETURNS uuid
LANGUAGE plpgsql SECURITY DEFINER SET search_path = nimbus_core, pg_temp
AS $$
DECLARE
    acting text := COALESCE(current_setting('nimbus.tenant_id', true), '');
    found uuid;
    step text;
BEGIN
    PERFORM set_config('nimbus.tenant_id', '', true);
    SELECT id INTO found FROM tenants WHERE parent_id IS NULL;
    FOREACH step IN ARRAY slugs LOOP
        SELECT id INTO found FROM tenants WHERE parent_id = found AND slug = step AND deleted_at IS NULL;
    END LOOP;
    PERFORM set_config('nimbus.tenant_id', acting, true);
    RETURN found;
END $$;
REVOKE ALL ON FUNCTION find_tenant(text[]) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION find_tenant(text[]) TO {{app}};
