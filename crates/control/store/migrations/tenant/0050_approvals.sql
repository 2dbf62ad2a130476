-- Which environments need approval, and by whom: steps in order, as the approvals core writes them. * is for all
-- environments that have no policy of their own.
CREATE TABLE approval_policies (
    tenant_id uuid NOT NULL DEFAULT nimbus_core.current_tenant(),
    environment text NOT NULL CHECK (length(environment) BETWEEN 1 AND 100),
    chain jsonb NOT NULL CHECK (jsonb_typeof(chain) = 'object'),
    -- Whether runs on a simulated cloud need it as well.
    rehearsals boolean NOT NULL DEFAULT false,
    set_by uuid NOT NULL,
    set_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, environment)
);
SELECT nimbus_core.protect_tenant_table('approval_policies');

-- A run that waits for people. The chain is a copy: a policy that changes later changes no request. The run may be gone
-- once the request has ended.
CREATE TABLE approval_requests (
    tenant_id uuid NOT NULL DEFAULT nimbus_core.current_tenant(),
    id uuid NOT NULL,
    run uuid NOT NULL,
    run_number integer NOT NULL,
    deployment text NOT NULL,
    environment text NOT NULL,
    rehearsal boolean NOT NULL,
    action text NOT NULL,
    -- What is approved: the preview whose plan the run is held to, if it is, and digests of that plan, or of what was
    -- asked where there is none, and of the manifest.
    plan uuid,
    plan_digest text NOT NULL CHECK (length(plan_digest) = 64),
    manifest_digest text NOT NULL CHECK (length(manifest_digest) = 64),
    -- What ran in the environment after this moment was not known when the plan was made.
    planned_at timestamptz NOT NULL,
    chain jsonb NOT NULL CHECK (jsonb_typeof(chain) = 'object'),
    state jsonb NOT NULL CHECK (jsonb_typeof(state) = 'object'),
    status text NOT NULL CHECK (status IN ('pending', 'approved', 'rejected', 'expired', 'withdrawn')),
    -- When the time of the present step is over.
    deadline timestamptz,
    requested_by uuid NOT NULL,
    requested_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    ended_at timestamptz,
    PRIMARY KEY (tenant_id, id),
    FOREIGN KEY (tenant_id, deployment) REFERENCES deployments (tenant_id, id),
    CHECK ((status = 'pending') = (ended_at IS NULL))
);
CREATE INDEX approval_requests_newest ON approval_requests (tenant_id, requested_at DESC, id);
CREATE INDEX approval_requests_due ON approval_requests (tenant_id, deadline) WHERE status = 'pending';
SELECT nimbus_core.protect_tenant_table('approval_requests');

-- Who decided what. Nobody decides twice on a step.
CREATE TABLE approval_decisions (
    tenant_id uuid NOT NULL DEFAULT nimbus_core.current_tenant(),
    request uuid NOT NULL,
    step integer NOT NULL CHECK (step >= 0),
    person uuid NOT NULL,
    -- Who had asked them to decide in their place.
    for_person uuid,
    verdict text NOT NULL CHECK (verdict IN ('approve', 'reject')),
    comment text NOT NULL DEFAULT '' CHECK (length(comment) <= 2000),
    decided_at timestamptz NOT NULL,
    -- Which of the step's approvers it speaks for, by place: groups change.
    covers integer[] NOT NULL,
    PRIMARY KEY (tenant_id, request, step, person),
    FOREIGN KEY (tenant_id, request) REFERENCES approval_requests (tenant_id, id)
);
SELECT nimbus_core.protect_tenant_table('approval_decisions');

-- Who decides in whose place, until when.
CREATE TABLE approval_delegations (
    tenant_id uuid NOT NULL DEFAULT nimbus_core.current_tenant(),
    person uuid NOT NULL,
    delegate uuid NOT NULL,
    until timestamptz NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, person, delegate),
    CHECK (person <> delegate)
);
CREATE INDEX approval_delegations_delegate ON approval_delegations (tenant_id, delegate);
SELECT nimbus_core.protect_tenant_table('approval_delegations');

-- The request that a run waits for. Nobody carries out a run that has one.
ALTER TABLE runs ADD COLUMN approval uuid;
ALTER TABLE runs ADD CONSTRAINT runs_approval_check CHECK (approval IS NULL OR status IN ('queued', 'paused'));
