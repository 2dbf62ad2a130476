//! `nimbus role`: roles, who has them, and why somebody may or may not.

use nimbus_core::Result;
use serde_json::{Map, Value, json};

use super::AdminReport;
use super::server::{Connection, ServerArgs};
use crate::context::Context;
use crate::exit::Outcome;

#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    #[command(flatten)]
    server: ServerArgs,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
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
    /// Delete a role that nobody has
    Delete {
        /// Its name
        name: String,
    },
    /// List who has which role
    Assignments,
    /// Give a role to a user
    Assign {
        /// Name of the role
        role: String,
        /// E-mail address or id
        user: String,
        /// Also for the tenants below
        #[arg(long)]
        subtree: bool,
        /// Only from these networks, such as 10.0.0.0/8
        #[arg(long, value_name = "NETWORK")]
        ip: Vec<String>,
        /// Only on things that have this tag
        #[arg(long, value_name = "KEY=VALUE")]
        tag: Vec<String>,
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
    },
}

pub(crate) async fn run(args: Args, context: &Context) -> Result<Outcome> {
    let mut server = Connection::open(&args.server).await?;
    let tenant = server.tenant().await?;
    let report = match args.command {
        Command::List => {
            let roles = server.client.get(&format!("{tenant}/roles")).await?;
            AdminReport::list(roles, &["name", "built_in", "description"])
        }
        Command::Permissions => {
            let permissions = server.client.get("/api/v1/permissions").await?;
            AdminReport::list(permissions, &["key", "tier", "description"])
        }
        Command::Create {
            name,
            permissions,
            description,
            environment,
        } => {
            let environments = if environment.is_empty() {
                Value::Null
            } else {
                json!(environment)
            };
            let grant = json!({"permissions": permissions, "environments": environments});
            let body = json!({"name": name, "description": description, "grants": [grant]});
            let role = server
                .client
                .post(&format!("{tenant}/roles"), &body)
                .await?;
            AdminReport::item(role, &["name", "description", "grants"])
        }
        Command::Delete { name } => {
            server
                .client
                .delete(&format!("{tenant}/roles/{name}"))
                .await?;
            AdminReport::done(json!({"deleted": name}), format!("deleted role {name}"))
        }
        Command::Assignments => {
            let assignments = server
                .client
                .get(&format!("{tenant}/role-assignments"))
                .await?;
            AdminReport::list(
                assignments,
                &["id", "role", "user_id", "group_id", "reach", "conditions"],
            )
        }
        Command::Assign {
            role,
            user,
            subtree,
            ip,
            tag,
        } => {
            let user = server.find_user(&tenant, &user).await?;
            let body = json!({
                "role": role,
                "user_id": user,
                "subtree": subtree,
                "conditions": conditions(&ip, &tag),
            });
            let assignment = server
                .client
                .post(&format!("{tenant}/role-assignments"), &body)
                .await?;
            AdminReport::item(
                assignment,
                &["id", "role", "user_id", "reach", "conditions"],
            )
        }
        Command::Unassign { assignment } => {
            server
                .client
                .delete(&format!("{tenant}/role-assignments/{assignment}"))
                .await?;
            AdminReport::done(json!({"deleted": assignment}), "the role was taken away")
        }
        Command::Explain {
            user,
            permission,
            environment,
        } => {
            let user = server.find_user(&tenant, &user).await?;
            let body =
                json!({"user_id": user, "permission": permission, "environment": environment});
            let answer = server
                .client
                .post(&format!("{tenant}/explain"), &body)
                .await?;
            AdminReport::item(answer, &["allowed", "reasons"])
        }
    };
    context.output.result(&report)?;
    Ok(Outcome::Done)
}

fn conditions(networks: &[String], tags: &[String]) -> Value {
    let mut conditions = Map::new();
    if !networks.is_empty() {
        conditions.insert("ip".to_owned(), json!(networks));
    }
    let tags: Map<String, Value> = tags
        .iter()
        .map(|tag| {
            let (key, value) = tag.split_once('=').unwrap_or((tag.as_str(), ""));
            (key.to_owned(), json!(value))
        })
        .collect();
    if !tags.is_empty() {
        conditions.insert("tags".to_owned(), Value::Object(tags));
    }
    Value::Object(conditions)
}
