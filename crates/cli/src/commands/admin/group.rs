//! `nimbus group`: groups, which carry roles for their members.

use nimbus_core::Result;
use serde_json::json;

use super::AdminReport;
use super::server::{Connection, ServerArgs};
use crate::context::CommandContext;
use crate::exit::CommandOutcome;

#[derive(clap::Args, Debug)]
pub(crate) struct GroupArgs {
    #[command(flatten)]
    server: ServerArgs,
    #[command(subcommand)]
    command: GroupCommand,
}

#[derive(Debug, clap::Subcommand)]
enum GroupCommand {
    /// List groups
    List,
    /// Make a group
    Create {
        /// Its name
        name: String,
        /// What it is for
        #[arg(long, default_value = "")]
        description: String,
    },
    /// Rename a group
    Rename {
        /// Name or id
        group: String,
        /// The new name
        name: String,
    },
    /// Say what a group is for
    Describe {
        /// Name or id
        group: String,
        /// What it is for
        description: String,
    },
    /// Delete a group; its members lose the roles that it carried
    Delete {
        /// Name or id
        group: String,
    },
    /// List the members of a group
    Members {
        /// Name or id
        group: String,
    },
    /// Add somebody to a group
    Add {
        /// Name or id
        group: String,
        /// E-mail address or id
        user: String,
    },
    /// Take somebody out of a group
    Remove {
        /// Name or id
        group: String,
        /// E-mail address or id
        user: String,
    },
}

const FIELDS: &[&str] = &["name", "description", "members", "id"];

pub(crate) async fn run(args: GroupArgs, context: &CommandContext) -> Result<CommandOutcome> {
    let mut server = Connection::open(&args.server, context).await?;
    let tenant = server.tenant().await?;
    let groups = format!("{tenant}/groups");
    let report = match args.command {
        GroupCommand::List => AdminReport::list(server.client.list(&groups).await?, FIELDS),
        GroupCommand::Create { name, description } => {
            let body = json!({"name": name, "description": description});
            AdminReport::item(server.client.post(&groups, &body).await?, FIELDS)
        }
        GroupCommand::Rename { group, name } => {
            change(&mut server, &tenant, &group, json!({"name": name})).await?
        }
        GroupCommand::Describe { group, description } => {
            let body = json!({"description": description});
            change(&mut server, &tenant, &group, body).await?
        }
        GroupCommand::Delete { group } => {
            let id = server.find_group(&tenant, &group).await?;
            server.client.delete(&format!("{groups}/{id}")).await?;
            AdminReport::done(json!({"deleted": id}), format!("deleted group {group}"))
        }
        GroupCommand::Members { group } => {
            let id = server.find_group(&tenant, &group).await?;
            let members = server
                .client
                .list(&format!("{groups}/{id}/members"))
                .await?;
            AdminReport::list(members, &["email", "display_name", "kind", "id"])
        }
        GroupCommand::Add { group, user } => {
            let path = member(&mut server, &tenant, &group, &user).await?;
            server.client.put(&path, &json!({})).await?;
            let text = format!("{user} is in the group {group}");
            AdminReport::done(json!({"group": group, "added": user}), text)
        }
        GroupCommand::Remove { group, user } => {
            let path = member(&mut server, &tenant, &group, &user).await?;
            server.client.delete(&path).await?;
            let text = format!("{user} is no longer in the group {group}");
            AdminReport::done(json!({"group": group, "removed": user}), text)
        }
    };
    context.output.result(&report)?;
    Ok(CommandOutcome::Done)
}

async fn change(
    server: &mut Connection,
    tenant: &str,
    group: &str,
    body: serde_json::Value,
) -> Result<AdminReport> {
    let id = server.find_group(tenant, group).await?;
    let path = format!("{tenant}/groups/{id}");
    Ok(AdminReport::item(
        server.client.patch(&path, &body).await?,
        FIELDS,
    ))
}

async fn member(server: &mut Connection, tenant: &str, group: &str, user: &str) -> Result<String> {
    let group = server.find_group(tenant, group).await?;
    let user = server.find_user(tenant, user).await?;
    Ok(format!("{tenant}/groups/{group}/members/{user}"))
}
