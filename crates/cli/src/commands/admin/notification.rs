//! `nimbus notification`: what a server tells you in person.

use nimbus_control_client::encoded;
use nimbus_core::Result;
use serde_json::json;

use super::AdminReport;
use super::server::{Connection, ServerArgs};
use crate::context::CommandContext;
use crate::exit::CommandOutcome;

#[derive(clap::Args, Debug)]
pub(crate) struct NotificationArgs {
    #[command(flatten)]
    server: ServerArgs,
    #[command(subcommand)]
    command: NotificationCommand,
}

#[derive(Debug, clap::Subcommand)]
enum NotificationCommand {
    /// List what you were told, newest first
    List {
        /// Only what you have not read
        #[arg(long)]
        unread: bool,
    },
    /// Note that you have read something
    Read {
        /// The notification
        #[arg(required_unless_present = "all")]
        id: Option<String>,
        /// Everything that you were told
        #[arg(long, conflicts_with = "id")]
        all: bool,
    },
}

const COLUMNS: &[&str] = &["id", "created_at", "kind", "title", "read_at"];

const FIELDS: &[&str] = &[
    "id",
    "kind",
    "title",
    "text",
    "approval",
    "run",
    "deployment",
    "environment",
    "created_at",
    "read_at",
];

pub(crate) async fn run(
    args: NotificationArgs,
    context: &CommandContext,
) -> Result<CommandOutcome> {
    let mut server = Connection::open(&args.server, context).await?;
    let report = match args.command {
        NotificationCommand::List { unread } => {
            let asked: &[(&str, &str)] = match unread {
                true => &[("unread", "true")],
                false => &[],
            };
            let path = server.path("notifications", asked);
            AdminReport::list(server.client.list(&path).await?, COLUMNS)
        }
        NotificationCommand::Read {
            id: Some(id),
            all: false,
        } => {
            let path = server.path(&format!("notifications/{}/read", encoded(&id)), &[]);
            AdminReport::item(server.client.post(&path, &json!({})).await?, FIELDS)
        }
        NotificationCommand::Read { .. } => {
            let path = server.path("notifications/read-all", &[]);
            let read = server.client.post(&path, &json!({})).await?;
            let text = format!("{} were not read before", read["read"]);
            AdminReport::done(read, text)
        }
    };
    context.output.result(&report)?;
    Ok(CommandOutcome::Done)
}
