//! A run by its number alone, wherever in a workspace it is recorded.
//!
//! Runs are counted within a deployment, and those of rehearsals apart, so that a number may be that
//! of several. One that can still go on is meant before those that are over.

use nimbus_core::{Error, ErrorCode, Result};
use nimbus_orchestrator::{RunId, RunResult, progress_of};
use nimbus_runs::RunRecord;
use nimbus_runs::ports::RunStore as _;
use nimbus_workspace::Workspace;

use crate::place::DeploymentPlace;
use crate::run_files::RunFiles;

struct RecordedRun {
    place: DeploymentPlace,
    record: RunRecord,
    open: bool,
}

/// Finds the run of this number. With `rehearsal` only rehearsals are meant.
///
/// # Errors
///
/// When there is none, or several could be meant.
pub async fn find_run(
    workspace: &Workspace,
    run: RunId,
    rehearsal: bool,
) -> Result<(DeploymentPlace, RunRecord)> {
    let mut found = Vec::new();
    for manifest in workspace.readable_deployments()? {
        for rehearsed in [false, true] {
            if rehearsal && !rehearsed {
                continue;
            }
            let id = manifest.metadata.id.as_str();
            let place = DeploymentPlace::find(workspace.clone(), id, rehearsed)?;
            let runs = RunFiles::new(&place.records);
            let record = match runs.find(run).await {
                Ok(record) => record,
                Err(error) if error.code() == ErrorCode::RUN_UNKNOWN => continue,
                Err(error) => return Err(error),
            };
            let result = progress_of(&runs.events(run).await?).result;
            let open = matches!(
                result,
                None | Some(RunResult::Interrupted | RunResult::Failed)
            );
            found.push(RecordedRun {
                place,
                record,
                open,
            });
        }
    }
    if found.iter().any(|one| one.open) {
        found.retain(|one| one.open);
    }
    let all: Vec<String> = found.iter().map(describe).collect();
    match (found.pop(), all.len()) {
        (Some(one), 1) => Ok((one.place, one.record)),
        (None, _) => {
            let message = format!("no deployment of this workspace has a run {run}");
            Err(Error::new(ErrorCode::RUN_UNKNOWN, message)
                .with_help("`nimbus status ID` names the runs of a deployment"))
        }
        (Some(one), _) => {
            let message = format!("{run} could be a run of {}", all.join(", "));
            let id = &one.place.deployment.manifest.metadata.id;
            let rehearse = if one.place.records.is_rehearsal() {
                " --rehearse"
            } else {
                ""
            };
            Err(Error::new(ErrorCode::USAGE, message).with_help(format!(
                "say which: nimbus resume {id} --run {run}{rehearse}"
            )))
        }
    }
}

fn describe(run: &RecordedRun) -> String {
    let id = &run.place.deployment.manifest.metadata.id;
    let environment = run.record.request.environment;
    if run.place.records.is_rehearsal() {
        format!("{id} {environment} (a rehearsal)")
    } else {
        format!("{id} {environment}")
    }
}
