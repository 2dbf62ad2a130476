//! `nimbus approve`: runs that wait for people, and decisions on them.

use nimbus_control_client::encoded;
use nimbus_core::{Error, ErrorCode, Result};
use serde_json::json;

use super::AdminReport;
use super::approval_policy::{self, ApprovalPolicyCommand};
use super::server::{Connection, ServerArgs};
use crate::context::CommandContext;
use crate::exit::CommandOutcome;

#[derive(clap::Args, Debug)]
pub(crate) struct ApproveArgs {
    #[command(flatten)]
    server: ServerArgs,
    #[command(subcommand)]
    command: ApproveCommand,
}

#[derive(Debug, clap::Subcommand)]
enum ApproveCommand {
    /// List runs that wait for approval, newest first
    List {
        /// Those that are pending, approved, rejected, expired or withdrawn, or `all`
        #[arg(long, value_name = "STATUS", default_value = "pending")]
        status: String,
    },
    /// Show what a run waits for, and what was decided
    Show {
        /// The approval
        id: String,
    },
    /// Approve a run; it goes on when enough people have
    Grant {
        /// The approval
        id: String,
        /// What you want to say with it
        #[arg(long, value_name = "TEXT", default_value = "")]
        comment: String,
    },
    /// Deny a run, which ends it
    Deny {
        /// The approval
        id: String,
        /// Why, for whoever asked
        #[arg(long, value_name = "TEXT")]
        reason: String,
    },
    /// Let somebody decide in your place, or no longer
    Delegate {
        /// The user, by id or address
        user: String,
        /// Until when, such as 2030-01-31T12:00:00Z; up to ninety days from now
        #[arg(long, value_name = "TIME", required_unless_present = "remove")]
        until: Option<String>,
        /// Decide yourself again
        #[arg(long, conflicts_with = "until")]
        remove: bool,
    },
    /// See and set which environments need approval
    Policy {
        #[command(subcommand)]
        command: ApprovalPolicyCommand,
    },
}

const COLUMNS: &[&str] = &[
    "id",
    "deployment",
    "run_number",
    "action",
    "environment",
    "status",
    "step",
    "yours",
    "deadline",
];

const FIELDS: &[&str] = &[
    "id",
    "deployment",
    "run_number",
    "action",
    "environment",
    "rehearsal",
    "status",
    "step",
    "escalated",
    "yours",
    "deadline",
    "plan",
    "plan_digest",
    "requested_by",
    "requested_at",
    "decisions",
];

pub(crate) async fn run(args: ApproveArgs, context: &CommandContext) -> Result<CommandOutcome> {
    let mut server = Connection::open(&args.server, context).await?;
    let report = match args.command {
        ApproveCommand::List { status } => {
            let asked = [("status", status.as_str())];
            let asked: &[(&str, &str)] = match status.as_str() {
                "all" => &[],
                _ => &asked,
            };
            let path = server.path("approvals", asked);
            AdminReport::list(server.client.list(&path).await?, COLUMNS)
        }
        ApproveCommand::Show { id } => {
            let path = server.path(&format!("approvals/{}", encoded(&id)), &[]);
            AdminReport::item(server.client.get(&path).await?, FIELDS)
        }
        ApproveCommand::Grant { id, comment } => {
            let path = server.path(&format!("approvals/{}/grant", encoded(&id)), &[]);
            let body = json!({"comment": comment});
            AdminReport::item(server.client.post(&path, &body).await?, FIELDS)
        }
        ApproveCommand::Deny { id, reason } => {
            let path = server.path(&format!("approvals/{}/deny", encoded(&id)), &[]);
            let body = json!({"reason": reason});
            AdminReport::item(server.client.post(&path, &body).await?, FIELDS)
        }
        ApproveCommand::Delegate {
            user,
            until,
            remove,
        } => delegate(&mut server, &user, until.as_deref(), remove).await?,
        ApproveCommand::Policy { command } => approval_policy::run(command, &mut server).await?,
    };
    context.output.result(&report)?;
    Ok(CommandOutcome::Done)
}

async fn delegate(
    server: &mut Connection,
    user: &str,
    until: Option<&str>,
    remove: bool,
) -> Result<AdminReport> {
    let tenant = server.tenant().await?;
    let id = server.find_user(&tenant, user).await?;
    let path = server.path(&format!("approval-delegations/{}", encoded(&id)), &[]);
    if remove {
        server.client.delete(&path).await?;
        let text = format!("{user} no longer decides in your place");
        return Ok(AdminReport::done(json!({"removed": id}), text));
    }
    let until =
        until.ok_or_else(|| Error::new(ErrorCode::USAGE, "say until when, with --until"))?;
    let put = server.client.put(&path, &json!({"until": until})).await?;
    Ok(AdminReport::item(put, &["delegate", "until"]))
}
