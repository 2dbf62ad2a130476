//! What somebody was told in person, as it is kept.

use async_graphql::{ID, SimpleObject};
use nimbus_control_wire::Notification;

use crate::scalars::GraphTime;

/// Something that you were told in person. Nobody else sees it. What it is about may be gone.
#[derive(Clone, Debug, SimpleObject)]
#[graphql(name = "KeptNotification")]
pub(crate) struct KeptNotificationNode {
    id: ID,
    /// `approval_required`, `approval_completed`, `run_failed` or `run_needs_attention`; there may be more.
    kind: String,
    title: String,
    text: String,
    approval_id: Option<ID>,
    run_id: Option<ID>,
    deployment_id: Option<String>,
    environment: Option<String>,
    created_at: GraphTime,
    /// When you first noted that you have read it.
    read_at: Option<GraphTime>,
}

impl From<Notification> for KeptNotificationNode {
    fn from(kept: Notification) -> Self {
        Self {
            id: kept.id.into(),
            kind: kept.kind,
            title: kept.title,
            text: kept.text,
            approval_id: kept.approval.map(ID::from),
            run_id: kept.run.map(ID::from),
            deployment_id: kept.deployment,
            environment: kept.environment,
            created_at: GraphTime(kept.created_at),
            read_at: kept.read_at.map(GraphTime),
        }
    }
}
