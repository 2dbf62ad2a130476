//! Secrets at rest.
//!
//! Each tenant has data keys; a data key encrypts values, and is itself stored only wrapped by a
//! key-encryption key that lives outside the database, in a file or in the environment. Whoever has
//! the database has nothing; whoever has the key file has nothing either.
//!
//! Every ciphertext is bound to the tenant and to the field it was made for, so one that was moved
//! to another row or another tenant does not open. A key-encryption key is replaced online: the new
//! one becomes active, data keys are wrapped again one by one, the old one leaves when no data key
//! names it any more. Values are not touched by that.
//!
//! This crate stores nothing. Reading order: `kek` (where the outer keys come from), `envelope`
//! (data keys and sealed values).

mod envelope;
mod kek;
mod sealed;

pub use envelope::{DataKey, FieldPath, WrappedKey};
pub use kek::{KEY_BYTES, KekId, KeyEncryptionKey, KeyRing, KeySource};
pub use sealed::SealedValue;

use nimbus_core::{Error, ErrorCode};

/// Why a key or a value cannot be had. No variant carries key material or plaintext.
#[derive(Debug, thiserror::Error)]
pub enum VaultError {
    #[error("there is no key-encryption key: {place} does not exist")]
    KeyMissing { place: String },
    #[error("the key-encryption key in {place} cannot be used: {reason}")]
    KeyUnusable { place: String, reason: String },
    #[error("a data key is wrapped by the key-encryption key {id}, which was not given")]
    KeyUnknown { id: KekId },
    #[error("a data key does not open: it was changed, or belongs to another tenant")]
    WrappedKeyDamaged,
    #[error("a secret of `{field}` does not open: it was changed, or was made for another place")]
    ValueDamaged { field: String },
    #[error("stored bytes are not a sealed value: {reason}")]
    Malformed { reason: &'static str },
}

impl From<VaultError> for Error {
    fn from(error: VaultError) -> Self {
        let (code, help) = match &error {
            VaultError::KeyMissing { .. } => (
                ErrorCode::VAULT_KEY_MISSING,
                "restore the key from where it is kept safe; without it no stored secret can be read",
            ),
            VaultError::KeyUnusable { .. } => (
                ErrorCode::VAULT_KEY_UNUSABLE,
                "the key is 32 bytes in base64, in a file that only its owner can read",
            ),
            VaultError::KeyUnknown { .. } => (
                ErrorCode::VAULT_KEY_MISSING,
                "give the older key too until every data key was wrapped again",
            ),
            VaultError::WrappedKeyDamaged
            | VaultError::ValueDamaged { .. }
            | VaultError::Malformed { .. } => (
                ErrorCode::VAULT_VALUE_DAMAGED,
                "restore the row from a backup, or set the secret again",
            ),
        };
        Self::new(code, error.to_string()).with_help(help)
    }
}
