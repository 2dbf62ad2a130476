-- What running the installation needs, and no more rights than requests need.

-- One row, written to find out whether writing works; and room that is taken to find out whether there is any.
CREATE TABLE heartbeat (
    singleton boolean PRIMARY KEY DEFAULT true CHECK (singleton),
    at timestamptz NOT NULL
);
SELECT protect_installation_table('heartbeat');
CREATE TABLE room (filler text NOT NULL);
SELECT protect_installation_table('room');

-- Tenants that are gone for good, until what they had outside of the database is gone too.
CREATE TABLE purges (
    id uuid PRIMARY KEY,
    at timestamptz NOT NULL DEFAULT now()
);
SELECT protect_installation_table('purges');

-- A restore that is under way: the file, and the tenants that are done.
CREATE TABLE restores (
    singleton boolean PRIMARY KEY DEFAULT true CHECK (singleton),
    archive text NOT NULL,
    begun_at timestamptz NOT NULL DEFAULT now()
);
SELECT protect_installation_table('restores');
CREATE TABLE restored_tenants (id uuid PRIMARY KEY);
SELECT protect_installation_table('restored_tenants');

-- Signed checkpoints of every server, so that each server knows those of the others and backups have them.
CREATE TABLE audit_checkpoints (
    tenant_id uuid NOT NULL DEFAULT current_tenant() REFERENCES tenants (id),
    server uuid NOT NULL,
    sequence bigint NOT NULL CHECK (sequence > 0),
    -- As it was signed.
    line text NOT NULL,
    PRIMARY KEY (tenant_id, server, sequence)
);
SELECT protect_tenant_table('audit_checkpoints');
REVOKE UPDATE, DELETE ON audit_checkpoints FROM {{app}};

-- A request moves the end of a chain forward and does nothing else to it.
REVOKE INSERT, UPDATE ON audit_chains FROM {{app}};
GRANT INSERT (tenant_id), UPDATE (sequence, hash) ON audit_chains TO {{app}};
CREATE FUNCTION chain_goes_forward() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF NEW.sequence < OLD.sequence OR NEW.tenant_id <> OLD.tenant_id
        OR (NEW.sequence = OLD.sequence AND NEW.hash IS DISTINCT FROM OLD.hash) THEN
        RAISE EXCEPTION 'a chain goes forward' USING ERRCODE = 'NB004';
    END IF;
    RETURN NEW;
END $$;
REVOKE ALL ON FUNCTION chain_goes_forward() FROM PUBLIC;
CREATE TRIGGER chain_goes_forward BEFORE UPDATE ON audit_chains FOR EACH ROW EXECUTE FUNCTION chain_goes_forward();

-- The first run is opened and completed by these, and by nothing else that serves requests.
DROP POLICY setup ON installation;
REVOKE ALL ON installation FROM {{app}};
GRANT SELECT (id, isolation, setup_completed_at) ON installation TO {{app}};
CREATE POLICY known ON installation FOR SELECT TO {{app}} USING (true);

CREATE FUNCTION setup_offer(token_hash bytea) RETURNS boolean
LANGUAGE sql SECURITY DEFINER SET search_path = nimbus_core, pg_temp
AS $$
    WITH offered AS (
        UPDATE installation SET setup_token_hash = token_hash WHERE setup_completed_at IS NULL RETURNING 1)
    SELECT EXISTS (SELECT FROM offered)
$$;
CREATE FUNCTION setup_complete(token_hash bytea) RETURNS boolean
LANGUAGE sql SECURITY DEFINER SET search_path = nimbus_core, pg_temp
AS $$
    WITH completed AS (
        UPDATE installation SET setup_completed_at = now(), setup_token_hash = NULL
        WHERE setup_completed_at IS NULL AND setup_token_hash = token_hash RETURNING 1)
    SELECT EXISTS (SELECT FROM completed)
$$;
REVOKE ALL ON FUNCTION setup_offer(bytea), setup_complete(bytea) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION setup_offer(bytea), setup_complete(bytea) TO {{app}};
