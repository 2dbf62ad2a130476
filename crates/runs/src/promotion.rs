//! Environments follow each other through gates: what must be known of one before the next one is
//! deployed.

use std::collections::BTreeMap;

use jiff::Timestamp;
use nimbus_core::{EnvironmentName, Error, ErrorCode, Result};
use nimbus_orchestrator::gate::{GateEvidence, GateItem, GateItemStatus};
use nimbus_orchestrator::{Manifest, RunAction, RunEvent, RunResult, UnitState, progress_of};

use crate::context::RunContext;
use crate::ports::{GateSignature, GateStore, RunClock, RunStore};
use crate::record::{RunRecord, RunRequest};

/// The last run that changed an environment, or tried to.
#[derive(Clone, Debug)]
pub struct LastChange {
    pub action: RunAction,
    /// RFC 3339.
    pub started: String,
    pub events: Vec<RunEvent>,
}

/// Looks for it among runs, newest first. A deploy that skipped every stack left what people have said of the
/// environment as true as it was; only its checks are newer.
#[derive(Debug, Default)]
pub struct LastChangeSearch {
    found: Option<LastChange>,
}

impl LastChangeSearch {
    /// Takes the next older run. Whether one before it has to be looked at too.
    pub fn take(&mut self, mut older: LastChange) -> bool {
        let goes_on = changed_nothing(&older);
        if let Some(newer) = self.found.take() {
            let checks = newer.events.into_iter();
            let checks = checks.filter(|event| matches!(event, RunEvent::Check { .. }));
            older.events.extend(checks);
        }
        self.found = Some(older);
        goes_on
    }

    pub fn found(self) -> Option<LastChange> {
        self.found
    }
}

fn changed_nothing(run: &LastChange) -> bool {
    let progress = progress_of(&run.events);
    let mut units = progress.earlier.units.iter();
    run.action == RunAction::Deploy
        && progress.result == Some(RunResult::Succeeded)
        && units.all(|(_, state)| *state == UnitState::Skipped)
}

/// What is known of the gates of a deployment: from its runs, from people and from the clock.
#[derive(Clone, Copy)]
pub struct PromotionGates<'a> {
    pub runs: &'a dyn RunStore,
    pub gates: &'a dyn GateStore,
    pub clock: &'a dyn RunClock,
}

impl PromotionGates<'_> {
    /// How the gate of an environment stands, item by item.
    ///
    /// # Errors
    ///
    /// When a record is damaged or cannot be read.
    pub async fn status(
        &self,
        manifest: &Manifest,
        environment: EnvironmentName,
    ) -> Result<Vec<GateItemStatus>> {
        let runs = self.runs.of_environment(environment).await?;
        let mut search = LastChangeSearch::default();
        for run in runs.into_iter().filter(counts) {
            let older = LastChange {
                action: run.request.action,
                events: self.runs.events(run.run).await?,
                started: run.started,
            };
            if !search.take(older) {
                break;
            }
        }
        let last = search.found();
        let signatures = self.gates.signatures(environment).await?;
        let now = self.clock.now();
        Ok(gate_status(
            manifest,
            environment,
            last.as_ref(),
            signatures,
            now,
        ))
    }

    /// Records that somebody vouches for an item.
    ///
    /// # Errors
    ///
    /// When the gate has no such item, or nobody can vouch for it.
    pub async fn sign(
        &self,
        manifest: &Manifest,
        environment: EnvironmentName,
        item: &str,
        signature: GateSignature,
    ) -> Result<()> {
        require_signable(manifest, environment, item)?;
        self.gates.sign(environment, item, signature).await
    }
}

/// How the gate of an environment stands, from what is recorded of it. A signature that is older than the last deploy
/// counts for what was there before, so it does not count.
pub fn gate_status(
    manifest: &Manifest,
    environment: EnvironmentName,
    last: Option<&LastChange>,
    signatures: BTreeMap<String, GateSignature>,
    now: Timestamp,
) -> Vec<GateItemStatus> {
    let target = manifest.environments.get(&environment);
    let mut evidence = GateEvidence {
        enabled: target.is_some_and(|target| target.enabled),
        ..GateEvidence::default()
    };
    let mut since = "";
    if let Some(last) = last {
        let progress = progress_of(&last.events);
        evidence.deployed =
            progress.result == Some(RunResult::Succeeded) && leaves_something(last.action);
        evidence.checks = progress.checks;
        since = last.started.as_str();
        let ended = progress
            .ended_at
            .and_then(|at| at.parse::<Timestamp>().ok());
        let age = ended.map(|at| now.duration_since(at).as_hours());
        // A clock that was set back gives nothing away.
        evidence.hours = age.and_then(|hours| u64::try_from(hours).ok()).unwrap_or(0);
    }
    evidence.signed = signatures
        .into_iter()
        // A window is agreed on before the deploy that it is for.
        .filter(|(item, one)| item == GateItem::Window.as_str() || not_before(&one.at, since))
        .map(|(item, one)| {
            let words = match one.note.is_empty() {
                true => format!("{} at {}", one.user, one.at),
                false => format!("{} at {}: {}", one.user, one.at, one.note),
            };
            (item, words)
        })
        .collect();
    manifest.gate(environment).status(&evidence)
}

/// Refuses what nobody can vouch for in the gate of an environment.
///
/// # Errors
///
/// When the gate has no such item, or it is known without anybody's word.
pub fn require_signable(
    manifest: &Manifest,
    environment: EnvironmentName,
    item: &str,
) -> Result<()> {
    let gate = manifest.gate(environment);
    let items = gate.items.iter().filter(|one| one.can_be_signed());
    let known: Vec<&str> = items.map(|one| one.as_str()).collect();
    if known.contains(&item) {
        return Ok(());
    }
    let message = format!(
        "{item} cannot be recorded for {environment}; there are {}",
        known.join(", ")
    );
    Err(Error::new(ErrorCode::USAGE, message))
}

/// Whether one time is in the same second as another or later. Texts with and without fractions of a
/// second do not compare as texts.
fn not_before(at: &str, since: &str) -> bool {
    match (at.parse::<Timestamp>(), since.parse::<Timestamp>()) {
        (Ok(at), Ok(since)) => at.as_second() >= since.as_second(),
        _ => at >= since,
    }
}

/// Whether a run says something about what an environment is. A look at it does not.
pub fn changes_environment(action: RunAction) -> bool {
    !matches!(action, RunAction::Preview | RunAction::Refresh)
}

fn counts(run: &RunRecord) -> bool {
    changes_environment(run.request.action)
}

/// Whether a run that succeeded left something to be followed: what was destroyed is not there.
fn leaves_something(action: RunAction) -> bool {
    action != RunAction::Destroy
}

/// Whether the environment before this one is ready to be followed. Returns what is worth a warning.
///
/// A gate decides: what is open in it stops a run, of a rehearsal too, and an environment that is
/// switched off has an open gate.
pub(crate) async fn require(context: &RunContext, request: &RunRequest) -> Result<Vec<String>> {
    let Some(before) = context.manifest.promoted_from(context.environment) else {
        return Ok(Vec::new());
    };
    let target = context.manifest.environments.get(&before);
    let enabled = target.is_some_and(|target| target.enabled);
    let (message, next) = match undeployed(context, before, enabled).await? {
        Some(state) => {
            let message = format!("{} comes after {before}, and {state}", context.environment);
            let next = match enabled {
                true => format!("deploy {before} first"),
                false => {
                    format!("enable {before} and deploy it first, or take it out of the manifest")
                }
            };
            (message, next)
        }
        None => {
            let items = open_items(context, before).await?;
            let Some(first) = items.first() else {
                return Ok(Vec::new());
            };
            let (id, item) = (context.id(), first.item.as_str());
            let rehearse = if request.rehearsal { " --rehearse" } else { "" };
            let next = match first.item.can_be_signed() {
                true => format!(
                    "record what is done with `nimbus gate {id} --environment {before}{rehearse} \
                     --pass {item} --note TEXT`"
                ),
                false => format!("see `nimbus gate {id} --environment {before}{rehearse}`"),
            };
            let open: Vec<_> = items
                .iter()
                .map(|status| format!("{} ({})", status.item.as_str(), status.note))
                .collect();
            let message = format!("open in the gate of {before}: {}", open.join(", "));
            (message, next)
        }
    };
    match &request.choices.skip_gate {
        Some(reason) => Ok(vec![format!("{message}; gate skipped: {reason}")]),
        None => Err(
            Error::new(ErrorCode::GATE_CLOSED, message).with_help(format!(
                "{next}, or give --skip-gate REASON; it is recorded"
            )),
        ),
    }
}

/// Why an environment cannot be followed yet, whatever its gate asks for.
async fn undeployed(
    context: &RunContext,
    before: EnvironmentName,
    enabled: bool,
) -> Result<Option<String>> {
    if !enabled {
        return Ok(Some("it is not enabled".to_owned()));
    }
    let runs = &context.ports.runs;
    let all = runs.of_environment(before).await?;
    let Some(last) = all.iter().find(|run| counts(run)) else {
        return Ok(Some("it was never deployed".to_owned()));
    };
    Ok(match progress_of(&runs.events(last.run).await?).result {
        Some(RunResult::Succeeded) if leaves_something(last.request.action) => None,
        Some(RunResult::Succeeded) => Some("it was destroyed".to_owned()),
        Some(result) => Some(format!("its last run {}", result.word().replace('_', " "))),
        None => Some("its last run did not end".to_owned()),
    })
}

/// What nobody has recorded of the environment before.
async fn open_items(context: &RunContext, before: EnvironmentName) -> Result<Vec<GateItemStatus>> {
    let ports = context.ports.as_ref();
    let promotion = PromotionGates {
        runs: ports.runs.as_ref(),
        gates: ports.gates.as_ref(),
        clock: ports.clock.as_ref(),
    };
    let mut items = promotion.status(&context.manifest, before).await?;
    items.retain(|status| !status.done);
    Ok(items)
}

#[cfg(test)]
mod tests {
    use nimbus_orchestrator::{CheckStatus, RunStatus};

    use super::*;

    fn run(started: &str, states: &[&str], check: Option<CheckStatus>) -> LastChange {
        let at = started.to_owned();
        let id = "R0001".parse().unwrap();
        let units = states.iter().enumerate().map(|(number, status)| {
            serde_json::from_value(serde_json::json!({
                "event": "unit", "at": at, "unit": format!("u{number}"), "status": status
            }))
            .unwrap()
        });
        let ended = RunEvent::Run {
            at: at.clone(),
            run: id,
            status: RunStatus::Ended,
            result: Some(RunResult::Succeeded),
            message: None,
            trigger: None,
            version: None,
            warnings: Vec::new(),
        };
        let check = check.map(|status| RunEvent::Check {
            at: at.clone(),
            check: "smoke-tests".to_owned(),
            status,
            message: None,
            seconds: None,
        });
        LastChange {
            action: RunAction::Deploy,
            started: at.clone(),
            events: units.chain(check).chain([ended]).collect(),
        }
    }

    #[test]
    fn a_deploy_that_skipped_everything_is_no_change() {
        let mut search = LastChangeSearch::default();
        let nightly = run(
            "2026-01-03T00:00:00Z",
            &["skipped", "skipped"],
            Some(CheckStatus::Passed),
        );
        assert!(search.take(nightly));
        assert!(!search.take(run("2026-01-01T00:00:00Z", &["succeeded", "skipped"], None)));
        let found = search.found().unwrap();
        assert_eq!(found.started, "2026-01-01T00:00:00Z");
        let progress = progress_of(&found.events);
        assert_eq!(progress.ended_at.as_deref(), Some("2026-01-01T00:00:00Z"));
        assert_eq!(progress.checks["smoke-tests"], CheckStatus::Passed);
        // Where nothing ever changed, as after an adoption, the first deploy is what there is.
        let mut search = LastChangeSearch::default();
        assert!(search.take(run("2026-01-02T00:00:00Z", &["skipped"], None)));
        assert!(search.take(run("2026-01-01T00:00:00Z", &["skipped"], None)));
        assert_eq!(search.found().unwrap().started, "2026-01-01T00:00:00Z");
    }
}
