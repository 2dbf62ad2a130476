//! `nimbus resume`: go on with a run that was interrupted, killed or stopped by a failure.
//!
//! The run's number is enough: what was asked for is recorded with it, and nothing of it is asked
//! again. A simulated cloud is the one that it was, without what was ordered to go wrong or to
//! be slow: whoever goes on has mended that, or orders it anew.

use std::sync::Arc;
use std::time::Duration;

use nimbus_core::{EnvironmentName, Result};
use nimbus_local::{DeploymentPlace, RunFiles, find_run};
use nimbus_orchestrator::RunId;
use nimbus_runs::ports::{LockHolder, RunStore as _};
use nimbus_runs::{EngineChoice, LockWait, ResumeRequest, RunRecord, resume as resume_run};

use super::runner::{LocalRunner, Waiting};
use super::{TraceArgs, USUAL_WAIT, duration};
use crate::commands::admin::ServerArgs;
use crate::commands::deployment::local::find_place;
use crate::commands::deployment::workspace;
use crate::commands::program::OrderArgs;
use crate::context::CommandContext;
use crate::exit::CommandOutcome;

#[derive(clap::Args, Debug)]
pub(crate) struct ResumeArgs {
    /// Run to go on with, such as R0012; or a deployment, whose newest run is meant
    #[arg(value_name = "RUN|DEPLOYMENT-ID")]
    pub(crate) id: String,
    /// Environment whose last run goes on, with a deployment
    #[arg(long, short, value_parser = super::super::environment)]
    pub(crate) environment: Option<EnvironmentName>,
    /// Run of the deployment, when its number alone is not clear
    #[arg(long = "run", value_name = "RUN")]
    pub(crate) number: Option<RunId>,
    /// A run of a rehearsal, when its number alone is not clear
    #[arg(long)]
    pub(crate) rehearse: bool,
    #[command(flatten)]
    pub(crate) orders: OrderArgs,
    /// Creates of unknown outcome were looked for in the cloud, in vain: make those resources again
    #[arg(long)]
    pub(crate) forget_creates: bool,
    /// Wait while another run changes the environment, such as 90s, 10m or 1h
    #[arg(long, value_name = "DURATION", num_args = 0..=1, default_missing_value = USUAL_WAIT,
          value_parser = duration)]
    pub(crate) wait: Option<Duration>,
    #[command(flatten)]
    pub(crate) trace: TraceArgs,
    /// Accepted for habit: nobody is asked
    #[arg(long, short, hide = true)]
    pub(crate) yes: bool,
    /// Accepted for habit: the recorded number of stacks at once holds
    #[arg(long, value_name = "N", hide = true)]
    pub(crate) parallel: Option<usize>,
    #[command(flatten)]
    pub(crate) remote: ServerArgs,
}

impl ResumeArgs {
    pub(crate) fn trace_file(&self) -> Option<&std::path::Path> {
        self.trace.file()
    }
}

pub(crate) async fn resume(args: ResumeArgs, context: &CommandContext) -> Result<CommandOutcome> {
    let (place, record) = find(&args, context).await?;
    let mut choices = record.request.choices.clone();
    let ordered = args.orders.choice(context)?;
    choices.rehearsal = if ordered.is_empty() {
        choices.rehearsal.without_faults()
    } else {
        ordered
    };
    let official = choices.engine == EngineChoice::Official;
    let environment = record.request.environment;
    let runner = LocalRunner::open(place, environment, choices, None, context)?;
    let command = runner.command("resume", context);
    let resumption = ResumeRequest {
        run: record.run,
        forget_creates: args.forget_creates,
    };
    let mut waiting = Waiting::new(context);
    let planned = {
        let mut told = |holder: &LockHolder, left| waiting.tell(holder, left);
        let wait = args.wait.map(|limit| LockWait {
            limit,
            waiting: &mut told,
        });
        resume_run(Arc::clone(&runner.ports), resumption, &command, wait).await
    };
    waiting.end();
    let planned = planned?;
    runner.rehearsal_note(context);
    runner.carry_out(planned, official, context).await
}

/// The run that is meant, and where it is recorded.
async fn find(args: &ResumeArgs, context: &CommandContext) -> Result<(DeploymentPlace, RunRecord)> {
    if let Ok(run) = args.id.parse::<RunId>() {
        return find_run(&workspace(context)?, run, args.rehearse).await;
    }
    let place = find_place(&args.id, args.rehearse, context)?;
    let runs = RunFiles::new(&place.records);
    let record = match (args.number, args.environment) {
        (Some(run), None) => runs.find(run).await?,
        (run, Some(environment)) => runs.pick(environment, run).await?,
        (None, None) => runs.newest().await?,
    };
    Ok((place, record))
}
