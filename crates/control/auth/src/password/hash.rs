//! Argon2id, with the cost written into every hash, so that it can be raised: a hash of a lower
//! cost still verifies, and the caller is told to store a new one.

use std::sync::Arc;

use argon2::password_hash::phc::{Output, ParamsString, PasswordHash, Salt};
use argon2::{Algorithm, Argon2, Block, Params, Version};
use parking_lot::Mutex;

use crate::secret;

/// Longer input is refused before any hashing: nobody remembers it, and it would cost memory.
pub const MAX_BYTES: usize = 1024;

/// How hard a hash is to make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost {
    pub memory_kib: u32,
    pub rounds: u32,
}

impl Cost {
    /// 19 MiB and two rounds: 50 to 100 ms on a common machine, and what OWASP asks for at least.
    pub const STANDARD: Self = Self {
        memory_kib: 19 * 1024,
        rounds: 2,
    };
}

/// The result of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verified {
    No,
    Yes,
    /// Right, and the stored hash is of a lower cost: store a new one.
    YesOutdated,
}

/// Makes and checks hashes.
#[derive(Clone, Debug)]
pub struct Hasher {
    cost: Cost,
    /// A hash of nothing in particular, for accounts that do not exist.
    decoy: String,
    /// Memory of hashes that are done, for the next ones: an allocator that is given and asked for so
    /// much by many threads keeps it for each of them. There is as much as was ever used at once.
    memory: Arc<Mutex<Vec<Vec<Block>>>>,
}

impl Hasher {
    pub fn new(cost: Cost) -> Self {
        let mut hasher = Self {
            cost,
            decoy: String::new(),
            memory: Arc::default(),
        };
        hasher.decoy = hasher
            .text(&rand::random::<[u8; 16]>())
            .expect("the parameters are in range");
        hasher
    }

    /// The text to store. `None` for a password that is too long to be hashed.
    pub fn hash(&self, password: &str) -> Option<String> {
        if password.len() > MAX_BYTES {
            return None;
        }
        self.text(password.as_bytes())
    }

    /// `None` for a cost that Argon2 does not know.
    fn text(&self, password: &[u8]) -> Option<String> {
        let argon2 = argon2(self.cost);
        let salt = Salt::new(&rand::random::<[u8; 16]>()).ok()?;
        let mut made = [0; Params::DEFAULT_OUTPUT_LEN];
        self.compute(&argon2, password, &salt, &mut made)?;
        let hash = PasswordHash {
            algorithm: Algorithm::Argon2id.ident(),
            version: Some(Version::V0x13.into()),
            params: ParamsString::try_from(argon2.params()).ok()?,
            salt: Some(salt),
            hash: Some(Output::new(&made).ok()?),
        };
        Some(hash.to_string())
    }

    /// In memory that is kept for the next one.
    fn compute(
        &self,
        argon2: &Argon2<'_>,
        password: &[u8],
        salt: &[u8],
        made: &mut [u8],
    ) -> Option<()> {
        let mut blocks = self.memory.lock().pop().unwrap_or_default();
        blocks.resize(argon2.params().block_count(), Block::default());
        let done = argon2.hash_password_into_with_memory(password, salt, made, &mut blocks);
        self.memory.lock().push(blocks);
        done.ok()
    }

    /// Compares. Without a stored hash the same work is done and the answer is no, so that the time
    /// does not tell whether the account exists.
    pub fn verify(&self, password: &str, stored: Option<&str>) -> Verified {
        if password.len() > MAX_BYTES {
            return Verified::No;
        }
        let text = stored.unwrap_or(&self.decoy);
        let Ok(parsed) = PasswordHash::new(text) else {
            return Verified::No;
        };
        let equal = self.compare(password, &parsed).unwrap_or(false);
        match (equal && stored.is_some(), self.is_current(&parsed)) {
            (false, _) => Verified::No,
            (true, true) => Verified::Yes,
            (true, false) => Verified::YesOutdated,
        }
    }

    /// `None` for a hash that this version cannot make.
    fn compare(&self, password: &str, stored: &PasswordHash) -> Option<bool> {
        let algorithm = Algorithm::try_from(stored.algorithm.as_str()).ok()?;
        let version = match stored.version {
            Some(version) => Version::try_from(version).ok()?,
            None => Version::default(),
        };
        let params = Params::try_from(stored).ok()?;
        let (salt, expected) = (stored.salt.as_ref()?, stored.hash.as_ref()?);
        let mut made = vec![0; expected.as_ref().len()];
        let argon2 = Argon2::new(algorithm, version, params);
        self.compute(&argon2, password.as_bytes(), salt, &mut made)?;
        Some(secret::equal(&made, expected.as_ref()))
    }

    fn is_current(&self, hash: &PasswordHash) -> bool {
        let current = argon2(self.cost);
        Params::try_from(hash).is_ok_and(|params| {
            params.m_cost() >= current.params().m_cost()
                && params.t_cost() >= current.params().t_cost()
        }) && hash.algorithm.as_str() == "argon2id"
    }
}

fn argon2(cost: Cost) -> Argon2<'static> {
    let params = Params::new(cost.memory_kib, cost.rounds, 1, None).unwrap_or(Params::DEFAULT);
    Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHEAP: Cost = Cost {
        memory_kib: 64,
        rounds: 1,
    };

    #[test]
    fn one_after_the_other_uses_the_same_memory_on_whatever_thread() {
        let hasher = Hasher::new(CHEAP);
        let stored = hasher.hash("glass lamp river").unwrap();
        std::thread::scope(|scope| {
            for _ in 0..8 {
                let work = || {
                    assert!(hasher.hash("another one").is_some());
                    hasher.verify("glass lamp river", Some(&stored))
                };
                assert_eq!(scope.spawn(work).join().unwrap(), Verified::Yes);
            }
        });
        assert_eq!(hasher.memory.lock().len(), 1);
        let other = hasher.hash("glass lamp river").unwrap();
        assert_ne!(other, stored, "each has a salt of its own");
    }

    #[test]
    fn the_right_password_and_only_that_one_verifies() {
        let hasher = Hasher::new(CHEAP);
        let stored = hasher.hash("correct horse battery staple").unwrap();
        assert!(stored.starts_with("$argon2id$"), "{stored}");
        assert_eq!(
            hasher.verify("correct horse battery staple", Some(&stored)),
            Verified::Yes
        );
        for wrong in [
            "",
            "correct horse battery stapl",
            "Correct horse battery staple",
        ] {
            assert_eq!(hasher.verify(wrong, Some(&stored)), Verified::No, "{wrong}");
        }
        let other = hasher.hash("correct horse battery staple").unwrap();
        assert_ne!(stored, other, "each hash has its own salt");
    }

    #[test]
    fn long_and_foreign_passwords_are_kept_exact() {
        let hasher = Hasher::new(CHEAP);
        let long = "ß𝄞 ".repeat(100);
        let stored = hasher.hash(&long).unwrap();
        assert_eq!(hasher.verify(&long, Some(&stored)), Verified::Yes);
        assert_eq!(hasher.verify(long.trim_end(), Some(&stored)), Verified::No);
    }

    #[test]
    fn an_endless_password_is_refused_without_hashing_it() {
        // At a cost that would take minutes, so that hashing would be noticed.
        let hasher = Hasher {
            cost: Cost {
                memory_kib: 1024 * 1024,
                rounds: 100,
            },
            decoy: String::new(),
            memory: Arc::default(),
        };
        let endless = "x".repeat(1_000_000);
        assert_eq!(hasher.hash(&endless), None);
        assert_eq!(hasher.verify(&endless, None), Verified::No);
    }

    #[test]
    fn a_hash_of_lower_cost_verifies_and_asks_to_be_replaced() {
        let stored = Hasher::new(CHEAP)
            .hash("correct horse battery staple")
            .unwrap();
        let dearer = Hasher::new(Cost { rounds: 2, ..CHEAP });
        let verified = dearer.verify("correct horse battery staple", Some(&stored));
        assert_eq!(verified, Verified::YesOutdated);
    }

    #[test]
    fn nobody_signs_in_to_an_account_that_does_not_exist() {
        let hasher = Hasher::new(CHEAP);
        assert_eq!(hasher.verify("anything", None), Verified::No);
        assert_eq!(hasher.verify("anything", Some("not a hash")), Verified::No);
    }

    #[test]
    fn the_standard_cost_is_at_least_what_is_asked_for() {
        let stored = Hasher::new(Cost::STANDARD).hash("x").unwrap();
        assert!(stored.contains("m=19456,t=2,p=1"), "{stored}");
    }
}
