-- Folders for what a tenant has in a cloud; a tree per tenant.
--
-- Files here run with the search path at the tenant's schema. Keys, unique indexes and references of
-- a tenant's table all begin with tenant_id: in the shared schema they would otherwise tell of rows
-- that row-level security hides. Nothing refers to nimbus_core, because deleting a tenant would then
-- look into every schema.
CREATE TABLE compartments (
    tenant_id uuid NOT NULL DEFAULT nimbus_core.current_tenant(),
    id uuid NOT NULL,
    parent_id uuid,
    name text NOT NULL CHECK (name <> '' AND length(name) <= 200),
    cloud_id text,
    provider_type text,
    created_at timestamptz NOT NULL DEFAULT now(),
    deleted_at timestamptz,
    PRIMARY KEY (tenant_id, id),
    FOREIGN KEY (tenant_id, parent_id) REFERENCES compartments (tenant_id, id)
);
CREATE UNIQUE INDEX compartments_name ON compartments (tenant_id, parent_id, name)
    NULLS NOT DISTINCT WHERE deleted_at IS NULL;
SELECT nimbus_core.protect_tenant_table('compartments');
