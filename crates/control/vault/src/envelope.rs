//! Data keys, wrapped by outer keys, and values sealed by data keys.

use std::fmt;

use aes_gcm::aead::{Aead as _, KeyInit as _, Payload};
use aes_gcm::{Aes256Gcm, Nonce};
use nimbus_core::TenantId;
use zeroize::Zeroizing;

use crate::VaultError;
use crate::kek::{KEY_BYTES, KekId, KeyEncryptionKey, KeyRing};
use crate::sealed::{NONCE_BYTES, SealedValue};

/// The place a secret belongs to, such as `cloud_accounts/<id>/credentials`. Part of what is
/// authenticated: a value opens only under the path that it was sealed for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldPath(String);

impl FieldPath {
    pub fn new(table: &str, row: &str, field: &str) -> Self {
        Self(format!("{table}/{row}/{field}"))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A tenant's data key. Erased from memory when dropped; never shown.
pub struct DataKey {
    tenant: TenantId,
    number: u32,
    bytes: Zeroizing<[u8; KEY_BYTES]>,
}

impl fmt::Debug for DataKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DataKey({}, {})", self.tenant, self.number)
    }
}

/// A data key as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrappedKey {
    pub tenant: TenantId,
    /// Data keys of a tenant are numbered from 1; the highest seals new values.
    pub number: u32,
    pub kek: KekId,
    /// Nonce, then ciphertext with its tag.
    pub bytes: Vec<u8>,
}

impl DataKey {
    pub fn generate(tenant: TenantId, number: u32) -> Self {
        Self {
            tenant,
            number,
            bytes: Zeroizing::new(rand::random()),
        }
    }

    pub fn tenant(&self) -> TenantId {
        self.tenant
    }

    pub fn number(&self) -> u32 {
        self.number
    }

    /// The stored form, under the ring's active key.
    pub fn wrap(&self, ring: &KeyRing) -> WrappedKey {
        let kek = ring.active();
        let nonce: [u8; NONCE_BYTES] = rand::random();
        let aad = wrap_context(self.tenant, self.number, kek.id());
        let mut bytes = nonce.to_vec();
        bytes.extend(encrypt(kek.bytes(), &nonce, self.bytes.as_slice(), &aad));
        WrappedKey {
            tenant: self.tenant,
            number: self.number,
            kek: kek.id().clone(),
            bytes,
        }
    }

    /// Encrypts a value for one place.
    pub fn seal(&self, field: &FieldPath, plaintext: &[u8]) -> SealedValue {
        let nonce: [u8; NONCE_BYTES] = rand::random();
        let aad = value_context(self.tenant, self.number, field);
        SealedValue {
            key_number: self.number,
            nonce,
            ciphertext: encrypt(&self.bytes, &nonce, plaintext, &aad),
        }
    }

    /// Decrypts a value; one from another place or tenant, or a changed one, does not open.
    pub fn open(
        &self,
        field: &FieldPath,
        sealed: &SealedValue,
    ) -> Result<Zeroizing<Vec<u8>>, VaultError> {
        let damaged = || VaultError::ValueDamaged {
            field: field.as_str().to_owned(),
        };
        if sealed.key_number != self.number {
            return Err(damaged());
        }
        let aad = value_context(self.tenant, self.number, field);
        decrypt(&self.bytes, &sealed.nonce, &sealed.ciphertext, &aad).ok_or_else(damaged)
    }
}

impl WrappedKey {
    pub fn unwrap(&self, ring: &KeyRing) -> Result<DataKey, VaultError> {
        let kek: &KeyEncryptionKey = ring.find(&self.kek)?;
        let (nonce, ciphertext) = self
            .bytes
            .split_first_chunk::<NONCE_BYTES>()
            .ok_or(VaultError::WrappedKeyDamaged)?;
        let aad = wrap_context(self.tenant, self.number, kek.id());
        let plain =
            decrypt(kek.bytes(), nonce, ciphertext, &aad).ok_or(VaultError::WrappedKeyDamaged)?;
        let bytes: [u8; KEY_BYTES] = plain
            .as_slice()
            .try_into()
            .map_err(|_| VaultError::WrappedKeyDamaged)?;
        Ok(DataKey {
            tenant: self.tenant,
            number: self.number,
            bytes: Zeroizing::new(bytes),
        })
    }

    /// The same data key under the active outer key, or nothing when it is already.
    pub fn rewrap(&self, ring: &KeyRing) -> Result<Option<Self>, VaultError> {
        if self.kek == *ring.active().id() {
            return Ok(None);
        }
        Ok(Some(self.unwrap(ring)?.wrap(ring)))
    }
}

/// What a wrapped key is bound to. Lengths are fixed or come last, so no two places share a text.
fn wrap_context(tenant: TenantId, number: u32, kek: &KekId) -> Vec<u8> {
    format!("nimbus/vault/data-key/1/{tenant}/{number}/{kek}").into_bytes()
}

fn value_context(tenant: TenantId, number: u32, field: &FieldPath) -> Vec<u8> {
    format!("nimbus/vault/value/1/{tenant}/{number}/{}", field.as_str()).into_bytes()
}

fn encrypt(
    key: &[u8; KEY_BYTES],
    nonce: &[u8; NONCE_BYTES],
    plaintext: &[u8],
    aad: &[u8],
) -> Vec<u8> {
    let payload = Payload {
        msg: plaintext,
        aad,
    };
    Aes256Gcm::new(key.into())
        .encrypt(&Nonce::from(*nonce), payload)
        .expect("the cipher refuses only inputs of more than 64 GiB")
}

fn decrypt(
    key: &[u8; KEY_BYTES],
    nonce: &[u8; NONCE_BYTES],
    ciphertext: &[u8],
    aad: &[u8],
) -> Option<Zeroizing<Vec<u8>>> {
    let payload = Payload {
        msg: ciphertext,
        aad,
    };
    Aes256Gcm::new(key.into())
        .decrypt(&Nonce::from(*nonce), payload)
        .ok()
        .map(Zeroizing::new)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ring() -> KeyRing {
        KeyRing::new(KeyEncryptionKey::generate(), Vec::new())
    }

    fn field() -> FieldPath {
        FieldPath::new("cloud_accounts", "7", "credentials")
    }

    proptest! {
        #[test]
        fn what_was_sealed_opens_and_any_changed_byte_does_not(
            plaintext in prop::collection::vec(any::<u8>(), 0..200),
            position in any::<prop::sample::Index>(),
            change in 1u8..=255,
        ) {
            let key = DataKey::generate(TenantId::random(), 1);
            let stored = key.seal(&field(), &plaintext).to_bytes();
            let opened = key.open(&field(), &SealedValue::from_bytes(&stored).unwrap()).unwrap();
            prop_assert_eq!(opened.as_slice(), plaintext.as_slice());

            let mut changed = stored.clone();
            changed[position.index(stored.len())] ^= change;
            let refused = SealedValue::from_bytes(&changed).and_then(|sealed| key.open(&field(), &sealed));
            prop_assert!(refused.is_err());
        }

        #[test]
        fn bytes_of_any_kind_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            if let Ok(sealed) = SealedValue::from_bytes(&bytes) {
                prop_assert_eq!(sealed.to_bytes(), bytes);
            }
        }
    }

    #[test]
    fn a_value_moved_to_another_place_tenant_or_key_does_not_open() {
        let tenant = TenantId::random();
        let ring = ring();
        let key = DataKey::generate(tenant, 1);
        let sealed = key.seal(&field(), b"canary");
        for other in [
            FieldPath::new("cloud_accounts", "8", "credentials"),
            FieldPath::new("cloud_accounts", "7", "name"),
            FieldPath::new("api_keys", "7", "credentials"),
        ] {
            assert!(key.open(&other, &sealed).is_err(), "{other:?}");
        }
        // The same key bytes, claimed for another tenant or number.
        let wrapped = key.wrap(&ring);
        for moved in [
            WrappedKey {
                tenant: TenantId::random(),
                ..wrapped.clone()
            },
            WrappedKey {
                number: 2,
                ..wrapped
            },
        ] {
            assert!(matches!(
                moved.unwrap(&ring),
                Err(VaultError::WrappedKeyDamaged)
            ));
        }
        assert!(
            DataKey::generate(tenant, 1)
                .open(&field(), &sealed)
                .is_err()
        );
    }

    #[test]
    fn an_outer_key_is_replaced_without_touching_values() {
        let old = KeyEncryptionKey::generate();
        let old_bytes = *old.bytes();
        let before = KeyRing::new(old, Vec::new());
        let key = DataKey::generate(TenantId::random(), 1);
        let sealed = key.seal(&field(), b"canary");
        let wrapped = key.wrap(&before);

        let both = KeyRing::new(
            KeyEncryptionKey::generate(),
            vec![KeyEncryptionKey::from_bytes(old_bytes)],
        );
        let rewrapped = wrapped
            .rewrap(&both)
            .unwrap()
            .expect("it is under the old key");
        assert_eq!(
            rewrapped.rewrap(&both).unwrap(),
            None,
            "a second pass has nothing to do"
        );

        let after = KeyRing::new(
            KeyEncryptionKey::from_bytes(*both.active().bytes()),
            Vec::new(),
        );
        let opened = rewrapped
            .unwrap(&after)
            .unwrap()
            .open(&field(), &sealed)
            .unwrap();
        assert_eq!(opened.as_slice(), b"canary");
        assert!(matches!(
            wrapped.unwrap(&after),
            Err(VaultError::KeyUnknown { .. })
        ));
    }

    /// S22: of one key; ten millions in the long form.
    #[test]
    fn nonces_do_not_repeat() {
        let count = if std::env::var_os("NIMBUS_TEST_LONG").is_some() {
            10_000_000
        } else {
            20_000
        };
        let key = DataKey::generate(TenantId::random(), 1);
        let mut nonces: Vec<_> = (0..count).map(|_| key.seal(&field(), b"").nonce).collect();
        nonces.sort_unstable();
        nonces.dedup();
        assert_eq!(nonces.len(), count);
    }

    #[test]
    fn nothing_stored_or_shown_holds_the_plaintext() {
        let key = DataKey::generate(TenantId::random(), 1);
        let sealed = key.seal(&field(), b"canary-value");
        assert!(
            !sealed
                .to_bytes()
                .windows(6)
                .any(|window| window == b"canary")
        );
        assert!(!format!("{key:?} {sealed:?}").contains("canary"));
        let error = key
            .open(&FieldPath::new("a", "b", "c"), &sealed)
            .unwrap_err();
        assert!(!error.to_string().contains("canary"), "{error}");
    }
}
