-- How the resolvers of a zone are configured once its services are there, by resolver. An environment keeps what it was asked
-- for with, as it does with its components, and how often it was begun.
ALTER TABLE landing_zones ADD COLUMN resolvers jsonb NOT NULL DEFAULT '{}' CHECK (jsonb_typeof(resolvers) = 'object');
ALTER TABLE tenant_environments ADD COLUMN resolvers jsonb NOT NULL DEFAULT '{}' CHECK (jsonb_typeof(resolvers) = 'object');
ALTER TABLE tenant_environments ADD COLUMN bootstrap integer NOT NULL DEFAULT 1;
ALTER TABLE tenant_environments DROP CONSTRAINT tenant_environments_status_check;
ALTER TABLE tenant_environments ADD CONSTRAINT tenant_environments_status_check
    CHECK (status IN ('provisioning', 'configuring', 'active', 'failed', 'deleting', 'deleted'));
CREATE INDEX tenant_environments_begun ON tenant_environments (tenant_id) WHERE status IN ('provisioning', 'configuring');

-- Whatever makes an environment active, its resolvers come first; its workflow configures them.
CREATE FUNCTION environment_configures() RETURNS trigger
LANGUAGE plpgsql SET search_path = nimbus_core, pg_temp
AS $$
BEGIN
    IF NEW.status = 'active' AND OLD.status IN ('provisioning', 'failed') AND NEW.resolvers <> '{}' THEN
        NEW.status := 'configuring';
    END IF;
    IF NEW.status IN ('provisioning', 'configuring') AND OLD.status NOT IN ('provisioning', 'configuring') THEN
        NEW.bootstrap := OLD.bootstrap + 1;
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER environment_configures BEFORE UPDATE OF status ON tenant_environments
    FOR EACH ROW EXECUTE FUNCTION environment_configures();

-- Tenants with environments that are on their way. It names tenants and nothing of theirs.
CREATE FUNCTION bootstrap_tenants() RETURNS SETOF uuid
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
        IF EXISTS (SELECT FROM tenant_environments e WHERE e.tenant_id = one AND e.status IN ('provisioning', 'configuring')) THEN
            RETURN NEXT one;
        END IF;
    END LOOP;
    PERFORM set_config('nimbus.tenant_id', acting, true);
END $$;

REVOKE ALL ON FUNCTION environment_configures(), bootstrap_tenants() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION bootstrap_tenants() TO {{app}};
