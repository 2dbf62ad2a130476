-- What people of the tenant are told in person, each one's own. What was read goes when its person has a thousand newer
-- ones; what was not read stays. What it is about may be gone.
CREATE TABLE notifications (
    tenant_id uuid NOT NULL DEFAULT nimbus_core.current_tenant(),
    id uuid NOT NULL,
    person uuid NOT NULL,
    kind text NOT NULL CHECK (kind ~ '^[a-z_]{1,40}$'),
    title text NOT NULL CHECK (length(title) BETWEEN 1 AND 300),
    body text NOT NULL DEFAULT '' CHECK (length(body) <= 1000),
    approval uuid,
    run uuid,
    deployment text,
    environment text,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    read_at timestamptz,
    PRIMARY KEY (tenant_id, id)
);
CREATE INDEX notifications_newest ON notifications (tenant_id, person, created_at DESC, id DESC);
CREATE INDEX notifications_unread ON notifications (tenant_id, person, created_at DESC, id DESC) WHERE read_at IS NULL;
SELECT nimbus_core.protect_tenant_table('notifications');
