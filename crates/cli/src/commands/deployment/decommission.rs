//! `nimbus decommission`: the end of a deployment of which nothing is left in the cloud.
//!
//! Everything that is recorded of it goes into one archive, which is read back before anything is
//! removed. Its environments are held meanwhile. Whatever fails, the deployment is there as before
//! or its archive is whole.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use nimbus_core::{Error, ErrorCode, Result};
use nimbus_engine_backend::{Backend, Environment as Variables, Keyring, Owner, Stack};
use nimbus_engine_operations::{StackLocation, backend_of};
use nimbus_local::{
    BackupList, DeploymentPlace, EnvironmentLockFiles, Records, RunFiles, back_up, verify_backup,
};
use nimbus_orchestrator::naming;
use nimbus_runs::ports::{EnvironmentGuard, RunStore as _};
use nimbus_runs::take_environment;
use schemars::JsonSchema;
use serde::Serialize;

use super::local::find_place;
use crate::commands::program::confirm;
use crate::context::CommandContext;
use crate::exit::CommandOutcome;
use crate::output::Report;
use crate::style::{Terminal, TextStyle};

/// Folder of a workspace for what is left of deployments.
const ARCHIVE: &str = "archive";

#[derive(clap::Args, Debug)]
pub(crate) struct DecommissionArgs {
    /// Deployment
    #[arg(value_name = "DEPLOYMENT-ID")]
    id: String,
    /// Do it without asking
    #[arg(long, short)]
    yes: bool,
    /// Look here for state too; places that recorded runs used are looked at anyway
    #[arg(long, value_name = "URL")]
    backend: Option<String>,
}

pub(crate) async fn run(
    args: DecommissionArgs,
    context: &CommandContext,
) -> Result<CommandOutcome> {
    let place = find_place(&args.id, false, context)?;
    let id = place.deployment.manifest.metadata.id.to_string();
    let held = hold(&place, context).await?;
    let own = own_stacks(&place).await?;
    let elsewhere = stacks_elsewhere(&place, args.backend.as_deref()).await?;
    refuse_in_use(&id, own.iter().chain(&elsewhere)).await?;
    if !args.yes {
        let question = format!("Archive {id} and remove it from this workspace?");
        confirm(context, &question).await?;
    }
    keep_history(&place, &elsewhere).await?;
    let (archive, list) = archive(&place, &id)?;
    let keyring = Keyring::new(Variables::process());
    for stack in &elsewhere {
        let owner = Owner::current("nimbus decommission");
        stack.remove(false, owner, &keyring).await?;
    }
    remove(&place)?;
    // The locks themselves are gone with it.
    drop(held);
    context.output.result(&DecommissionReport {
        deployment: id,
        archive: archive.display().to_string(),
        files: list.files.len(),
        directory: place.deployment.directory.display().to_string(),
        states: elsewhere
            .iter()
            .map(|stack| stack.name().to_string())
            .collect(),
    })?;
    Ok(CommandOutcome::Done)
}

/// Takes every environment, also of rehearsals, or fails with who has one.
async fn hold(
    place: &DeploymentPlace,
    context: &CommandContext,
) -> Result<Vec<Box<dyn EnvironmentGuard>>> {
    let command = format!("{} decommission", context.program);
    let directory = &place.deployment.directory;
    let rehearsals = Records::rehearsed(directory);
    let rehearsed = rehearsals.directory().is_dir().then_some(rehearsals);
    let mut held = Vec::new();
    for records in [Records::real(directory)].into_iter().chain(rehearsed) {
        let locks = EnvironmentLockFiles::new(&records);
        for environment in place.environments(None) {
            held.push(take_environment(&locks, environment, &command, None).await?);
        }
    }
    Ok(held)
}

/// Stacks in the deployment's own directory: all of them are its own, in the manifest or not.
async fn own_stacks(place: &DeploymentPlace) -> Result<Vec<Stack>> {
    let folder = place.state_folder();
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    let address = format!("file://{}", folder.display());
    let backend = open(address, &place.deployment.directory).await?;
    let names = backend.stacks().await?;
    Ok(names.into_iter().map(|name| backend.stack(name)).collect())
}

/// Stacks of the deployment where others may have theirs too: those that are named for it.
async fn stacks_elsewhere(place: &DeploymentPlace, given: Option<&str>) -> Result<Vec<Stack>> {
    let mut places: BTreeSet<String> = given.map(str::to_owned).into_iter().collect();
    let runs = RunFiles::new(&place.records);
    for environment in place.environments(None) {
        let used = runs.of_environment(environment).await?.into_iter();
        places.extend(used.filter_map(|record| record.request.choices.backend));
    }
    let metadata = &place.deployment.manifest.metadata;
    let (project, prefix) = (
        naming::sanitize(&metadata.project),
        format!("{}-", metadata.id),
    );
    let mut found = Vec::new();
    for address in places {
        let backend = open(address, &place.deployment.directory).await?;
        let names = backend.stacks().await?.into_iter();
        let mine =
            names.filter(|name| name.project() == project && name.stack().starts_with(&prefix));
        found.extend(mine.map(|name| backend.stack(name)));
    }
    Ok(found)
}

async fn open(address: String, directory: &Path) -> Result<Backend> {
    let location = StackLocation {
        directory: directory.to_owned(),
        stack: String::new(),
        backend: Some(address),
    };
    backend_of(&location, &Variables::process()).await
}

/// Nothing may be left that only these states know of.
async fn refuse_in_use(id: &str, stacks: impl Iterator<Item = &Stack>) -> Result<()> {
    let mut left: BTreeMap<String, usize> = BTreeMap::new();
    for stack in stacks {
        let snapshot = stack.load_unverified().await?.snapshot.unwrap_or_default();
        let mut count = snapshot.resources.len() + snapshot.pending_operations.len();
        // What an operation that was cut off made may not be in the state yet.
        count += usize::from(stack.interrupted().await?.is_some());
        if count > 0 {
            let name = stack.name().stack();
            let environment = name.rsplit('-').next().unwrap_or(name);
            *left.entry(environment.to_owned()).or_default() += count;
        }
    }
    let Some(first) = left.keys().next() else {
        return Ok(());
    };
    let counts: Vec<String> = left
        .iter()
        .map(|(environment, count)| format!("{count} in {environment}"))
        .collect();
    let message = format!("{id} still has resources: {}", counts.join(", "));
    Err(
        Error::new(ErrorCode::DEPLOYMENT_IN_USE, message).with_help(format!(
            "destroy them first: nimbus destroy {id} --environment {first}"
        )),
    )
}

/// Earlier states that are kept elsewhere go with their stack, so the archive gets them.
async fn keep_history(place: &DeploymentPlace, stacks: &[Stack]) -> Result<()> {
    for stack in stacks {
        let folder = place
            .deployment
            .directory
            .join(".nimbus/history")
            .join(stack.name().stack());
        for version in stack.history().await? {
            let bytes = stack.version_bytes(&version).await?;
            let path = folder.join(format!("{}.json", version.number));
            let written = fs::create_dir_all(&folder).and_then(|()| fs::write(&path, bytes));
            written.map_err(|error| unwritable(&path, error))?;
        }
    }
    Ok(())
}

/// Writes the archive and reads it back.
fn archive(place: &DeploymentPlace, id: &str) -> Result<(PathBuf, BackupList)> {
    let folder = place.workspace.root().join(ARCHIVE);
    fs::create_dir_all(&folder).map_err(|error| unwritable(&folder, error))?;
    let stamp = Timestamp::now().strftime("%Y%m%d-%H%M%S");
    let file = folder.join(format!("{id}-{stamp}.tar.gz"));
    let list = back_up(&place.deployment.directory, &file)?;
    if verify_backup(&file)? != list {
        let message = format!("{} is not what was written", file.display());
        return Err(Error::new(ErrorCode::BACKUP_UNREADABLE, message)
            .with_help("nothing was removed; look at the disk"));
    }
    Ok((file, list))
}

/// The directory goes at once, whatever happens while its files go one by one.
fn remove(place: &DeploymentPlace) -> Result<()> {
    let name = place.deployment.directory.file_name().unwrap_or_default();
    let aside = place.workspace.root().join(ARCHIVE);
    let aside = aside.join(format!(".{}.gone", name.to_string_lossy()));
    let moved = clear(&aside).and_then(|()| fs::rename(&place.deployment.directory, &aside));
    moved.map_err(|error| unwritable(&place.deployment.directory, error))?;
    clear(&aside).map_err(|error| unwritable(&aside, error))
}

/// Removes a folder that may not be there.
fn clear(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

fn unwritable(path: &Path, error: io::Error) -> Error {
    let message = format!("cannot write {}: {error}", path.display());
    Error::new(ErrorCode::FILE_UNWRITABLE, message).with_source(error)
}

#[derive(JsonSchema, Serialize)]
pub(crate) struct DecommissionReport {
    deployment: String,
    /// File with everything that was recorded of it.
    archive: String,
    /// How many files the archive holds.
    files: usize,
    /// What was removed.
    directory: String,
    /// Empty stacks that were removed from where else state was kept.
    states: Vec<String>,
}

impl Report for DecommissionReport {
    const SCHEMA: &'static str = "nimbus/decommission/1";

    fn text(&self, terminal: Terminal) -> String {
        let mark = terminal.paint(TextStyle::Good, "✓");
        let Self {
            deployment,
            archive,
            files,
            directory,
            states,
        } = self;
        let mut text = format!(
            "{mark} {deployment} is decommissioned\n  archive: {archive} ({files} files)\n  removed: {directory}\n"
        );
        for state in states {
            text.push_str(&format!("  removed: state of {state}\n"));
        }
        text.push_str(&format!(
            "  to bring it back: nimbus workspace restore {archive} --into {directory}\n"
        ));
        text
    }
}
