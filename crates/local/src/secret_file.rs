//! The secrets of a deployment: `secrets.yaml` beside its manifest.
//!
//! Values are encrypted one by one under the deployment's own provider, a passphrase or a key
//! management service, so the file can be kept with the code. Configuration refers to a secret by its
//! name: `{secret: NAME}`. A name may have a value for each environment, and one for all others.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nimbus_core::{EnvironmentName, Error, ErrorCode, Result};
use nimbus_disk::{FileMode, FolderEdit, FolderFiles, unreadable, unwritable};
use nimbus_document::{Document, View};
use nimbus_engine_backend::{DeclaredSecrets, Keyring, SecretsError, StackSecrets};
use nimbus_engine_model::SecretsProvider;
use nimbus_orchestrator::yaml;
use serde_json::{Map, Value, json};
use zeroize::Zeroizing;

const FILE: &str = "secrets.yaml";
/// Stands for every environment that has no value of its own.
const ALL: &str = "*";
const LONGEST: usize = 200;

/// Where a value of a secret counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SecretScope {
    /// In every environment that has no value of its own.
    All,
    In(EnvironmentName),
}

impl fmt::Display for SecretScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.write_str(ALL),
            Self::In(environment) => environment.fmt(f),
        }
    }
}

impl From<Option<EnvironmentName>> for SecretScope {
    fn from(environment: Option<EnvironmentName>) -> Self {
        environment.map_or(Self::All, Self::In)
    }
}

/// The file as it was read, and as it will be written.
#[derive(Clone, Debug)]
pub struct SecretFile {
    path: PathBuf,
    files: FolderFiles,
    provider: Option<SecretsProvider>,
    /// Ciphertexts by name and scope.
    values: BTreeMap<String, BTreeMap<SecretScope, String>>,
}

impl SecretFile {
    /// The secrets of the deployment in a directory; a file that is not there has none.
    ///
    /// # Errors
    ///
    /// When the file cannot be read.
    pub fn load(deployment: &Path) -> Result<Self> {
        Self::load_with(&FolderFiles::own(deployment), deployment)
    }

    /// The same in a workspace that may be a stranger's.
    ///
    /// # Errors
    ///
    /// When the file cannot be read.
    pub fn load_with(files: &FolderFiles, deployment: &Path) -> Result<Self> {
        let path = deployment.join(FILE);
        let empty = Self {
            path: path.clone(),
            files: files.clone(),
            provider: None,
            values: BTreeMap::new(),
        };
        let bytes = match files.read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(empty),
            Err(error) => return Err(unreadable(&path, error)),
        };
        let document = Document::parse_bytes(&path.display().to_string(), &bytes)?;
        let view = document.view();
        view.only_keys(&["provider", "secrets"])?;
        let provider = view.optional("provider")?;
        let provider = provider.map(|v| read_provider(&v)).transpose()?;
        let mut values = BTreeMap::new();
        if let Some(secrets) = view.optional("secrets")? {
            for (name, scopes) in secrets.entries()? {
                values.insert(name.to_owned(), read_scopes(&scopes)?);
            }
        }
        Ok(Self {
            provider,
            values,
            ..empty
        })
    }

    /// The same to change it: nobody else does until the second value is dropped.
    ///
    /// # Errors
    ///
    /// When the file cannot be read.
    pub fn edit_with(files: &FolderFiles, deployment: &Path) -> Result<(Self, FolderEdit)> {
        let edit = FolderEdit::begin(deployment).map_err(|error| unreadable(deployment, error))?;
        Ok((Self::load_with(files, deployment)?, edit))
    }

    /// Names and where they have values.
    pub fn names(&self) -> impl Iterator<Item = (&str, Vec<SecretScope>)> {
        let values = self.values.iter();
        values.map(|(name, scopes)| (name.as_str(), scopes.keys().copied().collect()))
    }

    /// How values are encrypted, in a word; `None` before the first one.
    pub fn provider_kind(&self) -> Option<&str> {
        self.provider
            .as_ref()
            .map(|provider| provider.kind.as_str())
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Encrypts a value. The first one of a deployment decides on the provider: the service at an
    /// address, or a passphrase.
    ///
    /// # Errors
    ///
    /// When the name cannot be one, another provider was chosen before, or the key cannot be had.
    pub fn set(
        &mut self,
        name: &str,
        scope: SecretScope,
        value: &str,
        service: Option<&str>,
        keyring: &Arc<Keyring>,
    ) -> Result<()> {
        check_name(name)?;
        if service.is_some() && self.provider.is_some() {
            let message = format!("{} has a provider already", self.path.display());
            return Err(Error::new(ErrorCode::USAGE, message).with_help(
                "leave --provider out; to change it, remove the file and set every secret again",
            ));
        }
        let declared = match service {
            Some(url) => DeclaredSecrets::Service(url.to_owned()),
            None => DeclaredSecrets::Nothing,
        };
        let secrets = StackSecrets::declared(keyring, &declared, self.provider.clone());
        let crypter = secrets.crypter().map_err(unavailable)?;
        let ciphertext = crypter.encrypt(value).map_err(SecretsError::from);
        let ciphertext = ciphertext.map_err(unavailable)?;
        self.provider = secrets.provider();
        let scopes = self.values.entry(name.to_owned()).or_default();
        scopes.insert(scope, ciphertext);
        Ok(())
    }

    /// Takes a value away, or with no scope all values of a name.
    ///
    /// # Errors
    ///
    /// When there is none.
    pub fn remove(&mut self, name: &str, scope: Option<SecretScope>) -> Result<()> {
        let found = match (scope, self.values.get_mut(name)) {
            (_, None) => false,
            (None, Some(_)) => self.values.remove(name).is_some(),
            (Some(scope), Some(scopes)) => scopes.remove(&scope).is_some(),
        };
        self.values.retain(|_, scopes| !scopes.is_empty());
        if found {
            return Ok(());
        }
        let of = scope
            .map(|scope| format!(" of {scope}"))
            .unwrap_or_default();
        let message = format!("there is no secret `{name}`{of}");
        let near = nimbus_document::did_you_mean(name, self.values.keys().map(String::as_str));
        let help = near.unwrap_or_else(|| "`nimbus secret list` shows what there is".to_owned());
        Err(Error::new(ErrorCode::SECRET_UNKNOWN, message).with_help(help))
    }

    /// Whether a secret has a value in an environment.
    pub fn has(&self, environment: EnvironmentName, name: &str) -> bool {
        self.ciphertext(environment, name).is_some()
    }

    /// The value of a secret in an environment.
    ///
    /// # Errors
    ///
    /// When the key cannot be had or does not fit.
    pub fn open(
        &self,
        environment: EnvironmentName,
        name: &str,
        keyring: &Arc<Keyring>,
    ) -> Result<Option<Zeroizing<String>>> {
        let Some(ciphertext) = self.ciphertext(environment, name) else {
            return Ok(None);
        };
        let secrets = StackSecrets::new(keyring, self.provider.clone());
        let opened = secrets.crypter().map_err(unavailable)?.decrypt(ciphertext);
        let text = opened.map_err(SecretsError::from).map_err(unavailable)?;
        Ok(Some(text))
    }

    fn ciphertext(&self, environment: EnvironmentName, name: &str) -> Option<&String> {
        let scopes = self.values.get(name)?;
        let own = scopes.get(&SecretScope::In(environment));
        own.or_else(|| scopes.get(&SecretScope::All))
    }

    /// # Errors
    ///
    /// When the file cannot be written.
    pub fn save(&self) -> Result<()> {
        let written =
            self.files
                .replace(&self.path, self.text().as_bytes(), FileMode::KeptOrShared);
        written.map_err(|error| unwritable(&self.path, error))
    }

    fn text(&self) -> String {
        let header = [
            "Secrets of this deployment, encrypted. Change them with `nimbus secret`; refer to them \
             with {secret: NAME}."
                .to_owned(),
        ];
        let scopes = |scopes: &BTreeMap<SecretScope, String>| -> Value {
            let entries = scopes.iter();
            Value::Object(
                entries
                    .map(|(scope, text)| (scope.to_string(), json!(text)))
                    .collect(),
            )
        };
        let values: Map<_, _> = self
            .values
            .iter()
            .map(|(name, values)| (name.clone(), scopes(values)))
            .collect();
        let mut root = Map::from_iter([("secrets".to_owned(), Value::Object(values))]);
        if let Some(provider) = &self.provider {
            let written = json!({ "type": provider.kind, "state": provider.state });
            root.insert("provider".to_owned(), written);
        }
        yaml::write(&header, &root)
    }
}

fn read_provider(view: &View<'_>) -> Result<SecretsProvider> {
    view.only_keys(&["type", "state"])?;
    let state = view.required("state")?;
    Ok(SecretsProvider {
        kind: view.required("type")?.str()?.to_owned(),
        state: view.document().to_json(state.node())?,
    })
}

fn read_scopes(view: &View<'_>) -> Result<BTreeMap<SecretScope, String>> {
    let mut scopes = BTreeMap::new();
    for (name, value) in view.entries()? {
        let scope = match name {
            ALL => SecretScope::All,
            other => {
                SecretScope::In(other.parse().map_err(|error: nimbus_core::Malformed| {
                    value.error(error.to_string(), "here")
                })?)
            }
        };
        scopes.insert(scope, value.str()?.to_owned());
    }
    Ok(scopes)
}

fn check_name(name: &str) -> Result<()> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "-_.:/".contains(c);
    if (1..=LONGEST).contains(&name.len()) && name.chars().all(allowed) {
        return Ok(());
    }
    let shown: String = name.chars().take(60).collect();
    let message = format!("`{shown}` cannot be the name of a secret");
    Err(Error::new(ErrorCode::USAGE, message)
        .with_help("use letters, digits and `-_.:/`, at most 200 characters"))
}

fn unavailable(error: SecretsError) -> Error {
    error.into()
}

#[cfg(test)]
mod tests {
    use nimbus_engine_backend::{EnvironmentVariables, KeyServices, PASSPHRASE};

    use super::*;

    fn keyring(passphrase: &str) -> Arc<Keyring> {
        Keyring::new(
            EnvironmentVariables::fixed([(PASSPHRASE, passphrase)]),
            KeyServices::Any,
        )
    }

    fn environment(name: &str) -> EnvironmentName {
        name.parse().unwrap()
    }

    #[test]
    fn a_secret_is_kept_encrypted_and_opened_with_the_passphrase() {
        let temp = tempfile::tempdir().unwrap();
        let keys = keyring("correct");
        let mut file = SecretFile::load(temp.path()).unwrap();
        let live = SecretScope::In(environment("live"));
        file.set("db", SecretScope::All, "hunter2-all", None, &keys)
            .unwrap();
        file.set("db", live, "hunter2-live", None, &keys).unwrap();
        file.save().unwrap();
        let text = std::fs::read_to_string(temp.path().join(FILE)).unwrap();
        assert!(!text.contains("hunter2"), "{text}");

        let again = SecretFile::load(temp.path()).unwrap();
        assert_eq!(again.provider_kind(), Some("passphrase"));
        let open = |name: &str, keys: &Arc<Keyring>| again.open(environment(name), "db", keys);
        // Another keyring, as in another process: the key is made of the file's salt.
        let fresh = keyring("correct");
        assert_eq!(*open("live", &fresh).unwrap().unwrap(), "hunter2-live");
        assert_eq!(*open("test", &fresh).unwrap().unwrap(), "hunter2-all");
        assert!(open("live", &keyring("wrong")).is_err());
        assert!(
            again
                .open(environment("live"), "other", &fresh)
                .unwrap()
                .is_none()
        );
    }

    #[test]
    fn what_is_not_there_cannot_be_removed_and_names_are_checked() {
        let temp = tempfile::tempdir().unwrap();
        let mut file = SecretFile::load(temp.path()).unwrap();
        let keys = keyring("p");
        file.set("token", SecretScope::All, "x", None, &keys)
            .unwrap();
        let error = file.remove("tokn", None).unwrap_err();
        assert_eq!(error.code(), ErrorCode::SECRET_UNKNOWN);
        assert_eq!(error.help(), Some("did you mean `token`?"));
        let test = SecretScope::In(environment("test"));
        assert!(file.remove("token", Some(test)).is_err());
        file.remove("token", Some(SecretScope::All)).unwrap();
        assert_eq!(file.names().count(), 0);
        for bad in ["", "a b", "ü", "a\n"] {
            assert!(
                file.set(bad, SecretScope::All, "x", None, &keys).is_err(),
                "{bad:?}"
            );
        }
        let url = Some("awskms://alias/x?region=eu-west-1");
        file.set("a", SecretScope::All, "x", None, &keys).unwrap();
        let error = file
            .set("b", SecretScope::All, "x", url, &keys)
            .unwrap_err();
        assert_eq!(error.code(), ErrorCode::USAGE);
    }
}
