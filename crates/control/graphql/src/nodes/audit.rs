//! The audit trail.

use async_graphql::{ComplexObject, Context, Json, SimpleObject};
use nimbus_control_app::{AuditEntry, AuditVerification, ChainVerdict};
use nimbus_core::TenantId;
use uuid::Uuid;

use super::UserNode;
use crate::act::FieldResult;
use crate::loaders::{UserKey, load};
use crate::scalars::{AnyJson, GraphTime};

/// What somebody did, or tried.
#[derive(Clone, Debug, SimpleObject)]
#[graphql(name = "AuditLogEntry", complex)]
pub(crate) struct AuditNode {
    #[graphql(skip)]
    tenant: TenantId,
    sequence: u64,
    timestamp: GraphTime,
    actor_kind: &'static str,
    user_id: String,
    original_user: Option<String>,
    action: String,
    resource_type: String,
    resource_id: Option<String>,
    outcome: &'static str,
    priority: &'static str,
    old_value: Option<AnyJson>,
    new_value: Option<AnyJson>,
    trace_id: Option<String>,
    ip_address: Option<String>,
    hash: String,
}

impl AuditNode {
    pub(crate) fn new(tenant: TenantId, entry: AuditEntry) -> Self {
        let value = |text: Option<&str>| {
            let value = text.and_then(|text| serde_json::from_str(text).ok());
            value.map(Json)
        };
        Self {
            tenant,
            sequence: entry.sequence,
            timestamp: GraphTime(entry.at.to_string()),
            actor_kind: entry.record.actor.kind.as_str(),
            old_value: value(entry.record.old_value()),
            new_value: value(entry.record.new_value()),
            outcome: entry.record.outcome.as_str(),
            priority: entry.record.priority.as_str(),
            hash: entry.hash.to_string(),
            user_id: entry.record.actor.id,
            original_user: entry.record.actor.original,
            action: entry.record.action,
            resource_type: entry.record.resource_type,
            resource_id: entry.record.resource_id,
            trace_id: entry.record.trace_id,
            ip_address: entry.record.ip_address,
        }
    }
}

#[ComplexObject]
impl AuditNode {
    /// Who it was, if they are of the tenant and still there.
    async fn user(&self, ctx: &Context<'_>) -> FieldResult<Option<UserNode>> {
        let Ok(user) = self.user_id.parse::<Uuid>() else {
            return Ok(None);
        };
        Ok(load(ctx, UserKey(self.tenant, user))
            .await?
            .map(UserNode::from))
    }
}

/// The judgement of a tenant's whole trail.
#[derive(Clone, Debug, SimpleObject)]
#[graphql(name = "AuditVerification")]
pub(crate) struct AuditVerificationNode {
    intact: bool,
    entries: Option<u64>,
    checkpoints: Option<u64>,
    /// How many of the entries are in the archive.
    archived: u64,
    /// What is wrong, and the entry that it shows at.
    fault: Option<String>,
    fault_sequence: Option<u64>,
    /// With which the checkpoints can be verified elsewhere.
    public_key: String,
}

impl From<AuditVerification> for AuditVerificationNode {
    fn from(report: AuditVerification) -> Self {
        let (entries, checkpoints, fault) = match report.verdict {
            ChainVerdict::Intact {
                entries,
                checkpoints,
            } => (Some(entries), Some(checkpoints), None),
            ChainVerdict::Broken { fault } => (None, None, Some(fault)),
        };
        Self {
            intact: fault.is_none(),
            entries,
            checkpoints,
            archived: report.archived,
            fault_sequence: fault.as_ref().map(|fault| fault.sequence),
            fault: fault.map(|fault| fault.to_string()),
            public_key: report.public_key,
        }
    }
}
