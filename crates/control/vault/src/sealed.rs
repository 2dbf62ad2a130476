//! The stored form of an encrypted value.
//!
//! One version byte, the number of the data key, the nonce, then ciphertext with its tag. The
//! number of the key is in the clear on purpose: it says which data key opens the value.

use std::fmt;

use crate::VaultError;

const VERSION: u8 = 1;
pub(crate) const NONCE_BYTES: usize = 12;
const TAG_BYTES: usize = 16;
const HEADER_BYTES: usize = 1 + 4 + NONCE_BYTES;

/// An encrypted value as it lies in a column.
#[derive(Clone, PartialEq, Eq)]
pub struct SealedValue {
    pub(crate) key_number: u32,
    pub(crate) nonce: [u8; NONCE_BYTES],
    pub(crate) ciphertext: Vec<u8>,
}

impl SealedValue {
    /// Which of the tenant's data keys opens it.
    pub fn key_number(&self) -> u32 {
        self.key_number
    }

    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEADER_BYTES + self.ciphertext.len());
        bytes.push(VERSION);
        bytes.extend_from_slice(&self.key_number.to_be_bytes());
        bytes.extend_from_slice(&self.nonce);
        bytes.extend_from_slice(&self.ciphertext);
        bytes
    }

    pub fn from_bytes(bytes: &[u8]) -> Result<Self, VaultError> {
        let malformed = |reason| VaultError::Malformed { reason };
        let (version, rest) = bytes
            .split_first()
            .ok_or_else(|| malformed("it is empty"))?;
        if *version != VERSION {
            return Err(malformed("its version is not known"));
        }
        let (number, rest) = rest
            .split_first_chunk::<4>()
            .ok_or_else(|| malformed("too short"))?;
        let (nonce, ciphertext) = rest
            .split_first_chunk::<NONCE_BYTES>()
            .ok_or_else(|| malformed("too short"))?;
        if ciphertext.len() < TAG_BYTES {
            return Err(malformed("too short"));
        }
        Ok(Self {
            key_number: u32::from_be_bytes(*number),
            nonce: *nonce,
            ciphertext: ciphertext.to_vec(),
        })
    }
}

impl fmt::Debug for SealedValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Sealed(key {}, {} bytes)",
            self.key_number,
            self.ciphertext.len()
        )
    }
}
