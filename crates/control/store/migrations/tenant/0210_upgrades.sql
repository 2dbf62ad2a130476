-- The run that upgrades an instance, while it is to come or under way, and the version that it goes back to when that run
-- comes to nothing. The last roll-out that was at it, with the run that it asked for: it asks once.
ALTER TABLE deployed_components ADD COLUMN upgrade_run uuid;
ALTER TABLE deployed_components ADD COLUMN upgrade_from integer;
ALTER TABLE deployed_components ADD COLUMN rollout uuid;
ALTER TABLE deployed_components ADD COLUMN rollout_run uuid;
CREATE INDEX deployed_components_upgrade ON deployed_components (tenant_id, upgrade_run) WHERE upgrade_run IS NOT NULL;

-- Whether a run takes an instance to another version. It stays with the run, because its workflow is started by it.
ALTER TABLE runs ADD COLUMN upgrades boolean NOT NULL DEFAULT false;

CREATE TRIGGER run_settles_upgrades AFTER UPDATE OF status, result ON runs
    FOR EACH ROW EXECUTE FUNCTION nimbus_core.run_settles_upgrades();

-- A version of a component on its way to many instances, of this tenant and those below it. What state, policy and waves
-- mean is the catalog core's; here they are JSON.
CREATE TABLE rollouts (
    tenant_id uuid NOT NULL DEFAULT nimbus_core.current_tenant(),
    id uuid NOT NULL,
    component text NOT NULL CHECK (component <> '' AND length(component) <= 200),
    component_owner uuid NOT NULL,
    to_version integer NOT NULL CHECK (to_version > 0),
    waves jsonb NOT NULL,
    policy jsonb NOT NULL CHECK (jsonb_typeof(policy) = 'object'),
    state jsonb NOT NULL CHECK (jsonb_typeof(state) = 'object'),
    status text NOT NULL CHECK (status IN ('planned', 'running', 'paused', 'stopped', 'failed', 'succeeded')),
    message text NOT NULL DEFAULT '' CHECK (length(message) <= 2000),
    -- In whose name runs are asked for, and the tenant they belong to.
    requested_by uuid NOT NULL,
    requested_from uuid NOT NULL,
    requested_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    ended_at timestamptz,
    PRIMARY KEY (tenant_id, id),
    CHECK ((status IN ('planned', 'running', 'paused')) = (ended_at IS NULL))
);
-- One at a time of a component.
CREATE UNIQUE INDEX rollouts_open ON rollouts (tenant_id, component, component_owner) WHERE ended_at IS NULL;
CREATE INDEX rollouts_newest ON rollouts (tenant_id, requested_at DESC, id);
SELECT nimbus_core.protect_tenant_table('rollouts');

-- Its instances, by wave and place in it. They may be of a tenant further down.
CREATE TABLE rollout_instances (
    tenant_id uuid NOT NULL DEFAULT nimbus_core.current_tenant(),
    rollout uuid NOT NULL,
    wave integer NOT NULL CHECK (wave >= 0),
    place integer NOT NULL CHECK (place >= 0),
    instance uuid NOT NULL,
    instance_tenant uuid NOT NULL,
    tenant_name text NOT NULL,
    deployment text NOT NULL,
    environment text NOT NULL,
    rehearsal boolean NOT NULL,
    stack text NOT NULL,
    from_version integer NOT NULL,
    status text NOT NULL CHECK (status IN ('waiting', 'starting', 'running', 'succeeded', 'failed', 'skipped')),
    run uuid,
    problem text CHECK (length(problem) <= 2000),
    updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (tenant_id, rollout, wave, place),
    UNIQUE (tenant_id, rollout, instance),
    FOREIGN KEY (tenant_id, rollout) REFERENCES rollouts (tenant_id, id)
);
CREATE INDEX rollout_instances_open ON rollout_instances (tenant_id, rollout) WHERE status IN ('starting', 'running');
SELECT nimbus_core.protect_tenant_table('rollout_instances');
