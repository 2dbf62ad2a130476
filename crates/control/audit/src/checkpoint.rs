//! Signed statements of how far a chain had come, to be kept where the database's owner cannot
//! reach them.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ed25519_dalek::{Signature, Signer as _, Verifier as _};
use jiff::Timestamp;
use nimbus_core::{Error, ErrorCode, TenantId};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::canonical::FieldBytes;
use crate::entry::{AuditEntry, ChainHash};

/// At this time the tenant's chain ended with this entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checkpoint {
    pub tenant: TenantId,
    pub sequence: u64,
    /// Hexadecimal.
    pub hash: String,
    pub at: Timestamp,
    /// Base64.
    pub signature: String,
}

/// A key that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("the audit trail's key is not 32 bytes in base64")]
pub struct SigningKeyError;

impl From<SigningKeyError> for Error {
    fn from(error: SigningKeyError) -> Self {
        Self::new(ErrorCode::AUDIT_KEY_UNUSABLE, error.to_string())
            .with_help("restore the key file from where it is kept safe")
    }
}

/// Signs checkpoints and critical entries.
pub struct SigningKey(ed25519_dalek::SigningKey);

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SigningKey(public {})", self.verifying_key().to_text())
    }
}

impl SigningKey {
    pub fn generate() -> Self {
        let seed = Zeroizing::new(rand::random::<[u8; 32]>());
        Self(ed25519_dalek::SigningKey::from_bytes(&seed))
    }

    pub fn from_text(text: &str) -> Result<Self, SigningKeyError> {
        let decoded = STANDARD
            .decode(text.trim())
            .map(Zeroizing::new)
            .map_err(|_| SigningKeyError)?;
        let seed: &[u8; 32] = decoded.as_slice().try_into().map_err(|_| SigningKeyError)?;
        Ok(Self(ed25519_dalek::SigningKey::from_bytes(seed)))
    }

    /// The form that is kept in a private file.
    pub fn to_text(&self) -> Zeroizing<String> {
        let seed = Zeroizing::new(self.0.to_bytes());
        Zeroizing::new(format!("{}\n", STANDARD.encode(seed.as_slice())))
    }

    pub fn verifying_key(&self) -> VerifyingKey {
        VerifyingKey(self.0.verifying_key())
    }

    pub fn checkpoint(&self, entry: &AuditEntry, at: Timestamp) -> Checkpoint {
        self.checkpoint_at(entry.tenant, entry.sequence, entry.hash, at)
    }

    /// A checkpoint of an entry that is known by its number and its hash.
    pub fn checkpoint_at(
        &self,
        tenant: TenantId,
        sequence: u64,
        hash: ChainHash,
        at: Timestamp,
    ) -> Checkpoint {
        let mut checkpoint = Checkpoint {
            tenant,
            sequence,
            hash: hash.to_string(),
            at,
            signature: String::new(),
        };
        checkpoint.signature = self.sign(&checkpoint.signed_bytes());
        checkpoint
    }

    /// The proof that a critical entry carries.
    pub fn prove(&self, entry: &AuditEntry) -> String {
        self.sign(&proof_bytes(entry))
    }

    fn sign(&self, bytes: &[u8]) -> String {
        STANDARD.encode(self.0.sign(bytes).to_bytes())
    }
}

/// The public half, which is all that verification needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifyingKey(ed25519_dalek::VerifyingKey);

impl VerifyingKey {
    pub fn to_text(&self) -> String {
        STANDARD.encode(self.0.as_bytes())
    }

    pub fn from_text(text: &str) -> Result<Self, SigningKeyError> {
        let decoded = STANDARD.decode(text.trim()).map_err(|_| SigningKeyError)?;
        let bytes: [u8; 32] = decoded.try_into().map_err(|_| SigningKeyError)?;
        ed25519_dalek::VerifyingKey::from_bytes(&bytes)
            .map(Self)
            .map_err(|_| SigningKeyError)
    }

    /// Whether the checkpoint is ours and unchanged.
    pub fn accepts(&self, checkpoint: &Checkpoint) -> bool {
        self.verifies(&checkpoint.signed_bytes(), &checkpoint.signature)
    }

    /// Whether an entry's proof is ours and fits.
    pub fn accepts_proof(&self, entry: &AuditEntry, proof: &str) -> bool {
        self.verifies(&proof_bytes(entry), proof)
    }

    fn verifies(&self, bytes: &[u8], signature: &str) -> bool {
        let signature = STANDARD
            .decode(signature)
            .ok()
            .and_then(|bytes| Signature::from_slice(&bytes).ok());
        signature.is_some_and(|signature| self.0.verify(bytes, &signature).is_ok())
    }
}

impl Checkpoint {
    pub fn chain_hash(&self) -> Option<ChainHash> {
        self.hash.parse().ok()
    }

    fn signed_bytes(&self) -> Vec<u8> {
        FieldBytes::default()
            .put(b"nimbus/audit/checkpoint/1")
            .put(self.tenant.to_string().as_bytes())
            .put(&self.sequence.to_be_bytes())
            .put(self.hash.as_bytes())
            .put(&self.at.as_microsecond().to_be_bytes())
            .into_bytes()
    }
}

fn proof_bytes(entry: &AuditEntry) -> Vec<u8> {
    FieldBytes::default()
        .put(b"nimbus/audit/proof/1")
        .put(&entry.hash.0)
        .into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::{Actor, AuditRecord};

    fn entry() -> AuditEntry {
        let record = AuditRecord::new(Actor::system(), "a", "b");
        AuditEntry::append(TenantId::random(), None, Timestamp::UNIX_EPOCH, record)
    }

    #[test]
    fn a_checkpoint_is_accepted_as_it_was_signed_and_by_its_key_alone() {
        let key = SigningKey::generate();
        let checkpoint = key.checkpoint(&entry(), Timestamp::UNIX_EPOCH);
        let public = VerifyingKey::from_text(&key.verifying_key().to_text()).unwrap();
        assert!(public.accepts(&checkpoint));
        assert!(!SigningKey::generate().verifying_key().accepts(&checkpoint));
        for changed in [
            Checkpoint {
                sequence: 2,
                ..checkpoint.clone()
            },
            Checkpoint {
                tenant: TenantId::random(),
                ..checkpoint.clone()
            },
            Checkpoint {
                hash: "0".repeat(64),
                ..checkpoint.clone()
            },
            Checkpoint {
                signature: "AAAA".to_owned(),
                ..checkpoint
            },
        ] {
            assert!(!public.accepts(&changed), "{changed:?}");
        }
    }

    #[test]
    fn a_proof_belongs_to_one_entry() {
        let key = SigningKey::generate();
        let (one, other) = (entry(), entry());
        let proof = key.prove(&one);
        assert!(key.verifying_key().accepts_proof(&one, &proof));
        assert!(!key.verifying_key().accepts_proof(&other, &proof));
    }

    #[test]
    fn keys_read_back_and_do_not_show_themselves() {
        let key = SigningKey::generate();
        let text = key.to_text();
        let again = SigningKey::from_text(&text).unwrap();
        assert_eq!(again.verifying_key(), key.verifying_key());
        assert!(!format!("{key:?}").contains(text.trim()));
        for bad in ["", "AAAA", "!"] {
            assert!(SigningKey::from_text(bad).is_err());
        }
    }
}
