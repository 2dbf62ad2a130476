//! `nimbus cmdb`: what a tenant has, as a server knows it.

use std::path::{Path, PathBuf};

use nimbus_control_client::encoded;
use nimbus_core::{Error, ErrorCode, Result};
use nimbus_document::Document;
use serde_json::{Value, json};

use super::AdminReport;
use super::server::{Connection, ServerArgs};
use crate::context::CommandContext;
use crate::exit::CommandOutcome;

#[derive(clap::Args, Debug)]
pub(crate) struct CmdbArgs {
    #[command(flatten)]
    server: ServerArgs,
    #[command(subcommand)]
    command: CmdbCommand,
}

#[derive(Debug, clap::Subcommand)]
enum CmdbCommand {
    /// List configuration items by name
    List(ItemListArgs),
    /// Show an item
    Show(ItemArgs),
    /// Show what happened to an item, newest first
    History(ItemArgs),
    /// Show what is around an item
    Graph {
        #[command(flatten)]
        item: ItemArgs,
        /// How many relationships away, 1 to 5
        #[arg(long, value_name = "NUMBER", default_value_t = 1)]
        depth: u32,
        /// At most so many items, 1 to 2000
        #[arg(long, value_name = "NUMBER", default_value_t = 200)]
        items: u32,
    },
    /// Search compartments, classes and items by words
    Search {
        /// Words; each begins a word of what is found
        #[arg(required = true)]
        words: Vec<String>,
        /// Only these: compartment, class, resource
        #[arg(long, value_name = "TYPE", value_delimiter = ',')]
        types: Vec<String>,
    },
    /// Put an item into a compartment
    Move {
        #[command(flatten)]
        item: ItemArgs,
        /// The compartment's id; without it the item is in none
        #[arg(long, value_name = "ID")]
        compartment: Option<String>,
    },
    /// Say that an item has to do with another
    Relate {
        /// The item that does it
        source: String,
        /// What it does, such as `depends_on`
        relationship: String,
        /// The item that it does it to
        target: String,
    },
    /// Take back what somebody said with `relate`
    Unrelate {
        /// The relationship's id
        relationship: String,
    },
    /// List classes of items
    Classes {
        /// Only those with this in their name
        #[arg(long, value_name = "TEXT")]
        text: Option<String>,
    },
    /// Make a class of items, or describe one
    Class {
        /// The class
        name: String,
        /// A file with the JSON Schema of what imported items say
        #[arg(long, value_name = "FILE")]
        schema: Option<PathBuf>,
        /// A relationship that its items may begin; all when none is given
        #[arg(long, value_name = "NAME")]
        relationship: Vec<String>,
        /// Its cloud
        #[arg(long, value_name = "CLOUD")]
        provider: Option<String>,
        /// What it is for
        #[arg(long, value_name = "TEXT", default_value = "")]
        description: String,
    },
    /// List compartments
    Compartments {
        /// Only those directly below this one
        #[arg(long, value_name = "ID")]
        parent: Option<String>,
    },
    /// Make a compartment
    Compartment {
        /// Its name
        name: String,
        /// The one that it is below
        #[arg(long, value_name = "ID")]
        parent: Option<String>,
    },
    /// Import items from a file: all of them, or none
    Import {
        /// JSON lines (`.jsonl`) or CSV (`.csv`)
        file: PathBuf,
        /// Only check it
        #[arg(long)]
        dry_run: bool,
    },
    /// List imports, newest first
    Imports,
    /// List from which states items are, newest first
    Syncs,
}

#[derive(clap::Args, Debug)]
struct ItemArgs {
    /// The item's id
    item: String,
}

#[derive(clap::Args, Debug)]
struct ItemListArgs {
    /// Only items of this class
    #[arg(long, value_name = "CLASS")]
    class: Option<String>,
    /// Only what is this in the semantic layer
    #[arg(long, value_name = "TYPE")]
    semantic_type: Option<String>,
    /// Only items of this cloud
    #[arg(long, value_name = "CLOUD")]
    provider: Option<String>,
    /// Only items in this compartment
    #[arg(long, value_name = "ID")]
    compartment: Option<String>,
    /// Only items of this deployment
    #[arg(long, value_name = "ID")]
    deployment: Option<String>,
    /// Only items of this environment
    #[arg(long, value_name = "NAME")]
    environment: Option<String>,
    /// Only items of this unit
    #[arg(long, value_name = "NAME")]
    unit: Option<String>,
    /// Only items that runs or that imports brought
    #[arg(long, value_name = "SOURCE", value_parser = ["run", "import"])]
    source: Option<String>,
    /// Only the item with this id in its cloud
    #[arg(long, value_name = "ID")]
    cloud_resource_id: Option<String>,
    /// Words, each of which begins a word of the item
    #[arg(long, value_name = "WORDS")]
    text: Option<String>,
    /// Only items with this attribute, as name=value
    #[arg(long, value_name = "NAME=VALUE")]
    attribute: Vec<String>,
    /// What became of them
    #[arg(long, value_name = "STATUS", default_value = "active", value_parser = ["active", "decommissioned", "any"])]
    status: String,
}

const COLUMNS: &[&str] = &[
    "id",
    "name",
    "class",
    "cloud_resource_id",
    "deployment",
    "environment",
    "unit",
    "status",
];
const FIELDS: &[&str] = &[
    "id",
    "name",
    "class",
    "semantic_type",
    "provider",
    "compartment",
    "cloud_resource_id",
    "deployment",
    "environment",
    "unit",
    "rehearsal",
    "status",
    "revision",
    "urn",
    "state_version",
    "attributes",
    "left_out",
    "updated_at",
];
const HISTORY_COLUMNS: &[&str] = &["revision", "at", "change", "run", "user", "changes"];
const CLASS_COLUMNS: &[&str] = &[
    "name",
    "provider",
    "semantic_type",
    "relationships",
    "description",
];
const COMPARTMENT_COLUMNS: &[&str] = &["id", "name", "parent", "provider"];
const IMPORT_COLUMNS: &[&str] = &[
    "id",
    "at",
    "status",
    "dry_run",
    "created",
    "updated",
    "decommissioned",
    "unchanged",
    "problem_count",
];
const SYNC_COLUMNS: &[&str] = &[
    "deployment",
    "environment",
    "rehearsal",
    "unit",
    "items",
    "synced_at",
    "problem",
];

pub(crate) async fn run(args: CmdbArgs, context: &CommandContext) -> Result<CommandOutcome> {
    let mut server = Connection::open(&args.server, context).await?;
    let report = match args.command {
        CmdbCommand::List(args) => list(&args, &mut server).await?,
        CmdbCommand::Show(args) => {
            let path = server.path(&item(&args), &[]);
            AdminReport::item(server.client.get(&path).await?, FIELDS)
        }
        CmdbCommand::History(args) => {
            let path = server.path(&format!("{}/history", item(&args)), &[]);
            AdminReport::list(server.client.list(&path).await?, HISTORY_COLUMNS)
        }
        CmdbCommand::Graph {
            item: args,
            depth,
            items,
        } => {
            let (depth, items) = (depth.to_string(), items.to_string());
            let query = [("depth", depth.as_str()), ("items", items.as_str())];
            let path = server.path(&format!("{}/graph", item(&args)), &query);
            graph(server.client.get(&path).await?)
        }
        CmdbCommand::Search { words, types } => {
            let (words, types) = (words.join(" "), types.join(","));
            let mut query = vec![("query", words.as_str())];
            if !types.is_empty() {
                query.push(("types", types.as_str()));
            }
            let path = server.path("cmdb/search", &query);
            let columns = &["type", "id", "name", "class", "deployment", "environment"];
            AdminReport::list(server.client.list(&path).await?, columns)
        }
        CmdbCommand::Move {
            item: args,
            compartment,
        } => {
            let path = server.path(&item(&args), &[]);
            let body = json!({"compartment": compartment});
            AdminReport::item(server.client.patch(&path, &body).await?, COLUMNS)
        }
        CmdbCommand::Relate {
            source,
            relationship,
            target,
        } => {
            let path = server.path("cmdb/relationships", &[]);
            let body = json!({"source": source, "relationship": relationship, "target": target});
            let columns = &["id", "source", "relationship", "target"];
            AdminReport::item(server.client.post(&path, &body).await?, columns)
        }
        CmdbCommand::Unrelate { relationship } => {
            let place = format!("cmdb/relationships/{}", encoded(&relationship));
            let path = server.path(&place, &[]);
            server.client.delete(&path).await?;
            let text = format!("took the relationship {relationship} back");
            AdminReport::done(json!({"deleted": relationship}), text)
        }
        CmdbCommand::Classes { text } => {
            let query: Vec<_> = text.iter().map(|text| ("text", text.as_str())).collect();
            let path = server.path("cmdb/classes", &query);
            AdminReport::list(server.client.list(&path).await?, CLASS_COLUMNS)
        }
        CmdbCommand::Class {
            name,
            schema,
            relationship,
            provider,
            description,
        } => {
            let schema = match &schema {
                Some(path) => read_schema(path)?,
                None => json!({}),
            };
            let body = json!({"attributes": schema, "relationships": relationship,
                "provider": provider, "description": description});
            let path = server.path(&format!("cmdb/classes/{}", encoded(&name)), &[]);
            AdminReport::item(server.client.put(&path, &body).await?, CLASS_COLUMNS)
        }
        CmdbCommand::Compartments { parent } => {
            let query: Vec<_> = parent.iter().map(|id| ("parent", id.as_str())).collect();
            let path = server.path("cmdb/compartments", &query);
            AdminReport::list(server.client.list(&path).await?, COMPARTMENT_COLUMNS)
        }
        CmdbCommand::Compartment { name, parent } => {
            let path = server.path("cmdb/compartments", &[]);
            let body = json!({"name": name, "parent": parent});
            AdminReport::item(server.client.post(&path, &body).await?, COMPARTMENT_COLUMNS)
        }
        CmdbCommand::Import { file, dry_run } => {
            let path = server.path("cmdb/imports", &[]);
            let body = import_body(&file, dry_run)?;
            AdminReport::item(server.client.post(&path, &body).await?, IMPORT_COLUMNS)
        }
        CmdbCommand::Imports => {
            let path = server.path("cmdb/imports", &[]);
            AdminReport::list(server.client.list(&path).await?, IMPORT_COLUMNS)
        }
        CmdbCommand::Syncs => {
            let path = server.path("cmdb/syncs", &[]);
            AdminReport::list(server.client.list(&path).await?, SYNC_COLUMNS)
        }
    };
    context.output.result(&report)?;
    Ok(CommandOutcome::Done)
}

async fn list(args: &ItemListArgs, server: &mut Connection) -> Result<AdminReport> {
    let attributes = args.attribute.join(",");
    let attribute = Some(attributes).filter(|text| !text.is_empty());
    let given = [
        ("class", &args.class),
        ("semantic_type", &args.semantic_type),
        ("provider", &args.provider),
        ("compartment", &args.compartment),
        ("deployment", &args.deployment),
        ("environment", &args.environment),
        ("unit", &args.unit),
        ("source", &args.source),
        ("cloud_resource_id", &args.cloud_resource_id),
        ("text", &args.text),
        ("attribute", &attribute),
    ];
    let mut query = vec![("status", args.status.as_str())];
    for (name, value) in given {
        query.extend(value.as_deref().map(|value| (name, value)));
    }
    let path = server.path("cmdb/items", &query);
    let found = server.client.list(&path).await?;
    Ok(AdminReport::list(found, COLUMNS))
}

fn item(args: &ItemArgs) -> String {
    format!("cmdb/items/{}", encoded(&args.item))
}

/// Relationships by names; a part of a graph says that it is one.
fn graph(data: Value) -> AdminReport {
    let rows = |name: &str| data[name].as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let items = rows("items");
    let name = |id: &Value| {
        let found = items.iter().find(|one| one["item"]["id"] == *id);
        found.map_or_else(|| text(id), |one| text(&one["item"]["name"]))
    };
    let mut shown = format!("{} items\n", items.len());
    for edge in rows("relationships") {
        let (source, target) = (name(&edge["source"]), name(&edge["target"]));
        let line = format!("{source} {} {target}", text(&edge["relationship"]));
        shown.push_str(&nimbus_core::printable_line(&line));
        shown.push('\n');
    }
    if data["complete"] != true {
        shown.push_str("there is more; ask for more --items, or begin further in\n");
    }
    let shown = shown.trim_end().to_owned();
    AdminReport::done(data, shown)
}

fn import_body(file: &Path, dry_run: bool) -> Result<Value> {
    let format = match file.extension().and_then(|one| one.to_str()) {
        Some("csv") => "csv",
        Some("jsonl" | "ndjson") => "jsonl",
        _ => {
            let message = format!("{} is neither .jsonl nor .csv", file.display());
            return Err(Error::new(ErrorCode::USAGE, message));
        }
    };
    let content = std::fs::read_to_string(file).map_err(|error| {
        let message = format!("{} cannot be read: {error}", file.display());
        Error::new(ErrorCode::FILE_UNREADABLE, message)
    })?;
    Ok(json!({"format": format, "content": content, "dry_run": dry_run}))
}

/// A file in YAML or JSON.
fn read_schema(path: &Path) -> Result<Value> {
    let content = std::fs::read(path).map_err(|error| {
        let message = format!("{} cannot be read: {error}", path.display());
        Error::new(ErrorCode::FILE_UNREADABLE, message)
    })?;
    let document = Document::parse_bytes(&path.display().to_string(), &content)?;
    document.to_json(document.root())
}
