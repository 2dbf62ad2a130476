-- Resolvers: which there are, how they are configured, and what they have given to whom.

-- The registry, as the program has it; a test compares them.
CREATE TABLE resolvers (
    id uuid PRIMARY KEY,
    resolver_type text NOT NULL UNIQUE CHECK (resolver_type <> '' AND length(resolver_type) <= 50),
    display_name text NOT NULL CHECK (length(display_name) <= 200),
    description text NOT NULL,
    input_schema jsonb NOT NULL,
    output_schema jsonb NOT NULL,
    handler_class text NOT NULL CHECK (length(handler_class) <= 200),
    is_system boolean NOT NULL
);
SELECT protect_installation_table('resolvers');
CREATE POLICY everybody ON resolvers FOR SELECT TO {{app}}, {{readonly}} USING (true);
GRANT SELECT ON resolvers TO {{app}}, {{readonly}};

-- The same ids everywhere: a backup of one installation refers to them in another.
INSERT INTO resolvers (id, resolver_type, display_name, description, input_schema, output_schema, handler_class, is_system) VALUES
    ('00000000-0000-4000-8000-000000000001', 'ipam', 'IP address management', 'Allocates blocks and addresses from pools, without duplicates.',
     '{"type": "object", "properties": {"allocation_type": {"type": "string", "enum": ["block", "address"], "description": "a block of addresses (default), or one address of a pool of hosts"}, "prefix_length": {"type": "integer", "minimum": 0, "maximum": 128, "description": "how large a block is; required for one"}, "parent_scope": {"type": "string", "minLength": 1, "maxLength": 200, "description": "the pool to take it from, instead of the configured one"}, "label": {"type": "string", "minLength": 1, "maxLength": 200, "description": "tells two questions of one unit apart that are otherwise the same"}}, "required": [], "additionalProperties": false}',
     '{"type": "object", "properties": {"cidr": {"type": "string", "minLength": 1, "maxLength": 200, "description": "the block; of an address, with the prefix of its pool"}, "address": {"type": "string", "minLength": 1, "maxLength": 200, "description": "the address; of a block, its first one"}, "gateway": {"type": "string", "minLength": 1, "maxLength": 200, "description": "the gateway of the block or of the pool"}, "subnet_id": {"type": "string", "minLength": 1, "maxLength": 200, "description": "the id of the lease or, of an address, of its pool"}, "pool": {"type": "string", "minLength": 1, "maxLength": 200, "description": "the pool that it was taken from"}}, "required": ["cidr", "address", "gateway", "subnet_id", "pool"], "additionalProperties": false}',
     'nimbus_resolvers::ipam', true),
    ('00000000-0000-4000-8000-000000000002', 'naming', 'Naming', 'Makes unique names by pattern, held to the rules of their type.',
     '{"type": "object", "properties": {"resource_type": {"type": "string", "minLength": 1, "maxLength": 200, "description": "what is named, such as vm"}, "environment": {"type": "string", "minLength": 1, "maxLength": 200, "description": "the environment in the name; that of the unit by default"}, "sequence": {"type": "integer", "minimum": 0, "maximum": 999999999, "description": "this very number; the lowest free one by default"}, "label": {"type": "string", "minLength": 1, "maxLength": 200, "description": "tells two questions of one unit apart that are otherwise the same"}}, "required": ["resource_type"], "additionalProperties": false}',
     '{"type": "object", "properties": {"name": {"type": "string", "minLength": 1, "maxLength": 200, "description": "the name"}, "fqdn": {"type": "string", "minLength": 1, "maxLength": 200, "description": "the name in the configured domain"}}, "required": ["name", "fqdn"], "additionalProperties": false}',
     'nimbus_resolvers::naming', true),
    ('00000000-0000-4000-8000-000000000003', 'image_catalog', 'Image catalog', 'Finds a cloud''s image for an operating system.',
     '{"type": "object", "properties": {"os_family": {"type": "string", "minLength": 1, "maxLength": 200, "description": "such as debian or windows"}, "os_version": {"type": "string", "minLength": 1, "maxLength": 200, "description": "such as 12; the newest that is not deprecated by default"}, "architecture": {"type": "string", "enum": ["x86_64", "arm64"], "description": "x86_64 by default"}, "region": {"type": "string", "minLength": 1, "maxLength": 200, "description": "that of the environment by default"}, "label": {"type": "string", "minLength": 1, "maxLength": 200, "description": "tells two questions of one unit apart that are otherwise the same"}}, "required": ["os_family"], "additionalProperties": false}',
     '{"type": "object", "properties": {"image_id": {"type": "string", "minLength": 1, "maxLength": 200, "description": "what the cloud''s provider takes"}, "image_name": {"type": "string", "minLength": 1, "maxLength": 200, "description": "the image in words"}}, "required": ["image_id", "image_name"], "additionalProperties": false}',
     'nimbus_resolvers::images', true),
    ('00000000-0000-4000-8000-000000000004', 'secret', 'Secret provisioner', 'Makes secrets by rules and keeps them; only references are shown.',
     '{"type": "object", "properties": {"name": {"type": "string", "minLength": 1, "maxLength": 200, "description": "what it is for, such as db-admin"}, "length": {"type": "integer", "minimum": 8, "maximum": 256, "description": "how many characters it has"}, "symbols": {"type": "boolean", "description": "whether it has signs besides letters and digits"}, "label": {"type": "string", "minLength": 1, "maxLength": 200, "description": "tells two questions of one unit apart that are otherwise the same"}}, "required": ["name"], "additionalProperties": false}',
     '{"type": "object", "properties": {"reference": {"type": "string", "minLength": 1, "maxLength": 200, "description": "what names the secret; not the secret"}, "value": {"type": "string", "minLength": 1, "maxLength": 200, "description": "the secret itself, for a program''s configuration alone", "secret": true}}, "required": ["reference", "value"], "additionalProperties": false}',
     'nimbus_resolvers::secrets', true);

-- Configuration of a resolver: for everything of a tenant, for a landing zone, or for an environment. The
-- nearest lies on top. A tenant has an environment of a name once in a zone, so both together are one environment; a
-- name alone is for environments outside of zones as well.
CREATE TABLE resolver_configurations (
    tenant_id uuid NOT NULL DEFAULT current_tenant() REFERENCES tenants (id),
    id uuid NOT NULL DEFAULT gen_random_uuid(),
    resolver_id uuid NOT NULL REFERENCES resolvers (id),
    -- The zone may be the operator's.
    landing_zone_id uuid,
    landing_zone text,
    environment text CHECK (environment <> '' AND length(environment) <= 63),
    config jsonb NOT NULL CHECK (jsonb_typeof(config) = 'object'),
    updated_by uuid NOT NULL,
    updated_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, id),
    CHECK ((landing_zone_id IS NULL) = (landing_zone IS NULL))
);
CREATE UNIQUE INDEX resolver_configurations_place
    ON resolver_configurations (tenant_id, resolver_id, landing_zone_id, environment) NULLS NOT DISTINCT;
SELECT protect_tenant_table('resolver_configurations');

-- Images besides those that the program ships.
CREATE TABLE image_catalog (
    tenant_id uuid NOT NULL DEFAULT current_tenant() REFERENCES tenants (id),
    id uuid NOT NULL DEFAULT gen_random_uuid(),
    cloud text NOT NULL CHECK (cloud <> '' AND length(cloud) <= 50),
    region text CHECK (region <> '' AND length(region) <= 100),
    os_family text NOT NULL CHECK (os_family <> '' AND length(os_family) <= 100),
    os_version text NOT NULL CHECK (os_version <> '' AND length(os_version) <= 100),
    architecture text NOT NULL,
    image_id text NOT NULL CHECK (image_id <> '' AND length(image_id) <= 400),
    image_name text NOT NULL CHECK (length(image_name) <= 400),
    deprecated boolean NOT NULL DEFAULT false,
    replaced_by text CHECK (length(replaced_by) <= 100),
    updated_by uuid NOT NULL,
    updated_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, id)
);
CREATE UNIQUE INDEX image_catalog_once
    ON image_catalog (tenant_id, cloud, region, os_family, os_version, architecture) NULLS NOT DISTINCT;
SELECT protect_tenant_table('image_catalog');

-- Pools of addresses. A child is a block of its parent.
CREATE TABLE address_pools (
    tenant_id uuid NOT NULL DEFAULT current_tenant() REFERENCES tenants (id),
    id uuid NOT NULL DEFAULT gen_random_uuid(),
    name text NOT NULL CHECK (name ~ '^[a-z0-9-]{1,63}$'),
    -- Whose environments may take from it; all of them without one.
    landing_zone_id uuid,
    landing_zone text,
    parent text,
    -- As text: arithmetic is the program's.
    cidr text NOT NULL,
    purpose text NOT NULL CHECK (purpose IN ('blocks', 'addresses')),
    gateway text,
    reserved jsonb NOT NULL DEFAULT '[]' CHECK (jsonb_typeof(reserved) = 'array'),
    created_by uuid NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, id),
    CHECK ((landing_zone_id IS NULL) = (landing_zone IS NULL))
);
CREATE UNIQUE INDEX address_pools_name ON address_pools (tenant_id, name);
SELECT protect_tenant_table('address_pools');

-- What something is taken from: a pool, or the numbers of a sequence. The row is the lock; rehearsals have a space
-- of their own, so that trying something takes nothing away.
CREATE TABLE lease_spaces (
    tenant_id uuid NOT NULL DEFAULT current_tenant() REFERENCES tenants (id),
    id uuid NOT NULL DEFAULT gen_random_uuid(),
    key text NOT NULL CHECK (length(key) <= 500),
    rehearsal boolean NOT NULL,
    bits smallint NOT NULL CHECK (bits IN (32, 128)),
    PRIMARY KEY (tenant_id, id)
);
CREATE UNIQUE INDEX lease_spaces_key ON lease_spaces (tenant_id, key, rehearsal);
SELECT protect_tenant_table('lease_spaces');

-- What is free of a space, in the fewest aligned blocks. What is in no row is taken.
CREATE TABLE lease_free (
    tenant_id uuid NOT NULL DEFAULT current_tenant() REFERENCES tenants (id),
    space_id uuid NOT NULL,
    base bytea NOT NULL CHECK (length(base) = 16),
    prefix smallint NOT NULL CHECK (prefix BETWEEN 0 AND 128),
    PRIMARY KEY (tenant_id, space_id, base),
    FOREIGN KEY (tenant_id, space_id) REFERENCES lease_spaces (tenant_id, id) ON DELETE CASCADE
);
SELECT protect_tenant_table('lease_free');

-- What was given. The row belongs to whose space it is from; held_by is who has it, the same tenant or one below.
CREATE TABLE resolver_leases (
    tenant_id uuid NOT NULL DEFAULT current_tenant() REFERENCES tenants (id),
    id uuid NOT NULL,
    held_by uuid NOT NULL,
    deployment text NOT NULL,
    environment text NOT NULL,
    component text NOT NULL,
    rehearsal boolean NOT NULL,
    resolver text NOT NULL,
    question text NOT NULL CHECK (length(question) <= 4000),
    status text NOT NULL CHECK (status IN ('leased', 'committed', 'released')),
    -- The run that holds it; a plan without one.
    holder bigint,
    earlier_run bigint,
    used_run bigint,
    from_run bigint,
    until_run bigint,
    -- The worker that asked for it last. One with an older epoch settles nothing.
    epoch bigint NOT NULL DEFAULT 0,
    space_id uuid,
    base bytea CHECK (length(base) = 16),
    prefix smallint,
    unique_name text CHECK (length(unique_name) <= 400),
    outputs jsonb NOT NULL,
    sealed bytea,
    taken_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    expires_at timestamptz,
    released_at timestamptz,
    -- Whether what was released is free again.
    returned boolean NOT NULL DEFAULT false,
    PRIMARY KEY (tenant_id, id)
);
-- A unit has one answer to a question.
CREATE UNIQUE INDEX resolver_leases_question
    ON resolver_leases (tenant_id, held_by, deployment, environment, rehearsal, component, question)
    WHERE status <> 'released';
CREATE UNIQUE INDEX resolver_leases_name ON resolver_leases (tenant_id, rehearsal, unique_name)
    WHERE status <> 'released' AND unique_name IS NOT NULL;
-- Whatever the program does, nothing is given twice.
CREATE UNIQUE INDEX resolver_leases_once ON resolver_leases (tenant_id, space_id, base)
    WHERE NOT returned AND base IS NOT NULL;
CREATE INDEX resolver_leases_ending ON resolver_leases (tenant_id, space_id)
    WHERE NOT returned AND (status = 'released' OR expires_at IS NOT NULL);
CREATE INDEX resolver_leases_taken ON resolver_leases (tenant_id, taken_at, id);
-- What is given back and free again is forgotten after a while.
CREATE INDEX resolver_leases_old ON resolver_leases (tenant_id, released_at) WHERE returned;
SELECT protect_tenant_table('resolver_leases');

-- A tenant cannot read rows of its ancestors. These answer for the tenant that is set, and give what an ancestor
-- lets those below it use.

-- The acting tenant and those above it, nearest first.
CREATE FUNCTION resolver_owners() RETURNS TABLE (id uuid, place integer)
LANGUAGE sql SECURITY DEFINER SET search_path = nimbus_core, pg_temp
AS $$
    SELECT l.id, (row_number() OVER (ORDER BY l.depth DESC))::integer FROM lineage(current_tenant()) l
$$;

CREATE FUNCTION resolver_layers(wanted text)
RETURNS TABLE (owner uuid, owner_name text, place integer, landing_zone_id uuid, landing_zone text, environment text,
    config jsonb)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = nimbus_core, pg_temp
AS $$
DECLARE
    acting text := COALESCE(current_setting('nimbus.tenant_id', true), '');
    owners uuid[];
BEGIN
    SELECT array_agg(o.id ORDER BY o.place) INTO owners FROM resolver_owners() o;
    FOR step IN 1 .. COALESCE(cardinality(owners), 0) LOOP
        PERFORM set_config('nimbus.tenant_id', owners[step]::text, true);
        RETURN QUERY
            SELECT t.id, t.name, step, c.landing_zone_id, c.landing_zone, c.environment, c.config
            FROM tenants t
            JOIN resolver_configurations c ON c.tenant_id = t.id
            JOIN resolvers r ON r.id = c.resolver_id AND r.resolver_type = wanted
            WHERE t.id = owners[step];
    END LOOP;
    PERFORM set_config('nimbus.tenant_id', acting, true);
END $$;

-- The pools that the acting tenant may use, the nearest first.
CREATE FUNCTION resolver_pools(wanted text)
RETURNS TABLE (owner uuid, owner_name text, place integer, id uuid, name text, landing_zone_id uuid, landing_zone text,
    parent text, cidr text, purpose text, gateway text, reserved jsonb, created_at timestamptz)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = nimbus_core, pg_temp
AS $$
DECLARE
    acting text := COALESCE(current_setting('nimbus.tenant_id', true), '');
    owners uuid[];
BEGIN
    SELECT array_agg(o.id ORDER BY o.place) INTO owners FROM resolver_owners() o;
    FOR step IN 1 .. COALESCE(cardinality(owners), 0) LOOP
        PERFORM set_config('nimbus.tenant_id', owners[step]::text, true);
        RETURN QUERY
            SELECT t.id, t.name, step, p.id, p.name, p.landing_zone_id, p.landing_zone, p.parent, p.cidr, p.purpose,
                   p.gateway, p.reserved, p.created_at
            FROM tenants t JOIN address_pools p ON p.tenant_id = t.id
            WHERE t.id = owners[step] AND (wanted IS NULL OR p.name = wanted)
            ORDER BY p.name;
    END LOOP;
    PERFORM set_config('nimbus.tenant_id', acting, true);
END $$;

-- The images that the acting tenant may use, the nearest first.
CREATE FUNCTION resolver_images()
RETURNS TABLE (owner_name text, place integer, id uuid, cloud text, region text, os_family text, os_version text,
    architecture text, image_id text, image_name text, deprecated boolean, replaced_by text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = nimbus_core, pg_temp
AS $$
DECLARE
    acting text := COALESCE(current_setting('nimbus.tenant_id', true), '');
    owners uuid[];
BEGIN
    SELECT array_agg(o.id ORDER BY o.place) INTO owners FROM resolver_owners() o;
    FOR step IN 1 .. COALESCE(cardinality(owners), 0) LOOP
        PERFORM set_config('nimbus.tenant_id', owners[step]::text, true);
        RETURN QUERY
            SELECT t.name, step, i.id, i.cloud, i.region, i.os_family, i.os_version, i.architecture, i.image_id,
                   i.image_name, i.deprecated, i.replaced_by
            FROM tenants t JOIN image_catalog i ON i.tenant_id = t.id
            WHERE t.id = owners[step] ORDER BY i.cloud, i.os_family, i.os_version, i.id;
    END LOOP;
    PERFORM set_config('nimbus.tenant_id', acting, true);
END $$;

-- Whose spaces something of the acting tenant's environment was taken from.
CREATE FUNCTION resolver_lease_owners(of_deployment text, of_environment text, of_rehearsal boolean)
RETURNS SETOF uuid
LANGUAGE plpgsql SECURITY DEFINER SET search_path = nimbus_core, pg_temp
AS $$
DECLARE
    acting text := COALESCE(current_setting('nimbus.tenant_id', true), '');
    asking uuid := current_tenant();
    owners uuid[];
BEGIN
    SELECT array_agg(o.id ORDER BY o.place) INTO owners FROM resolver_owners() o;
    FOR step IN 1 .. COALESCE(cardinality(owners), 0) LOOP
        PERFORM set_config('nimbus.tenant_id', owners[step]::text, true);
        RETURN QUERY
            SELECT owners[step] WHERE EXISTS (
                SELECT FROM resolver_leases l
                WHERE l.tenant_id = owners[step] AND l.held_by = asking AND l.deployment = of_deployment
                  AND l.environment = of_environment AND l.rehearsal = of_rehearsal AND l.status <> 'released');
    END LOOP;
    PERFORM set_config('nimbus.tenant_id', acting, true);
END $$;

-- How much a tenant and those below it have from spaces of some others. Asked by whoever changes the tree.
CREATE FUNCTION leases_held(top uuid, owners uuid[]) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = nimbus_core, pg_temp
AS $$
DECLARE
    acting text := COALESCE(current_setting('nimbus.tenant_id', true), '');
    holders uuid[];
    part bigint;
    total bigint := 0;
BEGIN
    PERFORM set_config('nimbus.tenant_id', '', true);
    SELECT array_agg(t.id) INTO holders FROM tenants t WHERE t.path @> ARRAY[top];
    FOR step IN 1 .. COALESCE(cardinality(owners), 0) LOOP
        PERFORM set_config('nimbus.tenant_id', owners[step]::text, true);
        -- What only a plan holds lets go by itself.
        SELECT count(*) INTO part FROM resolver_leases l
            WHERE l.tenant_id = owners[step] AND l.held_by = ANY (holders)
              AND (l.status = 'committed' OR l.status = 'leased' AND l.holder IS NOT NULL);
        total := total + part;
    END LOOP;
    PERFORM set_config('nimbus.tenant_id', acting, true);
    RETURN total;
END $$;

REVOKE ALL ON FUNCTION resolver_owners(), resolver_layers(text), resolver_pools(text), resolver_images(),
    resolver_lease_owners(text, text, boolean), leases_held(uuid, uuid[]) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION resolver_layers(text), resolver_pools(text), resolver_images(),
    resolver_lease_owners(text, text, boolean) TO {{app}};
