//! Changes of where notifications go: webhooks, what is sent again, and what the caller wants to be sent.

use async_graphql::{Context, ID, InputObject, Object};
use nimbus_control_app::{Failure, describe_delivery, describe_webhook};
use nimbus_control_wire::{DigestSchedule, SetPreference, SetPreferences, SetWebhook};

use crate::act::{FieldResult, act, act_once, asked};
use crate::nodes::{DeliveryNode, PreferencesNode, WebhookNode};
use crate::scalars::thing;

#[derive(Default)]
pub(crate) struct DeliveryChanges;

/// What is set about a webhook.
#[derive(InputObject)]
#[graphql(name = "WebhookInput")]
struct WebhookArgs {
    name: String,
    /// Where messages are posted to, with `https`.
    url: String,
    /// Kinds of notifications; all of them if none is named.
    #[graphql(default)]
    kinds: Vec<String>,
    #[graphql(default = true)]
    enabled: bool,
}

impl From<WebhookArgs> for SetWebhook {
    fn from(given: WebhookArgs) -> Self {
        Self {
            name: given.name,
            url: given.url,
            kinds: given.kinds,
            enabled: given.enabled,
        }
    }
}

/// One choice of yours.
#[derive(InputObject)]
#[graphql(name = "PreferenceInput")]
struct PreferenceArgs {
    /// A kind of notifications, or `*` for all that have no choice of their own.
    kind: String,
    /// `in_app` or `email`.
    channel: String,
    /// `off`, `instant`, `digest` (of mail), or `default` to take a choice back.
    mode: String,
}

/// When your digest is sent, in UTC.
#[derive(InputObject)]
#[graphql(name = "DigestInput")]
struct DigestArgs {
    /// `daily` or `weekly`.
    period: String,
    #[graphql(default = 7)]
    hour: u32,
    /// Of a weekly one; 1 is Monday.
    #[graphql(default = 1)]
    weekday: u32,
}

/// Choices of yours; what is not named stays.
#[derive(InputObject)]
#[graphql(name = "NotificationPreferencesInput")]
struct PreferencesArgs {
    #[graphql(default)]
    set: Vec<PreferenceArgs>,
    digest: Option<DigestArgs>,
}

fn small(field: &'static str, number: u32) -> Result<u8, Failure> {
    u8::try_from(number).map_err(|_| Failure::field(field, "this is too large"))
}

impl TryFrom<PreferencesArgs> for SetPreferences {
    type Error = Failure;

    fn try_from(given: PreferencesArgs) -> Result<Self, Failure> {
        let choice = |one: PreferenceArgs| SetPreference {
            kind: one.kind,
            channel: one.channel,
            mode: one.mode,
        };
        let digest = given.digest.map(|digest| {
            Ok::<_, Failure>(DigestSchedule {
                period: digest.period,
                hour: small("digest.hour", digest.hour)?,
                weekday: small("digest.weekday", digest.weekday)?,
            })
        });
        Ok(Self {
            set: given.set.into_iter().map(choice).collect(),
            digest: digest.transpose()?,
        })
    }
}

#[Object]
impl DeliveryChanges {
    /// Make a webhook. Its secret is shown now and never again.
    async fn create_webhook(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        input: WebhookArgs,
        idempotency_key: Option<String>,
    ) -> FieldResult<WebhookNode> {
        let asked = asked(ctx)?;
        act_once(ctx, idempotency_key, true, async {
            let tenant = asked.tenant(tenant_id.as_ref()).await?;
            let (app, call) = (asked.app(), asked.call()?);
            let made = app.webhook_create(call, tenant, input.into()).await?;
            Ok(describe_webhook(made.webhook, Some(made.secret)).into())
        })
        .await
    }

    /// Replace what is set about a webhook; its secret stays.
    async fn update_webhook(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        id: ID,
        input: WebhookArgs,
    ) -> FieldResult<WebhookNode> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let tenant = asked.tenant(tenant_id.as_ref()).await?;
            let (app, call) = (asked.app(), asked.call()?);
            let changed = app.webhook_update(call, tenant, thing(&id)?, input.into());
            Ok(describe_webhook(changed.await?, None).into())
        })
        .await
    }

    /// Delete a webhook. What was not delivered to it is dropped.
    async fn delete_webhook(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        id: ID,
    ) -> FieldResult<bool> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let tenant = asked.tenant(tenant_id.as_ref()).await?;
            let (app, call) = (asked.app(), asked.call()?);
            app.webhook_delete(call, tenant, thing(&id)?).await?;
            Ok(true)
        })
        .await
    }

    /// Give a webhook a new secret. The one before signs as well for a day.
    async fn rotate_webhook_secret(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        id: ID,
        idempotency_key: Option<String>,
    ) -> FieldResult<WebhookNode> {
        let asked = asked(ctx)?;
        act_once(ctx, idempotency_key, true, async {
            let tenant = asked.tenant(tenant_id.as_ref()).await?;
            let (app, call) = (asked.app(), asked.call()?);
            let rotated = app.webhook_rotate(call, tenant, thing(&id)?).await?;
            Ok(describe_webhook(rotated.webhook, Some(rotated.secret)).into())
        })
        .await
    }

    /// Send a webhook something to try it with.
    async fn test_webhook(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        id: ID,
        idempotency_key: Option<String>,
    ) -> FieldResult<DeliveryNode> {
        let asked = asked(ctx)?;
        act_once(ctx, idempotency_key, false, async {
            let tenant = asked.tenant(tenant_id.as_ref()).await?;
            let (app, call) = (asked.app(), asked.call()?);
            let sent = app.webhook_test(call, tenant, thing(&id)?).await?;
            Ok(describe_delivery(sent).into())
        })
        .await
    }

    /// Send every dead letter of a webhook again; how many there were.
    async fn resend_webhook(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        id: ID,
        idempotency_key: Option<String>,
    ) -> FieldResult<u64> {
        let asked = asked(ctx)?;
        act_once(ctx, idempotency_key, false, async {
            let tenant = asked.tenant(tenant_id.as_ref()).await?;
            let (app, call) = (asked.app(), asked.call()?);
            app.webhook_resend(call, tenant, thing(&id)?).await
        })
        .await
    }

    /// Send something again, with the id that it had.
    async fn resend_delivery(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        id: ID,
        idempotency_key: Option<String>,
    ) -> FieldResult<DeliveryNode> {
        let asked = asked(ctx)?;
        act_once(ctx, idempotency_key, false, async {
            let tenant = asked.tenant(tenant_id.as_ref()).await?;
            let (app, call) = (asked.app(), asked.call()?);
            let again = app.delivery_resend(call, tenant, thing(&id)?).await?;
            Ok(describe_delivery(again).into())
        })
        .await
    }

    /// Choose what you want to be told and how.
    async fn set_notification_preferences(
        &self,
        ctx: &Context<'_>,
        input: PreferencesArgs,
    ) -> FieldResult<PreferencesNode> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let (app, call) = (asked.app(), asked.call()?);
            let chosen = app.preferences_set(call, input.try_into()?).await?;
            Ok(chosen.into())
        })
        .await
    }
}
