//! Working on a state without being able to read its secrets.

use zeroize::Zeroizing;

use super::{CryptError, Crypter};

/// Leaves secrets closed. A secret "decrypts" to a JSON string that holds its ciphertext, and that
/// string "encrypts" back to the same ciphertext, so a state can be listed, sorted, repaired and
/// written again without a passphrase. Such values must never reach a provider.
#[derive(Clone, Copy, Debug, Default)]
pub struct SealedText;

impl Crypter for SealedText {
    fn encrypt(&self, plaintext: &str) -> Result<String, CryptError> {
        serde_json::from_str(plaintext).map_err(|_| CryptError::NoProvider)
    }

    fn decrypt(&self, ciphertext: &str) -> Result<Zeroizing<String>, CryptError> {
        Ok(Zeroizing::new(
            serde_json::Value::from(ciphertext).to_string(),
        ))
    }
}

/// For states that have no secrets provider: the first secret is an error.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoSecrets;

impl Crypter for NoSecrets {
    fn encrypt(&self, _: &str) -> Result<String, CryptError> {
        Err(CryptError::NoProvider)
    }

    fn decrypt(&self, _: &str) -> Result<Zeroizing<String>, CryptError> {
        Err(CryptError::NoProvider)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sealed_secrets_keep_their_ciphertext() {
        let opened = SealedText.decrypt("v1:a\"b:c").unwrap();
        assert_eq!(*opened, r#""v1:a\"b:c""#);
        assert_eq!(SealedText.encrypt(&opened).unwrap(), "v1:a\"b:c");
    }

    #[test]
    fn nothing_new_can_be_sealed() {
        assert_eq!(SealedText.encrypt("{}"), Err(CryptError::NoProvider));
        assert_eq!(NoSecrets.encrypt("1"), Err(CryptError::NoProvider));
        assert_eq!(NoSecrets.decrypt("1"), Err(CryptError::NoProvider));
    }
}
