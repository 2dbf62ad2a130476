//! `nimbus internal-docs --out DIR`: what `docs/reference` holds. `cargo xtask tidy` compares.

use std::fs;
use std::path::PathBuf;

use nimbus_core::Result;
use nimbus_disk::unwritable;

use crate::context::CommandContext;
use crate::exit::CommandOutcome;
use crate::reference;

#[derive(clap::Args, Debug)]
pub(crate) struct InternalDocsArgs {
    /// Directory for the documents; it is made if it is missing
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
}

pub(crate) async fn run(args: InternalDocsArgs, _: &CommandContext) -> Result<CommandOutcome> {
    for (name, text) in reference::documents() {
        let path = args.out.join(name);
        let folder = path.parent().unwrap_or(&args.out);
        fs::create_dir_all(folder)
            .and_then(|()| fs::write(&path, text))
            .map_err(|error| unwritable(&path, error))?;
    }
    Ok(CommandOutcome::Done)
}
