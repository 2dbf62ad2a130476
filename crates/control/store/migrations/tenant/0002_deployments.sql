-- Deployments of a tenant, what they are made from, their runs and their state.

-- Content by its digest (SHA-256), so that what is the same is stored once.
CREATE TABLE blobs (
    tenant_id uuid NOT NULL DEFAULT nimbus_core.current_tenant(),
    digest bytea NOT NULL CHECK (length(digest) = 32),
    content bytea NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, digest)
);
SELECT nimbus_core.protect_tenant_table('blobs');

-- The tenant's own templates and programs, by their path in a workspace. They lie over the shipped library.
CREATE TABLE workspace_files (
    tenant_id uuid NOT NULL DEFAULT nimbus_core.current_tenant(),
    path text NOT NULL CHECK (path <> '' AND length(path) <= 400),
    digest bytea NOT NULL,
    updated_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, path),
    FOREIGN KEY (tenant_id, digest) REFERENCES blobs (tenant_id, digest)
);
SELECT nimbus_core.protect_tenant_table('workspace_files');

CREATE TABLE deployments (
    tenant_id uuid NOT NULL DEFAULT nimbus_core.current_tenant(),
    id text NOT NULL CHECK (id ~ '^D[0-9A-Z]{1,15}$'),
    organization text NOT NULL,
    project text NOT NULL,
    template text NOT NULL,
    -- As it was written: comments stay.
    manifest text NOT NULL,
    -- Counts changes; the entity tag of the API.
    revision bigint NOT NULL DEFAULT 1,
    -- The number of the next run.
    next_run integer NOT NULL DEFAULT 1,
    created_by uuid NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    archived_at timestamptz,
    PRIMARY KEY (tenant_id, id)
);
CREATE INDEX deployments_created ON deployments (tenant_id, created_at, id);
SELECT nimbus_core.protect_tenant_table('deployments');

-- A run: what was asked for, how far it is, and who carries it out. A run that somebody carries out holds its
-- environment: server, epoch and expires_at are the lease of both, on this database's clock.
CREATE TABLE runs (
    tenant_id uuid NOT NULL DEFAULT nimbus_core.current_tenant(),
    deployment text NOT NULL,
    number integer NOT NULL CHECK (number > 0),
    id uuid NOT NULL,
    action text NOT NULL,
    environment text NOT NULL,
    rehearsal boolean NOT NULL,
    -- The whole request, so that going on needs the number alone.
    request jsonb NOT NULL,
    status text NOT NULL DEFAULT 'queued' CHECK (status IN ('queued', 'running', 'paused', 'ended')),
    result text,
    -- Why it ended before it began, if it did: code, message, help.
    problem jsonb,
    -- What somebody wants of a run that is carried out; or that one which ended goes on.
    wish text CHECK (wish IN ('cancel', 'pause', 'resume')),
    requested_by uuid NOT NULL,
    queued_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    began_at timestamptz,
    ended_at timestamptz,
    last_seq bigint NOT NULL DEFAULT 0,
    server uuid,
    epoch bigint NOT NULL DEFAULT 0,
    expires_at timestamptz,
    PRIMARY KEY (tenant_id, deployment, number),
    UNIQUE (tenant_id, id),
    FOREIGN KEY (tenant_id, deployment) REFERENCES deployments (tenant_id, id),
    CHECK ((server IS NULL) = (expires_at IS NULL)),
    CHECK (server IS NULL OR status = 'running')
);
CREATE UNIQUE INDEX runs_holder ON runs (tenant_id, deployment, environment, rehearsal)
    WHERE status = 'running' AND action <> 'preview';
CREATE INDEX runs_open ON runs (tenant_id, queued_at) WHERE status IN ('queued', 'running');
CREATE INDEX runs_newest ON runs (tenant_id, queued_at DESC, id);
SELECT nimbus_core.protect_tenant_table('runs');

-- What happened in a run, numbered without gaps.
CREATE TABLE run_events (
    tenant_id uuid NOT NULL DEFAULT nimbus_core.current_tenant(),
    deployment text NOT NULL,
    run integer NOT NULL,
    seq bigint NOT NULL CHECK (seq > 0),
    event jsonb NOT NULL,
    PRIMARY KEY (tenant_id, deployment, run, seq),
    FOREIGN KEY (tenant_id, deployment, run) REFERENCES runs (tenant_id, deployment, number)
);
SELECT nimbus_core.protect_tenant_table('run_events');

-- What is remembered of units between runs: sealed, because passwords that were made are in it.
CREATE TABLE unit_memories (
    tenant_id uuid NOT NULL DEFAULT nimbus_core.current_tenant(),
    deployment text NOT NULL,
    environment text NOT NULL,
    rehearsal boolean NOT NULL,
    component text NOT NULL,
    sealed bytea NOT NULL,
    updated_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, deployment, environment, rehearsal, component),
    FOREIGN KEY (tenant_id, deployment) REFERENCES deployments (tenant_id, id)
);
SELECT nimbus_core.protect_tenant_table('unit_memories');

-- Versions of environments, for going back.
CREATE TABLE environment_versions (
    tenant_id uuid NOT NULL DEFAULT nimbus_core.current_tenant(),
    deployment text NOT NULL,
    environment text NOT NULL,
    rehearsal boolean NOT NULL,
    version integer NOT NULL CHECK (version > 0),
    record jsonb NOT NULL,
    PRIMARY KEY (tenant_id, deployment, environment, rehearsal, version),
    FOREIGN KEY (tenant_id, deployment) REFERENCES deployments (tenant_id, id)
);
SELECT nimbus_core.protect_tenant_table('environment_versions');

-- What people vouch for before an environment is promoted.
CREATE TABLE gate_signatures (
    tenant_id uuid NOT NULL DEFAULT nimbus_core.current_tenant(),
    deployment text NOT NULL,
    environment text NOT NULL,
    rehearsal boolean NOT NULL,
    item text NOT NULL,
    signature jsonb NOT NULL,
    PRIMARY KEY (tenant_id, deployment, environment, rehearsal, item),
    FOREIGN KEY (tenant_id, deployment) REFERENCES deployments (tenant_id, id)
);
SELECT nimbus_core.protect_tenant_table('gate_signatures');

-- State, journals, leases and histories of units, as a bucket would have them. Sealed.
CREATE TABLE state_objects (
    tenant_id uuid NOT NULL DEFAULT nimbus_core.current_tenant(),
    key text COLLATE "C" NOT NULL CHECK (key <> '' AND length(key) <= 1000),
    sealed bytea NOT NULL,
    size bigint NOT NULL,
    -- Another one for each write.
    tag uuid NOT NULL DEFAULT gen_random_uuid(),
    modified_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (tenant_id, key)
);
SELECT nimbus_core.protect_tenant_table('state_objects');

-- An answer that was given to a request with an idempotency key, for the same request once more.
CREATE TABLE request_answers (
    tenant_id uuid NOT NULL DEFAULT nimbus_core.current_tenant(),
    caller uuid NOT NULL,
    key text NOT NULL CHECK (length(key) BETWEEN 1 AND 200),
    -- Digest over the operation and everything that was asked.
    request bytea NOT NULL,
    answer jsonb NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, caller, key)
);
SELECT nimbus_core.protect_tenant_table('request_answers');
