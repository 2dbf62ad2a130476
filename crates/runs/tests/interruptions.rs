//! Interrupted at any write and gone on with, a run ends as if it had never been interrupted: over
//! every policy, every failure and every crash point.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use std::collections::BTreeMap;
use std::sync::Arc;

use nimbus_core::{EnvironmentName, Error};
use nimbus_orchestrator::{
    OnFailure, RollbackTrigger, RunAction, RunId, RunResult, UnitState, progress_of,
};
use nimbus_runs::{
    EventBus, FinishedRun, ResumeRequest, RunChoices, RunRequest, RunSession, resume,
};
use nimbus_runs_testing::{Crash, RecordedWorld, UnitFault};
use tokio_util::sync::CancellationToken;

const DEV: EnvironmentName = EnvironmentName::DEV;

/// `app` needs `network`, `extra` needs nothing, `edge` needs `app`.
fn world() -> RecordedWorld {
    let manifest = "apiVersion: nimbus/v1\nkind: DeploymentManifest\nmetadata: {deploymentId: D1, \
        organization: o, project: p, template: t}\nspec:\n  environments: {dev: {enabled: true, \
        account: '111111111111', region: eu-west-1}}\n  stacks:\n    network: {enabled: true, \
        config: {dev: {size: 1}}}\n    app: {enabled: true, config: {dev: {net: \
        '{{RUNTIME:network:out}}'}}}\n    edge: {enabled: true, config: {dev: {app: \
        '{{RUNTIME:app:out}}'}}}\n    extra: {enabled: true}\n";
    let programs = ["network", "app", "edge", "extra"].map(|name| (name, "v1"));
    RecordedWorld::with_manifest(manifest, &programs)
}

fn request(action: RunAction, on_failure: OnFailure, to_version: Option<u32>) -> RunRequest {
    RunRequest {
        action,
        deployment: "D1".to_owned(),
        environment: DEV,
        rehearsal: false,
        user: "ann".to_owned(),
        host: "here".to_owned(),
        choices: RunChoices {
            on_failure,
            to_version,
            parallel: 1,
            ..RunChoices::default()
        },
        manifest: String::new(),
        plan: String::new(),
    }
}

/// Runs until it ends or the process does.
async fn start(world: &RecordedWorld, request: RunRequest, crash: &Crash) -> Option<FinishedRun> {
    let bus = Arc::new(EventBus::default());
    let ports = Arc::new(world.ports(crash));
    let work = Box::pin(async {
        let session = RunSession::open(ports, request, "test", None).await?;
        session
            .plan()
            .await?
            .carry_out(bus, CancellationToken::new())
            .await
    });
    ended(work, crash).await
}

async fn go_on(world: &RecordedWorld, run: RunId, crash: &Crash) -> Option<FinishedRun> {
    let bus = Arc::new(EventBus::default());
    let ports = Arc::new(world.ports(crash));
    let resumption = ResumeRequest {
        run,
        forget_creates: false,
    };
    let work = Box::pin(async {
        let planned = resume(ports, resumption, "test", None).await?;
        planned.carry_out(bus, CancellationToken::new()).await
    });
    ended(work, crash).await
}

async fn ended(
    work: impl Future<Output = Result<FinishedRun, Error>>,
    crash: &Crash,
) -> Option<FinishedRun> {
    tokio::select! {
        biased;
        () = crash.happened() => None,
        finished = work => Some(finished.unwrap()),
    }
}

/// What is left when everything is over, without what may differ: numbers of attempts and of states.
#[derive(Debug, PartialEq)]
struct Ending {
    result: Option<RunResult>,
    trigger: Option<RollbackTrigger>,
    units: BTreeMap<String, UnitState>,
    resources: BTreeMap<String, BTreeMap<String, String>>,
    good: BTreeMap<String, bool>,
    versions: Vec<BTreeMap<String, BTreeMap<String, String>>>,
}

fn ending(world: &RecordedWorld) -> Ending {
    let contents = world.contents();
    let (_, (_, events)) = contents.runs.last_key_value().unwrap();
    let progress = progress_of(events);
    let trigger = events.iter().rev().find_map(|event| match event {
        nimbus_orchestrator::RunEvent::Run { trigger, .. } => *trigger,
        _ => None,
    });
    let state_of = |name: &str, number: usize| {
        let unit = &contents.units[&nimbus_core::UnitName::new(&"D1".parse().unwrap(), name, DEV)];
        unit.history[number - 1].clone()
    };
    let versions = contents.versions.get(&DEV).cloned().unwrap_or_default();
    Ending {
        result: progress.result,
        trigger,
        units: progress
            .earlier
            .units
            .iter()
            // Why something was not started is told in other words after an interruption.
            .map(|(name, state)| match state {
                UnitState::NotStarted { .. } => (
                    name.to_string(),
                    UnitState::NotStarted {
                        because: String::new(),
                    },
                ),
                state => (name.to_string(), state.clone()),
            })
            .collect(),
        resources: contents
            .units
            .iter()
            .filter(|(_, unit)| !unit.resources.is_empty())
            .map(|(name, unit)| (name.to_string(), unit.resources.clone()))
            .collect(),
        good: contents
            .memories
            .iter()
            .filter_map(|((_, name), memory)| {
                Some((name.to_string(), memory.last_run.as_ref()?.succeeded))
            })
            .collect(),
        versions: versions
            .iter()
            .map(|version| {
                let units = version.units.iter();
                units
                    .map(|(name, unit)| (name.to_string(), state_of(name, unit.state)))
                    .collect()
            })
            .collect(),
    }
}

/// Interrupts a run at every write, goes on with it, and compares the ends.
async fn interrupted_everywhere(start_from: &RecordedWorld, request: &RunRequest, what: &str) {
    let whole = start_from.fork();
    let counted = Crash::never();
    start(&whole, request.clone(), &counted).await.unwrap();
    let expected = ending(&whole);
    let before = start_from.contents().runs.len();
    for number in 0..counted.writes() {
        let world = start_from.fork();
        let crash = Crash::before_write(number);
        if start(&world, request.clone(), &crash).await.is_some() {
            // The writes after the end of the run are not the run's.
            continue;
        }
        let runs = world.contents().runs;
        let finished = if runs.len() == before {
            start(&world, request.clone(), &Crash::never()).await
        } else {
            let (run, (_, events)) = runs.last_key_value().unwrap();
            if progress_of(events).result.is_some() {
                continue;
            }
            go_on(&world, *run, &Crash::never()).await
        };
        assert!(finished.is_some());
        assert_eq!(
            ending(&world),
            expected,
            "{what}, crash before write {number}"
        );
    }
}

const POLICIES: [OnFailure; 4] = [
    OnFailure::Automatic,
    OnFailure::Rollback,
    OnFailure::Hold,
    OnFailure::Continue,
];

fn faults() -> Vec<(String, BTreeMap<&'static str, UnitFault>)> {
    let mut all = vec![("nothing fails".to_owned(), BTreeMap::new())];
    for name in ["network", "app", "edge", "extra"] {
        for trigger in [None, Some(RollbackTrigger::Creation)] {
            for stuck in [None, Some("network"), Some("app")] {
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

fn with_faults(world: &RecordedWorld, faults: &BTreeMap<&'static str, UnitFault>) {
    world.change(|contents| {
        for (name, fault) in faults {
            contents.faults.insert(name.parse().unwrap(), *fault);
        }
    });
}

#[tokio::test]
async fn a_first_deploy_ends_the_same_wherever_it_was_interrupted() {
    for policy in POLICIES {
        for (what, faults) in faults() {
            let world = world();
            with_faults(&world, &faults);
            let request = request(RunAction::Deploy, policy, None);
            interrupted_everywhere(&world, &request, &format!("{policy:?}: {what}")).await;
        }
    }
}

/// Deployed once, with another program since.
async fn deployed_and_changed() -> RecordedWorld {
    let world = world();
    let first = request(RunAction::Deploy, OnFailure::Hold, None);
    start(&world, first, &Crash::never()).await.unwrap();
    world.change(|contents| {
        for code in contents.programs.values_mut() {
            *code = "v2".to_owned();
        }
    });
    world
}

#[tokio::test]
async fn an_update_ends_the_same_wherever_it_was_interrupted() {
    let deployed = deployed_and_changed().await;
    for policy in POLICIES {
        for (what, faults) in faults() {
            let world = deployed.fork();
            with_faults(&world, &faults);
            let request = request(RunAction::Deploy, policy, None);
            interrupted_everywhere(&world, &request, &format!("{policy:?}: {what}")).await;
        }
    }
}

#[tokio::test]
async fn a_destroy_and_a_rollback_end_the_same_wherever_they_were_interrupted() {
    let world = deployed_and_changed().await;
    let second = request(RunAction::Deploy, OnFailure::Hold, None);
    start(&world, second, &Crash::never()).await.unwrap();
    let destroy = request(RunAction::Destroy, OnFailure::Hold, None);
    interrupted_everywhere(&world, &destroy, "destroy").await;
    let rollback = request(RunAction::Rollback, OnFailure::Hold, Some(1));
    interrupted_everywhere(&world, &rollback, "rollback").await;
}

#[tokio::test]
async fn a_run_that_goes_on_is_held_to_its_sealed_plan() {
    let world = deployed_and_changed().await;
    let bus = Arc::new(EventBus::default());
    let ports = Arc::new(world.ports(&Crash::never()));
    let preview = nimbus_runs::PreviewRequest {
        environment: DEV,
        rehearsal: false,
        components: None,
        parallel: 1,
    };
    let stop = CancellationToken::new();
    let previewed = nimbus_runs::preview(ports, &preview, bus, stop, |_| {}).await;
    let mut sealed = request(RunAction::Deploy, OnFailure::Hold, None);
    sealed.choices.sealed_plan = previewed.unwrap().sealed;
    assert!(sealed.choices.sealed_plan.is_some());
    let counted = Crash::never();
    start(&world.fork(), sealed.clone(), &counted)
        .await
        .unwrap();
    let mut refused = 0;
    for number in 0..counted.writes() {
        let world = world.fork();
        let crash = Crash::before_write(number);
        let finished = start(&world, sealed.clone(), &crash).await;
        let run = world.contents().runs.last_key_value().map(|(run, _)| *run);
        let (None, Some(run)) = (finished, run.filter(|run| *run == RunId(2))) else {
            continue;
        };
        // Somebody edits a program meanwhile.
        world.change(|contents| {
            contents
                .programs
                .insert("edge".parse().unwrap(), "v3".to_owned());
        });
        let ports = Arc::new(world.ports(&Crash::never()));
        let resumption = ResumeRequest {
            run,
            forget_creates: false,
        };
        let done = progress_of(&world.contents().runs[&run].1);
        let edge_done = done
            .earlier
            .units
            .iter()
            .any(|(name, state)| *name == "edge" && state.is_done());
        let planned = resume(ports, resumption, "test", None).await;
        let over = done.result.is_some();
        assert_eq!(planned.is_err(), !edge_done || over, "write {number}");
        refused += usize::from(!edge_done && !over);
    }
    assert!(refused > 10, "{refused}");
}
