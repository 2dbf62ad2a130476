//! `nimbus completions SHELL`.

use clap_complete::Shell;
use nimbus_core::Result;

use crate::args;
use crate::context::CommandContext;
use crate::exit::CommandOutcome;

#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  bash  nimbus completions bash > ~/.local/share/bash-completion/completions/nimbus
  zsh   nimbus completions zsh > \"${fpath[1]}/_nimbus\"
  fish  nimbus completions fish > ~/.config/fish/completions/nimbus.fish")]
pub(crate) struct CompletionsArgs {
    /// The shell that will read the script
    shell: Shell,
}

pub(crate) async fn run(args: CompletionsArgs, context: &CommandContext) -> Result<CommandOutcome> {
    let mut script = Vec::new();
    let mut command = args::command(context.program);
    clap_complete::generate(args.shell, &mut command, context.program, &mut script);
    context.output.raw(&String::from_utf8_lossy(&script))?;
    Ok(CommandOutcome::Done)
}
