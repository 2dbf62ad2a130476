-- What leaves the application: where to, what was sent, and what people want to be sent.

-- Receivers of the tenant. Secrets are sealed before they come here; the one before the present signs for a while as well.
CREATE TABLE webhooks (
    tenant_id uuid NOT NULL DEFAULT nimbus_core.current_tenant(),
    id uuid NOT NULL,
    name text NOT NULL CHECK (name <> '' AND length(name) <= 100),
    url text NOT NULL CHECK (url <> '' AND length(url) <= 2000),
    -- None stands for all, also those that come later.
    kinds text[] NOT NULL DEFAULT '{}',
    enabled boolean NOT NULL DEFAULT true,
    -- Why the server stopped calling it by itself.
    disabled_reason text CHECK (length(disabled_reason) <= 300),
    secret bytea NOT NULL,
    previous_secret bytea,
    previous_until timestamptz,
    created_by uuid NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (tenant_id, id),
    CHECK ((previous_secret IS NULL) = (previous_until IS NULL)),
    CHECK (disabled_reason IS NULL OR NOT enabled)
);
CREATE UNIQUE INDEX webhooks_name ON webhooks (tenant_id, name);
SELECT nimbus_core.protect_tenant_table('webhooks');

-- One thing to be sent to one receiver, written in the transaction of what it tells. While a worker has it, due_at is
-- when others may have it: a worker that is gone delays it and does not lose it. `lease` says whose outcome counts.
CREATE TABLE deliveries (
    tenant_id uuid NOT NULL DEFAULT nimbus_core.current_tenant(),
    id uuid NOT NULL,
    channel text NOT NULL CHECK (channel IN ('webhook', 'email')),
    webhook uuid,
    person uuid,
    kind text NOT NULL CHECK (kind ~ '^[a-z_]{1,40}$'),
    payload text NOT NULL CHECK (octet_length(payload) <= 262144),
    status text NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'delivered', 'dead', 'dropped')),
    -- All of them, and those since it was last asked for.
    attempts integer NOT NULL DEFAULT 0 CHECK (attempts >= 0),
    tries integer NOT NULL DEFAULT 0 CHECK (tries >= 0),
    due_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    lease uuid,
    -- Why it was not delivered, or not yet.
    problem text CHECK (length(problem) <= 500),
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    ended_at timestamptz,
    PRIMARY KEY (tenant_id, id),
    CHECK ((channel = 'webhook') = (webhook IS NOT NULL)),
    CHECK ((channel = 'email') = (person IS NOT NULL)),
    CHECK ((status = 'pending') = (ended_at IS NULL))
);
CREATE INDEX deliveries_due ON deliveries (tenant_id, due_at) WHERE status = 'pending';
CREATE INDEX deliveries_newest ON deliveries (tenant_id, created_at DESC, id DESC);
CREATE INDEX deliveries_ended ON deliveries (tenant_id, ended_at) WHERE status IN ('delivered', 'dropped');
SELECT nimbus_core.protect_tenant_table('deliveries');

-- Every time that somebody tried. One without an end was cut short, and nobody knows whether it arrived.
CREATE TABLE delivery_attempts (
    tenant_id uuid NOT NULL DEFAULT nimbus_core.current_tenant(),
    delivery uuid NOT NULL,
    number integer NOT NULL CHECK (number > 0),
    began_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    ended_at timestamptz,
    -- What a server answered, by the numbers of HTTP or SMTP.
    status integer,
    problem text CHECK (length(problem) <= 500),
    PRIMARY KEY (tenant_id, delivery, number),
    FOREIGN KEY (tenant_id, delivery) REFERENCES deliveries (tenant_id, id) ON DELETE CASCADE
);
SELECT nimbus_core.protect_tenant_table('delivery_attempts');

-- What somebody wants to be told and how. Of a kind that has no row, or of * for all such kinds, at once.
CREATE TABLE notification_preferences (
    tenant_id uuid NOT NULL DEFAULT nimbus_core.current_tenant(),
    person uuid NOT NULL,
    kind text NOT NULL CHECK (kind = '*' OR kind ~ '^[a-z_]{1,40}$'),
    channel text NOT NULL CHECK (channel IN ('in_app', 'email')),
    mode text NOT NULL CHECK (mode IN ('off', 'instant', 'digest')),
    PRIMARY KEY (tenant_id, person, kind, channel),
    CHECK (channel = 'email' OR mode <> 'digest')
);
SELECT nimbus_core.protect_tenant_table('notification_preferences');

-- When somebody's digest is sent. It is due while something is gathered for it, and never without.
CREATE TABLE notification_digests (
    tenant_id uuid NOT NULL DEFAULT nimbus_core.current_tenant(),
    person uuid NOT NULL,
    period text NOT NULL DEFAULT 'daily' CHECK (period IN ('daily', 'weekly')),
    hour smallint NOT NULL DEFAULT 7 CHECK (hour BETWEEN 0 AND 23),
    weekday smallint NOT NULL DEFAULT 1 CHECK (weekday BETWEEN 1 AND 7),
    due_at timestamptz,
    PRIMARY KEY (tenant_id, person)
);
CREATE INDEX notification_digests_due ON notification_digests (tenant_id, due_at) WHERE due_at IS NOT NULL;
SELECT nimbus_core.protect_tenant_table('notification_digests');

-- What waits for somebody's next digest. In one transaction it becomes a delivery and is gone from here.
CREATE TABLE digest_items (
    tenant_id uuid NOT NULL DEFAULT nimbus_core.current_tenant(),
    id uuid NOT NULL,
    person uuid NOT NULL,
    kind text NOT NULL,
    title text NOT NULL CHECK (length(title) BETWEEN 1 AND 300),
    body text NOT NULL DEFAULT '' CHECK (length(body) <= 1000),
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (tenant_id, id)
);
CREATE INDEX digest_items_person ON digest_items (tenant_id, person, created_at, id);
SELECT nimbus_core.protect_tenant_table('digest_items');
