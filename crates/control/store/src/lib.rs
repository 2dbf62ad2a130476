//! PostgreSQL: roles, migrations, tenancy and every query of the control plane.
//!
//! The only crate that names a database library. What is in the database of one tenant is reached
//! through [`Store::tenant_tx`] and nothing else: it sets the tenant for one transaction, and row-level
//! security does the rest. Queries are methods of [`TenantTx`] named `resource_verb`, one file per
//! resource. What changes the registry of tenants goes through [`Store::registry_tx`].
//!
//! To add a table: a file in `migrations/global` (in `nimbus_core`) or `migrations/tenant` (in every
//! tenant's schema) that ends with `SELECT nimbus_core.protect_tenant_table('name')`. Its keys, unique
//! indexes and references begin with `tenant_id`. [`weaknesses`](Store::weaknesses) refuses to start
//! with a table that lacks any of it, and the suites over the catalog test it without being told.
//!
//! Nothing here decides who may do what; callers have asked before.

mod audit;
mod backup;
mod blob;
mod bootstrap;
mod catalog;
mod cloud_account;
mod compartment;
mod config;
mod data_key;
mod deployment;
mod error;
mod figures;
mod identity;
mod measured;
mod migrate;
mod migrations;
mod page;
mod probe;
mod quota;
mod read_trail;
mod request_answer;
mod role;
mod run;
mod run_history;
mod run_news;
mod session;
mod setup;
mod sign_in;
mod state_object;
mod store;
mod tenant;
mod time;
mod tx;
mod unit_record;
mod weakness;
mod work;

pub use audit::{AuditFilter, ChainHead};
pub use backup::{BackupManifest, BackupScope, RestoreKeys};
pub use blob::WorkspaceFile;
pub use cloud_account::{CloudAccount, NewCloudAccount};
pub use compartment::Compartment;
pub use config::{Credentials, DatabaseAddress, Host, Isolation, Roles, StoreConfig, Tls};
pub use deployment::{DeploymentFilter, NewDeployment, StoredDeployment};
pub use error::StoreError;
pub use identity::{Group, NewUser, User, UserChange};
pub use migrate::{MigrationReport, SchemaVersion};
pub use page::{ListPage, RowPlace};
pub use probe::WriteProbe;
pub use quota::{EffectiveQuota, EffectiveSetting, Quota};
pub use read_trail::FlushedReads;
pub use request_answer::RequestAnswer;
pub use role::{CustomRole, Holder, RoleAssignment, RoleHolding};
pub use run::{HeldRun, NewRun, RUN_LEASE_SECONDS, RunEnd, RunFilter, StoredEvent, StoredRun};
pub use run_history::{LogPlace, RunLogFilter, UsualDuration};
pub use run_news::RunNotices;
pub use session::{ApiKey, NewApiKey, Session};
pub use setup::SetupStatus;
pub use sign_in::{AccountDigest, SignInAttempt};
pub use state_object::{ListedStateObject, StateExpectation, StateObject};
pub use store::Store;
pub use tenant::{NewTenant, Tenant, TenantChange, TenantFilter};
pub use time::Timestamp;
pub use tx::{RegistryTx, TenantTx};
pub use unit_record::{EnvironmentKey, StoredSignature};
pub use weakness::Weakness;
pub use work::WorkTurn;
