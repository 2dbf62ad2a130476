-- Roles of a tenant's own making, and who has which role. Built-in roles are in the program.
CREATE TABLE roles (
    tenant_id uuid NOT NULL DEFAULT current_tenant() REFERENCES tenants (id),
    id uuid NOT NULL,
    name text NOT NULL CHECK (name ~ '^[a-z][a-z0-9_-]{1,63}$'),
    description text NOT NULL DEFAULT '' CHECK (length(description) <= 500),
    grants jsonb NOT NULL CHECK (jsonb_typeof(grants) = 'array'),
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, id)
);
CREATE UNIQUE INDEX roles_name ON roles (tenant_id, name);
SELECT protect_tenant_table('roles');

CREATE TABLE role_assignments (
    tenant_id uuid NOT NULL DEFAULT current_tenant() REFERENCES tenants (id),
    id uuid NOT NULL,
    role text NOT NULL,
    user_id uuid,
    group_id uuid,
    reach text NOT NULL CHECK (reach IN ('own', 'subtree')),
    conditions jsonb NOT NULL DEFAULT '{}' CHECK (jsonb_typeof(conditions) = 'object'),
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, id),
    FOREIGN KEY (tenant_id, user_id) REFERENCES users (tenant_id, id) ON DELETE CASCADE,
    FOREIGN KEY (tenant_id, group_id) REFERENCES groups (tenant_id, id) ON DELETE CASCADE,
    CHECK ((user_id IS NULL) <> (group_id IS NULL))
);
CREATE UNIQUE INDEX role_assignments_once ON role_assignments (tenant_id, role, user_id, group_id) NULLS NOT DISTINCT;
SELECT protect_tenant_table('role_assignments');
