//! One file per resource; every handler is a few lines over a use case.

mod audit;
mod auth;
mod cloud_accounts;
mod deployments;
mod groups;
mod keys;
mod library;
mod live;
mod roles;
mod runs;
mod states;
mod tenants;
mod users;
mod workspace;

use nimbus_control_app::Failure;

use crate::problem::ApiError;
use crate::route::Route;

pub(crate) type ApiResult<T> = Result<T, ApiError>;

/// Every route there is.
pub(crate) fn all() -> Vec<Route> {
    [
        auth::routes(),
        tenants::routes(),
        users::routes(),
        groups::routes(),
        keys::routes(),
        cloud_accounts::routes(),
        roles::routes(),
        audit::routes(),
        deployments::routes(),
        runs::routes(),
        live::routes(),
        states::routes(),
        library::routes(),
        workspace::routes(),
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
