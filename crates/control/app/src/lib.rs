//! Use cases, one file per resource.
//!
//! Each does the same three things in the same order: ask whether the caller may
//! ([`App::permit`](app::App)), change what is stored inside one tenant's transaction, and record it
//! in the audit trail in that same transaction. There is no other way from a request to the store.
//!
//! What a caller may not even see looks like what does not exist. Transports (REST, GraphQL, the
//! command line of an installation) add nothing to these rules.

mod app;
mod archive;
mod audit;
mod call;
mod checkpoint;
mod cloud_accounts;
mod deployments;
mod environments;
mod failure;
mod groups;
mod input;
mod key_files;
mod keys;
mod library;
mod news;
mod recover;
mod repeat;
mod retention;
mod roles;
mod run_fold;
mod run_view;
mod runs;
mod secrets;
mod setup;
mod sign_in;
mod states;
mod tenants;
mod users;
mod workspace;

pub use app::{App, AppKeys, AppSettings};
pub use archive::ArchiveAddress;
pub use audit::{AuditExport, AuditVerification, ExportFormat};
pub use call::{Call, Identity, RequestContext};
pub use cloud_accounts::CloudAccountInput;
pub use deployments::DeploymentInput;
pub use environments::{DeploymentEnvironment, DeploymentOutline, outline};
pub use failure::{Failure, FieldProblem, Result};
pub use groups::{GroupPatch, NewGroup};
pub use key_files::GivenKeys;
pub use keys::{CreatedKey, KeyInput};
pub use library::{StackEntry, TemplateEntry};
pub use news::NewsSource;
pub use recover::{RecoverInput, Recovered};
pub use repeat::{KeptAnswer, RequestKey};
pub use roles::{AssignmentInput, PermissionQuestion, RoleInput, RoleView};
pub use run_view::{FeedPart, LogQuestion, RunChoice, RunFeed, describe_run};
pub use runs::{QueuedRun, RunInput, RunSignal};
pub use setup::SetupInput;
pub use sign_in::{LoginInput, SignedIn};
pub use states::{StatePlace, StateSource, StoredUnitState, UnitNames};
pub use tenants::{EffectiveTenant, TenantInput, TenantPatch};
pub use users::{UserInput, UserPatch};

pub use nimbus_control_audit::{AuditEntry, ChainVerdict};
pub use nimbus_control_auth::access::Decision;
pub use nimbus_control_auth::{operation, permission};
pub use nimbus_control_store::{
    ApiKey, AuditFilter, CloudAccount, DeploymentFilter, Group, ListPage, RoleAssignment, RowPlace,
    RunFilter, Session, SetupStatus, StoredDeployment, StoredEvent, StoredRun, Tenant,
    TenantFilter, Timestamp, User,
};
