//! Questions, one file for each kind of thing. Every field is a few lines over a use case.

mod approvals;
mod audit;
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
mod runs;
mod tenants;
mod upgrades;
mod zones;

pub(crate) use approvals::ApprovalQueries;
pub(crate) use audit::AuditQueries;
pub(crate) use catalog::CatalogQueries;
pub(crate) use cmdb::CmdbQueries;
pub(crate) use deliveries::DeliveryQueries;
pub(crate) use deployments::DeploymentQueries;
pub(crate) use library::LibraryQueries;
pub(crate) use notifications::NotificationQueries;
pub(crate) use people::PeopleQueries;
pub(crate) use resolvers::ResolverQueries;
pub(crate) use reviews::ReviewQueries;
pub(crate) use roles::RoleQueries;
pub(crate) use runs::RunQueries;
pub(crate) use tenants::TenantQueries;
pub(crate) use upgrades::UpgradeQueries;
pub(crate) use zones::ZoneQueries;
