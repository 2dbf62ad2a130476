//! A manifest with what the configuration files beside it say.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use nimbus_core::{Error, ErrorCode, Result};
use nimbus_disk::unreadable;
use nimbus_document::Document;
use nimbus_orchestrator::schema::ordered;
use nimbus_orchestrator::{
    CONFIG_FOLDER, ConfigFiles, Manifest, MergedConfigs, WRITTEN_FILE, WrittenConfigs,
    merge_configs,
};

use crate::files;
use crate::workspace::Workspace;

/// What a run reads: the manifest, with edits of configuration files in it.
#[derive(Clone, Debug)]
pub struct ConfiguredManifest {
    pub manifest: Manifest,
    /// The manifest as it is written.
    pub document: Document,
    pub merged: MergedConfigs,
    folder: PathBuf,
    /// What was recorded as written when the files were read.
    known: WrittenConfigs,
}

impl Workspace {
    /// The manifest of a deployment with what its configuration files say.
    ///
    /// # Errors
    ///
    /// When something cannot be read, or a key was changed in a file and in the manifest.
    pub fn configured(&self, id: &str) -> Result<ConfiguredManifest> {
        // One read, so that complaints point into the very text that was understood.
        let document = self.manifest_document(id)?;
        let mut manifest = Manifest::read(&document)?;
        let manifest_path = Path::new(document.name());
        let directory = manifest_path.parent().unwrap_or(manifest_path);
        let folder = directory.join(CONFIG_FOLDER);
        let found = read_configs(&folder)?;
        let merged = merge_configs(&mut manifest, &document, &found)?;
        Ok(ConfiguredManifest {
            manifest,
            document,
            merged,
            folder,
            known: found.written,
        })
    }
}

impl ConfiguredManifest {
    /// Lets the files follow the manifest where nobody edited them.
    ///
    /// # Errors
    ///
    /// When one cannot be written.
    pub fn follow(&self) -> Result<()> {
        for (name, text) in &self.merged.follow {
            files::replace(&self.folder.join(name), text)?;
        }
        // After the files: if this is not reached, they equal the manifest and are no edits.
        if self.merged.written == self.known {
            return Ok(());
        }
        let text = written_text(&self.merged.written);
        files::replace(&self.folder.join(WRITTEN_FILE), &text)
    }
}

/// The record of what was written, as it is kept.
pub(crate) fn written_text(written: &WrittenConfigs) -> String {
    let value = ordered(serde_json::json!(written));
    format!("{value:#}\n")
}

fn read_configs(folder: &Path) -> Result<ConfigFiles> {
    let mut found = ConfigFiles {
        written: read_written(&folder.join(WRITTEN_FILE))?,
        ..ConfigFiles::default()
    };
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(found),
        Err(error) => return Err(unreadable(folder, error)),
    };
    for entry in entries {
        let path = entry.map_err(|error| unreadable(folder, error))?.path();
        let name = path.file_name().and_then(|name| name.to_str());
        if let Some(name) = name.filter(|name| name.ends_with(".yaml")) {
            found.files.insert(name.to_owned(), Document::read(&path)?);
        }
    }
    Ok(found)
}

fn read_written(path: &Path) -> Result<WrittenConfigs> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(WrittenConfigs::new()),
        Err(error) => return Err(unreadable(path, error)),
    };
    serde_json::from_str(&text).map_err(|error| {
        let message = format!("{} is not what Nimbus wrote: {error}", path.display());
        Error::new(ErrorCode::DOCUMENT_SHAPE, message).with_help(
            "delete it if the configuration files say the same as the manifest; it is written again",
        )
    })
}
