-- Tenants that have runs to be carried out, and whose turn it is: workers go round the tenants, so that one
-- with a thousand runs does not keep another with one waiting.
--
-- It names tenants and nothing of theirs. Requests reach it through the functions below, for the tenant that
-- they act for; workers ask for the list.
CREATE TABLE work_turns (
    tenant uuid PRIMARY KEY,
    noted_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    last_turn timestamptz
);
SELECT protect_installation_table('work_turns');

-- The acting tenant has work. In the transaction that makes it: whoever looks for work waits for its end.
CREATE FUNCTION work_note() RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = nimbus_core, pg_temp
AS $$
    INSERT INTO work_turns (tenant) SELECT current_tenant() WHERE current_tenant() IS NOT NULL
    ON CONFLICT (tenant) DO UPDATE SET noted_at = clock_timestamp()
$$;

-- Every tenant may have work: after a start, when nobody knows.
CREATE FUNCTION work_note_all() RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = nimbus_core, pg_temp
AS $$
    INSERT INTO work_turns (tenant) SELECT id FROM tenants WHERE deleted_at IS NULL ON CONFLICT DO NOTHING
$$;

-- Tenants with work, whoever waits longest for a turn first.
CREATE FUNCTION work_tenants() RETURNS SETOF uuid
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = nimbus_core, pg_temp
AS $$
    SELECT tenant FROM work_turns ORDER BY last_turn NULLS FIRST, noted_at
$$;

-- Takes the acting tenant's turn. False when another worker is at it, or when there is no work.
CREATE FUNCTION work_turn() RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = nimbus_core, pg_temp
AS $$
BEGIN
    PERFORM FROM work_turns WHERE tenant = current_tenant() FOR UPDATE SKIP LOCKED;
    RETURN FOUND;
END $$;

-- The acting tenant's turn was used.
CREATE FUNCTION work_taken() RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = nimbus_core, pg_temp
AS $$
    UPDATE work_turns SET last_turn = clock_timestamp() WHERE tenant = current_tenant()
$$;

-- The acting tenant has no work left. After work_turn, in its transaction.
CREATE FUNCTION work_none() RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = nimbus_core, pg_temp
AS $$
    DELETE FROM work_turns WHERE tenant = current_tenant()
$$;

-- A tenant that is gone has none either.
CREATE FUNCTION work_forget(gone uuid) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = nimbus_core, pg_temp
AS $$
    DELETE FROM work_turns WHERE tenant = gone
        AND NOT EXISTS (SELECT FROM tenants WHERE id = gone AND deleted_at IS NULL)
$$;

REVOKE ALL ON FUNCTION work_note(), work_note_all(), work_tenants(), work_turn(), work_taken(), work_none(),
    work_forget(uuid) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION work_note(), work_note_all(), work_tenants(), work_turn(), work_taken(), work_none(),
    work_forget(uuid) TO {{app}};
