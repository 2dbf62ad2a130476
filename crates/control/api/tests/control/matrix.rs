//! Every operation, every role, the own tenant and a foreign one.

use std::sync::LazyLock;

use axum::http::StatusCode;
use nimbus_control_auth::operation::{Need, OPERATIONS, Operation};
use nimbus_control_auth::role::{BUILT_IN, built_in};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::support::{Installation, PASSWORD, installation};

/// A body that the operation understands, on things that do not exist. An operation that takes a
/// body and has no row here fails the test.
pub(crate) fn body(operation: Operation) -> Option<Value> {
    let nobody = Uuid::new_v4().to_string();
    let unique = format!("n{}", &Uuid::new_v4().simple().to_string()[..12]);
    Some(match operation.id {
        "setup.complete" => {
            json!({"token": "x", "email": "a@b.example", "display_name": "x", "password": PASSWORD})
        }
        "auth.login" => json!({"email": "nobody@b.example", "password": "x"}),
        "auth.refresh" | "auth.refresh_token" => json!({"refresh_token": "x"}),
        "auth.password.change" => json!({"current_password": "x", "new_password": "y"}),
        "graphql.execute" => json!({"query": "{ me { id } }"}),
        "tenants.create" => json!({"slug": unique, "name": "x"}),
        "tenants.update" => json!({"settings": {}}),
        "tenants.move" => json!({"parent_id": nobody}),
        "tenants.quotas.set" => json!({"quotas": {}}),
        "users.create" => json!({"email": format!("{unique}@b.example"), "password": PASSWORD}),
        "users.update" => json!({"display_name": "x"}),
        "groups.create" => json!({"name": unique}),
        "keys.create" => {
            json!({"service_account_id": nobody, "name": "x", "scopes": ["users:read"]})
        }
        "roles.create" => json!({"name": unique, "grants": [{"permissions": ["users:read"]}]}),
        "roles.update" => json!({"grants": [{"permissions": ["users:read"]}]}),
        "groups.update" => json!({"name": unique}),
        "roles.assign" => json!({"role": "viewer", "user_id": nobody}),
        "cloud_accounts.put" => {
            json!({"provider": "aws", "credentials": {"AWS_ACCESS_KEY_ID": "x"}})
        }
        "resolvers.configure" => json!({"config": {}}),
        "pools.create" => json!({"name": unique, "cidr": "192.0.2.0/24"}),
        "pools.reserve" | "pools.unreserve" => json!({"cidr": "192.0.2.0/28"}),
        "images.put" => {
            json!({"cloud": "aws", "os_family": unique, "os_version": "1", "image_id": "ami-1"})
        }
        "roles.explain" => json!({"user_id": nobody, "permission": "users:read"}),
        "deployments.create" => {
            json!({"organization": "o", "project": "p", "template": "minimal", "domain": "o.example"})
        }
        "deployments.state.export" => json!({"environment": "dev"}),
        "deployments.unit.repair" => {
            json!({"environment": "dev", "version": "0", "act": "mend"})
        }
        "approvals.grant" => json!({}),
        "approvals.deny" => json!({"reason": "x"}),
        "approvals.policies.put" => json!({"steps": [{"name": "x", "approvers": [{"user": nobody}],
            "needs": "any", "timeout_seconds": 60}]}),
        "approvals.delegations.put" => json!({"until": "2000-01-01T00:00:00Z"}),
        "webhooks.create" | "webhooks.update" => {
            json!({"name": unique, "url": "https://hooks.example/x"})
        }
        "notifications.preferences.set" => json!({}),
        "runs.marks.set" => json!({"digest": "0"}),
        "gates.sign" => json!({"note": "x"}),
        "drafts.put" => json!({"kind": "deployment", "content": {}}),
        "deployments.update" => json!({"manifest": "x: 1"}),
        "deployments.deploy"
        | "deployments.destroy"
        | "deployments.preview"
        | "deployments.rollback"
        | "deployments.refresh" => json!({"environment": "dev", "rehearsal": true}),
        "stacks.register" => json!({"name": unique, "template": format!("name: {unique}\n")}),
        "stacks.update" => json!({"template": "name: no-such-stack\n"}),
        "stacks.deploy" => {
            json!({"deployment": "D0NONE", "environment": "dev", "rehearsal": true})
        }
        "templates.create" => json!({"content": format!("name: {unique}\ndescription: x\n")}),
        "components.create" => component_body(&unique),
        "components.update" => component_body("no-such-component"),
        "components.publish" => json!({"changelog": "x"}),
        "components.versions.deprecate" => json!({"reason": "x"}),
        "governance.put" => json!({"allowed": true}),
        "semantic.clouds.put" => json!({"display_name": "x"}),
        "semantic.types.put" => json!({"category": "x"}),
        "semantic.mappings.put" => json!({}),
        "cmdb.items.update" => json!({"compartment": null}),
        "cmdb.relationships.create" => {
            json!({"source": nobody, "target": Uuid::new_v4(), "relationship": "uses"})
        }
        "cmdb.classes.put" => json!({}),
        "cmdb.compartments.create" => json!({"name": unique}),
        "cmdb.imports.create" => json!({"format": "jsonl", "content": "x"}),
        "zones.create" => json!({"name": unique, "provider": "aws"}),
        "zones.update" => json!({"provider": "aws"}),
        "zones.publish" | "zones.environments.create" => json!({}),
        "zones.templates.put" => json!({"mandatory_components": []}),
        "workers.join" => json!({"id": nobody, "name": unique, "version": "1", "slots": 1,
            "abilities": {"sandbox": "strict"}}),
        "workers.beat" => json!({"running": 0}),
        "workers.take" => json!({"full": []}),
        "workers.call" => json!({"tenant": nobody, "epoch": 1, "call": {"call": "manifest"}}),
        "workspace.change" => json!({"put": {}, "remove": []}),
        "workspace.contents.store" => json!({"contents": {}}),
        "auth.logout"
        | "notifications.read"
        | "notifications.read_all"
        | "webhooks.rotate"
        | "schedules.pause"
        | "schedules.resume"
        | "workers.drain"
        | "workers.resume"
        | "webhooks.test"
        | "webhooks.resend"
        | "deliveries.resend"
        | "groups.members.add"
        | "tenants.restore"
        | "environments.enable"
        | "environments.disable"
        | "zones.retire"
        | "runs.cancel"
        | "runs.pause"
        | "runs.resume" => return None,
        other => {
            assert!(
                matches!(operation.method, "GET" | "DELETE"),
                "{other} takes a body and has no row in the matrix"
            );
            return None;
        }
    })
}

/// The smallest component that can be kept.
fn component_body(name: &str) -> Value {
    json!({"name": name, "provider": "aws", "semantic_type": "VirtualNetwork", "language": "typescript",
        "contract": {}, "files": {"src/index.ts": "export {};\n"}})
}

pub(crate) fn path(operation: Operation, tenant: &str) -> String {
    path_where(operation, tenant, "", "")
}

/// The path of an operation with something else in one of its segments.
pub(crate) fn path_where(operation: Operation, tenant: &str, name: &str, value: &str) -> String {
    let mut path = operation.path.replace(&format!("{{{name}}}"), value);
    path = path.replace("{tenant}", tenant);
    for name in [
        "{user}",
        "{session}",
        "{group}",
        "{key}",
        "{assignment}",
        "{deleted}",
        "{run}",
        "{lease}",
        "{image}",
        "{approval}",
        "{notification}",
        "{webhook}",
        "{delivery}",
        "{ci}",
        "{relationship}",
        "{compartment}",
        "{worker}",
    ] {
        path = path.replace(name, &Uuid::new_v4().to_string());
    }
    for (name, value) in [
        ("{role}", "no-such-role"),
        ("{deployment}", "D0NONE"),
        ("{environment}", "dev"),
        ("{stack}", "no-such-stack"),
        ("{unit}", "no-such-unit"),
        ("{account}", "no-such-account"),
        ("{template}", "no-such-template"),
        ("{item}", "unit:no-such-unit"),
        ("{draft}", "no-such-draft"),
        ("{component}", "no-such-component"),
        ("{version}", "1"),
        ("{zone}", "no-such-zone"),
        ("{cloud}", "nosuchcloud"),
        ("{type}", "NoSuchType"),
        ("{resource}", "no:such:Resource"),
        ("{resolver}", "secret"),
        ("{pool}", "no-such-pool"),
        ("{class}", "no-such-class"),
        ("{workflow}", "no-such-workflow"),
        ("{schedule}", "no-such-schedule"),
    ] {
        path = path.replace(name, value);
    }
    assert!(
        !path.contains('{'),
        "{path} has a segment without a row in the matrix"
    );
    if operation.chooses_tenant() {
        path.push_str(&format!("?tenant={tenant}"));
    }
    if matches!(
        operation.id,
        "deployments.state"
            | "deployments.outputs"
            | "deployments.unit.history"
            | "deployments.unit.difference"
            | "deployments.unit.health"
    ) {
        path.push_str("&environment=dev");
    }
    if operation.id == "cmdb.search" {
        path.push_str("&query=x");
    }
    if operation.id == "workspace.contents.read" {
        path.push_str(&format!("&digests={}", "0".repeat(64)));
    }
    path
}

/// A path with one more parameter of the query, or with another value for one that it has.
pub(crate) fn asking(path: &str, name: &str, value: &str) -> String {
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let others = query
        .split('&')
        .filter(|part| !part.is_empty() && !part.starts_with(&format!("{name}=")));
    let query: Vec<_> = others
        .map(ToOwned::to_owned)
        .chain([format!("{name}={value}")])
        .collect();
    format!("{path}?{}", query.join("&"))
}

async fn call(
    nimbus: &Installation,
    operation: Operation,
    tenant: &str,
    token: Option<&str>,
) -> crate::support::Answer {
    let answer = nimbus
        .call(
            operation.method,
            &path(operation, tenant),
            token,
            body(operation),
        )
        .await;
    let described = &DOCUMENT["paths"][operation.path][operation.method.to_lowercase()];
    let status = answer.status.as_str();
    assert!(
        described["responses"][status].is_object(),
        "{} answered {status}, which is not described: {}",
        operation.id,
        answer.text
    );
    answer
}

static DOCUMENT: LazyLock<Value> = LazyLock::new(nimbus_control_api::openapi);

/// What deletes the tenant itself comes last.
fn operations() -> Vec<Operation> {
    let mut operations = OPERATIONS.to_vec();
    operations.sort_by_key(|operation| operation.id == "tenants.delete");
    operations
}

#[tokio::test]
async fn nothing_but_signing_in_works_without_a_sign_in() {
    let nimbus = installation!();
    nimbus.set_up().await;
    let tenant = nimbus.root.to_string();
    for operation in operations()
        .into_iter()
        .filter(|operation| operation.need != Need::Nothing)
    {
        for token in [
            None,
            Some("garbage"),
            Some("nbk_garbage"),
            Some("eyJhbGciOiJub25lIn0.e30."),
        ] {
            let answer = call(&nimbus, operation, &tenant, token).await;
            assert_eq!(
                answer.status,
                StatusCode::UNAUTHORIZED,
                "{} {token:?}: {}",
                operation.id,
                answer.text
            );
        }
    }
}

#[tokio::test]
async fn each_role_does_what_its_permissions_say_in_its_tenant_and_sees_no_other() {
    let nimbus = installation!();
    let owner = nimbus.set_up().await;
    let foreign = nimbus.tenant(&owner, "foreign").await;
    let missing = Uuid::new_v4().to_string();
    for (role, _) in BUILT_IN {
        let slug = format!("t-{}", role.replace('_', "-"));
        let own = nimbus.tenant(&owner, &slug).await;
        nimbus
            .user(&owner, &own, "somebody@own.example", Some(role))
            .await;
        let token = nimbus.token(&slug, "somebody@own.example").await;
        let role = built_in(role).unwrap();
        let keys = role.keys();
        for operation in operations() {
            let Need::Permission(key) = operation.need else {
                continue;
            };
            let hidden = call(&nimbus, operation, &foreign, Some(&token)).await;
            let absent = call(&nimbus, operation, &missing, Some(&token)).await;
            assert_eq!(
                hidden.status,
                StatusCode::NOT_FOUND,
                "{} {}",
                role.name,
                operation.id
            );
            assert_eq!(without_ids(&hidden.json()), without_ids(&absent.json()));
            let above = call(&nimbus, operation, &nimbus.root.to_string(), Some(&token)).await;
            assert_eq!(
                above.status,
                StatusCode::NOT_FOUND,
                "{} {}",
                role.name,
                operation.id
            );

            let answer = call(&nimbus, operation, &own, Some(&token)).await;
            let refused = answer.status == StatusCode::FORBIDDEN;
            assert_eq!(
                refused,
                !keys.contains(key),
                "{} {}: {}",
                role.name,
                operation.id,
                answer.text
            );
            assert!(
                !answer.status.is_server_error(),
                "{}: {}",
                operation.id,
                answer.text
            );
        }
    }
}

fn without_ids(error: &Value) -> Value {
    let mut error = error["error"].clone();
    error["trace_id"] = Value::Null;
    error["timestamp"] = Value::Null;
    error
}

#[tokio::test]
async fn the_operator_reaches_every_tenant() {
    let nimbus = installation!();
    let owner = nimbus.set_up().await;
    let acme = nimbus.tenant(&owner, "acme").await;
    for operation in operations() {
        if matches!(operation.need, Need::Permission(_)) {
            let answer = call(&nimbus, operation, &acme, Some(&owner)).await;
            assert_ne!(
                answer.status,
                StatusCode::FORBIDDEN,
                "{}: {}",
                operation.id,
                answer.text
            );
            assert!(
                !answer.status.is_server_error(),
                "{}: {}",
                operation.id,
                answer.text
            );
        }
    }
    let gone = nimbus.get(&format!("/api/v1/tenants/{acme}"), &owner).await;
    assert_eq!(
        gone.status,
        StatusCode::NOT_FOUND,
        "the last operation deleted it"
    );
}

#[tokio::test]
async fn whatever_somebody_does_is_recorded_reads_and_failures_too() {
    let nimbus = installation!();
    let owner = nimbus.set_up().await;
    let acme = nimbus.tenant(&owner, "acme").await;
    for operation in operations() {
        if operation.need != Need::Nothing {
            let token = nimbus.token("", "owner@operator.example").await;
            let answer = call(&nimbus, operation, &acme, Some(&token)).await;
            assert!(
                !answer.status.is_server_error(),
                "{}: {}",
                operation.id,
                answer.text
            );
        }
    }
    let recorded = nimbus
        .database
        .texts("SELECT DISTINCT action FROM nimbus_core.audit_logs")
        .await;
    let forgotten: Vec<_> = OPERATIONS
        .iter()
        .filter(|operation| operation.need != Need::Nothing)
        .map(|operation| operation.id)
        .filter(|id| !recorded.iter().any(|action| action == id))
        .collect();
    assert!(forgotten.is_empty(), "{forgotten:?}");
    let failed = nimbus
        .database
        .texts(
            "SELECT new_value::text FROM nimbus_core.audit_logs
             WHERE action = 'users.get' AND outcome = 'failed'",
        )
        .await;
    assert!(failed[0].contains("NIM-0856"), "{failed:?}");
}
