//! `nimbus resume`: go on with a run that was interrupted, killed or stopped by a failure.
//!
//! The run's number is enough: what was asked for is recorded with it, and nothing of it is asked
//! again. A simulated cloud is the one that it was, without what was ordered to go wrong or to
//! be slow: whoever goes on has mended that, or orders it anew.

use std::sync::Arc;
use std::time::Duration;

use nimbus_core::{EnvironmentName, Error, ErrorCode, Result};
use nimbus_local::{RecordedRun, RunSelection};
use nimbus_orchestrator::RunId;
use nimbus_runs::ports::LockHolder;
use nimbus_runs::{EngineChoice, LockWait, ResumeRequest, resume as resume_run};

use super::runner::{LocalRunner, Waiting};
use super::{TraceArgs, USUAL_WAIT, duration};
use crate::commands::admin::ServerArgs;
use crate::commands::deployment::workspace;
use crate::commands::program::{OrderArgs, sandbox_settings};
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
    let selection = RunSelection {
        id: &args.id,
        environment: args.environment,
        number: args.number,
        rehearsal: args.rehearse,
    };
    let RecordedRun { place, record } = RecordedRun::find(workspace(context)?, selection).await?;
    let mut choices = record.request.choices.clone();
    refuse_recorded_backend(choices.backend.as_deref(), context)?;
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

/// A record lies in the workspace. A stranger's does not say where states are: the operator says so again.
fn refuse_recorded_backend(recorded: Option<&str>, context: &CommandContext) -> Result<()> {
    let strict = sandbox_settings(context)?.is_some_and(|sandbox| sandbox.is_strict());
    let Some(recorded) = recorded.filter(|_| strict) else {
        return Ok(());
    };
    if std::env::var("PULUMI_BACKEND_URL").is_ok_and(|named| named == recorded) {
        return Ok(());
    }
    let message =
        "the record of the run says where its states are, and the workspace is a stranger's";
    Err(Error::new(ErrorCode::TENANT_BACKEND, message)
        .with_help("set PULUMI_BACKEND_URL to the address that the run was started with"))
}
