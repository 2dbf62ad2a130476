-- Tenants with work, whoever waits longest for a turn first, each with its customer: the tenant below the root that
-- it is or is below. Whoever makes tenants below their own gets no more places by it.
DROP FUNCTION work_tenants();
CREATE FUNCTION work_turns_next() RETURNS TABLE (tenant uuid, customer uuid)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = nimbus_core, pg_temp
AS $$
    SELECT w.tenant, COALESCE(t.path[2], t.path[1], w.tenant)
    FROM work_turns w LEFT JOIN tenants t ON t.id = w.tenant
    ORDER BY w.last_turn NULLS FIRST, w.noted_at
$$;
REVOKE ALL ON FUNCTION work_turns_next() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION work_turns_next() TO {{app}};
