//! `nimbus man --out DIR`.

use std::fs;
use std::path::PathBuf;

use clap_mangen::Man;
use nimbus_core::{Error, ErrorCode, Result};

use crate::args;
use crate::context::CommandContext;
use crate::exit::CommandOutcome;

#[derive(clap::Args, Debug)]
pub(crate) struct ManArgs {
    /// Directory for the pages; it is made if it is missing
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
}

pub(crate) async fn run(args: ManArgs, context: &CommandContext) -> Result<CommandOutcome> {
    let unwritable = |error: std::io::Error| {
        let message = format!("cannot write the manual to {}: {error}", args.out.display());
        Error::new(ErrorCode::FILE_UNWRITABLE, message).with_source(error)
    };
    fs::create_dir_all(&args.out).map_err(unwritable)?;
    let mut command = args::command(context.program);
    command.build();
    let mut count = 0;
    for (name, command) in pages(&command, context.program.to_owned()) {
        let mut page = Vec::new();
        Man::new(command)
            .title(name.to_uppercase())
            .render(&mut page)
            .map_err(unwritable)?;
        fs::write(args.out.join(format!("{name}.1")), page).map_err(unwritable)?;
        count += 1;
    }
    let out = args.out.display();
    context.output.note(&format!(
        "{count} pages in {out}; read one with: man -l {out}/nimbus.1"
    ));
    Ok(CommandOutcome::Done)
}

/// A page per command that people see, named as git names them: `nimbus-config-show`.
fn pages(command: &clap::Command, name: String) -> Vec<(String, clap::Command)> {
    let page = (name.clone(), command.clone().name(name.clone()));
    let visible = command
        .get_subcommands()
        .filter(|subcommand| !subcommand.is_hide_set() && subcommand.get_name() != "help");
    let below = visible
        .flat_map(|subcommand| pages(subcommand, format!("{name}-{}", subcommand.get_name())));
    std::iter::once(page).chain(below).collect()
}
