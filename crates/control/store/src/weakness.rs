//! What of a database's set-up would let one tenant see another's rows.
//!
//! Everything is read from the catalog, so that a table nobody thought of is looked at too. The server
//! does not start while anything fatal is found.

use std::fmt;

use sqlx::{PgConnection, Row as _};

use crate::{Roles, StoreError};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Weakness {
    /// The app role goes around row-level security, by itself or through a role it is in.
    RoleBypasses { role: String, through: String },
    /// The app role owns something, by itself or through a role it is in.
    RoleOwns { role: String, object: String },
    /// The app role may create objects that shadow ours.
    RoleCreates { role: String, place: String },
    /// The app role may use the schema of the workflows, whose tables have no row-level security.
    RoleReaches { role: String, schema: String },
    /// Row-level security is off, or not for the table's owner.
    Unprotected { table: String },
    /// A tenant's table lets rows through that do not belong to the tenant that is set.
    OpenPolicy { table: String, policy: String },
    /// A tenant's table has no policy for reading and writing.
    NoPolicy { table: String },
    /// A unique index without the tenant tells of rows that are hidden.
    TellingIndex { index: String },
    /// A reference without the tenant tells of rows that are hidden.
    TellingReference { table: String, constraint: String },
    /// A view reads with its owner's rights.
    OwnersView { view: String },
    /// A function runs with its owner's rights and looks names up wherever the caller says.
    OpenFunction { function: String },
    /// The server lacks a security fix of row-level security.
    OldServer { version: String },
}

impl Weakness {
    /// Whether the server must not start with it.
    pub fn is_fatal(&self) -> bool {
        !matches!(self, Self::OldServer { .. })
    }
}

impl fmt::Display for Weakness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RoleBypasses { role, through } if role == through => {
                write!(
                    f,
                    "role {role} goes around row-level security: make it NOSUPERUSER NOBYPASSRLS"
                )
            }
            Self::RoleBypasses { role, through } => {
                write!(
                    f,
                    "role {role} is in {through}, which goes around row-level security: revoke the membership"
                )
            }
            Self::RoleOwns { role, object } => {
                write!(f, "role {role} owns {object}: give it to the owner role")
            }
            Self::RoleCreates { role, place } => {
                write!(
                    f,
                    "role {role} may create objects in {place}: revoke the right"
                )
            }
            Self::RoleReaches { role, schema } => {
                write!(
                    f,
                    "role {role} may use the schema {schema}: REVOKE USAGE ON SCHEMA {schema}"
                )
            }
            Self::Unprotected { table } => write!(
                f,
                "table {table} has no forced row-level security: ALTER TABLE … ENABLE and FORCE ROW LEVEL SECURITY"
            ),
            Self::OpenPolicy { table, policy } => write!(
                f,
                "policy {policy} on {table} does not compare with the current tenant: drop or correct it"
            ),
            Self::NoPolicy { table } => {
                write!(
                    f,
                    "table {table} has no policy with USING and WITH CHECK: call protect_tenant_table"
                )
            }
            Self::TellingIndex { index } => {
                write!(
                    f,
                    "unique index {index} lacks tenant_id, so a duplicate tells of hidden rows: add it"
                )
            }
            Self::TellingReference { table, constraint } => write!(
                f,
                "reference {constraint} of {table} lacks tenant_id, so it tells of hidden rows: add it"
            ),
            Self::OwnersView { view } => {
                write!(
                    f,
                    "view {view} reads with its owner's rights: set security_invoker"
                )
            }
            Self::OpenFunction { function } => write!(
                f,
                "function {function} runs with its owner's rights and has no search_path of its own: set one"
            ),
            Self::OldServer { version } => write!(
                f,
                "PostgreSQL {version} lacks security fixes of row-level security: update it"
            ),
        }
    }
}

/// First versions with the fixes: a plan made for one role is not used for another, and statistics do
/// not tell of hidden rows.
const FIXED: [(i32, i32); 3] = [(15, 14), (16, 10), (17, 6)];

/// A question about the catalog and what its rows, of one or two texts, mean. `$1` is the app role.
type CatalogQuestion = (&'static str, fn(&str, Vec<String>) -> Weakness);

const QUESTIONS: &[CatalogQuestion] = &[
    (
        "SELECT r.rolname::text FROM pg_roles r
         WHERE (r.rolsuper OR r.rolbypassrls) AND pg_has_role($1, r.oid, 'MEMBER')
           AND (r.rolname = $1 OR NOT (SELECT a.rolsuper FROM pg_roles a WHERE a.rolname = $1))",
        |role, found| Weakness::RoleBypasses { role: role.to_owned(), through: found.concat() },
    ),
    (
        "SELECT 'table ' || c.oid::regclass FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
         WHERE n.nspname LIKE 'nimbus\\_%' AND c.relkind IN ('r', 'p', 'v', 'm') AND pg_has_role($1, c.relowner, 'MEMBER')
         UNION ALL
         SELECT 'schema ' || n.nspname FROM pg_namespace n
         WHERE n.nspname LIKE 'nimbus\\_%' AND pg_has_role($1, n.nspowner, 'MEMBER')
         UNION ALL
         SELECT 'the database' FROM pg_database d
         WHERE d.datname = current_database() AND pg_has_role($1, d.datdba, 'MEMBER')",
        |role, found| Weakness::RoleOwns { role: role.to_owned(), object: found.concat() },
    ),
    (
        "SELECT 'schema ' || n.nspname FROM pg_namespace n
         WHERE (n.nspname = 'public' OR n.nspname LIKE 'nimbus\\_%') AND has_schema_privilege($1, n.oid, 'CREATE')
         UNION ALL
         SELECT 'the database' WHERE has_database_privilege($1, current_database(), 'CREATE, TEMP')",
        |role, found| Weakness::RoleCreates { role: role.to_owned(), place: found.concat() },
    ),
    (
        "SELECT c.oid::regclass::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
         WHERE n.nspname LIKE 'nimbus\\_%' AND c.relkind IN ('r', 'p', 'f') AND $1 <> ''
           AND n.nspname <> 'nimbus_workflows'
           AND NOT (c.relrowsecurity AND c.relforcerowsecurity)",
        |_, found| Weakness::Unprotected { table: found.concat() },
    ),
    // Workflows have a schema of their own, whose tables a library makes. No request reaches them, so nothing of a
    // tenant can be seen there; this is what keeps it so.
    (
        "SELECT n.nspname::text FROM pg_namespace n
         WHERE n.nspname = 'nimbus_workflows' AND has_schema_privilege($1, n.oid, 'USAGE')",
        |role, found| Weakness::RoleReaches { role: role.to_owned(), schema: found.concat() },
    ),
    (
        "SELECT c.oid::regclass::text FROM pg_class c
         JOIN pg_namespace n ON n.oid = c.relnamespace
         JOIN pg_attribute t ON t.attrelid = c.oid AND t.attname = 'tenant_id'
         WHERE n.nspname LIKE 'nimbus\\_%' AND c.relkind IN ('r', 'p') AND $1 <> ''
           AND NOT EXISTS (SELECT FROM pg_policy p WHERE p.polrelid = c.oid AND p.polcmd = '*' AND p.polpermissive
                             AND p.polqual IS NOT NULL AND p.polwithcheck IS NOT NULL AND p.polroles = '{0}')",
        |_, found| Weakness::NoPolicy { table: found.concat() },
    ),
    // Policies that reach the app role on a table that belongs to tenants.
    (
        "SELECT c.oid::regclass::text, p.polname::text FROM pg_policy p
         JOIN pg_class c ON c.oid = p.polrelid
         JOIN pg_namespace n ON n.oid = c.relnamespace
         WHERE n.nspname LIKE 'nimbus\\_%' AND p.polpermissive
           AND (c.relname = 'tenants' OR EXISTS (SELECT FROM pg_attribute t WHERE t.attrelid = c.oid AND t.attname = 'tenant_id'))
           AND EXISTS (SELECT FROM unnest(p.polroles) r WHERE r = 0 OR pg_has_role($1, r, 'MEMBER'))
           AND (COALESCE(pg_get_expr(p.polqual, p.polrelid), 'current_tenant') NOT LIKE '%current_tenant%'
             OR COALESCE(pg_get_expr(p.polwithcheck, p.polrelid), 'current_tenant') NOT LIKE '%current_tenant%')",
        |_, mut found| {
            let policy = found.pop().unwrap_or_default();
            Weakness::OpenPolicy { table: found.concat(), policy }
        },
    ),
    (
        "SELECT i.indexrelid::regclass::text FROM pg_index i
         JOIN pg_class c ON c.oid = i.indrelid
         JOIN pg_namespace n ON n.oid = c.relnamespace
         JOIN pg_attribute t ON t.attrelid = c.oid AND t.attname = 'tenant_id'
         WHERE n.nspname LIKE 'nimbus\\_%' AND i.indisunique AND $1 <> ''
           AND NOT t.attnum = ANY (i.indkey::int2[])",
        |_, found| Weakness::TellingIndex { index: found.concat() },
    ),
    (
        "SELECT k.conrelid::regclass::text, k.conname::text FROM pg_constraint k
         JOIN pg_class c ON c.oid = k.conrelid
         JOIN pg_namespace n ON n.oid = c.relnamespace
         JOIN pg_attribute t ON t.attrelid = c.oid AND t.attname = 'tenant_id'
         WHERE n.nspname LIKE 'nimbus\\_%' AND k.contype = 'f' AND $1 <> '' AND NOT t.attnum = ANY (k.conkey)
           AND EXISTS (SELECT FROM pg_attribute o WHERE o.attrelid = k.confrelid AND o.attname = 'tenant_id')",
        |_, mut found| {
            let constraint = found.pop().unwrap_or_default();
            Weakness::TellingReference { table: found.concat(), constraint }
        },
    ),
    (
        "SELECT c.oid::regclass::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
         WHERE n.nspname LIKE 'nimbus\\_%' AND $1 <> ''
           AND (c.relkind = 'm' OR c.relkind = 'v'
                AND NOT COALESCE(c.reloptions, '{}') && ARRAY['security_invoker=true', 'security_invoker=on'])",
        |_, found| Weakness::OwnersView { view: found.concat() },
    ),
    (
        "SELECT p.oid::regprocedure::text FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
         WHERE n.nspname LIKE 'nimbus\\_%' AND p.prosecdef AND $1 <> ''
           AND NOT EXISTS (SELECT FROM unnest(p.proconfig) s WHERE s LIKE 'search_path=%')",
        |_, found| Weakness::OpenFunction { function: found.concat() },
    ),
];

pub(crate) async fn find(
    connection: &mut PgConnection,
    roles: &Roles,
) -> Result<Vec<Weakness>, StoreError> {
    let mut weaknesses = Vec::new();
    // Whoever this connection really is: a role that was swapped is caught as well.
    let actual: String = sqlx::query_scalar("SELECT session_user::text")
        .fetch_one(&mut *connection)
        .await?;
    let mut names = vec![roles.app.clone()];
    if actual != roles.app {
        names.push(actual);
    }
    for role in &names {
        for (question, meaning) in QUESTIONS {
            for row in sqlx::query(*question)
                .bind(role)
                .fetch_all(&mut *connection)
                .await?
            {
                let texts = (0..row.len()).map(|column| row.get(column)).collect();
                weaknesses.push(meaning(role, texts));
            }
        }
    }
    weaknesses.extend(old_server(connection).await?);
    Ok(weaknesses)
}

async fn old_server(connection: &mut PgConnection) -> Result<Option<Weakness>, StoreError> {
    let (number, version): (i32, String) = sqlx::query_as(
        "SELECT current_setting('server_version_num')::int, current_setting('server_version')",
    )
    .fetch_one(connection)
    .await?;
    Ok(lacks_fixes(number).then_some(Weakness::OldServer { version }))
}

fn lacks_fixes(number: i32) -> bool {
    FIXED
        .iter()
        .any(|&(major, minor)| number / 10_000 == major && number % 10_000 < minor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn minor_versions_without_the_fixes_are_told() {
        for (number, old) in [
            (150_013, true),
            (150_014, false),
            (160_009, true),
            (170_005, true),
            (170_006, false),
            (180_000, false),
        ] {
            assert_eq!(lacks_fixes(number), old, "{number}");
        }
    }
}
