//! Key-encryption keys: where they come from, and the ring of those that are in use.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256};
use zeroize::{Zeroize as _, Zeroizing};

use crate::VaultError;

/// Length of every key here: AES-256.
pub const KEY_BYTES: usize = 32;

/// Which key wrapped something: the beginning of the key's digest, so that it says nothing about
/// the key and two installations do not confuse theirs.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KekId(String);

impl KekId {
    const DIGITS: usize = 16;

    pub fn parse(text: &str) -> Result<Self, VaultError> {
        let valid = text.len() == Self::DIGITS && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        valid
            .then(|| Self(text.to_ascii_lowercase()))
            .ok_or(VaultError::Malformed {
                reason: "a key id is 16 hexadecimal digits",
            })
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for KekId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for KekId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KekId({})", self.0)
    }
}

/// An outer key. Erased from memory when dropped; never shown.
#[derive(Clone)]
pub struct KeyEncryptionKey {
    id: KekId,
    bytes: Zeroizing<[u8; KEY_BYTES]>,
}

impl fmt::Debug for KeyEncryptionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyEncryptionKey({})", self.id)
    }
}

impl KeyEncryptionKey {
    pub fn from_bytes(bytes: [u8; KEY_BYTES]) -> Self {
        let mut hash = Sha256::new();
        hash.update(b"nimbus/vault/key-id/1");
        hash.update(bytes);
        let digest = hash.finalize();
        let id = hex::encode(&digest[..KekId::DIGITS / 2]);
        Self {
            id: KekId(id),
            bytes: Zeroizing::new(bytes),
        }
    }

    /// A new key from the system's random source.
    pub fn generate() -> Self {
        Self::from_bytes(rand::random())
    }

    pub fn id(&self) -> &KekId {
        &self.id
    }

    pub(crate) fn bytes(&self) -> &[u8; KEY_BYTES] {
        &self.bytes
    }

    /// The form that is kept in a file: base64 and a line break.
    pub fn to_text(&self) -> Zeroizing<String> {
        Zeroizing::new(format!("{}\n", STANDARD.encode(self.bytes.as_slice())))
    }

    /// Reads base64 of 32 bytes. `place` is named in errors.
    pub fn from_text(text: &str, place: &str) -> Result<Self, VaultError> {
        let unusable = |reason: &str| VaultError::KeyUnusable {
            place: place.to_owned(),
            reason: reason.to_owned(),
        };
        let decoded = STANDARD
            .decode(text.trim())
            .map(Zeroizing::new)
            .map_err(|_| unusable("it is not base64"))?;
        let mut bytes: [u8; KEY_BYTES] = decoded
            .as_slice()
            .try_into()
            .map_err(|_| unusable("it is not 32 bytes long"))?;
        if bytes.iter().all(|byte| *byte == bytes[0]) {
            bytes.zeroize();
            return Err(unusable("all its bytes are the same"));
        }
        Ok(Self::from_bytes(bytes))
    }
}

/// Where an outer key is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeySource {
    File(PathBuf),
    /// A value that was given directly, and the name of the variable it came from.
    Given {
        variable: &'static str,
        value: Zeroizing<String>,
    },
}

impl KeySource {
    /// Reads the key; what is missing or could be read by others is refused.
    pub fn load(&self) -> Result<KeyEncryptionKey, VaultError> {
        match self {
            Self::File(path) => load_file(path),
            Self::Given { variable, value } => KeyEncryptionKey::from_text(value, variable),
        }
    }
}

fn load_file(path: &Path) -> Result<KeyEncryptionKey, VaultError> {
    let place = path.display().to_string();
    let metadata = match fs::metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Err(VaultError::KeyMissing { place });
        }
        Err(error) => {
            let reason = error.to_string();
            return Err(VaultError::KeyUnusable { place, reason });
        }
        Ok(metadata) => metadata,
    };
    if readable_by_others(&metadata) {
        let reason = "other users can read it; make it readable by its owner alone".to_owned();
        return Err(VaultError::KeyUnusable { place, reason });
    }
    let text = fs::read_to_string(path)
        .map(Zeroizing::new)
        .map_err(|error| VaultError::KeyUnusable {
            place: place.clone(),
            reason: error.to_string(),
        })?;
    KeyEncryptionKey::from_text(&text, &place)
}

#[cfg(unix)]
fn readable_by_others(metadata: &fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    metadata.mode() & 0o077 != 0
}

#[cfg(not(unix))]
fn readable_by_others(_metadata: &fs::Metadata) -> bool {
    false
}

/// The active key, with which everything new is wrapped, and older ones that still open.
#[derive(Clone, Debug)]
pub struct KeyRing {
    active: KeyEncryptionKey,
    older: Vec<KeyEncryptionKey>,
}

impl KeyRing {
    pub fn new(active: KeyEncryptionKey, older: Vec<KeyEncryptionKey>) -> Self {
        Self { active, older }
    }

    pub fn active(&self) -> &KeyEncryptionKey {
        &self.active
    }

    /// The key of an id, or the refusal that names it.
    pub(crate) fn find(&self, id: &KekId) -> Result<&KeyEncryptionKey, VaultError> {
        std::iter::once(&self.active)
            .chain(&self.older)
            .find(|key| key.id() == id)
            .ok_or_else(|| VaultError::KeyUnknown { id: id.clone() })
    }

    /// The start-up check: every key that the database names must be here.
    pub fn check_complete<'a>(
        &self,
        named: impl IntoIterator<Item = &'a KekId>,
    ) -> Result<(), VaultError> {
        named.into_iter().try_for_each(|id| self.find(id).map(drop))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_reads_back_from_its_text_and_keeps_its_id() {
        let key = KeyEncryptionKey::generate();
        let again = KeyEncryptionKey::from_text(&key.to_text(), "test").unwrap();
        assert_eq!(again.id(), key.id());
        assert_eq!(KekId::parse(key.id().as_str()).unwrap(), *key.id());
        assert_ne!(KeyEncryptionKey::generate().id(), key.id());
    }

    #[test]
    fn unusable_keys_are_refused_with_the_reason() {
        for (text, reason) in [
            ("", "not 32 bytes"),
            ("AAAA", "not 32 bytes"),
            ("not base64!", "not base64"),
            ("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=", "the same"),
        ] {
            let error = KeyEncryptionKey::from_text(text, "the place").unwrap_err();
            assert!(error.to_string().contains(reason), "{error}");
            assert!(error.to_string().contains("the place"), "{error}");
        }
    }

    #[test]
    fn a_missing_file_is_refused_and_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kek");
        let error = KeySource::File(path.clone()).load().unwrap_err();
        assert!(
            matches!(&error, VaultError::KeyMissing { place } if *place == path.display().to_string())
        );
    }

    #[cfg(unix)]
    #[test]
    fn a_file_that_others_can_read_is_refused() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kek");
        let key = KeyEncryptionKey::generate();
        fs::write(&path, key.to_text().as_bytes()).unwrap();
        for (mode, accepted) in [(0o600, true), (0o400, true), (0o640, false), (0o604, false)] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(
                KeySource::File(path.clone()).load().is_ok(),
                accepted,
                "{mode:o}"
            );
        }
    }

    #[test]
    fn start_up_is_refused_when_a_named_key_is_not_there() {
        let (old, new) = (KeyEncryptionKey::generate(), KeyEncryptionKey::generate());
        let old_id = old.id().clone();
        let complete = KeyRing::new(new, vec![old]);
        complete.check_complete([&old_id]).unwrap();
        let incomplete = KeyRing::new(KeyEncryptionKey::generate(), Vec::new());
        let error = incomplete.check_complete([&old_id]).unwrap_err();
        assert!(error.to_string().contains(old_id.as_str()), "{error}");
    }

    #[test]
    fn keys_do_not_show_themselves() {
        let key = KeyEncryptionKey::generate();
        let text = key.to_text();
        assert!(!format!("{key:?}").contains(text.trim()));
    }
}
