-- Data keys of tenants, wrapped by a key that is not in the database.
CREATE TABLE data_keys (
    tenant_id uuid NOT NULL DEFAULT current_tenant() REFERENCES tenants (id),
    number integer NOT NULL CHECK (number > 0),
    kek_id text NOT NULL,
    wrapped bytea NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, number)
);
SELECT protect_tenant_table('data_keys');
REVOKE DELETE ON data_keys FROM {{app}};

-- Which outer keys are needed to start: an answer about the installation, and no tenant's.
CREATE FUNCTION outer_keys() RETURNS SETOF text
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = nimbus_core, pg_temp
AS $$
DECLARE
    tenant uuid;
BEGIN
    FOR tenant IN SELECT id FROM tenants LOOP
        PERFORM pg_catalog.set_config('nimbus.tenant_id', tenant::text, true);
        RETURN QUERY SELECT DISTINCT k.kek_id FROM data_keys k WHERE k.tenant_id = tenant;
    END LOOP;
    PERFORM pg_catalog.set_config('nimbus.tenant_id', '', true);
END $$;
REVOKE ALL ON FUNCTION outer_keys() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION outer_keys() TO {{app}};
