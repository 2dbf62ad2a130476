//! `nimbus component …` on a server: its catalog of components.

use std::path::PathBuf;

use nimbus_control_client::encoded;
use nimbus_control_wire::{Binding, ComponentDraft, Contract};
use nimbus_core::{Error, ErrorCode, Result};
use nimbus_workspace::{FoundComponent, found_components};
use serde_json::{Map, Value, json};

use super::AdminReport;
use super::fleet::{self, ImpactArgs, PreviewVersionArgs, RolloutCommand, UpgradeArgs};
use super::repository::Checkout;
use super::server::{Connection, ServerArgs};
use crate::context::CommandContext;
use crate::exit::CommandOutcome;

#[derive(Debug, clap::Subcommand)]
pub(crate) enum CatalogCommand {
    /// Publish the components of a folder or a repository: templates, programs and what they are
    Import(ImportArgs),
    /// List components: your own and the operator's
    List(CatalogListArgs),
    /// Show a component with its contract
    Show(ComponentNameArgs),
    /// Publish a component's draft as a version
    Publish(PublishArgs),
    /// List versions of a component
    Versions(ComponentNameArgs),
    /// Show what is different between two versions
    Diff(CompareArgs),
    /// Say that a version should not be used any more, or take that back
    Deprecate(DeprecateArgs),
    /// Take a component out of the catalog; what is deployed of it goes on
    Remove(ComponentNameArgs),
    /// List where a component is deployed
    Instances(ComponentNameArgs),
    /// Show what a version would mean for every instance, in the tenant and all below it
    Impact(ImpactArgs),
    /// Preview instances with a version that they do not have; nothing is recorded as deployed
    Preview(PreviewVersionArgs),
    /// Upgrade one instance to a later version
    Upgrade(UpgradeArgs),
    /// Upgrade instances in waves
    #[command(subcommand)]
    Rollout(RolloutCommand),
}

#[derive(clap::Args, Debug)]
pub(crate) struct ImportArgs {
    #[command(flatten)]
    server: ServerArgs,
    /// Folder with tools/templates/config and stacks; without it the shipped library
    folder: Option<PathBuf>,
    /// A git repository instead: a path or an address
    #[arg(long, value_name = "REPOSITORY", conflicts_with = "folder")]
    git: Option<String>,
    /// Branch or tag of the repository
    #[arg(long, value_name = "REF", requires = "git")]
    branch: Option<String>,
    /// Only these components
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// Cloud of components that the folder does not say it of
    #[arg(long, value_name = "CLOUD")]
    provider: Option<String>,
    /// Semantic type of components that the folder does not say it of
    #[arg(long = "type", value_name = "TYPE")]
    semantic_type: Option<String>,
    /// What changed, for whoever upgrades
    #[arg(long, default_value = "imported")]
    changelog: String,
    /// They belong to the platform: nobody edits them by mistake
    #[arg(long)]
    system: bool,
    /// Save drafts and publish nothing
    #[arg(long)]
    draft: bool,
    /// Publish also what those who use a component could not take as they are
    #[arg(long)]
    allow_breaking: bool,
}

#[derive(clap::Args, Debug)]
pub(crate) struct CatalogListArgs {
    #[command(flatten)]
    server: ServerArgs,
    /// Only those of this cloud
    #[arg(long, value_name = "CLOUD")]
    provider: Option<String>,
    /// Only those of this semantic type
    #[arg(long = "type", value_name = "TYPE")]
    semantic_type: Option<String>,
    /// Only those with this in name or description
    #[arg(long, value_name = "TEXT")]
    search: Option<String>,
}

#[derive(clap::Args, Debug)]
pub(crate) struct ComponentNameArgs {
    #[command(flatten)]
    server: ServerArgs,
    /// The component
    name: String,
}

#[derive(clap::Args, Debug)]
pub(crate) struct PublishArgs {
    #[command(flatten)]
    server: ServerArgs,
    /// The component
    name: String,
    /// What changed, for whoever upgrades
    #[arg(long)]
    changelog: String,
    /// Also what those who use the component could not take as they are
    #[arg(long)]
    allow_breaking: bool,
    /// How instances get over it, where it breaks the contract of the one before: in-place
    #[arg(long, value_name = "WORKFLOW")]
    upgrade_workflow: Option<String>,
}

#[derive(clap::Args, Debug)]
pub(crate) struct CompareArgs {
    #[command(flatten)]
    server: ServerArgs,
    /// The component
    name: String,
    /// The version
    version: i32,
    /// The version to compare with; without it the one before
    #[arg(long, value_name = "VERSION")]
    since: Option<i32>,
}

#[derive(clap::Args, Debug)]
pub(crate) struct DeprecateArgs {
    #[command(flatten)]
    server: ServerArgs,
    /// The component
    name: String,
    /// The version
    version: i32,
    /// Why, and what to use instead; without it the version may be used again
    #[arg(long)]
    reason: Option<String>,
}

const COLUMNS: &[&str] = &[
    "name",
    "provider",
    "semantic_type",
    "version",
    "shared",
    "description",
];
const VERSION_COLUMNS: &[&str] = &[
    "version",
    "semantic_version",
    "published_at",
    "deprecated_at",
    "changelog",
];
const INSTANCE_COLUMNS: &[&str] = &[
    "id",
    "deployment",
    "environment",
    "rehearsal",
    "version",
    "status",
];

impl CatalogCommand {
    fn server(&self) -> &ServerArgs {
        match self {
            Self::Import(args) => &args.server,
            Self::List(args) => &args.server,
            Self::Show(args)
            | Self::Versions(args)
            | Self::Remove(args)
            | Self::Instances(args) => &args.server,
            Self::Publish(args) => &args.server,
            Self::Diff(args) => &args.server,
            Self::Deprecate(args) => &args.server,
            Self::Impact(args) => &args.server,
            Self::Preview(args) => &args.server,
            Self::Upgrade(args) => &args.server,
            Self::Rollout(command) => command.server(),
        }
    }
}

pub(crate) async fn run(
    command: CatalogCommand,
    context: &CommandContext,
) -> Result<CommandOutcome> {
    let mut server = Connection::open(command.server(), context).await?;
    let report = match command {
        CatalogCommand::Import(args) => import(args, &mut server).await?,
        CatalogCommand::List(args) => {
            let mut query = Vec::new();
            for (name, value) in [
                ("provider", &args.provider),
                ("semantic_type", &args.semantic_type),
                ("text", &args.search),
            ] {
                query.extend(value.as_deref().map(|value| (name, value)));
            }
            let path = server.path("components", &query);
            AdminReport::list(server.client.list(&path).await?, COLUMNS)
        }
        CatalogCommand::Show(args) => {
            let path = server.path(&component(&args.name), &[]);
            let shown = server.client.get(&path).await?;
            AdminReport::item(
                shown,
                &[
                    "name",
                    "display_name",
                    "description",
                    "provider",
                    "semantic_type",
                    "language",
                    "version",
                    "shared",
                ],
            )
        }
        CatalogCommand::Publish(args) => {
            let path = server.path(&format!("{}/publish", component(&args.name)), &[]);
            let body = json!({
                "changelog": args.changelog,
                "allow_breaking": args.allow_breaking,
                "upgrade_workflow": args.upgrade_workflow,
            });
            let published = server.client.post(&path, &body).await?;
            let text = told(&args.name, &published);
            AdminReport::done(published, text)
        }
        CatalogCommand::Versions(args) => {
            let path = server.path(&format!("{}/versions", component(&args.name)), &[]);
            AdminReport::list(server.client.list(&path).await?, VERSION_COLUMNS)
        }
        CatalogCommand::Diff(args) => {
            let since = args.since.map(|since| since.to_string());
            let query: Vec<_> = since
                .iter()
                .map(|since| ("since", since.as_str()))
                .collect();
            let place = format!(
                "{}/versions/{}/changes",
                component(&args.name),
                args.version
            );
            let path = server.path(&place, &query);
            let changes = server.client.get(&path).await?;
            let text = difference(&changes);
            AdminReport::done(changes, text)
        }
        CatalogCommand::Deprecate(args) => {
            let place = format!(
                "{}/versions/{}/deprecate",
                component(&args.name),
                args.version
            );
            let path = server.path(&place, &[]);
            let body = json!({"reason": args.reason});
            AdminReport::item(server.client.post(&path, &body).await?, VERSION_COLUMNS)
        }
        CatalogCommand::Remove(args) => {
            let path = server.path(&component(&args.name), &[]);
            server.client.delete(&path).await?;
            let text = format!("removed {} from the catalog", args.name);
            AdminReport::done(json!({"removed": args.name}), text)
        }
        CatalogCommand::Instances(args) => {
            let path = server.path(&format!("{}/instances", component(&args.name)), &[]);
            AdminReport::list(server.client.list(&path).await?, INSTANCE_COLUMNS)
        }
        CatalogCommand::Impact(args) => fleet::impact(args, &mut server).await?,
        CatalogCommand::Preview(args) => fleet::preview(args, &mut server).await?,
        CatalogCommand::Upgrade(args) => fleet::upgrade(args, &mut server).await?,
        CatalogCommand::Rollout(command) => fleet::rollout(command, &mut server).await?,
    };
    context.output.result(&report)?;
    Ok(CommandOutcome::Done)
}

fn component(name: &str) -> String {
    format!("components/{}", encoded(name))
}

/// What was published, on one line.
fn told(name: &str, published: &Value) -> String {
    let version = &published["version"];
    let semantic = version["semantic_version"].as_str().unwrap_or_default();
    match published["created"] == true {
        true => format!(
            "{name}: published version {} ({semantic})",
            version["version"]
        ),
        false => format!("{name}: version {} is the same already", version["version"]),
    }
}

fn difference(changes: &Value) -> String {
    let mut lines = vec![format!(
        "version {} since {}: {}",
        changes["to"],
        changes["from"],
        match changes["breaking"] == true {
            true => "breaks those who use it",
            false => "breaks nobody",
        }
    )];
    for change in changes["contract"].as_array().into_iter().flatten() {
        let sign = if change["breaking"] == true { "!" } else { " " };
        let text = |key: &str| change[key].as_str().unwrap_or_default().to_owned();
        lines.push(format!("{sign} {}: {}", text("place"), text("message")));
    }
    for file in changes["files"].as_array().into_iter().flatten() {
        let text = |key: &str| file[key].as_str().unwrap_or_default().to_owned();
        lines.push(format!("{} {}", text("change"), text("path")));
        lines.push(text("text"));
    }
    lines.join("\n")
}

async fn import(args: ImportArgs, server: &mut Connection) -> Result<AdminReport> {
    let checkout = match (&args.git, &args.folder) {
        (Some(repository), _) => Checkout::of(repository, args.branch.as_deref()).await?,
        (None, Some(folder)) => Checkout::in_folder(folder),
        (None, None) => Checkout::shipped()?,
    };
    let mut found = found_components(checkout.root())?;
    if !args.only.is_empty() {
        for name in &args.only {
            if !found.iter().any(|one| one.name.as_str() == name) {
                let message = format!("there is no component {name} in the folder");
                return Err(Error::new(ErrorCode::USAGE, message));
            }
        }
        found.retain(|one| args.only.iter().any(|name| one.name.as_str() == name));
    }
    // All of them before the first is sent: nothing is imported of a folder that cannot be.
    let drafts = found
        .into_iter()
        .map(|one| draft(one, &args))
        .collect::<Result<Vec<_>>>()?;
    let known = server.client.list(&server.path("components", &[])).await?;
    let own = |name: &str| {
        let items = known["items"].as_array().into_iter().flatten();
        items
            .into_iter()
            .any(|one| one["name"] == name && one["shared"] == false)
    };
    let mut lines = Vec::new();
    let mut results = Vec::new();
    for draft in drafts {
        let name = draft.name.clone().unwrap_or_default();
        let body = serde_json::to_value(&draft).unwrap_or_default();
        match own(&name) {
            true => {
                let path = server.path(&component(&name), &[]);
                server.client.put(&path, &body).await?
            }
            false => {
                let path = server.path("components", &[]);
                server.client.post(&path, &body).await?
            }
        };
        if args.draft {
            lines.push(format!("{name}: saved as a draft"));
            results.push(json!({"name": name, "published": false}));
            continue;
        }
        let path = server.path(&format!("{}/publish", component(&name)), &[]);
        let body = json!({"changelog": args.changelog, "allow_breaking": args.allow_breaking});
        let published = server.client.post(&path, &body).await?;
        lines.push(told(&name, &published));
        results.push(json!({
            "name": name,
            "published": published["created"],
            "version": published["version"]["version"],
            "semantic_version": published["version"]["semantic_version"],
        }));
    }
    lines.push(format!("{} components", results.len()));
    Ok(AdminReport::done(
        json!({"items": results}),
        lines.join("\n"),
    ))
}

/// A component of a folder as the server takes it.
fn draft(found: FoundComponent, args: &ImportArgs) -> Result<ComponentDraft> {
    let name = found.name.to_string();
    let missing = |what: &str, flag: &str| {
        let message = format!("the folder does not say the {what} of {name}");
        Error::new(ErrorCode::USAGE, message)
            .with_help(format!("write it into tools/catalog.yaml, or give {flag}"))
    };
    let provider = found.provider.or_else(|| args.provider.clone());
    let semantic_type = found.semantic_type.or_else(|| args.semantic_type.clone());
    let (contract, settings, description) = contract_of(&found.template, found.resolvers)?;
    Ok(ComponentDraft {
        provider: provider.ok_or_else(|| missing("cloud", "--provider"))?,
        semantic_type: semantic_type.ok_or_else(|| missing("semantic type", "--type"))?,
        display_name: found.display_name.unwrap_or_default(),
        description,
        language: found.language.to_owned(),
        contract,
        settings,
        files: found.files,
        system: args.system,
        name: Some(name),
    })
}

fn contract_of(
    template: &Map<String, Value>,
    resolvers: Map<String, Value>,
) -> Result<(Contract, Map<String, Value>, String)> {
    let (_, description, contract, settings) = nimbus_catalog::from_template(template);
    let resolvers = resolvers
        .into_iter()
        .map(|(input, binding)| {
            let binding = serde_json::from_value::<Binding>(binding).map_err(|error| {
                let message = format!("the resolver of {input} is not understood: {error}");
                Error::new(ErrorCode::COMPONENT_INVALID, message)
                    .with_help("write it as {resolver: ipam, output: cidr, inputs: {…}}")
            })?;
            Ok((input, binding))
        })
        .collect::<Result<_>>()?;
    let contract = Contract {
        inputs: contract.inputs,
        outputs: contract.outputs,
        resolvers,
    };
    Ok((contract, settings, description))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_published_is_said_on_one_line() {
        let version = json!({"version": 2, "semantic_version": "1.1.0"});
        let published = json!({"created": true, "version": version});
        assert_eq!(told("a", &published), "a: published version 2 (1.1.0)");
        let same = json!({"created": false, "version": version});
        assert_eq!(told("a", &same), "a: version 2 is the same already");
    }
}
