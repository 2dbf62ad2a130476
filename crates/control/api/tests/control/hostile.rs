//! Input that nobody means well with, for every operation, made from the description of the API: an
//! operation that is added is attacked without anybody thinking of it.

use axum::http::StatusCode;
use nimbus_control_auth::operation::{OPERATIONS, Operation};
use serde_json::{Value, json};

use crate::matrix::{asking, body, path, path_where};
use crate::support::{Answer, installation};

/// Where a text or a number goes in a body: keys and positions.
type FieldPlace = Vec<Value>;

fn resolved<'a>(document: &'a Value, schema: &'a Value) -> &'a Value {
    match schema["$ref"].as_str() {
        Some(reference) => document.pointer(&reference[1..]).unwrap(),
        None => schema,
    }
}

/// Every place of a schema that takes this type of value, with how errors name it.
fn places(document: &Value, schema: &Value, kind: &str) -> Vec<(FieldPlace, String)> {
    let schema = resolved(document, schema);
    let mut found = Vec::new();
    let is = |name: &str| {
        schema["type"] == name
            || schema["type"]
                .as_array()
                .is_some_and(|types| types.contains(&json!(name)))
    };
    if is(kind) || *schema == Value::Bool(true) {
        found.push((Vec::new(), String::new()));
    }
    for inner in schema["anyOf"].as_array().into_iter().flatten() {
        found.extend(places(document, inner, kind));
    }
    for (key, inner) in schema["properties"].as_object().into_iter().flatten() {
        for (mut place, name) in places(document, inner, kind) {
            place.insert(0, json!(key));
            let joint = if name.is_empty() || name.starts_with('[') {
                ""
            } else {
                "."
            };
            found.push((place, format!("{key}{joint}{name}")));
        }
    }
    if let Some(inner) = schema.get("items") {
        for (mut place, name) in places(document, inner, kind) {
            place.insert(0, json!(0));
            let joint = if name.is_empty() || name.starts_with('[') {
                ""
            } else {
                "."
            };
            found.push((place, format!("[0]{joint}{name}")));
        }
    }
    found
}

/// The body with another value at a place.
fn with(body: &Value, place: &[Value], value: Value) -> Value {
    let Some((first, rest)) = place.split_first() else {
        return value;
    };
    let mut changed = body.clone();
    match first {
        Value::String(key) => {
            if !changed.is_object() {
                changed = json!({});
            }
            changed[key] = with(&body[key], rest, value);
        }
        _ => changed = json!([with(&body[0], rest, value)]),
    }
    changed
}

fn described(document: &Value, operation: Operation) -> Value {
    document["paths"][operation.path][operation.method.to_lowercase()].clone()
}

fn assert_sane(answer: &Answer, what: &str) {
    assert!(
        !answer.status.is_server_error(),
        "{what}: {} {}",
        answer.status,
        answer.text
    );
}

const HOSTILE_TEXTS: &[&str] = &[
    "\u{200b}",
    "\u{202e}txt",
    "'; DROP TABLE users; --",
    "../../etc/passwd",
    "<script>alert(1)</script>",
    "%00",
    "\u{1b}[2J\r\nX: y",
    "ﬀ𝟙Ⅷ",
    "-1",
    "null",
];

#[tokio::test]
async fn a_character_that_cannot_be_stored_is_refused_by_the_fields_name() {
    let nimbus = installation!();
    let owner = nimbus.set_up().await;
    let tenant = nimbus.tenant(&owner, "acme").await;
    let document = nimbus_control_api::openapi();
    let mut tried = 0;
    for &operation in OPERATIONS {
        let described = described(&document, operation);
        let schema = &described["requestBody"]["content"]["application/json"]["schema"];
        for (place, name) in places(&document, schema, "string") {
            let body = with(
                &body(operation).unwrap_or_default(),
                &place,
                json!("a\u{0}b"),
            );
            let path = path(operation, &tenant);
            let answer = nimbus
                .call(operation.method, &path, Some(&owner), Some(body.clone()))
                .await;
            assert_eq!(
                answer.status,
                StatusCode::BAD_REQUEST,
                "{} {body}",
                operation.id
            );
            let field = &answer.json()["error"]["details"][0]["field"];
            assert_eq!(*field, name, "{} {body}", operation.id);
            tried += 1;
        }
        for parameter in described["parameters"].as_array().into_iter().flatten() {
            // Headers have no such characters.
            if parameter["in"] == "header" {
                continue;
            }
            let name = parameter["name"].as_str().unwrap();
            let path = if parameter["in"] == "path" {
                path_where(operation, &tenant, name, "a%00b")
            } else if parameter["schema"]["type"].to_string().contains("string") {
                asking(&path(operation, &tenant), name, "a%00b")
            } else {
                continue;
            };
            let answer = nimbus
                .call(operation.method, &path, Some(&owner), body(operation))
                .await;
            assert_eq!(
                answer.status,
                StatusCode::BAD_REQUEST,
                "{} {path}: {}",
                operation.id,
                answer.text
            );
            assert!(
                answer.json()["error"]["details"][0]["field"].is_string(),
                "{path}"
            );
            tried += 1;
        }
    }
    assert!(tried > 60, "only {tried} places were tried");
}

#[tokio::test]
async fn no_text_of_any_length_and_no_number_of_any_size_breaks_an_operation() {
    let nimbus = installation!();
    let owner = nimbus.set_up().await;
    let tenant = nimbus.tenant(&owner, "acme").await;
    let document = nimbus_control_api::openapi();
    let long = "x".repeat(100_000);
    let wide = "é".repeat(300);
    let texts = HOSTILE_TEXTS
        .iter()
        .copied()
        .chain([long.as_str(), wide.as_str()]);
    let texts: Vec<&str> = texts.collect();
    let numbers = [
        json!(-1),
        json!(0),
        json!(i64::MAX),
        json!(i64::MIN),
        json!(u64::MAX),
        json!(1.5),
        json!(1e300),
        json!("1"),
        json!([]),
        json!({}),
    ];
    for &operation in OPERATIONS {
        // What ends the session that asks, or the tenant, has nothing to attack.
        if matches!(operation.id, "auth.logout" | "tenants.delete") {
            continue;
        }
        let described = described(&document, operation);
        let schema = &described["requestBody"]["content"]["application/json"]["schema"];
        let mut bodies = Vec::new();
        for (place, _) in places(&document, schema, "string") {
            for text in &texts {
                bodies.push((place.clone(), json!(text)));
            }
        }
        for kind in ["integer", "number", "boolean", "object", "array"] {
            for (place, _) in places(&document, schema, kind) {
                for number in &numbers {
                    bodies.push((place.clone(), number.clone()));
                }
            }
        }
        for (place, value) in bodies {
            let body = with(&body(operation).unwrap_or_default(), &place, value);
            let path = path(operation, &tenant);
            let answer = nimbus
                .call(operation.method, &path, Some(&owner), Some(body))
                .await;
            assert_sane(&answer, &format!("{} {place:?}", operation.id));
        }
        for parameter in described["parameters"].as_array().into_iter().flatten() {
            if parameter["in"] != "query" {
                continue;
            }
            let name = parameter["name"].as_str().unwrap();
            for value in [
                "-1",
                "0",
                "1.5",
                "18446744073709551615",
                "99999999999999999999",
                "x",
                "",
                "%ff",
                "a%2Fb",
            ] {
                let path = asking(&path(operation, &tenant), name, value);
                let answer = nimbus
                    .call(operation.method, &path, Some(&owner), None)
                    .await;
                assert_sane(&answer, &path);
            }
        }
        for value in ["%ff", "..%2f..", &"x".repeat(5000), "%E2%80%8B", "-1"] {
            for parameter in described["parameters"].as_array().into_iter().flatten() {
                if parameter["in"] != "path" {
                    continue;
                }
                let name = parameter["name"].as_str().unwrap();
                let path = path_where(operation, &tenant, name, value);
                let answer = nimbus
                    .call(operation.method, &path, Some(&owner), body(operation))
                    .await;
                assert_sane(&answer, &path);
            }
        }
    }
}

#[tokio::test]
async fn a_page_of_no_size_or_a_cursor_of_no_page_is_refused_by_name() {
    let nimbus = installation!();
    let owner = nimbus.set_up().await;
    let tenant = nimbus.tenant(&owner, "acme").await;
    let document = nimbus_control_api::openapi();
    let mut lists = 0;
    for &operation in OPERATIONS {
        let described = described(&document, operation);
        let parameters = described["parameters"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        if !parameters
            .iter()
            .any(|parameter| parameter["name"] == "limit")
        {
            continue;
        }
        lists += 1;
        for limit in ["0", "-1", "100000", "x"] {
            let path = asking(&path(operation, &tenant), "limit", limit);
            let answer = nimbus
                .call(operation.method, &path, Some(&owner), None)
                .await;
            assert_eq!(
                answer.status,
                StatusCode::BAD_REQUEST,
                "{path}: {}",
                answer.text
            );
            assert_eq!(
                answer.json()["error"]["details"][0]["field"],
                "limit",
                "{path}"
            );
        }
    }
    assert!(lists >= 9, "every list has pages: {lists}");
    // Whatever gives a list takes pages.
    for &operation in OPERATIONS {
        let described = described(&document, operation);
        let answers = described["responses"].as_object().unwrap();
        let good = answers.iter().find(|(status, _)| status.as_str() < "3");
        let (_, good) = good.unwrap();
        let gives = &good["content"]["application/json"]["schema"];
        let is_list = resolved(&document, gives)["properties"]["next"].is_object();
        let has_limit = described["parameters"].to_string().contains("\"limit\"");
        assert!(
            !is_list || has_limit,
            "{} gives a list without pages",
            operation.id
        );
    }
}

#[tokio::test]
async fn names_that_look_like_others_are_refused_and_the_tree_has_a_bottom() {
    let nimbus = installation!();
    let owner = nimbus.set_up().await;
    let tenant = nimbus.tenant(&owner, "acme").await;
    let groups = format!("/api/v1/tenants/{tenant}/groups");
    nimbus
        .post(&groups, &owner, json!({"name": "scope"}))
        .await
        .ok();
    for (name, status) in [
        ("Scope", StatusCode::CONFLICT),
        ("ѕсоре", StatusCode::CONFLICT),
        ("ｓｃｏｐｅ", StatusCode::CONFLICT),
        ("sc\u{200b}ope", StatusCode::BAD_REQUEST),
        ("scоpe", StatusCode::BAD_REQUEST),
        ("\u{202e}epocs", StatusCode::BAD_REQUEST),
    ] {
        let answer = nimbus.post(&groups, &owner, json!({"name": name})).await;
        assert_eq!(answer.status, status, "{name:?}: {}", answer.text);
    }
    let users = format!("/api/v1/tenants/{tenant}/users");
    let body = json!({"email": "оwner@acme.example", "password": "quiet tree stone 4"});
    assert_eq!(
        nimbus.post(&users, &owner, body).await.status,
        StatusCode::BAD_REQUEST
    );
    let mut parent = nimbus.root.to_string();
    let mut depth = 1;
    let refused = loop {
        let path = format!("/api/v1/tenants/{parent}/tenants");
        let answer = nimbus
            .post(&path, &owner, json!({"slug": "d", "name": "Deep"}))
            .await;
        if !answer.status.is_success() {
            break answer;
        }
        parent = answer.json()["id"].as_str().unwrap().to_owned();
        depth += 1;
        assert!(depth < 100, "the tree has no bottom");
    };
    assert_eq!(
        refused.status,
        StatusCode::UNPROCESSABLE_ENTITY,
        "{}",
        refused.text
    );
    // Nor is there one by moving.
    let path = format!("/api/v1/tenants/{}/tenants", nimbus.root);
    let top = nimbus
        .post(&path, &owner, json!({"slug": "e", "name": "E"}))
        .await
        .ok();
    let path = format!("/api/v1/tenants/{}/move", top["id"].as_str().unwrap());
    let moved = nimbus
        .post(&path, &owner, json!({"parent_id": parent}))
        .await;
    assert_eq!(
        moved.status,
        StatusCode::UNPROCESSABLE_ENTITY,
        "{}",
        moved.text
    );
}
