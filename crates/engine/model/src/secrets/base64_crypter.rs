//! Secrets that are only encoded: for tests, and for reading states that were written by tests.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use zeroize::Zeroizing;

use super::{CryptError, Crypter};
use crate::snapshot::SecretsProvider;

#[derive(Clone, Copy, Debug, Default)]
pub struct Base64Crypter;

impl Base64Crypter {
    pub const KIND: &'static str = "b64";

    pub fn provider(&self) -> SecretsProvider {
        SecretsProvider {
            kind: Self::KIND.to_owned(),
            state: serde_json::Value::Null,
        }
    }
}

impl Crypter for Base64Crypter {
    fn encrypt(&self, plaintext: &str) -> Result<String, CryptError> {
        Ok(STANDARD.encode(plaintext))
    }

    fn decrypt(&self, ciphertext: &str) -> Result<Zeroizing<String>, CryptError> {
        let bytes = STANDARD
            .decode(ciphertext)
            .map_err(|_| CryptError::MalformedCiphertext {
                problem: "it is not base64",
            })?;
        String::from_utf8(bytes)
            .map(Zeroizing::new)
            .map_err(|_| CryptError::NotText)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_come_back_and_other_texts_are_refused() {
        let ciphertext = Base64Crypter.encrypt("\"hi\"").unwrap();
        assert_eq!(ciphertext, "ImhpIg==");
        assert_eq!(*Base64Crypter.decrypt(&ciphertext).unwrap(), "\"hi\"");
        assert!(matches!(
            Base64Crypter.decrypt("!"),
            Err(CryptError::MalformedCiphertext { .. })
        ));
        assert_eq!(Base64Crypter.decrypt("/w=="), Err(CryptError::NotText));
    }
}
