//! Secrets under a passphrase, in the official format.
//!
//! The state is `v1:<salt>:<ciphertext of a known word>`, base64 inside; the word tells a wrong
//! passphrase from a damaged secret. The key is derived slowly on purpose: keep one manager for as
//! long as its secrets are needed.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use pbkdf2::pbkdf2_hmac;
use serde_json::{Value, json};
use sha2::Sha256;
use zeroize::Zeroizing;

use super::symmetric::{KEY_BYTES, SymmetricCrypter};
use super::{CryptError, Crypter};
use crate::snapshot::SecretsProvider;

const ITERATIONS: u32 = 1_000_000;
const SALT_BYTES: usize = 8;
const VERSION: &str = "v1";
const KNOWN_WORD: &str = "pulumi";

pub struct PassphraseManager {
    crypter: SymmetricCrypter,
    salt: String,
}

impl PassphraseManager {
    pub const KIND: &'static str = "passphrase";

    /// A manager for a stack that has no secrets yet, with a fresh salt.
    pub fn create(passphrase: &str) -> Result<Self, CryptError> {
        let salt: [u8; SALT_BYTES] = rand::random();
        let crypter = derive(passphrase, &salt);
        let check = crypter.encrypt(KNOWN_WORD)?;
        Ok(Self {
            crypter,
            salt: format!("{VERSION}:{}:{check}", STANDARD.encode(salt)),
        })
    }

    /// The manager that `salt` (a stack's `encryptionsalt`) describes.
    pub fn open(passphrase: &str, salt: &str) -> Result<Self, CryptError> {
        let malformed = |problem| CryptError::MalformedState { problem };
        let (version, rest) = salt
            .split_once(':')
            .ok_or_else(|| malformed("expected v1:<salt>:<ciphertext>"))?;
        let (encoded, check) = rest
            .split_once(':')
            .ok_or_else(|| malformed("expected v1:<salt>:<ciphertext>"))?;
        if version != VERSION {
            return Err(malformed("its version is not v1"));
        }
        let bytes = STANDARD
            .decode(encoded)
            .map_err(|_| malformed("the salt is not base64"))?;
        let crypter = derive(passphrase, &bytes);
        match crypter.decrypt(check) {
            Ok(word) if *word == KNOWN_WORD => Ok(Self {
                crypter,
                salt: salt.to_owned(),
            }),
            Err(CryptError::MalformedCiphertext { problem }) => Err(malformed(problem)),
            _ => Err(CryptError::WrongPassphrase),
        }
    }

    /// The manager that a state file names.
    pub fn open_provider(passphrase: &str, provider: &SecretsProvider) -> Result<Self, CryptError> {
        Self::open(passphrase, Self::salt_of(provider)?)
    }

    /// The salt inside a state file's secrets provider.
    pub fn salt_of(provider: &SecretsProvider) -> Result<&str, CryptError> {
        if provider.kind != Self::KIND {
            return Err(CryptError::MalformedState {
                problem: "its kind is not passphrase",
            });
        }
        let salt = provider.state.get("salt").and_then(Value::as_str);
        salt.ok_or(CryptError::MalformedState {
            problem: "there is no salt",
        })
    }

    /// As it is written to a stack's configuration.
    pub fn salt(&self) -> &str {
        &self.salt
    }

    /// As it is written to a state file.
    pub fn provider(&self) -> SecretsProvider {
        SecretsProvider {
            kind: Self::KIND.to_owned(),
            state: json!({ "salt": self.salt }),
        }
    }
}

fn derive(passphrase: &str, salt: &[u8]) -> SymmetricCrypter {
    let mut key = Zeroizing::new([0; KEY_BYTES]);
    pbkdf2_hmac::<Sha256>(passphrase.as_bytes(), salt, ITERATIONS, &mut *key);
    SymmetricCrypter::new(&key)
}

impl fmt::Debug for PassphraseManager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PassphraseManager")
            .field("salt", &self.salt)
            .finish_non_exhaustive()
    }
}

impl Crypter for PassphraseManager {
    fn encrypt(&self, plaintext: &str) -> Result<String, CryptError> {
        self.crypter.encrypt(plaintext)
    }

    fn decrypt(&self, ciphertext: &str) -> Result<Zeroizing<String>, CryptError> {
        self.crypter.decrypt(ciphertext)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Written by the official command line with the passphrase `password`.
    const OFFICIAL: &str = "v1:fozI5u6B030=:v1:F+6ZduKKd8G0/V7L:PGMFeIzwobWRKmEAzUdaQHqC5mMRIQ==";

    #[test]
    fn the_official_salt_opens_with_its_passphrase_only() {
        let manager = PassphraseManager::open("password", OFFICIAL).unwrap();
        assert_eq!(manager.salt(), OFFICIAL);
        assert_eq!(manager.provider().state, json!({ "salt": OFFICIAL }));
        let again = manager.encrypt("s3cret").unwrap();
        assert_eq!(*manager.decrypt(&again).unwrap(), "s3cret");
        assert_eq!(
            PassphraseManager::open("password123", OFFICIAL).unwrap_err(),
            CryptError::WrongPassphrase
        );
    }

    #[test]
    fn a_new_manager_can_be_opened_again_from_its_provider() {
        let manager = PassphraseManager::create("").unwrap();
        let ciphertext = manager.encrypt("x").unwrap();
        let opened = PassphraseManager::open_provider("", &manager.provider()).unwrap();
        assert_eq!(*opened.decrypt(&ciphertext).unwrap(), "x");
        assert!(!format!("{opened:?}").contains("key"));
    }

    #[test]
    fn a_malformed_state_is_not_a_wrong_passphrase() {
        for salt in [
            "",
            "v1",
            "v1:AAAA",
            "v2:AAAA:v1:AAAA:AAAA",
            "v1:!:v1:AAAA:AAAA",
        ] {
            assert!(
                matches!(
                    PassphraseManager::open("p", salt),
                    Err(CryptError::MalformedState { .. })
                ),
                "{salt}"
            );
        }
        let other = SecretsProvider {
            kind: "service".to_owned(),
            state: json!({}),
        };
        assert!(matches!(
            PassphraseManager::open_provider("p", &other),
            Err(CryptError::MalformedState { .. })
        ));
    }
}
