//! Versions of a stack's state.
//!
//! Pulumi's state has no serial number. Nimbus counts beside it: the ledger remembers which
//! content had which number. The official command line writes states that the ledger has not seen;
//! such a state is simply newer than everything in it.

use std::fmt;

use jiff::Timestamp;
use nimbus_core::Serial;
use serde::{Deserialize, Serialize};

use crate::digest::Digest;

/// How many versions are remembered.
const REMEMBERED: usize = 200;

/// Identifies one state: the content, and how many came before it. A plan is bound to this.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct StateVersion {
    pub serial: Serial,
    /// Of the checkpoint's bytes as stored, uncompressed.
    pub sha256: Digest,
}

impl fmt::Display for StateVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digest = self.sha256.to_string();
        write!(f, "{} ({})", self.serial, &digest[..12])
    }
}

/// What is remembered of the versions of one stack, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Ledger {
    versions: Vec<KnownVersion>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct KnownVersion {
    #[serde(flatten)]
    version: StateVersion,
    at: Timestamp,
}

impl Ledger {
    /// A ledger that cannot be read is a memory lost, not a reason to stop: numbers start again,
    /// and plans made before are refused because they no longer fit.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Self {
        serde_json::from_slice(bytes).unwrap_or_else(|error| {
            tracing::warn!(%error, "the list of known versions cannot be read; starting a new one");
            Self::default()
        })
    }

    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("a ledger has only text keys")
    }

    /// The version that content with this digest is now.
    pub(crate) fn current(&self, sha256: Digest) -> StateVersion {
        match self.versions.last() {
            Some(last) if last.version.sha256 == sha256 => last.version,
            Some(last) => StateVersion {
                serial: last.version.serial.next(),
                sha256,
            },
            None => StateVersion {
                serial: Serial::FIRST,
                sha256,
            },
        }
    }

    /// The number that this content had earlier, if something newer has been seen since.
    pub(crate) fn earlier(&self, sha256: Digest) -> Option<Serial> {
        let (last, before) = self.versions.split_last()?;
        if last.version.sha256 == sha256 {
            return None;
        }
        let found = before
            .iter()
            .rev()
            .find(|known| known.version.sha256 == sha256)?;
        Some(found.version.serial)
    }

    /// Takes note of content that was found or written.
    pub(crate) fn note(&mut self, sha256: Digest, at: Timestamp) -> StateVersion {
        let version = self.current(sha256);
        if self
            .versions
            .last()
            .is_none_or(|last| last.version != version)
        {
            self.versions.push(KnownVersion { version, at });
        }
        let excess = self.versions.len().saturating_sub(REMEMBERED);
        self.versions.drain(..excess);
        version
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(n: u8) -> Digest {
        Digest::of(&[n])
    }

    fn ledger(contents: &[u8]) -> Ledger {
        let mut ledger = Ledger::default();
        for n in contents {
            ledger.note(digest(*n), Timestamp::UNIX_EPOCH);
        }
        ledger
    }

    #[test]
    fn numbers_only_go_up_even_when_content_comes_back() {
        let ledger = ledger(&[1, 2, 2, 3, 1]);
        let numbers: Vec<_> = ledger
            .versions
            .iter()
            .map(|k| k.version.serial.get())
            .collect();
        assert_eq!(numbers, [1, 2, 3, 4]);
        assert_eq!(ledger.current(digest(1)).serial.get(), 4);
        assert_eq!(ledger.current(digest(9)).serial.get(), 5, "unseen is newer");
    }

    #[test]
    fn content_that_came_back_is_recognised() {
        let ledger = ledger(&[1, 2, 3]);
        assert_eq!(ledger.earlier(digest(2)).map(Serial::get), Some(2));
        assert_eq!(ledger.earlier(digest(3)), None, "the latest is not older");
        assert_eq!(ledger.earlier(digest(7)), None);
    }

    #[test]
    fn the_ledger_stays_short_and_survives_nonsense() {
        let mut long = Ledger::default();
        for n in 0..500u32 {
            long.note(Digest::of(&n.to_le_bytes()), Timestamp::UNIX_EPOCH);
        }
        assert_eq!(long.versions.len(), REMEMBERED);
        assert_eq!(long.versions.last().unwrap().version.serial.get(), 500);
        let again = Ledger::from_bytes(&long.to_bytes());
        assert_eq!(again, long);
        assert_eq!(Ledger::from_bytes(b"{\"versions\":[7]}"), Ledger::default());
    }
}
