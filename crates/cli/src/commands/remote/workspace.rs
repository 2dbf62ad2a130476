//! `nimbus workspace push` and `pull`: a tenant's templates, programs and manifests, sent and fetched.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use nimbus_control_client::RemoteDeployments;
use nimbus_control_wire::{NewDeployment, WorkspaceChange, WorkspaceContents, WorkspaceEntry};
use nimbus_core::{Error, ErrorCode, Result};
use nimbus_document::Document;
use nimbus_orchestrator::{FILE_NAME, Manifest, configs};
use nimbus_workspace::{
    ExchangedDeployments, ManifestPlace, Shipment, Workspace, WorkspaceDeployment,
};
use schemars::JsonSchema;
use serde::Serialize;

use super::deployment_id;
use crate::commands::deployment::workspace as local_workspace;
use crate::commands::workspace::{PullArgs, PushArgs, WorkspaceCommand};
use crate::context::CommandContext;
use crate::exit::CommandOutcome;
use crate::output::Report;
use crate::report_page::continued;
use crate::style::Terminal;

/// Contents of one request, before they are written as text.
const SENT_AT_ONCE: usize = 600 * 1024;
/// And of one answer.
const FETCHED_AT_ONCE: u64 = 1024 * 1024;
const MOST_FETCHED: usize = 50;

pub(super) async fn run(
    command: WorkspaceCommand,
    remote: &RemoteDeployments,
    context: &CommandContext,
) -> Result<CommandOutcome> {
    match command {
        WorkspaceCommand::Push(args) => push(args, remote, context).await,
        WorkspaceCommand::Pull(args) => pull(args, remote, context).await,
        WorkspaceCommand::Backup(_) | WorkspaceCommand::Restore(_) => Err(Error::new(
            ErrorCode::INTERNAL,
            "a command that asks no server was asked to",
        )),
    }
}

/// Whether a file is as it is shipped, so that every server has it.
fn is_shipped(path: &str, content: &[u8]) -> bool {
    let mut shipped = nimbus_library::files().iter();
    shipped.any(|(name, there)| *name == path && *there == content)
}

/// The stack that a file is of.
fn stack_of(path: &str) -> Option<&str> {
    let (stack, _) = path.strip_prefix("stacks/")?.split_once('/')?;
    Some(stack)
}

/// What a workspace has to become at the server.
fn change_for(
    shipment: &Shipment,
    there: &[WorkspaceEntry],
    tag: String,
    prune: bool,
) -> WorkspaceChange {
    let known: BTreeMap<&str, &str> = there
        .iter()
        .map(|entry| (entry.path.as_str(), entry.digest.as_str()))
        .collect();
    let mut put = BTreeMap::new();
    let mut shipped = BTreeSet::new();
    for (path, content) in &shipment.files {
        if is_shipped(path, content) {
            shipped.insert(path.as_str());
            continue;
        }
        let digest = Shipment::digest(content);
        if known.get(path.as_str()) != Some(&digest.as_str()) {
            put.insert(path.clone(), digest);
        }
    }
    let stacks: BTreeSet<&str> = shipment
        .files
        .keys()
        .filter_map(|path| stack_of(path))
        .collect();
    let gone = |path: &&str| match shipment.files.contains_key(*path) {
        true => shipped.contains(path),
        // A file of a program that is here and has it not any more; other programs are other people's.
        false => prune || stack_of(path).is_some_and(|stack| stacks.contains(stack)),
    };
    let remove = known.keys().copied().filter(|path| gone(path));
    WorkspaceChange {
        tag: Some(tag),
        remove: remove.map(str::to_owned).collect(),
        put,
    }
}

async fn push(
    args: PushArgs,
    remote: &RemoteDeployments,
    context: &CommandContext,
) -> Result<CommandOutcome> {
    let workspace = local_workspace(context)?;
    let shipment = Shipment::collect(&workspace)?;
    // Refused before anything is sent.
    workspace.library()?;
    let deployments = chosen(&workspace, &args.ids)?;
    let (there, tag) = remote.workspace().await?;
    let change = change_for(&shipment, &there, tag, args.prune);
    let mut report = PushReport {
        server: remote.server().to_owned(),
        sent: change.put.keys().cloned().collect(),
        removed: change.remove.clone(),
        deployments: Vec::new(),
        unread: unread(&deployments),
    };
    let mut exchanged = ExchangedDeployments::load(&workspace);
    let planned = plan_manifests(&deployments, &exchanged, args.force, remote).await?;
    if !change.put.is_empty() || !change.remove.is_empty() {
        send_contents(&shipment, &change, remote).await?;
        remote.change_workspace(&change).await?;
    }
    for (id, text, revision) in planned {
        let (written, what) = match revision {
            ManifestChange::Same(revision) => (revision, "unchanged"),
            ManifestChange::New => {
                let new = NewDeployment {
                    manifest: Some(text),
                    ..NewDeployment::default()
                };
                (remote.create(&new).await?.revision, "made")
            }
            ManifestChange::Over(revision) => {
                let written = remote.write_manifest(&id, revision, text).await?;
                (written.revision, "changed")
            }
        };
        exchanged.remember(key(remote, &id), written);
        report.deployments.push(ExchangedManifest {
            id,
            what: what.to_owned(),
        });
    }
    exchanged.save(&workspace)?;
    context.output.result(&report)?;
    Ok(CommandOutcome::Done)
}

/// Under which a revision is remembered.
fn key(remote: &RemoteDeployments, id: &str) -> String {
    format!(
        "{} {} {id}",
        remote.server(),
        remote.tenant().unwrap_or("-")
    )
}

fn chosen(workspace: &Workspace, ids: &[String]) -> Result<Vec<WorkspaceDeployment>> {
    if !ids.is_empty() {
        return ids.iter().map(|id| workspace.deployment(id)).collect();
    }
    let directories = workspace.deployment_directories()?.into_iter();
    directories
        .map(|directory| {
            Ok(WorkspaceDeployment {
                manifest: workspace.manifest_at(&directory)?,
                directory,
            })
        })
        .collect()
}

/// Configuration files that somebody edited: a server goes by the manifest alone.
fn unread(deployments: &[WorkspaceDeployment]) -> Vec<String> {
    let mut edited = Vec::new();
    for deployment in deployments {
        for (name, text) in configs(&deployment.manifest) {
            let path = deployment.directory.join("config").join(&name);
            if std::fs::read_to_string(&path).is_ok_and(|there| there != text) {
                let folder = deployment.directory.file_name().unwrap_or_default();
                edited.push(format!("{}/config/{name}", folder.to_string_lossy()));
            }
        }
    }
    edited
}

enum ManifestChange {
    Same(i64),
    New,
    Over(i64),
}

/// What happens to each manifest; refused if the server's was changed since it was last here.
async fn plan_manifests(
    deployments: &[WorkspaceDeployment],
    exchanged: &ExchangedDeployments,
    force: bool,
    remote: &RemoteDeployments,
) -> Result<Vec<(String, String, ManifestChange)>> {
    let mut planned = Vec::new();
    for deployment in deployments {
        let id = deployment.manifest.metadata.id.to_string();
        let path = deployment.directory.join(FILE_NAME);
        let text = Document::read(&path)?.text().to_owned();
        let found = match remote.deployment(&id).await {
            Ok(found) => Some(found),
            Err(error) => match Error::from(error) {
                error if error.code() == ErrorCode::RESOURCE_NOT_FOUND => None,
                error => return Err(error),
            },
        };
        let change = match found {
            None => ManifestChange::New,
            Some(found) => {
                let there = remote.manifest(&id).await?;
                let known = exchanged.revision(&key(remote, &id));
                if there == text {
                    ManifestChange::Same(found.revision)
                } else if force || known == Some(found.revision) {
                    ManifestChange::Over(found.revision)
                } else {
                    let message =
                        format!("the manifest of {id} was changed at {}", remote.server());
                    return Err(Error::new(ErrorCode::RESOURCE_CHANGED, message).with_help(
                        "`nimbus workspace pull --force` takes the server's, `push --force` replaces it",
                    ));
                }
            }
        };
        planned.push((id, text, change));
    }
    Ok(planned)
}

async fn send_contents(
    shipment: &Shipment,
    change: &WorkspaceChange,
    remote: &RemoteDeployments,
) -> Result<()> {
    let mut batch = BTreeMap::new();
    let mut size = 0;
    for (path, digest) in &change.put {
        let Some(content) = shipment.files.get(path) else {
            continue;
        };
        if size > 0 && size + content.len() > SENT_AT_ONCE {
            let contents = std::mem::take(&mut batch);
            remote
                .store_contents(WorkspaceContents { contents })
                .await?;
            size = 0;
        }
        size += content.len();
        batch.insert(digest.clone(), BASE64.encode(content));
    }
    if !batch.is_empty() {
        let contents = WorkspaceContents { contents: batch };
        remote.store_contents(contents).await?;
    }
    Ok(())
}

/// Everything that the tenant has of its own, each file checked against its digest.
pub(super) async fn fetch(remote: &RemoteDeployments) -> Result<Shipment> {
    let (entries, _) = remote.workspace().await?;
    let mut contents: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    let mut batch: Vec<String> = Vec::new();
    let mut size = 0;
    let wanted: BTreeMap<&str, u64> = entries
        .iter()
        .map(|entry| (entry.digest.as_str(), entry.size))
        .collect();
    for (digest, length) in wanted {
        if !batch.is_empty() && (size + length > FETCHED_AT_ONCE || batch.len() >= MOST_FETCHED) {
            receive(remote, &mut batch, &mut contents).await?;
            size = 0;
        }
        size += length;
        batch.push(digest.to_owned());
    }
    if !batch.is_empty() {
        receive(remote, &mut batch, &mut contents).await?;
    }
    let mut files = BTreeMap::new();
    for entry in entries {
        let content = contents
            .get(&entry.digest)
            .ok_or_else(|| odd(&entry.path))?;
        files.insert(entry.path, content.clone());
    }
    Ok(Shipment { files })
}

fn odd(what: &str) -> Error {
    let message = format!("the server sent something else than the content of {what}");
    Error::new(ErrorCode::SERVER_ANSWER, message)
}

async fn receive(
    remote: &RemoteDeployments,
    batch: &mut Vec<String>,
    contents: &mut BTreeMap<String, Vec<u8>>,
) -> Result<()> {
    for (name, text) in remote.contents(batch).await? {
        let content = BASE64.decode(text).map_err(|_| odd(&name))?;
        if Shipment::digest(&content) != name {
            return Err(odd(&name));
        }
        contents.insert(name, content);
    }
    batch.clear();
    Ok(())
}

async fn pull(
    args: PullArgs,
    remote: &RemoteDeployments,
    context: &CommandContext,
) -> Result<CommandOutcome> {
    let shipment = fetch(remote).await?;
    let mut deployments = Vec::new();
    let ids: Vec<String> = match args.ids.is_empty() {
        false => args.ids.iter().map(|id| deployment_id(id)).collect(),
        true => {
            let all = remote.deployments().await?.into_iter();
            all.map(|deployment| deployment.id).collect()
        }
    };
    for id in ids {
        let found = remote.deployment(&id).await;
        let found = found.map_err(|error| super::named(error.into(), &id, remote))?;
        let text = remote.manifest(&id).await?;
        let manifest = Manifest::read(&Document::parse_bytes(FILE_NAME, text.as_bytes())?)?;
        deployments.push((manifest, text, found.revision));
    }
    let workspace = match local_workspace(context) {
        Err(error) if error.code() == ErrorCode::WORKSPACE_MISSING => {
            crate::commands::deployment::new::make(&context.directory)?;
            let made = local_workspace(context)?;
            // What was just made is nobody's work.
            shipment.write(made.root())?;
            made
        }
        found => found?,
    };
    let mut differing: Vec<String> = shipment
        .differing(workspace.root())?
        .into_iter()
        .filter(|path| !is_untouched(&workspace, path))
        .collect();
    let places: Vec<ManifestPlace> = deployments
        .iter()
        .map(|(manifest, text, _)| workspace.manifest_place(manifest, text))
        .collect::<Result<_>>()?;
    differing.extend(
        places
            .iter()
            .filter(|place| place.differs)
            .map(|place| place.name.clone()),
    );
    if !differing.is_empty() && !args.force {
        let shown = differing.join(", ");
        let message = format!(
            "these are other ones here than at {}: {shown}",
            remote.server()
        );
        return Err(Error::new(ErrorCode::RESOURCE_CHANGED, message)
            .with_help("send them with `nimbus workspace push`, or give them up with --force"));
    }
    let mut written = shipment.write(workspace.root())?;
    let mut exchanged = ExchangedDeployments::load(&workspace);
    let mut report = PullReport {
        server: remote.server().to_owned(),
        workspace: workspace.root().display().to_string(),
        files: shipment.files.len(),
        written: 0,
        deployments: Vec::new(),
    };
    for ((manifest, text, revision), place) in deployments.iter().zip(&places) {
        let id = manifest.metadata.id.to_string();
        let what = workspace.put_manifest(place, manifest, text)?;
        written += usize::from(what != "unchanged");
        exchanged.remember(key(remote, &id), *revision);
        report.deployments.push(ExchangedManifest {
            id,
            what: what.to_owned(),
        });
    }
    exchanged.save(&workspace)?;
    report.written = written;
    context.output.result(&report)?;
    Ok(CommandOutcome::Done)
}

/// Whether a file here is as it is shipped, so that nobody's work is lost with it.
fn is_untouched(workspace: &Workspace, path: &str) -> bool {
    std::fs::read(workspace.root().join(path)).is_ok_and(|content| is_shipped(path, &content))
}

#[derive(JsonSchema, Serialize)]
pub(crate) struct PushReport {
    server: String,
    /// Files of programs and templates that were sent.
    sent: Vec<String>,
    /// Files that the server has not any more.
    removed: Vec<String>,
    deployments: Vec<ExchangedManifest>,
    /// Configuration files that were edited here and that a server does not read.
    unread: Vec<String>,
}

#[derive(JsonSchema, Serialize)]
struct ExchangedManifest {
    id: String,
    /// `made`, `changed` or `unchanged`.
    what: String,
}

fn manifests_text(deployments: &[ExchangedManifest]) -> String {
    let line = |one: &ExchangedManifest| format!("  {} {}\n", one.id, one.what);
    deployments.iter().map(line).collect()
}

impl Report for PushReport {
    const SCHEMA: &'static str = "nimbus/workspace-push/1";

    fn text(&self, _: Terminal) -> String {
        let mut text = format!(
            "Sent {} files to {}, removed {}\n{}",
            self.sent.len(),
            self.server,
            self.removed.len(),
            manifests_text(&self.deployments)
        );
        for file in &self.unread {
            text.push_str(&format!(
                "  Warning: {} was edited; a server goes by the manifest alone\n",
                continued(file)
            ));
        }
        text
    }
}

#[derive(JsonSchema, Serialize)]
pub(crate) struct PullReport {
    server: String,
    workspace: String,
    /// How many files of its own the tenant has.
    files: usize,
    /// How many of them, and of manifests, were other ones here.
    written: usize,
    deployments: Vec<ExchangedManifest>,
}

impl Report for PullReport {
    const SCHEMA: &'static str = "nimbus/workspace-pull/1";

    fn text(&self, _: Terminal) -> String {
        format!(
            "Fetched {} files from {} to {}, wrote {}\n{}",
            self.files,
            self.server,
            self.workspace,
            self.written,
            manifests_text(&self.deployments)
        )
    }
}

#[cfg(test)]
mod tests;
