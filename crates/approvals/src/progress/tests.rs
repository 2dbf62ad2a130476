use jiff::Timestamp;
use nimbus_core::UserId;
use proptest::prelude::*;
use uuid::Uuid;

use super::*;
use crate::chain::{ApprovalChain, ApprovalNeed, ApprovalStep, Approver};

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + seconds).unwrap()
}

fn person(number: u8) -> UserId {
    let id = Uuid::from_bytes([number; 16]);
    id.to_string().parse().unwrap()
}

fn decider(number: u8) -> Decider {
    Decider {
        user: person(number),
        groups: Vec::new(),
        delegators: Vec::new(),
    }
}

fn step(name: &str, people: &[u8], needs: ApprovalNeed) -> ApprovalStep {
    ApprovalStep {
        name: name.to_owned(),
        approvers: people
            .iter()
            .map(|one| Approver::User(person(*one)))
            .collect(),
        needs,
        timeout_seconds: 100,
        escalate_to: Vec::new(),
    }
}

fn chain(steps: Vec<ApprovalStep>) -> ApprovalChain {
    let chain = ApprovalChain {
        steps,
        own_requests: false,
    };
    chain.check().unwrap();
    chain
}

const REQUESTER: u8 = 9;

fn approve(
    progress: &ApprovalProgress,
    chain: &ApprovalChain,
    who: &Decider,
    now: i64,
) -> Result<ApprovalProgress, ApprovalRefusal> {
    let verdict = ApprovalVerdict::Approve;
    progress.decide(chain, person(REQUESTER), who, verdict, "", at(now))
}

#[test]
fn steps_follow_each_other_and_the_last_approves() {
    let chain = chain(vec![
        step("first", &[1, 2], ApprovalNeed::Any),
        step("second", &[3, 4], ApprovalNeed::All),
        step("third", &[5, 6, 7], ApprovalNeed::Quorum(2)),
    ]);
    let mut progress = ApprovalProgress::begin(at(0));
    // Nobody of a later step comes before it.
    assert_eq!(
        approve(&progress, &chain, &decider(3), 1),
        Err(ApprovalRefusal::NotApprover {
            step: "first".into()
        })
    );
    for (place, who) in [(0, 2), (1, 4), (1, 3), (2, 5), (2, 7)] {
        let ApprovalState::Pending { step, .. } = progress.state else {
            panic!("{progress:?}");
        };
        assert_eq!(step, place);
        progress = approve(&progress, &chain, &decider(who), 1).unwrap();
    }
    assert_eq!(progress.state, ApprovalState::Approved { at: at(1) });
    let late = approve(&progress, &chain, &decider(6), 2);
    assert_eq!(late, Err(ApprovalRefusal::Ended { word: "approved" }));
}

#[test]
fn a_rejection_ends_it_at_once_and_says_why() {
    let chain = chain(vec![
        step("first", &[1, 2], ApprovalNeed::All),
        step("second", &[3], ApprovalNeed::Any),
    ]);
    let progress = ApprovalProgress::begin(at(0));
    let reject = |words: &str| {
        let (who, verdict) = (decider(2), ApprovalVerdict::Reject);
        progress.decide(&chain, person(REQUESTER), &who, verdict, words, at(5))
    };
    assert_eq!(reject("  "), Err(ApprovalRefusal::ReasonNeeded));
    let ended = reject("not on a Friday").unwrap();
    let rejected = ApprovalState::Rejected {
        at: at(5),
        by: person(2),
        reason: "not on a Friday".into(),
    };
    assert_eq!(ended.state, rejected);
    assert!(approve(&ended, &chain, &decider(1), 6).is_err());
}

#[test]
fn a_chain_may_let_people_decide_on_what_they_asked_for() {
    let mut chain = chain(vec![step("first", &[REQUESTER], ApprovalNeed::Any)]);
    chain.own_requests = true;
    let progress = ApprovalProgress::begin(at(0));
    let own = approve(&progress, &chain, &decider(REQUESTER), 1).unwrap();
    assert_eq!(own.state, ApprovalState::Approved { at: at(1) });
    // In the place of somebody else they still decide on nothing.
    let other = ApprovalChain {
        steps: vec![step("first", &[1], ApprovalNeed::Any)],
        own_requests: true,
    };
    let stranger = approve(&progress, &other, &decider(REQUESTER), 1);
    assert!(matches!(stranger, Err(ApprovalRefusal::NotApprover { .. })));
    let mut asked = decider(REQUESTER);
    asked.delegators = vec![Delegator {
        user: person(1),
        groups: Vec::new(),
    }];
    let instead = approve(&progress, &other, &asked, 1);
    assert_eq!(instead, Err(ApprovalRefusal::OwnRequest));
}

#[test]
fn nobody_decides_twice_late_or_on_their_own_request() {
    let mut first = step("first", &[1, 2, REQUESTER], ApprovalNeed::Quorum(2));
    first.escalate_to = vec![Approver::User(person(4))];
    let chain = chain(vec![first]);
    let progress = ApprovalProgress::begin(at(0));
    let own = approve(&progress, &chain, &decider(REQUESTER), 1);
    assert_eq!(own, Err(ApprovalRefusal::OwnRequest));
    let once = approve(&progress, &chain, &decider(1), 1).unwrap();
    let twice = approve(&once, &chain, &decider(1), 2);
    assert_eq!(
        twice,
        Err(ApprovalRefusal::Twice {
            step: "first".into()
        })
    );
    let late = approve(&once, &chain, &decider(2), 100);
    assert_eq!(
        late,
        Err(ApprovalRefusal::TooLate {
            step: "first".into()
        })
    );
    // Whoever is asked last is not asked before.
    assert!(approve(&once, &chain, &decider(4), 50).is_err());

    // When the time is over others may decide as well, and one of them is enough.
    assert_eq!(once.time_out(&chain, at(99)), None);
    let escalated = once.time_out(&chain, at(100)).unwrap();
    assert_eq!(escalated.deadline(&chain), Some(at(200)));
    let ended = approve(&escalated, &chain, &decider(4), 150).unwrap();
    assert_eq!(ended.state, ApprovalState::Approved { at: at(150) });
    // The first ones still can, too.
    let ended = approve(&escalated, &chain, &decider(2), 150).unwrap();
    assert_eq!(ended.state, ApprovalState::Approved { at: at(150) });
    let expired = escalated.time_out(&chain, at(200)).unwrap();
    let state = ApprovalState::Expired {
        at: at(200),
        step: 0,
    };
    assert_eq!(expired.state, state);
    assert_eq!(expired.time_out(&chain, at(999)), None);
}

#[test]
fn somebody_decides_in_anothers_place_once_and_not_for_the_requester() {
    let chain = chain(vec![step("first", &[1, 2, REQUESTER], ApprovalNeed::All)]);
    let delegate = |people: &[u8]| Decider {
        delegators: people
            .iter()
            .map(|one| Delegator {
                user: person(*one),
                groups: Vec::new(),
            })
            .collect(),
        ..decider(5)
    };
    let progress = ApprovalProgress::begin(at(0));
    assert!(approve(&progress, &chain, &delegate(&[]), 1).is_err());
    assert!(approve(&progress, &chain, &delegate(&[REQUESTER]), 1).is_err());
    let once = approve(&progress, &chain, &delegate(&[REQUESTER, 2]), 1).unwrap();
    assert_eq!(once.decisions[0].for_user, Some(person(2)));
    // Neither of the two has another voice.
    for who in [delegate(&[1, 2]), decider(2)] {
        let refused = approve(&once, &chain, &who, 2);
        assert_eq!(
            refused,
            Err(ApprovalRefusal::Twice {
                step: "first".into()
            })
        );
    }
}

#[test]
fn a_member_of_a_group_speaks_for_it_and_what_they_said_stays() {
    let group = Uuid::from_bytes([77; 16]);
    let mut first = step("first", &[1], ApprovalNeed::All);
    first.approvers.push(Approver::Group(group));
    let chain = chain(vec![first]);
    let member = Decider {
        groups: vec![group],
        ..decider(6)
    };
    let progress = ApprovalProgress::begin(at(0));
    assert!(approve(&progress, &chain, &decider(6), 1).is_err());
    let once = approve(&progress, &chain, &member, 1).unwrap();
    assert!(matches!(once.state, ApprovalState::Pending { .. }));
    // They may have left the group since.
    let ended = approve(&once, &chain, &decider(1), 2).unwrap();
    assert_eq!(ended.state.word(), "approved");
}

#[test]
fn who_asked_can_take_it_back_until_it_is_decided() {
    let chain = chain(vec![step("first", &[1], ApprovalNeed::Any)]);
    let progress = ApprovalProgress::begin(at(0));
    let back = progress.withdraw(person(REQUESTER), at(1)).unwrap();
    assert_eq!(back.state.word(), "withdrawn");
    assert!(approve(&back, &chain, &decider(1), 2).is_err());
    assert!(back.withdraw(person(REQUESTER), at(3)).is_err());
}

#[derive(Clone, Debug)]
enum Act {
    Approve(u8),
    Reject(u8),
    Wait(i64),
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let act = prop_oneof![
        6 => (1..=9_u8).prop_map(Act::Approve),
        1 => (1..=9_u8).prop_map(Act::Reject),
        2 => (1..=120_i64).prop_map(Act::Wait),
    ];
    prop::collection::vec(act, 0..40)
}

fn needs() -> impl Strategy<Value = ApprovalNeed> {
    prop_oneof![
        Just(ApprovalNeed::Any),
        Just(ApprovalNeed::All),
        (1..=2_u32).prop_map(ApprovalNeed::Quorum),
    ]
}

proptest! {
    /// Whatever happens in whatever order: approved means that each step had what it needs, in time, from people
    /// who may, none of them who asked; and what ended stays as it ended.
    #[test]
    fn approved_means_that_everybody_needed_agreed(
        kinds in prop::collection::vec((needs(), any::<bool>()), 1..4),
        acts in acts(),
    ) {
        let steps = kinds.iter().enumerate().map(|(place, (needs, escalates))| {
            let mut one = step(&format!("s{place}"), &[1, 2, 3], *needs);
            if *escalates {
                one.escalate_to = vec![Approver::User(person(8))];
            }
            one
        });
        let chain = chain(steps.collect());
        let mut now = 0;
        let mut progress = ApprovalProgress::begin(at(0));
        for act in acts {
            let before = progress.clone();
            match act {
                Act::Wait(seconds) => {
                    now += seconds;
                    if let Some(next) = progress.time_out(&chain, at(now)) {
                        progress = next;
                    }
                }
                Act::Approve(who) | Act::Reject(who) => {
                    let verdict = match act {
                        Act::Reject(_) => ApprovalVerdict::Reject,
                        _ => ApprovalVerdict::Approve,
                    };
                    let decided = progress.decide(
                        &chain, person(REQUESTER), &decider(who), verdict, "because", at(now),
                    );
                    if let Ok(next) = decided {
                        progress = next;
                    }
                }
            }
            if !matches!(before.state, ApprovalState::Pending { .. }) {
                prop_assert_eq!(&before, &progress);
            }
        }
        prop_assert!(progress.decisions.iter().all(|one| one.by != person(REQUESTER)));
        if matches!(progress.state, ApprovalState::Approved { .. }) {
            for (place, step) in chain.steps.iter().enumerate() {
                let by: Vec<_> = progress.decisions.iter().filter(|one| one.step == place).map(|one| one.by).collect();
                prop_assert!(!by.is_empty());
                let mut once = by.clone();
                once.sort();
                once.dedup();
                prop_assert_eq!(once.len(), by.len());
                if by.contains(&person(8)) {
                    continue;
                }
                match step.needs {
                    ApprovalNeed::Any => {}
                    ApprovalNeed::All => prop_assert_eq!(by.len(), 3),
                    ApprovalNeed::Quorum(quorum) => prop_assert!(by.len() >= quorum as usize),
                }
            }
        }
    }
}
