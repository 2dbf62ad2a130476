//! Values that have a form of their own: times, and JSON whose shape belongs to somebody else.

use async_graphql::{ID, Json, scalar};
use nimbus_control_app::{Failure, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A time, RFC 3339.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct GraphTime(pub(crate) String);

scalar!(
    GraphTime,
    "DateTime",
    "A time such as 2026-01-31T12:00:00Z (RFC 3339)."
);

impl From<Timestamp> for GraphTime {
    fn from(at: Timestamp) -> Self {
        Self(at.0.to_string())
    }
}

/// JSON as it is.
pub(crate) type AnyJson = Json<Value>;

pub(crate) fn maybe_time(at: Option<Timestamp>) -> Option<GraphTime> {
    at.map(GraphTime::from)
}

/// The id of a thing in the place where a path would have it: one that is malformed is a thing that does not exist.
pub(crate) fn thing<T: std::str::FromStr>(id: &ID) -> Result<T, Failure> {
    id.parse().map_err(|_| Failure::not_found())
}

/// An id among other inputs.
pub(crate) fn named<T: std::str::FromStr>(field: &'static str, id: &ID) -> Result<T, Failure> {
    id.parse()
        .map_err(|_| Failure::field(field, "this is not an id"))
}

/// A time among other inputs.
pub(crate) fn read_time(
    field: &'static str,
    time: Option<GraphTime>,
) -> Result<Option<jiff::Timestamp>, Failure> {
    time.map(|GraphTime(text)| {
        text.parse()
            .map_err(|_| Failure::field(field, "this is not a time such as 2026-01-31T12:00:00Z"))
    })
    .transpose()
}
