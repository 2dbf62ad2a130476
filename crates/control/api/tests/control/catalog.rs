//! Components: published by the operator or a tenant, seen by whom they are for, and what cannot become a version.

use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::support::{Answer, Installation, installation, text};

const PROGRAM: &str = "import * as pulumi from \"@pulumi/pulumi\";\n\
    const config = new pulumi.Config();\n\
    const size = config.requireNumber(\"size\");\n\
    export const id = `bucket-${size}`;\n";

/// A component with one input and one output.
pub(crate) fn bucket(name: &str) -> Value {
    json!({
        "name": name,
        "display_name": "Bucket",
        "description": "A place for files",
        "provider": "aws",
        "semantic_type": "Storage",
        "language": "typescript",
        "contract": {
            "inputs": {"type": "object", "required": ["size"], "additionalProperties": false, "properties": {
                "size": {"type": "integer", "minimum": 1, "maximum": 8},
                "zone": {"type": "string"}}},
            "outputs": {"type": "object", "required": ["id"], "properties": {"id": {"type": "string"}}},
        },
        "settings": {"config": {"size": 2}},
        "files": {"src/index.ts": PROGRAM},
    })
}

pub(crate) async fn publish(
    nimbus: &Installation,
    token: &str,
    tenant: &str,
    name: &str,
    changelog: &str,
) -> Answer {
    let path = format!("/api/v1/components/{name}/publish?tenant={tenant}");
    nimbus
        .post(&path, token, json!({"changelog": changelog}))
        .await
}

/// A published component of a tenant.
pub(crate) async fn published(nimbus: &Installation, token: &str, tenant: &str, body: Value) {
    let name = text(&body["name"]);
    let path = format!("/api/v1/components?tenant={tenant}");
    nimbus.post(&path, token, body).await.ok();
    publish(nimbus, token, tenant, &name, "first").await.ok();
}

pub(crate) async fn put(nimbus: &Installation, path: &str, token: &str, body: Value) -> Answer {
    nimbus.call("PUT", path, Some(token), Some(body)).await
}

fn names(page: &Value) -> Vec<String> {
    let items = page["items"].as_array().unwrap();
    items.iter().map(|item| text(&item["name"])).collect()
}

#[tokio::test]
async fn what_the_operator_publishes_is_everybodys_and_a_tenants_is_its_own() {
    let nimbus = installation!();
    let owner = nimbus.set_up().await;
    let root = nimbus.root.to_string();
    let acme = nimbus.tenant(&owner, "acme").await;
    let other = nimbus.tenant(&owner, "other").await;
    nimbus
        .user(&owner, &acme, "admin@acme.example", Some("tenant_admin"))
        .await;
    let admin = nimbus.token("acme", "admin@acme.example").await;

    let draft = nimbus
        .post(
            &format!("/api/v1/components?tenant={root}"),
            &owner,
            bucket("bucket"),
        )
        .await
        .ok();
    assert_eq!(
        draft["semantic_type"], "BlockStorage",
        "an alias means its type"
    );
    let seen = nimbus.get("/api/v1/components", &admin).await.ok();
    assert!(names(&seen).is_empty(), "a draft is nobody else's");
    let published_version = publish(&nimbus, &owner, &root, "bucket", "first").await;
    assert_eq!(published_version.status, StatusCode::CREATED);
    assert_eq!(
        published_version.json()["version"]["semantic_version"],
        "1.0.0"
    );
    let again = publish(&nimbus, &owner, &root, "bucket", "again").await;
    assert_eq!(
        (again.status, &again.json()["created"]),
        (StatusCode::OK, &json!(false))
    );

    // A tenant publishes for itself, and not for everybody.
    published(&nimbus, &admin, &acme, bucket("own")).await;
    let seen = nimbus.get("/api/v1/components", &admin).await.ok();
    assert_eq!(names(&seen), ["bucket", "own"]);
    assert_eq!(
        (&seen["items"][0]["shared"], &seen["items"][1]["shared"]),
        (&json!(true), &json!(false))
    );
    let elsewhere = nimbus
        .get(&format!("/api/v1/components?tenant={other}"), &owner)
        .await
        .ok();
    assert_eq!(
        names(&elsewhere),
        ["bucket"],
        "another tenant's component is not there"
    );
    let hidden = nimbus
        .get(&format!("/api/v1/components/own?tenant={other}"), &owner)
        .await;
    assert_eq!(hidden.status, StatusCode::NOT_FOUND);
    let shared = nimbus.get("/api/v1/components/bucket", &admin).await.ok();
    assert!(
        shared["draft"].is_null(),
        "what the operator edits is the operator's"
    );
    assert_eq!(shared["newest"]["files"]["src/index.ts"], PROGRAM);
    let edited = put(
        &nimbus,
        "/api/v1/components/bucket",
        &admin,
        bucket("bucket"),
    )
    .await;
    assert_eq!(edited.status, StatusCode::NOT_FOUND, "{}", edited.text);

    let found = nimbus
        .get("/api/v1/components?provider=aws&text=FILES&limit=1", &admin)
        .await
        .ok();
    assert_eq!(names(&found), ["bucket"]);
    let rest = nimbus
        .get(
            &format!("/api/v1/components?limit=1&after={}", text(&found["next"])),
            &admin,
        )
        .await
        .ok();
    assert_eq!(names(&rest), ["own"]);
    let none = nimbus
        .get("/api/v1/components?provider=gcp", &admin)
        .await
        .ok();
    assert!(names(&none).is_empty());
}

#[tokio::test]
async fn what_lies_or_does_not_parse_never_becomes_a_draft() {
    let nimbus = installation!();
    let owner = nimbus.set_up().await;
    let path = "/api/v1/components";
    let with = |pointer: &str, value: Value| {
        let mut body = bucket("bucket");
        *body.pointer_mut(pointer).unwrap() = value;
        body
    };
    let file = |program: &str| with("/files", json!({"src/index.ts": program}));
    let mut unknown_resolver = bucket("bucket");
    unknown_resolver["contract"]["resolvers"] =
        json!({"zone": {"resolver": "oracle", "output": "name"}});
    let mut unknown_input = bucket("bucket");
    unknown_input["contract"]["resolvers"] =
        json!({"nothing": {"resolver": "ipam", "output": "cidr"}});
    for (body, code, words) in [
        (file("export const id = ;"), "NIM-0970", "does not parse"),
        (
            file("export const other = 1;"),
            "NIM-0970",
            "does not export",
        ),
        (
            file("export default () => 1;"),
            "NIM-0970",
            "only a run can tell",
        ),
        (
            file(
                "import * as p from '@pulumi/pulumi';\nexport const id = new p.Config().require('secret') + 'size';",
            ),
            "NIM-0970",
            "`secret`",
        ),
        (
            file("export const id = 1;"),
            "NIM-0970",
            "nothing in the program names it",
        ),
        (
            with("/contract/inputs/type", json!("objekt")),
            "NIM-0970",
            "no JSON Schema",
        ),
        (unknown_resolver, "NIM-0970", "oracle"),
        (unknown_input, "NIM-0970", "no input `nothing`"),
        (with("/language", json!("cobol")), "NIM-0859", "typescript"),
        (with("/provider", json!("moon")), "NIM-0859", "give one of"),
        (
            with("/semantic_type", json!("Moon")),
            "NIM-0859",
            "no such type",
        ),
        (
            with("/settings", json!({"color": "red"})),
            "NIM-0970",
            "settings.color",
        ),
        (
            with("/files", json!({"../../etc/passwd": "x"})),
            "NIM-0885",
            "not a path",
        ),
        (
            with("/files", json!({"index.ts": "x"})),
            "NIM-0859",
            "below src/",
        ),
    ] {
        let refused = nimbus.post(path, &owner, body.clone()).await;
        assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{body}");
        assert!(
            refused.text.contains(code) && refused.text.contains(words),
            "{words}: {}",
            refused.text
        );
    }
    let kept = nimbus
        .database
        .texts("SELECT name FROM nimbus_core.components")
        .await;
    assert!(kept.is_empty(), "{kept:?}");
}

#[tokio::test]
async fn versions_stay_as_they_were_and_say_what_changed() {
    let nimbus = installation!();
    let owner = nimbus.set_up().await;
    let root = nimbus.root.to_string();
    published(&nimbus, &owner, &root, bucket("bucket")).await;
    let mut wider = bucket("bucket");
    wider["contract"]["inputs"]["properties"]["size"]["maximum"] = json!(16);
    wider["files"]["src/index.ts"] = json!(format!("// wider\n{PROGRAM}"));
    let path = "/api/v1/components/bucket";
    put(&nimbus, path, &owner, wider.clone()).await.ok();
    let second = publish(&nimbus, &owner, &root, "bucket", "more room")
        .await
        .ok();
    assert_eq!(second["version"]["semantic_version"], "1.1.0");
    let first = nimbus.get(&format!("{path}/versions/1"), &owner).await.ok();
    assert_eq!(first["files"]["src/index.ts"], PROGRAM);
    assert_eq!(
        first["contract"]["inputs"]["properties"]["size"]["maximum"],
        8
    );
    let changes = nimbus
        .get(&format!("{path}/versions/2/changes"), &owner)
        .await
        .ok();
    assert_eq!(
        (
            &changes["from"],
            &changes["breaking"],
            &changes["contract"][0]["place"]
        ),
        (&json!(1), &json!(false), &json!("inputs.size"))
    );
    assert!(text(&changes["files"][0]["text"]).contains("+// wider"));
    let listed = nimbus.get(&format!("{path}/versions"), &owner).await.ok();
    let numbers: Vec<_> = listed["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["version"].clone())
        .collect();
    assert_eq!(numbers, [2, 1]);
    assert_eq!(listed["items"][0]["changelog"], "more room");

    // Nobody uses it, so a contract that breaks is another major version.
    let mut broken = wider.clone();
    broken["contract"]["inputs"]["properties"]["size"]["maximum"] = json!(2);
    put(&nimbus, path, &owner, broken).await.ok();
    let empty = publish(&nimbus, &owner, &root, "bucket", "  ").await;
    assert_eq!(
        empty.status,
        StatusCode::BAD_REQUEST,
        "a changelog says something"
    );
    let third = publish(&nimbus, &owner, &root, "bucket", "smaller")
        .await
        .ok();
    assert_eq!(third["version"]["semantic_version"], "2.0.0");

    let deprecate = format!("{path}/versions/3/deprecate");
    let said = nimbus
        .post(&deprecate, &owner, json!({"reason": "use 2"}))
        .await
        .ok();
    assert_eq!(said["deprecation"], "use 2");
    nimbus.post(&deprecate, &owner, json!({})).await.ok();
    let stale = nimbus
        .send(
            axum::http::Request::builder()
                .method("PUT")
                .uri(path)
                .header("authorization", format!("Bearer {owner}"))
                .header("if-match", "\"1\""),
            Some(&wider),
        )
        .await;
    assert_eq!(stale.status, StatusCode::CONFLICT, "{}", stale.text);
    nimbus.call("DELETE", path, Some(&owner), None).await.ok();
    let gone = nimbus.get(path, &owner).await;
    assert_eq!(gone.status, StatusCode::NOT_FOUND);
    let trail = nimbus
        .database
        .texts("SELECT action FROM nimbus_core.audit_logs WHERE action LIKE 'components.publish' AND outcome = 'done'")
        .await;
    assert_eq!(trail.len(), 3);
}

#[tokio::test]
async fn a_contract_that_breaks_its_users_is_refused_with_who_they_are() {
    let nimbus = installation!();
    let owner = nimbus.set_up().await;
    let root = nimbus.root.to_string();
    let acme = nimbus.tenant(&owner, "acme").await;
    published(&nimbus, &owner, &root, bucket("bucket")).await;
    deployed(&nimbus, &owner, &acme, "D1USER").await.ok();
    let mut narrower = bucket("bucket");
    narrower["contract"]["inputs"]["properties"]["size"]["maximum"] = json!(1);
    let path = "/api/v1/components/bucket";
    put(&nimbus, path, &owner, narrower).await.ok();
    let refused = publish(&nimbus, &owner, &root, "bucket", "smaller").await;
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
    for words in [
        "NIM-0972",
        "Tenant acme/D1USER/dev (rehearsal)",
        "inputs.size",
    ] {
        assert!(refused.text.contains(words), "{words}: {}", refused.text);
    }
    let versions = nimbus.get(&format!("{path}/versions"), &owner).await.ok();
    assert_eq!(
        versions["items"].as_array().unwrap().len(),
        1,
        "nothing half-published"
    );
    let body = json!({"changelog": "smaller", "allow_breaking": true});
    let forced = nimbus
        .post(&format!("{path}/publish"), &owner, body)
        .await
        .ok();
    assert_eq!(forced["version"]["semantic_version"], "2.0.0");
    // What is deployed stays with its version, and goes on with it.
    let instances = format!("/api/v1/components/bucket/instances?tenant={acme}");
    let seen = nimbus.get(&instances, &owner).await.ok();
    assert_eq!(
        (&seen["items"][0]["version"], &seen["items"][0]["status"]),
        (&json!(1), &json!("pending"))
    );
    let again = deploy(&nimbus, &owner, &acme, "D1USER").await.ok();
    let pinned = tenant_texts(
        &nimbus,
        &acme,
        "SELECT catalog -> 'bucket' ->> 'version' FROM {}.runs ORDER BY number",
    )
    .await;
    assert_eq!(pinned, ["1", "1"], "{again}");
}

/// What a statement finds in a tenant's own schema, which it names as `{}`.
pub(crate) async fn tenant_texts(
    nimbus: &Installation,
    tenant: &str,
    statement: &str,
) -> Vec<String> {
    let schema = format!("SELECT schema_name FROM nimbus_core.tenants WHERE id = '{tenant}'");
    let schema = nimbus.database.texts(&schema).await.concat();
    nimbus
        .database
        .texts(&statement.replace("{}", &schema))
        .await
}

/// A manifest with one stack, in one environment.
pub(crate) fn manifest(id: &str, stack: &str, config: &Value) -> String {
    json!({
        "apiVersion": "nimbus/v1",
        "kind": "DeploymentManifest",
        "metadata": {"deploymentId": id, "organization": "o", "project": "p", "template": "t"},
        "spec": {
            "environments": {"dev": {"enabled": true}},
            "stacks": {stack: {"enabled": true, "config": {"dev": config}}},
        },
    })
    .to_string()
}

pub(crate) async fn deployed(nimbus: &Installation, token: &str, tenant: &str, id: &str) -> Answer {
    let path = format!("/api/v1/deployments?tenant={tenant}");
    let body = json!({"manifest": manifest(id, "bucket", &json!({"size": 2}))});
    nimbus.post(&path, token, body).await.ok();
    deploy(nimbus, token, tenant, id).await
}

pub(crate) async fn deploy(nimbus: &Installation, token: &str, tenant: &str, id: &str) -> Answer {
    let path = format!("/api/v1/deployments/{id}/deploy?tenant={tenant}");
    nimbus
        .post(
            &path,
            token,
            json!({"environment": "dev", "rehearsal": true}),
        )
        .await
}

#[tokio::test]
async fn a_draft_is_not_deployed_and_wires_lead_to_outputs_that_fit() {
    let nimbus = installation!();
    let owner = nimbus.set_up().await;
    let root = nimbus.root.to_string();
    let acme = nimbus.tenant(&owner, "acme").await;
    let path = format!("/api/v1/components?tenant={acme}");
    nimbus.post(&path, &owner, bucket("bucket")).await.ok();
    let refused = deployed(&nimbus, &owner, &acme, "D1DRAFT").await;
    assert_eq!(
        refused.status,
        StatusCode::UNPROCESSABLE_ENTITY,
        "{}",
        refused.text
    );
    assert!(refused.text.contains("NIM-0973"), "{}", refused.text);

    published(&nimbus, &owner, &root, bucket("source")).await;
    publish(&nimbus, &owner, &acme, "bucket", "first")
        .await
        .ok();
    for (wire, code) in [
        ("{{RUNTIME:source:nothing}}", "no output `nothing`"),
        ("{{RUNTIME:source:id}}", "is a integer"),
    ] {
        let id = format!("D1W{}", wire.len());
        let mut whole: Value =
            serde_json::from_str(&manifest(&id, "bucket", &json!({"size": wire}))).unwrap();
        whole["spec"]["stacks"]["source"] =
            json!({"enabled": true, "config": {"dev": {"size": 1}}});
        let path = format!("/api/v1/deployments?tenant={acme}");
        nimbus
            .post(&path, &owner, json!({"manifest": whole.to_string()}))
            .await
            .ok();
        let refused = deploy(&nimbus, &owner, &acme, &id).await;
        assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{}", refused.text);
        assert!(
            refused.text.contains("NIM-0982") && refused.text.contains(code),
            "{}",
            refused.text
        );
    }
    let queued = tenant_texts(&nimbus, &acme, "SELECT id::text FROM {}.runs").await;
    assert!(queued.is_empty(), "nothing is queued");
    let reserved = tenant_texts(&nimbus, &acme, "SELECT stack FROM {}.deployed_components").await;
    assert!(reserved.is_empty(), "nothing is put down");
}

#[tokio::test]
async fn components_of_the_platform_are_not_edited_by_mistake() {
    let nimbus = installation!();
    let owner = nimbus.set_up().await;
    let acme = nimbus.tenant(&owner, "acme").await;
    let mut system = bucket("bucket");
    system["system"] = json!(true);
    let path = format!("/api/v1/components?tenant={acme}");
    let refused = nimbus.post(&path, &owner, system.clone()).await;
    assert!(refused.text.contains("NIM-0971"), "{}", refused.text);
    nimbus
        .post("/api/v1/components", &owner, system.clone())
        .await
        .ok();
    let path = "/api/v1/components/bucket";
    let refused = put(&nimbus, path, &owner, bucket("bucket")).await;
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(refused.text.contains("NIM-0984"), "{}", refused.text);
    put(&nimbus, path, &owner, system).await.ok();
}
