//! A route: an operation, its handler, and what it takes and gives.

use axum::handler::Handler;
use axum::routing::{MethodFilter, MethodRouter, on};
use nimbus_control_auth::operation::Operation;
use schemars::{JsonSchema, Schema, SchemaGenerator};

use crate::ApiState;

type MakeSchema = fn(&mut SchemaGenerator) -> Schema;

pub(crate) struct Route {
    pub(crate) operation: Operation,
    pub(crate) handler: MethodRouter<ApiState>,
    pub(crate) takes: Option<MakeSchema>,
    pub(crate) asks: Option<MakeSchema>,
    pub(crate) gives: Option<MakeSchema>,
}

impl Route {
    pub(crate) fn new<H, T>(operation: Operation, handler: H) -> Self
    where
        H: Handler<T, ApiState>,
        T: 'static,
    {
        let filter = match operation.method {
            "POST" => MethodFilter::POST,
            "PUT" => MethodFilter::PUT,
            "PATCH" => MethodFilter::PATCH,
            "DELETE" => MethodFilter::DELETE,
            _ => MethodFilter::GET,
        };
        Self {
            operation,
            handler: on(filter, handler),
            takes: None,
            asks: None,
            gives: None,
        }
    }

    pub(crate) fn takes<T: JsonSchema>(mut self) -> Self {
        self.takes = Some(SchemaGenerator::subschema_for::<T>);
        self
    }

    /// What the query may have.
    pub(crate) fn asks<T: JsonSchema>(mut self) -> Self {
        self.asks = Some(T::json_schema);
        self
    }

    pub(crate) fn gives<T: JsonSchema>(mut self) -> Self {
        self.gives = Some(SchemaGenerator::subschema_for::<T>);
        self
    }
}
