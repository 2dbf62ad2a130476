//! `nimbus webhook`: where a tenant's notifications go, and what was sent there.

use nimbus_control_client::encoded;
use nimbus_core::{Error, ErrorCode, Result};
use serde_json::{Value, json};

use super::AdminReport;
use super::server::{Connection, ServerArgs};
use crate::context::CommandContext;
use crate::exit::CommandOutcome;

#[derive(clap::Args, Debug)]
pub(crate) struct WebhookArgs {
    #[command(flatten)]
    server: ServerArgs,
    #[command(subcommand)]
    command: WebhookCommand,
}

#[derive(Debug, clap::Subcommand)]
enum WebhookCommand {
    /// List webhooks, without their secrets
    List,
    /// Make a webhook; its secret is printed once
    Create {
        /// What it is called
        name: String,
        /// Where messages are posted to, with https
        url: String,
        /// A kind of notifications that it gets; may be repeated, all of them without one
        #[arg(long = "kind", value_name = "KIND")]
        kinds: Vec<String>,
    },
    /// Change a webhook; what is not given stays
    Update {
        /// Name or id
        webhook: String,
        #[arg(long, value_name = "NAME")]
        name: Option<String>,
        #[arg(long, value_name = "URL")]
        url: Option<String>,
        /// A kind of notifications that it gets, instead of those it has; may be repeated
        #[arg(long = "kind", value_name = "KIND", conflicts_with = "all_kinds")]
        kinds: Vec<String>,
        /// Every kind, also those that come later
        #[arg(long)]
        all_kinds: bool,
        /// Call it again, and send what waits for it
        #[arg(long, conflicts_with = "disable")]
        enable: bool,
        /// Call it no more
        #[arg(long)]
        disable: bool,
    },
    /// Give a webhook a new secret, printed once; the one before signs as well for a day
    Rotate {
        /// Name or id
        webhook: String,
    },
    /// Send a webhook something to try it with
    Test {
        /// Name or id
        webhook: String,
    },
    /// Delete a webhook; what was not delivered to it is dropped
    Delete {
        /// Name or id
        webhook: String,
    },
    /// List what was sent by webhook and mail, newest first
    Deliveries {
        /// Only these: pending, delivered, dead or dropped
        #[arg(long, value_name = "STATUS")]
        status: Option<String>,
        /// Only by webhook or email
        #[arg(long, value_name = "CHANNEL")]
        channel: Option<String>,
        /// Only to this webhook: name or id
        #[arg(long, value_name = "WEBHOOK")]
        webhook: Option<String>,
    },
    /// Show something that was sent and every time that it was tried
    Delivery {
        /// Id, from `webhook deliveries`
        delivery: String,
    },
    /// Send a dead letter again, or every dead letter of a webhook
    Resend {
        /// Id, from `webhook deliveries`
        #[arg(required_unless_present = "webhook")]
        delivery: Option<String>,
        /// Every dead letter of this webhook: name or id
        #[arg(long, value_name = "WEBHOOK", conflicts_with = "delivery")]
        webhook: Option<String>,
    },
}

const COLUMNS: &[&str] = &["id", "name", "url", "kinds", "enabled", "disabled_reason"];
const CREATED: &[&str] = &["id", "name", "url", "kinds", "enabled", "secret"];
const SENT: &[&str] = &[
    "id",
    "created_at",
    "channel",
    "kind",
    "status",
    "attempts",
    "next_attempt_at",
    "problem",
];
const DETAIL: &[&str] = &[
    "id",
    "channel",
    "webhook",
    "user",
    "kind",
    "status",
    "attempts",
    "next_attempt_at",
    "problem",
    "created_at",
    "ended_at",
    "tries",
];

pub(crate) async fn run(args: WebhookArgs, context: &CommandContext) -> Result<CommandOutcome> {
    let mut server = Connection::open(&args.server, context).await?;
    let tenant = server.tenant().await?;
    let report = match args.command {
        WebhookCommand::List => {
            let found = server.client.get(&format!("{tenant}/webhooks")).await?;
            AdminReport::list(found, COLUMNS)
        }
        WebhookCommand::Create { name, url, kinds } => {
            let body = json!({"name": name, "url": url, "kinds": kinds});
            let path = format!("{tenant}/webhooks");
            AdminReport::item(server.client.post(&path, &body).await?, CREATED)
        }
        WebhookCommand::Update {
            webhook,
            name,
            url,
            kinds,
            all_kinds,
            enable,
            disable,
        } => {
            let known = find(&mut server, &tenant, &webhook).await?;
            let kinds = match (all_kinds, kinds.is_empty()) {
                (true, _) => json!([]),
                (false, true) => known["kinds"].clone(),
                (false, false) => json!(kinds),
            };
            let body = json!({
                "name": name.map_or_else(|| known["name"].clone(), Value::from),
                "url": url.map_or_else(|| known["url"].clone(), Value::from),
                "kinds": kinds,
                "enabled": enable || !disable && known["enabled"] == true,
            });
            let path = place(&tenant, &known);
            AdminReport::item(server.client.put(&path, &body).await?, COLUMNS)
        }
        WebhookCommand::Rotate { webhook } => {
            let path = place(&tenant, &find(&mut server, &tenant, &webhook).await?);
            let path = format!("{path}/rotate");
            AdminReport::item(server.client.post(&path, &json!({})).await?, CREATED)
        }
        WebhookCommand::Test { webhook } => {
            let path = place(&tenant, &find(&mut server, &tenant, &webhook).await?);
            let path = format!("{path}/test");
            AdminReport::item(server.client.post(&path, &json!({})).await?, SENT)
        }
        WebhookCommand::Delete { webhook } => {
            let known = find(&mut server, &tenant, &webhook).await?;
            server.client.delete(&place(&tenant, &known)).await?;
            AdminReport::done(json!({"deleted": known["id"]}), "the webhook was deleted")
        }
        WebhookCommand::Deliveries {
            status,
            channel,
            webhook,
        } => {
            let mut query = Vec::new();
            query.extend(status.map(|text| format!("status={}", encoded(&text))));
            query.extend(channel.map(|text| format!("channel={}", encoded(&text))));
            if let Some(webhook) = webhook {
                let known = find(&mut server, &tenant, &webhook).await?;
                let id = known["id"].as_str().unwrap_or_default().to_owned();
                query.push(format!("webhook={}", encoded(&id)));
            }
            let path = format!("{tenant}/deliveries?{}", query.join("&"));
            let path = path.trim_end_matches('?');
            AdminReport::list(server.client.list(path).await?, SENT)
        }
        WebhookCommand::Delivery { delivery } => {
            let path = format!("{tenant}/deliveries/{}", encoded(&delivery));
            AdminReport::item(server.client.get(&path).await?, DETAIL)
        }
        WebhookCommand::Resend {
            delivery: Some(delivery),
            ..
        } => {
            let path = format!("{tenant}/deliveries/{}/resend", encoded(&delivery));
            AdminReport::item(server.client.post(&path, &json!({})).await?, SENT)
        }
        WebhookCommand::Resend { webhook, .. } => {
            let webhook = webhook.unwrap_or_default();
            let path = place(&tenant, &find(&mut server, &tenant, &webhook).await?);
            let path = format!("{path}/resend");
            let resent = server.client.post(&path, &json!({})).await?;
            let text = format!("{} are sent again", resent["resent"]);
            AdminReport::done(resent, text)
        }
    };
    context.output.result(&report)?;
    Ok(CommandOutcome::Done)
}

/// A webhook by its name or id.
async fn find(server: &mut Connection, tenant: &str, wanted: &str) -> Result<Value> {
    let found = server.client.get(&format!("{tenant}/webhooks")).await?;
    let items = found["items"].as_array();
    let known = items.into_iter().flatten().find(|one| {
        let is = |field: &str| one[field].as_str() == Some(wanted);
        is("id") || is("name")
    });
    known.cloned().ok_or_else(|| {
        let message = format!("there is no webhook `{wanted}`");
        Error::new(ErrorCode::RESOURCE_NOT_FOUND, message)
            .with_help("`webhook list` shows those that there are")
    })
}

fn place(tenant: &str, webhook: &Value) -> String {
    let id = webhook["id"].as_str().unwrap_or_default();
    format!("{tenant}/webhooks/{}", encoded(id))
}
