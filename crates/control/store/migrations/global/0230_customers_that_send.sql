-- Tenants that are due, each with its customer: the tenant below the root that it is or is below. Customers take turns, so
-- that whoever makes tenants below their own gets no more places by it, and keeps nobody else from being found.
DROP FUNCTION delivery_due(integer);
CREATE FUNCTION delivery_turns_due(most integer) RETURNS TABLE (tenant uuid, customer uuid)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = nimbus_core, pg_temp
AS $$
    SELECT due.tenant, due.customer FROM (
        SELECT d.tenant, c.customer, d.due_at,
            row_number() OVER (PARTITION BY c.customer ORDER BY d.due_at, d.tenant) AS turn
        FROM delivery_turns d LEFT JOIN tenants t ON t.id = d.tenant,
            LATERAL (SELECT COALESCE(t.path[2], t.path[1], d.tenant) AS customer) c
        WHERE d.due_at <= clock_timestamp()) due
    ORDER BY due.turn, due.due_at LIMIT most
$$;
REVOKE ALL ON FUNCTION delivery_turns_due(integer) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION delivery_turns_due(integer) TO {{app}};
