//! Roll-outs of a version over many instances: waves, pauses, failures, and servers that do it together.

use axum::http::StatusCode;
use futures::future::join_all;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::catalog::tenant_texts;
use crate::support::{installation, text};
use crate::upgrades::{Fleet, narrower, refused, wider};

fn statuses(rollout: &Value) -> Vec<(u64, String)> {
    let instances = rollout["instances"].as_array().expect("instances");
    let status = |one: &Value| (one["wave"].as_u64().unwrap_or(0), text(&one["status"]));
    instances.iter().map(status).collect()
}

#[tokio::test]
async fn a_rollout_goes_in_waves_with_a_pause_between_them() {
    let fleet = Fleet::new(installation!()).await;
    let (nimbus, owner) = (&fleet.nimbus, &fleet.owner);
    fleet.bucket_of(&fleet.acme, "D1A", 2).await;
    fleet.bucket_of(&fleet.other, "D1B", 2).await;
    fleet.bucket_of(&fleet.other, "D1C", 2).await;
    let body = json!({"rehearsal": true, "waves": {"counts": [1]}, "pause_between_waves": true});
    refused(
        &fleet.rollout(body.clone()).await,
        "NIM-1036",
        "no instance",
    );
    fleet.publish_next(wider(), json!({})).await;
    let made = fleet.rollout(body.clone()).await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.text);
    let made = made.ok();
    let id = text(&made["id"]);
    assert_eq!(
        (
            &made["status"],
            &made["wave"],
            &made["waves"],
            &made["to_version"]
        ),
        (&json!("running"), &json!(1), &json!(2), &json!(2))
    );
    assert_eq!(
        statuses(&made),
        [
            (1, "running".into()),
            (2, "waiting".into()),
            (2, "waiting".into())
        ]
    );
    refused(&fleet.rollout(body).await, "NIM-1034", "bucket");
    // Nothing moves before the run has ended.
    fleet.sweep().await;
    assert_eq!(fleet.standing(&id).await["status"], "running");
    assert!(
        fleet.take(&fleet.other).await.is_none(),
        "the second wave waits"
    );
    fleet.carry(&fleet.acme, "succeeded").await.expect("a run");
    fleet.sweep().await;
    let waiting = fleet.standing(&id).await;
    assert_eq!(
        (
            &waiting["status"],
            &waiting["wave"],
            &waiting["paused_because"]
        ),
        (&json!("paused"), &json!(2), &json!("between_waves"))
    );
    fleet.sweep().await;
    assert!(
        fleet.take(&fleet.other).await.is_none(),
        "somebody has to say so"
    );
    // Another server goes on with it.
    let second = nimbus.another_server("second").await;
    let resume = format!("/api/v1/rollouts/{id}/resume");
    second.call("POST", &resume, Some(owner), None).await.ok();
    for _ in 0..2 {
        fleet.carry(&fleet.other, "succeeded").await.expect("a run");
    }
    second
        .app
        .sweep_rollouts(Timestamp::now())
        .await
        .expect("a round");
    let done = fleet.standing(&id).await;
    assert_eq!(done["status"], "succeeded", "{done}");
    for tenant in [&fleet.acme, &fleet.other] {
        let statement = "SELECT DISTINCT component_version::text FROM {}.deployed_components";
        assert_eq!(tenant_texts(nimbus, tenant, statement).await, ["2"]);
    }
    let again = fleet.signal(&id, "stop").await;
    refused(&again, "NIM-1035", "succeeded");
    // It is the operator's, and nobody else's.
    nimbus
        .user(
            owner,
            &fleet.acme,
            "admin@acme.example",
            Some("tenant_admin"),
        )
        .await;
    let admin = nimbus.token("acme", "admin@acme.example").await;
    let seen = nimbus.get("/api/v1/rollouts", &admin).await.ok();
    assert_eq!(seen["items"], json!([]));
    let hidden = nimbus.get(&format!("/api/v1/rollouts/{id}"), &admin).await;
    assert_eq!(hidden.status, StatusCode::NOT_FOUND);
    let trail = nimbus
        .database
        .texts(
            "SELECT action FROM nimbus_core.audit_logs WHERE outcome = 'done' AND priority <> 'low'
             AND (action LIKE '%rollouts%' OR action = 'instances.upgrade') ORDER BY action",
        )
        .await;
    assert_eq!(
        trail,
        [
            "components.rollouts.start",
            "instances.upgrade",
            "instances.upgrade",
            "instances.upgrade",
            "rollouts.advance",
            "rollouts.advance",
            "rollouts.resume",
        ]
    );
    // A round later nobody looks at the tenant any more.
    fleet.sweep().await;
    let turns = nimbus
        .database
        .texts("SELECT tenant::text FROM nimbus_core.rollout_turns");
    assert!(turns.await.is_empty());
}

#[tokio::test]
async fn too_many_failures_end_a_rollout_and_a_stopped_one_starts_nothing() {
    let fleet = Fleet::new(installation!()).await;
    let acme = fleet.acme.clone();
    for id in ["D1A", "D1B", "D1C"] {
        fleet.bucket_of(&acme, id, 2).await;
    }
    fleet.publish_next(wider(), json!({})).await;
    let body = json!({"rehearsal": true, "waves": {"percentages": [34]}});
    let id = text(&fleet.rollout(body.clone()).await.ok()["id"]);
    fleet.carry(&acme, "rolled_back").await.expect("a run");
    fleet
        .carry(&acme, "succeeded")
        .await
        .expect("the other of the wave");
    fleet.sweep().await;
    let failed = fleet.standing(&id).await;
    assert_eq!(
        (&failed["status"], statuses(&failed)),
        (
            &json!("failed"),
            vec![
                (1, "failed".into()),
                (1, "succeeded".into()),
                (2, "waiting".into())
            ]
        )
    );
    assert!(text(&failed["instances"][0]["problem"]).contains("rolled_back"));
    assert!(fleet.take(&acme).await.is_none(), "nothing further starts");
    refused(&fleet.signal(&id, "resume").await, "NIM-1035", "failed");
    let kept =
        "SELECT component_version || ' ' || status FROM {}.deployed_components ORDER BY deployment";
    assert_eq!(
        tenant_texts(&fleet.nimbus, &acme, kept).await,
        ["1 deployed", "2 deployed", "1 deployed"]
    );

    // Another one, stopped while its first instance is under way: that goes on to its end, the other stays.
    let body = json!({"rehearsal": true, "waves": {"counts": [1]}, "message": "again"});
    let id = text(&fleet.rollout(body).await.ok()["id"]);
    let paused = fleet.signal(&id, "pause").await.ok();
    assert_eq!(paused["paused_because"], "asked");
    let stopped = fleet.signal(&id, "stop").await.ok();
    assert_eq!(stopped["status"], "stopped");
    fleet
        .carry(&acme, "succeeded")
        .await
        .expect("what was started");
    fleet.sweep().await;
    let stopped = fleet.standing(&id).await;
    assert_eq!(
        (&stopped["status"], statuses(&stopped)),
        (
            &json!("stopped"),
            vec![(1, "succeeded".into()), (2, "waiting".into())]
        )
    );
    assert!(fleet.take(&acme).await.is_none());
    assert_eq!(
        tenant_texts(&fleet.nimbus, &acme, kept).await,
        ["2 deployed", "2 deployed", "1 deployed"]
    );
}

#[tokio::test]
async fn instances_that_do_not_fit_are_refused_or_left_out() {
    let fleet = Fleet::new(installation!()).await;
    fleet.bucket_of(&fleet.acme, "D1SMALL", 2).await;
    fleet.bucket_of(&fleet.other, "D1BIG", 6).await;
    fleet.publish_next(narrower(), json!({})).await;
    let answer = fleet.rollout(json!({"rehearsal": true})).await;
    refused(&answer, "NIM-1031", "Tenant other/D1BIG/dev/bucket");
    let two = json!({"rehearsal": true, "waves": {"counts": [1], "percentages": [50]}});
    refused(&fleet.rollout(two).await, "NIM-0859", "give one of");
    let made = fleet
        .rollout(json!({"rehearsal": true, "skip_unfit": true, "plan_only": true}))
        .await
        .ok();
    assert_eq!(made["status"], "planned");
    let left_out = |one: &&Value| one["status"] == "skipped";
    let instances = made["instances"].as_array().expect("instances");
    let skipped = instances.iter().find(left_out).expect("one is left out");
    assert_eq!(skipped["deployment"], "D1BIG");
    assert!(text(&skipped["problem"]).contains("size"), "{skipped}");
    assert!(
        fleet.take(&fleet.acme).await.is_none(),
        "a plan starts nothing"
    );
    let id = text(&made["id"]);
    fleet.signal(&id, "resume").await.ok();
    fleet.carry(&fleet.acme, "succeeded").await.expect("a run");
    fleet.sweep().await;
    assert_eq!(fleet.standing(&id).await["status"], "succeeded");
}

#[tokio::test]
async fn servers_that_advance_at_once_start_each_instance_once() {
    let fleet = Fleet::new(installation!()).await;
    for place in 0..4 {
        fleet
            .bucket_of(&fleet.acme, &format!("D1N{place}"), 2)
            .await;
        fleet
            .bucket_of(&fleet.other, &format!("D1N{place}"), 2)
            .await;
    }
    fleet.publish_next(wider(), json!({})).await;
    let body = json!({"rehearsal": true, "plan_only": true});
    let id = text(&fleet.rollout(body).await.ok()["id"]);
    let second = fleet.nimbus.another_server("second").await;
    // As a server leaves it that ends after it said what is to be started.
    let schema = "SELECT schema_name FROM nimbus_core.tenants WHERE parent_id IS NULL";
    let schema = fleet.nimbus.database.texts(schema).await.concat();
    fleet
        .nimbus
        .database
        .run_as_administrator(&format!(
            "UPDATE {schema}.rollouts SET status = 'running', state = '{{\"status\": \"running\", \"wave\": 0}}';
             UPDATE {schema}.rollout_instances SET status = 'starting' WHERE place < 4"
        ))
        .await;
    let rounds = (0..6).map(|round| {
        let server = if round % 2 == 0 {
            &fleet.nimbus
        } else {
            &second
        };
        server.app.sweep_rollouts(Timestamp::now())
    });
    for round in join_all(rounds).await {
        round.expect("a round");
    }
    let standing = fleet.standing(&id).await;
    assert!(
        statuses(&standing)
            .iter()
            .all(|(_, status)| status == "running"),
        "{standing}"
    );
    for tenant in [&fleet.acme, &fleet.other] {
        let versions = fleet.run_versions(tenant).await;
        let upgrades = versions.iter().filter(|run| *run == "deploy 2").count();
        assert_eq!(upgrades, 4, "{versions:?}");
    }
}

#[tokio::test]
async fn a_rollout_does_what_whoever_made_it_may_do_now() {
    let fleet = Fleet::new(installation!()).await;
    let nimbus = &fleet.nimbus;
    fleet.bucket_of(&fleet.acme, "D1A", 2).await;
    fleet.publish_next(wider(), json!({})).await;
    // A tenant has somebody left who administers it.
    let other = "other@acme.example";
    nimbus
        .user(&fleet.owner, &fleet.acme, other, Some("tenant_admin"))
        .await;
    let user = nimbus
        .user(
            &fleet.owner,
            &fleet.acme,
            "admin@acme.example",
            Some("tenant_admin"),
        )
        .await;
    let admin = nimbus.token("acme", "admin@acme.example").await;
    let path = "/api/v1/components/bucket/rollouts";
    let body = json!({"rehearsal": true, "plan_only": true});
    let made = nimbus.post(path, &admin, body).await.ok();
    let id = text(&made["id"]);
    let disable = format!("/api/v1/tenants/{}/users/{user}", fleet.acme);
    let body = json!({"disabled": true});
    nimbus
        .call("PATCH", &disable, Some(&fleet.owner), Some(body))
        .await
        .ok();
    let resume = format!("/api/v1/rollouts/{id}/resume?tenant={}", fleet.acme);
    nimbus
        .call("POST", &resume, Some(&fleet.owner), None)
        .await
        .ok();
    fleet.sweep().await;
    let failed = fleet
        .get(&format!("/api/v1/rollouts/{id}?tenant={}", fleet.acme))
        .await;
    assert_eq!(failed["status"], "failed", "{failed}");
    assert!(
        text(&failed["instances"][0]["problem"]).contains("disabled"),
        "{failed}"
    );
    assert!(fleet.take(&fleet.acme).await.is_none());
}
