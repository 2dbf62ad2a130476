//! Signed checkpoints of the audit trail: in files outside of the database, and in the database for other
//! servers and for backups.
//!
//! What is signed is what this process committed itself, and not what the database says later: an entry that
//! is cut off before its checkpoint is missed all the same.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::PathBuf;

use jiff::Timestamp;
use nimbus_control_audit::Checkpoint;
use nimbus_control_store::{ChainHead, StoreError};
use nimbus_core::{Error, ErrorCode, TenantId};
use nimbus_disk::FileMode;
use tracing::{error, warn};
use uuid::Uuid;

use crate::app::App;
use crate::failure::Result;

/// Files with one checkpoint per line, one file per tenant.
#[derive(Debug)]
pub(crate) struct Checkpoints {
    folder: PathBuf,
    /// Tells this server's own checkpoints from those of others on the same database.
    pub(crate) server: Uuid,
}

impl Checkpoints {
    pub(crate) fn open(folder: PathBuf) -> Result<Self, Error> {
        let path = folder.join("server");
        let read = || -> std::io::Result<Uuid> {
            fs::create_dir_all(&folder)?;
            if let Ok(text) = fs::read_to_string(&path)
                && let Ok(server) = text.trim().parse()
            {
                return Ok(server);
            }
            let server = Uuid::new_v4();
            let text = format!("{server}\n");
            nimbus_disk::replace(&path, text.as_bytes(), FileMode::KeptOrPrivate)?;
            Ok(server)
        };
        let server = read().map_err(unwritable)?;
        Ok(Self { folder, server })
    }

    fn path(&self, tenant: TenantId) -> PathBuf {
        self.folder.join(format!("{tenant}.jsonl"))
    }

    fn append(&self, checkpoint: &Checkpoint) -> Result<String, Error> {
        let write = || -> std::io::Result<String> {
            fs::create_dir_all(&self.folder)?;
            let mut file = OpenOptions::new()
                .create(true)
                .read(true)
                .append(true)
                .open(self.path(checkpoint.tenant))?;
            cut_torn_line(&mut file)?;
            let line = serde_json::to_string(checkpoint)?;
            file.write_all(format!("{line}\n").as_bytes())?;
            file.sync_data()?;
            Ok(line)
        };
        write().map_err(unwritable)
    }

    /// Of a tenant that is gone for good.
    pub(crate) fn remove(&self, tenant: TenantId) -> std::io::Result<()> {
        match fs::remove_file(self.path(tenant)) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
            removed => removed,
        }
    }

    /// Every checkpoint of a tenant's file. A line that cannot be read is evidence too, and not skipped; the
    /// last one alone may be torn, by a machine that went down while it was written.
    pub(crate) fn read(&self, tenant: TenantId) -> Result<Vec<Checkpoint>, Error> {
        let text = match fs::read_to_string(self.path(tenant)) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(unreadable(error)),
            Ok(text) => text,
        };
        let whole = match text.rfind('\n') {
            Some(end) => &text[..end],
            None => "",
        };
        let lines = whole.lines();
        lines
            .map(|line| serde_json::from_str(line).map_err(unreadable))
            .collect()
    }
}

fn unwritable(error: std::io::Error) -> Error {
    Error::new(
        ErrorCode::FILE_UNWRITABLE,
        "a checkpoint of the audit trail cannot be written",
    )
    .with_source(error)
}

fn unreadable(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::new(
        ErrorCode::AUDIT_BROKEN,
        "a checkpoint of the audit trail cannot be read",
    )
    .with_source(error.into())
}

/// A line without its end would spoil the next one.
fn cut_torn_line(file: &mut File) -> std::io::Result<()> {
    let length = file.seek(SeekFrom::End(0))?;
    if length == 0 {
        return Ok(());
    }
    file.seek(SeekFrom::End(-1))?;
    let mut last = [0];
    file.read_exact(&mut last)?;
    if last == *b"\n" {
        return Ok(());
    }
    let mut text = Vec::new();
    file.seek(SeekFrom::Start(0))?;
    file.read_to_end(&mut text)?;
    let whole = text
        .iter()
        .rposition(|byte| *byte == b'\n')
        .map_or(0, |end| end + 1);
    warn!("the last checkpoint was written in part, and is left out");
    file.set_len(whole as u64)
}

/// What a tenant's trail is held against.
pub(crate) struct Witnesses {
    pub(crate) checkpoints: Vec<Checkpoint>,
    /// A checkpoint of this server that the database has and the file has not.
    pub(crate) missing: Option<u64>,
    /// What this process committed since the last checkpoint.
    pub(crate) head: Option<ChainHead>,
}

impl App {
    /// Signs how far each chain that grew has come. The server calls this every few seconds.
    pub async fn checkpoint_audit(&self, now: Timestamp) {
        let store = &self.inner.store;
        for (tenant, head) in store.audit_heads_take() {
            let key = &self.inner.keys.audit;
            let checkpoint = key.checkpoint_at(tenant, head.sequence, head.hash, now);
            if let Err(failure) = self.keep_checkpoint(&checkpoint).await {
                error!(error = %failure.error.log_text(), %tenant, "no checkpoint of the audit trail");
                store.audit_head_keep(tenant, head);
            }
        }
    }

    /// Keeps a checkpoint in the file, and where other servers find it.
    pub(crate) async fn keep_checkpoint(&self, checkpoint: &Checkpoint) -> Result<()> {
        let line = self.inner.checkpoints.append(checkpoint)?;
        let server = self.inner.checkpoints.server;
        let kept = self
            .inner
            .store
            .tenant_tx(checkpoint.tenant, async |tx| {
                tx.checkpoint_add(server, checkpoint.sequence, &line).await
            })
            .await;
        match kept {
            // A tenant that was deleted meanwhile has its file.
            Ok(()) | Err(StoreError::TenantUnknown) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Everything that is known about a tenant's trail, here and from other servers.
    pub(crate) async fn witnesses(&self, tenant: TenantId) -> Result<Witnesses> {
        let own = self.inner.checkpoints.read(tenant)?;
        let head = self.inner.store.audit_head(tenant);
        let stored = self
            .inner
            .store
            .tenant_tx(tenant, async |tx| tx.checkpoints().await)
            .await?;
        let in_file: BTreeSet<u64> = own.iter().map(|checkpoint| checkpoint.sequence).collect();
        let mut checkpoints = own;
        let mut missing = None;
        for (server, line) in stored {
            let checkpoint: Checkpoint = serde_json::from_str(&line).map_err(unreadable)?;
            let ours = server == self.inner.checkpoints.server;
            if ours && !in_file.contains(&checkpoint.sequence) {
                missing.get_or_insert(checkpoint.sequence);
            }
            checkpoints.push(checkpoint);
        }
        Ok(Witnesses {
            checkpoints,
            missing,
            head,
        })
    }
}
