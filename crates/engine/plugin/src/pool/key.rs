//! What two processes must have in common to be one.
//!
//! Configurations hold credentials, so nothing of them is kept but a digest under a key that only
//! this process knows and that is different in each: a digest tells nothing, not even to somebody
//! who guesses the value.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

pub(crate) type KeyDigest = [u8; 32];

pub(crate) struct ConfigurationKeys {
    key: [u8; 32],
}

impl ConfigurationKeys {
    pub(crate) fn new() -> Self {
        Self {
            key: rand::random(),
        }
    }

    pub(crate) fn fields(&self) -> DigestFields {
        let mac = Hmac::new_from_slice(&self.key).expect("any length will do");
        DigestFields { mac }
    }
}

/// A digest in the making. Every part goes in with its length, so that parts cannot run together.
pub(crate) struct DigestFields {
    mac: Hmac<Sha256>,
}

impl DigestFields {
    pub(crate) fn add(&mut self, bytes: impl AsRef<[u8]>) -> &mut Self {
        let bytes = bytes.as_ref();
        self.mac.update(&(bytes.len() as u64).to_le_bytes());
        self.mac.update(bytes);
        self
    }

    pub(crate) fn add_path(&mut self, path: &Path) -> &mut Self {
        self.add(path.as_os_str().as_bytes())
    }

    pub(crate) fn add_optional(&mut self, part: Option<impl AsRef<[u8]>>) -> &mut Self {
        match part {
            Some(part) => self.add([1]).add(part),
            None => self.add([0]),
        }
    }

    pub(crate) fn add_variables(&mut self, all: &BTreeMap<OsString, OsString>) -> &mut Self {
        self.add((all.len() as u64).to_le_bytes());
        for (name, value) in all {
            self.add(name.as_bytes()).add(value.as_bytes());
            self.add_named_file(Path::new(value));
        }
        self
    }

    /// When the text is the path of a file, the file counts: credentials are often kept in one, and
    /// who renews them writes a new one under the old name.
    pub(crate) fn add_named_file(&mut self, path: &Path) -> &mut Self {
        if path.is_absolute() {
            self.add_stamp(path);
        }
        self
    }

    /// The file as it is now, by what changes whenever it is written anew.
    pub(crate) fn add_stamp(&mut self, path: &Path) -> &mut Self {
        let Ok(found) = path.metadata() else {
            return self.add("absent");
        };
        if !found.is_file() {
            return self.add("other");
        }
        self.add("file");
        for number in [found.ino(), found.size()] {
            self.add(number.to_le_bytes());
        }
        for number in [found.mtime(), found.mtime_nsec()] {
            self.add(number.to_le_bytes());
        }
        self
    }

    pub(crate) fn digest(&self) -> KeyDigest {
        self.mac.clone().finalize().into_bytes().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_depends_on_the_key_and_on_where_parts_end() {
        let keys = ConfigurationKeys::new();
        let digest = |keys: &ConfigurationKeys, parts: [&str; 2]| {
            let mut fields = keys.fields();
            fields.add(parts[0]).add(parts[1]);
            fields.digest()
        };
        assert_eq!(digest(&keys, ["ab", "c"]), digest(&keys, ["ab", "c"]));
        assert_ne!(digest(&keys, ["ab", "c"]), digest(&keys, ["a", "bc"]));
        assert_ne!(
            digest(&keys, ["ab", "c"]),
            digest(&ConfigurationKeys::new(), ["ab", "c"])
        );
    }

    #[test]
    fn a_file_that_a_variable_names_counts() {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let file = folder.path().join("credentials");
        let keys = ConfigurationKeys::new();
        let digest = || {
            let variables = [("CREDENTIALS".into(), file.clone().into_os_string())];
            keys.fields().add_variables(&variables.into()).digest()
        };
        let absent = digest();
        std::fs::write(&file, "one").expect("a file");
        let one = digest();
        assert_eq!(one, digest());
        std::fs::write(&file, "other").expect("a file");
        assert!(absent != one && one != digest());
    }
}
