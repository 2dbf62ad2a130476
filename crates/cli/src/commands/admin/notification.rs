//! `nimbus notification`: what a server tells you in person.

use std::str::FromStr;

use nimbus_control_client::encoded;
use nimbus_core::Result;
use serde_json::{Value, json};

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
    /// Show or choose what you are told and how: in the application, by mail at once, or in a digest
    Preferences {
        /// A choice such as run_failed.email=digest, *.email=off or run_failed.in_app=default; may be repeated
        #[arg(long = "set", value_name = "KIND.CHANNEL=MODE")]
        set: Vec<PreferenceChoice>,
        /// How often the digest is sent: daily or weekly
        #[arg(long, value_name = "PERIOD")]
        digest: Option<String>,
        /// Hour of the digest in UTC, 0 to 23; 7 without it
        #[arg(long, value_name = "HOUR", requires = "digest")]
        hour: Option<u8>,
        /// Day of a weekly digest, 1 for Monday to 7; Monday without it
        #[arg(long, value_name = "DAY", requires = "digest")]
        weekday: Option<u8>,
    },
}

/// One choice, as it is written. Whether it means something is the server's to say.
#[derive(Clone, Debug)]
struct PreferenceChoice {
    kind: String,
    channel: String,
    mode: String,
}

impl FromStr for PreferenceChoice {
    type Err = &'static str;

    fn from_str(text: &str) -> std::result::Result<Self, Self::Err> {
        const WANTED: &str = "write KIND.CHANNEL=MODE, such as run_failed.email=digest";
        let (place, mode) = text.split_once('=').ok_or(WANTED)?;
        let (kind, channel) = place.split_once('.').ok_or(WANTED)?;
        Ok(Self {
            kind: kind.to_owned(),
            channel: channel.to_owned(),
            mode: mode.to_owned(),
        })
    }
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
        NotificationCommand::Preferences {
            set,
            digest,
            hour,
            weekday,
        } => {
            let path = server.path("notifications/preferences", &[]);
            let chosen = match (set.is_empty(), &digest) {
                (true, None) => server.client.get(&path).await?,
                _ => {
                    let body = preferences(&set, digest, hour, weekday);
                    server.client.patch(&path, &body).await?
                }
            };
            AdminReport::item(chosen, &["kinds", "digest", "digest_due_at", "mail"])
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

fn preferences(
    set: &[PreferenceChoice],
    digest: Option<String>,
    hour: Option<u8>,
    weekday: Option<u8>,
) -> Value {
    let choice = |one: &PreferenceChoice| json!({"kind": one.kind, "channel": one.channel, "mode": one.mode});
    let mut body = json!({"set": set.iter().map(choice).collect::<Vec<_>>()});
    if let Some(period) = digest {
        body["digest"] = json!({"period": period});
        for (name, number) in [("hour", hour), ("weekday", weekday)] {
            if let Some(number) = number {
                body["digest"][name] = json!(number);
            }
        }
    }
    body
}
