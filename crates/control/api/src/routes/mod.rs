//! One file per resource; every handler is a few lines over a use case.

mod approvals;
mod audit;
mod auth;
mod cloud_accounts;
mod cmdb;
mod components;
mod deployments;
mod governance;
mod graphql;
mod groups;
mod keys;
mod library;
mod live;
mod notifications;
mod resolvers;
mod reviews;
mod roles;
mod runs;
mod semantic;
mod states;
mod tenants;
mod unit_states;
mod users;
mod webhooks;
mod workers;
mod workflows;
mod workspace;
mod zones;

use nimbus_control_app::Failure;

use crate::problem::ApiError;
use crate::route::Route;

pub(crate) use graphql::OWN_MEDIA;

pub(crate) type ApiResult<T> = Result<T, ApiError>;

/// Every route there is.
pub(crate) fn all() -> Vec<Route> {
    [
        auth::routes(),
        graphql::routes(),
        tenants::routes(),
        users::routes(),
        groups::routes(),
        keys::routes(),
        cloud_accounts::routes(),
        resolvers::routes(),
        roles::routes(),
        audit::routes(),
        deployments::routes(),
        runs::routes(),
        approvals::routes(),
        notifications::routes(),
        webhooks::routes(),
        live::routes(),
        states::routes(),
        unit_states::routes(),
        reviews::routes(),
        library::routes(),
        workspace::routes(),
        components::routes(),
        governance::routes(),
        semantic::routes(),
        cmdb::routes(),
        zones::routes(),
        workers::routes(),
        workflows::routes(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// An id in a body.
fn id<T: std::str::FromStr>(field: &'static str, text: &str) -> Result<T, Failure> {
    text.parse()
        .map_err(|_| Failure::field(field, "this is not an id"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use nimbus_control_auth::operation::OPERATIONS;

    #[test]
    fn every_operation_has_its_route_and_every_route_its_operation() {
        let routes: Vec<_> = super::all()
            .iter()
            .map(|route| route.operation.id)
            .collect();
        let unique: BTreeSet<_> = routes.iter().copied().collect();
        assert_eq!(unique.len(), routes.len());
        let operations: BTreeSet<_> = OPERATIONS.iter().map(|operation| operation.id).collect();
        assert_eq!(unique, operations);
    }
}
