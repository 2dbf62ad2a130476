//! F12 to F14, for every unit of a run: its work delivered twice, an error in it, and an error in undoing it.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

mod shared;

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use nimbus_core::Result;
use nimbus_orchestrator::{LookupValue, OnFailure, RunAction, RunResult, UnitState};
use nimbus_runs::ports::UnitEngine;
use nimbus_runs::{
    EventBus, FinishedRun, RestorePoint, RunRequest, RunSession, UnitAddress, UnitFailure, UnitJob,
    UnitOperation, UnitReport,
};
use nimbus_runs_testing::{Crash, RecordedWorld, UnitFault};
use tokio_util::sync::CancellationToken;

use crate::shared::{DEV, ending, request, start, world};

/// Does everything twice, as whoever delivers at least once may.
struct TwiceEngine(Box<dyn UnitEngine>);

#[async_trait]
impl UnitEngine for TwiceEngine {
    async fn run(&self, job: &UnitJob) -> Result<UnitReport, UnitFailure> {
        let first = self.0.run(job).await;
        let second = self.0.run(job).await;
        assert_eq!(first.is_ok(), second.is_ok(), "{:?}", job.unit);
        second
    }

    async fn outputs(&self, unit: &UnitAddress) -> Result<Option<BTreeMap<String, LookupValue>>> {
        self.0.outputs(unit).await
    }

    async fn state_version(&self, unit: &UnitAddress) -> Result<Option<String>> {
        self.0.state_version(unit).await
    }

    async fn history_length(&self, unit: &UnitAddress) -> Result<usize> {
        self.0.history_length(unit).await
    }

    fn versions(&self) -> BTreeMap<String, String> {
        self.0.versions()
    }
}

async fn carried_out(world: &RecordedWorld, request: RunRequest, twice: bool) -> FinishedRun {
    let mut ports = world.ports(&Crash::never());
    if twice {
        ports.engine = Box::new(TwiceEngine(ports.engine));
    }
    let bus = Arc::new(EventBus::default());
    let session = RunSession::open(Arc::new(ports), request, "test", None).await;
    let planned = session.unwrap().plan().await.unwrap();
    planned
        .carry_out(bus, CancellationToken::new())
        .await
        .unwrap()
}

/// In the order in which they are deployed.
const UNITS: [&str; 4] = ["network", "app", "edge", "extra"];

/// Deployed once, with other programs since.
async fn changed_since() -> RecordedWorld {
    let world = world();
    let first = request(RunAction::Deploy, OnFailure::Hold, None);
    start(&world, first, &Crash::never()).await.unwrap();
    world.change(|contents| {
        for code in contents.programs.values_mut() {
            *code = "v2".to_owned();
        }
        contents.jobs.clear();
    });
    world
}

fn failing(world: &RecordedWorld, name: &str, fault: UnitFault) {
    world.change(|contents| contents.faults.insert(name.parse().unwrap(), fault));
}

fn component(job: &UnitJob) -> String {
    job.unit.component.to_string()
}

/// F12: every unit's work is delivered twice, in every kind of run, with and without failures.
#[tokio::test]
async fn work_that_is_delivered_twice_leaves_what_once_leaves() {
    let deployed = changed_since().await;
    let actions = [
        (RunAction::Deploy, None),
        (RunAction::Destroy, None),
        (RunAction::Rollback, Some(1)),
    ];
    for (action, to_version) in actions {
        for policy in [OnFailure::Hold, OnFailure::Rollback, OnFailure::Continue] {
            for failed in UNITS.map(Some).into_iter().chain([None]) {
                let start_from = deployed.fork();
                if let Some(name) = failed {
                    let fault = UnitFault {
                        deploy: true,
                        destroy: true,
                        ..UnitFault::default()
                    };
                    failing(&start_from, name, fault);
                }
                let asked = request(action, policy, to_version);
                let (once, twice) = (start_from.fork(), start_from.fork());
                carried_out(&once, asked.clone(), false).await;
                carried_out(&twice, asked, true).await;
                let what = format!("{action:?} {policy:?}, {failed:?} fails");
                assert_eq!(ending(&twice), ending(&once), "{what}");
                let doubled = twice.contents().jobs.len();
                assert_eq!(doubled, once.contents().jobs.len() * 2, "{what}");
            }
        }
    }
}

/// F13: an error in each unit. It is that unit that failed; what was done before is undone in reverse; nothing
/// is held any more, and the next run is free to begin.
#[tokio::test]
async fn an_error_in_any_unit_is_told_of_that_unit_and_undone_in_reverse() {
    for name in UNITS {
        let world = changed_since().await;
        let before = world.contents().units;
        let fault = UnitFault {
            deploy: true,
            ..UnitFault::default()
        };
        failing(&world, name, fault);
        let asked = request(RunAction::Deploy, OnFailure::Rollback, None);
        let finished = carried_out(&world, asked, false).await;
        assert_eq!(finished.result, RunResult::RolledBack, "{name}");
        let contents = world.contents();
        let tried: Vec<String> = contents
            .jobs
            .iter()
            .filter(|job| job.operation == UnitOperation::Deploy)
            .map(component)
            .collect();
        assert_eq!(tried.last().unwrap(), name, "nothing begins after it");
        let undone: Vec<String> = contents
            .jobs
            .iter()
            .filter(|job| {
                let point = RestorePoint::BeforeRun(finished.record.run);
                job.operation == UnitOperation::Restore(point)
            })
            .map(component)
            .collect();
        let reversed: Vec<String> = tried.iter().rev().cloned().collect();
        assert_eq!(undone, reversed, "{name}");
        for (unit, recorded) in &contents.units {
            assert_eq!(recorded.resources, before[unit].resources, "{name}: {unit}");
        }
        assert!(contents.locked.is_empty(), "{name}: nothing is held");
        assert!(!contents.locked.contains(&DEV));
        // The same deploy works as soon as its cause is gone.
        world.change(|contents| contents.faults.clear());
        let again = request(RunAction::Deploy, OnFailure::Rollback, None);
        let finished = carried_out(&world, again, false).await;
        assert_eq!(finished.result, RunResult::Succeeded, "after {name}");
    }
}

/// F14: and what cannot be undone is not said to be undone.
#[tokio::test]
async fn what_cannot_be_undone_needs_attention_and_is_listed() {
    for failed in UNITS {
        for stuck in UNITS {
            let world = changed_since().await;
            let fault = UnitFault {
                deploy: true,
                ..UnitFault::default()
            };
            failing(&world, failed, fault);
            let stays = UnitFault {
                deploy: failed == stuck,
                rollback: true,
                ..UnitFault::default()
            };
            failing(&world, stuck, stays);
            let asked = request(RunAction::Deploy, OnFailure::Rollback, None);
            let finished = carried_out(&world, asked, false).await;
            let contents = world.contents();
            let touched = contents.jobs.iter().any(|job| {
                component(job) == stuck && matches!(job.operation, UnitOperation::Restore(_))
            });
            let what = format!("{failed} fails, {stuck} stays");
            assert!(contents.locked.is_empty(), "{what}");
            let ending = ending(&world);
            if !touched {
                // It had not begun when the other failed.
                assert_eq!(finished.result, RunResult::RolledBack, "{what}");
                assert!(finished.attention.is_empty(), "{what}");
                continue;
            }
            assert_eq!(finished.result, RunResult::NeedsAttention, "{what}");
            let named = finished.attention.iter().any(|line| line.contains(stuck));
            assert!(named, "{what}: {:?}", finished.attention);
            let state = &ending.units[stuck];
            assert!(
                matches!(state, UnitState::Stuck { .. }),
                "{what}: {state:?}"
            );
            // Others are undone all the same, but for what the stuck one needs: that is left and listed too.
            for (name, state) in &ending.units {
                let undone = matches!(
                    state,
                    UnitState::RolledBack | UnitState::NotStarted { .. } | UnitState::Skipped
                );
                let left = matches!(state, UnitState::Stuck { message } if message.contains(stuck));
                let listed = finished
                    .attention
                    .iter()
                    .any(|line| line.contains(name.as_str()));
                let told = name == stuck || (left && listed);
                assert!(undone || told, "{what}: {name} is {state:?}");
            }
        }
    }
}
