//! Signed checkpoints of the audit trail, in files outside of the database.

use std::collections::HashSet;
use std::fs::{self, File, OpenOptions};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;

use jiff::Timestamp;
use nimbus_control_audit::Checkpoint;
use nimbus_control_store::AuditFilter;
use nimbus_core::{Error, ErrorCode, TenantId};
use parking_lot::Mutex;
use tracing::error;

use crate::app::App;
use crate::failure::Result;

/// Files with one checkpoint per line, one file per tenant.
#[derive(Debug)]
pub(crate) struct Checkpoints {
    folder: PathBuf,
    /// Tenants whose chain grew since their last checkpoint.
    grown: Mutex<HashSet<TenantId>>,
}

impl Checkpoints {
    pub(crate) fn new(folder: PathBuf) -> Self {
        Self {
            folder,
            grown: Mutex::new(HashSet::new()),
        }
    }

    pub(crate) fn note(&self, tenant: TenantId) {
        self.grown.lock().insert(tenant);
    }

    fn path(&self, tenant: TenantId) -> PathBuf {
        self.folder.join(format!("{tenant}.jsonl"))
    }

    pub(crate) fn append(&self, checkpoint: &Checkpoint) -> Result<(), Error> {
        let path = self.path(checkpoint.tenant);
        let write = || -> std::io::Result<()> {
            fs::create_dir_all(&self.folder)?;
            let mut file = OpenOptions::new().create(true).append(true).open(&path)?;
            let line = serde_json::to_string(checkpoint)? + "\n";
            file.write_all(line.as_bytes())?;
            file.sync_data()
        };
        write().map_err(|error| {
            Error::new(
                ErrorCode::FILE_UNWRITABLE,
                "a checkpoint of the audit trail cannot be written",
            )
            .with_source(error)
        })
    }

    /// Of a tenant that is gone for good.
    pub(crate) fn remove(&self, tenant: TenantId) -> std::io::Result<()> {
        match fs::remove_file(self.path(tenant)) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
            removed => removed,
        }
    }

    /// Every checkpoint of a tenant. A line that cannot be read is evidence too, and not skipped.
    pub(crate) fn read(&self, tenant: TenantId) -> Result<Vec<Checkpoint>, Error> {
        let unreadable = |error: Box<dyn std::error::Error + Send + Sync>| {
            Error::new(
                ErrorCode::AUDIT_BROKEN,
                "a checkpoint of the audit trail cannot be read",
            )
            .with_source(error)
        };
        let file = match File::open(self.path(tenant)) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(unreadable(error.into())),
            Ok(file) => file,
        };
        BufReader::new(file)
            .lines()
            .map(|line| {
                let line = line.map_err(|error| unreadable(error.into()))?;
                serde_json::from_str(&line).map_err(|error| unreadable(error.into()))
            })
            .collect()
    }
}

impl App {
    /// Signs how far each chain that grew has come. The server calls this every few seconds.
    pub async fn checkpoint_audit(&self, now: Timestamp) {
        let grown: Vec<_> = self.inner.checkpoints.grown.lock().drain().collect();
        for tenant in grown {
            if let Err(failure) = self.checkpoint(tenant, now).await {
                error!(error = %failure.error.log_text(), %tenant, "no checkpoint of the audit trail");
                self.inner.checkpoints.note(tenant);
            }
        }
    }

    async fn checkpoint(&self, tenant: TenantId, now: Timestamp) -> Result<()> {
        let filter = AuditFilter {
            newest_first: true,
            limit: 1,
            ..AuditFilter::default()
        };
        let store = &self.inner.store;
        let newest = store
            .tenant_tx(tenant, async |tx| tx.audit_list(&filter).await)
            .await?;
        if let Some(entry) = newest.first() {
            let checkpoint = self.inner.keys.audit.checkpoint(entry, now);
            self.inner.checkpoints.append(&checkpoint)?;
        }
        Ok(())
    }
}
