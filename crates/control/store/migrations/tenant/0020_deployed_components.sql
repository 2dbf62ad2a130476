-- Components that are deployed, or about to be: one row for each stack of a deployment in an environment, which stays
-- with the version that it was made from.
CREATE TABLE deployed_components (
    tenant_id uuid NOT NULL DEFAULT nimbus_core.current_tenant(),
    id uuid NOT NULL,
    deployment text NOT NULL,
    environment text NOT NULL,
    rehearsal boolean NOT NULL,
    stack text NOT NULL,
    -- The component by name, and whose it is with its version where it came from the catalog.
    component text NOT NULL,
    component_owner uuid,
    component_version integer,
    stack_instance_id uuid,
    pulumi_stack_name text NOT NULL CHECK (length(pulumi_stack_name) <= 200),
    resolved_parameters jsonb NOT NULL DEFAULT '{}',
    outputs jsonb,
    status text NOT NULL DEFAULT 'pending'
        CHECK (status IN ('pending', 'deploying', 'deployed', 'failed', 'destroying', 'destroyed', 'upgrading')),
    pulumi_state_url text CHECK (length(pulumi_state_url) <= 500),
    deployed_at timestamptz,
    deployed_by uuid,
    error_message text,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    deleted_at timestamptz,
    PRIMARY KEY (tenant_id, id),
    UNIQUE (tenant_id, deployment, environment, rehearsal, stack),
    FOREIGN KEY (tenant_id, deployment) REFERENCES deployments (tenant_id, id),
    CHECK ((component_owner IS NULL) = (component_version IS NULL))
);
CREATE INDEX deployed_components_live ON deployed_components (tenant_id, component) WHERE status <> 'destroyed';
SELECT nimbus_core.protect_tenant_table('deployed_components');

CREATE TRIGGER run_moves_components AFTER UPDATE OF status, result ON runs
    FOR EACH ROW EXECUTE FUNCTION nimbus_core.run_moves_components();

-- Which versions of components a run is made of, by stack: whose, and which. Stacks without one are of the workspace.
ALTER TABLE runs ADD COLUMN catalog jsonb NOT NULL DEFAULT '{}' CHECK (jsonb_typeof(catalog) = 'object');
