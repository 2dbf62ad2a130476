//! The description of the API, made from its routes.

use nimbus_control_auth::operation::Need;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use crate::problem;
use crate::repeat;
use crate::route::Route;
use crate::routes;
use crate::summaries::summary;

/// OpenAPI 3.1. Operations come from the routes and schemas from the types, so it cannot be out of
/// date.
pub fn openapi() -> Value {
    let mut schemas = SchemaSettings::draft2020_12()
        .with(|settings| settings.definitions_path = "/components/schemas".into())
        .into_generator();
    let error = schemas.subschema_for::<problem::ProblemBody>();
    let mut paths = Map::new();
    for route in routes::all() {
        let takes = route.takes.map(|make| make(&mut schemas));
        let gives = route.gives.map(|make| make(&mut schemas));
        let asks = route.asks.map(|make| make(&mut schemas));
        let mut described = describe(&route);
        if let Some(schema) = asks {
            add_query(&mut described, &schema.to_value());
        }
        if let Some(schema) = takes {
            described["requestBody"] = json!({
                "required": true,
                "content": {"application/json": {"schema": schema}},
            });
        }
        described["responses"] = json!({
            "2XX": match gives {
                Some(schema) => json!({"description": "done", "content": {"application/json": {"schema": schema}}}),
                None => json!({"description": "done"}),
            },
            "default": {"description": "not done", "content": {"application/json": {"schema": error}}},
        });
        let path = paths
            .entry(route.operation.path)
            .or_insert_with(|| json!({}));
        path[route.operation.method.to_lowercase()] = described;
    }
    json!({
        "openapi": "3.1.0",
        "info": {"title": "Nimbus", "version": "1"},
        "paths": paths,
        "components": {
            "schemas": schemas.take_definitions(true),
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "cookie": {"type": "apiKey", "in": "cookie", "name": crate::cookies::SESSION},
            },
        },
    })
}

fn add_query(described: &mut Value, schema: &Value) {
    let properties = schema["properties"].as_object().into_iter().flatten();
    let needed = schema["required"].as_array().cloned().unwrap_or_default();
    let parameters = properties.map(|(name, schema)| {
        let required = needed.iter().any(|needed| needed == name);
        json!({"name": name, "in": "query", "required": required, "schema": schema})
    });
    if let Some(all) = described["parameters"].as_array_mut() {
        all.extend(parameters);
    }
}

fn describe(route: &Route) -> Value {
    let operation = route.operation;
    let parameters: Vec<_> = operation
        .path
        .split('/')
        .filter_map(|segment| segment.strip_prefix('{')?.strip_suffix('}'))
        .map(|name| json!({"name": name, "in": "path", "required": true, "schema": {"type": "string"}}))
        .collect();
    let mut described = json!({
        "operationId": operation.id,
        "summary": summary(operation.id),
        "parameters": parameters,
    });
    if repeat::has_key(operation)
        && let Some(all) = described["parameters"].as_array_mut()
    {
        all.push(json!({
            "name": "Idempotency-Key",
            "in": "header",
            "required": false,
            "description": "The same request with the same key happens once.",
            "schema": {"type": "string", "minLength": 1, "maxLength": 200},
        }));
    }
    match operation.need {
        Need::Nothing => described["security"] = json!([]),
        Need::SignIn => described["security"] = json!([{"bearer": []}, {"cookie": []}]),
        Need::Permission(key) => {
            described["security"] = json!([{"bearer": []}, {"cookie": []}]);
            described["x-permission"] = json!(key);
        }
    }
    described
}

#[cfg(test)]
mod tests {
    use nimbus_control_auth::operation::OPERATIONS;

    use super::*;

    #[test]
    fn every_operation_is_described_and_every_reference_leads_somewhere() {
        let document = openapi();
        for operation in OPERATIONS {
            let described = &document["paths"][operation.path][operation.method.to_lowercase()];
            assert_eq!(described["operationId"], operation.id);
            assert!(described["summary"].is_string(), "{}", operation.id);
        }
        let text = document.to_string();
        for reference in text.split("\"$ref\":\"#").skip(1) {
            let pointer = reference.split('"').next().unwrap();
            assert!(document.pointer(pointer).is_some(), "{pointer}");
        }
    }
}
