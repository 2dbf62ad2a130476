-- Roles that end, names that are told apart, and the one question about administrators.

-- Null is for ever.
ALTER TABLE role_assignments ADD COLUMN expires_at timestamptz;
CREATE INDEX role_assignments_role ON role_assignments (tenant_id, role);
CREATE INDEX role_assignments_group ON role_assignments (tenant_id, group_id) WHERE group_id IS NOT NULL;
CREATE INDEX role_assignments_user ON role_assignments (tenant_id, user_id) WHERE user_id IS NOT NULL;

-- What a name looks like, so that no two groups look the same. Whoever makes a group computes it.
ALTER TABLE groups ADD COLUMN looks_like text;
UPDATE groups SET looks_like = lower(name);
ALTER TABLE groups ALTER COLUMN looks_like SET NOT NULL;
CREATE UNIQUE INDEX groups_looks_like ON groups (tenant_id, looks_like);

-- Sessions and keys of one user, in the order in which lists show them.
CREATE INDEX sessions_listed ON sessions (tenant_id, user_id, created_at DESC, id DESC);
CREATE INDEX api_keys_listed ON api_keys (tenant_id, created_at DESC, id DESC);
