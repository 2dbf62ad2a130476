//! The end of a deployment of which nothing is left in the cloud.
//!
//! Everything that is recorded of it goes into one archive, which is read back before anything is
//! removed. Its environments are held meanwhile. Whatever fails, the deployment is there as before
//! or its archive is whole.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use nimbus_core::{Error, ErrorCode, Result, UnitName};
use nimbus_disk::{FileMode, FolderFiles, layout, unreadable, unwritable};
use nimbus_engine_backend::{EnvironmentVariables, KeyServices, Keyring, Owner, Stack};
use nimbus_engine_operations::{BACKEND_VARIABLE, SandboxSettings, backend_of, key_services};
use nimbus_orchestrator::{Manifest, naming};
use nimbus_runs::ports::{EnvironmentGuard, RunStore as _};
use nimbus_runs::take_environment;

use crate::backup::{BackupList, back_up_inside, verify_backup};
use crate::environment_lock::EnvironmentLockFiles;
use crate::place::{DeploymentPlace, Records};
use crate::run_files::RunFiles;

/// Folder of a workspace for what is left of deployments.
const ARCHIVE: &str = "archive";

/// A deployment that can be ended: nothing is left of it, and nobody else touches it.
pub struct Decommission {
    place: DeploymentPlace,
    held: Vec<Box<dyn EnvironmentGuard>>,
    /// Stacks of it in places that others may use too.
    elsewhere: Vec<Stack>,
    services: KeyServices,
}

/// What became of a deployment.
#[derive(Clone, Debug)]
pub struct Decommissioned {
    /// File with everything that was recorded of it.
    pub archive: PathBuf,
    /// How many files the archive holds.
    pub files: usize,
    /// Empty stacks that were removed from where else state was kept.
    pub states: Vec<String>,
}

impl Decommission {
    /// Takes every environment of a deployment and looks for what is left of it. `backend` is looked
    /// at besides the places that recorded runs used.
    ///
    /// # Errors
    ///
    /// When somebody else holds an environment, something is left, or a stranger's workspace names stacks that were
    /// not given to it.
    pub async fn open(
        place: DeploymentPlace,
        backend: Option<&str>,
        sandbox: Option<&SandboxSettings>,
        command: &str,
    ) -> Result<Self> {
        let held = hold(&place, command).await?;
        let own = own_stacks(&place, sandbox).await?;
        let elsewhere = stacks_elsewhere(&place, backend, sandbox).await?;
        let manifest = &place.deployment.manifest;
        refuse_in_use(manifest, own.iter().chain(&elsewhere)).await?;
        Ok(Self {
            place,
            held,
            elsewhere,
            services: key_services(sandbox),
        })
    }

    /// Archives the deployment, then removes it.
    ///
    /// # Errors
    ///
    /// When the archive cannot be written and read back, or something cannot be removed.
    pub async fn carry_out(self) -> Result<Decommissioned> {
        let Self {
            place,
            held,
            elsewhere,
            services,
        } = self;
        let id = place.deployment.manifest.metadata.id.as_str();
        keep_history(&place, &elsewhere).await?;
        let (archive, list) = archive(&place, id)?;
        let keyring = Keyring::new(EnvironmentVariables::process(), services);
        for stack in &elsewhere {
            let owner = Owner::current("nimbus decommission");
            stack.remove(false, owner, &keyring).await?;
        }
        remove(&place)?;
        // The locks themselves are gone with it.
        drop(held);
        let name = |stack: &Stack| stack.name().to_string();
        Ok(Decommissioned {
            archive,
            files: list.files.len(),
            states: elsewhere.iter().map(name).collect(),
        })
    }
}

/// Takes every environment, also of rehearsals, or fails with who has one.
async fn hold(place: &DeploymentPlace, command: &str) -> Result<Vec<Box<dyn EnvironmentGuard>>> {
    let directory = &place.deployment.directory;
    let rehearsals = Records::rehearsed(directory).beneath(&place.workspace);
    let rehearsed = rehearsals.directory().is_dir().then_some(rehearsals);
    let mut held = Vec::new();
    let real = Records::real(directory).beneath(&place.workspace);
    for records in [real].into_iter().chain(rehearsed) {
        let locks = EnvironmentLockFiles::new(&records);
        for environment in place.environments(None) {
            held.push(take_environment(&locks, environment, command, None).await?);
        }
    }
    Ok(held)
}

/// Stacks in the deployment's own directory: all of them are its own, in the manifest or not.
async fn own_stacks(
    place: &DeploymentPlace,
    sandbox: Option<&SandboxSettings>,
) -> Result<Vec<Stack>> {
    if !place.workspace.files().is_folder(&place.state_folder()) {
        return Ok(Vec::new());
    }
    let states = place.states(None, sandbox);
    let backend = backend_of(&states, &EnvironmentVariables::process()).await?;
    let names = backend.stacks().await?.into_iter();
    names.map(|name| backend.stack(name)).collect()
}

/// Stacks of the deployment where others may have theirs too: those that are named for it, or
/// that the manifest names.
async fn stacks_elsewhere(
    place: &DeploymentPlace,
    given: Option<&str>,
    sandbox: Option<&SandboxSettings>,
) -> Result<Vec<Stack>> {
    let mut places: BTreeSet<String> = given.map(str::to_owned).into_iter().collect();
    let variables = EnvironmentVariables::process();
    let runs = RunFiles::new(&place.records);
    for environment in place.environments(None) {
        let used = runs.of_environment(environment).await?.into_iter();
        for recorded in used.filter_map(|record| record.request.choices.backend) {
            if sandbox.is_some_and(SandboxSettings::is_strict)
                && given != Some(recorded.as_str())
                && variables.non_empty(BACKEND_VARIABLE).as_ref() != Some(&recorded)
            {
                return Err(recorded_elsewhere());
            }
            places.insert(recorded);
        }
    }
    let manifest = &place.deployment.manifest;
    let metadata = &manifest.metadata;
    let (project, prefix) = (
        naming::sanitize(&metadata.project),
        format!("{}-", metadata.id),
    );
    let mut found = Vec::new();
    for address in places {
        let states = place.states(Some(&address), sandbox);
        // All that would be looked for, before any of it is: a stack that is passed over would be left behind.
        states.granted.require_project(&project)?;
        for environment in place.environments(None) {
            for component in manifest.stacks.keys() {
                let unit = manifest.pulumi_stack(component, environment);
                states.granted.require_project(&unit.project)?;
            }
        }
        let backend = backend_of(&states, &variables).await?;
        let names = backend.stacks().await?.into_iter();
        let named = |project_of: &str, stack: &str| {
            project_of == project && stack.starts_with(&prefix)
                || manifest.environment_of(project_of, stack).is_some()
        };
        let mine = names.filter(|name| named(name.project(), name.stack()));
        for name in mine {
            found.push(backend.stack(name)?);
        }
    }
    Ok(found)
}

/// Records lie in the workspace. A stranger's do not say where states are that are read and removed.
fn recorded_elsewhere() -> Error {
    let message = "the record of a run says where states are, and the workspace is a stranger's";
    let help = format!(
        "give the address that the run was started with: --backend, or {BACKEND_VARIABLE} for a second one"
    );
    Error::new(ErrorCode::TENANT_BACKEND, message).with_help(help)
}

/// Nothing may be left that only these states know of.
async fn refuse_in_use(manifest: &Manifest, stacks: impl Iterator<Item = &Stack>) -> Result<()> {
    let id = &manifest.metadata.id;
    let mut left: BTreeMap<String, usize> = BTreeMap::new();
    for stack in stacks {
        let snapshot = stack.load_unverified().await?.snapshot.unwrap_or_default();
        let mut count = snapshot.resources.len() + snapshot.pending_operations.len();
        // What an operation that was cut off made may not be in the state yet.
        count += usize::from(stack.interrupted().await?.is_some());
        if count > 0 {
            let name = stack.name();
            let known = manifest.environment_of(name.project(), name.stack());
            let environment = known.map_or_else(
                || environment_of(name.stack(), manifest).to_owned(),
                |known| known.to_string(),
            );
            *left.entry(environment).or_default() += count;
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

/// The environment that a unit's name ends with. Names of components and of environments may have
/// dashes, so only the manifest can tell where the one ends and the other begins. A unit whose
/// component is no longer in it is taken for one of the longest name that fits; what fits none is
/// shown as it is.
fn environment_of<'a>(unit: &'a str, manifest: &'a Manifest) -> &'a str {
    let id = &manifest.metadata.id;
    let environments = || manifest.environments.keys();
    let is_exactly = |environment: &&nimbus_core::EnvironmentName| {
        let mut components = manifest.stacks.keys();
        components.any(|component| UnitName::new(id, component, **environment) == unit)
    };
    let ends_with = |environment: &&nimbus_core::EnvironmentName| {
        let rest = unit.strip_suffix(environment.as_str());
        rest.is_some_and(|rest| rest.ends_with('-'))
    };
    let known = environments().find(is_exactly);
    let longest = || {
        environments()
            .filter(ends_with)
            .max_by_key(|environment| environment.as_str().len())
    };
    known.or_else(longest).map_or(unit, |found| found.as_str())
}

/// Earlier states that are kept elsewhere go with their stack, so the archive gets them.
async fn keep_history(place: &DeploymentPlace, stacks: &[Stack]) -> Result<()> {
    for stack in stacks {
        let folder = layout::history(&place.deployment.directory).join(stack.name().stack());
        for version in stack.history().await? {
            let bytes = stack.version_bytes(&version).await?;
            let path = folder.join(format!("{}.json", version.number));
            let files = place.workspace.files();
            files
                .replace(&path, &bytes, FileMode::Private)
                .map_err(|error| unwritable(&path, error))?;
        }
    }
    Ok(())
}

/// Writes the archive and reads it back.
fn archive(place: &DeploymentPlace, id: &str) -> Result<(PathBuf, BackupList)> {
    let folder = place.workspace.root().join(ARCHIVE);
    let files = place.workspace.files();
    let stamp = Timestamp::now().strftime("%Y%m%d-%H%M%S");
    let file = folder.join(format!("{id}-{stamp}.tar.gz"));
    let list = back_up_inside(files, &place.deployment.directory, &file)?;
    let written = files
        .open(&file)
        .map_err(|error| unreadable(&file, error))?;
    if verify_backup(&file, written)? != list {
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
    let files = place.workspace.files();
    let directory = &place.deployment.directory;
    let moved = clear(files, &aside).and_then(|()| files.rename(directory, &aside));
    moved.map_err(|error| unwritable(directory, error))?;
    clear(files, &aside).map_err(|error| unwritable(&aside, error))
}

/// Removes a folder that may not be there.
fn clear(files: &FolderFiles, folder: &Path) -> io::Result<()> {
    match files.remove_folder(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use nimbus_document::Document;

    use super::*;

    #[test]
    fn names_with_dashes_are_told_apart_by_the_manifest() {
        let text = "apiVersion: nimbus/v1\nkind: DeploymentManifest\nmetadata: {deploymentId: D1, \
            organization: o, project: p, template: t}\nspec:\n  environments:\n    prod: {enabled: \
            true, account: '1', region: r}\n    eu-prod: {enabled: true, account: '1', region: \
            r}\n  stacks:\n    app: {enabled: true}\n    web-eu: {enabled: true}\n";
        let document = Document::parse("manifest", text).unwrap();
        let manifest = Manifest::read(&document).unwrap();
        let environment = |unit| environment_of(unit, &manifest);
        assert_eq!(environment("D1-app-eu-prod"), "eu-prod");
        assert_eq!(environment("D1-app-prod"), "prod");
        assert_eq!(environment("D1-web-eu-prod"), "prod", "of web-eu");
        assert_eq!(environment("D1-gone-eu-prod"), "eu-prod");
        assert_eq!(environment("D1-gone-other"), "D1-gone-other");
    }
}
