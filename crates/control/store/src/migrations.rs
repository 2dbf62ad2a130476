//! The migrations that are compiled in.

use std::sync::LazyLock;

use sha2::{Digest as _, Sha256};

use crate::bootstrap::quoted;
use crate::config::Roles;

mod embedded {
    include!(concat!(env!("OUT_DIR"), "/migrations.rs"));
}

/// A step of a schema. Never edited after a release: its checksum is in the ledger.
#[derive(Clone, Debug)]
pub(crate) struct Migration {
    pub(crate) version: i32,
    /// File name without its ending, such as `0001_tenancy`.
    pub(crate) name: &'static str,
    sql: &'static str,
    pub(crate) checksum: Vec<u8>,
}

impl Migration {
    fn new((name, sql): &(&'static str, &'static str)) -> Self {
        let version = name
            .split('_')
            .next()
            .and_then(|digits| digits.parse().ok());
        Self {
            version: version.expect("a migration is named NNNN_name.sql; a test checks it"),
            name,
            sql,
            checksum: Sha256::digest(sql).to_vec(),
        }
    }

    /// The statements, with the names of the roles filled in.
    pub(crate) fn sql(&self, roles: &Roles) -> String {
        self.sql
            .replace("{{owner}}", &quoted(&roles.owner))
            .replace("{{app}}", &quoted(&roles.app))
            .replace("{{readonly}}", &quoted(&roles.readonly))
    }
}

/// In order of application.
pub(crate) static GLOBAL: LazyLock<Vec<Migration>> = LazyLock::new(|| load(embedded::GLOBAL));
pub(crate) static TENANT: LazyLock<Vec<Migration>> = LazyLock::new(|| load(embedded::TENANT));

/// The newest of a tenant's schema.
pub(crate) fn newest() -> &'static str {
    TENANT.last().map_or("", |migration| migration.name)
}

fn load(files: &[(&'static str, &'static str)]) -> Vec<Migration> {
    files.iter().map(Migration::new).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_rise_and_names_are_well_formed() {
        for migrations in [&*GLOBAL, &*TENANT] {
            assert!(
                migrations
                    .windows(2)
                    .all(|pair| pair[0].version < pair[1].version)
            );
            for migration in migrations {
                let (digits, name) = migration.name.split_once('_').unwrap();
                assert_eq!(digits.len(), 4, "{}", migration.name);
                assert!(
                    name.chars()
                        .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
                );
            }
        }
    }

    #[test]
    fn roles_are_filled_in_everywhere() {
        let roles = Roles::for_database("n");
        for migration in GLOBAL.iter().chain(TENANT.iter()) {
            assert!(!migration.sql(&roles).contains("{{"), "{}", migration.name);
        }
    }
}
