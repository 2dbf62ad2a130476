//! Keys of an installation in files that only its user can read, made on the first start.
//!
//! A file that is missing later is not made anew where that would hide a loss: the database names
//! the outer keys that it needs, and [`App::open`](crate::App::open) refuses to start without them.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use nimbus_control_audit::SigningKey;
use nimbus_control_auth::{ServerKey, ServerKeys};
use nimbus_control_vault::{KekId, KeyEncryptionKey, KeyRing, KeySource};
use nimbus_core::{Error, ErrorCode, Result};
use nimbus_disk::FileMode;
use zeroize::Zeroizing;

use crate::app::{AppKeys, COPY_KEYS};

/// Keys that were given by the settings instead of files.
#[derive(Clone, Default)]
pub struct GivenKeys {
    /// `NIMBUS_JWT_SECRET`: signs tokens.
    pub token_secret: Option<Zeroizing<String>>,
    /// `NIMBUS_JWT_PREVIOUS_SECRET`: signed tokens that are still in use.
    pub previous_token_secret: Option<Zeroizing<String>>,
    /// `NIMBUS_SECRET_KEY`: protects stored secrets; 32 bytes in base64.
    pub secret_key: Option<Zeroizing<String>>,
}

impl fmt::Debug for GivenKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GivenKeys")
            .field("token_secret", &self.token_secret.is_some())
            .field("secret_key", &self.secret_key.is_some())
            .finish_non_exhaustive()
    }
}

impl AppKeys {
    /// The keys of an installation that needs these outer keys already. Nothing is made anew in place of a
    /// key that is missing: that would look like an installation whose secrets were never there.
    pub fn of_installation(folder: &Path, given: GivenKeys, needed: &[KekId]) -> Result<Self> {
        if needed.is_empty() {
            return Self::in_folder(folder, given);
        }
        let lost = |what: &str, code| {
            Error::new(
                code,
                format!(
                    "the installation exists, and {what} is not in {}",
                    folder.display()
                ),
            )
            .with_help(COPY_KEYS)
        };
        let rotated = !old_keys(folder, "vault.old").is_empty();
        if given.secret_key.is_none() && !folder.join("vault").exists() && !rotated {
            return Err(lost(
                "the key of stored secrets",
                ErrorCode::VAULT_KEY_MISSING,
            ));
        }
        if !folder.join("audit").exists() {
            return Err(lost(
                "the key of the audit trail",
                ErrorCode::AUDIT_KEY_UNUSABLE,
            ));
        }
        if rotated && !folder.join("vault").exists() && given.secret_key.is_none() {
            let older: Vec<_> = old_keys(folder, "vault.old")
                .into_iter()
                .map(|path| KeySource::File(path).load())
                .collect::<std::result::Result<_, _>>()?;
            let covers = |id: &KekId| older.iter().any(|key| key.id() == id);
            if !needed.iter().all(covers) {
                return Err(lost(
                    "a key of stored secrets",
                    ErrorCode::VAULT_KEY_MISSING,
                ));
            }
        }
        Self::in_folder(folder, given)
    }

    /// The keys in a folder. Older ones, which still read what they signed or wrapped, are in files
    /// named `tokens.old*` and `vault.old*`.
    pub fn in_folder(folder: &Path, given: GivenKeys) -> Result<Self> {
        let tokens = match given.token_secret {
            Some(secret) => token_key(&secret)?,
            None => {
                let made = KeyEncryptionKey::generate().to_text();
                token_key(&read_or_make(&folder.join("tokens"), &made)?)?
            }
        };
        let mut older = Vec::new();
        if let Some(secret) = given.previous_token_secret {
            older.push(token_key(&secret)?);
        }
        for path in old_keys(folder, "tokens.old") {
            older.push(token_key(&read(&path)?)?);
        }
        let made = SigningKey::generate().to_text();
        let audit = SigningKey::from_text(&read_or_make(&folder.join("audit"), &made)?)?;
        Ok(Self {
            tokens: ServerKeys::new(tokens, older),
            audit,
            vault: vault(folder, given.secret_key)?,
        })
    }
}

fn token_key(secret: &str) -> Result<ServerKey> {
    ServerKey::new(secret.trim().as_bytes()).ok_or_else(|| {
        let message = format!(
            "the secret for tokens has less than {} bytes",
            ServerKey::MIN_BYTES
        );
        Error::new(ErrorCode::CONFIG_BAD_VALUE, message)
            .with_help("openssl rand -base64 48 makes a good one")
    })
}

fn vault(folder: &Path, given: Option<Zeroizing<String>>) -> Result<KeyRing> {
    let active = match given {
        Some(value) => KeySource::Given {
            variable: "NIMBUS_SECRET_KEY",
            value,
        },
        None => {
            let path = folder.join("vault");
            read_or_make(&path, &KeyEncryptionKey::generate().to_text())?;
            KeySource::File(path)
        }
    };
    let mut older = Vec::new();
    for path in old_keys(folder, "vault.old") {
        older.push(KeySource::File(path).load()?);
    }
    Ok(KeyRing::new(active.load()?, older))
}

fn old_keys(folder: &Path, prefix: &str) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut paths: Vec<PathBuf> = entries
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|path| {
            path.file_name()
                .and_then(|name| name.to_str())
                .is_some_and(|name| name.starts_with(prefix))
        })
        .collect();
    paths.sort();
    paths
}

/// The file's text; a file that does not exist is made, private from its first byte, and never over
/// one that appeared meanwhile.
fn read_or_make(path: &Path, new: &str) -> Result<Zeroizing<String>> {
    let unwritable = |error: std::io::Error| {
        Error::new(
            ErrorCode::FILE_UNWRITABLE,
            format!("the key file {} cannot be made", path.display()),
        )
        .with_source(error)
    };
    if let Some(folder) = path.parent() {
        make_private_folder(folder).map_err(unwritable)?;
    }
    if !path.exists() {
        // Whole or not at all, also when several servers start at once on one folder.
        nimbus_disk::create(path, new.as_bytes(), FileMode::Private).map_err(unwritable)?;
    }
    read(path)
}

fn read(path: &Path) -> Result<Zeroizing<String>> {
    fs::read_to_string(path)
        .map(Zeroizing::new)
        .map_err(|error| {
            Error::new(
                ErrorCode::FILE_UNREADABLE,
                format!("the key file {} cannot be read", path.display()),
            )
            .with_source(error)
        })
}

fn make_private_folder(folder: &Path) -> std::io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::DirBuilderExt as _;
        builder.mode(0o700);
    }
    builder.create(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_made_once_and_found_again() {
        let folder = tempfile::tempdir().unwrap();
        let keys = folder.path().join("keys");
        let first = AppKeys::in_folder(&keys, GivenKeys::default()).unwrap();
        let second = AppKeys::in_folder(&keys, GivenKeys::default()).unwrap();
        assert_eq!(first.vault.active().id(), second.vault.active().id());
        assert_eq!(first.audit.verifying_key(), second.audit.verifying_key());
        assert_eq!(first.tokens.active().id(), second.tokens.active().id());
    }

    #[test]
    fn nothing_is_made_in_place_of_a_key_that_is_lost() {
        let folder = tempfile::tempdir().unwrap();
        let made = AppKeys::in_folder(&folder.path().join("keys"), GivenKeys::default()).unwrap();
        let needed = [made.vault.active().id().clone()];
        let restored = folder.path().join("restored");
        let refused =
            AppKeys::of_installation(&restored, GivenKeys::default(), &needed).unwrap_err();
        assert_eq!(refused.code(), ErrorCode::VAULT_KEY_MISSING);
        assert!(refused.help().unwrap_or_default().contains("copy keys/"));
        assert!(!restored.exists(), "and nothing was written");
        // A key that another installation made is no replacement for the one that was renamed away.
        AppKeys::in_folder(&restored, GivenKeys::default()).unwrap();
        fs::rename(restored.join("vault"), restored.join("vault.old1")).unwrap();
        assert!(AppKeys::of_installation(&restored, GivenKeys::default(), &needed).is_err());
        assert!(!restored.join("vault").exists());
        fs::remove_file(restored.join("audit")).unwrap();
        fs::copy(folder.path().join("keys/vault"), restored.join("vault")).unwrap();
        assert!(AppKeys::of_installation(&restored, GivenKeys::default(), &needed).is_err());
        assert!(!restored.join("audit").exists());
        fs::copy(folder.path().join("keys/audit"), restored.join("audit")).unwrap();
        AppKeys::of_installation(&restored, GivenKeys::default(), &needed).unwrap();
    }

    #[cfg(unix)]
    #[test]
    fn key_files_are_private() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let keys = folder.path().join("keys");
        AppKeys::in_folder(&keys, GivenKeys::default()).unwrap();
        for name in ["tokens", "audit", "vault"] {
            let mode = fs::metadata(keys.join(name)).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "{name}");
        }
    }

    #[test]
    fn a_short_secret_for_tokens_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let given = GivenKeys {
            token_secret: Some(Zeroizing::new("short".to_owned())),
            ..GivenKeys::default()
        };
        assert!(AppKeys::in_folder(folder.path(), given).is_err());
    }

    #[test]
    fn tokens_of_the_previous_secret_are_read_until_it_is_taken_away() {
        use nimbus_control_auth::token::{AccessTokens, TokenSubject};
        let folder = tempfile::tempdir().unwrap();
        let secret = |letter: &str| Some(Zeroizing::new(letter.repeat(48)));
        let keys = |active, previous| {
            let given = GivenKeys {
                token_secret: active,
                previous_token_secret: previous,
                secret_key: None,
            };
            AppKeys::in_folder(folder.path(), given).unwrap().tokens
        };
        let subject = TokenSubject {
            user: nimbus_core::UserId::random(),
            tenant: nimbus_core::TenantId::random(),
            session: uuid::Uuid::new_v4(),
        };
        let token =
            AccessTokens::new(keys(secret("a"), None), "nimbus".to_owned()).issue(subject, 0, 60);
        let reads = |keys| {
            AccessTokens::new(keys, "nimbus".to_owned())
                .read(&token, 1)
                .is_ok()
        };
        assert!(reads(keys(secret("b"), secret("a"))));
        assert!(!reads(keys(secret("b"), None)), "another secret is refused");
        // The same with files.
        fs::write(folder.path().join("tokens.old1"), "a".repeat(48)).unwrap();
        assert!(reads(keys(secret("b"), None)));
    }

    #[test]
    fn given_keys_do_not_show_themselves() {
        let given = GivenKeys {
            token_secret: Some(Zeroizing::new("canary-token".to_owned())),
            previous_token_secret: Some(Zeroizing::new("canary-previous".to_owned())),
            secret_key: Some(Zeroizing::new("canary-secret".to_owned())),
        };
        assert!(!format!("{given:?}").contains("canary"));
    }
}
