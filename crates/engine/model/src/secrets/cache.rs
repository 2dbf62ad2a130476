//! Keeping the ciphertext of secrets that did not change.
//!
//! Encrypting again gives another ciphertext, so a state that is read and written would differ in
//! every secret. The ciphertext is therefore kept by place (resource and path) and content. By
//! content alone would be wrong: two resources with equal secrets would then show that they are
//! equal.

use std::collections::HashMap;
use std::fmt;

use sha2::{Digest, Sha256};

use crate::path::PropertyPath;
use crate::urn::Urn;

/// Where a secret stands: a resource, and a path that starts with `inputs`, `outputs` or
/// `replacementTrigger`.
pub(crate) type SecretPlace = (Urn, PropertyPath);

/// Remembers ciphertexts. It holds no plaintext, only digests under a key of its own.
#[derive(Clone)]
pub struct CiphertextCache {
    key: [u8; 32],
    entries: HashMap<SecretPlace, Vec<CachedCiphertext>>,
}

#[derive(Clone)]
struct CachedCiphertext {
    digest: [u8; 32],
    ciphertext: String,
}

impl Default for CiphertextCache {
    fn default() -> Self {
        Self {
            key: rand::random(),
            entries: HashMap::new(),
        }
    }
}

impl CiphertextCache {
    /// An empty cache that can take entries over from this one.
    pub(crate) fn successor(&self) -> Self {
        Self {
            key: self.key,
            entries: HashMap::new(),
        }
    }

    pub(crate) fn insert(&mut self, place: SecretPlace, plaintext: &str, ciphertext: String) {
        let digest = self.digest(plaintext);
        self.entries
            .entry(place)
            .or_default()
            .push(CachedCiphertext { digest, ciphertext });
    }

    /// The ciphertext to use for a secret that `successor` does not have yet. A resource that is
    /// being replaced is in the state twice; each of the two keeps its own.
    pub(crate) fn next(
        &self,
        successor: &Self,
        place: &SecretPlace,
        plaintext: &str,
    ) -> Option<&str> {
        let digest = self.digest(plaintext);
        let taken = successor.matching(place, digest).count();
        self.matching(place, digest).nth(taken)
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    fn matching(&self, place: &SecretPlace, digest: [u8; 32]) -> impl Iterator<Item = &str> {
        let entries = self
            .entries
            .get(place)
            .map(Vec::as_slice)
            .unwrap_or_default();
        entries
            .iter()
            .filter(move |entry| entry.digest == digest)
            .map(|entry| entry.ciphertext.as_str())
    }

    fn digest(&self, plaintext: &str) -> [u8; 32] {
        Sha256::new()
            .chain_update(self.key)
            .chain_update(plaintext)
            .finalize()
            .into()
    }
}

impl fmt::Debug for CiphertextCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CiphertextCache({} places)", self.entries.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::urn;

    fn place(name: &str, path: &str) -> SecretPlace {
        (urn(name), PropertyPath::parse(path).unwrap())
    }

    #[test]
    fn a_ciphertext_belongs_to_one_place_and_one_content() {
        let mut cache = CiphertextCache::default();
        cache.insert(place("a", "inputs.p"), "1", "c1".to_owned());
        let none = cache.successor();
        let find = |name, path, plaintext| cache.next(&none, &place(name, path), plaintext);
        assert_eq!(find("a", "inputs.p", "1"), Some("c1"));
        assert_eq!(find("a", "inputs.p", "2"), None, "it changed");
        assert_eq!(find("a", "outputs.p", "1"), None, "another place");
        assert_eq!(find("b", "inputs.p", "1"), None, "another resource");
    }

    #[test]
    fn equal_secrets_at_one_place_keep_their_own_ciphertexts_in_order() {
        let mut cache = CiphertextCache::default();
        cache.insert(place("a", "inputs.p"), "1", "first".to_owned());
        cache.insert(place("a", "inputs.p"), "1", "second".to_owned());
        let mut successor = cache.successor();
        for expected in [Some("first"), Some("second"), None] {
            let found = cache.next(&successor, &place("a", "inputs.p"), "1");
            assert_eq!(found, expected);
            if let Some(found) = found {
                successor.insert(place("a", "inputs.p"), "1", found.to_owned());
            }
        }
    }
}
