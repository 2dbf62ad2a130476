//! Environments follow each other through gates: what must be known of one before the next one is
//! deployed.

use jiff::Timestamp;
use nimbus_core::{EnvironmentName, Error, ErrorCode, Result};
use nimbus_orchestrator::gate::{GateEvidence, GateItem, GateItemStatus};
use nimbus_orchestrator::{Manifest, RunResult, progress_of};

use crate::context::RunContext;
use crate::ports::{GateSignature, GateStore, RunClock, RunStore};
use crate::record::RunRequest;

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
        let evidence = self.evidence(manifest, environment).await?;
        Ok(manifest.gate(environment).status(&evidence))
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
        let gate = manifest.gate(environment);
        let items = gate.items.iter().filter(|one| one.can_be_signed());
        let known: Vec<&str> = items.map(|one| one.as_str()).collect();
        if !known.contains(&item) {
            let message = format!(
                "{item} cannot be recorded for {environment}; there are {}",
                known.join(", ")
            );
            return Err(Error::new(ErrorCode::USAGE, message));
        }
        self.gates.sign(environment, item, signature).await
    }

    /// What is known about an environment. A signature that is older than the last deploy counts for
    /// what was there before, so it does not count.
    async fn evidence(
        &self,
        manifest: &Manifest,
        environment: EnvironmentName,
    ) -> Result<GateEvidence> {
        let target = manifest.environments.get(&environment);
        let mut evidence = GateEvidence {
            enabled: target.is_some_and(|target| target.enabled),
            ..GateEvidence::default()
        };
        let mut since = String::new();
        if let Some(last) = self.runs.of_environment(environment).await?.first() {
            let progress = progress_of(&self.runs.events(last.run).await?);
            evidence.deployed = progress.result == Some(RunResult::Succeeded);
            evidence.checks = progress.checks;
            since.clone_from(&last.started);
            let ended = progress
                .ended_at
                .and_then(|at| at.parse::<Timestamp>().ok());
            let age = ended.map(|at| self.clock.now().duration_since(at).as_hours());
            // A clock that was set back gives nothing away.
            evidence.hours = age.and_then(|hours| u64::try_from(hours).ok()).unwrap_or(0);
        }
        let signed = self.gates.signatures(environment).await?;
        evidence.signed = signed
            .into_iter()
            // A window is agreed on before the deploy that it is for.
            .filter(|(item, one)| item == GateItem::Window.as_str() || one.at >= since)
            .map(|(item, one)| (item, format!("{} at {}: {}", one.user, one.at, one.note)))
            .collect();
        Ok(evidence)
    }
}

/// Whether the environment before this one is ready to be followed. Returns what is worth a warning.
pub(crate) async fn require(context: &RunContext, request: &RunRequest) -> Result<Vec<String>> {
    let (manifest, ports) = (&context.manifest, context.ports.as_ref());
    let Some(before) = manifest.promoted_from(context.environment) else {
        return Ok(Vec::new());
    };
    let enabled = manifest
        .environments
        .get(&before)
        .is_some_and(|e| e.enabled);
    if !enabled {
        return Ok(Vec::new());
    }
    let runs = ports.runs.of_environment(before).await?;
    let last = match runs.first() {
        Some(run) => progress_of(&ports.runs.events(run.run).await?).result,
        None => None,
    };
    if last == Some(RunResult::Succeeded) {
        return open_items(context, before).await;
    }
    let state = match last {
        Some(result) => format!("its last run {}", result.word().replace('_', " ")),
        None if runs.is_empty() => "it was never deployed".to_owned(),
        None => "its last run did not end".to_owned(),
    };
    let message = format!("{} comes after {before}, and {state}", context.environment);
    match (&request.choices.skip_gate, request.rehearsal) {
        (Some(reason), _) => Ok(vec![format!("{message}; gate skipped: {reason}")]),
        (None, true) => Ok(vec![message]),
        (None, false) => Err(
            Error::new(ErrorCode::GATE_CLOSED, message).with_help(format!(
                "deploy {before} first, or give --skip-gate REASON; it is recorded"
            )),
        ),
    }
}

/// What nobody has recorded of the environment before, as a warning.
async fn open_items(context: &RunContext, before: EnvironmentName) -> Result<Vec<String>> {
    let ports = context.ports.as_ref();
    let book = PromotionGates {
        runs: ports.runs.as_ref(),
        gates: ports.gates.as_ref(),
        clock: ports.clock.as_ref(),
    };
    let items = book.status(&context.manifest, before).await?;
    let open: Vec<String> = items
        .into_iter()
        .filter(|status| !status.done)
        .map(|status| format!("{} ({})", status.item.as_str(), status.note))
        .collect();
    if open.is_empty() {
        return Ok(Vec::new());
    }
    let open = open.join(", ");
    Ok(vec![format!("open in the gate of {before}: {open}")])
}
