//! Receivers of a tenant's notifications. A secret is shown when it is made, kept sealed, and opened to sign.
//!
//! A webhook hears of every environment, so whoever sets one up needs the permission in all of them.

use nimbus_control_auth::operation::{self, Operation};
use nimbus_control_delivery::WebhookSecret;
use nimbus_control_store::{
    MOST_WEBHOOKS, NOTIFICATION_KINDS, StoredDelivery, StoredWebhook, TenantTx, WebhookSetup,
};
use nimbus_control_wire::{SetWebhook, Webhook};
use nimbus_core::{Error, ErrorCode, TenantId};
use nimbus_outbound::OutboundError;
use serde_json::{Value, json};
use uuid::Uuid;
use zeroize::Zeroizing;

use crate::app::{App, EVERY_ENVIRONMENT, Permit};
use crate::call::Call;
use crate::failure::{Failure, Result};
use crate::input;

/// How long the secret before the present one signs as well.
const ROTATION_HOURS: i32 = 24;
const LONGEST_URL: usize = 2000;
/// What a message to try a webhook with is.
const TEST_KIND: &str = "test";

/// A webhook with its secret, which is shown this once.
#[derive(Debug)]
pub struct CreatedWebhook {
    pub webhook: StoredWebhook,
    pub secret: Zeroizing<String>,
}

impl App {
    pub async fn webhook_list(&self, call: &Call, tenant: TenantId) -> Result<Vec<StoredWebhook>> {
        let permit = self.permit(call, operation::LIST_WEBHOOKS, tenant).await?;
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                let found = tx.webhook_list().await?;
                self.audit(tx, &call.context, permit.record()).await?;
                Ok(found)
            })
            .await
    }

    pub async fn webhook_create(
        &self,
        call: &Call,
        tenant: TenantId,
        input: SetWebhook,
    ) -> Result<CreatedWebhook> {
        let permit = self
            .may_change(call, operation::CREATE_WEBHOOK, tenant)
            .await?;
        let setup = self.checked_webhook(input)?;
        let secret = WebhookSecret::generate().to_text();
        let webhook = self
            .inner
            .store
            .tenant_tx(tenant, async |tx| {
                if tx.webhook_count().await? >= MOST_WEBHOOKS {
                    return Err(too_many());
                }
                let id = Uuid::new_v4();
                let sealed = self.seal_secret(tx, id, &secret).await?;
                let made = tx
                    .webhook_create(id, &setup, &sealed, call.who.user)
                    .await?;
                let record = permit.record().on(id).after(told(&made));
                self.audit(tx, &call.context, record).await?;
                Ok(made)
            })
            .await?;
        Ok(CreatedWebhook { webhook, secret })
    }

    pub async fn webhook_update(
        &self,
        call: &Call,
        tenant: TenantId,
        id: Uuid,
        input: SetWebhook,
    ) -> Result<StoredWebhook> {
        let permit = self
            .may_change(call, operation::UPDATE_WEBHOOK, tenant)
            .await?;
        let setup = self.checked_webhook(input)?;
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                let before = tx.webhook_lock(id).await?;
                let changed = tx.webhook_update(id, &setup).await?;
                let record = permit.record().on(id).before(told(&before));
                let record = record.after(told(&changed));
                self.audit(tx, &call.context, record).await?;
                Ok(changed)
            })
            .await
    }

    pub async fn webhook_delete(&self, call: &Call, tenant: TenantId, id: Uuid) -> Result<()> {
        let permit = self
            .may_change(call, operation::DELETE_WEBHOOK, tenant)
            .await?;
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                tx.webhook_delete(id).await?;
                self.audit(tx, &call.context, permit.record().on(id)).await
            })
            .await
    }

    /// Gives it a new secret. Messages are signed with both for a day, so that the receiver can be changed meanwhile.
    pub async fn webhook_rotate(
        &self,
        call: &Call,
        tenant: TenantId,
        id: Uuid,
    ) -> Result<CreatedWebhook> {
        let permit = self
            .may_change(call, operation::ROTATE_WEBHOOK, tenant)
            .await?;
        let secret = WebhookSecret::generate().to_text();
        let webhook = self
            .inner
            .store
            .tenant_tx(tenant, async |tx| {
                tx.webhook_lock(id).await?;
                let sealed = self.seal_secret(tx, id, &secret).await?;
                let rotated = tx.webhook_rotate(id, &sealed, ROTATION_HOURS).await?;
                self.audit(tx, &call.context, permit.record().on(id))
                    .await?;
                Ok::<_, Failure>(rotated)
            })
            .await?;
        Ok(CreatedWebhook { webhook, secret })
    }

    /// Sends it something to try it with.
    pub async fn webhook_test(
        &self,
        call: &Call,
        tenant: TenantId,
        id: Uuid,
    ) -> Result<StoredDelivery> {
        let permit = self
            .may_change(call, operation::TEST_WEBHOOK, tenant)
            .await?;
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                let webhook = tx.webhook_lock(id).await?;
                if !webhook.enabled {
                    return Err(disabled());
                }
                let data = json!({"tenant_id": tenant.to_string(), "title": "A test", "text": ""});
                let sent = tx.deliver_to_webhook(id, TEST_KIND, &data).await?;
                self.audit(tx, &call.context, permit.record().on(id))
                    .await?;
                Ok(sent)
            })
            .await
    }

    /// What changes where a tenant's notifications go needs the permission in every environment.
    pub(crate) async fn may_change(
        &self,
        call: &Call,
        operation: Operation,
        tenant: TenantId,
    ) -> Result<Permit> {
        let permit = self.permit(call, operation, tenant).await?;
        self.ensure_in(call, &permit, EVERY_ENVIRONMENT)?;
        Ok(permit)
    }

    fn checked_webhook(&self, input: SetWebhook) -> Result<WebhookSetup> {
        let name = input::name("name", &input.name, 100)?;
        let rules = &self.inner.settings.webhooks.rules;
        if input.url.len() > LONGEST_URL {
            return Err(Failure::field(
                "url",
                format!("it has more than {LONGEST_URL} bytes"),
            ));
        }
        let url = rules.check_text(&input.url).map_err(|error| match error {
            OutboundError::NotAnAddress(_) => Failure::field("url", "this is not an address"),
            other => Error::from(other).into(),
        })?;
        let mut kinds = input.kinds;
        kinds.sort();
        kinds.dedup();
        if let Some(kind) = kinds.iter().find(|kind| !is_kind(kind)) {
            return Err(Failure::field("kinds", unknown_kind(kind)));
        }
        Ok(WebhookSetup {
            name,
            url: url.to_string(),
            kinds,
            enabled: input.enabled,
        })
    }

    async fn seal_secret(&self, tx: &mut TenantTx, id: Uuid, secret: &str) -> Result<Vec<u8>> {
        self.seal(tx, &StoredWebhook::secret_field(id), secret.as_bytes())
            .await
    }
}

pub(crate) fn is_kind(text: &str) -> bool {
    NOTIFICATION_KINDS.contains(&text)
}

pub(crate) fn unknown_kind(text: &str) -> String {
    let text: String = text.chars().take(40).collect();
    format!(
        "there is no kind `{text}`; give some of {}",
        NOTIFICATION_KINDS.join(", ")
    )
}

fn too_many() -> Failure {
    let message = format!("a tenant has at most {MOST_WEBHOOKS} webhooks");
    Error::new(ErrorCode::WEBHOOKS_EXHAUSTED, message)
        .with_help("delete one, or let one receiver pass messages on")
        .into()
}

pub(crate) fn disabled() -> Failure {
    Error::new(
        ErrorCode::DELIVERY_WITHOUT_RECEIVER,
        "the webhook is switched off",
    )
    .with_help("enable it first")
    .into()
}

/// As the audit trail has it. Paths and queries of addresses often have a secret in them.
fn told(webhook: &StoredWebhook) -> Value {
    let url = url::Url::parse(&webhook.url).ok();
    let host = url.as_ref().and_then(|url| url.host_str());
    json!({
        "name": webhook.name,
        "host": host,
        "kinds": webhook.kinds,
        "enabled": webhook.enabled,
    })
}

/// A webhook as answers have it.
pub fn describe_webhook(row: StoredWebhook, secret: Option<Zeroizing<String>>) -> Webhook {
    Webhook {
        id: row.id.to_string(),
        name: row.name,
        url: row.url,
        kinds: row.kinds,
        enabled: row.enabled,
        disabled_reason: row.disabled_reason,
        previous_secret_until: row.previous_until.map(|at| at.0.to_string()),
        created_at: row.created_at.0.to_string(),
        updated_at: row.updated_at.0.to_string(),
        secret: secret.map(|text| text.to_string()),
    }
}
