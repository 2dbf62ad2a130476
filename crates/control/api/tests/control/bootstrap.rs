//! Landing zones and schedules of tenants over a durable runtime: what publishing begins, and what the clock does.

use axum::http::StatusCode;
use nimbus_control_store::{HeldRun, RunEnd, StoreError};
use nimbus_core::TenantId;
use nimbus_workflows::{FlowFilter, FlowId, FlowState, NewFlow};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::catalog::{bucket, published, put};
use crate::support::{Installation, installation, text};
use crate::upgrades::{Fleet, refused, wider};
use crate::workflows::{Runtime, eventually};

/// Carries out the next run of a tenant as a worker does, and says so.
async fn carry(nimbus: &Installation, tenant: TenantId, result: &str) {
    let store = &nimbus.database.store;
    let ended: Result<_, StoreError> = store
        .tenant_tx(tenant, async |tx| {
            let run = tx.run_take(Uuid::new_v4()).await?.expect("a run");
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
            tx.run_begin(&held, &json!({})).await?;
            tx.run_release(&held, &end).await?;
            Ok(run.id)
        })
        .await;
    nimbus.app.flow_hears(tenant, ended.expect("an end"));
}

async fn zone_status(nimbus: &Installation, owner: &str) -> String {
    let zone = nimbus.get("/api/v1/zones/europe", owner).await.ok();
    text(&zone["platform"]["status"])
}

#[tokio::test]
async fn a_zone_is_bootstrapped_by_a_workflow_that_goes_on_after_its_worker_is_gone() {
    let nimbus = installation!();
    let mut runtime = Runtime::embedded(&nimbus.app).await;
    let control = runtime.control();
    nimbus.app.tell_workflows(control.clone());
    let owner = nimbus.set_up().await;
    let root = nimbus.root.to_string();
    published(&nimbus, &owner, &root, bucket("bucket")).await;
    let path = format!("/api/v1/tenants/{root}/cloud-accounts/main");
    let body = json!({"provider": "aws", "credentials": {"AWS_ACCESS_KEY_ID": "AKIAEXAMPLE"}});
    put(&nimbus, &path, &owner, body).await.ok();
    let mut zone = json!({"name": "europe", "provider": "aws", "account": "main",
        "system_services": [{"component": "bucket", "parameters": {"size": 2}}],
        "resolvers": {"naming": {"no_such_key": 1}}});
    let answer = nimbus.post("/api/v1/zones", &owner, zone.clone()).await;
    refused(&answer, "NIM-0859", "resolvers.naming");
    zone["resolvers"] = json!({"naming": {"pattern": "eu-{type}-{seq:03d}"}});
    nimbus
        .post("/api/v1/zones", &owner, zone.clone())
        .await
        .ok();
    let publish = "/api/v1/zones/europe/publish";
    let body = json!({"rehearsal": true});
    nimbus.post(publish, &owner, body.clone()).await.ok();
    assert_eq!(zone_status(&nimbus, &owner).await, "provisioning");
    let bootstraps = FlowFilter {
        flow: Some("LandingZoneBootstrapWorkflow".to_owned()),
        ..FlowFilter::default()
    };
    let states = async || -> Vec<FlowState> {
        let found = control.list(&bootstraps, None, 10).await.expect("a list");
        found.flows.into_iter().map(|one| one.state).collect()
    };
    eventually("it waits for services", async || {
        states().await == [FlowState::Running]
    })
    .await;
    // Nobody executes while the services come.
    runtime.restart(&nimbus.app).await;
    carry(&nimbus, nimbus.root, "succeeded").await;
    eventually("the zone is ready", async || {
        zone_status(&nimbus, &owner).await == "active"
    })
    .await;
    eventually("so is its workflow", async || {
        states().await == [FlowState::Succeeded(json!("active"))]
    })
    .await;
    let shown = nimbus.get("/api/v1/zones/europe", &owner).await.ok();
    assert_eq!(
        shown["resolver_configs"][0]["config"]["pattern"],
        "eu-{type}-{seq:03d}"
    );
    // Once more deploys and configures nothing.
    nimbus.post(publish, &owner, body.clone()).await.ok();
    nimbus.app.begin_open_flows().await.expect("a look");
    assert_eq!(states().await.len(), 1);
    // Another configuration is brought without another deploy.
    zone["resolvers"]["naming"]["pattern"] = json!("e-{seq:03d}");
    put(&nimbus, "/api/v1/zones/europe", &owner, zone)
        .await
        .ok();
    nimbus.post(publish, &owner, body).await.ok();
    eventually("it is configured again", async || {
        let shown = nimbus.get("/api/v1/zones/europe", &owner).await.ok();
        shown["resolver_configs"][0]["config"]["pattern"] == "e-{seq:03d}"
            && shown["platform"]["status"] == "active"
    })
    .await;
    let trail = nimbus.database.texts(
        "SELECT new_value ->> 'status' FROM nimbus_core.audit_logs WHERE action = 'zones.bootstrap' ORDER BY sequence",
    );
    assert_eq!(trail.await, ["active", "active"]);

    // An environment of a tenant has the same workflow, and ends as its run does.
    let acme = nimbus.tenant(&owner, "acme").await;
    let template =
        json!({"mandatory_components": [{"component": "bucket", "parameters": {"size": 5}}]});
    let path = "/api/v1/zones/europe/templates/standard";
    put(&nimbus, path, &owner, template).await.ok();
    let path = format!("/api/v1/zones/europe/environments/dev?tenant={acme}");
    let body = json!({"template": "standard", "rehearsal": true});
    nimbus.post(&path, &owner, body).await.ok();
    eventually("its workflow waits", async || {
        states().await.contains(&FlowState::Running)
    })
    .await;
    carry(&nimbus, acme.parse().expect("an id"), "failed").await;
    eventually("its workflow has failed", async || {
        let all = states().await;
        all.iter().any(|one| matches!(one, FlowState::Failed(_)))
    })
    .await;
    let shown = nimbus.get(&path, &owner).await.ok();
    assert_eq!(shown["status"], "failed");
}

#[tokio::test]
async fn an_upgrade_is_a_workflow_of_its_own_name() {
    let nimbus = installation!();
    let runtime = Runtime::embedded(&nimbus.app).await;
    let control = runtime.control();
    nimbus.app.tell_workflows(control.clone());
    let fleet = Fleet::new(nimbus).await;
    let acme: TenantId = fleet.acme.parse().expect("an id");
    let id = fleet.bucket_of(&fleet.acme, "D1ONE", 2).await;
    fleet.publish_next(wider(), json!({})).await;
    let run = fleet.act(&fleet.acme, &id, "upgrade", json!({})).await.ok();
    let flow = FlowId::new(format!("run:{acme}:{}:1", text(&run["id"]))).expect("a name");
    eventually("it was started", async || {
        let found = control.status(&flow).await;
        found.is_ok_and(|found| found.flow == "ComponentUpgradeWorkflow")
    })
    .await;
    carry(&fleet.nimbus, acme, "succeeded").await;
    let ended = control.result(&flow).await.expect("an end");
    assert_eq!(ended, FlowState::Succeeded(json!({"result": "succeeded"})));
    assert_eq!(fleet.instance(&fleet.acme, &id).await["version"], 2);
}

#[tokio::test]
async fn tenants_let_runs_start_by_the_clock_within_limits() {
    let nimbus = installation!();
    let runtime = Runtime::embedded(&nimbus.app).await;
    let control = runtime.control();
    nimbus.app.tell_workflows(control.clone());
    let fleet = Fleet::new(nimbus).await;
    let (nimbus, owner) = (&fleet.nimbus, &fleet.owner);
    fleet.bucket_of(&fleet.acme, "D1NIGHT", 2).await;
    let join = async |name: &str, role: &str| {
        let email = format!("{name}@acme.example");
        let id = nimbus.user(owner, &fleet.acme, &email, Some(role)).await;
        (nimbus.token("acme", &email).await, id)
    };
    let ana = join("ana", "tenant_admin").await;
    join("ben", "tenant_admin").await;
    let (reader, _) = join("reader", "viewer").await;
    let list = format!("/api/v1/tenants/{}/schedules", fleet.acme);
    let nightly = format!("{list}/nightly");
    let body = |cron: &str| json!({"action": "preview", "deployment": "D1NIGHT", "environment": "dev", "rehearsal": true, "cron": cron});
    let forbidden = put(nimbus, &nightly, &reader, body("0 2 * * *")).await;
    assert_eq!(forbidden.status, StatusCode::FORBIDDEN);
    let often = put(nimbus, &nightly, &ana.0, body("*/5 * * * *")).await;
    refused(&often, "NIM-1041", "it starts at");
    let mut wrong = body("0 2 * * *");
    wrong["action"] = json!("destroy");
    refused(
        &put(nimbus, &nightly, &ana.0, wrong).await,
        "NIM-0859",
        "refresh, preview or deploy",
    );
    let mut elsewhere = body("0 2 * * *");
    elsewhere["deployment"] = json!("D1NOWHERE");
    let answer = put(nimbus, &nightly, &ana.0, elsewhere).await;
    assert_eq!(answer.status, StatusCode::NOT_FOUND);
    let made = put(nimbus, &nightly, &ana.0, body("0 2 * * *")).await.ok();
    assert_eq!(
        (&made["cron"], &made["time_zone"]),
        (&json!("0 2 * * *"), &json!("UTC"))
    );
    let name = format!("tenant.{}.nightly", fleet.acme);
    let engine = async || {
        let all = control.schedules().await.expect("schedules");
        let own = all.into_iter().map(|view| view.schedule);
        own.filter(|one| one.name.starts_with("tenant."))
            .collect::<Vec<_>>()
    };
    eventually("the runtime has it", async || {
        engine().await.iter().any(|one| one.name == name)
    })
    .await;
    // As if its time had come, twice: the same start gets the same run.
    let schedule = engine().await.remove(0);
    let start = async |at: &str| {
        let id = FlowId::new(format!("{}{at}", schedule.id_prefix())).expect("a name");
        let new = NewFlow {
            id: id.clone(),
            flow: schedule.flow.clone(),
            input: schedule.input.clone(),
        };
        control.start(new).await.expect("it starts");
        match control.result(&id).await.expect("an end") {
            FlowState::Succeeded(said) => said,
            other => json!({"refused": format!("{other:?}")}),
        }
    };
    let said: Value = start("one").await;
    let run = nimbus
        .get(
            &format!("/api/v1/runs/{}?tenant={}", text(&said["run"]), fleet.acme),
            owner,
        )
        .await
        .ok();
    assert_eq!(
        (&run["action"], &run["message"], &run["requested_by"]),
        (&json!("preview"), &json!("schedule nightly"), &json!(ana.1))
    );
    // Another tenant's people see nothing of it.
    nimbus
        .user(
            owner,
            &fleet.other,
            "eve@other.example",
            Some("tenant_admin"),
        )
        .await;
    let eve = nimbus.token("other", "eve@other.example").await;
    let hidden = nimbus.get(&list, &eve).await;
    assert_eq!(hidden.status, StatusCode::NOT_FOUND);
    let seen = nimbus.get(&list, &reader).await.ok();
    assert_eq!(seen["items"].as_array().map(Vec::len), Some(1));
    // Whoever is disabled starts nothing any more.
    let disable = format!("/api/v1/tenants/{}/users/{}", fleet.acme, ana.1);
    let off = json!({"disabled": true});
    nimbus
        .call("PATCH", &disable, Some(owner), Some(off))
        .await
        .ok();
    let said = start("two").await;
    assert!(text(&said["refused"]).contains("disabled"), "{said}");
    // Twenty, and no more; then none.
    for number in 1..20 {
        let path = format!("{list}/n{number}");
        put(nimbus, &path, owner, body("0 3 * * *")).await.ok();
    }
    let answer = put(
        nimbus,
        &format!("{list}/one-more"),
        owner,
        body("0 3 * * *"),
    )
    .await;
    refused(&answer, "NIM-1040", "20 schedules");
    for name in (1..20).map(|n| format!("n{n}")).chain(["nightly".into()]) {
        let path = format!("{list}/{name}");
        nimbus.call("DELETE", &path, Some(owner), None).await.ok();
    }
    eventually("the runtime has none", async || engine().await.is_empty()).await;
    let trail = nimbus.database.texts(
        "SELECT DISTINCT action FROM nimbus_core.audit_logs WHERE action LIKE 'tenant_schedules%' AND outcome = 'done'
         AND priority <> 'low' ORDER BY 1",
    );
    assert_eq!(
        trail.await,
        ["tenant_schedules.delete", "tenant_schedules.put"]
    );
}
