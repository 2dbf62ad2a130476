//! Upgrades of components: what one would mean for every instance, and of one instance.

use axum::http::StatusCode;
use jiff::Timestamp;
use nimbus_control_store::{HeldRun, RunEnd, StoreError, StoredRun};
use nimbus_core::TenantId;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::catalog::{bucket, manifest, published, put, tenant_texts};
use crate::support::{Answer, Installation, installation, text};

const NEXT_PROGRAM: &str = "import * as pulumi from \"@pulumi/pulumi\";\n\
    const config = new pulumi.Config();\n\
    const size = config.requireNumber(\"size\");\n\
    export const name = `bucket-${size}`;\n";

/// The next version: smaller, and with another output.
pub(crate) fn narrower() -> Value {
    let mut next = bucket("bucket");
    next["contract"]["inputs"]["properties"]["size"]["maximum"] = json!(4);
    next["contract"]["outputs"] =
        json!({"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}});
    next["files"]["src/index.ts"] = json!(NEXT_PROGRAM);
    next
}

/// The next version: with more room.
pub(crate) fn wider() -> Value {
    let mut next = bucket("bucket");
    next["contract"]["inputs"]["properties"]["size"]["maximum"] = json!(16);
    next
}

/// An operator with two tenants and a component.
pub(crate) struct Fleet {
    pub(crate) nimbus: Installation,
    pub(crate) owner: String,
    pub(crate) acme: String,
    pub(crate) other: String,
}

impl Fleet {
    pub(crate) async fn new(nimbus: Installation) -> Self {
        let owner = nimbus.set_up().await;
        let root = nimbus.root.to_string();
        let acme = nimbus.tenant(&owner, "acme").await;
        let other = nimbus.tenant(&owner, "other").await;
        published(&nimbus, &owner, &root, bucket("bucket")).await;
        Self {
            nimbus,
            owner,
            acme,
            other,
        }
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Answer {
        self.nimbus.post(path, &self.owner, body).await
    }

    pub(crate) async fn get(&self, path: &str) -> Value {
        self.nimbus.get(path, &self.owner).await.ok()
    }

    pub(crate) async fn publish_next(&self, draft: Value, more: Value) {
        let path = "/api/v1/components/bucket";
        put(&self.nimbus, path, &self.owner, draft).await.ok();
        let mut body = json!({"changelog": "next", "allow_breaking": true});
        for (key, value) in more.as_object().into_iter().flatten() {
            body[key] = value.clone();
        }
        self.post(&format!("{path}/publish"), body).await.ok();
    }

    /// A deployment that is there; the id of its instance.
    pub(crate) async fn deployed(&self, tenant: &str, manifest: &str) -> String {
        let path = format!("/api/v1/deployments?tenant={tenant}");
        let made = self.post(&path, json!({"manifest": manifest})).await.ok();
        let id = text(&made["id"]);
        let deploy = format!("/api/v1/deployments/{id}/deploy?tenant={tenant}");
        let body = json!({"environment": "dev", "rehearsal": true});
        self.post(&deploy, body).await.ok();
        self.carry(tenant, "succeeded").await.expect("a run");
        let list = format!(
            "/api/v1/instances?tenant={tenant}&deployment={id}&environment=dev&component=bucket"
        );
        text(&self.get(&list).await["items"][0]["id"])
    }

    pub(crate) async fn bucket_of(&self, tenant: &str, id: &str, size: u32) -> String {
        self.deployed(tenant, &manifest(id, "bucket", &json!({"size": size})))
            .await
    }

    /// Takes the tenant's next run as a worker does.
    pub(crate) async fn take(&self, tenant: &str) -> Option<StoredRun> {
        let tenant: TenantId = tenant.parse().expect("an id");
        let store = &self.nimbus.database.store;
        let taken: Result<_, StoreError> = store
            .tenant_tx(tenant, async |tx| tx.run_take(Uuid::new_v4()).await)
            .await;
        taken.expect("a turn")
    }

    pub(crate) async fn end(&self, tenant: &str, run: &StoredRun, result: &str) {
        let tenant: TenantId = tenant.parse().expect("an id");
        let held = HeldRun {
            deployment: run.deployment.clone(),
            number: run.number,
            epoch: run.epoch,
        };
        let end = RunEnd {
            status: "ended",
            wish: None,
            result: Some(result.to_owned()),
            problem: None,
        };
        let store = &self.nimbus.database.store;
        let ended: Result<_, StoreError> = store
            .tenant_tx(tenant, async |tx| {
                tx.run_begin(&held, &json!({})).await?;
                tx.run_release(&held, &end).await
            })
            .await;
        ended.expect("an end");
    }

    pub(crate) async fn carry(&self, tenant: &str, result: &str) -> Option<StoredRun> {
        let run = self.take(tenant).await?;
        self.end(tenant, &run, result).await;
        Some(run)
    }

    pub(crate) async fn instance(&self, tenant: &str, id: &str) -> Value {
        self.get(&format!("/api/v1/instances/{id}?tenant={tenant}"))
            .await
    }

    pub(crate) async fn act(&self, tenant: &str, id: &str, what: &str, body: Value) -> Answer {
        let path = format!("/api/v1/instances/{id}/{what}?tenant={tenant}");
        self.post(&path, body).await
    }

    pub(crate) async fn rollout(&self, body: Value) -> Answer {
        self.post("/api/v1/components/bucket/rollouts", body).await
    }

    pub(crate) async fn standing(&self, rollout: &str) -> Value {
        self.get(&format!("/api/v1/rollouts/{rollout}")).await
    }

    pub(crate) async fn signal(&self, rollout: &str, signal: &str) -> Answer {
        let path = format!("/api/v1/rollouts/{rollout}/{signal}");
        self.nimbus
            .call("POST", &path, Some(&self.owner), None)
            .await
    }

    pub(crate) async fn sweep(&self) {
        let swept = self.nimbus.app.sweep_rollouts(Timestamp::now()).await;
        swept.expect("a round");
    }

    /// Numbers of versions that runs of a tenant were made of, oldest first.
    pub(crate) async fn run_versions(&self, tenant: &str) -> Vec<String> {
        let statement = "SELECT action || ' ' || (catalog -> 'bucket' ->> 'version') FROM {}.runs
            ORDER BY queued_at, number";
        tenant_texts(&self.nimbus, tenant, statement).await
    }
}

pub(crate) fn refused(answer: &Answer, code: &str, words: &str) {
    assert!(!answer.status.is_success(), "{}", answer.text);
    assert!(
        answer.text.contains(code) && answer.text.contains(words),
        "{code} {words}: {}",
        answer.text
    );
}

#[tokio::test]
async fn the_impact_of_a_version_names_who_breaks_and_why() {
    let fleet = Fleet::new(installation!()).await;
    let (nimbus, owner) = (&fleet.nimbus, &fleet.owner);
    let root = nimbus.root.to_string();
    published(nimbus, owner, &root, bucket("reader")).await;
    let third = nimbus.tenant(owner, "third").await;
    fleet.bucket_of(&fleet.acme, "D1SMALL", 2).await;
    fleet.bucket_of(&fleet.other, "D1BIG", 6).await;
    fleet.bucket_of(&third, "D1RULE", 2).await;
    let mut wired: Value =
        serde_json::from_str(&manifest("D1WIRE", "bucket", &json!({"size": 2}))).expect("JSON");
    wired["spec"]["stacks"]["reader"] = json!({"enabled": true,
        "config": {"dev": {"size": 1, "zone": "{{RUNTIME:bucket:id}}"}}});
    fleet.deployed(&fleet.acme, &wired.to_string()).await;
    let rule = format!("/api/v1/tenants/{third}/governance/bucket");
    let deny = json!({"allowed": false, "reason": "not here"});
    put(nimbus, &rule, owner, deny).await.ok();
    fleet.publish_next(narrower(), json!({})).await;

    let path = "/api/v1/components/bucket/impact?rehearsal=true";
    let impact = fleet.get(path).await;
    assert_eq!(
        (
            &impact["to_version"],
            &impact["fit"],
            &impact["unfit"],
            &impact["current"]
        ),
        (&json!(2), &json!(1), &json!(3), &json!(0)),
        "{impact}"
    );
    let of = |id: &str| {
        let all = impact["instances"].as_array().expect("instances");
        let found = all.iter().find(|one| one["deployment"] == id);
        found.cloned().unwrap_or_default()
    };
    let small = of("D1SMALL");
    assert_eq!(
        (&small["fits"], &small["version"], &small["tenant_name"]),
        (&json!(true), &json!(1), &json!("Tenant acme"))
    );
    let big = of("D1BIG");
    assert!(text(&big["parameters"][0]).contains("size"), "{big}");
    assert!(
        text(&big["path"]).contains("names no upgrade workflow"),
        "{big}"
    );
    let wire = of("D1WIRE");
    assert_eq!(
        wire["dependents"],
        json!(["reader.zone takes the output id"]),
        "{wire}"
    );
    let denied = of("D1RULE");
    assert!(text(&denied["rules"][0]).contains("not here"), "{denied}");

    // A tenant sees its own.
    nimbus
        .user(
            owner,
            &fleet.acme,
            "admin@acme.example",
            Some("tenant_admin"),
        )
        .await;
    let admin = nimbus.token("acme", "admin@acme.example").await;
    let own = nimbus.get(path, &admin).await.ok();
    assert_eq!(own["instances"].as_array().map(Vec::len), Some(2), "{own}");
    let above = format!("{path}&tenant={root}");
    let hidden = nimbus.get(&above, &admin).await;
    assert_eq!(hidden.status, StatusCode::NOT_FOUND);

    // Previews with the version are runs of each, and nothing is recorded as deployed.
    let previews = "/api/v1/components/bucket/previews";
    let asked = fleet
        .post(previews, json!({"version": 2, "rehearsal": true}))
        .await
        .ok();
    let items = asked["items"].as_array().expect("items");
    let of = |id: &str| items.iter().find(|one| one["deployment"] == id).unwrap();
    assert!(of("D1SMALL")["run"].is_string(), "{asked}");
    assert!(
        text(&of("D1RULE")["problem"]).contains("NIM-0974"),
        "{asked}"
    );
    assert_eq!(
        fleet.run_versions(&fleet.other).await,
        ["deploy 1", "preview 2"]
    );
    let after = fleet.get(path).await;
    assert_eq!((&after["fit"], &after["unfit"]), (&json!(1), &json!(3)));
    let kept = tenant_texts(
        nimbus,
        &fleet.other,
        "SELECT component_version || ' ' || status FROM {}.deployed_components",
    )
    .await;
    assert_eq!(kept, ["1 deployed"]);
}

#[tokio::test]
async fn an_instance_is_upgraded_and_has_its_version_back_when_that_fails() {
    let fleet = Fleet::new(installation!()).await;
    let acme = fleet.acme.clone();
    let id = fleet.bucket_of(&acme, "D1ONE", 2).await;
    refused(
        &fleet
            .act(&acme, &id, "upgrade", json!({"version": 2}))
            .await,
        "NIM-1030",
        "not published",
    );
    fleet.publish_next(wider(), json!({})).await;
    let run = fleet.act(&acme, &id, "upgrade", json!({})).await;
    assert_eq!(run.status, StatusCode::ACCEPTED, "{}", run.text);
    let waiting = fleet.instance(&acme, &id).await;
    assert_eq!(
        (
            &waiting["version"],
            &waiting["upgrade_from"],
            &waiting["upgrade_run"]
        ),
        (&json!(2), &json!(1), &run.json()["id"])
    );
    refused(
        &fleet.act(&acme, &id, "upgrade", json!({})).await,
        "NIM-1033",
        "under way",
    );
    let taken = fleet.take(&acme).await.expect("a run");
    assert_eq!(fleet.instance(&acme, &id).await["status"], "upgrading");
    fleet.end(&acme, &taken, "rolled_back").await;
    let back = fleet.instance(&acme, &id).await;
    assert_eq!(
        (&back["version"], &back["status"], &back["upgrade_run"]),
        (&json!(1), &json!("deployed"), &Value::Null)
    );
    fleet
        .act(&acme, &id, "upgrade", json!({"version": 2}))
        .await
        .ok();
    fleet.carry(&acme, "succeeded").await.expect("a run");
    let done = fleet.instance(&acme, &id).await;
    assert_eq!(
        (&done["version"], &done["status"], &done["upgrade_from"]),
        (&json!(2), &json!("deployed"), &Value::Null)
    );
    refused(
        &fleet.act(&acme, &id, "upgrade", json!({})).await,
        "NIM-1030",
        "has version 2 already",
    );
    // What comes after it goes on with the version.
    fleet.act(&acme, &id, "deploy", json!({})).await.ok();
    fleet.carry(&acme, "succeeded").await.expect("a run");
    assert_eq!(
        fleet.run_versions(&acme).await,
        ["deploy 1", "deploy 2", "deploy 2", "deploy 2"]
    );
    fleet.act(&acme, &id, "destroy", json!({})).await.ok();
    fleet.carry(&acme, "succeeded").await.expect("a run");
    for what in ["destroy", "deploy", "upgrade", "preview"] {
        let answer = fleet.act(&acme, &id, what, json!({})).await;
        refused(&answer, "NIM-1032", "is destroyed");
    }
    let trail = fleet
        .nimbus
        .database
        .texts("SELECT action FROM nimbus_core.audit_logs WHERE action LIKE 'instances.upgrade' AND outcome = 'done'")
        .await;
    assert_eq!(trail.len(), 2);
}

#[tokio::test]
async fn a_version_that_breaks_is_passed_with_a_workflow_and_parameters_that_fit() {
    let fleet = Fleet::new(installation!()).await;
    let acme = fleet.acme.clone();
    let big = fleet.bucket_of(&acme, "D1BIG", 6).await;
    let small = fleet.bucket_of(&acme, "D1SMALL", 2).await;
    let first = bucket("own");
    let path = format!("/api/v1/components?tenant={acme}");
    fleet.post(&path, first).await.ok();
    let publish = format!("/api/v1/components/own/publish?tenant={acme}");
    let body = json!({"changelog": "first", "upgrade_workflow": "in-place"});
    refused(
        &fleet.post(&publish, body).await,
        "NIM-0859",
        "first version",
    );
    let body = json!({"changelog": "first", "upgrade_workflow": "magic"});
    refused(
        &fleet.post(&publish, body).await,
        "NIM-0859",
        "give in-place",
    );

    // Not named: who fits goes, who does not is told why.
    fleet.publish_next(narrower(), json!({})).await;
    refused(
        &fleet
            .act(&acme, &big, "upgrade", json!({"version": 2}))
            .await,
        "NIM-1030",
        "names no upgrade workflow",
    );
    // The next has room again, and the one between says how to get over it.
    let mut again = wider();
    again["files"]["src/index.ts"] = json!(NEXT_PROGRAM);
    again["contract"]["outputs"] = narrower()["contract"]["outputs"].clone();
    fleet.publish_next(again, json!({})).await;
    refused(
        &fleet
            .act(&acme, &big, "upgrade", json!({"version": 3}))
            .await,
        "NIM-1030",
        "version 2 breaks",
    );
    fleet
        .act(&acme, &small, "upgrade", json!({"version": 3}))
        .await
        .ok();
    fleet.carry(&acme, "succeeded").await.expect("a run");
    let middle = fleet.bucket_of(&acme, "D1MID", 6).await;
    let mut smaller = narrower();
    smaller["description"] = json!("smaller again");
    let named = json!({"upgrade_workflow": "in-place"});
    fleet.publish_next(smaller, named).await;
    let versions = fleet.get("/api/v1/components/bucket/versions").await;
    assert_eq!(versions["items"][0]["upgrade_workflow"], "in-place");
    fleet
        .act(&acme, &small, "upgrade", json!({"version": 4}))
        .await
        .ok();
    fleet.carry(&acme, "succeeded").await.expect("a run");
    // A workflow does not make parameters fit.
    let answer = fleet
        .act(&acme, &middle, "upgrade", json!({"version": 4}))
        .await;
    refused(&answer, "NIM-1031", "size");
    let deprecate = "/api/v1/components/bucket/versions/4/deprecate";
    fleet
        .post(deprecate, json!({"reason": "loses files"}))
        .await
        .ok();
    refused(
        &fleet
            .act(&acme, &big, "upgrade", json!({"version": 4}))
            .await,
        "NIM-1030",
        "loses files",
    );
}
