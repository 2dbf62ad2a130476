//! `nimbus key`: API keys of service accounts.

use nimbus_core::Result;
use serde_json::json;

use super::AdminReport;
use super::server::{Connection, ServerArgs};
use crate::context::CommandContext;
use crate::exit::CommandOutcome;

#[derive(clap::Args, Debug)]
pub(crate) struct KeyArgs {
    #[command(flatten)]
    server: ServerArgs,
    #[command(subcommand)]
    command: KeyCommand,
}

#[derive(Debug, clap::Subcommand)]
enum KeyCommand {
    /// List keys, without their secrets
    List,
    /// Make a key; its secret is printed once
    Create {
        /// Service account: name or id
        account: String,
        /// What the key is for
        name: String,
        /// Permissions that it is limited to
        #[arg(required = true, value_name = "PERMISSION")]
        scopes: Vec<String>,
        /// Days until it expires; without it, it does not
        #[arg(long, value_name = "DAYS")]
        expires: Option<u32>,
    },
    /// Revoke a key, at once
    Revoke {
        /// Id, from `key list`
        key: String,
    },
}

pub(crate) async fn run(args: KeyArgs, context: &CommandContext) -> Result<CommandOutcome> {
    let mut server = Connection::open(&args.server, context).await?;
    let tenant = server.tenant().await?;
    let report = match args.command {
        KeyCommand::List => AdminReport::list(
            server.client.list(&format!("{tenant}/keys")).await?,
            &["id", "name", "scopes", "expires_at", "last_used_at"],
        ),
        KeyCommand::Create {
            account,
            name,
            scopes,
            expires,
        } => {
            let account = server.find_user(&tenant, &account).await?;
            let body = json!({
                "service_account_id": account,
                "name": name,
                "scopes": scopes,
                "expires_in_days": expires,
            });
            let key = server.client.post(&format!("{tenant}/keys"), &body).await?;
            AdminReport::item(key, &["id", "name", "scopes", "expires_at", "secret"])
        }
        KeyCommand::Revoke { key } => {
            server
                .client
                .delete(&format!("{tenant}/keys/{key}"))
                .await?;
            AdminReport::done(json!({"revoked": key}), "the key was revoked")
        }
    };
    context.output.result(&report)?;
    Ok(CommandOutcome::Done)
}
