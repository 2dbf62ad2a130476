//! The GraphQL API.
//!
//! Fields call the use cases of `nimbus-control-app`, as routes of the REST API do: who may do what, what is recorded and
//! what happens once is decided there. What is here: the schema (`nodes`, `queries`, `mutations`, `subscriptions`), what
//! a document may cost (`cost`) and is given (`variables`), loads that are put together (`loaders`, `gathered`), and the
//! form of errors (`refusal`). How requests arrive is not known here; `nimbus-control-api` serves it.

mod act;
mod cost;
mod event_feed;
mod fields;
mod gathered;
mod live;
mod loaders;
mod mutations;
mod nodes;
mod page;
mod queries;
mod refusal;
mod request;
mod scalars;
mod schema;
mod subscriptions;
mod variables;
mod watching;

pub use act::{AttemptGate, GraphqlCaller, LiveCaller};
pub use fields::{GraphqlField, field_operations};
pub use live::{LiveMessage, PROTOCOL, live};
pub use request::{GraphqlAnswer, GraphqlBatch, GraphqlRefusal};
pub use schema::{execute, sdl};
