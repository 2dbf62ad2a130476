//! The description of the API, made from its routes.

use std::collections::BTreeSet;

use nimbus_control_auth::operation::{self, Need, OPERATIONS, Operation};
use schemars::Schema;
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
    let error = json!({"application/json": {"schema": error}});
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
        described["responses"] = answers(&route, gives.map(Schema::to_value), &error);
        let path = paths
            .entry(route.operation.path)
            .or_insert_with(|| json!({}));
        path[route.operation.method.to_lowercase()] = described;
    }
    for (path, id, summary) in PROBES {
        paths.insert((*path).to_owned(), probe(id, summary));
    }
    let tags: BTreeSet<_> = OPERATIONS.iter().map(tag).collect();
    let tags: Vec<_> = tags.into_iter().map(|name| json!({"name": name})).collect();
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Nimbus",
            "version": "1",
            "summary": "The control plane's REST API",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "tags": tags,
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

/// Served beside the API, for probes.
const PROBES: &[(&str, &str, &str)] = &[
    ("/api/v1/health", "probes.health", "Tell how the server is"),
    (
        "/api/v1/ready",
        "probes.ready",
        "Tell whether requests can be served",
    ),
    (
        "/api/v1/live",
        "probes.live",
        "Tell whether the process is alive",
    ),
];

fn probe(id: &str, summary: &str) -> Value {
    let found = json!({"application/json": {"schema": {"type": "object"}}});
    json!({"get": {
        "operationId": id,
        "summary": summary,
        "tags": ["probes"],
        "security": [],
        "parameters": [],
        "responses": {
            "200": {"description": "yes", "content": found},
            "503": {"description": "no", "content": found},
        },
    }})
}

fn tag(operation: &Operation) -> &'static str {
    operation.id.split('.').next().unwrap_or_default()
}

/// These make something.
const MAKING: &[Operation] = &[
    operation::CREATE_TENANT,
    operation::CREATE_USER,
    operation::CREATE_GROUP,
    operation::CREATE_KEY,
    operation::CREATE_WEBHOOK,
    operation::CREATE_ROLE,
    operation::ASSIGN_ROLE,
    operation::CREATE_DEPLOYMENT,
    operation::REGISTER_STACK,
    operation::CREATE_TEMPLATE,
    operation::CREATE_COMPONENT,
    operation::PUBLISH_COMPONENT,
    operation::CREATE_ZONE,
    operation::CREATE_POOL,
    operation::RELATE_ITEMS,
    operation::CREATE_COMPARTMENT,
    operation::IMPORT_ITEMS,
];

/// These are done later; their answer says where to look.
const QUEUED: &[Operation] = &[
    operation::DEPLOY,
    operation::DESTROY,
    operation::PREVIEW,
    operation::ROLL_BACK,
    operation::REFRESH_DEPLOYMENT,
    operation::DEPLOY_STACK,
    operation::CANCEL_RUN,
    operation::PAUSE_RUN,
    operation::RESUME_RUN,
    operation::CREATE_ZONE_ENVIRONMENT,
    operation::DELETE_ZONE_ENVIRONMENT,
];

/// These become another protocol.
const SOCKETS: &[Operation] = &[
    operation::RUN_PROGRESS,
    operation::DEPLOYMENT_PROGRESS,
    operation::GRAPHQL_LIVE,
];

/// These make something, unless it is there already.
const ONCE: &[Operation] = &[operation::PUBLISH_COMPONENT];

fn is_in(operation: Operation, list: &[Operation]) -> bool {
    list.iter().any(|one| one.id == operation.id)
}

/// What a success is answered with.
fn success(operation: Operation, gives: bool) -> (u16, &'static str) {
    let has_text = [operation::DESCRIBE_API, operation::EXPORT_AUDIT];
    if is_in(operation, SOCKETS) {
        (101, "a WebSocket, on which messages have this form")
    } else if is_in(operation, MAKING) {
        (201, "made")
    } else if is_in(operation, QUEUED) {
        (202, "taken; it is done later")
    } else if gives || is_in(operation, &has_text) {
        (200, "done")
    } else {
        (204, "done")
    }
}

/// Every status that an operation answers with. The server's own failures are what is left.
fn answers(route: &Route, gives: Option<Value>, error: &Value) -> Value {
    let operation = route.operation;
    let (status, words) = success(operation, gives.is_some());
    let mut answers = Map::new();
    let mut done = json!({"description": words});
    match &gives {
        Some(schema) => {
            done["content"] = json!({"application/json": {"schema": schema}});
            if operation.id == operation::GRAPHQL.id {
                done["content"][routes::OWN_MEDIA] = json!({"schema": schema});
            }
        }
        None if operation.id == operation::EXPORT_AUDIT.id => {
            done["content"] = json!({
                "application/jsonl": {"schema": {"type": "string"}},
                "text/csv": {"schema": {"type": "string"}},
            });
        }
        None if status == 200 => {
            done["content"] = json!({"application/json": {"schema": {"type": "object"}}});
        }
        None => {}
    }
    if is_in(operation, TAGGED) {
        let words = "Give it as `If-Match` to change only what was read.";
        done["headers"] = json!({"ETag": {"description": words, "schema": {"type": "string"}}});
    }
    if is_in(operation, ONCE) {
        let mut there = done.clone();
        there["description"] = json!("it is there already, as it is");
        answers.insert("200".into(), there);
    }
    answers.insert(status.to_string(), done);
    let mut refused = vec![
        (400, "the request is not understood"),
        (429, "too many requests"),
    ];
    // What needs no sign-in and still does something proves its caller itself.
    if operation.need != Need::Nothing || !operation.is_read() {
        refused.push((401, "nobody is signed in"));
    }
    if operation.need != Need::Nothing || operation.id.starts_with("auth.") {
        refused.push((403, "it is not permitted"));
    }
    let thing = operation.path.contains('{') || operation.chooses_tenant();
    if thing || operation.id == operation::GRAPHQL.id {
        refused.push((404, "there is no such thing, or it may not be seen"));
    }
    if !operation.is_read() {
        refused.push((409, "something else changed it, or it exists already"));
        refused.push((413, "the body is too large"));
        refused.push((422, "a rule refuses it"));
    }
    if operation.is_read() && thing {
        refused.push((422, "a rule refuses it"));
        refused.push((409, "it cannot be read now"));
    }
    refused.push((503, "something that is needed does not answer"));
    for (status, words) in refused {
        let answer = json!({"description": words, "content": error});
        answers.insert(status.to_string(), answer);
    }
    // A document that is refused is answered in GraphQL's own form; what is no document, in ours.
    if operation.id == operation::GRAPHQL.id
        && let (Some(schema), Some(answer)) = (&gives, answers.get_mut("400"))
    {
        let ours = error["application/json"]["schema"].clone();
        answer["content"] = json!({
            "application/json": {"schema": {"anyOf": [ours, schema]}},
            (routes::OWN_MEDIA): {"schema": schema},
        });
    }
    let words = "a failure of the server's own";
    answers.insert(
        "default".into(),
        json!({"description": words, "content": error}),
    );
    Value::Object(answers)
}

/// These answer with an entity tag.
const TAGGED: &[Operation] = &[
    operation::CREATE_DEPLOYMENT,
    operation::GET_DEPLOYMENT,
    operation::UPDATE_DEPLOYMENT,
    operation::GET_MANIFEST,
    operation::ENABLE_ENVIRONMENT,
    operation::DISABLE_ENVIRONMENT,
    operation::CREATE_COMPONENT,
    operation::GET_COMPONENT,
    operation::UPDATE_COMPONENT,
];

/// These take one, and refuse if it is no longer the one.
const MATCHED: &[Operation] = &[operation::UPDATE_DEPLOYMENT, operation::UPDATE_COMPONENT];

fn add_query(described: &mut Value, schema: &Value) {
    let properties = schema["properties"].as_object().into_iter().flatten();
    let needed = schema["required"].as_array().cloned().unwrap_or_default();
    let parameters = properties.map(|(name, schema)| {
        let required = needed.iter().any(|needed| needed == name);
        let mut schema = schema.clone();
        let words = schema
            .as_object_mut()
            .and_then(|schema| schema.remove("description"));
        let mut described =
            json!({"name": name, "in": "query", "required": required, "schema": schema});
        if let Some(words) = words {
            described["description"] = words;
        }
        described
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
        "tags": [tag(&operation)],
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
    if is_in(operation, MATCHED)
        && let Some(all) = described["parameters"].as_array_mut()
    {
        all.push(json!({
            "name": "If-Match",
            "in": "header",
            "required": false,
            "description": "Refuse if it is no longer of this `ETag`.",
            "schema": {"type": "string"},
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
    use super::*;

    #[test]
    fn every_operation_is_described_and_every_reference_leads_somewhere() {
        let document = openapi();
        for operation in OPERATIONS {
            let described = &document["paths"][operation.path][operation.method.to_lowercase()];
            assert_eq!(described["operationId"], operation.id);
            assert!(described["summary"].is_string(), "{}", operation.id);
            let mut names = BTreeSet::new();
            for parameter in described["parameters"].as_array().unwrap() {
                let name = parameter["name"].as_str().unwrap();
                assert!(names.insert(name), "{} has {name} twice", operation.id);
            }
            let answers = described["responses"].as_object().unwrap();
            let good: Vec<_> = answers.keys().filter(|one| one.as_str() < "4").collect();
            let expected = if is_in(*operation, ONCE) { 2 } else { 1 };
            assert_eq!(good.len(), expected, "{}: {good:?}", operation.id);
        }
        let schemas = document["components"]["schemas"].as_object().unwrap();
        for name in schemas.keys() {
            assert!(
                !name.ends_with(char::is_numeric),
                "{name} has no name of its own"
            );
        }
        // A list goes on after its page.
        for (name, schema) in schemas {
            if name.starts_with("PageOf") {
                assert!(schema["properties"]["next"].is_object(), "{name}");
            }
        }
        let text = document.to_string();
        for reference in text.split("\"$ref\":\"#").skip(1) {
            let pointer = reference.split('"').next().unwrap();
            assert!(document.pointer(pointer).is_some(), "{pointer}");
        }
    }
}
