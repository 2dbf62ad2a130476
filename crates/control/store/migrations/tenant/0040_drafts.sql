-- What people have begun to write, each one's own. Sealed: nobody knows what they typed.
CREATE TABLE drafts (
    tenant_id uuid NOT NULL DEFAULT nimbus_core.current_tenant(),
    person uuid NOT NULL,
    id text NOT NULL CHECK (id ~ '^[A-Za-z0-9_-]{1,64}$'),
    kind text NOT NULL CHECK (kind ~ '^[a-z_]{1,40}$'),
    sealed bytea NOT NULL,
    updated_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, person, id)
);
SELECT nimbus_core.protect_tenant_table('drafts');

-- Who has looked at what of the plans of an environment. A mark names what would change by its digest, so that it
-- holds for another plan in which the same would change, and for no other.
CREATE TABLE review_marks (
    tenant_id uuid NOT NULL DEFAULT nimbus_core.current_tenant(),
    deployment text NOT NULL,
    environment text NOT NULL,
    rehearsal boolean NOT NULL,
    item text NOT NULL CHECK (length(item) BETWEEN 1 AND 300),
    person uuid NOT NULL,
    digest text NOT NULL CHECK (length(digest) BETWEEN 1 AND 100),
    marked_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, deployment, environment, rehearsal, item, person),
    FOREIGN KEY (tenant_id, deployment) REFERENCES deployments (tenant_id, id)
);
SELECT nimbus_core.protect_tenant_table('review_marks');
