-- The configuration management database: what a tenant has, as the states of its units say and as people import it.
--
-- Every index begins with tenant_id and is used with operators that are leakproof (equality, and order of uuid, text and
-- times): under row-level security PostgreSQL uses no index for another one before it has looked at whose a row is.

-- What items can be. Those of resources come with the first of their kind; people make others.
CREATE TABLE ci_classes (
    tenant_id uuid NOT NULL DEFAULT nimbus_core.current_tenant(),
    id uuid NOT NULL DEFAULT gen_random_uuid(),
    name text COLLATE "C" NOT NULL CHECK (name <> '' AND length(name) <= 300),
    provider_type text CHECK (length(provider_type) <= 200),
    -- JSON Schema of what items of it say, for those that people import.
    attributes jsonb NOT NULL DEFAULT '{}' CHECK (jsonb_typeof(attributes) = 'object'),
    -- Which relationships items of it may begin, as a list of words; every one where it is empty.
    relationships jsonb NOT NULL DEFAULT '[]' CHECK (jsonb_typeof(relationships) = 'array'),
    description text NOT NULL DEFAULT '' CHECK (length(description) <= 500),
    -- Somebody made or described it.
    described boolean NOT NULL DEFAULT false,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, id),
    UNIQUE (tenant_id, name)
);
SELECT nimbus_core.protect_tenant_table('ci_classes');

CREATE TABLE configuration_items (
    tenant_id uuid NOT NULL DEFAULT nimbus_core.current_tenant(),
    id uuid NOT NULL,
    compartment_id uuid,
    ci_class_id uuid NOT NULL,
    cloud_resource_id text CHECK (length(cloud_resource_id) <= 1100),
    name text COLLATE "C" NOT NULL CHECK (name <> '' AND length(name) <= 300),
    attributes jsonb NOT NULL DEFAULT '{}' CHECK (jsonb_typeof(attributes) = 'object'),
    -- Attributes that are too large to be kept, by name.
    left_out text[] NOT NULL DEFAULT '{}',
    pulumi_urn text,
    -- SHA-256 of the state in which the item last changed.
    state_version text,
    source text NOT NULL CHECK (source IN ('run', 'import')),
    -- Where it comes from: a unit, or the key that an import gives it.
    deployment text,
    environment text,
    rehearsal boolean NOT NULL DEFAULT false,
    unit text,
    import_key text CHECK (length(import_key) <= 300),
    external boolean NOT NULL DEFAULT false,
    status text NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'decommissioned')),
    -- The run that changed it last.
    run uuid,
    revision integer NOT NULL DEFAULT 1,
    digest bytea NOT NULL CHECK (length(digest) = 32),
    -- Whether all of its words are kept, so that a search for any of them finds it.
    all_words boolean NOT NULL DEFAULT true,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    deleted_at timestamptz,
    PRIMARY KEY (tenant_id, id),
    FOREIGN KEY (tenant_id, compartment_id) REFERENCES compartments (tenant_id, id),
    FOREIGN KEY (tenant_id, ci_class_id) REFERENCES ci_classes (tenant_id, id),
    CHECK ((status = 'decommissioned') = (deleted_at IS NOT NULL)),
    CHECK (CASE source WHEN 'run' THEN pulumi_urn IS NOT NULL AND deployment IS NOT NULL AND environment IS NOT NULL
        AND unit IS NOT NULL AND import_key IS NULL ELSE import_key IS NOT NULL AND deployment IS NULL END)
);
-- A URN can be longer than an index takes. It is unique inside its unit.
CREATE UNIQUE INDEX configuration_items_urn ON configuration_items
    (tenant_id, deployment, environment, rehearsal, unit, md5(pulumi_urn)) WHERE source = 'run';
CREATE UNIQUE INDEX configuration_items_import ON configuration_items (tenant_id, import_key) WHERE source = 'import';
-- Lists are by name; what narrows a list down comes first.
CREATE INDEX configuration_items_name ON configuration_items (tenant_id, name, id) WHERE deleted_at IS NULL;
CREATE INDEX configuration_items_class ON configuration_items (tenant_id, ci_class_id, name, id) WHERE deleted_at IS NULL;
CREATE INDEX configuration_items_compartment ON configuration_items (tenant_id, compartment_id, name, id)
    WHERE deleted_at IS NULL;
CREATE INDEX configuration_items_gone ON configuration_items (tenant_id, name, id) WHERE deleted_at IS NOT NULL;
CREATE INDEX configuration_items_cloud ON configuration_items (tenant_id, md5(cloud_resource_id));
SELECT nimbus_core.protect_tenant_table('configuration_items');

CREATE TABLE ci_relationships (
    tenant_id uuid NOT NULL DEFAULT nimbus_core.current_tenant(),
    id uuid NOT NULL DEFAULT gen_random_uuid(),
    source_ci uuid NOT NULL,
    target_ci uuid NOT NULL,
    relationship text NOT NULL CHECK (relationship ~ '^[a-z][a-z0-9_]{0,63}$'),
    attributes jsonb NOT NULL DEFAULT '{}' CHECK (jsonb_typeof(attributes) = 'object'),
    -- Runs and imports keep what they said up to date; what people said stays until they take it back.
    source text NOT NULL CHECK (source IN ('run', 'import', 'person')),
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, id),
    UNIQUE (tenant_id, source_ci, target_ci, relationship),
    FOREIGN KEY (tenant_id, source_ci) REFERENCES configuration_items (tenant_id, id),
    FOREIGN KEY (tenant_id, target_ci) REFERENCES configuration_items (tenant_id, id),
    CHECK (source_ci <> target_ci)
);
CREATE INDEX ci_relationships_target ON ci_relationships (tenant_id, target_ci, source_ci);
SELECT nimbus_core.protect_tenant_table('ci_relationships');

-- What happened to items. Each change raises the item's revision.
CREATE TABLE ci_history (
    tenant_id uuid NOT NULL DEFAULT nimbus_core.current_tenant(),
    ci_id uuid NOT NULL,
    revision integer NOT NULL CHECK (revision > 0),
    change text NOT NULL,
    -- What is different, by field, with both values.
    changes jsonb NOT NULL DEFAULT '{}' CHECK (jsonb_typeof(changes) = 'object'),
    state_version text,
    run uuid,
    person uuid,
    at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (tenant_id, ci_id, revision),
    FOREIGN KEY (tenant_id, ci_id) REFERENCES configuration_items (tenant_id, id)
);
SELECT nimbus_core.protect_tenant_table('ci_history');
-- What happened stays.
REVOKE UPDATE ON ci_history FROM {{app}};

-- By which words items are found.
CREATE TABLE ci_words (
    tenant_id uuid NOT NULL DEFAULT nimbus_core.current_tenant(),
    word text COLLATE "C" NOT NULL CHECK (word <> '' AND length(word) <= 100),
    ci_id uuid NOT NULL,
    PRIMARY KEY (tenant_id, word, ci_id),
    FOREIGN KEY (tenant_id, ci_id) REFERENCES configuration_items (tenant_id, id)
);
CREATE INDEX ci_words_item ON ci_words (tenant_id, ci_id);
SELECT nimbus_core.protect_tenant_table('ci_words');

-- Which write of a unit's state its items were made from.
CREATE TABLE ci_syncs (
    tenant_id uuid NOT NULL DEFAULT nimbus_core.current_tenant(),
    id uuid NOT NULL DEFAULT gen_random_uuid(),
    deployment text NOT NULL,
    environment text NOT NULL,
    rehearsal boolean NOT NULL,
    unit text NOT NULL,
    -- None once the unit has no state, or when its items could not be made from it.
    tag uuid,
    items integer NOT NULL DEFAULT 0,
    run uuid NOT NULL,
    -- Why items are not what the state says, if they are not.
    problem text,
    synced_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (tenant_id, deployment, environment, rehearsal, unit),
    UNIQUE (tenant_id, id)
);
SELECT nimbus_core.protect_tenant_table('ci_syncs');

CREATE TABLE ci_imports (
    tenant_id uuid NOT NULL DEFAULT nimbus_core.current_tenant(),
    id uuid NOT NULL,
    format text NOT NULL CHECK (format IN ('jsonl', 'csv')),
    status text NOT NULL CHECK (status IN ('succeeded', 'failed')),
    dry_run boolean NOT NULL DEFAULT false,
    -- How many items were created, updated, decommissioned and left as they were.
    counts jsonb NOT NULL DEFAULT '{}',
    -- The first problems by line, and how many there are.
    problems jsonb NOT NULL DEFAULT '[]' CHECK (jsonb_typeof(problems) = 'array'),
    problem_count integer NOT NULL DEFAULT 0,
    requested_by uuid NOT NULL,
    at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (tenant_id, id)
);
CREATE INDEX ci_imports_newest ON ci_imports (tenant_id, at DESC, id);
SELECT nimbus_core.protect_tenant_table('ci_imports');
