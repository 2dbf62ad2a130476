//! Refreshes over the API: who may look, who may believe that much is gone, what waits for people and what follows.

use axum::http::{Request, StatusCode, header};
use nimbus_control_store::{NewRun, StoreError};
use nimbus_core::UserId;
use serde_json::{Value, json};

use crate::approvals::{Site, site, step, user};
use crate::support::{Answer, installation, text};

const MUCH: &str = "allow_mass_removal";

fn asked(more: &Value) -> Value {
    let mut body = json!({"environment": "dev", "rehearsal": true});
    for (key, value) in more.as_object().into_iter().flatten() {
        body[key] = value.clone();
    }
    body
}

async fn refresh(site: &Site, who: &str, more: Value) -> Answer {
    let path = site.at("deployments/D1APR/refresh");
    site.nimbus.post(&path, who, asked(&more)).await
}

#[tokio::test]
async fn a_look_waits_for_nobody_and_one_that_may_forget_much_for_people() {
    let site = site(installation!()).await;
    site.needs(json!([step(&[user(&site.ben)], json!("any"))]))
        .await;

    // Whoever may deploy may look, and nobody has to agree. The same key is the same run.
    let path = site.at("deployments/D1APR/refresh");
    let once = async || {
        let request = Request::builder()
            .method("POST")
            .uri(&path)
            .header(header::AUTHORIZATION, format!("Bearer {}", site.dev.0))
            .header("idempotency-key", "look");
        site.nimbus.send(request, Some(&asked(&json!({})))).await
    };
    let (look, again) = (once().await, once().await);
    assert_eq!(look.status, StatusCode::ACCEPTED, "{}", look.text);
    let look = look.ok();
    assert_eq!(again.ok()["id"], look["id"]);
    assert_eq!(look["action"], "refresh");
    assert_eq!(look.get("approval"), None, "{look}");
    let taken = site.take().await.unwrap();
    assert_eq!(taken.id.to_string(), text(&look["id"]));
    site.end(&taken, None).await;

    // It leaves another state, so that nobody approves a plan that was made before it.
    let (_, approval) = site.waiting().await;
    refresh(&site, &site.dev.0, json!({})).await.ok();
    let taken = site.take().await.unwrap();
    assert_eq!(taken.action, "refresh", "what waits is in nobody's way");
    site.end(&taken, None).await;
    let moved = site.grant(&site.ben, &approval).await;
    assert!(moved.text.contains("NIM-0601"), "{}", moved.text);

    // To believe that much is gone is to mend the state: another permission, and people where they have to agree.
    let refused = refresh(&site, &site.dev.0, json!({MUCH: true})).await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN, "{}", refused.text);
    assert!(
        refused.text.contains("deployment:state:repair in dev"),
        "{}",
        refused.text
    );
    let much = refresh(&site, &site.ana.0, json!({MUCH: true})).await.ok();
    let approval = text(&much["approval"]);
    assert!(site.take().await.is_none(), "it waits");
    let cancel = site.at(&format!("runs/{}/cancel", text(&much["id"])));
    let refused = site.nimbus.post(&cancel, &site.dev.0, json!({})).await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN, "{}", refused.text);
    let granted = site.grant(&site.ben, &approval).await.ok();
    assert_eq!(
        (&granted["status"], &granted["action"]),
        (&json!("approved"), &json!("refresh"))
    );
    let taken = site.take().await.unwrap();
    assert_eq!(taken.request["options"][MUCH], true);
    let trail =
        "SELECT coalesce(new_value ->> 'allow_mass_removal', 'no') FROM nimbus_core.audit_logs
         WHERE action = 'deployments.refresh' AND outcome = 'done' ORDER BY sequence";
    let recorded = site.nimbus.database.texts(trail).await;
    assert_eq!(recorded, ["no", "no", "true"]);
}

#[tokio::test]
async fn a_refresh_has_no_options_of_other_runs_and_others_none_of_it() {
    let site = site(installation!()).await;
    let plan = "00000000-0000-4000-8000-000000000000";
    for (more, field) in [
        (json!({"force": true}), "force"),
        (json!({"plan": plan}), "plan"),
        (json!({"skip_gate": "x"}), "skip_gate"),
        (json!({"to_version": 1}), "to_version"),
        (json!({"forget_creates": true}), "forget_creates"),
        (json!({"on_failure": "rollback"}), "on_failure"),
        (json!({"environment": "../dev"}), "environment"),
    ] {
        let refused = refresh(&site, &site.owner, more).await;
        assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{}", refused.text);
        let details = &refused.json()["error"]["details"][0]["field"];
        assert_eq!(details, field, "{}", refused.text);
    }
    for action in ["deploy", "destroy", "preview", "rollback"] {
        let path = site.at(&format!("deployments/D1APR/{action}"));
        let body = asked(&json!({MUCH: true}));
        let refused = site.nimbus.post(&path, &site.owner, body).await;
        assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{}", refused.text);
        assert!(refused.text.contains(MUCH), "{}", refused.text);
    }
    let nowhere = refresh(&site, &site.owner, json!({"environment": "prod"})).await;
    assert!(nowhere.status.is_client_error(), "{}", nowhere.text);
    assert!(site.take().await.is_none());
}

/// What is deployed is not gone because somebody looked at it, and what is gone is not there again.
#[tokio::test]
async fn a_deployment_goes_when_everything_of_it_was_destroyed_whoever_looked_at_it() {
    let site = site(installation!()).await;
    let carried_out = async |action: &str, request: Value| {
        let new = NewRun {
            deployment: "D1APR".to_owned(),
            action: action.to_owned(),
            environment: "dev".to_owned(),
            rehearsal: false,
            request,
            catalog: json!({}),
            requested_by: UserId::random(),
            trace_id: None,
        };
        let store = &site.nimbus.database.store;
        let queued: Result<_, StoreError> = store
            .tenant_tx(site.acme, async |tx| tx.run_queue(&new).await)
            .await;
        queued.unwrap();
        let run = site.take().await.unwrap();
        site.end(&run, None).await;
    };
    let path = site.at("deployments/D1APR");
    let delete = async || {
        let asked = site.nimbus.call("DELETE", &path, Some(&site.owner), None);
        asked.await.status
    };
    let everything = || json!({});
    carried_out("deploy", everything()).await;
    carried_out("refresh", everything()).await;
    assert_eq!(delete().await, StatusCode::CONFLICT);
    // One stack that is gone is not all of them.
    let one = || json!({"options": {"stacks": ["network"]}});
    carried_out("destroy", one()).await;
    assert_eq!(delete().await, StatusCode::CONFLICT);
    carried_out("destroy", everything()).await;
    // And one that was deployed since is there.
    carried_out("deploy", one()).await;
    assert_eq!(delete().await, StatusCode::CONFLICT);
    carried_out("destroy", one()).await;
    carried_out("refresh", everything()).await;
    assert_eq!(delete().await, StatusCode::NO_CONTENT);
}
