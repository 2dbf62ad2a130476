//! AES-256-GCM with a random nonce, in the official text form `v1:<nonce>:<ciphertext and tag>`.

use std::fmt;

use aes_gcm::aead::{Aead, KeyInit};
use aes_gcm::{Aes256Gcm, Nonce};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use zeroize::Zeroizing;

use super::{CryptError, Crypter};

pub(super) const KEY_BYTES: usize = 32;
const NONCE_BYTES: usize = 12;
const VERSION: &str = "v1";

/// A data key at work. The key itself is gone when this is; the cipher wipes its own schedule.
pub struct SymmetricCrypter {
    cipher: Aes256Gcm,
}

impl SymmetricCrypter {
    pub fn new(key: &Zeroizing<[u8; KEY_BYTES]>) -> Self {
        Self {
            cipher: Aes256Gcm::new((&**key).into()),
        }
    }
}

impl fmt::Debug for SymmetricCrypter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SymmetricCrypter { key: [secret] }")
    }
}

impl Crypter for SymmetricCrypter {
    fn encrypt(&self, plaintext: &str) -> Result<String, CryptError> {
        let nonce: [u8; NONCE_BYTES] = rand::random();
        let sealed = self
            .cipher
            .encrypt(&Nonce::from(nonce), plaintext.as_bytes())
            .map_err(|_| CryptError::Unavailable {
                message: "the text is too long".to_owned(),
            })?;
        Ok(format!(
            "{VERSION}:{}:{}",
            STANDARD.encode(nonce),
            STANDARD.encode(sealed)
        ))
    }

    fn decrypt(&self, ciphertext: &str) -> Result<Zeroizing<String>, CryptError> {
        let malformed = |problem| CryptError::MalformedCiphertext { problem };
        let parts: Vec<&str> = ciphertext.split(':').collect();
        let &[version, nonce, sealed] = parts.as_slice() else {
            return Err(malformed("expected v1:<nonce>:<ciphertext>"));
        };
        if version != VERSION {
            return Err(malformed("its version is not v1"));
        }
        let nonce = STANDARD
            .decode(nonce)
            .map_err(|_| malformed("its nonce is not base64"))?;
        let nonce: [u8; NONCE_BYTES] = nonce
            .try_into()
            .map_err(|_| malformed("its nonce has not 12 bytes"))?;
        let sealed = STANDARD
            .decode(sealed)
            .map_err(|_| malformed("it is not base64"))?;
        let opened = self
            .cipher
            .decrypt(&Nonce::from(nonce), sealed.as_slice())
            .map_err(|_| CryptError::Forged)?;
        String::from_utf8(opened)
            .map(Zeroizing::new)
            .map_err(|error| {
                drop(Zeroizing::new(error.into_bytes()));
                CryptError::NotText
            })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn crypter(byte: u8) -> SymmetricCrypter {
        SymmetricCrypter::new(&Zeroizing::new([byte; KEY_BYTES]))
    }

    #[test]
    fn the_same_text_never_gives_the_same_ciphertext() {
        let crypter = crypter(1);
        assert_ne!(crypter.encrypt("x").unwrap(), crypter.encrypt("x").unwrap());
    }

    #[test]
    fn another_key_and_any_change_are_noticed() {
        let ciphertext = crypter(1).encrypt("x").unwrap();
        assert_eq!(crypter(2).decrypt(&ciphertext), Err(CryptError::Forged));
        let (head, sealed) = ciphertext.rsplit_once(':').unwrap();
        let mut bytes = STANDARD.decode(sealed).unwrap();
        bytes[0] ^= 1;
        let changed = format!("{head}:{}", STANDARD.encode(bytes));
        assert_eq!(crypter(1).decrypt(&changed), Err(CryptError::Forged));
    }

    #[test]
    fn malformed_ciphertexts_are_refused_with_their_cause() {
        for (text, problem) in [
            ("", "expected v1:<nonce>:<ciphertext>"),
            ("v1:a", "expected v1:<nonce>:<ciphertext>"),
            ("v1:a:b:c", "expected v1:<nonce>:<ciphertext>"),
            ("v2:AAAAAAAAAAAAAAAA:AAAA", "its version is not v1"),
            ("v1:!:AAAA", "its nonce is not base64"),
            ("v1:AAAA:AAAA", "its nonce has not 12 bytes"),
            ("v1:AAAAAAAAAAAAAAAA:!", "it is not base64"),
        ] {
            assert_eq!(
                crypter(1).decrypt(text),
                Err(CryptError::MalformedCiphertext { problem }),
                "{text}"
            );
        }
        assert_eq!(
            crypter(1).decrypt("v1:AAAAAAAAAAAAAAAA:AAAA"),
            Err(CryptError::Forged)
        );
    }

    #[test]
    fn debug_text_has_no_key() {
        assert_eq!(
            format!("{:?}", crypter(7)),
            "SymmetricCrypter { key: [secret] }"
        );
    }

    proptest! {
        #[test]
        fn every_text_comes_back(text in any::<String>()) {
            let crypter = crypter(3);
            prop_assert_eq!(&*crypter.decrypt(&crypter.encrypt(&text).unwrap()).unwrap(), &text);
        }

        #[test]
        fn decrypting_anything_is_total(text in "(v1)?:[A-Za-z0-9+/=]{0,24}:[A-Za-z0-9+/=]{0,40}") {
            let _ = crypter(3).decrypt(&text);
        }
    }
}
