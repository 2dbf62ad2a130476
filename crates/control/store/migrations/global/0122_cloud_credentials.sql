-- For which environment an account is, and who changed it last. Without one it is for all that have none of their own.
ALTER TABLE cloud_accounts
    ADD COLUMN environment text CHECK (environment <> '' AND length(environment) <= 63),
    ADD COLUMN updated_at timestamptz NOT NULL DEFAULT now(),
    ADD COLUMN updated_by uuid;
CREATE UNIQUE INDEX cloud_accounts_place ON cloud_accounts (tenant_id, provider_type, COALESCE(environment, ''))
    WHERE deleted_at IS NULL;
