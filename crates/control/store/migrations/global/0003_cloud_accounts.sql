-- Accounts with clouds. The credentials are sealed before they come here.
CREATE TABLE cloud_accounts (
    tenant_id uuid NOT NULL DEFAULT current_tenant() REFERENCES tenants (id),
    id uuid NOT NULL,
    provider_type text NOT NULL CHECK (provider_type <> '' AND length(provider_type) <= 50),
    name text NOT NULL CHECK (name <> '' AND length(name) <= 200),
    credentials bytea NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    deleted_at timestamptz,
    PRIMARY KEY (tenant_id, id)
);
CREATE UNIQUE INDEX cloud_accounts_name ON cloud_accounts (tenant_id, name) WHERE deleted_at IS NULL;
SELECT protect_tenant_table('cloud_accounts');
