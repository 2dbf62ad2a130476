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

use nimbus_control_audit::SigningKey;
use nimbus_control_vault::KeyRing;
use nimbus_core::TenantId;
use serde::{Deserialize, Serialize};
use sqlx::Connection as _;
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

    /// Fills an installation that has no operator yet from a backup of everything, or goes on with that.
    pub async fn restore(&self, source: &Path) -> Result<BackupManifest, StoreError> {
        restore::everything(self, source).await
    }

    /// Whether a restore was begun and not finished. Nothing may be served then.
    pub async fn restore_unfinished(&self) -> Result<bool, StoreError> {
        restore::is_unfinished(self).await
    }

    /// Gives a tenant the rows of a backup, in place of those it has. Everybody else goes on meanwhile. Its
    /// audit trail goes on, nobody is let in again who was shut out since, and everybody signs in again.
    pub async fn restore_tenant(
        &self,
        source: &Path,
        keys: &RestoreKeys<'_>,
    ) -> Result<BackupManifest, StoreError> {
        restore::one_tenant(self, source, keys).await
    }

    /// Ends every session of every tenant, after a restore of everything: which of them were ended since the
    /// backup, nobody knows.
    pub async fn sessions_end_all(&self) -> Result<u64, StoreError> {
        let mut connection = self.owner_connection().await?;
        let tenants: Vec<Uuid> = sqlx::query_scalar("SELECT id FROM nimbus_core.tenants")
            .fetch_all(&mut connection)
            .await?;
        let mut ended = 0;
        for tenant in tenants {
            let mut tx = connection.begin().await?;
            dump::act_as(&mut tx, &tenant.to_string()).await?;
            let updated = sqlx::query(
                "UPDATE nimbus_core.sessions SET revoked_at = now() WHERE revoked_at IS NULL",
            )
            .execute(&mut *tx)
            .await?;
            ended += updated.rows_affected();
            tx.commit().await?;
        }
        connection.close().await?;
        Ok(ended)
    }
}

/// What a restore of one tenant is checked and recorded with.
#[derive(Clone, Copy, Debug)]
pub struct RestoreKeys<'a> {
    pub vault: &'a KeyRing,
    pub audit: &'a SigningKey,
}

/// The newest backup format that is understood, and the one that is written.
const FORMAT: u32 = 1;

fn unusable(why: impl std::fmt::Display) -> StoreError {
    StoreError::Backup(why.to_string())
}
