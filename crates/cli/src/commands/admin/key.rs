//! `nimbus key`: API keys of service accounts.

use nimbus_core::Result;
use serde_json::json;

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

pub(crate) async fn run(args: Args, context: &Context) -> Result<Outcome> {
    let mut server = Connection::open(&args.server).await?;
    let tenant = server.tenant().await?;
    let report = match args.command {
        Command::List => AdminReport::list(
            server.client.list(&format!("{tenant}/keys")).await?,
            &["id", "name", "scopes", "expires_at", "last_used_at"],
        ),
        Command::Create {
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
        Command::Revoke { key } => {
            server
                .client
                .delete(&format!("{tenant}/keys/{key}"))
                .await?;
            AdminReport::done(json!({"revoked": key}), "the key was revoked")
        }
    };
    context.output.result(&report)?;
    Ok(Outcome::Done)
}
