//! `nimbus completions SHELL`.

use clap_complete::Shell;
use nimbus_core::Result;

use crate::completion;
use crate::context::CommandContext;
use crate::exit::CommandOutcome;

#[derive(clap::Args, Debug)]
#[command(after_help = "\
The script asks nimbus itself, so it knows ids, environments, stacks and runs, and commands of
later versions too.

Examples:
  bash  nimbus completions bash > ~/.local/share/bash-completion/completions/nimbus
  zsh   nimbus completions zsh > \"${fpath[1]}/_nimbus\"
  fish  nimbus completions fish > ~/.config/fish/completions/nimbus.fish")]
pub(crate) struct CompletionsArgs {
    /// The shell that will read the script
    shell: Shell,
}

pub(crate) async fn run(args: CompletionsArgs, context: &CommandContext) -> Result<CommandOutcome> {
    let script = completion::script(&args.shell.to_string(), context.program)?;
    context.output.raw(&script)?;
    Ok(CommandOutcome::Done)
}
