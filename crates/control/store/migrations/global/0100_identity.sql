-- People, programs, and how they prove themselves.

-- Somebody who signs in, or a program (a service account) that has keys instead of a password.
CREATE TABLE users (
    tenant_id uuid NOT NULL DEFAULT current_tenant() REFERENCES tenants (id),
    id uuid NOT NULL,
    kind text NOT NULL CHECK (kind IN ('user', 'service_account')),
    -- For a service account its name.
    email text NOT NULL CHECK (email <> '' AND length(email) <= 254 AND email = lower(email)),
    display_name text NOT NULL DEFAULT '' CHECK (length(display_name) <= 200),
    password_hash text,
    mfa_enabled boolean NOT NULL DEFAULT false,
    disabled_at timestamptz,
    last_login timestamptz,
    created_at timestamptz NOT NULL DEFAULT now(),
    deleted_at timestamptz,
    PRIMARY KEY (tenant_id, id),
    CHECK (kind = 'user' OR password_hash IS NULL)
);
CREATE UNIQUE INDEX users_email ON users (tenant_id, email) WHERE deleted_at IS NULL;
SELECT protect_tenant_table('users');

CREATE TABLE groups (
    tenant_id uuid NOT NULL DEFAULT current_tenant() REFERENCES tenants (id),
    id uuid NOT NULL,
    name text NOT NULL CHECK (name <> '' AND length(name) <= 100),
    description text NOT NULL DEFAULT '' CHECK (length(description) <= 500),
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, id)
);
CREATE UNIQUE INDEX groups_name ON groups (tenant_id, lower(name));
SELECT protect_tenant_table('groups');

CREATE TABLE group_members (
    tenant_id uuid NOT NULL DEFAULT current_tenant() REFERENCES tenants (id),
    group_id uuid NOT NULL,
    user_id uuid NOT NULL,
    PRIMARY KEY (tenant_id, group_id, user_id),
    FOREIGN KEY (tenant_id, group_id) REFERENCES groups (tenant_id, id) ON DELETE CASCADE,
    FOREIGN KEY (tenant_id, user_id) REFERENCES users (tenant_id, id) ON DELETE CASCADE
);
CREATE INDEX group_members_user ON group_members (tenant_id, user_id);
SELECT protect_tenant_table('group_members');

-- A sign-in that lasts. The refresh token is not stored: generation and seed are worth nothing
-- without the server's key.
CREATE TABLE sessions (
    tenant_id uuid NOT NULL DEFAULT current_tenant() REFERENCES tenants (id),
    id uuid NOT NULL,
    user_id uuid NOT NULL,
    seed uuid NOT NULL,
    generation integer NOT NULL DEFAULT 0 CHECK (generation >= 0),
    rotated_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz NOT NULL,
    ip_address text,
    user_agent text CHECK (length(user_agent) <= 500),
    created_at timestamptz NOT NULL DEFAULT now(),
    revoked_at timestamptz,
    PRIMARY KEY (tenant_id, id),
    FOREIGN KEY (tenant_id, user_id) REFERENCES users (tenant_id, id) ON DELETE CASCADE
);
CREATE INDEX sessions_user ON sessions (tenant_id, user_id);
CREATE INDEX sessions_expiry ON sessions (tenant_id, expires_at);
SELECT protect_tenant_table('sessions');

CREATE TABLE api_keys (
    tenant_id uuid NOT NULL DEFAULT current_tenant() REFERENCES tenants (id),
    id uuid NOT NULL,
    user_id uuid NOT NULL,
    name text NOT NULL CHECK (name <> '' AND length(name) <= 100),
    hash bytea NOT NULL CHECK (length(hash) = 32),
    scopes text[] NOT NULL,
    expires_at timestamptz,
    last_used_at timestamptz,
    created_at timestamptz NOT NULL DEFAULT now(),
    revoked_at timestamptz,
    PRIMARY KEY (tenant_id, id),
    FOREIGN KEY (tenant_id, user_id) REFERENCES users (tenant_id, id) ON DELETE CASCADE
);
SELECT protect_tenant_table('api_keys');

-- Sign-ins that failed, and addresses from which one succeeded, so that guessing can be slowed.
CREATE TABLE sign_in_attempts (
    tenant_id uuid NOT NULL DEFAULT current_tenant() REFERENCES tenants (id),
    id uuid NOT NULL,
    email text NOT NULL CHECK (length(email) <= 254),
    ip_address text NOT NULL,
    succeeded boolean NOT NULL,
    at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, id)
);
CREATE INDEX sign_in_attempts_email ON sign_in_attempts (tenant_id, email, at);
SELECT protect_tenant_table('sign_in_attempts');
