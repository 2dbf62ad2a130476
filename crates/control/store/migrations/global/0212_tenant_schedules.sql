-- What tenants let start by the clock: a run of one of their environments, in the name of whoever asked for it.
CREATE TABLE tenant_schedules (
    tenant_id uuid NOT NULL DEFAULT current_tenant() REFERENCES tenants (id),
    name text NOT NULL CHECK (name ~ '^[a-z]([a-z0-9-]{0,38}[a-z0-9])?$'),
    action text NOT NULL CHECK (action IN ('refresh', 'preview', 'deploy')),
    deployment text NOT NULL,
    environment text NOT NULL,
    rehearsal boolean NOT NULL DEFAULT false,
    cron text NOT NULL CHECK (length(cron) <= 100),
    time_zone text NOT NULL CHECK (length(time_zone) <= 100),
    paused boolean NOT NULL DEFAULT false,
    requested_by uuid NOT NULL,
    requested_from uuid NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, name)
);
SELECT protect_tenant_table('tenant_schedules');

-- All of them, for servers, which tell the runtime.
CREATE FUNCTION schedules_of_all() RETURNS SETOF tenant_schedules
LANGUAGE plpgsql SECURITY DEFINER SET search_path = nimbus_core, pg_temp
AS $$
DECLARE
    acting text := COALESCE(current_setting('nimbus.tenant_id', true), '');
    one uuid;
    ids uuid[];
BEGIN
    PERFORM set_config('nimbus.tenant_id', '', true);
    SELECT array_agg(t.id ORDER BY t.id) INTO ids FROM tenants t WHERE t.deleted_at IS NULL;
    FOREACH one IN ARRAY COALESCE(ids, '{}') LOOP
        PERFORM set_config('nimbus.tenant_id', one::text, true);
        RETURN QUERY SELECT s.* FROM tenant_schedules s WHERE s.tenant_id = one ORDER BY s.name;
    END LOOP;
    PERFORM set_config('nimbus.tenant_id', acting, true);
END $$;

REVOKE ALL ON FUNCTION schedules_of_all() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION schedules_of_all() TO {{app}};
