//! `nimbus new`: a workspace with the shipped library.

use std::path::PathBuf;

use nimbus_core::{Error, ErrorCode, Result};
use nimbus_orchestrator::workspace::ROOT;
use schemars::JsonSchema;
use serde::Serialize;

use crate::context::Context;
use crate::exit::Outcome;
use crate::output::Report;
use crate::style::Terminal;

#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Where to make it; the workspace is `cloud/` in there
    #[arg(value_name = "DIR", default_value = ".")]
    directory: PathBuf,
}

pub(crate) async fn run(args: Args, context: &Context) -> Result<Outcome> {
    // Components without `.`, as people write paths.
    let root: PathBuf = context
        .directory
        .join(args.directory)
        .join(ROOT)
        .components()
        .collect();
    let written = nimbus_library::write_missing(&root).map_err(|error| {
        let message = format!("cannot make the workspace {}: {error}", root.display());
        Error::new(ErrorCode::FILE_UNWRITABLE, message)
            .with_source(error)
            .with_help("check space and permissions and run it again: what is there stays")
    })?;
    context.output.result(&NewReport {
        workspace: root.display().to_string(),
        written,
    })?;
    context
        .output
        .note("Next: nimbus init --org ORG --project PROJECT --domain DOMAIN");
    Ok(Outcome::Done)
}

#[derive(JsonSchema, Serialize)]
pub(crate) struct NewReport {
    workspace: String,
    /// Files that were not there before.
    written: usize,
}

impl Report for NewReport {
    const SCHEMA: &'static str = "nimbus/new/1";

    fn text(&self, _: Terminal) -> String {
        match self.written {
            0 => format!("{} is complete\n", self.workspace),
            n => format!("Wrote {n} files to {}\n", self.workspace),
        }
    }
}
