//! `nimbus export-state`: the states of all stacks of an environment in one file.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use nimbus_core::{ComponentName, Error, ErrorCode, Result, UnitName};
use nimbus_engine_backend::{BackendError, Environment as Variables};
use nimbus_engine_operations::{StackAccess, StackLocation};
use nimbus_local::DeploymentPlace;
use nimbus_orchestrator::naming;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::local::{RunArgs, find_place};
use crate::context::CommandContext;
use crate::exit::CommandOutcome;
use crate::output::Report;
use crate::style::Terminal;

#[derive(clap::Args, Debug)]
pub(crate) struct ExportStateArgs {
    #[command(flatten)]
    run: RunArgs,
    /// Write it there instead of to standard output
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// The file. Secrets in it are encrypted as they are in the states.
#[derive(Serialize)]
struct ExportedStates {
    schema: &'static str,
    deployment: String,
    environment: String,
    rehearsal: bool,
    exported: String,
    /// By stack, in the official export form; a stack that was never deployed is left out.
    stacks: BTreeMap<String, Value>,
}

pub(crate) async fn run(args: ExportStateArgs, context: &CommandContext) -> Result<CommandOutcome> {
    let run = &args.run;
    let place = find_place(&run.id, run.how.rehearse, context)?;
    let manifest = &place.deployment.manifest;
    let mut stacks = BTreeMap::new();
    for (stack, _) in manifest.enabled() {
        if let Some(state) = export(run, &place, stack).await? {
            stacks.insert(stack.to_string(), state);
        }
    }
    let export = ExportedStates {
        schema: "nimbus/environment-state/1",
        deployment: manifest.metadata.id.to_string(),
        environment: run.environment.to_string(),
        rehearsal: run.how.rehearse,
        exported: Timestamp::now().to_string(),
        stacks,
    };
    let text = serde_json::to_string_pretty(&export).unwrap_or_default() + "\n";
    let Some(file) = &args.output else {
        context.output.raw(&text)?;
        return Ok(CommandOutcome::Done);
    };
    let path = context.directory.join(file);
    write(&path, &text).map_err(|error| {
        let message = format!("cannot write {}: {error}", path.display());
        Error::new(ErrorCode::FILE_UNWRITABLE, message).with_source(error)
    })?;
    context.output.result(&ExportStateReport {
        file: file.display().to_string(),
        stacks: export.stacks.len(),
    })?;
    Ok(CommandOutcome::Done)
}

async fn export(
    run: &RunArgs,
    place: &DeploymentPlace,
    component: &ComponentName,
) -> Result<Option<Value>> {
    let folder = place.state_folder();
    if run.how.backend.is_none() && !folder.is_dir() {
        return Ok(None);
    }
    let metadata = &place.deployment.manifest.metadata;
    let unit = UnitName::new(&metadata.id, component, run.environment);
    let project = naming::sanitize(&metadata.project);
    let own = format!("file://{}", folder.display());
    let location = StackLocation {
        directory: place.workspace.stack_source(component),
        stack: format!("organization/{project}/{unit}"),
        backend: Some(run.how.backend.clone().unwrap_or(own)),
    };
    let access = StackAccess::open(&location, &Variables::process()).await?;
    let bytes = match access.stack().export().await {
        Ok(bytes) => bytes,
        Err(BackendError::NotFound { .. }) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let state = serde_json::from_slice(&bytes).map_err(|error| {
        let message = format!("the state of {unit} has no JSON form");
        Error::new(ErrorCode::STATE_UNREADABLE, message).with_source(error)
    })?;
    Ok(Some(state))
}

/// All of it or nothing, readable by its owner only.
fn write(path: &Path, text: &str) -> std::io::Result<()> {
    let folder = path.parent().unwrap_or_else(|| Path::new("."));
    fs::create_dir_all(folder)?;
    let mut draft = tempfile::NamedTempFile::new_in(folder)?;
    draft.write_all(text.as_bytes())?;
    draft.as_file().sync_all()?;
    draft.persist(path).map_err(|error| error.error)?;
    Ok(())
}

#[derive(JsonSchema, Serialize)]
pub(crate) struct ExportStateReport {
    file: String,
    /// How many stacks it holds.
    stacks: usize,
}

impl Report for ExportStateReport {
    const SCHEMA: &'static str = "nimbus/export-state/1";

    fn text(&self, _: Terminal) -> String {
        format!(
            "Wrote the state of {} stacks to {}\n",
            self.stacks, self.file
        )
    }
}
