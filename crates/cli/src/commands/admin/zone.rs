//! `nimbus zone` and environments in zones.

use std::path::{Path, PathBuf};

use nimbus_control_client::encoded;
use nimbus_core::{Error, ErrorCode, Result};
use nimbus_document::Document;
use serde_json::{Value, json};

use super::AdminReport;
use super::server::{Connection, ServerArgs};
use crate::context::CommandContext;
use crate::exit::CommandOutcome;

#[derive(Debug, clap::Subcommand)]
pub(crate) enum ZoneCommand {
    /// List landing zones: your own and the operator's
    List(ZoneListArgs),
    /// Show a landing zone with its templates
    Show(ZoneNameArgs),
    /// Make a landing zone
    Create(ZoneWriteArgs),
    /// Change a landing zone
    Update(ZoneWriteArgs),
    /// Open a landing zone for environments and deploy its services
    Publish(ZonePublishArgs),
    /// Close a landing zone for new environments
    Retire(ZoneNameArgs),
    /// Delete a landing zone in which nothing is left
    Delete(ZoneNameArgs),
    /// Set what environments made from a template have to have
    Template(ZoneTemplateArgs),
    /// List environments in landing zones
    Environments(ZoneListArgs),
    /// Show an environment in a landing zone
    Environment(ZoneEnvironmentArgs),
    /// Make an environment and deploy what it has to have
    CreateEnvironment(NewEnvironmentArgs),
    /// Destroy what an environment has to have, and remove it
    DeleteEnvironment(ZoneEnvironmentArgs),
}

#[derive(clap::Args, Debug)]
pub(crate) struct ZoneListArgs {
    #[command(flatten)]
    server: ServerArgs,
}

#[derive(clap::Args, Debug)]
pub(crate) struct ZoneNameArgs {
    #[command(flatten)]
    server: ServerArgs,
    /// The landing zone
    zone: String,
}

#[derive(clap::Args, Debug)]
pub(crate) struct ZoneWriteArgs {
    #[command(flatten)]
    server: ServerArgs,
    /// The landing zone
    zone: String,
    /// Its cloud
    #[arg(long, value_name = "CLOUD")]
    provider: String,
    /// One of the tenant's cloud accounts; needed before it is published
    #[arg(long, value_name = "NAME")]
    account: Option<String>,
    /// Its region, for stacks that want one
    #[arg(long, value_name = "REGION", default_value = "")]
    region: String,
    /// A file with its own services: a list of {component, parameters}
    #[arg(long, value_name = "FILE")]
    services: Option<PathBuf>,
    /// A file with how resolvers are configured once its services are there: configurations by resolver
    #[arg(long, value_name = "FILE")]
    resolvers: Option<PathBuf>,
    /// What it is for
    #[arg(long, value_name = "TEXT", default_value = "")]
    description: String,
}

#[derive(clap::Args, Debug)]
pub(crate) struct ZonePublishArgs {
    #[command(flatten)]
    server: ServerArgs,
    /// The landing zone
    zone: String,
    /// Deploy its services to a simulated cloud
    #[arg(long)]
    rehearse: bool,
}

#[derive(clap::Args, Debug)]
pub(crate) struct ZoneTemplateArgs {
    #[command(flatten)]
    server: ServerArgs,
    /// The landing zone
    zone: String,
    /// The template
    template: String,
    /// A file with the components: a list of {component, parameters}
    #[arg(long, value_name = "FILE", required_unless_present = "remove")]
    components: Option<PathBuf>,
    /// Remove the template
    #[arg(long, conflicts_with = "components")]
    remove: bool,
    /// What it is for
    #[arg(long, value_name = "TEXT", default_value = "")]
    description: String,
}

#[derive(clap::Args, Debug)]
pub(crate) struct ZoneEnvironmentArgs {
    #[command(flatten)]
    server: ServerArgs,
    /// The landing zone
    zone: String,
    /// The environment
    environment: String,
}

#[derive(clap::Args, Debug)]
pub(crate) struct NewEnvironmentArgs {
    #[command(flatten)]
    server: ServerArgs,
    /// The landing zone
    zone: String,
    /// The environment
    environment: String,
    /// The template; nothing is mandatory without one
    #[arg(long, value_name = "NAME")]
    template: Option<String>,
    /// Deploy to a simulated cloud
    #[arg(long)]
    rehearse: bool,
}

const COLUMNS: &[&str] = &["name", "provider", "account", "region", "status", "shared"];
const FIELDS: &[&str] = &[
    "name",
    "display_name",
    "provider",
    "account",
    "region",
    "status",
    "system_services",
    "templates",
    "platform",
];
const ENVIRONMENT_COLUMNS: &[&str] = &["zone", "name", "template", "status", "deployment", "run"];

impl ZoneCommand {
    fn server(&self) -> &ServerArgs {
        match self {
            Self::List(args) | Self::Environments(args) => &args.server,
            Self::Show(args) | Self::Retire(args) | Self::Delete(args) => &args.server,
            Self::Create(args) | Self::Update(args) => &args.server,
            Self::Publish(args) => &args.server,
            Self::Template(args) => &args.server,
            Self::Environment(args) | Self::DeleteEnvironment(args) => &args.server,
            Self::CreateEnvironment(args) => &args.server,
        }
    }
}

pub(crate) async fn run(command: ZoneCommand, context: &CommandContext) -> Result<CommandOutcome> {
    let mut server = Connection::open(command.server(), context).await?;
    let report = match command {
        ZoneCommand::List(_) => {
            let path = server.path("zones", &[]);
            AdminReport::list(server.client.list(&path).await?, COLUMNS)
        }
        ZoneCommand::Show(args) => {
            let path = server.path(&zone(&args.zone), &[]);
            AdminReport::item(server.client.get(&path).await?, FIELDS)
        }
        ZoneCommand::Create(args) => {
            let path = server.path("zones", &[]);
            AdminReport::item(server.client.post(&path, &body(&args)?).await?, COLUMNS)
        }
        ZoneCommand::Update(args) => {
            let path = server.path(&zone(&args.zone), &[]);
            AdminReport::item(server.client.put(&path, &body(&args)?).await?, COLUMNS)
        }
        ZoneCommand::Publish(args) => {
            let path = server.path(&format!("{}/publish", zone(&args.zone)), &[]);
            let body = json!({"rehearsal": args.rehearse});
            AdminReport::item(server.client.post(&path, &body).await?, FIELDS)
        }
        ZoneCommand::Retire(args) => {
            let path = server.path(&format!("{}/retire", zone(&args.zone)), &[]);
            AdminReport::item(server.client.post(&path, &json!({})).await?, COLUMNS)
        }
        ZoneCommand::Delete(args) => {
            let path = server.path(&zone(&args.zone), &[]);
            server.client.delete(&path).await?;
            let text = format!("deleted the landing zone {}", args.zone);
            AdminReport::done(json!({"deleted": args.zone}), text)
        }
        ZoneCommand::Template(args) => template(&args, &mut server).await?,
        ZoneCommand::Environments(_) => {
            let path = server.path("environments", &[]);
            AdminReport::list(server.client.list(&path).await?, ENVIRONMENT_COLUMNS)
        }
        ZoneCommand::Environment(args) => {
            let path = server.path(&environment(&args.zone, &args.environment), &[]);
            AdminReport::item(server.client.get(&path).await?, ENVIRONMENT_COLUMNS)
        }
        ZoneCommand::CreateEnvironment(args) => {
            let path = server.path(&environment(&args.zone, &args.environment), &[]);
            let body = json!({"template": args.template, "rehearsal": args.rehearse});
            let made = server.client.post(&path, &body).await?;
            AdminReport::item(made, ENVIRONMENT_COLUMNS)
        }
        ZoneCommand::DeleteEnvironment(args) => {
            let path = server.path(&environment(&args.zone, &args.environment), &[]);
            let gone = server.client.delete(&path).await?;
            AdminReport::item(gone, ENVIRONMENT_COLUMNS)
        }
    };
    context.output.result(&report)?;
    Ok(CommandOutcome::Done)
}

async fn template(args: &ZoneTemplateArgs, server: &mut Connection) -> Result<AdminReport> {
    let place = format!("{}/templates/{}", zone(&args.zone), encoded(&args.template));
    let path = server.path(&place, &[]);
    if args.remove {
        server.client.delete(&path).await?;
        let text = format!("removed the template {}", args.template);
        return Ok(AdminReport::done(json!({"removed": args.template}), text));
    }
    let components = match &args.components {
        Some(path) => read(path)?,
        None => json!([]),
    };
    let body = json!({"description": args.description, "mandatory_components": components});
    let set = server.client.put(&path, &body).await?;
    Ok(AdminReport::item(
        set,
        &["name", "description", "mandatory_components"],
    ))
}

fn zone(name: &str) -> String {
    format!("zones/{}", encoded(name))
}

fn environment(zone_name: &str, name: &str) -> String {
    format!("{}/environments/{}", zone(zone_name), encoded(name))
}

fn body(args: &ZoneWriteArgs) -> Result<Value> {
    let services = match &args.services {
        Some(path) => read(path)?,
        None => json!([]),
    };
    let resolvers = match &args.resolvers {
        Some(path) => read(path)?,
        None => json!({}),
    };
    Ok(json!({
        "name": args.zone,
        "provider": args.provider,
        "account": args.account,
        "region": args.region,
        "description": args.description,
        "system_services": services,
        "resolvers": resolvers,
    }))
}

/// A file in YAML or JSON.
fn read(path: &Path) -> Result<Value> {
    let content = std::fs::read(path).map_err(|error| {
        let message = format!("{} cannot be read: {error}", path.display());
        Error::new(ErrorCode::FILE_UNREADABLE, message)
    })?;
    let document = Document::parse_bytes(&path.display().to_string(), &content)?;
    document.to_json(document.root())
}
