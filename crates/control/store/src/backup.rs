//! Backups: every row, as text, in one archive.
//!
//! A backup is logical and made by Nimbus itself, so it needs no program of PostgreSQL, moves between
//! versions of it, and can give one tenant back to a running installation. It is read in one snapshot:
//! what it holds was true at one moment. Tables come from the catalog, so none is forgotten.
//!
//! The archive is a tar file, compressed: `manifest.json` first, then a file per table in PostgreSQL's
//! `COPY` text form. The manifest has the digest of every file, and nothing is restored before all of
//! them were checked.

mod archive;
mod dump;
mod restore;

use std::path::Path;

use nimbus_core::TenantId;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{Store, StoreError};

/// What a backup holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackupScope {
    Everything,
    /// One tenant, without those below it.
    Tenant(TenantId),
}

/// What is in an archive.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BackupManifest {
    format: u32,
    pub created_at: String,
    pub installation: Uuid,
    pub isolation: String,
    /// Set if it is of one tenant.
    pub tenant: Option<Uuid>,
    /// Newest migration of the core and of tenants.
    core_version: i32,
    tenant_version: i32,
    files: Vec<DumpedTable>,
}

impl BackupManifest {
    /// Rows in all tables.
    pub fn rows(&self) -> u64 {
        self.files.iter().map(|file| file.rows).sum()
    }

    pub fn tables(&self) -> usize {
        self.files.len()
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct DumpedTable {
    /// Name of the file in the archive.
    file: String,
    place: TablePlace,
    table: String,
    columns: Vec<String>,
    rows: u64,
    sha256: String,
}

/// Whose rows a file has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum TablePlace {
    /// A table of the core without rows of tenants, or the registry.
    Installation,
    /// A tenant's rows in a table of the core.
    Core { tenant: Uuid },
    /// A tenant's rows in its own schema or the shared one.
    Own { tenant: Uuid },
}

impl Store {
    /// Writes a backup. It appears under its name only when it is complete.
    pub async fn backup(
        &self,
        scope: BackupScope,
        target: &Path,
    ) -> Result<BackupManifest, StoreError> {
        dump::run(self, scope, target).await
    }

    /// Fills an installation that has no operator yet from a backup of everything.
    pub async fn restore(&self, source: &Path) -> Result<BackupManifest, StoreError> {
        restore::everything(self, source).await
    }

    /// Gives a tenant the rows of a backup, in place of those it has. Everybody else goes on meanwhile.
    pub async fn restore_tenant(&self, source: &Path) -> Result<BackupManifest, StoreError> {
        restore::one_tenant(self, source).await
    }
}

/// The newest backup format that is understood, and the one that is written.
const FORMAT: u32 = 1;

fn unusable(why: impl std::fmt::Display) -> StoreError {
    StoreError::Backup(why.to_string())
}
