//! `nimbus new`: a workspace with the shipped library.

use std::path::{Path, PathBuf};

use nimbus_core::{Error, ErrorCode, Result};
use nimbus_orchestrator::schema;
use nimbus_workspace::{ROOT, files};
use schemars::JsonSchema;
use serde::Serialize;

use crate::context::CommandContext;
use crate::exit::CommandOutcome;
use crate::output::Report;
use crate::style::Terminal;

#[derive(clap::Args, Debug)]
pub(crate) struct NewDeploymentArgs {
    /// Where to make it; the workspace is `cloud/` in there
    #[arg(value_name = "DIR", default_value = ".")]
    place: PathBuf,
}

pub(crate) async fn run(
    args: NewDeploymentArgs,
    context: &CommandContext,
) -> Result<CommandOutcome> {
    refuse_template(&args.place)?;
    let report = make(&context.directory.join(args.place))?;
    context.output.result(&report)?;
    context
        .output
        .note("Next: nimbus init --org ORG --project PROJECT --domain DOMAIN");
    Ok(CommandOutcome::Done)
}

/// Languages whose names end the names of Pulumi's templates.
const LANGUAGES: [&str; 9] = [
    "typescript",
    "javascript",
    "python",
    "go",
    "csharp",
    "fsharp",
    "visualbasic",
    "java",
    "yaml",
];

/// `pulumi new aws-typescript` makes a project of a template. Whoever types the same here wants no folder of that name with a
/// workspace in it.
fn refuse_template(place: &Path) -> Result<()> {
    let Some(name) = place.to_str().filter(|_| !place.exists()) else {
        return Ok(());
    };
    if !LANGUAGES.contains(&name.rsplit('-').next().unwrap_or(name)) {
        return Ok(());
    }
    let message = format!(
        "`nimbus new` makes a workspace in a folder, and no project of a template `{name}`"
    );
    Err(Error::new(ErrorCode::USAGE, message).with_help(format!(
        "`nimbus new-stack NAME` makes a component with its program in a workspace, `nimbus adopt` takes projects in that there \
         are; a folder of this name is ./{name}"
    )))
}

/// A workspace in `directory`, or what an existing one lacks.
pub(crate) fn make(directory: &Path) -> Result<NewReport> {
    // Components without `.`, as people write paths.
    let root: PathBuf = directory.join(ROOT).components().collect();
    let written = nimbus_library::write_missing(&root).map_err(|error| {
        let message = format!("cannot make the workspace {}: {error}", root.display());
        Error::new(ErrorCode::FILE_UNWRITABLE, message)
            .with_source(error)
            .with_help("check space and permissions and run it again: what is there stays")
    })?;
    Ok(NewReport {
        written: written + write_schemas(&root)?,
        workspace: root.display().to_string(),
    })
}

/// Schemas are ours and follow the program's version. Returns how many changed.
pub(crate) fn write_schemas(root: &Path) -> Result<usize> {
    let mut written = 0;
    for (name, schema) in schema::all() {
        let path = root.join("tools/schemas").join(name);
        let text = format!("{schema:#}\n");
        if std::fs::read_to_string(&path).is_ok_and(|there| there == text) {
            continue;
        }
        files::replace(&path, &text)?;
        written += 1;
    }
    Ok(written)
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
