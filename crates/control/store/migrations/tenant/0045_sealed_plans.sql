-- What a preview showed, so that a deploy can be held to it. Digests of private values in it are keyed.
CREATE TABLE sealed_plans (
    tenant_id uuid NOT NULL DEFAULT nimbus_core.current_tenant(),
    deployment text NOT NULL,
    run integer NOT NULL,
    plan jsonb NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (tenant_id, deployment, run),
    FOREIGN KEY (tenant_id, deployment, run) REFERENCES runs (tenant_id, deployment, number)
);
SELECT nimbus_core.protect_tenant_table('sealed_plans');

-- The preview whose plan a run is held to. It may be gone; the plan itself is part of the request.
ALTER TABLE runs ADD COLUMN plan uuid;
