//! API keys of service accounts: shown once, stored as a hash, limited in what and how long.
//!
//! The text carries the tenant and the key's id, so that the key is looked up inside its tenant
//! and nowhere else. The secret part is random and long, which is why a plain hash is enough.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use nimbus_core::TenantId;
use sha2::{Digest as _, Sha256};
use uuid::Uuid;
use zeroize::{Zeroize as _, Zeroizing};

use crate::secret;

/// How every key begins, so that scanners of source code can find one that leaked.
pub const PREFIX: &str = "nbk_";

const ADDRESS_BYTES: usize = 32;
const SECRET_BYTES: usize = 32;

/// A new key: what is stored, and the text that is shown once.
#[derive(Debug)]
pub struct NewKey {
    pub id: Uuid,
    pub hash: [u8; 32],
    pub text: Zeroizing<String>,
}

impl NewKey {
    pub fn generate(tenant: TenantId, id: Uuid) -> Self {
        let secret = Zeroizing::new(rand::random::<[u8; SECRET_BYTES]>());
        let mut bytes = Zeroizing::new(Vec::with_capacity(ADDRESS_BYTES + SECRET_BYTES));
        bytes.extend_from_slice(&tenant_bytes(tenant));
        bytes.extend_from_slice(id.as_bytes());
        bytes.extend_from_slice(secret.as_slice());
        Self {
            id,
            hash: hash(secret.as_slice()),
            text: Zeroizing::new(format!(
                "{PREFIX}{}",
                URL_SAFE_NO_PAD.encode(bytes.as_slice())
            )),
        }
    }
}

/// A key as it was presented.
pub struct PresentedKey {
    pub tenant: TenantId,
    pub id: Uuid,
    secret: Zeroizing<[u8; SECRET_BYTES]>,
}

impl PresentedKey {
    pub fn parse(text: &str) -> Option<Self> {
        let encoded = text.strip_prefix(PREFIX).filter(|rest| rest.len() < 128)?;
        let bytes = Zeroizing::new(URL_SAFE_NO_PAD.decode(encoded).ok()?);
        let (tenant, rest) = bytes.split_first_chunk::<16>()?;
        let (id, rest) = rest.split_first_chunk::<16>()?;
        let mut secret: [u8; SECRET_BYTES] = rest.try_into().ok()?;
        let presented = Self {
            tenant: Uuid::from_bytes(*tenant).into(),
            id: Uuid::from_bytes(*id),
            secret: Zeroizing::new(secret),
        };
        secret.zeroize();
        Some(presented)
    }

    /// Whether this is the key that was stored.
    pub fn matches(&self, stored_hash: &[u8]) -> bool {
        secret::equal(&hash(self.secret.as_slice()), stored_hash)
    }
}

/// Whether a key may be used at all.
pub fn is_alive(expires_at: Option<i64>, revoked: bool, now: i64) -> bool {
    !revoked && expires_at.is_none_or(|expires| now < expires)
}

/// What is shown of a key in lists: enough to recognise, nothing to use.
pub fn hint(id: Uuid) -> String {
    format!("{PREFIX}…{}", &id.simple().to_string()[..8])
}

fn hash(secret: &[u8]) -> [u8; 32] {
    Sha256::new()
        .chain_update(b"nimbus/auth/api-key/1")
        .chain_update(secret)
        .finalize()
        .into()
}

fn tenant_bytes(tenant: TenantId) -> [u8; 16] {
    // An id shows itself as a UUID and nothing else.
    tenant
        .to_string()
        .parse::<Uuid>()
        .map(Uuid::into_bytes)
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_key_is_found_by_what_it_carries_and_proved_by_its_secret() {
        let (tenant, id) = (TenantId::random(), Uuid::new_v4());
        let key = NewKey::generate(tenant, id);
        let presented = PresentedKey::parse(&key.text).unwrap();
        assert_eq!((presented.tenant, presented.id), (tenant, id));
        assert!(presented.matches(&key.hash));
        let other = NewKey::generate(tenant, id);
        assert!(
            !presented.matches(&other.hash),
            "the same id with another secret"
        );
        assert!(!presented.matches(&[]));
        assert!(!hint(id).contains(&key.text[10..]));
    }

    #[test]
    fn revoked_and_expired_keys_are_dead() {
        assert!(is_alive(None, false, 5));
        assert!(is_alive(Some(6), false, 5));
        assert!(!is_alive(Some(5), false, 5));
        assert!(!is_alive(None, true, 5));
    }

    proptest! {
        #[test]
        fn text_of_any_kind_is_read_or_refused(text in ".*") {
            let _ = PresentedKey::parse(&text);
            let _ = PresentedKey::parse(&format!("{PREFIX}{text}"));
        }
    }
}
