//! Webhooks, what was sent, and what somebody wants to be sent.

use async_graphql::{ID, SimpleObject};
use nimbus_control_wire::{
    Delivery, DeliveryDetail, DeliveryTry, KindPreference, NotificationPreferences, Webhook,
};
use serde::{Deserialize, Serialize};

use crate::scalars::GraphTime;

/// A receiver of a tenant's notifications.
#[derive(Clone, Debug, Serialize, Deserialize, SimpleObject)]
#[graphql(name = "Webhook")]
pub(crate) struct WebhookNode {
    id: ID,
    name: String,
    url: String,
    /// Kinds of notifications that it gets; none stands for all.
    kinds: Vec<String>,
    enabled: bool,
    /// Why the server stopped calling it by itself.
    disabled_reason: Option<String>,
    /// Until then messages are signed with the secret before the present one as well.
    previous_secret_until: Option<GraphTime>,
    created_at: GraphTime,
    updated_at: GraphTime,
    /// What messages are signed with, when it was just made, and never again.
    secret: Option<String>,
}

impl From<Webhook> for WebhookNode {
    fn from(webhook: Webhook) -> Self {
        Self {
            id: webhook.id.into(),
            name: webhook.name,
            url: webhook.url,
            kinds: webhook.kinds,
            enabled: webhook.enabled,
            disabled_reason: webhook.disabled_reason,
            previous_secret_until: webhook.previous_secret_until.map(GraphTime),
            created_at: GraphTime(webhook.created_at),
            updated_at: GraphTime(webhook.updated_at),
            secret: webhook.secret,
        }
    }
}

/// One time that something was sent.
#[derive(Clone, Debug, Serialize, Deserialize, SimpleObject)]
#[graphql(name = "DeliveryTry")]
pub(crate) struct DeliveryTryNode {
    number: u32,
    began_at: GraphTime,
    /// Absent if it was cut short: then nobody knows whether it arrived.
    ended_at: Option<GraphTime>,
    /// The number of the answer, of HTTP or SMTP.
    status: Option<u32>,
    problem: Option<String>,
}

impl From<DeliveryTry> for DeliveryTryNode {
    fn from(tried: DeliveryTry) -> Self {
        Self {
            number: tried.number,
            began_at: GraphTime(tried.began_at),
            ended_at: tried.ended_at.map(GraphTime),
            status: tried.status,
            problem: tried.problem,
        }
    }
}

/// Something that was sent, or is to be. What it says is its receiver's.
#[derive(Clone, Debug, Serialize, Deserialize, SimpleObject)]
#[graphql(name = "Delivery")]
pub(crate) struct DeliveryNode {
    id: ID,
    /// `webhook` or `email`.
    channel: String,
    webhook_id: Option<ID>,
    /// Whom a mail is for.
    user_id: Option<ID>,
    kind: String,
    /// `pending`, `delivered`, `dead`, or `dropped` where there is nobody to deliver it to.
    status: String,
    attempts: u32,
    next_attempt_at: Option<GraphTime>,
    problem: Option<String>,
    created_at: GraphTime,
    ended_at: Option<GraphTime>,
    /// Every time that it was tried, where one delivery was asked for; the newest first.
    tries: Option<Vec<DeliveryTryNode>>,
}

impl From<Delivery> for DeliveryNode {
    fn from(delivery: Delivery) -> Self {
        Self {
            id: delivery.id.into(),
            channel: delivery.channel,
            webhook_id: delivery.webhook.map(ID::from),
            user_id: delivery.user.map(ID::from),
            kind: delivery.kind,
            status: delivery.status,
            attempts: delivery.attempts,
            next_attempt_at: delivery.next_attempt_at.map(GraphTime),
            problem: delivery.problem,
            created_at: GraphTime(delivery.created_at),
            ended_at: delivery.ended_at.map(GraphTime),
            tries: None,
        }
    }
}

impl From<DeliveryDetail> for DeliveryNode {
    fn from(detail: DeliveryDetail) -> Self {
        let tries = detail.tries.into_iter().map(DeliveryTryNode::from);
        Self {
            tries: Some(tries.collect()),
            ..detail.delivery.into()
        }
    }
}

/// How you are told of a kind.
#[derive(Clone, Debug, SimpleObject)]
#[graphql(name = "KindPreference")]
pub(crate) struct KindPreferenceNode {
    /// A kind of notifications, or `*` for those that come later.
    kind: String,
    /// `instant` or `off`.
    in_app: String,
    /// `instant`, `digest` or `off`.
    email: String,
}

impl From<KindPreference> for KindPreferenceNode {
    fn from(chosen: KindPreference) -> Self {
        Self {
            kind: chosen.kind,
            in_app: chosen.in_app,
            email: chosen.email,
        }
    }
}

/// What you want to be told and how.
#[derive(Clone, Debug, SimpleObject)]
#[graphql(name = "NotificationPreferences")]
pub(crate) struct PreferencesNode {
    kinds: Vec<KindPreferenceNode>,
    /// `daily` or `weekly`.
    digest_period: String,
    /// Of UTC, 0 to 23.
    digest_hour: u32,
    /// Of a weekly digest; 1 is Monday.
    digest_weekday: u32,
    /// When the next digest is sent; absent while nothing is gathered for it.
    digest_due_at: Option<GraphTime>,
    /// Whether this server sends mail at all.
    mail: bool,
}

impl From<NotificationPreferences> for PreferencesNode {
    fn from(chosen: NotificationPreferences) -> Self {
        let kinds = chosen.kinds.into_iter().map(KindPreferenceNode::from);
        Self {
            kinds: kinds.collect(),
            digest_period: chosen.digest.period,
            digest_hour: chosen.digest.hour.into(),
            digest_weekday: chosen.digest.weekday.into(),
            digest_due_at: chosen.digest_due_at.map(GraphTime),
            mail: chosen.mail,
        }
    }
}
