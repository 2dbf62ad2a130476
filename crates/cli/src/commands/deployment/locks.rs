//! `nimbus locks` and `nimbus unlock`: who is changing an environment, and ending what is left of
//! somebody who is gone.

use jiff::Timestamp;
use nimbus_core::{EnvironmentName, Result, printable_line};
use nimbus_local::{EnvironmentLockFiles, RecordedHolder};
use schemars::JsonSchema;
use serde::Serialize;

use super::local::find_place;
use crate::commands::program::confirm;
use crate::context::CommandContext;
use crate::exit::CommandOutcome;
use crate::output::Report;
use crate::style::Terminal;

#[derive(clap::Args, Debug)]
pub(crate) struct ListLocksArgs {
    /// Deployment
    #[arg(value_name = "DEPLOYMENT-ID")]
    id: String,
    /// Locks of rehearsals instead
    #[arg(long)]
    rehearse: bool,
}

#[derive(clap::Args, Debug)]
pub(crate) struct UnlockArgs {
    #[command(flatten)]
    list: ListLocksArgs,
    /// Environment, such as dev
    #[arg(long, short, value_parser = super::environment)]
    environment: EnvironmentName,
    /// Do it without asking
    #[arg(long, short)]
    yes: bool,
}

pub(crate) async fn list(args: ListLocksArgs, context: &CommandContext) -> Result<CommandOutcome> {
    let place = find_place(&args.id, args.rehearse, context)?;
    let locks = EnvironmentLockFiles::new(&place.records);
    let mut shown = Vec::new();
    for environment in place.environments(None) {
        if let Some(held) = locks.holder(environment)? {
            shown.push(ShownLock::new(environment, &held));
        }
    }
    context.output.result(&LocksReport { locks: shown })?;
    Ok(CommandOutcome::Done)
}

pub(crate) async fn unlock(args: UnlockArgs, context: &CommandContext) -> Result<CommandOutcome> {
    let place = find_place(&args.list.id, args.list.rehearse, context)?;
    let locks = EnvironmentLockFiles::new(&place.records);
    if !args.yes
        && let Some(held) = locks.holder(args.environment)?
    {
        let question = format!("End the lock of {}?", held.record.owner);
        confirm(context, &question).await?;
    }
    let former = locks.unlock(args.environment)?;
    let former = former.map(|held| ShownLock::new(args.environment, &held));
    context.output.result(&UnlockedReport {
        environment: args.environment.to_string(),
        former,
    })?;
    Ok(CommandOutcome::Done)
}

#[derive(JsonSchema, Serialize)]
pub(crate) struct LocksReport {
    locks: Vec<ShownLock>,
}

#[derive(JsonSchema, Serialize)]
pub(crate) struct UnlockedReport {
    environment: String,
    /// Who held it.
    former: Option<ShownLock>,
}

#[derive(JsonSchema, Serialize)]
struct ShownLock {
    environment: String,
    user: String,
    host: String,
    process: u32,
    command: String,
    run: Option<String>,
    since: String,
    /// How long it has been held.
    age_seconds: u64,
    /// Since its last sign of life.
    silent_seconds: u64,
}

impl ShownLock {
    fn new(environment: EnvironmentName, held: &RecordedHolder) -> Self {
        let owner = &held.record.owner;
        Self {
            environment: environment.to_string(),
            user: owner.username.clone(),
            host: owner.hostname.clone(),
            process: owner.pid,
            command: owner.command.clone(),
            run: held.record.run.map(|run| run.to_string()),
            since: held.record.since.to_string(),
            age_seconds: held.age(Timestamp::now()).as_secs(),
            silent_seconds: held.silence.as_secs(),
        }
    }

    fn line(&self) -> String {
        let Self {
            environment,
            user,
            host,
            process,
            command,
            age_seconds,
            silent_seconds,
            ..
        } = self;
        let run = self.run.as_deref().unwrap_or("-");
        let line = format!(
            "{environment:<8} {run:<8} {user}@{host} process {process} `{command}`, held for \
             {age_seconds}s, last sign of life {silent_seconds}s ago"
        );
        printable_line(&line).into_owned() + "\n"
    }
}

impl Report for LocksReport {
    const SCHEMA: &'static str = "nimbus/locks/1";

    fn text(&self, _: Terminal) -> String {
        if self.locks.is_empty() {
            return "Nothing is locked\n".to_owned();
        }
        self.locks.iter().map(ShownLock::line).collect()
    }
}

impl Report for UnlockedReport {
    const SCHEMA: &'static str = "nimbus/unlock/1";

    fn text(&self, _: Terminal) -> String {
        match &self.former {
            Some(former) => format!("{} is free; {} held it\n", self.environment, former.user),
            None => format!("{} was free already\n", self.environment),
        }
    }
}
