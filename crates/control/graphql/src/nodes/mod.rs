//! What answers have: one type for each thing, made from the rows that use cases give.

mod approval;
mod audit;
mod catalog;
mod cmdb;
mod delivery;
mod deployment;
mod event;
mod identity;
mod library;
mod notification;
mod resolver;
mod review;
mod role;
mod run;
mod tenant;
mod upgrade;
mod zone;

pub(crate) use approval::{ApprovalPolicyNode, ApprovalRequestNode, ApprovalResultNode};
pub(crate) use audit::{AuditNode, AuditVerificationNode};
pub(crate) use catalog::{
    CloudNode, ComponentInstanceNode, ComponentNode, ComponentVersionNode, PublishedComponentNode,
    RuleNode, SemanticMappingNode, SemanticTypeNode, VersionChangesNode,
};
pub(crate) use cmdb::{
    CompartmentNode, ImportJobNode, ItemClassNode, ItemGraphNode, ItemHistoryNode, ItemNode,
    ListedItems, RelationshipNode, SearchResultsNode, SearchTypeNode, UnitSyncNode,
};
pub(crate) use delivery::{DeliveryNode, PreferencesNode, WebhookNode};
pub(crate) use deployment::{
    CloudAccountNode, DeploymentNode, EnvironmentNode, EnvironmentVersionNode,
};
pub(crate) use event::{
    ApprovalNode, DriftNode, NotificationNode, ResourceChangeNode, StateChangeNode, TenantEventNode,
};
pub(crate) use identity::{
    ApiKeyNode, AuthNode, GroupNode, PermissionNode, SessionNode, UserNode, ViewerNode,
};
pub(crate) use library::{StackNode, TemplateNode};
pub(crate) use notification::KeptNotificationNode;
pub(crate) use resolver::{
    ImageNode, LeaseNode, PoolNode, ResolverConfigurationNode, ResolverNode,
};
pub(crate) use review::{DraftNode, MarkNode, ReviewNode, SystemNode};
pub(crate) use role::{ExplanationNode, RoleAssignmentNode, RoleNode};
pub(crate) use run::{
    ProgressNode, RunDetailNode, RunEventNode, RunEventsNode, RunLogNode, RunNode,
    UnitResourcesNode,
};
pub(crate) use tenant::{EffectiveNode, TenantNode};
pub(crate) use upgrade::{ImpactNode, PreviewedNode, RolloutNode};
pub(crate) use zone::{ZoneEnvironmentNode, ZoneNode, ZoneTemplateNode};
