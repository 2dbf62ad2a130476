//! `nimbus audit`: the audit trail.

use nimbus_control_client::encoded;
use nimbus_core::{Error, ErrorCode, Result};

use super::AdminReport;
use super::server::{Connection, ServerArgs};
use crate::context::CommandContext;
use crate::exit::CommandOutcome;

#[derive(clap::Args, Debug)]
pub(crate) struct AuditArgs {
    #[command(flatten)]
    server: ServerArgs,
    #[command(subcommand)]
    command: AuditCommand,
}

#[derive(Debug, clap::Subcommand)]
enum AuditCommand {
    /// List what happened, newest first
    List {
        #[command(flatten)]
        filter: AuditFilterArgs,
        /// Most entries to list
        #[arg(long, default_value_t = 50)]
        limit: u32,
    },
    /// Write entries to standard output, oldest first
    Export {
        #[command(flatten)]
        filter: AuditFilterArgs,
        /// jsonl or csv
        #[arg(long, default_value = "jsonl")]
        format: String,
    },
    /// Verify that nothing was changed, removed or reordered; names the entry if something was
    Verify,
}

#[derive(clap::Args, Debug)]
struct AuditFilterArgs {
    /// Only this operation, such as users.create
    #[arg(long)]
    action: Option<String>,
    /// Only things of this kind
    #[arg(long)]
    resource_type: Option<String>,
    /// Only this thing
    #[arg(long)]
    resource_id: Option<String>,
    /// Only acts of this user, by id
    #[arg(long)]
    user_id: Option<String>,
    /// Only entries that ended so: done, denied, failed
    #[arg(long)]
    outcome: Option<String>,
    /// Only from this time on, such as 2026-01-31T12:00:00Z
    #[arg(long)]
    from: Option<String>,
    /// Only before this time
    #[arg(long)]
    until: Option<String>,
}

impl AuditFilterArgs {
    fn query(&self) -> String {
        [
            ("action", &self.action),
            ("resource_type", &self.resource_type),
            ("resource_id", &self.resource_id),
            ("user_id", &self.user_id),
            ("outcome", &self.outcome),
            ("from", &self.from),
            ("until", &self.until),
        ]
        .iter()
        .filter_map(|(name, value)| Some(format!("&{name}={}", encoded(value.as_deref()?))))
        .collect()
    }
}

pub(crate) async fn run(args: AuditArgs, context: &CommandContext) -> Result<CommandOutcome> {
    let mut server = Connection::open(&args.server, context).await?;
    let tenant = server.tenant().await?;
    let client = &mut server.client;
    match args.command {
        AuditCommand::List { filter, limit } => {
            let path = format!(
                "{tenant}/audit?newest_first=true&limit={limit}{}",
                filter.query()
            );
            let columns = [
                "sequence",
                "timestamp",
                "user_id",
                "action",
                "resource_id",
                "outcome",
            ];
            context
                .output
                .result(&AdminReport::list(client.get(&path).await?, &columns))?;
        }
        AuditCommand::Export { filter, format } => {
            let path = format!(
                "{tenant}/audit/export?format={}{}",
                encoded(&format),
                filter.query()
            );
            let mut after = String::new();
            loop {
                let (part, next) = client.get_text(&format!("{path}{after}")).await?;
                // Every part of a table begins with its header.
                let part = match part.split_once('\n') {
                    Some((_, rest)) if format == "csv" && !after.is_empty() => rest,
                    _ => &part,
                };
                context.output.raw(part)?;
                match next {
                    Some(next) => after = format!("&after={}", encoded(&next)),
                    None => break,
                }
            }
        }
        AuditCommand::Verify => {
            let verdict = client.get(&format!("{tenant}/audit/verify")).await?;
            if verdict["intact"] != true {
                let fault = verdict["fault"]
                    .as_str()
                    .unwrap_or("it does not fit together");
                return Err(Error::new(
                    ErrorCode::AUDIT_BROKEN,
                    format!("the audit trail was changed: {fault}"),
                )
                .with_help("keep the database as it is, as evidence"));
            }
            let text = format!(
                "the audit trail is intact: {} entries, {} checkpoints",
                verdict["entries"], verdict["checkpoints"]
            );
            context.output.result(&AdminReport::done(verdict, text))?;
        }
    }
    Ok(CommandOutcome::Done)
}
