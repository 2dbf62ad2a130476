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

mod address_pool;
mod approval;
mod approval_policy;
mod audit;
mod backup;
mod blob;
mod bootstrap;
mod catalog;
mod cloud_account;
mod cmdb;
mod compartment;
mod component;
mod config;
mod data_key;
mod delivery;
mod deployment;
mod draft;
mod error;
mod figures;
mod governance;
mod identity;
mod landing_zone;
mod lease_space;
mod live;
mod live_relay;
mod measured;
mod migrate;
mod migrations;
mod notification;
mod notification_preference;
mod page;
mod probe;
mod quota;
mod read_trail;
mod request_answer;
mod resolver;
mod resolver_lease;
mod review_mark;
mod role;
mod run;
mod run_history;
mod sealed_plan;
mod semantic;
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
mod webhook;
mod work;
mod worker;

pub use address_pool::{AddressPool, PoolUsage};
pub use approval::{ApprovalFilter, ApprovalMove, NewApproval, StoredApproval, StoredDecision};
pub use approval_policy::{NewApprovalPolicy, StoredApprovalPolicy, StoredDelegation};
pub use audit::{AuditFilter, ChainHead};
pub use backup::{BackupManifest, BackupScope, RestoreKeys};
pub use blob::WorkspaceFile;
pub use cloud_account::{CloudAccount, NewCloudAccount};
pub use cmdb::{
    CheckedImport, CmdbSync, GraphLimits, GraphPart, ImportCounts, ItemFilter, ItemStatus,
    KnownSync, NewClass, NewImport, NewRelationship, StoredClass, StoredHistory, StoredImport,
    StoredItem, StoredRelationship, StoredSync, SyncCounts,
};
pub use compartment::{Compartment, NewCompartment};
pub use component::{
    ComponentFilter, ComponentUser, DraftContent, NewVersion, StoredComponent, StoredVersion,
};
pub use config::{Credentials, DatabaseAddress, Host, Isolation, Roles, StoreConfig, Tls};
pub use delivery::{
    AttemptEnd, DeliveryAttempt, DeliveryChannels, DeliveryEnd, DeliveryFilter, StoredDelivery,
    TakenDelivery,
};
pub use deployment::{DeploymentFilter, NewDeployment, StoredDeployment};
pub use draft::{DRAFT_DAYS, StoredDraft};
pub use error::StoreError;
pub use figures::{DatabaseFigures, WorkFigures};
pub use governance::{DeployedComponent, NewInstance, NewRule, StoredRule, rules_in_force};
pub use identity::{Group, NewUser, User, UserChange};
pub use landing_zone::{
    EnvironmentTemplate, LandingZone, NewEnvironment, NewZone, TenantEnvironment,
};
pub use live_relay::{DatabaseFanOut, RelayedEvents};
pub use migrate::{MigrationReport, SchemaVersion};
pub use notification::{
    KEPT_NOTIFICATIONS, NOTIFICATION_KINDS, NewNotification, NotifiedPeople, StoredNotification,
};
pub use notification_preference::{StoredDigest, StoredPreference};
pub use page::{ListPage, MarkCursor, NamedCursor, RowCursor};
pub use probe::WriteProbe;
pub use quota::{EffectiveQuota, EffectiveSetting, Quota};
pub use read_trail::FlushedReads;
pub use request_answer::RequestAnswer;
pub use resolver::{
    CatalogImage, ResolverConfiguration, ResolverPlace, ScopedSettings, StoredResolver, ZoneRef,
};
pub use resolver_lease::{HeldLease, LeaseAsk, LeaseFilter, SecretSeal, UnitSettlement};
pub use review_mark::{SinceThen, StoredMark};
pub use role::{CustomRole, Holder, RoleAssignment, RoleHolding};
pub use run::{HeldRun, NewRun, RUN_LEASE_SECONDS, RunEnd, RunFilter, StoredEvent, StoredRun};
pub use run_history::{LogCursor, RunLogFilter, UsualDuration};
pub use semantic::{SemanticCloud, SemanticMapping, SemanticType};
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
pub use webhook::{MOST_WEBHOOKS, StoredWebhook, WebhookSetup};
pub use work::WorkTurn;
pub use worker::{NewWorker, StoredWorker};
