//! `nimbus tenant`: the tree of tenants.

use nimbus_core::{Error, ErrorCode, Result};
use serde_json::{Map, Value, json};

use super::AdminReport;
use super::server::{Connection, ServerArgs};
use crate::context::CommandContext;
use crate::exit::CommandOutcome;

#[derive(clap::Args, Debug)]
pub(crate) struct TenantArgs {
    #[command(flatten)]
    server: ServerArgs,
    #[command(subcommand)]
    command: TenantCommand,
}

#[derive(Debug, clap::Subcommand)]
enum TenantCommand {
    /// List the tenants that you may see
    List,
    /// Show a tenant
    Show,
    /// Make a tenant below the one you work in
    Create {
        /// Short name for paths: lower-case letters, digits and `-`
        slug: String,
        /// Name for people; without it the slug
        #[arg(long)]
        name: Option<String>,
    },
    /// Show the settings and limits in force, with what is used and where they come from
    Effective,
    /// Rename a tenant
    Rename {
        /// The new name
        name: String,
    },
    /// Change a setting of a tenant; without a value it is inherited again
    Set {
        /// Name of the setting
        key: String,
        /// Value as JSON, or text
        value: Option<String>,
    },
    /// Limit what a tenant and all below it may use
    Quota {
        /// Limits of deployments, runs, tenants and users, such as users=100; without any there are none
        #[arg(value_name = "RESOURCE=LIMIT")]
        limits: Vec<String>,
    },
    /// Put a tenant below another one
    Move {
        /// The new parent: id or slug
        parent: String,
    },
    /// Delete a tenant and all below it; it can be restored for a while
    Delete {
        /// The tenant's slug again, as a confirmation
        #[arg(long, value_name = "SLUG")]
        confirm: String,
    },
    /// List deleted tenants below this one that can still be restored
    Deleted,
    /// Take the deletion of a tenant below this one back
    Restore {
        /// The deleted tenant: id or slug
        deleted: String,
    },
}

const COLUMNS: &[&str] = &["slug", "name", "id", "parent_id"];
const FIELDS: &[&str] = &[
    "slug",
    "name",
    "id",
    "parent_id",
    "settings",
    "quotas",
    "created_at",
];

pub(crate) async fn run(args: TenantArgs, context: &CommandContext) -> Result<CommandOutcome> {
    let mut server = Connection::open(&args.server, context).await?;
    let tenant = server.tenant().await?;
    let client = &mut server.client;
    let report = match args.command {
        TenantCommand::List => AdminReport::list(client.list("/api/v1/tenants").await?, COLUMNS),
        TenantCommand::Show => AdminReport::item(client.get(&tenant).await?, FIELDS),
        TenantCommand::Create { slug, name } => {
            let body = json!({"slug": slug, "name": name.as_ref().unwrap_or(&slug)});
            AdminReport::item(
                client.post(&format!("{tenant}/tenants"), &body).await?,
                FIELDS,
            )
        }
        TenantCommand::Effective => {
            let effective = client.get(&format!("{tenant}/effective")).await?;
            AdminReport::item(effective, &["settings", "quotas"])
        }
        TenantCommand::Deleted => AdminReport::list(
            client.list(&format!("{tenant}/deleted")).await?,
            &["slug", "name", "id", "deleted_at", "gone_at"],
        ),
        TenantCommand::Restore { deleted } => {
            let list = format!("{tenant}/deleted");
            let id = server
                .find(&list, &deleted, "slug", "deleted tenant")
                .await?;
            let path = format!("{list}/{id}/restore");
            AdminReport::item(server.client.post(&path, &json!({})).await?, FIELDS)
        }
        TenantCommand::Rename { name } => {
            AdminReport::item(client.patch(&tenant, &json!({"name": name})).await?, FIELDS)
        }
        TenantCommand::Set { key, value } => {
            let current = client.get(&tenant).await?;
            let body = with_setting(&current, &key, value)?;
            AdminReport::item(client.patch(&tenant, &body).await?, FIELDS)
        }
        TenantCommand::Quota { limits } => {
            let body = json!({"quotas": quotas(&limits)?});
            AdminReport::item(
                client.put(&format!("{tenant}/quotas"), &body).await?,
                FIELDS,
            )
        }
        TenantCommand::Move { parent } => {
            let parent = server.find_tenant(&parent).await?;
            let body = json!({"parent_id": parent});
            AdminReport::item(
                server.client.post(&format!("{tenant}/move"), &body).await?,
                FIELDS,
            )
        }
        TenantCommand::Delete { confirm } => {
            let current = client.get(&tenant).await?;
            if current["slug"] != *confirm {
                let message = format!("the tenant is called {}, not `{confirm}`", current["slug"]);
                return Err(Error::new(ErrorCode::CONFIRMATION_NEEDED, message));
            }
            client.delete(&tenant).await?;
            AdminReport::done(
                json!({"deleted": current["id"]}),
                format!("deleted tenant {confirm}"),
            )
        }
    };
    context.output.result(&report)?;
    Ok(CommandOutcome::Done)
}

/// The settings with one changed, on condition that nobody changed them meanwhile.
fn with_setting(current: &Value, key: &str, value: Option<String>) -> Result<Value> {
    let mut settings = current["settings"].as_object().cloned().unwrap_or_default();
    match value {
        Some(text) => {
            let value = serde_json::from_str(&text).unwrap_or(Value::String(text));
            settings.insert(key.to_owned(), value);
        }
        None => {
            settings.remove(key);
        }
    }
    Ok(json!({"settings": settings, "expected_generation": current["generation"]}))
}

fn quotas(limits: &[String]) -> Result<Map<String, Value>> {
    limits
        .iter()
        .map(|limit| {
            let parsed = limit
                .split_once('=')
                .and_then(|(name, value)| Some((name, value.parse::<u32>().ok()?)));
            let (name, value) = parsed.ok_or_else(|| {
                Error::new(
                    ErrorCode::USAGE,
                    format!("`{limit}` is not a limit such as users=100"),
                )
            })?;
            Ok((name.to_owned(), json!(value)))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_is_changed_among_the_others() {
        let current = json!({"settings": {"a": 1, "b": 2}, "generation": 7});
        let set = with_setting(&current, "a", Some("{\"x\": 1}".to_owned())).unwrap();
        assert_eq!(
            set,
            json!({"settings": {"a": {"x": 1}, "b": 2}, "expected_generation": 7})
        );
        let text = with_setting(&current, "a", Some("plain text".to_owned())).unwrap();
        assert_eq!(text["settings"]["a"], "plain text");
        let removed = with_setting(&current, "a", None).unwrap();
        assert_eq!(removed["settings"], json!({"b": 2}));
    }

    #[test]
    fn limits_are_names_and_numbers() {
        assert_eq!(
            json!(quotas(&["users=5".to_owned()]).unwrap()),
            json!({"users": 5})
        );
        assert!(quotas(&["users".to_owned()]).is_err());
        assert!(quotas(&["users=-1".to_owned()]).is_err());
    }
}
