//! Working on a state whose secrets stay closed.

use nimbus_engine_model::secrets::{CryptError, Crypter};
use uuid::Uuid;
use zeroize::Zeroizing;

/// Leaves ciphertexts as they are and encrypts only what is in the open. A closed secret passes
/// through as a text that nobody else could have written, so it cannot be confused with a real
/// one.
pub(crate) struct KeepSealed<'a> {
    mark: String,
    open: &'a dyn Crypter,
}

impl<'a> KeepSealed<'a> {
    /// `open` encrypts what comes in clear text.
    pub(crate) fn new(open: &'a dyn Crypter) -> Self {
        let mark = format!("nimbus-sealed-{}:", Uuid::new_v4());
        Self { mark, open }
    }
}

impl Crypter for KeepSealed<'_> {
    fn encrypt(&self, plaintext: &str) -> Result<String, CryptError> {
        let text: Option<String> = serde_json::from_str(plaintext).ok();
        match text
            .as_deref()
            .and_then(|text| text.strip_prefix(&self.mark))
        {
            Some(ciphertext) => Ok(ciphertext.to_owned()),
            None => self.open.encrypt(plaintext),
        }
    }

    fn decrypt(&self, ciphertext: &str) -> Result<Zeroizing<String>, CryptError> {
        let marked = format!("{}{ciphertext}", self.mark);
        Ok(Zeroizing::new(
            serde_json::Value::String(marked).to_string(),
        ))
    }
}

#[cfg(test)]
mod tests {
    use nimbus_engine_model::secrets::{Base64Crypter, NoSecrets};

    use super::*;

    #[test]
    fn closed_secrets_pass_and_open_ones_are_encrypted() {
        let sealed = KeepSealed::new(&Base64Crypter);
        let passing = sealed.decrypt("v1:abc").unwrap();
        assert_eq!(sealed.encrypt(&passing).unwrap(), "v1:abc");
        assert_eq!(
            sealed.encrypt("\"x\"").unwrap(),
            Base64Crypter.encrypt("\"x\"").unwrap()
        );
        assert_eq!(
            sealed.encrypt("{\"a\":1}").unwrap(),
            Base64Crypter.encrypt("{\"a\":1}").unwrap()
        );
        let other = KeepSealed::new(&NoSecrets);
        assert!(
            other.encrypt(&passing).is_err(),
            "another one's mark means nothing"
        );
    }
}
