//! What the API's requests and answers look like, for the server and for its clients.
//!
//! Types and nothing else: no I/O, no decision, no other crate of ours. A field that is added has a default, so that an
//! older client reads a newer server's answers.

mod approval;
mod catalog;
mod cmdb;
mod delivery;
mod deployment;
mod detail;
mod event;
mod frame;
mod notification;
mod review;
mod run;
mod state;
mod system;
mod unit_state;
mod worker;
mod workflow;
mod workspace;
mod zone;

pub use approval::{
    Approval, ApprovalDelegation, ApprovalPolicy, ApprovalVote, DenyApproval, GrantApproval,
    PolicyStep, SetApprovalPolicy, SetDelegation, StepApprover, StepNeed,
};
pub use catalog::{
    Binding, CatalogComponent, ChangedFile, Cloud, ComponentDetail, ComponentDraft,
    ComponentInstance, ComponentVersion, ConstraintExpression, Constraints, Contract,
    ContractDifference, DeprecateVersion, GovernanceRule, KindInCloud, Limits, PublishComponent,
    PublishedComponent, ResourceKind, SetCloud, SetKindInCloud, SetResourceKind, SetRule,
    VersionChanges,
};
pub use cmdb::{
    AddCompartment, CmdbHit, ConfigurationItem, GraphItem, ImportItems, ImportJob, ItemClass,
    ItemCompartment, ItemGraph, ItemHistoryEntry, ItemRelationship, LineProblem, MoveItem,
    RelateItems, SetItemClass, UnitSync,
};
pub use delivery::{
    Delivery, DeliveryDetail, DeliveryTry, DigestSchedule, KindPreference, NotificationPreferences,
    ResentDeliveries, SetPreference, SetPreferences, SetWebhook, Webhook,
};
pub use deployment::{
    Deployment, Environment, EnvironmentGate, EnvironmentGates, EnvironmentVersion, Environments,
    GateStanding, ManifestText, NewDeployment, SignGate, StackStanding, StartRun,
};
pub use detail::{
    FailureCause, PropertyRow, ResourceCounts, RunCheck, RunDetail, RunLogLine, RunLogPage,
    RunTotals, RunUnit, UnitResource, UnitResources,
};
pub use event::{NumberedEvent, RunEvents, event_kind};
pub use frame::{CloseCode, ProgressFrame};
pub use notification::{Notification, ReadNotifications};
pub use review::{
    DraftView, Drafts, OneWayStep, PlanReview, PlanRisk, PutDraft, ReviewMark, RollbackForecast,
    SealItem, SetMark,
};
pub use run::{Run, RunLinks, RunProblem};
pub use state::{DeploymentOutputs, DeploymentState, ResourceView, StateExport, UnitStateView};
pub use system::{DatabaseView, RunnersView, SystemCheck, SystemView};
pub use unit_state::{
    JournalAct, RepairAct, RepairUnit, ResourceDifference, StateDifference, UnitHealth,
    UnitHistory, UnitJournal, UnitRepairReport, UnitStateVersion,
};
pub use worker::{
    JoinWorker, TakeRun, TakenRunView, WorkerAbilities, WorkerAnswer, WorkerBeat, WorkerCall,
    WorkerList, WorkerOrders, WorkerView,
};
pub use workflow::{PlatformSchedule, PlatformSchedules, WorkflowEntry, WorkflowList};
pub use workspace::{
    WorkspaceChange, WorkspaceContents, WorkspaceEntry, WorkspaceFiles, WorkspaceTag,
};
pub use zone::{
    NewZoneEnvironment, PublishZone, SetZoneTemplate, ZoneComponent, ZoneDetail, ZoneDraft,
    ZoneEnvironment, ZoneSummary, ZoneTemplate,
};
