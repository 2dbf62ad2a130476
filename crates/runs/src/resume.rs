//! Going on with a run that was interrupted, killed or stopped by a failure.
//!
//! What the record says was done stays done. What was under way is looked up before anything is done
//! again; the environment's lock and the units' leases keep two attempts apart. The request is the
//! recorded one: nothing of it is given again, so nothing of it can be forgotten.
//!
//! What a run was promised to be held to must not have moved: its sealed plan, its policy packs, and
//! its manifest, sealed or not. The code of programs may have: whoever goes on with a run that failed
//! has mended something, and an unsealed run never said what its programs would be.

use std::sync::Arc;

use nimbus_core::{Error, ErrorCode, Result};
use nimbus_orchestrator::{RunId, RunResult, progress_of};

use crate::lock_wait::{LockWait, take_environment};
use crate::manifest_parts::refuse_other_manifest;
use crate::ports::RunPorts;
use crate::record::RunRecord;
use crate::session::{PlannedRun, RunSession, load};
use crate::unit::Recovery;

/// Which run goes on.
#[derive(Clone, Copy, Debug)]
pub struct ResumeRequest {
    pub run: RunId,
    /// Creates of unknown outcome were looked for in the cloud, in vain.
    pub forget_creates: bool,
}

/// Takes the environment of a run and decides how it goes on.
///
/// # Errors
///
/// When the run is over, alive, or what it was promised to be held to has moved.
pub async fn resume(
    ports: Arc<RunPorts>,
    resumption: ResumeRequest,
    command: &str,
    wait: Option<LockWait<'_>>,
) -> Result<PlannedRun> {
    let environment = ports.runs.find(resumption.run).await?.request.environment;
    // A run that is alive holds the environment.
    let guard = take_environment(ports.locks.as_ref(), environment, command, wait).await?;
    // Read again under the lock: while one waited for it, the run may have ended.
    let record = ports.runs.find(resumption.run).await?;
    let progress = progress_of(&ports.runs.events(record.run).await?);
    refuse_over(&record, progress.result)?;
    refuse_followed(&ports, &record).await?;
    ports.deployment.follow().await?;
    let context = load(&ports, &record.request).await?;
    context.refuse_lost_states().await?;
    refuse_other_manifest(&record, &context)?;
    let session = RunSession {
        ports,
        request: record.request.clone(),
        guard,
        context,
    };
    let recovery = Recovery {
        look_up: true,
        forget_creates: resumption.forget_creates,
    };
    session
        .plan_resumption(record, progress.earlier, recovery)
        .await
}

/// A run that was interrupted or failed left something undone. One that succeeded or went back has
/// nothing left to do, and of one that is stuck a person has to make out what there is.
fn refuse_over(record: &RunRecord, result: Option<RunResult>) -> Result<()> {
    match result {
        None | Some(RunResult::Interrupted | RunResult::Failed) => Ok(()),
        Some(result) => {
            let word = result.word().replace('_', " ");
            let message = format!("run {} is over: {word}", record.run);
            Err(Error::new(ErrorCode::RUN_OVER, message)
                .with_help("start a new one with `nimbus deploy`; what did not change is skipped"))
        }
    }
}

/// A run that another one came after cannot go on: what it knows of the environment is no longer
/// true, and what it kept for going back is not what was there before.
async fn refuse_followed(ports: &RunPorts, record: &RunRecord) -> Result<()> {
    let runs = ports
        .runs
        .of_environment(record.request.environment)
        .await?;
    let Some(newer) = runs.iter().find(|one| one.run > record.run) else {
        return Ok(());
    };
    let message = format!("run {} came after run {}", newer.run, record.run);
    Err(Error::new(ErrorCode::RUN_OVER, message)
        .with_help("start a new one with `nimbus deploy`; what did not change is skipped"))
}
