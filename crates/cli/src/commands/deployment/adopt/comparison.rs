//! What was adopted beside what its programs want: a preview of every environment that has states.

use std::sync::Arc;

use nimbus_core::{DeploymentId, EnvironmentName, Error, ErrorCode, Result};
use nimbus_local::{Adopted, DeploymentPlace};
use nimbus_orchestrator::{RunResult, UnitState};
use nimbus_runs::{PreviewReport, PreviewRequest, preview};
use nimbus_workspace::Workspace;

use crate::commands::deployment::local::EngineRunArgs;
use crate::commands::deployment::run::LocalRunner;
use crate::context::CommandContext;
use crate::exit::CommandOutcome;

/// What came of comparing the environments that have states.
#[derive(Default)]
pub(super) struct AdoptionComparison {
    pub(super) same: Vec<EnvironmentName>,
    /// What would change, and the first environment that it would change in.
    differences: Vec<String>,
    different: Option<EnvironmentName>,
    /// Why an environment could not be compared, and the first one of those.
    pub(super) failures: Vec<String>,
    failed: Option<EnvironmentName>,
}

impl AdoptionComparison {
    pub(super) fn outcome(self, id: &DeploymentId) -> Result<CommandOutcome> {
        let undo = format!("`nimbus adopt --undo {id}` takes the adoption back");
        if let Some(environment) = self.different {
            let differences = self.differences.join("; ");
            let message =
                format!("a preview of what was adopted would change something: {differences}");
            return Err(Error::new(ErrorCode::ADOPTION_DIFFERS, message).with_help(format!(
                "look at it with `nimbus preview {id} --environment {environment} --diff`; was the project changed \
                 since it was deployed? {undo}"
            )));
        }
        if let Some(environment) = self.failed {
            let failures = self.failures.join("; ");
            let message = format!("what was adopted could not be compared: {failures}");
            return Err(Error::new(ErrorCode::ADOPTION_UNVERIFIED, message).with_help(format!(
                "put that right, packages are installed in the project as ever; then `nimbus preview {id} --environment \
                 {environment} --expect-no-changes` compares; {undo}"
            )));
        }
        Ok(CommandOutcome::Done)
    }

    fn add(&mut self, environment: EnvironmentName, report: &PreviewReport) {
        let before = (self.differences.len(), self.failures.len());
        for (component, unit) in &report.units {
            if let UnitState::Failed { message } = &unit.state {
                let message = message.lines().next().unwrap_or_default();
                let message = nimbus_telemetry::redact(message);
                let said = format!("{component} in {environment}: {message}");
                self.failures.push(said);
            }
            let changed = unit.changes.iter().filter(|(op, _)| *op != "same");
            let changed: Vec<_> = changed.map(|(op, count)| format!("{count} {op}")).collect();
            if !changed.is_empty() {
                let changed = changed.join(", ");
                self.differences
                    .push(format!("{component} in {environment}: {changed}"));
            }
        }
        let failed = report.result != RunResult::Succeeded;
        if failed && self.failures.len() == before.1 {
            let word = report.result.word();
            self.failures
                .push(format!("the preview of {environment} {word}"));
        }
        if failed {
            self.failed.get_or_insert(environment);
        } else if self.differences.len() > before.0 {
            self.different.get_or_insert(environment);
        } else {
            self.same.push(environment);
        }
    }
}

/// Previews every environment that has states. Nothing is written into the projects, not even packages.
pub(super) async fn compare(
    no_typecheck: bool,
    adopted: &Adopted,
    workspace: Workspace,
    id: &DeploymentId,
    context: &CommandContext,
) -> Result<AdoptionComparison> {
    let mut compared = AdoptionComparison::default();
    for environment in &adopted.with_state {
        let place = DeploymentPlace::find(workspace.clone(), id.as_str(), false)?;
        let choices = EngineRunArgs::plain(no_typecheck).choices(context)?;
        let engine = choices.engine;
        let runner = LocalRunner::open_untouching(place, *environment, choices, context)?;
        let request = PreviewRequest {
            environment: *environment,
            rehearsal: false,
            components: None,
            parallel: 4,
            engine,
        };
        context.output.note(&format!(
            "Comparing {environment} with what its programs want"
        ));
        let signals = runner.listen_to_signals();
        let report = preview(
            Arc::clone(&runner.ports),
            &request,
            Arc::clone(&runner.bus),
            runner.cancellation.stop_token().clone(),
            |_| {},
        )
        .await;
        drop(signals);
        match report {
            Ok(report) => compared.add(*environment, &report),
            // The adoption is done by now, and is reported with what came of the comparison.
            Err(error) => {
                compared.failures.push(format!("{environment}: {error}"));
                compared.failed.get_or_insert(*environment);
            }
        }
    }
    Ok(compared)
}
