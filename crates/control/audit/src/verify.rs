//! Judges a chain: whether it is what was written, and if not, where it first differs.
//!
//! Entries are given in the order of their numbers, one at a time, so a chain of any length is
//! judged in constant memory. The first fault ends the judgement, because after it nothing that
//! the chain says can be believed.

use std::collections::BTreeMap;
use std::fmt;

use nimbus_core::TenantId;
use serde::Serialize;

use crate::checkpoint::{Checkpoint, VerifyingKey};
use crate::entry::{AuditEntry, ChainHash, Priority};

/// What is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FaultKind {
    /// The content is not what was hashed.
    Edited,
    /// Entries are missing before this one.
    Missing,
    /// It does not follow the entry before it: something was inserted or the order changed.
    OutOfPlace,
    /// The chain ends before an entry that a checkpoint names.
    Truncated,
    /// Each entry fits, and a checkpoint says that another one stood here.
    Rewritten,
    /// A critical entry has no valid signature.
    Unproven,
    /// A checkpoint is not ours, or was changed.
    CheckpointForged,
    /// A checkpoint that this server wrote is not where it wrote it.
    CheckpointMissing,
    /// There are entries, and no checkpoint at all to hold them against.
    Unwitnessed,
}

/// The first thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ChainFault {
    pub kind: FaultKind,
    /// The entry that it shows at.
    pub sequence: u64,
}

impl fmt::Display for ChainFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let n = self.sequence;
        match self.kind {
            FaultKind::Edited => write!(f, "entry {n} was edited"),
            FaultKind::Missing => write!(f, "entry {n} is missing"),
            FaultKind::OutOfPlace => write!(f, "entry {n} does not follow the entry before it"),
            FaultKind::Truncated => {
                write!(
                    f,
                    "the trail ends before entry {n}, which a checkpoint names"
                )
            }
            FaultKind::Rewritten => {
                write!(
                    f,
                    "entry {n} is not the one that a checkpoint names: the trail was rewritten"
                )
            }
            FaultKind::Unproven => {
                write!(f, "entry {n} is critical and its signature is not valid")
            }
            FaultKind::CheckpointMissing => {
                write!(
                    f,
                    "the checkpoint at entry {n} is not in the server's file of checkpoints any more"
                )
            }
            FaultKind::Unwitnessed => {
                write!(
                    f,
                    "the trail has entries up to {n} and no checkpoint: they may all be others than were written"
                )
            }
            FaultKind::CheckpointForged => {
                write!(
                    f,
                    "the checkpoint at entry {n} is not signed by this installation"
                )
            }
        }
    }
}

/// The judgement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "verdict")]
pub enum ChainVerdict {
    Intact { entries: u64, checkpoints: u64 },
    Broken { fault: ChainFault },
}

/// Takes a chain entry by entry.
#[derive(Debug)]
pub struct Verifier {
    key: VerifyingKey,
    tenant: TenantId,
    /// The number and the hash of the last entry, or where the chain starts.
    last: (u64, ChainHash),
    first: u64,
    expected: BTreeMap<u64, ChainHash>,
    /// What whoever verifies wrote itself.
    known: BTreeMap<u64, ChainHash>,
    checkpoints: u64,
    fault: Option<ChainFault>,
}

impl Verifier {
    /// A whole chain from its beginning, held against the checkpoints that were kept.
    pub fn new(key: VerifyingKey, tenant: TenantId, checkpoints: &[Checkpoint]) -> Self {
        Self::starting_after(key, tenant, (0, ChainHash::genesis(tenant)), checkpoints)
    }

    /// A chain whose older part was moved to an archive: `last` is the archive's last entry.
    pub fn starting_after(
        key: VerifyingKey,
        tenant: TenantId,
        last: (u64, ChainHash),
        checkpoints: &[Checkpoint],
    ) -> Self {
        let mut verifier = Self {
            key,
            tenant,
            last,
            first: last.0,
            expected: BTreeMap::new(),
            known: BTreeMap::new(),
            checkpoints: 0,
            fault: None,
        };
        for checkpoint in checkpoints {
            verifier.expect(checkpoint);
        }
        verifier
    }

    fn expect(&mut self, checkpoint: &Checkpoint) {
        let genuine = checkpoint.tenant == self.tenant && self.key.accepts(checkpoint);
        match checkpoint.chain_hash() {
            Some(hash) if genuine => {
                let other = self.expected.insert(checkpoint.sequence, hash);
                if other.is_some_and(|other| other != hash) {
                    self.find(FaultKind::Rewritten, checkpoint.sequence);
                }
            }
            _ => self.find(FaultKind::CheckpointForged, checkpoint.sequence),
        }
    }

    /// The next entry. Whether there is any point in giving another.
    pub fn next(&mut self, entry: &AuditEntry) -> bool {
        if self.fault.is_none() {
            match self.judge(entry) {
                Some(fault) => self.fault = Some(fault),
                None => self.last = (entry.sequence, entry.hash),
            }
        }
        self.fault.is_none()
    }

    fn judge(&mut self, entry: &AuditEntry) -> Option<ChainFault> {
        let (last_sequence, last_hash) = self.last;
        let fault = |kind, sequence| Some(ChainFault { kind, sequence });
        if entry.tenant != self.tenant || entry.sequence <= last_sequence {
            return fault(FaultKind::OutOfPlace, entry.sequence);
        }
        if entry.sequence > last_sequence + 1 {
            return fault(FaultKind::Missing, last_sequence + 1);
        }
        if entry.computed_hash() != entry.hash {
            return fault(FaultKind::Edited, entry.sequence);
        }
        if entry.previous != last_hash {
            return fault(FaultKind::OutOfPlace, entry.sequence);
        }
        if let Some(expected) = self.expected.get(&entry.sequence) {
            if *expected != entry.hash {
                return fault(FaultKind::Rewritten, entry.sequence);
            }
            self.checkpoints += 1;
        }
        if self
            .known
            .get(&entry.sequence)
            .is_some_and(|known| *known != entry.hash)
        {
            return fault(FaultKind::Rewritten, entry.sequence);
        }
        let proven = match &entry.proof {
            Some(proof) => self.key.accepts_proof(entry, proof),
            None => entry.record.priority != Priority::Critical,
        };
        (!proven)
            .then_some(FaultKind::Unproven)
            .and_then(|kind| fault(kind, entry.sequence))
    }

    /// An entry that whoever verifies knows by itself, without a checkpoint.
    pub fn expect_entry(&mut self, sequence: u64, hash: ChainHash) {
        self.known.insert(sequence, hash);
    }

    /// A checkpoint should be where it is not.
    pub fn checkpoint_missing(&mut self, sequence: u64) {
        self.find(FaultKind::CheckpointMissing, sequence);
    }

    /// The chain is old enough to have checkpoints; one without any is not believed.
    pub fn demand_witness(&mut self) {
        let unwitnessed = self.expected.is_empty() && self.known.is_empty();
        if unwitnessed && self.last.0 > self.first {
            self.find(FaultKind::Unwitnessed, self.last.0);
        }
    }

    /// In the place of the next entry there is something that cannot be read.
    pub fn unreadable(&mut self) {
        self.find(FaultKind::Edited, self.last.0 + 1);
    }

    /// The judgement, once every entry was given.
    pub fn finish(mut self) -> ChainVerdict {
        let beyond = self
            .expected
            .keys()
            .chain(self.known.keys())
            .copied()
            .filter(|sequence| *sequence > self.last.0)
            .min();
        if let Some(sequence) = beyond {
            self.find(FaultKind::Truncated, sequence);
        }
        match self.fault {
            Some(fault) => ChainVerdict::Broken { fault },
            None => ChainVerdict::Intact {
                entries: self.last.0 - self.first,
                checkpoints: self.checkpoints,
            },
        }
    }

    fn find(&mut self, kind: FaultKind, sequence: u64) {
        self.fault.get_or_insert(ChainFault { kind, sequence });
    }
}

#[cfg(test)]
mod tests;
