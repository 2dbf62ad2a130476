-- Attempts to sign in, for accounts that exist and for accounts that do not.
--
-- They belong to no tenant, so that an attempt on a tenant or a user that nobody has costs and counts the
-- same. An account is named by a digest, a network by the prefix that one caller has to itself.
DROP TABLE sign_in_attempts;

CREATE TABLE sign_ins (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    account bytea NOT NULL CHECK (length(account) = 32),
    network text NOT NULL CHECK (length(network) <= 64),
    succeeded boolean NOT NULL DEFAULT false,
    at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX sign_ins_account ON sign_ins (account, at);
CREATE INDEX sign_ins_network ON sign_ins (network, at) WHERE NOT succeeded;
CREATE INDEX sign_ins_failed ON sign_ins (at) WHERE NOT succeeded;
SELECT protect_installation_table('sign_ins');

-- Counts an attempt as failed before it is made, so that a hundred at once are a hundred, and tells what
-- happened before it. Attempts on one account take turns here.
CREATE FUNCTION sign_in_begin(of_account bytea, from_network text)
RETURNS TABLE (attempt bigint, failed_here timestamptz[], failed_anywhere timestamptz[], known_here boolean,
               network_failures bigint, network_last timestamptz, all_failures bigint, all_last timestamptz)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = nimbus_core, pg_temp
AS $$
BEGIN
    PERFORM pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended(encode(of_account, 'hex'), 7102));
    known_here := EXISTS (SELECT FROM sign_ins s WHERE s.account = of_account AND s.network = from_network
                          AND s.succeeded AND s.at > now() - interval '30 days');
    -- A success from a network makes up for what failed from there before it.
    SELECT COALESCE(array_agg(f.at) FILTER (WHERE f.network = from_network), '{}'), COALESCE(array_agg(f.at), '{}')
        INTO failed_here, failed_anywhere
        FROM (SELECT a.at, a.network FROM sign_ins a
              WHERE a.account = of_account AND NOT a.succeeded AND a.at > now() - interval '15 minutes'
                AND a.at > COALESCE((SELECT max(s.at) FROM sign_ins s WHERE s.account = of_account
                                     AND s.network = a.network AND s.succeeded), '-infinity')
              ORDER BY a.at DESC LIMIT 200) f;
    SELECT count(*), max(n.at) INTO network_failures, network_last
        FROM (SELECT a.at FROM sign_ins a WHERE a.network = from_network AND NOT a.succeeded
              AND a.at > now() - interval '15 minutes' ORDER BY a.at DESC LIMIT 1000) n;
    SELECT count(*), max(n.at) INTO all_failures, all_last
        FROM (SELECT a.at FROM sign_ins a WHERE NOT a.succeeded AND a.at > now() - interval '1 minute'
              ORDER BY a.at DESC LIMIT 5000) n;
    INSERT INTO sign_ins (account, network) VALUES (of_account, from_network) RETURNING id INTO attempt;
    RETURN NEXT;
END $$;

-- The attempt was the owner's after all, or was not made.
CREATE FUNCTION sign_in_succeeded(attempt bigint) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = nimbus_core, pg_temp
AS $$ UPDATE sign_ins SET succeeded = true WHERE id = attempt $$;

CREATE FUNCTION sign_in_not_made(attempt bigint) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = nimbus_core, pg_temp
AS $$ DELETE FROM sign_ins WHERE id = attempt $$;

CREATE FUNCTION sign_in_clean_up() RETURNS bigint
LANGUAGE sql SECURITY DEFINER SET search_path = nimbus_core, pg_temp
AS $$
    WITH gone AS (
        DELETE FROM sign_ins
        WHERE at < now() - CASE WHEN succeeded THEN interval '30 days' ELSE interval '1 day' END RETURNING 1)
    SELECT count(*) FROM gone
$$;

REVOKE ALL ON FUNCTION sign_in_begin(bytea, text), sign_in_succeeded(bigint), sign_in_not_made(bigint),
    sign_in_clean_up() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION sign_in_begin(bytea, text), sign_in_succeeded(bigint), sign_in_not_made(bigint),
    sign_in_clean_up() TO {{app}};
