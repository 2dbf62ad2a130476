-- Tenants that have something to send, and from when on: whoever sends goes to those that are due and to nobody else.
--
-- It names tenants and nothing of theirs. Requests reach it through the functions below, for the tenant that they act for.
CREATE TABLE delivery_turns (
    tenant uuid PRIMARY KEY,
    due_at timestamptz NOT NULL
);
CREATE INDEX delivery_turns_due ON delivery_turns (due_at);
SELECT protect_installation_table('delivery_turns');

-- The acting tenant has something to send from then on. In the transaction that makes it: whoever looks at the tenant
-- waits for its end, or is waited for, so that neither passes the other unseen.
CREATE FUNCTION delivery_note(moment timestamptz) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = nimbus_core, pg_temp
AS $$
    INSERT INTO delivery_turns AS t (tenant, due_at)
    SELECT current_tenant(), COALESCE(moment, clock_timestamp()) WHERE current_tenant() IS NOT NULL
    ON CONFLICT (tenant) DO UPDATE SET due_at = LEAST(t.due_at, EXCLUDED.due_at)
$$;

-- Every tenant may have something: after a start, when nobody knows.
CREATE FUNCTION delivery_note_all() RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = nimbus_core, pg_temp
AS $$
    INSERT INTO delivery_turns AS t (tenant, due_at)
    SELECT id, clock_timestamp() FROM tenants WHERE deleted_at IS NULL ORDER BY id
    ON CONFLICT (tenant) DO UPDATE SET due_at = LEAST(t.due_at, EXCLUDED.due_at)
$$;

-- Tenants that are due, whoever waits longest first.
CREATE FUNCTION delivery_due(most integer) RETURNS SETOF uuid
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = nimbus_core, pg_temp
AS $$
    SELECT tenant FROM delivery_turns WHERE due_at <= clock_timestamp() ORDER BY due_at LIMIT most
$$;

-- Takes the acting tenant's turn until the transaction ends. False when somebody else is at it, or it is not due.
CREATE FUNCTION delivery_turn() RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = nimbus_core, pg_temp
AS $$
BEGIN
    PERFORM FROM delivery_turns WHERE tenant = current_tenant() AND due_at <= clock_timestamp() FOR UPDATE SKIP LOCKED;
    RETURN FOUND;
END $$;

-- When the acting tenant is due again; never without a moment. After delivery_turn, in its transaction.
CREATE FUNCTION delivery_next(moment timestamptz) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = nimbus_core, pg_temp
AS $$
    DELETE FROM delivery_turns WHERE tenant = current_tenant() AND moment IS NULL;
    UPDATE delivery_turns SET due_at = moment WHERE tenant = current_tenant() AND moment IS NOT NULL
$$;

-- A tenant that is gone has no turn.
CREATE FUNCTION delivery_forget(gone uuid) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = nimbus_core, pg_temp
AS $$
    DELETE FROM delivery_turns WHERE tenant = gone
        AND NOT EXISTS (SELECT FROM tenants WHERE id = gone AND deleted_at IS NULL)
$$;

-- When a digest is due that began to be gathered at a moment: at its hour in UTC, of every day or of one day of the week.
CREATE FUNCTION digest_after(period text, hour smallint, weekday smallint, moment timestamptz) RETURNS timestamptz
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
    SELECT (CASE WHEN first.at > given.at THEN first.at ELSE first.at + first.step END) AT TIME ZONE 'UTC'
    FROM (SELECT moment AT TIME ZONE 'UTC' AS at) given,
        LATERAL (SELECT CASE period
                WHEN 'weekly' THEN date_trunc('week', given.at) + make_interval(days => weekday - 1, hours => hour)
                ELSE date_trunc('day', given.at) + make_interval(hours => hour) END AS at,
            CASE period WHEN 'weekly' THEN interval '7 days' ELSE interval '1 day' END AS step) first
$$;

-- What a webhook is sent, as Standard Webhooks recommends.
CREATE FUNCTION webhook_payload(kind text, data jsonb) RETURNS text
LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp
AS $$
    SELECT jsonb_build_object('type', kind, 'data', data,
        'timestamp', to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'))::text
$$;

REVOKE ALL ON FUNCTION delivery_note(timestamptz), delivery_note_all(), delivery_due(integer), delivery_turn(),
    delivery_next(timestamptz), delivery_forget(uuid), digest_after(text, smallint, smallint, timestamptz),
    webhook_payload(text, jsonb) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION delivery_note(timestamptz), delivery_note_all(), delivery_due(integer), delivery_turn(),
    delivery_next(timestamptz), delivery_forget(uuid), digest_after(text, smallint, smallint, timestamptz),
    webhook_payload(text, jsonb) TO {{app}};
