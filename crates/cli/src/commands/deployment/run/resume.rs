//! `nimbus resume`: go on with a run that was interrupted, killed or stopped by a failure.
//!
//! The run's number is enough: what was asked for is recorded with it. Only what a simulated cloud is
//! told to do is given anew.

use std::sync::Arc;
use std::time::Duration;

use nimbus_core::{EnvironmentName, Result};
use nimbus_local::RunFiles;
use nimbus_orchestrator::RunId;
use nimbus_runs::ports::{LockHolder, RunStore as _};
use nimbus_runs::{EngineChoice, LockWait, ResumeRequest, resume as resume_run};

use super::runner::{LocalRunner, Waiting};
use super::{USUAL_WAIT, duration};
use crate::commands::deployment::local::{EngineRunArgs, find_place};
use crate::context::CommandContext;
use crate::exit::CommandOutcome;

#[derive(clap::Args, Debug)]
pub(crate) struct ResumeArgs {
    /// Deployment
    #[arg(value_name = "DEPLOYMENT-ID")]
    id: String,
    /// Environment whose last run goes on; that of the newest run when left out
    #[arg(long, short, value_parser = super::super::environment)]
    environment: Option<EnvironmentName>,
    /// Run to go on with, such as R0012; the environment's last one when left out
    #[arg(long = "run", value_name = "RUN")]
    number: Option<RunId>,
    /// Creates of unknown outcome were looked for in the cloud, in vain: make those resources again
    #[arg(long)]
    forget_creates: bool,
    /// Wait while another run changes the environment, such as 90s, 10m or 1h
    #[arg(long, value_name = "DURATION", num_args = 0..=1, default_missing_value = USUAL_WAIT,
          value_parser = duration)]
    wait: Option<Duration>,
    #[command(flatten)]
    how: EngineRunArgs,
    /// Accepted for habit: nobody is asked
    #[arg(long, short, hide = true)]
    yes: bool,
    /// Accepted for habit: the recorded number of stacks at once holds
    #[arg(long, value_name = "N", hide = true)]
    parallel: Option<usize>,
}

pub(crate) async fn resume(args: ResumeArgs, context: &CommandContext) -> Result<CommandOutcome> {
    let place = find_place(&args.id, args.how.rehearse, context)?;
    let runs = RunFiles::new(&place.records);
    let record = match (args.number, args.environment) {
        (Some(run), None) => runs.find(run).await?,
        (run, Some(environment)) => runs.pick(environment, run).await?,
        (None, None) => runs.newest().await?,
    };
    let request = &record.request;
    let choices = request.choices.clone();
    let official = choices.engine == EngineChoice::Official;
    let environment = request.environment;
    let runner = LocalRunner::open(place, environment, choices, &args.how, None, context)?;
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
