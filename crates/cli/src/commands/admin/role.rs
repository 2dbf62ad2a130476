//! `nimbus role`: roles, who has them, and why somebody may or may not.

use nimbus_core::Result;
use serde_json::{Value, json};

use super::AdminReport;
use super::conditions::{ConditionArgs, tags};
use super::server::{Connection, ServerArgs};
use crate::context::CommandContext;
use crate::exit::CommandOutcome;

#[derive(clap::Args, Debug)]
pub(crate) struct RoleArgs {
    #[command(flatten)]
    server: ServerArgs,
    #[command(subcommand)]
    command: RoleCommand,
}

#[derive(Debug, clap::Subcommand)]
enum RoleCommand {
    /// List the roles that there are
    List,
    /// List every permission, with its tier
    Permissions,
    /// Make a role
    Create {
        /// Lower-case letters, digits, `-` and `_`
        name: String,
        /// Permissions, such as cmdb:read
        #[arg(required = true, value_name = "PERMISSION")]
        permissions: Vec<String>,
        /// What it is for
        #[arg(long, default_value = "")]
        description: String,
        /// Only in these environments
        #[arg(long, value_name = "ENVIRONMENT")]
        environment: Vec<String>,
    },
    /// Replace what a role permits, for everybody who has it
    Update {
        /// Its name
        name: String,
        /// Permissions, such as cmdb:read
        #[arg(required = true, value_name = "PERMISSION")]
        permissions: Vec<String>,
        /// What it is for
        #[arg(long, default_value = "")]
        description: String,
        /// Only in these environments
        #[arg(long, value_name = "ENVIRONMENT")]
        environment: Vec<String>,
    },
    /// Delete a role that nobody has
    Delete {
        /// Its name
        name: String,
    },
    /// List who has which role
    Assignments,
    /// Give a role to a user or a group, perhaps under conditions
    Assign {
        /// Name of the role
        role: String,
        /// E-mail address or id
        #[arg(required_unless_present = "group")]
        user: Option<String>,
        /// To a group instead: its name or id
        #[arg(long, conflicts_with = "user")]
        group: Option<String>,
        /// Also for the tenants below
        #[arg(long)]
        subtree: bool,
        /// Until this time, such as 2026-01-31T12:00:00Z; without it for ever
        #[arg(long, value_name = "TIME")]
        until: Option<String>,
        #[command(flatten)]
        conditions: ConditionArgs,
    },
    /// Take a role away
    Unassign {
        /// Id of the assignment, from `role assignments`
        assignment: String,
    },
    /// Say whether a user may do something here, and which rule decides
    Explain {
        /// E-mail address or id
        user: String,
        /// Permission, such as stack:instance:deploy
        permission: String,
        /// In this environment
        #[arg(long)]
        environment: Option<String>,
        /// From this address instead of yours
        #[arg(long, value_name = "ADDRESS")]
        ip: Option<String>,
        /// At this time instead of now, such as 2026-01-31T12:00:00Z
        #[arg(long, value_name = "TIME")]
        at: Option<String>,
        /// In this place instead of yours
        #[arg(long, value_name = "PLACE")]
        location: Option<String>,
        /// On something that has this tag
        #[arg(long, value_name = "KEY=VALUE")]
        tag: Vec<String>,
    },
}

const ASSIGNMENT_FIELDS: &[&str] = &[
    "id",
    "role",
    "user_id",
    "group_id",
    "reach",
    "conditions",
    "expires_at",
];

pub(crate) async fn run(args: RoleArgs, context: &CommandContext) -> Result<CommandOutcome> {
    let mut server = Connection::open(&args.server, context).await?;
    let tenant = server.tenant().await?;
    let report = match args.command {
        RoleCommand::List => {
            let roles = server.client.list(&format!("{tenant}/roles")).await?;
            AdminReport::list(roles, &["name", "built_in", "description"])
        }
        RoleCommand::Permissions => {
            let permissions = server.client.list("/api/v1/permissions").await?;
            AdminReport::list(permissions, &["key", "tier", "description"])
        }
        RoleCommand::Create {
            name,
            permissions,
            description,
            environment,
        } => {
            let grants = grants(&permissions, &environment);
            let body = json!({"name": name, "description": description, "grants": grants});
            let role = server
                .client
                .post(&format!("{tenant}/roles"), &body)
                .await?;
            AdminReport::item(role, &["name", "description", "grants"])
        }
        RoleCommand::Update {
            name,
            permissions,
            description,
            environment,
        } => {
            let grants = grants(&permissions, &environment);
            let body = json!({"description": description, "grants": grants});
            let role = server
                .client
                .put(&format!("{tenant}/roles/{name}"), &body)
                .await?;
            AdminReport::item(role, &["name", "description", "grants"])
        }
        RoleCommand::Delete { name } => {
            server
                .client
                .delete(&format!("{tenant}/roles/{name}"))
                .await?;
            AdminReport::done(json!({"deleted": name}), format!("deleted role {name}"))
        }
        RoleCommand::Assignments => {
            let assignments = server
                .client
                .list(&format!("{tenant}/role-assignments"))
                .await?;
            AdminReport::list(assignments, ASSIGNMENT_FIELDS)
        }
        RoleCommand::Assign {
            role,
            user,
            group,
            subtree,
            until,
            conditions,
        } => {
            let mut body = json!({
                "role": role,
                "subtree": subtree,
                "conditions": conditions.conditions()?,
                "expires_at": until,
            });
            match (user, group) {
                (_, Some(group)) => {
                    body["group_id"] = json!(server.find_group(&tenant, &group).await?);
                }
                (user, None) => {
                    let user = user.unwrap_or_default();
                    body["user_id"] = json!(server.find_user(&tenant, &user).await?);
                }
            }
            let assignment = server
                .client
                .post(&format!("{tenant}/role-assignments"), &body)
                .await?;
            AdminReport::item(assignment, ASSIGNMENT_FIELDS)
        }
        RoleCommand::Unassign { assignment } => {
            server
                .client
                .delete(&format!("{tenant}/role-assignments/{assignment}"))
                .await?;
            AdminReport::done(json!({"deleted": assignment}), "the role was taken away")
        }
        RoleCommand::Explain {
            user,
            permission,
            environment,
            ip,
            at,
            location,
            tag,
        } => {
            let user = server.find_user(&tenant, &user).await?;
            let body = json!({
                "user_id": user,
                "permission": permission,
                "environment": environment,
                "ip": ip,
                "at": at,
                "location": location,
                "tags": tags(&tag)?,
            });
            let answer = server
                .client
                .post(&format!("{tenant}/explain"), &body)
                .await?;
            AdminReport::item(answer, &["allowed", "reasons"])
        }
    };
    context.output.result(&report)?;
    Ok(CommandOutcome::Done)
}

fn grants(permissions: &[String], environments: &[String]) -> Value {
    let environments = if environments.is_empty() {
        Value::Null
    } else {
        json!(environments)
    };
    json!([{"permissions": permissions, "environments": environments}])
}
