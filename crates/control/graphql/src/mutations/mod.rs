//! Changes, one file for each kind of thing. Every field is a few lines over a use case; those that make something take
//! an `idempotencyKey` and happen once for each.

mod approvals;
mod catalog;
mod cmdb;
mod deliveries;
mod deployments;
mod library;
mod notifications;
mod people;
mod resolvers;
mod reviews;
mod roles;
mod sign_in;
mod tenants;
mod upgrades;
mod zones;

pub(crate) use approvals::ApprovalChanges;
pub(crate) use catalog::CatalogChanges;
pub(crate) use cmdb::CmdbChanges;
pub(crate) use deliveries::DeliveryChanges;
pub(crate) use deployments::DeploymentChanges;
pub(crate) use library::LibraryChanges;
pub(crate) use notifications::NotificationChanges;
pub(crate) use people::PeopleChanges;
pub(crate) use resolvers::ResolverChanges;
pub(crate) use reviews::ReviewChanges;
pub(crate) use roles::RoleChanges;
pub(crate) use sign_in::SignInChanges;
pub(crate) use tenants::TenantChanges;
pub(crate) use upgrades::UpgradeChanges;
pub(crate) use zones::ZoneChanges;
