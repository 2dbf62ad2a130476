//! A deployment of four units in memory, runs of it, and what is left when they are over.
#![allow(
    dead_code,
    clippy::unwrap_used,
    reason = "helpers of tests fail like tests, and not every test needs all of them"
)]

pub(crate) mod interrupting;

use std::collections::BTreeMap;
use std::sync::Arc;

use nimbus_core::{ComponentName, EnvironmentName, Error, UnitName};
use nimbus_orchestrator::{
    CheckStatus, LastOutcome, OnFailure, RollbackTrigger, RunAction, RunId, RunResult, UnitState,
    progress_of,
};
use nimbus_runs::{
    EventBus, FinishedRun, ResumeRequest, RunChoices, RunRequest, RunSession, resume,
};
use nimbus_runs_testing::{Crash, RecordedWorld, WorldContents};

pub(crate) const DEV: EnvironmentName = EnvironmentName::DEV;

/// `app` needs `network`, `extra` needs nothing, `edge` needs `app`.
pub(crate) fn world() -> RecordedWorld {
    world_with_checks("{}")
}

/// The same, with commands that say whether what was deployed works.
pub(crate) fn world_with_checks(checks: &str) -> RecordedWorld {
    let manifest = format!(
        "apiVersion: nimbus/v1\nkind: DeploymentManifest\nmetadata: {{deploymentId: D1, \
        organization: o, project: p, template: t}}\nspec:\n  environments: {{dev: {{enabled: true, \
        account: '111111111111', region: eu-west-1, checks: {checks}}}}}\n  stacks:\n    network: \
        {{enabled: true, config: {{dev: {{size: 1}}}}}}\n    app: {{enabled: true, config: {{dev: \
        {{net: '{{{{RUNTIME:network:out}}}}'}}}}}}\n    edge: {{enabled: true, config: {{dev: {{app: \
        '{{{{RUNTIME:app:out}}}}'}}}}}}\n    extra: {{enabled: true}}\n"
    );
    let programs = ["network", "app", "edge", "extra"].map(|name| (name, "v1"));
    RecordedWorld::with_manifest(&manifest, &programs)
}

pub(crate) fn request(
    action: RunAction,
    on_failure: OnFailure,
    to_version: Option<u32>,
) -> RunRequest {
    RunRequest {
        action,
        deployment: "D1".parse().unwrap(),
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
        manifest_parts: BTreeMap::new(),
        plan: String::new(),
    }
}

/// Runs until it ends or the process does.
pub(crate) async fn start(
    world: &RecordedWorld,
    request: RunRequest,
    crash: &Crash,
) -> Option<FinishedRun> {
    let bus = Arc::new(EventBus::default());
    let ports = Arc::new(world.ports(crash));
    let work = Box::pin(async {
        let session = RunSession::open(ports, request, "test", None).await?;
        session
            .plan()
            .await?
            .carry_out(bus, crash.stop_token())
            .await
    });
    ended(work, crash).await
}

pub(crate) async fn go_on(world: &RecordedWorld, run: RunId, crash: &Crash) -> Option<FinishedRun> {
    let bus = Arc::new(EventBus::default());
    let ports = Arc::new(world.ports(crash));
    let resumption = ResumeRequest {
        run,
        forget_creates: false,
    };
    let work = Box::pin(async {
        let planned = resume(ports, resumption, "test", None).await?;
        planned.carry_out(bus, crash.stop_token()).await
    });
    ended(work, crash).await
}

pub(crate) async fn ended(
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
pub(crate) struct Ending {
    pub(crate) result: Option<RunResult>,
    pub(crate) trigger: Option<RollbackTrigger>,
    pub(crate) units: BTreeMap<String, UnitState>,
    pub(crate) checks: BTreeMap<String, CheckStatus>,
    pub(crate) resources: BTreeMap<String, BTreeMap<String, String>>,
    pub(crate) outcomes: BTreeMap<String, LastOutcome>,
    pub(crate) versions: Vec<BTreeMap<String, BTreeMap<String, String>>>,
}

pub(crate) fn ending(world: &RecordedWorld) -> Ending {
    world.read(ending_of)
}

fn ending_of(contents: &WorldContents) -> Ending {
    let (_, (_, events)) = contents.runs.last_key_value().unwrap();
    let progress = progress_of(events);
    let trigger = events.iter().rev().find_map(|event| match event {
        nimbus_orchestrator::RunEvent::Run { trigger, .. } => *trigger,
        _ => None,
    });
    let state_of = |name: &ComponentName, number: usize| {
        let unit = &contents.units[&UnitName::new(&"D1".parse().unwrap(), name, DEV)];
        unit.history[number - 1].clone()
    };
    let versions = contents.versions.get(&DEV).cloned().unwrap_or_default();
    Ending {
        result: progress.result,
        trigger,
        checks: progress.checks.clone(),
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
        outcomes: contents
            .memories
            .iter()
            .filter_map(|((_, name), memory)| {
                Some((name.to_string(), memory.last_run.as_ref()?.outcome))
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
