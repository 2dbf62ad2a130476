//! The archive file.

use std::fs::File;
use std::io::{self, Read, Write as _};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use nimbus_disk::{Draft, FileMode};
use sha2::{Digest as _, Sha256};
use tempfile::TempDir;

use super::{BackupManifest, FORMAT, unusable};
use crate::StoreError;

const MANIFEST: &str = "manifest.json";
/// A manifest names tables; one larger than this is not one.
const LARGEST_MANIFEST: u64 = 64 * 1024 * 1024;

/// Packs the files of a folder behind their manifest.
pub(super) fn write(
    folder: &Path,
    manifest: &BackupManifest,
    target: &Path,
) -> Result<(), StoreError> {
    let unfinished = Draft::new(target, FileMode::Private).map_err(unusable)?;
    let mut builder = tar::Builder::new(GzEncoder::new(unfinished, Compression::default()));
    let text = serde_json::to_vec_pretty(manifest).map_err(unusable)?;
    let mut header = tar::Header::new_gnu();
    header.set_size(text.len() as u64);
    header.set_mode(0o600);
    builder
        .append_data(&mut header, MANIFEST, text.as_slice())
        .map_err(unusable)?;
    for table in &manifest.files {
        let mut file = File::open(folder.join(&table.file)).map_err(unusable)?;
        builder
            .append_file(&table.file, &mut file)
            .map_err(unusable)?;
    }
    let mut unfinished = builder
        .into_inner()
        .and_then(GzEncoder::finish)
        .map_err(unusable)?;
    unfinished.flush().map_err(unusable)?;
    unfinished.commit().map_err(unusable)
}

/// An archive whose every file was unpacked and is what the manifest says.
pub(super) struct OpenedBackup {
    pub(super) manifest: BackupManifest,
    folder: TempDir,
}

impl OpenedBackup {
    /// Names the archive by what is in it.
    pub(super) fn digest(&self) -> Result<String, StoreError> {
        let text = serde_json::to_vec(&self.manifest).map_err(unusable)?;
        Ok(hex::encode(Sha256::digest(text)))
    }

    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

pub(super) fn open(source: &Path) -> Result<OpenedBackup, StoreError> {
    let file = File::open(source).map_err(unusable)?;
    let mut archive = tar::Archive::new(GzDecoder::new(file));
    let mut entries = archive.entries().map_err(unusable)?;
    let first = entries
        .next()
        .ok_or_else(|| unusable("it is empty"))?
        .map_err(unusable)?;
    if first.path().map_err(unusable)?.as_os_str() != MANIFEST {
        return Err(unusable("it does not begin with a manifest"));
    }
    let manifest: BackupManifest =
        serde_json::from_reader(first.take(LARGEST_MANIFEST)).map_err(unusable)?;
    if manifest.format != FORMAT {
        return Err(unusable("it was made by another version"));
    }
    let folder = tempfile::tempdir().map_err(unusable)?;
    for table in &manifest.files {
        let entry = entries
            .next()
            .ok_or_else(|| unusable(format!("{} is missing", table.file)))?;
        let mut entry = entry.map_err(unusable)?;
        // The name is ours, not the archive's: a plain file name cannot lead out of the folder.
        let plain = Path::new(&table.file)
            .file_name()
            .is_some_and(|name| name == table.file.as_str());
        if !plain || entry.path().map_err(unusable)?.as_os_str() != table.file.as_str() {
            return Err(unusable(format!(
                "{} is not where it should be",
                table.file.escape_debug()
            )));
        }
        if unpack(&mut entry, &folder.path().join(&table.file))? != table.sha256 {
            return Err(unusable(format!("{} is damaged", table.file)));
        }
    }
    // The archive's own checksum comes last, and covers the manifest too.
    io::copy(&mut archive.into_inner(), &mut io::sink()).map_err(unusable)?;
    Ok(OpenedBackup { manifest, folder })
}

fn unpack(entry: &mut impl Read, target: &Path) -> Result<String, StoreError> {
    let mut file = File::create_new(target).map_err(unusable)?;
    let mut digest = Sha256::new();
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let read = entry.read(&mut buffer).map_err(unusable)?;
        if read == 0 {
            return Ok(hex::encode(digest.finalize()));
        }
        digest.update(&buffer[..read]);
        file.write_all(&buffer[..read]).map_err(unusable)?;
    }
}
