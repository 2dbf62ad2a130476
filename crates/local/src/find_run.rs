//! Which run somebody means: by its number alone, wherever in a workspace it is recorded, or the newest.
//!
//! Runs are counted within a deployment, and those of rehearsals apart, so that a number may be that
//! of several. One that can still go on is meant before those that are over.

use nimbus_core::{EnvironmentName, Error, ErrorCode, Result};
use nimbus_orchestrator::{RunId, RunResult, progress_of};
use nimbus_runs::RunRecord;
use nimbus_runs::ports::RunStore as _;
use nimbus_workspace::Workspace;

use crate::place::DeploymentPlace;
use crate::run_files::RunFiles;

/// A run where it is recorded.
pub struct RecordedRun {
    pub place: DeploymentPlace,
    pub record: RunRecord,
}

/// Which run somebody means.
#[derive(Clone, Copy, Debug)]
pub struct RunSelection<'a> {
    /// A run such as `R0012`, or a deployment.
    pub id: &'a str,
    /// With a deployment: the environment whose newest run is meant.
    pub environment: Option<EnvironmentName>,
    /// With a deployment: the run, when its number alone is not clear.
    pub number: Option<RunId>,
    pub rehearsal: bool,
}

impl RecordedRun {
    /// The run that is meant: by its number, or the newest of a deployment or of an environment.
    ///
    /// # Errors
    ///
    /// When there is none, or several could be meant.
    pub async fn find(workspace: Workspace, selection: RunSelection<'_>) -> Result<Self> {
        let RunSelection {
            id,
            environment,
            number,
            rehearsal,
        } = selection;
        if let Ok(run) = id.parse::<RunId>() {
            return by_number(&workspace, run, rehearsal).await;
        }
        let place = DeploymentPlace::find(workspace, id, rehearsal)?;
        let runs = RunFiles::new(&place.records);
        let record = match (number, environment) {
            (Some(run), None) => runs.find(run).await?,
            (run, Some(environment)) => runs.pick(environment, run).await?,
            (None, None) => runs.newest().await?,
        };
        Ok(Self { place, record })
    }
}

/// The run of this number. With `rehearsal` only rehearsals are meant.
async fn by_number(workspace: &Workspace, run: RunId, rehearsal: bool) -> Result<RecordedRun> {
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
            found.push((RecordedRun { place, record }, open));
        }
    }
    if found.iter().any(|(_, open)| *open) {
        found.retain(|(_, open)| *open);
    }
    let all: Vec<String> = found.iter().map(|(one, _)| describe(one)).collect();
    match (found.pop(), all.len()) {
        (Some((one, _)), 1) => Ok(one),
        (None, _) => {
            let message = format!("no deployment of this workspace has a run {run}");
            Err(Error::new(ErrorCode::RUN_UNKNOWN, message)
                .with_help("`nimbus run list` names the runs of all deployments"))
        }
        (Some((one, _)), _) => {
            let message = format!("{run} could be a run of {}", all.join(", "));
            let id = &one.place.deployment.manifest.metadata.id;
            let rehearse = if one.place.records.is_rehearsal() {
                " --rehearse"
            } else {
                ""
            };
            Err(Error::new(ErrorCode::USAGE, message).with_help(format!(
                "name the deployment in the same command: {id} --run {run}{rehearse}"
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
