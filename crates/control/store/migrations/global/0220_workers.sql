-- Workers on other machines, as they said of themselves when they joined. Rows are the operator's tenant's.
CREATE TABLE workers (
    tenant_id uuid NOT NULL DEFAULT current_tenant() REFERENCES tenants (id),
    -- Chosen by the worker's data directory, so that it is found again; runs name it as who carries them out.
    id uuid NOT NULL,
    name text NOT NULL CHECK (name <> '' AND length(name) <= 100),
    -- The service account whose key it joined with; nobody else can speak for it.
    account uuid NOT NULL,
    version text NOT NULL CHECK (length(version) <= 100),
    slots integer NOT NULL CHECK (slots BETWEEN 1 AND 1000),
    -- What it can do: sandbox, what that lacks, languages.
    abilities jsonb NOT NULL,
    draining boolean NOT NULL DEFAULT false,
    running integer NOT NULL DEFAULT 0,
    joined_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    seen_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    left_at timestamptz,
    PRIMARY KEY (tenant_id, id)
);
CREATE UNIQUE INDEX workers_name ON workers (tenant_id, name);
SELECT protect_tenant_table('workers');
