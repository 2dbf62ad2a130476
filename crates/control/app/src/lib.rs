//! Use cases, one file per resource.
//!
//! Each does the same three things in the same order: ask whether the caller may
//! ([`App::permit`](app::App)), change what is stored inside one tenant's transaction, and record it
//! in the audit trail in that same transaction. There is no other way from a request to the store.
//!
//! What a caller may not even see looks like what does not exist. Transports (REST, GraphQL, the
//! command line of an installation) add nothing to these rules.

mod app;
mod approval_binding;
mod approval_deciders;
mod approval_notices;
mod approval_policies;
mod approvals;
mod archive;
mod audit;
mod batches;
mod call;
mod checkpoint;
mod cloud_accounts;
mod cmdb;
mod cmdb_catalog;
mod cmdb_import;
mod cmdb_views;
mod component_rows;
mod components;
mod deliveries;
mod delivery_worker;
mod deployments;
mod drafts;
mod environments;
mod failure;
mod feeds;
mod flows;
mod gates;
mod governance;
mod groups;
mod input;
mod kept_paths;
mod key_files;
mod keys;
mod library;
mod live;
mod live_log;
mod mail_text;
mod notification_preferences;
mod notifications;
mod problem;
mod recover;
mod relay;
mod repeat;
mod resolvers;
mod retention;
mod review;
mod roles;
mod run_fold;
mod run_input;
mod run_signals;
mod run_view;
mod runs;
mod runs_left;
mod secrets;
mod semantic;
mod setup;
mod sign_in;
mod state_diff;
mod state_exports;
mod states;
mod system;
mod tenants;
mod topic_watchers;
mod unit_states;
mod users;
mod versions;
mod webhooks;
mod wiring;
mod workers;
mod workflows;
mod workspace;
mod zone_environments;
mod zones;

pub use app::{App, AppKeys, AppSettings};
pub use approval_policies::describe_approval;
pub use approvals::{ApprovalAnswer, ApprovalEntry};
pub use archive::ArchiveAddress;
pub use audit::{AuditExport, AuditVerification, ExportFormat};
pub use call::{Call, Identity, RequestContext};
pub use cloud_accounts::CloudAccountInput;
pub use cmdb::ItemQuestion;
pub use cmdb_catalog::{SearchCursor, SearchKind};
pub use cmdb_views::{
    describe_class, describe_compartment, describe_graph, describe_history, describe_import,
    describe_item, describe_relationship, describe_sync,
};
pub use component_rows::{
    ComponentInput, ComponentView, PublishInput, PublishedVersion, VersionDifference,
};
pub use deliveries::{describe_delivery, describe_delivery_detail};
pub use delivery_worker::DeliveryWorker;
pub use deployments::DeploymentInput;
pub use environments::{DeploymentEnvironment, DeploymentOutline, outline};
pub use failure::{Failure, FieldProblem, Result};
pub use feeds::{AuditFeed, DeploymentFeed};
pub use governance::RuleInput;
pub use groups::{GroupPatch, NewGroup};
pub use key_files::GivenKeys;
pub use keys::{CreatedKey, KeyInput};
pub use library::{StackEntry, TemplateEntry};
pub use live::{LiveFeed, LivePart, LiveRoom, is_event_type};
pub use notifications::describe_notification;
pub use problem::Problem;
pub use recover::{RecoverInput, Recovered};
pub use relay::LiveRelay;
pub use repeat::{KeptAnswer, RequestKey};
pub use resolvers::{ImageInput, PoolInput, ResolverConfigInput};
pub use roles::{AssignmentInput, PermissionQuestion, RoleInput, RoleView};
pub use run_input::{OrderCheck, RunInput};
pub use run_signals::RunSignal;
pub use run_view::{FeedPart, LogQuestion, RunChoice, RunFeed, describe_run};
pub use runs::QueuedRun;
pub use semantic::{SemanticMappingInput, SemanticTypeInput};
pub use setup::SetupInput;
pub use sign_in::{LoginInput, SignedIn};
pub use states::{StatePlace, StateSource, StoredUnitState, UnitNames, UnitStateSource};
pub use system::SystemSource;
pub use tenants::{EffectiveTenant, TenantInput, TenantPatch};
pub use unit_states::UnitPlace;
pub use users::{UserInput, UserPatch};
pub use webhooks::{CreatedWebhook, describe_webhook};
pub use workers::{HeldRunCall, HeldRunSource};
pub use workflows::WorkflowQuestion;
pub use zone_environments::ZoneEnvironmentInput;
pub use zones::{PlacedComponent, ZoneInput, ZoneView};

pub use nimbus_catalog::{
    ComponentContract, ContractBinding, ContractChange, FileChange, ParameterRules, SurfaceReader,
};
pub use nimbus_control_audit::{AuditEntry, ChainVerdict};
pub use nimbus_control_auth::access::Decision;
pub use nimbus_control_auth::{operation, permission};
pub use nimbus_control_delivery::{MailEncryption, MailRelay, WebhookSettings};
pub use nimbus_control_events::{EventTopic, FanOut, LiveCursor, LiveEvent};
pub use nimbus_control_store::{
    AddressPool, ApiKey, ApprovalFilter, AuditFilter, CatalogImage, CloudAccount, Compartment,
    ComponentFilter, DeliveryFilter, DeployedComponent, DeploymentFilter, EnvironmentTemplate,
    Group, HeldLease, LandingZone, LeaseFilter, ListPage, NamedCursor, PoolUsage,
    ResolverConfiguration, RoleAssignment, RowCursor, RunFilter, SemanticCloud, SemanticMapping,
    SemanticType, Session, SetupStatus, StoredClass, StoredComponent, StoredDelivery,
    StoredDeployment, StoredEvent, StoredHistory, StoredImport, StoredItem, StoredNotification,
    StoredRelationship, StoredResolver, StoredRule, StoredRun, StoredSync, StoredVersion, Tenant,
    TenantEnvironment, TenantFilter, Timestamp, User, ZoneRef,
};
