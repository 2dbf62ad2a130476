//! An installation from a backup.

use std::path::Path;
use std::{fs, io};

use nimbus_control_store::{BackupManifest, StoreError};
use nimbus_core::{Error, ErrorCode, Result};
use nimbus_disk::FileMode;

use crate::database::{Database, DatabaseOptions};

/// There from before the database is until everything is in it: what was restored so far would pass
/// for a new installation.
const MARK: &str = "restore-unfinished";

/// Fills an empty installation, or goes on with a restore that was ended half-way.
///
/// # Errors
///
/// When the file cannot be used or something is there already.
pub async fn restore_installation(
    options: &DatabaseOptions,
    source: &Path,
) -> Result<BackupManifest> {
    let mark = options.data_dir.join(MARK);
    set(&options.data_dir, &mark).map_err(|error| {
        let message = format!("cannot write {}", mark.display());
        Error::new(ErrorCode::FILE_UNWRITABLE, message).with_source(error)
    })?;
    let restored = fill(options, source).await;
    // An error is told; only what ends without a word leaves the mark, and the database has its own
    // from where it is one.
    let _ = fs::remove_file(&mark);
    restored
}

async fn fill(options: &DatabaseOptions, source: &Path) -> Result<BackupManifest> {
    let database = Database::open(options).await?;
    let restored = async {
        let manifest = database.store.restore(source).await?;
        database.store.sessions_end_all().await?;
        Ok::<_, StoreError>(manifest)
    };
    let restored = restored.await;
    database.close().await;
    Ok(restored?)
}

fn set(data_dir: &Path, mark: &Path) -> io::Result<()> {
    nimbus_disk::create_folders(data_dir)?;
    nimbus_disk::replace(mark, b"", FileMode::Private)
}

/// Refuses an installation that a restore did not get far with.
pub(crate) fn ensure_finished(data_dir: &Path) -> Result<()> {
    match data_dir.join(MARK).exists() {
        true => Err(StoreError::RestoreUnfinished.into()),
        false => Ok(()),
    }
}
