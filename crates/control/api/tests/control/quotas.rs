//! Quotas hold, for whoever tries to get past them.

use serde_json::json;

use crate::support::{PASSWORD, installation};

/// Each quota is held where things are made, and says which one, how much, and how much there is.
#[tokio::test]
async fn each_quota_is_held_and_an_unknown_one_is_refused() {
    let nimbus = installation!();
    let owner = nimbus.set_up().await;
    let acme = nimbus.tenant(&owner, "acme").await;
    let base = format!("/api/v1/tenants/{acme}");
    nimbus
        .user(&owner, &acme, "admin@acme.example", Some("tenant_admin"))
        .await;
    let admin = nimbus.token("acme", "admin@acme.example").await;
    let set = async |quotas| {
        let path = format!("{base}/quotas");
        let body = json!({"quotas": quotas});
        nimbus.call("PUT", &path, Some(&owner), Some(body)).await
    };
    let refused = set(json!({"keys": 1})).await;
    assert_eq!(refused.status, 400, "{}", refused.text);
    assert!(
        refused.text.contains("deployments, runs, tenants, users"),
        "{}",
        refused.text
    );
    let limits = json!({"users": 1, "tenants": 0, "deployments": 1, "runs": 0});
    set(limits).await.ok();
    let deployment = |id: &str| {
        json!({"id": id, "organization": "Acme", "project": "shop", "template": "minimal",
               "domain": "acme.example", "accounts": {"dev": "111111111111"}})
    };
    let deployments = format!("/api/v1/deployments?tenant={acme}");
    nimbus
        .post(&deployments, &admin, deployment("D1"))
        .await
        .ok();
    let child = json!({"slug": "child", "name": "Child"});
    let person = json!({"email": "b@acme.example", "display_name": "B", "password": PASSWORD});
    let robot = json!({"email": "robot", "display_name": "R", "service_account": true});
    let run = json!({"environment": "dev", "rehearsal": true});
    for (path, body, said) in [
        (format!("{base}/users"), person, "`users` is 1, and 1 are"),
        (format!("{base}/users"), robot, "`users` is 1, and 1 are"),
        (
            format!("{base}/tenants"),
            child,
            "`tenants` is 0, and 0 are",
        ),
        (
            deployments.clone(),
            deployment("D2"),
            "`deployments` is 1, and 1 are",
        ),
        (
            format!("/api/v1/deployments/D1/deploy?tenant={acme}"),
            run.clone(),
            "`runs` is 0, and 0 are",
        ),
        (
            format!("/api/v1/deployments/D1/preview?tenant={acme}"),
            run,
            "`runs` is 0, and 0 are",
        ),
    ] {
        let refused = nimbus.post(&path, &admin, body).await;
        assert!(
            refused.text.contains("NIM-0867"),
            "{path}: {}",
            refused.text
        );
        assert!(refused.text.contains(said), "{path}: {}", refused.text);
    }
    // Nothing is left of what was refused.
    let users = nimbus.get(&format!("{base}/users"), &admin).await.ok();
    assert_eq!(users["items"].as_array().unwrap().len(), 1, "{users}");
    let effective = nimbus.get(&format!("{base}/effective"), &admin).await.ok();
    let used: Vec<_> = effective["quotas"]
        .as_array()
        .unwrap()
        .iter()
        .map(|quota| (quota["resource"].clone(), quota["used"].clone()))
        .collect();
    let expected = [
        ("deployments", 1),
        ("runs", 0),
        ("tenants", 0),
        ("users", 1),
    ];
    assert_eq!(
        used,
        expected.map(|(name, used)| (json!(name), json!(used)))
    );
}

/// A run that waits counts, however many ask at once, and one that is over does not.
#[tokio::test]
async fn runs_that_are_asked_for_together_do_not_pass_the_quota() {
    let nimbus = installation!();
    let owner = nimbus.set_up().await;
    let wanted = json!({"id": "D1", "organization": "Acme", "project": "shop", "template": "minimal",
        "domain": "acme.example", "accounts": {"dev": "111111111111"}});
    nimbus
        .post("/api/v1/deployments", &owner, wanted)
        .await
        .ok();
    let path = format!("/api/v1/tenants/{}/quotas", nimbus.root);
    let body = json!({"quotas": {"runs": 2}});
    nimbus
        .call("PUT", &path, Some(&owner), Some(body))
        .await
        .ok();
    let run = || json!({"environment": "dev", "rehearsal": true});
    let ask = || nimbus.post("/api/v1/deployments/D1/deploy", &owner, run());
    let answers = futures::future::join_all((0..8).map(|_| ask())).await;
    let queued: Vec<_> = answers
        .iter()
        .filter(|answer| answer.status == 202)
        .map(|answer| answer.json()["id"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(queued.len(), 2);
    let cancel = format!("/api/v1/runs/{}/cancel", queued[0]);
    nimbus.post(&cancel, &owner, json!({})).await.ok();
    assert_eq!(ask().await.status, 202);
    assert!(ask().await.text.contains("NIM-0867"));
}
