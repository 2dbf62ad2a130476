//! Tests of whole files.

mod refusals;
mod round_trip;
mod secrets;
mod strict;

use serde_json::{Value, json};

use super::*;

/// A sound checkpoint of stack `dev` of project `shop` with these resources.
fn checkpoint(resources: Value) -> Value {
    json!({
        "version": 3,
        "checkpoint": {
            "stack": "organization/shop/dev",
            "latest": {
                "manifest": {"time": "2026-08-21T10:11:12Z", "magic": "", "version": ""},
                "resources": resources,
                "metadata": {}
            }
        }
    })
}

fn bytes(json: &Value) -> Vec<u8> {
    json.to_string().into_bytes()
}

fn urn(name: &str) -> String {
    crate::test_support::urn(name).to_string()
}

/// A component, which needs nothing.
fn component(name: &str) -> Value {
    json!({"urn": urn(name), "custom": false, "type": "pkg:mod:Res"})
}

/// `component` with other or more fields.
fn with(name: &str, fields: Value) -> Value {
    let mut resource = component(name);
    for (key, value) in fields.as_object().unwrap() {
        resource[key] = value.clone();
    }
    resource
}
