-- What happened, on its way to whoever watches.
--
-- A change writes what it tells into live_outbox, in its own transaction. One relay at a time moves the rows of a shard into
-- the tenant's log, live_events, and numbers them there. Numbers have no gaps and become visible in their order, because
-- the relay holds the tenant's live_heads while it gives them: a reader with a number never passes a row whose
-- transaction ended later. No transaction of a change notifies anybody; the relay does, afterwards.

-- Rows of all tenants, reached through the functions below only. A row with a signal says that something changed which
-- has a record of its own; it is announced and not logged.
CREATE TABLE live_outbox (
    shard smallint NOT NULL,
    id bigint GENERATED ALWAYS AS IDENTITY,
    tenant uuid NOT NULL,
    signal text,
    event uuid NOT NULL DEFAULT gen_random_uuid(),
    kind text,
    subjects text[] NOT NULL DEFAULT '{}',
    environment text,
    person uuid,
    data jsonb NOT NULL DEFAULT '{}',
    at timestamptz NOT NULL DEFAULT clock_timestamp(),
    trace_id text,
    PRIMARY KEY (shard, id),
    CHECK ((signal IS NULL) <> (kind IS NULL))
);
SELECT protect_installation_table('live_outbox');

-- Who relays a shard, on this database's clock.
CREATE TABLE live_shards (
    shard smallint PRIMARY KEY,
    relay uuid,
    expires_at timestamptz,
    CHECK ((relay IS NULL) = (expires_at IS NULL))
);
INSERT INTO live_shards (shard) SELECT generate_series(0, 7);
SELECT protect_installation_table('live_shards');

-- Servers that relay, so that each takes its part of the shards.
CREATE TABLE live_relays (
    relay uuid PRIMARY KEY,
    seen_at timestamptz NOT NULL
);
SELECT protect_installation_table('live_relays');

-- The end of each tenant's log. A log that begins anew has another epoch.
CREATE TABLE live_heads (
    tenant_id uuid PRIMARY KEY DEFAULT current_tenant() REFERENCES tenants (id),
    epoch uuid NOT NULL DEFAULT gen_random_uuid(),
    last_seq bigint NOT NULL DEFAULT 0
);
SELECT protect_tenant_table('live_heads');
REVOKE INSERT, UPDATE, DELETE ON live_heads FROM {{app}};

CREATE TABLE live_events (
    tenant_id uuid NOT NULL DEFAULT current_tenant() REFERENCES tenants (id),
    seq bigint NOT NULL CHECK (seq > 0),
    event uuid NOT NULL,
    kind text NOT NULL,
    subjects text[] NOT NULL,
    environment text,
    person uuid,
    data jsonb NOT NULL,
    at timestamptz NOT NULL,
    trace_id text,
    PRIMARY KEY (tenant_id, seq)
);
SELECT protect_tenant_table('live_events');
REVOKE INSERT, UPDATE, DELETE ON live_events FROM {{app}};

-- The last byte of an id is random.
CREATE FUNCTION live_shard(tenant uuid) RETURNS smallint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN (pg_catalog.get_byte(pg_catalog.uuid_send(tenant), 15) % 8)::smallint;

-- Publishes events of the acting tenant with the transaction.
CREATE FUNCTION live_publish(given jsonb) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = nimbus_core, pg_temp
AS $$
    INSERT INTO live_outbox (shard, tenant, kind, subjects, environment, person, data, trace_id)
    SELECT live_shard(current_tenant()), current_tenant(), g.kind, g.subjects, g.environment, g.person, g.data, g.trace_id
    FROM jsonb_to_recordset(given)
        AS g (kind text, subjects text[], environment text, person uuid, data jsonb, trace_id text)
    WHERE current_tenant() IS NOT NULL
$$;

-- The end of the acting tenant's log, which begins here if it has not.
CREATE FUNCTION live_head() RETURNS TABLE (epoch uuid, last_seq bigint)
LANGUAGE sql SECURITY DEFINER SET search_path = nimbus_core, pg_temp
AS $$
    INSERT INTO live_heads AS h (tenant_id) SELECT current_tenant() WHERE current_tenant() IS NOT NULL
        ON CONFLICT DO NOTHING;
    SELECT h.epoch, h.last_seq FROM live_heads h WHERE h.tenant_id = current_tenant()
$$;

-- A sign of life of a relay: gives it its part of the shards for so many seconds, and says which. One whose lease ended
-- is free, and one with more than its part gives some back.
CREATE FUNCTION live_hold(me uuid, seconds double precision) RETURNS SETOF smallint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = nimbus_core, pg_temp
AS $$
DECLARE
    part integer;
    moment timestamptz := clock_timestamp();
BEGIN
    INSERT INTO live_relays (relay, seen_at) VALUES (me, moment) ON CONFLICT (relay) DO UPDATE SET seen_at = moment;
    DELETE FROM live_relays WHERE seen_at < moment - make_interval(secs => seconds);
    SELECT ceil(8.0 / count(*)) INTO part FROM live_relays;
    UPDATE live_shards SET relay = NULL, expires_at = NULL WHERE relay = me
        AND shard NOT IN (SELECT s.shard FROM live_shards s WHERE s.relay = me ORDER BY s.shard LIMIT part);
    UPDATE live_shards SET relay = me, expires_at = clock_timestamp() + make_interval(secs => seconds)
        WHERE shard IN (SELECT s.shard FROM live_shards s
                        WHERE s.relay = me OR s.relay IS NULL OR s.expires_at < clock_timestamp()
                        ORDER BY s.relay IS DISTINCT FROM me, s.shard LIMIT part FOR UPDATE);
    RETURN QUERY SELECT s.shard FROM live_shards s WHERE s.relay = me ORDER BY s.shard;
END $$;

-- A relay ends; others take its shards at once.
CREATE FUNCTION live_let_go(me uuid) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = nimbus_core, pg_temp
AS $$
    UPDATE live_shards SET relay = NULL, expires_at = NULL WHERE relay = me;
    DELETE FROM live_relays WHERE relay = me
$$;

-- Moves at most so many rows of the shards that the relay still has. For each tenant: where its log ends now, how many
-- events it got, what was signalled, and how long the oldest row had waited. Old events go, so that a log has an end
-- on both sides.
CREATE FUNCTION live_relay(me uuid, most integer, kept bigint, days integer)
RETURNS TABLE (tenant uuid, told bigint, signals text[], waited double precision, kinds text[])
LANGUAGE plpgsql SECURITY DEFINER SET search_path = nimbus_core, pg_temp
AS $$
DECLARE
    acting text := COALESCE(current_setting('nimbus.tenant_id', true), '');
    place smallint;
    last bigint;
    whom uuid;
    ends bigint;
BEGIN
    -- The usual case, ten times a second: nothing.
    IF NOT EXISTS (SELECT FROM live_outbox) THEN
        RETURN;
    END IF;
    -- Held until the transaction ends: whoever takes the shard afterwards finds what was moved here.
    FOR place IN SELECT s.shard FROM live_shards s
        WHERE s.relay = me AND s.expires_at > clock_timestamp() ORDER BY s.shard FOR UPDATE
    LOOP
        SELECT max(f.id) INTO last FROM (
            SELECT o.id FROM live_outbox o WHERE o.shard = place ORDER BY o.id LIMIT most) f;
        CONTINUE WHEN last IS NULL;
        FOR whom IN SELECT DISTINCT o.tenant FROM live_outbox o WHERE o.shard = place AND o.id <= last LOOP
            -- While nobody is set, the owner sees every tenant.
            PERFORM set_config('nimbus.tenant_id', '', true);
            IF NOT EXISTS (SELECT FROM tenants t WHERE t.id = whom) THEN
                DELETE FROM live_outbox o WHERE o.shard = place AND o.tenant = whom;
                CONTINUE;
            END IF;
            PERFORM set_config('nimbus.tenant_id', whom::text, true);
            WITH taken AS (
                DELETE FROM live_outbox o WHERE o.shard = place AND o.tenant = whom AND o.id <= last RETURNING o.*),
            numbered AS (
                SELECT t.*, row_number() OVER (ORDER BY t.id) AS number, count(*) OVER () AS total
                FROM taken t WHERE t.kind IS NOT NULL),
            head AS (
                INSERT INTO live_heads AS h (tenant_id, last_seq)
                SELECT whom, count(*) FROM numbered HAVING count(*) > 0
                ON CONFLICT (tenant_id) DO UPDATE SET last_seq = h.last_seq + EXCLUDED.last_seq
                RETURNING h.last_seq),
            logged AS (
                INSERT INTO live_events (tenant_id, seq, event, kind, subjects, environment, person, data, at, trace_id)
                SELECT whom, head.last_seq - n.total + n.number, n.event, n.kind, n.subjects, n.environment, n.person,
                    n.data, n.at, n.trace_id
                FROM numbered n, head)
            SELECT (SELECT head.last_seq FROM head), (SELECT count(*) FROM numbered),
                ARRAY(SELECT DISTINCT t.signal FROM taken t WHERE t.signal IS NOT NULL),
                (SELECT EXTRACT(EPOCH FROM clock_timestamp() - min(t.at)) FROM taken t),
                ARRAY(SELECT n.kind FROM numbered n)
                INTO ends, told, signals, waited, kinds;
            tenant := whom;
            RETURN NEXT;
            -- Now and then, so that it costs next to nothing.
            IF ends / 256 <> (ends - told) / 256 THEN
                DELETE FROM live_events e WHERE e.tenant_id = whom
                    AND (e.seq <= ends - kept OR e.at < clock_timestamp() - make_interval(days => days));
            END IF;
        END LOOP;
    END LOOP;
    PERFORM set_config('nimbus.tenant_id', acting, true);
END $$;

-- How many rows wait, and since when the oldest does.
CREATE FUNCTION live_waiting() RETURNS TABLE (waiting bigint, seconds double precision)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = nimbus_core, pg_temp
AS $$
    SELECT count(*), COALESCE(EXTRACT(EPOCH FROM clock_timestamp() - min(at)), 0) FROM live_outbox
$$;

-- Says with the transaction that something of the acting tenant changed which has a record of its own.
CREATE FUNCTION live_signal(given text) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = nimbus_core, pg_temp
AS $$
    INSERT INTO live_outbox (shard, tenant, signal)
    SELECT live_shard(current_tenant()), current_tenant(), given WHERE current_tenant() IS NOT NULL
$$;

-- Whoever watches a run hears that something about it changed; whoever watches its tenant hears of its status.
CREATE OR REPLACE FUNCTION run_changed() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    PERFORM nimbus_core.live_signal('run:' || NEW.id);
    IF TG_OP = 'INSERT' OR (OLD.status, OLD.result, OLD.began_at) IS DISTINCT FROM (NEW.status, NEW.result, NEW.began_at)
    THEN
        PERFORM nimbus_core.live_publish(jsonb_build_array(jsonb_build_object(
            'kind', 'run.status_changed',
            'subjects', jsonb_build_array(NEW.id, NEW.deployment, NEW.deployment || '/' || NEW.environment),
            'environment', NEW.environment, 'person', NEW.requested_by,
            'data', jsonb_build_object('resource_id', NEW.id, 'deployment', NEW.deployment,
                'environment', NEW.environment, 'number', NEW.number, 'action', NEW.action, 'rehearsal', NEW.rehearsal,
                'changes', jsonb_strip_nulls(jsonb_build_object('status', NEW.status, 'result', NEW.result,
                    'began_at', NEW.began_at))),
            'trace_id', to_jsonb(NEW) ->> 'trace_id')));
    END IF;
    RETURN NULL;
END $$;

REVOKE ALL ON FUNCTION live_publish(jsonb), live_signal(text), live_head(), live_hold(uuid, double precision), live_let_go(uuid),
    live_relay(uuid, integer, bigint, integer), live_waiting(), live_shard(uuid) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION live_publish(jsonb), live_signal(text), live_head(), live_hold(uuid, double precision), live_let_go(uuid),
    live_relay(uuid, integer, bigint, integer), live_waiting() TO {{app}};
