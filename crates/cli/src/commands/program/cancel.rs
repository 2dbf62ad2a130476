//! `nimbus program cancel`: ask the operation that is running on a stack to stop.
//!
//! The process that holds the stack gets what Ctrl-C would send it: running steps end and are
//! recorded. With `--kill` it is asked twice, and what is running becomes unknown.

use nimbus_core::{Error, ErrorCode, Result, printable_line};
use nimbus_engine_backend::{EnvironmentVariables, Owner};
use nimbus_engine_operations::StackAccess;
use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use schemars::JsonSchema;
use serde::Serialize;

use super::args::LocationArgs;
use crate::context::CommandContext;
use crate::exit::CommandOutcome;
use crate::output::Report;
use crate::style::Terminal;

#[derive(clap::Args, Debug)]
pub(crate) struct ProgramCancelArgs {
    #[command(flatten)]
    location: LocationArgs,

    /// Do not wait for running steps; their outcome will be unknown
    #[arg(long)]
    kill: bool,
}

pub(crate) async fn run(
    args: ProgramCancelArgs,
    context: &CommandContext,
) -> Result<CommandOutcome> {
    let location = args.location.location(context)?;
    let access = StackAccess::open(
        &location,
        &EnvironmentVariables::process(),
        &context.key_services()?,
    )
    .await?;
    let Some(holder) = access.stack().holder().await? else {
        let message = format!("no operation is running on {}", access.name);
        return Err(Error::new(ErrorCode::NOTHING_RUNNING, message));
    };
    ask_to_stop(&holder.owner, "the stack", Signal::SIGINT)?;
    if args.kill {
        // Another signal, because two of the same that come together count as one.
        ask_to_stop(&holder.owner, "the stack", Signal::SIGTERM)?;
    }
    context.output.result(&CancelReport {
        stack: access.name.to_string(),
        holder: holder.owner.to_string(),
        pid: holder.owner.pid,
        killed: args.kill,
    })?;
    Ok(CommandOutcome::Done)
}

/// Sends a signal to whoever holds something, if that is a process of this machine and ours.
pub(crate) fn ask_to_stop(owner: &Owner, held: &str, signal: Signal) -> Result<()> {
    let unreachable = |why: &str| {
        let message = format!("{owner} holds {held}, {why}");
        Error::new(ErrorCode::RUNNING_ELSEWHERE, message).with_help(
            "stop it where it runs; if that machine is gone, `nimbus state unlock` frees a stack \
             and `nimbus unlock` an environment",
        )
    };
    if !owner.is_running_here() {
        return Err(unreachable("and cannot be seen from this machine"));
    }
    let pid = i32::try_from(owner.pid).map(Pid::from_raw);
    let Ok(pid) = pid else {
        return Err(unreachable("under a process number that makes no sense"));
    };
    match kill(pid, signal) {
        Ok(()) => Ok(()),
        Err(Errno::EPERM) => Err(unreachable("as another user")),
        Err(Errno::ESRCH) => {
            let message = format!("{owner} held {held} and has ended");
            Err(Error::new(ErrorCode::NOTHING_RUNNING, message))
        }
        Err(error) => Err(unreachable(&format!("and cannot be asked: {error}"))),
    }
}

#[derive(JsonSchema, Serialize)]
pub(crate) struct CancelReport {
    /// `organization/<project>/<stack>`.
    stack: String,
    /// Who was asked to stop.
    holder: String,
    pid: u32,
    /// Whether running steps were not waited for.
    killed: bool,
}

impl Report for CancelReport {
    const SCHEMA: &'static str = "nimbus/program-cancel/1";

    fn text(&self, _: Terminal) -> String {
        let how = if self.killed {
            "was told to stop at once"
        } else {
            "was asked to stop; running steps end first"
        };
        // Who holds it is said by a file.
        format!("{} {how}\n", printable_line(&self.holder))
    }
}
