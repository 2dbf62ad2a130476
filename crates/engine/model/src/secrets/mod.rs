//! Encryption of secret values in state and configuration.
//!
//! A [`Crypter`] turns text into text. What it needs to do so is written next to the secrets as a
//! [`SecretsProvider`](crate::SecretsProvider): its kind and an opaque state. Nothing here reads
//! environments, files or terminals; the passphrase is the caller's.

mod base64_crypter;
mod cache;
mod passphrase;
mod sealed;
mod symmetric;

use zeroize::Zeroizing;

pub use base64_crypter::Base64Crypter;
pub use cache::CiphertextCache;
pub use passphrase::PassphraseManager;
pub use sealed::{NoSecrets, SealedText};
pub use symmetric::SymmetricCrypter;

pub(crate) use cache::SecretPlace;

/// Encrypts and decrypts texts. Encrypting the same text twice gives two unrelated ciphertexts.
pub trait Crypter: Send + Sync {
    fn encrypt(&self, plaintext: &str) -> Result<String, CryptError>;

    fn decrypt(&self, ciphertext: &str) -> Result<Zeroizing<String>, CryptError>;

    /// Many at once, in order: worth overriding where each call is a journey.
    fn encrypt_all(&self, plaintexts: &[&str]) -> Result<Vec<String>, BatchError> {
        each(plaintexts, |plaintext| self.encrypt(plaintext))
    }

    fn decrypt_all(&self, ciphertexts: &[&str]) -> Result<Vec<Zeroizing<String>>, BatchError> {
        each(ciphertexts, |ciphertext| self.decrypt(ciphertext))
    }
}

fn each<T>(
    texts: &[&str],
    act: impl Fn(&str) -> Result<T, CryptError>,
) -> Result<Vec<T>, BatchError> {
    let indexed = texts.iter().enumerate();
    indexed
        .map(|(index, text)| act(text).map_err(|error| BatchError { index, error }))
        .collect()
}

/// Which of many texts failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{error}")]
pub struct BatchError {
    pub index: usize,
    #[source]
    pub error: CryptError,
}

/// Why something could not be encrypted or decrypted. No variant carries any part of a secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CryptError {
    #[error("the passphrase is wrong")]
    WrongPassphrase,
    #[error("the secrets provider's state is malformed: {problem}")]
    MalformedState { problem: &'static str },
    #[error("the ciphertext is malformed: {problem}")]
    MalformedCiphertext { problem: &'static str },
    #[error("the ciphertext was changed, or was made with another key")]
    Forged,
    #[error("the decrypted bytes are not text")]
    NotText,
    #[error("there is a secret, but no secrets provider")]
    NoProvider,
    #[error("the secrets provider failed: {message}")]
    Unavailable { message: String },
}
