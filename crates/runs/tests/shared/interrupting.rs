//! Interrupting runs at every write, by the end of their process or by somebody who asks them to stop, and
//! what may go wrong in them besides.

use std::collections::BTreeMap;
use std::sync::Arc;

use nimbus_core::ComponentName;
use nimbus_orchestrator::{OnFailure, RollbackTrigger, RunAction, RunId, RunResult, progress_of};
use nimbus_runs::{EventBus, RunRequest};
use nimbus_runs_testing::{Crash, RecordedWorld, UnitFault};
use tokio_util::sync::CancellationToken;

use super::{DEV, Ending, ending, go_on, request, start, world};

/// With the full numbers of `docs/reliability.md`.
fn is_long() -> bool {
    std::env::var_os("NIMBUS_TEST_LONG").is_some()
}

/// Of what costs a run of its own for every write: every write, or every fourth in the short form. Which ones
/// differs from case to case, so that even the short form comes to all of them.
fn some_writes(writes: usize, what: &str) -> impl Iterator<Item = usize> {
    let every = if is_long() { 1 } else { 4 };
    let first = what.bytes().map(usize::from).sum::<usize>() % every;
    (first..writes).step_by(every)
}

/// Interrupts a run at every write, goes on with it, and compares the ends.
pub(crate) async fn interrupted_everywhere(
    start_from: &RecordedWorld,
    request: &RunRequest,
    what: &str,
) {
    interrupted(start_from, request, what, false).await;
}

/// What a run left that was interrupted.
pub(crate) enum LeftRun {
    /// Not even its record.
    Nothing,
    UnderWay(RunId),
    /// Its end was recorded, and what it wrote after that is not the run's.
    Over,
}

impl LeftRun {
    /// Of a run that came after so many others.
    pub(crate) fn of(world: &RecordedWorld, before: usize) -> Self {
        world.read(|contents| match contents.runs.last_key_value() {
            Some((run, (_, events))) if contents.runs.len() > before => {
                match progress_of(events).result {
                    Some(_) => Self::Over,
                    None => Self::UnderWay(*run),
                }
            }
            Some(_) | None => Self::Nothing,
        })
    }
}

/// Every write of a run that nobody interrupts, with what a process leaves that ends there; and how the run ends.
pub(crate) async fn every_crash(
    start_from: &RecordedWorld,
    request: &RunRequest,
) -> (Vec<RecordedWorld>, Ending) {
    let whole = start_from.fork();
    let watch = Crash::watching(&whole);
    start(&whole, request.clone(), &watch).await.unwrap();
    (watch.left_worlds(), ending(&whole))
}

/// With `again`, whoever goes on is interrupted too: at every write of the second attempt, or at every fourth in the
/// short form.
pub(crate) async fn interrupted(
    start_from: &RecordedWorld,
    request: &RunRequest,
    what: &str,
    again: bool,
) {
    let before = start_from.read(|contents| contents.runs.len());
    let (worlds, expected) = every_crash(start_from, request).await;
    let mut gone_on = 0;
    for (number, world) in worlds.into_iter().enumerate() {
        let finished = match LeftRun::of(&world, before) {
            LeftRun::Nothing => start(&world, request.clone(), &Crash::never()).await,
            LeftRun::Over => continue,
            LeftRun::UnderWay(run) => {
                gone_on += 1;
                if again {
                    interrupted_again(&world, run, &expected, &format!("{what}, {number}")).await;
                }
                go_on(&world, run, &Crash::never()).await
            }
        };
        assert!(finished.is_some());
        assert_eq!(
            ending(&world),
            expected,
            "{what}, crash before write {number}"
        );
    }
    assert!(gone_on > 0, "{what}: no run was interrupted");
}

async fn interrupted_again(left: &RecordedWorld, run: RunId, expected: &Ending, what: &str) {
    let whole = left.fork();
    let watch = Crash::watching(&whole);
    go_on(&whole, run, &watch).await.unwrap();
    let worlds = watch.left_worlds();
    for number in some_writes(worlds.len(), what) {
        let world = &worlds[number];
        if !matches!(LeftRun::of(world, 0), LeftRun::UnderWay(_)) {
            continue;
        }
        go_on(world, run, &Crash::never()).await.unwrap();
        assert_eq!(ending(world), *expected, "{what}, then before {number}");
    }
}

/// Asks a run to stop at every write, or at every fourth in the short form, goes on with it if it did, and compares
/// the ends. A unit that is stopped half way fails, and what fails because of that is no failure of the run.
pub(crate) async fn stopped_everywhere(
    start_from: &RecordedWorld,
    request: &RunRequest,
    what: &str,
) {
    let whole = start_from.fork();
    let counted = Crash::never();
    start(&whole, request.clone(), &counted).await.unwrap();
    let expected = ending(&whole);
    let mut stopped = 0;
    for number in some_writes(counted.writes(), what) {
        let world = start_from.fork();
        let stop = Crash::stop_before_write(number);
        let finished = start(&world, request.clone(), &stop).await.unwrap();
        if finished.result == RunResult::Interrupted {
            stopped += 1;
            let run = finished.record.run;
            go_on(&world, run, &Crash::never()).await.unwrap();
        }
        assert_eq!(
            ending(&world),
            expected,
            "{what}, stop before write {number}"
        );
    }
    assert!(stopped > 0, "{what}: no run was stopped");
}

pub(crate) const POLICIES: [OnFailure; 4] = [
    OnFailure::Automatic,
    OnFailure::Rollback,
    OnFailure::Hold,
    OnFailure::Continue,
];

/// What goes wrong in a case, and its name.
pub(crate) type FaultCase = (String, BTreeMap<&'static str, UnitFault>);

/// What may go wrong under a policy. The short form leaves out what comes to the same: whether a unit can be returned
/// to where it was is asked only by runs that undo their work.
pub(crate) fn faults_under(policy: OnFailure) -> Vec<FaultCase> {
    let mut all = faults();
    if !is_long() {
        all.retain(|(_, faults)| {
            let is_stuck = faults.values().any(|fault| fault.rollback);
            !is_stuck || undoes(policy, faults)
        });
    }
    all
}

fn undoes(policy: OnFailure, faults: &BTreeMap<&'static str, UnitFault>) -> bool {
    match policy {
        OnFailure::Rollback => true,
        OnFailure::Automatic => faults.values().any(|fault| fault.trigger.is_some()),
        OnFailure::Hold | OnFailure::Continue => false,
    }
}

fn faults() -> Vec<FaultCase> {
    let mut all = vec![("nothing fails".to_owned(), BTreeMap::new())];
    for name in ["network", "app", "edge", "extra"] {
        for trigger in [
            None,
            Some(RollbackTrigger::Creation),
            Some(RollbackTrigger::ServiceLimit),
            Some(RollbackTrigger::StateCorruption),
        ] {
            for stuck in [None, Some("network"), Some("app")] {
                let usual = matches!(trigger, None | Some(RollbackTrigger::Creation));
                if !usual && (stuck.is_some() || name != "app") {
                    // Which trigger it was changes nothing but what is told.
                    continue;
                }
                let mut faults = BTreeMap::new();
                if let Some(stuck) = stuck {
                    let fault = UnitFault {
                        rollback: true,
                        ..UnitFault::default()
                    };
                    faults.insert(stuck, fault);
                }
                let fault = faults.entry(name).or_default();
                fault.deploy = true;
                fault.trigger = trigger;
                all.push((format!("{name} fails {trigger:?}, stuck {stuck:?}"), faults));
            }
        }
    }
    all
}

pub(crate) fn with_faults(world: &RecordedWorld, faults: &BTreeMap<&'static str, UnitFault>) {
    world.change(|contents| {
        for (name, fault) in faults {
            contents.faults.insert(name.parse().unwrap(), *fault);
        }
    });
}

/// Deployed once, with another program since.
pub(crate) async fn deployed_and_changed() -> RecordedWorld {
    changed_since_deployed(world()).await
}

pub(crate) async fn changed_since_deployed(world: RecordedWorld) -> RecordedWorld {
    let first = request(RunAction::Deploy, OnFailure::Hold, None);
    start(&world, first, &Crash::never()).await.unwrap();
    world.change(|contents| {
        for code in contents.programs.values_mut() {
            *code = "v2".to_owned();
        }
    });
    world
}

/// Deployed once; somebody has changed a resource of one unit by hand since, and removed one of another.
pub(crate) async fn drifted() -> RecordedWorld {
    let world = world();
    let first = request(RunAction::Deploy, OnFailure::Hold, None);
    start(&world, first, &Crash::never()).await.unwrap();
    world.change(|contents| {
        for (name, unit) in &contents.units {
            let mut found = unit.resources.clone();
            match name.as_str() {
                "D1-network-dev" => {
                    found.insert("first".to_owned(), "changed by hand".to_owned());
                }
                "D1-app-dev" => drop(found.remove("second")),
                _ => continue,
            }
            contents.drifted.insert(name.clone(), found);
        }
    });
    world
}

/// A deploy of what a preview showed and nothing else.
pub(crate) async fn sealed_request(world: &RecordedWorld, policy: OnFailure) -> RunRequest {
    sealed_for(world, policy, None).await
}

/// Of chosen units only, if there are any.
pub(crate) async fn sealed_for(
    world: &RecordedWorld,
    policy: OnFailure,
    chosen: Option<Vec<ComponentName>>,
) -> RunRequest {
    let bus = Arc::new(EventBus::default());
    let ports = Arc::new(world.ports(&Crash::never()));
    let preview = nimbus_runs::PreviewRequest {
        environment: DEV,
        rehearsal: false,
        components: chosen.clone(),
        parallel: 1,
        engine: nimbus_runs::EngineChoice::Embedded,
    };
    let stop = CancellationToken::new();
    let previewed = nimbus_runs::preview(ports, &preview, bus, stop, |_| {}).await;
    let mut sealed = request(RunAction::Deploy, policy, None);
    sealed.choices.components = chosen;
    sealed.choices.sealed_plan = previewed.unwrap().sealed;
    assert!(sealed.choices.sealed_plan.is_some());
    sealed
}

pub(crate) fn ending_resources(
    world: &RecordedWorld,
) -> BTreeMap<String, BTreeMap<String, String>> {
    let contents = world.contents();
    let units = contents.units.iter();
    let there = units.filter(|(_, unit)| !unit.resources.is_empty());
    there
        .map(|(name, unit)| (name.to_string(), unit.resources.clone()))
        .collect()
}
