//! What leaves a server: webhooks, what was sent, and what somebody wants to be sent.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A receiver of a tenant's notifications.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Webhook {
    pub id: String,
    pub name: String,
    pub url: String,
    /// Kinds of notifications that it gets; none stands for all.
    pub kinds: Vec<String>,
    pub enabled: bool,
    /// Why the server stopped calling it by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disabled_reason: Option<String>,
    /// Until then messages are signed with the secret before the present one as well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous_secret_until: Option<String>,
    pub created_at: String,
    pub updated_at: String,
    /// What messages are signed with; shown when it is made and never again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
}

/// What is set about a webhook.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SetWebhook {
    pub name: String,
    /// Where messages are posted to, with `https`.
    pub url: String,
    /// Kinds of notifications; all of them if none is named.
    #[serde(default)]
    pub kinds: Vec<String>,
    #[serde(default = "yes")]
    pub enabled: bool,
}

fn yes() -> bool {
    true
}

/// Something that was sent, or is to be. What it says is its receiver's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Delivery {
    /// The same each time that it is sent; a webhook has it as `webhook-id`.
    pub id: String,
    /// `webhook` or `email`.
    pub channel: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub webhook: Option<String>,
    /// The user whom a mail is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    pub kind: String,
    /// `pending`, `delivered`, `dead`, or `dropped` where there is nobody to deliver it to.
    pub status: String,
    pub attempts: u32,
    /// When it is tried next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_attempt_at: Option<String>,
    /// Why it was not delivered, or not yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    pub created_at: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<String>,
}

/// One time that it was tried.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DeliveryTry {
    pub number: u32,
    pub began_at: String,
    /// Absent if it was cut short: then nobody knows whether it arrived.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<String>,
    /// The number of the answer, of HTTP or SMTP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// Something that was sent, with every time that it was tried.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DeliveryDetail {
    #[serde(flatten)]
    pub delivery: Delivery,
    /// The newest first.
    pub tries: Vec<DeliveryTry>,
}

/// How many are sent again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ResentDeliveries {
    pub resent: u64,
}

/// How somebody is told of a kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KindPreference {
    /// A kind of notifications, or `*` for those that come later.
    pub kind: String,
    /// `instant` or `off`.
    pub in_app: String,
    /// `instant`, `digest` or `off`.
    pub email: String,
}

/// When somebody's digest is sent, in UTC.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DigestSchedule {
    /// `daily` or `weekly`.
    pub period: String,
    /// 0 to 23.
    #[serde(default = "seven")]
    pub hour: u8,
    /// Of a weekly one; 1 is Monday.
    #[serde(default = "monday")]
    pub weekday: u8,
}

fn seven() -> u8 {
    7
}

fn monday() -> u8 {
    1
}

/// What somebody wants to be told and how.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NotificationPreferences {
    pub kinds: Vec<KindPreference>,
    pub digest: DigestSchedule,
    /// When the next digest is sent; absent while nothing is gathered for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest_due_at: Option<String>,
    /// Whether this server sends mail at all.
    pub mail: bool,
}

/// One choice of somebody.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SetPreference {
    /// A kind of notifications, or `*` for all that have no choice of their own.
    pub kind: String,
    /// `in_app` or `email`.
    pub channel: String,
    /// `off`, `instant`, `digest` (of mail), or `default` to take a choice back.
    pub mode: String,
}

/// Choices of somebody; what is not named stays.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SetPreferences {
    #[serde(default)]
    pub set: Vec<SetPreference>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<DigestSchedule>,
}
