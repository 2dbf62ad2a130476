//! `nimbus workflow` and `nimbus schedule`: what an installation does durably, and by the clock.

use nimbus_control_client::encoded;
use nimbus_core::Result;
use serde_json::json;

use super::AdminReport;
use super::server::{Connection, ServerArgs};
use crate::context::CommandContext;
use crate::exit::CommandOutcome;

#[derive(clap::Args, Debug)]
pub(crate) struct WorkflowArgs {
    #[command(flatten)]
    server: ServerArgs,
    #[command(subcommand)]
    command: WorkflowCommand,
}

#[derive(Debug, clap::Subcommand)]
enum WorkflowCommand {
    /// List workflows, oldest first
    List {
        /// Only of this type, such as `ComponentDeployWorkflow`
        #[arg(long = "type", value_name = "TYPE")]
        workflow_type: Option<String>,
        /// Only ids that begin so; `run:TENANT:` are those of a tenant's runs
        #[arg(long, value_name = "TEXT", conflicts_with = "schedule")]
        prefix: Option<String>,
        /// Only what this schedule started
        #[arg(long, value_name = "NAME")]
        schedule: Option<String>,
        /// Only those that have not ended
        #[arg(long, conflicts_with = "ended")]
        open: bool,
        /// Only those that have ended
        #[arg(long)]
        ended: bool,
    },
    /// Show how far a workflow is, and how it ended
    Show {
        /// Id, from `workflow list`
        workflow: String,
    },
    /// Ask a workflow: `get_deployment_progress` of a run, `get_approval_status` of an approval
    Query {
        /// Id, from `workflow list`
        workflow: String,
        /// The query
        query: String,
    },
}

#[derive(clap::Args, Debug)]
pub(crate) struct ScheduleArgs {
    #[command(flatten)]
    server: ServerArgs,
    #[command(subcommand)]
    command: ScheduleCommand,
}

#[derive(Debug, clap::Subcommand)]
enum ScheduleCommand {
    /// List schedules, with when each starts next and what it started last
    List {
        /// Those that the tenant made, instead of the platform's
        #[arg(long)]
        custom: bool,
    },
    /// Let a run of an environment start by the clock, or change how it does
    Create(CustomArgs),
    /// Delete a schedule that the tenant made; what it started goes on
    Delete {
        /// Name, from `schedule list --custom`
        schedule: String,
    },
    /// Start nothing more by a schedule until it is resumed
    Pause {
        /// Name, from `schedule list`
        schedule: String,
    },
    /// Let a paused schedule go on
    Resume {
        /// Name, from `schedule list`
        schedule: String,
    },
}

#[derive(clap::Args, Debug)]
struct CustomArgs {
    /// Lower-case letters, digits and `-`
    schedule: String,
    /// What starts: `refresh`, `preview` or `deploy`
    #[arg(long)]
    action: String,
    #[arg(long, value_name = "ID")]
    deployment: String,
    #[arg(long, value_name = "NAME")]
    environment: String,
    /// On a simulated cloud
    #[arg(long)]
    rehearse: bool,
    /// Five fields as cron has them; two starts lie 15 minutes apart at least
    #[arg(long, value_name = "FIELDS")]
    cron: String,
    /// Such as `Europe/Vienna`; UTC without it
    #[arg(long, value_name = "NAME")]
    time_zone: Option<String>,
    /// Start nothing yet
    #[arg(long)]
    paused: bool,
}

const CUSTOM: &[&str] = &[
    "name",
    "action",
    "deployment",
    "environment",
    "rehearsal",
    "cron",
    "time_zone",
    "paused",
];
const COLUMNS: &[&str] = &["id", "workflow_type", "status", "created_at", "ended_at"];
const DETAIL: &[&str] = &[
    "id",
    "workflow_type",
    "status",
    "created_at",
    "ended_at",
    "result",
    "code",
    "problem",
    "attention",
];
const SCHEDULE: &[&str] = &[
    "name",
    "workflow_type",
    "cron",
    "time_zone",
    "paused",
    "next_at",
    "last",
];

pub(crate) async fn run(args: WorkflowArgs, context: &CommandContext) -> Result<CommandOutcome> {
    let mut server = Connection::open(&args.server, context).await?;
    let report = match args.command {
        WorkflowCommand::List {
            workflow_type,
            prefix,
            schedule,
            open,
            ended,
        } => {
            let prefix = prefix.or_else(|| schedule.map(|name| format!("schedule:{name}:")));
            let mut query = Vec::new();
            query.extend(workflow_type.as_deref().map(|text| ("type", text)));
            query.extend(prefix.as_deref().map(|text| ("prefix", text)));
            query.extend(open.then_some(("ended", "false")));
            query.extend(ended.then_some(("ended", "true")));
            let path = server.path("workflows", &query);
            AdminReport::list(server.client.list(&path).await?, COLUMNS)
        }
        WorkflowCommand::Show { workflow } => {
            let path = server.path(&format!("workflows/{}", encoded(&workflow)), &[]);
            AdminReport::item(server.client.get(&path).await?, DETAIL)
        }
        WorkflowCommand::Query { workflow, query } => {
            let path = format!(
                "workflows/{}/queries/{}",
                encoded(&workflow),
                encoded(&query)
            );
            let path = server.path(&path, &[]);
            AdminReport::item(server.client.get(&path).await?, &["query", "answer"])
        }
    };
    context.output.result(&report)?;
    Ok(CommandOutcome::Done)
}

pub(crate) async fn schedule(
    args: ScheduleArgs,
    context: &CommandContext,
) -> Result<CommandOutcome> {
    let mut server = Connection::open(&args.server, context).await?;
    let report = match args.command {
        ScheduleCommand::List { custom: true } => {
            let path = format!("{}/schedules", server.tenant().await?);
            AdminReport::list(server.client.get(&path).await?, CUSTOM)
        }
        ScheduleCommand::Create(args) => {
            let name = encoded(&args.schedule);
            let path = format!("{}/schedules/{name}", server.tenant().await?);
            let body = json!({
                "action": args.action,
                "deployment": args.deployment,
                "environment": args.environment,
                "rehearsal": args.rehearse,
                "cron": args.cron,
                "time_zone": args.time_zone,
                "paused": args.paused,
            });
            AdminReport::item(server.client.put(&path, &body).await?, CUSTOM)
        }
        ScheduleCommand::Delete { schedule } => {
            let name = encoded(&schedule);
            let path = format!("{}/schedules/{name}", server.tenant().await?);
            server.client.delete(&path).await?;
            AdminReport::done(
                json!({"deleted": schedule}),
                format!("{schedule} is deleted"),
            )
        }
        ScheduleCommand::List { custom: false } => {
            let path = server.path("schedules", &[]);
            AdminReport::list(server.client.get(&path).await?, SCHEDULE)
        }
        ScheduleCommand::Pause { schedule } => {
            let path = server.path(&format!("schedules/{}/pause", encoded(&schedule)), &[]);
            AdminReport::item(server.client.post(&path, &json!({})).await?, SCHEDULE)
        }
        ScheduleCommand::Resume { schedule } => {
            let path = server.path(&format!("schedules/{}/resume", encoded(&schedule)), &[]);
            AdminReport::item(server.client.post(&path, &json!({})).await?, SCHEDULE)
        }
    };
    context.output.result(&report)?;
    Ok(CommandOutcome::Done)
}
