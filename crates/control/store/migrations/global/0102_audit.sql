-- The audit trail. Requests add to it and read it; nothing that serves requests can change it.
CREATE TABLE audit_logs (
    tenant_id uuid NOT NULL DEFAULT current_tenant() REFERENCES tenants (id),
    sequence bigint NOT NULL CHECK (sequence > 0),
    actor_kind text NOT NULL,
    user_id text NOT NULL,
    original_user text,
    action text NOT NULL,
    resource_type text NOT NULL,
    resource_id text,
    outcome text NOT NULL,
    priority text NOT NULL,
    -- Not jsonb: the exact text is what was hashed.
    old_value json,
    new_value json,
    trace_id text,
    ip_address text,
    timestamp timestamptz NOT NULL,
    previous_hash bytea NOT NULL CHECK (length(previous_hash) = 32),
    hash bytea NOT NULL CHECK (length(hash) = 32),
    proof text,
    PRIMARY KEY (tenant_id, sequence)
);
CREATE INDEX audit_logs_time ON audit_logs (tenant_id, timestamp);
CREATE INDEX audit_logs_action ON audit_logs (tenant_id, action, sequence);
SELECT protect_tenant_table('audit_logs');
REVOKE UPDATE, DELETE ON audit_logs FROM {{app}};

-- Where each tenant's chain ends; its row is the lock that gives entries their order.
CREATE TABLE audit_chains (
    tenant_id uuid PRIMARY KEY DEFAULT current_tenant() REFERENCES tenants (id),
    sequence bigint NOT NULL DEFAULT 0,
    hash bytea,
    -- The last entry that was moved to the archive.
    archived_sequence bigint NOT NULL DEFAULT 0,
    archived_hash bytea
);
SELECT protect_tenant_table('audit_chains');
REVOKE DELETE ON audit_chains FROM {{app}};
