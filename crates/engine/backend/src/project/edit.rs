//! Edits of `Pulumi.<stack>.yaml` that leave comments and all other text alone.
//!
//! A change is made in the text, the text is read back, and only if it says exactly what was meant
//! is it accepted. Otherwise a coarser change is tried, and in the end the edit is refused: a
//! settings file is never written on a guess.

use std::fs;
use std::path::{Component, Path};

use nimbus_core::{Error, ErrorCode, Result};
use nimbus_disk::{FileMode, unwritable};
use nimbus_engine_files::ProjectFiles;
use nimbus_engine_model::secrets::PassphraseManager;
use nimbus_engine_model::{PathSegment, SecretsProvider};
use serde_json::Value;

use super::config::ConfigMap;
use super::key::ConfigKey;
use super::render;
use super::settings::StackSettings;
use super::splice::Splicer;
use super::value::{ConfigValue, PlaceError, coerced};
use crate::secrets::{CloudKey, StackSecrets};

const CONFIG: &str = "config";
const SALT: &str = "encryptionsalt";
const ENCRYPTED_KEY: &str = "encryptedkey";

impl ConfigValue {
    /// What a person typed. Inside a list or mapping, numbers and truth values keep their kind.
    pub fn from_input(text: &str, path: &[PathSegment]) -> Self {
        if path.is_empty() {
            return Self::Text(text.to_owned());
        }
        coerced(text)
    }
}

impl StackSettings {
    pub fn set(&mut self, key: &ConfigKey, path: &[PathSegment], value: ConfigValue) -> Result<()> {
        let mut wanted = self.config.clone();
        wanted
            .set(key, path, value)
            .map_err(|error| misplaced(key, &error))?;
        self.change_config(EditKind::Put, key, path, wanted)
    }

    /// Encrypts a text and sets it. The first secret of a stack brings its key with it.
    pub fn set_secret(
        &mut self,
        key: &ConfigKey,
        path: &[PathSegment],
        plaintext: &str,
        secrets: &StackSecrets,
    ) -> Result<()> {
        let ciphertext = secrets.crypter()?.encrypt(plaintext).map_err(|error| {
            Error::new(
                ErrorCode::SECRETS_UNREADABLE,
                format!("`{key}` cannot be encrypted"),
            )
            .with_source(error)
        })?;
        if let Some(provider) = secrets.created() {
            self.set_secrets(&provider)?;
        }
        self.set(key, path, ConfigValue::Secure(ciphertext))
    }

    pub fn remove(&mut self, key: &ConfigKey, path: &[PathSegment]) -> Result<()> {
        if self.config.get(key, path).is_none() {
            return Ok(());
        }
        let mut wanted = self.config.clone();
        wanted
            .remove(key, path)
            .map_err(|error| misplaced(key, &error))?;
        self.change_config(EditKind::Take, key, path, wanted)
    }

    /// Writes down how secrets are encrypted: a salt, or a data key of the service that the file
    /// names already.
    pub fn set_secrets(&mut self, provider: &SecretsProvider) -> Result<()> {
        let mut keys = self.keys();
        let (name, text) = if let Ok(key) = CloudKey::of(provider) {
            (ENCRYPTED_KEY, keys.encrypted.insert(key.encrypted()))
        } else {
            let salt = PassphraseManager::salt_of(provider)?;
            (SALT, keys.salt.insert(salt.to_owned()))
        };
        let path = [PathSegment::from(name)];
        let value = ConfigValue::Text(text.clone());
        if keys == self.keys() {
            return Ok(());
        }
        let config = self.config.clone();
        let proposals = [self.put(&path, 1, &|_| Some(value.clone()))];
        self.accept(proposals, &ExpectedFile { config, keys })
    }

    fn keys(&self) -> SecretKeys {
        SecretKeys {
            salt: self.encryption_salt.clone(),
            encrypted: self.encrypted_key.clone(),
        }
    }

    /// The file as it is to be written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Writes the file whole, or not at all.
    ///
    /// Where projects are strangers' it is written where they may be read from and nowhere else: a link,
    /// or a folder that the project names, could lead to anybody's file.
    pub fn save(&self) -> Result<()> {
        if self.files.is_restricted() {
            check_place(&self.files, &self.path)
                .map_err(|source| super::file::unreadable(&self.path, source))?;
        }
        replace_file(&self.path, self.text().as_bytes())
            .map_err(|source| unwritable(&self.path, source))
    }

    /// Changes what is at a key, or below it, into what `config` has there.
    fn change_config(
        &mut self,
        change: EditKind,
        key: &ConfigKey,
        path: &[PathSegment],
        config: ConfigMap,
    ) -> Result<()> {
        let written = self.written(key);
        let mut full = vec![PathSegment::from(CONFIG), PathSegment::from(&*written)];
        full.extend(path.iter().cloned());
        let value_at = |at: &[PathSegment]| match at {
            [_, _, inner @ ..] => config.get(key, inner).cloned(),
            _ => whole(&config),
        };
        // From the most careful to the coarsest.
        let proposals = match change {
            EditKind::Put => [
                self.put(&full, full.len(), &value_at),
                self.put(&full, 2, &value_at),
                self.put(&full, 1, &value_at),
                None,
            ],
            EditKind::Take => [
                self.take(&full),
                self.put(&full, full.len() - 1, &value_at),
                self.without_config(&config),
                self.put(&full, 1, &value_at),
            ],
        };
        let keys = self.keys();
        self.accept(proposals, &ExpectedFile { config, keys })
    }

    /// How the key is spelt in the file, or would be.
    fn written(&self, key: &ConfigKey) -> String {
        let entries = self.document.as_ref().and_then(|document| {
            let config = document.root().get(CONFIG)?.as_mapping()?;
            let mut keys = config.keys();
            keys.find(|text| ConfigKey::parse_in(text, &self.project).as_ref() == Ok(key))
        });
        entries.map_or_else(|| key.to_string(), str::to_owned)
    }

    fn put(
        &self,
        path: &[PathSegment],
        depth: usize,
        wanted: &super::splice::DesiredLookup<'_>,
    ) -> Option<String> {
        let text = self.text();
        let document = self
            .document
            .as_ref()
            .filter(|document| !document.root().is_null());
        if let Some(document) = document {
            return Splicer::new(document, text).put(path, depth, wanted);
        }
        // Nothing but comments, perhaps.
        let [PathSegment::Key(first), ..] = path else {
            return None;
        };
        let value = wanted(&path[..1])?;
        let gap = if text.is_empty() || text.ends_with('\n') {
            ""
        } else {
            "\n"
        };
        let after_key = render::after_key(&value, 0, "\n");
        Some(format!(
            "{text}{gap}{}:{after_key}\n",
            render::scalar(first)
        ))
    }

    fn take(&self, path: &[PathSegment]) -> Option<String> {
        let document = self.document.as_ref()?;
        Splicer::new(document, self.text()).take(path)
    }

    /// An empty configuration is none.
    fn without_config(&self, config: &ConfigMap) -> Option<String> {
        let document = self.document.as_ref().filter(|_| config.is_empty())?;
        Splicer::new(document, self.text()).remove_root_entry(CONFIG)
    }

    /// Takes the first proposal that says what was meant.
    fn accept<const N: usize>(
        &mut self,
        proposals: [Option<String>; N],
        wanted: &ExpectedFile,
    ) -> Result<()> {
        let name = self.path.display().to_string();
        let is_json = self.path.extension().is_some_and(|ending| ending == "json");
        for text in proposals.into_iter().flatten().filter(|_| !is_json) {
            let read = Self::parse(&self.path, &self.project, text);
            if let Ok(read) = read
                && read.config == wanted.config
                && read.keys() == wanted.keys
                && read.everything_else() == self.everything_else()
            {
                let files = self.files.clone();
                *self = Self { files, ..read };
                return Ok(());
            }
        }
        let message = format!("{name} is written in a way that cannot be edited without risk");
        Err(Error::new(ErrorCode::STACK_FILE_UNEDITABLE, message)
            .with_help("make the change by hand, or write each key on a line of its own"))
    }

    /// What an edit must not touch.
    fn everything_else(&self) -> Option<Value> {
        let document = self.document.as_ref()?;
        let mut value = document.to_json(document.root()).ok()?;
        let map = value.as_object_mut()?;
        map.remove(CONFIG);
        map.remove(SALT);
        map.remove(ENCRYPTED_KEY);
        Some(value).filter(|value| value.as_object().is_some_and(|map| !map.is_empty()))
    }
}

#[derive(Clone, Copy)]
enum EditKind {
    Put,
    Take,
}

/// What the edited file must say.
struct ExpectedFile {
    config: ConfigMap,
    keys: SecretKeys,
}

/// What only the holder of a passphrase, or of rights at a service, can use.
#[derive(PartialEq, Eq)]
struct SecretKeys {
    salt: Option<String>,
    encrypted: Option<String>,
}

/// The whole configuration as one value.
fn whole(config: &ConfigMap) -> Option<ConfigValue> {
    let entries = config
        .iter()
        .map(|(key, value)| (key.to_string(), value.clone()));
    Some(ConfigValue::Map(entries.collect()))
}

fn misplaced(key: &ConfigKey, error: &PlaceError) -> Error {
    Error::new(
        ErrorCode::CONFIG_KEY,
        format!("`{key}` cannot be changed: {error}"),
    )
}

/// Refuses a file that leads, or whose folder leads, out of what may be read. Folders that are not there
/// yet are made, so they must not go up again.
fn check_place(files: &ProjectFiles, path: &Path) -> std::io::Result<()> {
    match files.symlink_metadata(path) {
        Ok(_) => return files.canonicalize(path).map(drop),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let mut existing = path;
    while let Some(folder) = existing.parent() {
        let new = existing.strip_prefix(folder).unwrap_or(existing);
        if new.components().any(|part| part == Component::ParentDir) {
            let message = "a folder that is not there cannot be left again";
            return Err(std::io::Error::new(
                std::io::ErrorKind::PermissionDenied,
                message,
            ));
        }
        match files.symlink_metadata(folder) {
            Ok(_) => return files.canonicalize(folder).map(drop),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => existing = folder,
            Err(error) => return Err(error),
        }
    }
    Err(std::io::ErrorKind::NotFound.into())
}

/// A link stays a link.
fn replace_file(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    nimbus_disk::replace(&target, bytes, FileMode::KeptOrShared)
}
