use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use crate::integrity::verify;
use crate::urn::Urn;

/// Resources as `name=id`, with `!` for those that wait for their delete and `~` for those that
/// were deleted ahead of their replacement.
fn shown(snapshot: &Snapshot) -> String {
    let resources = snapshot.resources.iter().map(|resource| {
        let mark = match (resource.delete, resource.pending_replacement) {
            (true, _) => "!",
            (_, true) => "~",
            _ => "",
        };
        format!(
            "{}={}{mark}",
            resource.urn.name(),
            resource.id.as_deref().unwrap_or("")
        )
    });
    resources.collect::<Vec<_>>().join(" ")
}

#[track_caller]
fn check(base: &Snapshot, entries: &[JournalEntry], expected: &str) -> Snapshot {
    let snapshot = replay(base, entries).unwrap();
    assert_eq!(shown(&snapshot), expected);
    snapshot
}

#[test]
fn acts_come_first_in_the_order_of_their_ends_and_the_rest_of_the_base_follows() {
    let (c, b) = (resource("c", "3"), resource("b", "2x"));
    let entries = [
        begin(1, OperationKind::Creating, &c),
        begin(2, OperationKind::Updating, &b),
        success(2, supersede(StateRef::Base(1), &b)),
        success(1, record(&c)),
    ];
    let base = base(&[("a", "1"), ("b", "2"), ("d", "4")]);
    let done = check(&base, &entries, "b=2x c=3 a=1 d=4");
    assert_eq!(done.pending_operations, []);
    assert_eq!(replay(&base, &[]).unwrap(), base, "nothing happened");
}

#[test]
fn an_act_without_an_outcome_is_pending() {
    let (c, b) = (resource("c", ""), resource("b", "2"));
    let entries = [
        begin(2, OperationKind::Deleting, &b),
        begin(1, OperationKind::Creating, &c),
        JournalEntry::Unknown {
            act: ActId(2),
            message: "connection lost".to_owned(),
        },
    ];
    let crashed = check(&base(&[("b", "2")]), &entries, "b=2");
    let kinds: Vec<_> = crashed
        .pending_operations
        .iter()
        .map(|pending| pending.kind)
        .collect();
    assert_eq!(
        kinds,
        [OperationKind::Creating, OperationKind::Deleting],
        "in the order of acts"
    );
}

#[test]
fn a_failure_ends_the_act_and_records_what_it_left() {
    let half = resource("c", "half-made");
    let failure = |change| JournalEntry::Failure {
        act: ActId(1),
        change,
    };
    let begun = begin(1, OperationKind::Creating, &half);
    let clean = check(
        &base(&[]),
        &[begun.clone(), failure(JournalChange::default())],
        "",
    );
    assert_eq!(clean.pending_operations, []);
    check(&base(&[]), &[begun, failure(record(&half))], "c=half-made");
}

#[test]
fn a_replacement_leaves_the_old_one_waiting_for_its_delete() {
    let replacement = resource("a", "new");
    let change = JournalChange {
        mark_delete: Some(StateRef::Base(0)),
        ..record(&replacement)
    };
    let entries = [success(1, change), success(2, remove(StateRef::Base(0)))];
    let base = base(&[("a", "old")]);
    check(&base, &entries[..1], "a=new a=old!");
    check(&base, &entries, "a=new");
    assert!(!base.resources[0].delete, "the base is untouched");
}

#[test]
fn a_delete_before_a_replacement_leaves_a_mark_until_the_replacement_exists() {
    let replacement = resource("a", "new");
    let deleted = JournalChange {
        mark_pending_replacement: Some(StateRef::Base(0)),
        ..JournalChange::default()
    };
    let entries = [
        success(1, deleted),
        success(2, supersede(StateRef::Base(0), &replacement)),
    ];
    check(&base(&[("a", "old")]), &entries[..1], "a=old~");
    check(&base(&[("a", "old")]), &entries, "a=new");
}

#[test]
fn a_resource_that_is_recorded_again_keeps_its_place() {
    let (first, second) = (resource("p", "1"), resource("c", "2"));
    let mut with_outputs = ResourceState::clone(&first);
    with_outputs.outputs.insert("o".to_owned(), 1.0.into());
    let with_outputs = Arc::new(with_outputs);
    let entries = [
        success(1, record(&first)),
        success(2, record(&second)),
        success(3, supersede(new(1), &with_outputs)),
        success(
            4,
            JournalChange {
                mark_delete: Some(new(3)),
                ..JournalChange::default()
            },
        ),
        success(5, remove(new(3))),
    ];
    let done = check(&base(&[]), &entries[..4], "p=1! c=2");
    assert_eq!(done.resources[0].outputs, with_outputs.outputs);
    check(&base(&[]), &entries, "c=2");
}

#[test]
fn a_rebase_is_the_base_of_what_follows() {
    let (a, b) = (resource("a", "refreshed"), resource("b", "2"));
    let entries = [
        begin(1, OperationKind::Creating, &b),
        success(2, record(&resource("x", "9"))),
        JournalEntry::Rebase { resources: vec![a] },
        success(3, remove(StateRef::Base(0))),
    ];
    let rebased = check(
        &base(&[("a", "1"), ("z", "0")]),
        &entries[..3],
        "a=refreshed",
    );
    assert_eq!(
        rebased.pending_operations.len(),
        1,
        "a rebase settles no act"
    );
    check(&base(&[("a", "1"), ("z", "0")]), &entries, "");
    let stale = [
        JournalEntry::Rebase { resources: vec![] },
        success(3, remove(new(2))),
    ];
    assert!(replay(&base(&[]), &stale).is_err());
}

#[test]
fn what_was_pending_before_stays_until_somebody_knows_better() {
    let mut base = base(&[("a", "1"), ("b", "2")]);
    for (kind, at) in [(OperationKind::Updating, 0), (OperationKind::Deleting, 1)] {
        let resource = Arc::clone(&base.resources[at]);
        base.pending_operations
            .push(PendingOperation { kind, resource });
    }
    let lost = resource("c", "");
    base.pending_operations.push(PendingOperation {
        kind: OperationKind::Creating,
        resource: Arc::clone(&lost),
    });
    let pending = |entries: &[JournalEntry]| {
        let pending = replay(&base, entries).unwrap().pending_operations;
        pending
            .iter()
            .map(|p| p.resource.urn.name().to_owned())
            .collect::<Vec<_>>()
            .join(" ")
    };
    let (a, c) = (resource("a", "1"), resource("c", "3"));
    let imported = [
        begin(1, OperationKind::Importing, &c),
        success(1, record(&c)),
    ];
    assert_eq!(pending(&imported), "a b", "somebody found the object");
    let same = success(1, supersede(StateRef::Base(0), &a));
    assert_eq!(
        pending(std::slice::from_ref(&same)),
        "a b c",
        "book-keeping answers nothing"
    );
    let updated = [
        begin(1, OperationKind::Updating, &a),
        success(1, supersede(StateRef::Base(0), &a)),
    ];
    assert_eq!(pending(&updated), "b c");
    let created = [
        begin(1, OperationKind::Creating, &c),
        success(1, record(&c)),
    ];
    assert_eq!(
        pending(&created),
        "a b c",
        "the earlier create may have made another object"
    );
    assert_eq!(pending(&[JournalEntry::ClearPending]), "");
}

#[test]
fn renamed_resources_take_everything_that_refers_to_them_along() {
    let parent_urn = |name: &str| Urn::new("dev", "shop", None, "my:mod:Old", name);
    let old_parent = ResourceState::new(parent_urn("p"), false);
    let child_urn = Urn::new("dev", "shop", Some("my:mod:Old"), "pkg:mod:Res", "c");
    let mut child = ResourceState::new(child_urn.clone(), true);
    child.parent = Some(old_parent.urn.clone());
    child.id = Some("1".to_owned());
    let mut user = ResourceState::new(urn("u"), false);
    user.dependencies = vec![child_urn.clone(), old_parent.urn.clone()];
    user.property_dependencies = [("k".to_owned(), vec![child_urn.clone()])].into();
    user.deleted_with = Some(child_urn);
    let resources = [old_parent.clone(), child, user].map(Arc::new).into();
    let base = Snapshot {
        resources,
        ..Snapshot::default()
    };
    let new_urn = Urn::new("dev", "shop", None, "my:mod:New", "p");
    let mut new_parent = ResourceState::new(new_urn.clone(), false);
    new_parent.aliases = vec![old_parent.urn];
    let done = replay(
        &base,
        &[success(
            1,
            supersede(StateRef::Base(0), &Arc::new(new_parent)),
        )],
    )
    .unwrap();
    let moved = Urn::new("dev", "shop", Some("my:mod:New"), "pkg:mod:Res", "c");
    assert_eq!(done.resources[1].urn, moved);
    assert_eq!(done.resources[1].parent, Some(new_urn.clone()));
    let user = &done.resources[2];
    assert_eq!(user.dependencies, [moved.clone(), new_urn]);
    assert_eq!(
        user.property_dependencies["k"],
        std::slice::from_ref(&moved)
    );
    assert_eq!(user.deleted_with, Some(moved));
    assert!(
        done.resources
            .iter()
            .all(|resource| resource.aliases.is_empty())
    );
    assert_eq!(verify(&done), []);
}

#[test]
fn an_alias_is_not_applied_to_a_resource_of_that_very_name() {
    let taken = resource("a", "2");
    let mut renamed = ResourceState::clone(&resource("b", "1"));
    renamed.aliases = vec![urn("a")];
    let entries = [
        success(1, supersede(StateRef::Base(0), &Arc::new(renamed))),
        success(2, record(&taken)),
    ];
    check(&base(&[("a", "1")]), &entries, "b=1 a=2");
}

#[test]
fn a_new_resource_that_needs_an_untouched_one_comes_after_it() {
    let mut needy = ResourceState::clone(&resource("n", "1"));
    needy.dependencies = vec![urn("b")];
    let base = base(&[("a", "1"), ("b", "2")]);
    let done = check(
        &base,
        &[success(1, record(&Arc::new(needy)))],
        "b=2 n=1 a=1",
    );
    assert_eq!(verify(&done), []);
}

#[test]
fn entries_that_do_not_fit_are_refused_with_their_position() {
    let a = resource("a", "1");
    let problem = |entries: &[JournalEntry]| replay(&base(&[("a", "1")]), entries).unwrap_err();
    assert_eq!(
        problem(&[
            success(1, JournalChange::default()),
            success(2, remove(StateRef::Base(7)))
        ]),
        ReplayError {
            entry: 1,
            problem: ReplayProblem::NoSuchResource {
                index: 7,
                resources: 1
            }
        }
    );
    let act = ActId(9);
    let marked = JournalChange {
        mark_delete: Some(new(9)),
        ..JournalChange::default()
    };
    assert_eq!(
        problem(&[success(1, marked)]).problem,
        ReplayProblem::NoSuchAct { act }
    );
    assert_eq!(
        problem(&[JournalEntry::Unknown {
            act,
            message: String::new()
        }])
        .problem,
        ReplayProblem::NeverBegun { act }
    );
    assert_eq!(
        problem(&[success(9, record(&a)), success(9, record(&a))]).problem,
        ReplayProblem::RecordedTwice { act }
    );
}

/// What one simulated act does with the resource at a position among those that exist.
#[derive(Clone, Debug)]
enum Act {
    Create {
        outcome: Outcome,
    },
    Update {
        at: prop::sample::Index,
        outcome: Outcome,
    },
    Delete {
        at: prop::sample::Index,
        outcome: Outcome,
    },
    Replace {
        at: prop::sample::Index,
    },
    Outputs {
        at: prop::sample::Index,
    },
}

#[derive(Clone, Copy, Debug)]
enum Outcome {
    Success,
    Failure,
    Unknown,
}

fn any_act() -> impl Strategy<Value = Act> {
    let outcome = || prop_oneof![4 => Just(Outcome::Success), 1 => Just(Outcome::Failure), 1 => Just(Outcome::Unknown)];
    let at = any::<prop::sample::Index>;
    prop_oneof![
        outcome().prop_map(|outcome| Act::Create { outcome }),
        (at(), outcome()).prop_map(|(at, outcome)| Act::Update { at, outcome }),
        (at(), outcome()).prop_map(|(at, outcome)| Act::Delete { at, outcome }),
        at().prop_map(|at| Act::Replace { at }),
        at().prop_map(|at| Act::Outputs { at }),
    ]
}

/// An engine that knows the truth: which objects exist, and which acts are open.
struct Simulation {
    known: Vec<(StateRef, Arc<ResourceState>)>,
    /// Replaced objects that wait for their delete.
    doomed: Vec<Arc<ResourceState>>,
    next_act: u64,
    entries: Vec<JournalEntry>,
    /// After each entry: ids that must be recorded, and how many acts are open.
    truth: Vec<(BTreeSet<String>, usize)>,
    open: usize,
}

impl Simulation {
    fn new(base: &Snapshot) -> Self {
        let known = base.resources.iter().enumerate();
        Self {
            known: known
                .map(|(index, r)| (StateRef::Base(index), Arc::clone(r)))
                .collect(),
            doomed: Vec::new(),
            next_act: 1,
            entries: Vec::new(),
            truth: Vec::new(),
            open: 0,
        }
    }

    fn act(&mut self) -> u64 {
        let act = self.next_act;
        self.next_act += 1;
        act
    }

    fn log(&mut self, entry: JournalEntry) {
        self.entries.push(entry);
        let known = self
            .known
            .iter()
            .map(|(_, resource)| resource)
            .chain(&self.doomed);
        let ids = known.filter_map(|resource| resource.id.clone()).collect();
        self.truth.push((ids, self.open));
    }

    fn begin(&mut self, kind: OperationKind, resource: &Arc<ResourceState>) -> u64 {
        let act = self.act();
        self.open += 1;
        self.log(begin(act, kind, resource));
        act
    }

    fn end(&mut self, act: u64, outcome: Outcome, success_change: JournalChange) {
        match outcome {
            Outcome::Success => {
                self.open -= 1;
                self.log(success(act, success_change));
            }
            Outcome::Failure => {
                self.open -= 1;
                self.log(JournalEntry::Failure {
                    act: ActId(act),
                    change: JournalChange::default(),
                });
            }
            Outcome::Unknown => {
                self.log(JournalEntry::Unknown {
                    act: ActId(act),
                    message: String::new(),
                });
            }
        }
    }

    fn run(&mut self, step: &Act) {
        match step {
            Act::Create { outcome } => {
                let made = resource(
                    &format!("n{}", self.next_act),
                    &format!("id{}", self.next_act),
                );
                let act = self.begin(OperationKind::Creating, &made);
                if matches!(outcome, Outcome::Success) {
                    self.known.push((new(act), Arc::clone(&made)));
                }
                self.end(act, *outcome, record(&made));
            }
            _ if self.known.is_empty() => {}
            Act::Update { at, outcome } => {
                let at = at.index(self.known.len());
                let (old, updated) = self.known[at].clone();
                let act = self.begin(OperationKind::Updating, &updated);
                if matches!(outcome, Outcome::Success) {
                    self.known[at].0 = new(act);
                }
                self.end(act, *outcome, supersede(old, &updated));
            }
            Act::Delete { at, outcome } => {
                let at = at.index(self.known.len());
                let (old, gone) = self.known[at].clone();
                let act = self.begin(OperationKind::Deleting, &gone);
                if matches!(outcome, Outcome::Success) {
                    self.known.remove(at);
                }
                self.end(act, *outcome, remove(old));
            }
            Act::Replace { at } => {
                let at = at.index(self.known.len());
                let (old, replaced) = self.known[at].clone();
                let made = resource(replaced.urn.name(), &format!("id{}", self.next_act));
                let act = self.begin(OperationKind::Creating, &made);
                self.known[at] = (new(act), Arc::clone(&made));
                self.doomed.push(replaced);
                self.end(
                    act,
                    Outcome::Success,
                    JournalChange {
                        mark_delete: Some(old),
                        ..record(&made)
                    },
                );
            }
            Act::Outputs { at } => {
                let at = at.index(self.known.len());
                let (old, same) = self.known[at].clone();
                let act = self.act();
                self.known[at].0 = new(act);
                self.log(success(act, supersede(old, &same)));
            }
        }
    }
}

proptest! {
    #[test]
    fn no_prefix_of_any_operation_loses_an_object(
        count in 0..4_usize,
        acts in prop::collection::vec(any_act(), 0..20),
    ) {
        let names: Vec<_> = (0..count).map(|at| format!("b{at}")).collect();
        let base = base(&names.iter().map(|name| (name.as_str(), name.as_str())).collect::<Vec<_>>());
        let mut simulation = Simulation::new(&base);
        acts.iter().for_each(|act| simulation.run(act));
        for (at, (ids, open)) in simulation.truth.iter().enumerate() {
            let snapshot = replay(&base, &simulation.entries[..=at]).unwrap();
            let recorded: BTreeSet<_> =
                snapshot.resources.iter().filter_map(|resource| resource.id.clone()).collect();
            prop_assert_eq!(&recorded, ids, "after entry {}", at);
            prop_assert_eq!(snapshot.pending_operations.len(), *open);
            prop_assert_eq!(verify(&snapshot), []);
        }
    }
}

#[test]
fn extensions_stay_as_long_as_something_belongs_to_them() {
    let belongs = |name: &str, to: &str| {
        let mut one = ResourceState::clone(&resource(name, "1"));
        one.extension_ref = Some(extension(to).reference());
        Arc::new(one)
    };
    let mut base = base(&[]);
    base.resources = vec![belongs("a", "old"), belongs("b", "gone")];
    for name in ["old", "gone", "never"] {
        let extension = extension(name);
        base.extensions
            .insert(extension.reference(), Arc::new(extension));
    }
    let told = |name: &str| JournalEntry::Extension {
        extension: Arc::new(extension(name)),
    };
    let made = belongs("c", "new");
    let entries = [
        told("new"),
        told("unused"),
        begin(1, OperationKind::Creating, &made),
        success(2, remove(StateRef::Base(1))),
    ];
    let replayed = replay(&base, &entries).unwrap();
    let mut names: Vec<_> = replayed
        .extensions
        .values()
        .map(|one| one.name.as_str())
        .collect();
    names.sort_unstable();
    // One that a create in flight belongs to is needed to look for what it made.
    assert_eq!(names, ["new", "old"]);
}
