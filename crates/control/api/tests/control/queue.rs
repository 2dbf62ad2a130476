//! A hundred callers of one environment, at two servers at once: one runs, the others have places.

use std::collections::BTreeSet;

use axum::http::StatusCode;
use futures::future::join_all;
use nimbus_control_store::{HeldRun, RunEnd, StoreError, StoredRun};
use nimbus_core::TenantId;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::support::{Installation, installation, text};

async fn take(nimbus: &Installation, tenant: TenantId) -> Option<StoredRun> {
    let taken: Result<_, StoreError> = nimbus
        .database
        .store
        .tenant_tx(tenant, async |tx| tx.run_take(Uuid::new_v4()).await)
        .await;
    taken.unwrap()
}

async fn end(nimbus: &Installation, tenant: TenantId, run: &StoredRun) {
    let held = HeldRun {
        deployment: run.deployment.clone(),
        number: run.number,
        epoch: run.epoch,
    };
    let end = RunEnd {
        status: "ended",
        wish: None,
        result: Some("succeeded".to_owned()),
        problem: None,
    };
    let ended: Result<_, StoreError> = nimbus
        .database
        .store
        .tenant_tx(tenant, async |tx| tx.run_release(&held, &end).await)
        .await;
    ended.unwrap();
}

#[tokio::test]
async fn of_a_hundred_callers_at_two_servers_one_runs_and_the_others_have_places() {
    let nimbus = installation!();
    let owner = nimbus.set_up().await;
    let tenant = nimbus.tenant(&owner, "acme").await;
    let acme: TenantId = tenant.parse().unwrap();
    let second = nimbus.another_server("second").await;
    let of_acme = |path: &str| format!("/api/v1{path}?tenant={acme}");
    let stack = json!({"name": "guest", "template": "name: guest\n",
        "files": {"src/Pulumi.yaml": "name: guest\nruntime: nodejs\n"}});
    let template = "name: one\ndescription: One\nenvironments:\n  dev: {enabled: true, \
                    account: '111111111111', region: eu-west-1}\nstacks: {guest: }\n";
    let wanted = json!({"id": "D1Q", "organization": "o", "project": "p", "template": "one"});
    for (path, body) in [
        ("/stacks", stack),
        ("/templates", json!({"content": template})),
        ("/deployments", wanted),
    ] {
        let made = nimbus.post(&of_acme(path), &owner, body).await;
        assert_eq!(made.status, StatusCode::CREATED, "{}", made.text);
    }
    let ask = async |server: &Installation, what: &str| -> Value {
        let path = of_acme(&format!("/deployments/D1Q/{what}"));
        let body = json!({"environment": "dev", "rehearsal": true});
        let answer = server.post(&path, &owner, body).await;
        assert_eq!(answer.status, StatusCode::ACCEPTED, "{}", answer.text);
        answer.json()
    };
    let servers = [&nimbus, &second];
    let callers = (0..100).map(|number| ask(servers[number % 2], "deploy"));
    let runs: Vec<Value> = join_all(callers).await;
    let place = async |run: &Value| {
        let path = of_acme(&format!("/runs/{}", text(&run["id"])));
        nimbus.get(&path, &owner).await.ok()["position"].as_i64()
    };
    let mut places = BTreeSet::new();
    for run in &runs {
        places.insert(place(run).await.unwrap());
    }
    assert_eq!(places, (0..100).collect());
    let numbers: BTreeSet<_> = runs.iter().map(|run| text(&run["number"])).collect();
    assert_eq!(numbers.len(), 100);

    // One is taken, whoever looks; a preview beside it changes nothing, and a destroy waits like the rest.
    let first = take(&nimbus, acme).await.unwrap();
    assert_eq!(first.number, 1);
    assert!(take(&second, acme).await.is_none());
    ask(&second, "preview").await;
    let destroy = ask(&nimbus, "destroy").await;
    assert_eq!(take(&nimbus, acme).await.unwrap().action, "preview");
    assert!(take(&second, acme).await.is_none());
    assert_eq!(place(&destroy).await, Some(99));
    let delete = format!("/api/v1/tenants/{acme}");
    let refused = nimbus.call("DELETE", &delete, Some(&owner), None).await;
    assert_eq!(refused.status, StatusCode::CONFLICT, "{}", refused.text);
    // The next one is who came next.
    let mut running = first;
    for number in 2..6 {
        end(&nimbus, acme, &running).await;
        running = take(servers[usize::try_from(number % 2).unwrap()], acme)
            .await
            .unwrap();
        assert_eq!(running.number, number);
        assert!(take(&nimbus, acme).await.is_none());
    }
}
