//! Closing the secrets of what is about to be written.

use zeroize::Zeroizing;

use super::encode;
use super::error::{StateError, StatePart};
use super::resource::each_secret;
use crate::resource::ResourceState;
use crate::secrets::{CiphertextCache, Crypter, SecretPlace};

/// Where a resource stands in what is written.
#[derive(Clone, Copy)]
pub(crate) enum Spot {
    Resource(usize),
    Pending(usize),
}

impl Spot {
    pub(crate) fn place(self, resource: &ResourceState) -> StatePart {
        let urn = Some(resource.urn.to_string());
        match self {
            Self::Resource(index) => StatePart::Resource { index, urn },
            Self::Pending(index) => StatePart::PendingOperation { index, urn },
        }
    }
}

/// A secret that has no ciphertext yet.
struct Unsealed {
    /// Its position among all secrets.
    position: usize,
    place: StatePart,
    at: SecretPlace,
    plaintext: Zeroizing<String>,
}

/// The ciphertexts of all secrets in these resources, in the order in which they are written, and
/// a cache of exactly these. What `known` does not have is encrypted in one batch.
pub(crate) fn seal<'r>(
    resources: impl Iterator<Item = (Spot, &'r ResourceState)>,
    crypter: &dyn Crypter,
    known: &CiphertextCache,
) -> Result<(Vec<String>, CiphertextCache), StateError> {
    let mut used = known.successor();
    let mut ciphertexts = Vec::new();
    let mut unsealed = Vec::new();
    for (spot, resource) in resources {
        each_secret(resource, &mut |path, content| {
            let plaintext = Zeroizing::new(encode::plaintext(content));
            let at = (resource.urn.clone(), path.clone());
            if let Some(ciphertext) = known.next(&used, &at, &plaintext) {
                ciphertexts.push(ciphertext.to_owned());
                used.insert(at, &plaintext, ciphertext.to_owned());
            } else {
                let (position, place) = (ciphertexts.len(), spot.place(resource));
                unsealed.push(Unsealed {
                    position,
                    place,
                    at,
                    plaintext,
                });
                ciphertexts.push(String::new());
            }
        });
    }
    let plaintexts: Vec<&str> = unsealed
        .iter()
        .map(|secret| secret.plaintext.as_str())
        .collect();
    let fresh = crypter.encrypt_all(&plaintexts).map_err(|failed| {
        let secret = unsealed.get(failed.index);
        StateError::Secret {
            place: secret.map_or(StatePart::File, |secret| secret.place.clone()),
            path: secret.map(|secret| secret.at.1.clone()).unwrap_or_default(),
            error: failed.error,
        }
    })?;
    for (secret, ciphertext) in unsealed.into_iter().zip(fresh) {
        ciphertexts[secret.position].clone_from(&ciphertext);
        used.insert(secret.at, &secret.plaintext, ciphertext);
    }
    Ok((ciphertexts, used))
}
