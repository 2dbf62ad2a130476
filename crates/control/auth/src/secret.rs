//! Keys that only the server has, and the two things that are done with them: authenticating and
//! comparing.

use std::fmt;

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;
use zeroize::Zeroizing;

/// A server's secret for tokens. Each use derives its own key from it, so that a code made for
/// one purpose is worth nothing for another.
#[derive(Clone)]
pub struct ServerKey {
    id: String,
    bytes: Zeroizing<Vec<u8>>,
}

impl fmt::Debug for ServerKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ServerKey({})", self.id)
    }
}

impl ServerKey {
    /// Fewer bytes could be guessed.
    pub const MIN_BYTES: usize = 32;

    /// A key from what was configured, or nothing when that is too short.
    pub fn new(secret: &[u8]) -> Option<Self> {
        if secret.len() < Self::MIN_BYTES {
            return None;
        }
        let digest = Sha256::new()
            .chain_update(b"nimbus/auth/key-id/1")
            .chain_update(secret)
            .finalize();
        Some(Self {
            id: hex::encode(&digest[..4]),
            bytes: Zeroizing::new(secret.to_vec()),
        })
    }

    pub fn generate() -> Self {
        let bytes: [u8; Self::MIN_BYTES] = rand::random();
        Self::new(&bytes).expect("it is long enough")
    }

    /// Names the key inside tokens.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The code of a request that is remembered. Whoever reads it cannot try what the request may have said.
    pub fn request_code(&self, request: &[u8]) -> Vec<u8> {
        self.authenticate("nimbus/auth/request/1", request).to_vec()
    }

    /// The code of a message for one purpose.
    pub(crate) fn authenticate(&self, purpose: &str, message: &[u8]) -> [u8; 32] {
        let derived = code(&self.bytes, purpose.as_bytes());
        code(&derived, message)
    }
}

/// The key that new tokens are made with, and older ones whose tokens are still alive.
#[derive(Clone, Debug)]
pub struct ServerKeys {
    active: ServerKey,
    older: Vec<ServerKey>,
}

impl ServerKeys {
    pub fn new(active: ServerKey, older: Vec<ServerKey>) -> Self {
        Self { active, older }
    }

    pub fn active(&self) -> &ServerKey {
        &self.active
    }

    pub(crate) fn find(&self, id: &str) -> Option<&ServerKey> {
        std::iter::once(&self.active)
            .chain(&self.older)
            .find(|key| key.id == id)
    }
}

fn code(key: &[u8], message: &[u8]) -> [u8; 32] {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("any length is a key");
    mac.update(message);
    mac.finalize().into_bytes().into()
}

/// Whether two secrets are equal, without telling how far they agree.
pub(crate) fn equal(one: &[u8], other: &[u8]) -> bool {
    one.ct_eq(other).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_differ_by_key_purpose_and_message() {
        let key = ServerKey::generate();
        let code = key.authenticate("a", b"m");
        assert_eq!(code, key.authenticate("a", b"m"));
        assert_ne!(code, key.authenticate("b", b"m"));
        assert_ne!(code, key.authenticate("a", b"n"));
        assert_ne!(code, ServerKey::generate().authenticate("a", b"m"));
    }

    #[test]
    fn a_short_secret_is_no_key() {
        assert!(ServerKey::new(&[7; 31]).is_none());
        assert!(ServerKey::new(&[7; 32]).is_some());
    }
}
