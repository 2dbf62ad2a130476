use jiff::Timestamp;
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::checkpoint::SigningKey;
use crate::entry::{Actor, AuditRecord};

struct Chain {
    key: SigningKey,
    tenant: TenantId,
    entries: Vec<AuditEntry>,
}

impl Chain {
    fn of(length: u64) -> Self {
        Self::written(SigningKey::generate(), TenantId::random(), length, "note")
    }

    fn written(key: SigningKey, tenant: TenantId, length: u64, note: &str) -> Self {
        let mut entries: Vec<AuditEntry> = Vec::new();
        for number in 0..length {
            let record = AuditRecord::new(Actor::system(), "things.create", "thing")
                .on(number)
                .after(json!({ note: number }))
                .priority(if number % 3 == 2 {
                    Priority::Critical
                } else {
                    Priority::Low
                });
            let last = entries.last().map(|entry| (entry.sequence, entry.hash));
            let at = Timestamp::from_second(1_700_000_000 + number.cast_signed()).unwrap();
            let mut entry = AuditEntry::append(tenant, last, at, record);
            if entry.record.priority == Priority::Critical {
                entry.proof = Some(key.prove(&entry));
            }
            entries.push(entry);
        }
        Self {
            key,
            tenant,
            entries,
        }
    }

    fn checkpoint(&self, sequence: usize) -> Checkpoint {
        self.key
            .checkpoint(&self.entries[sequence - 1], Timestamp::UNIX_EPOCH)
    }

    fn verdict(&self, checkpoints: &[Checkpoint]) -> ChainVerdict {
        let mut verifier = Verifier::new(self.key.verifying_key(), self.tenant, checkpoints);
        for entry in &self.entries {
            verifier.next(entry);
        }
        verifier.finish()
    }

    fn fault(&self, checkpoints: &[Checkpoint]) -> (FaultKind, u64) {
        match self.verdict(checkpoints) {
            ChainVerdict::Broken { fault } => (fault.kind, fault.sequence),
            intact => panic!("{intact:?}"),
        }
    }
}

#[test]
fn an_untouched_chain_is_intact() {
    let chain = Chain::of(9);
    let checkpoints = [chain.checkpoint(4), chain.checkpoint(9)];
    let verdict = chain.verdict(&checkpoints);
    assert_eq!(
        verdict,
        ChainVerdict::Intact {
            entries: 9,
            checkpoints: 2
        }
    );
    assert_eq!(
        Chain::of(0).verdict(&[]),
        ChainVerdict::Intact {
            entries: 0,
            checkpoints: 0
        }
    );
}

#[test]
fn an_edited_entry_is_named() {
    type Edit = fn(&mut AuditEntry);
    let edits: &[Edit] = &[
        |entry| entry.record.action.push('x'),
        |entry| entry.record.actor.id = "somebody else".to_owned(),
        |entry| entry.record.actor.original = Some("a".to_owned()),
        |entry| entry.record.resource_id = None,
        |entry| entry.record.outcome = crate::Outcome::Denied,
        |entry| entry.record.ip_address = Some("10.0.0.1".to_owned()),
        |entry| entry.record.trace_id = Some("t".to_owned()),
        |entry| entry.at = Timestamp::UNIX_EPOCH,
        |entry| {
            entry.record = entry
                .record
                .clone()
                .with_stored_values(None, Some("{}".to_owned()));
        },
        |entry| {
            entry.record = entry
                .record
                .clone()
                .with_stored_values(Some("{}".to_owned()), None);
        },
    ];
    for (number, edit) in edits.iter().enumerate() {
        let mut chain = Chain::of(7);
        edit(&mut chain.entries[4]);
        assert_eq!(chain.fault(&[]), (FaultKind::Edited, 5), "edit {number}");
    }
}

#[test]
fn an_edit_with_a_new_hash_shows_at_the_next_entry() {
    let mut chain = Chain::of(7);
    chain.entries[3].record.action.push('x');
    chain.entries[3].hash = chain.entries[3].computed_hash();
    assert_eq!(chain.fault(&[]), (FaultKind::OutOfPlace, 5));
}

#[test]
fn removals_insertions_and_swaps_are_named() {
    let mut removed = Chain::of(7);
    removed.entries.remove(2);
    assert_eq!(removed.fault(&[]), (FaultKind::Missing, 3));

    let mut first_removed = Chain::of(7);
    first_removed.entries.remove(0);
    assert_eq!(first_removed.fault(&[]), (FaultKind::Missing, 1));

    let mut doubled = Chain::of(7);
    doubled.entries.insert(3, doubled.entries[2].clone());
    assert_eq!(doubled.fault(&[]), (FaultKind::OutOfPlace, 3));

    let mut swapped = Chain::of(7);
    swapped.entries.swap(2, 3);
    swapped.entries[2].sequence = 3;
    swapped.entries[3].sequence = 4;
    assert_eq!(swapped.fault(&[]), (FaultKind::Edited, 3));
}

#[test]
fn an_entry_of_another_tenant_is_out_of_place() {
    let mut chain = Chain::of(3);
    chain.entries.push(Chain::of(4).entries.remove(3));
    assert_eq!(chain.fault(&[]), (FaultKind::OutOfPlace, 4));
}

#[test]
fn a_cut_tail_shows_against_a_checkpoint() {
    let mut chain = Chain::of(8);
    let checkpoint = chain.checkpoint(8);
    chain.entries.truncate(5);
    assert!(
        matches!(chain.verdict(&[]), ChainVerdict::Intact { .. }),
        "the chain alone cannot tell"
    );
    assert_eq!(chain.fault(&[checkpoint]), (FaultKind::Truncated, 8));
}

#[test]
fn a_cut_tail_shows_against_what_was_written_and_a_chain_alone_is_not_believed() {
    let mut chain = Chain::of(6);
    let last = chain.entries[5].hash;
    let judged = |chain: &Chain, known: Option<(u64, ChainHash)>| {
        let mut verifier = Verifier::new(chain.key.verifying_key(), chain.tenant, &[]);
        if let Some((sequence, hash)) = known {
            verifier.expect_entry(sequence, hash);
        }
        for entry in &chain.entries {
            verifier.next(entry);
        }
        verifier.demand_witness();
        verifier.finish()
    };
    let kind = |verdict| match verdict {
        ChainVerdict::Broken { fault } => Some((fault.kind, fault.sequence)),
        ChainVerdict::Intact { .. } => None,
    };
    assert_eq!(kind(judged(&chain, Some((6, last)))), None);
    assert_eq!(
        kind(judged(&chain, None)),
        Some((FaultKind::Unwitnessed, 6))
    );
    chain.entries.truncate(5);
    assert_eq!(
        kind(judged(&chain, Some((6, last)))),
        Some((FaultKind::Truncated, 6))
    );
    assert_eq!(
        kind(judged(&chain, Some((5, last)))),
        Some((FaultKind::Rewritten, 5))
    );
}

#[test]
fn a_rewritten_chain_shows_against_a_checkpoint() {
    let honest = Chain::of(8);
    let checkpoints = [honest.checkpoint(2), honest.checkpoint(6)];
    let Chain { key, tenant, .. } = honest;
    let forged = Chain::written(key, tenant, 8, "lie");
    assert_eq!(forged.fault(&checkpoints), (FaultKind::Rewritten, 2));
}

#[test]
fn a_critical_entry_without_its_signature_is_named() {
    let mut chain = Chain::of(4);
    chain.entries[2].proof = None;
    assert_eq!(chain.fault(&[]), (FaultKind::Unproven, 3));
    chain.entries[2].proof = Some(SigningKey::generate().prove(&chain.entries[2]));
    assert_eq!(chain.fault(&[]), (FaultKind::Unproven, 3));
}

#[test]
fn a_forged_checkpoint_is_named() {
    let chain = Chain::of(4);
    let foreign = SigningKey::generate().checkpoint(&chain.entries[3], Timestamp::UNIX_EPOCH);
    assert_eq!(chain.fault(&[foreign]), (FaultKind::CheckpointForged, 4));
}

#[test]
fn what_follows_an_archive_is_judged_from_its_last_entry() {
    let chain = Chain::of(8);
    let last = (3, chain.entries[2].hash);
    let key = chain.key.verifying_key();
    let mut verifier = Verifier::starting_after(key, chain.tenant, last, &[chain.checkpoint(8)]);
    for entry in &chain.entries[3..] {
        assert!(verifier.next(entry));
    }
    assert_eq!(
        verifier.finish(),
        ChainVerdict::Intact {
            entries: 5,
            checkpoints: 1
        }
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// With a checkpoint at the end, no choice of entries but the original one passes.
    #[test]
    fn any_other_selection_or_order_is_found(
        order in prop::collection::vec(0usize..6, 0..8),
    ) {
        let mut chain = Chain::of(6);
        let checkpoint = chain.checkpoint(6);
        let original = chain.entries.clone();
        chain.entries = order.iter().map(|position| original[*position].clone()).collect();
        let untouched = chain.entries == original;
        let intact = matches!(chain.verdict(&[checkpoint]), ChainVerdict::Intact { .. });
        prop_assert_eq!(intact, untouched);
    }
}
