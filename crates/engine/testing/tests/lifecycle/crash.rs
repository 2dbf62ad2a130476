//! Invariants under random programs, faults and crashes.
//!
//! A journal that stops answering is what a killed process looks like to the record: whatever was
//! appended is known, whatever was not is lost. After each run every object in the cloud must be
//! explained by a recorded resource or a pending operation, and nothing that the program still asks
//! for may have been deleted.

use std::collections::BTreeSet;

use nimbus_engine_model::{Snapshot, replay};
use nimbus_engine_ports::EngineEvent;
use nimbus_engine_testing::{CloudAct, Rig, RigRun, ScriptedProgram, ScriptedResource};
use proptest::prelude::*;

use crate::A;

#[derive(Clone, Debug)]
struct Case {
    first: Vec<Spec>,
    second: Vec<Spec>,
    create_fails: Vec<String>,
    create_unknown: Vec<String>,
    delete_fails: Vec<String>,
    dies_after: Option<usize>,
    parallel: usize,
}

#[derive(Clone, Debug)]
struct Spec {
    name: usize,
    value: u8,
    replace: u8,
    depends: Option<usize>,
    delete_first: bool,
}

fn spec() -> impl Strategy<Value = Spec> {
    (
        0..6_usize,
        0..3_u8,
        0..2_u8,
        proptest::option::of(0..6_usize),
        any::<bool>(),
    )
        .prop_map(|(name, value, replace, depends, delete_first)| Spec {
            name,
            value,
            replace,
            depends,
            delete_first,
        })
}

fn some_names() -> impl Strategy<Value = Vec<String>> {
    proptest::collection::vec((0..6_usize).prop_map(|n| format!("r{n}")), 0..2)
}

fn case() -> impl Strategy<Value = Case> {
    let programs = (
        proptest::collection::vec(spec(), 0..6),
        proptest::collection::vec(spec(), 0..6),
    );
    let faults = (some_names(), some_names(), some_names());
    (
        programs,
        faults,
        proptest::option::of(0..30_usize),
        1..4_usize,
    )
        .prop_map(
            |(
                (first, second),
                (create_fails, create_unknown, delete_fails),
                dies_after,
                parallel,
            )| {
                Case {
                    first,
                    second,
                    create_fails,
                    create_unknown,
                    delete_fails,
                    dies_after,
                    parallel,
                }
            },
        )
}

/// Each name once, dependencies only on what came before.
fn to_program(specs: &[Spec]) -> ScriptedProgram {
    let mut seen = BTreeSet::new();
    let mut resources = Vec::new();
    for spec in specs {
        if !seen.insert(spec.name) {
            continue;
        }
        let mut resource = ScriptedResource::custom(A, &format!("r{}", spec.name))
            .prop("foo", f64::from(spec.value))
            .prop("replace", f64::from(spec.replace));
        if spec.delete_first {
            resource = resource.option(|goal| goal.delete_before_replace = Some(true));
        }
        if let Some(on) = spec
            .depends
            .filter(|on| *on != spec.name && seen.contains(on))
        {
            resource = resource.from_output("dep", &format!("r{on}"), "computed");
        }
        resources.push(resource);
    }
    ScriptedProgram::new(resources)
}

/// Ids that a record explains: its resources and what is pending.
fn explained(snapshot: &Snapshot) -> (BTreeSet<String>, usize) {
    let ids = snapshot
        .resources
        .iter()
        .filter(|r| r.type_ == A)
        .filter_map(|r| r.id.clone());
    (ids.collect(), snapshot.pending_operations.len())
}

/// Whether everything that the program asked for was done; only then may the rest be deleted.
fn program_was_complete(run: &RigRun, wanted: &BTreeSet<String>) -> bool {
    let done: BTreeSet<&str> = run
        .events
        .iter()
        .filter_map(|event| match event {
            EngineEvent::ResourceOutputs { step, .. } => Some(step.urn.name()),
            _ => None,
        })
        .collect();
    wanted.iter().all(|name| done.contains(name.as_str()))
}

async fn check(case: Case) -> Result<(), TestCaseError> {
    let mut rig = Rig::new();
    rig.options.parallel = case.parallel;
    rig.up(&to_program(&case.first)).await;
    let base = rig.snapshot.clone();
    let before = rig.cloud.log().len();

    rig.fault(|faults| {
        faults.create_fails.clone_from(&case.create_fails);
        faults.create_unknown.clone_from(&case.create_unknown);
        faults.delete_fails.clone_from(&case.delete_fails);
    });
    rig.journal_dies_after(case.dies_after);
    let second = to_program(&case.second);
    let run = rig.up(&second).await;

    // What a later process reads is the journal, not the memory of the one that died.
    let recovered = replay(&base, &run.entries).map_err(|e| TestCaseError::fail(e.to_string()))?;
    if case.dies_after.is_none() {
        prop_assert_eq!(&recovered.resources, &run.outcome.snapshot.resources);
    }

    let (known, pending) = explained(&recovered);
    let unexplained: Vec<_> = rig
        .cloud
        .ids()
        .into_iter()
        .filter(|id| !known.contains(id))
        .collect();
    prop_assert!(
        unexplained.len() <= pending,
        "objects {:?} are neither recorded nor pending ({} pending)\n{}",
        unexplained,
        pending,
        nimbus_engine_testing::render_steps(&run)
    );

    let wanted: BTreeSet<_> = second
        .resources
        .iter()
        .map(|r| r.name().to_owned())
        .collect();
    let complete = program_was_complete(&run, &wanted);
    for act in &rig.cloud.log()[before..] {
        let CloudAct::Deleted { id } = act else {
            continue;
        };
        let Some(victim) = base.resources.iter().find(|r| r.id.as_ref() == Some(id)) else {
            continue;
        };
        // A dependant may have to go ahead of a delete-before-replace, wanted or not.
        let dragged_along = !victim.dependencies.is_empty();
        prop_assert!(
            wanted.contains(victim.urn.name()) || complete || victim.delete || dragged_along,
            "{} was deleted although the program never finished",
            victim.urn
        );
        if wanted.contains(victim.urn.name()) && run.succeeded() {
            let alive = recovered
                .resources
                .iter()
                .any(|r| r.urn == victim.urn && !r.delete && !r.pending_replacement);
            prop_assert!(alive, "{} is wanted and gone", victim.urn);
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn whatever_happens_every_object_is_recorded_or_pending(case in case()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(check(case))?;
    }
}
