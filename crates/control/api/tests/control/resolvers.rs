//! Resolvers over the API: configured by whoever runs the platform, seen by the tenants below.

use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::support::{Installation, installation, text};

async fn put(
    nimbus: &Installation,
    path: &str,
    token: &str,
    body: Value,
) -> crate::support::Answer {
    nimbus.call("PUT", path, Some(token), Some(body)).await
}

async fn actions(nimbus: &Installation, base: &str, token: &str) -> Vec<String> {
    let trail = nimbus
        .get(&format!("{base}/audit?limit=500"), token)
        .await
        .ok();
    let items = trail["items"].as_array().unwrap().clone();
    items.iter().map(|entry| text(&entry["action"])).collect()
}

#[tokio::test]
async fn whoever_runs_the_platform_configures_and_others_look() {
    let nimbus = installation!();
    let owner = nimbus.set_up().await;
    let acme = nimbus.tenant(&owner, "acme").await;
    let base = format!("/api/v1/tenants/{acme}");
    nimbus
        .user(&owner, &acme, "admin@acme.example", Some("tenant_admin"))
        .await;
    let admin = nimbus.token("acme", "admin@acme.example").await;
    // The registry has the four, with typed inputs and outputs.
    let resolvers = nimbus.get(&format!("{base}/resolvers"), &admin).await.ok();
    let types: Vec<_> = resolvers["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| text(&one["resolver_type"]))
        .collect();
    assert_eq!(types, ["image_catalog", "ipam", "naming", "secret"]);
    // A tenant's administrator looks and changes nothing.
    let pools = format!("{base}/address-pools");
    let corp = json!({"name": "corp", "cidr": "10.0.0.0/16"});
    let refused = nimbus.post(&pools, &admin, corp.clone()).await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN, "{}", refused.text);
    let naming = format!("{base}/resolvers/naming/configuration");
    let pattern = json!({"environment": "prod", "config": {"pattern": "{env}-{type}-{seq:03d}"}});
    let refused = put(&nimbus, &naming, &admin, pattern.clone()).await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN, "{}", refused.text);
    // The operator does both, and it is in the trail.
    nimbus.post(&pools, &owner, corp).await.ok();
    put(&nimbus, &naming, &owner, pattern).await.ok();
    let set = nimbus
        .get(&format!("{base}/resolver-configurations"), &admin)
        .await
        .ok();
    assert_eq!(
        set["items"][0]["config"]["pattern"],
        "{env}-{type}-{seq:03d}"
    );
    assert_eq!(set["items"][0]["environment"], "prod");
    // A zone that there is not is refused by its field.
    let nowhere = json!({"landing_zone": "nowhere", "config": {"pattern": "{seq}"}});
    let refused = put(&nimbus, &naming, &owner, nowhere).await;
    assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{}", refused.text);
    assert_eq!(
        refused.json()["error"]["details"][0]["field"],
        "landing_zone"
    );
    // A pool from above can be used; how much of it others have is its owner's to know.
    let above = format!("/api/v1/tenants/{}/address-pools", nimbus.root);
    let shared = json!({"name": "shared", "cidr": "172.16.0.0/12"});
    nimbus.post(&above, &owner, shared).await.ok();
    let seen = nimbus.get(&format!("{pools}/shared"), &admin).await.ok();
    assert_eq!(
        (&seen["cidr"], &seen["usage"]),
        (&json!("172.16.0.0/12"), &Value::Null)
    );
    let seen = nimbus.get(&format!("{above}/shared"), &owner).await.ok();
    assert_eq!(seen["usage"]["leased"], 0);
    let trail = actions(&nimbus, &base, &owner).await;
    for action in ["pools.create", "resolvers.configure"] {
        assert!(trail.iter().any(|one| one == action), "{trail:?}");
    }
}

#[tokio::test]
async fn wrong_pools_names_and_images_are_refused_with_their_rule() {
    let nimbus = installation!();
    let owner = nimbus.set_up().await;
    let acme = nimbus.tenant(&owner, "acme").await;
    let base = format!("/api/v1/tenants/{acme}");
    let pools = format!("{base}/address-pools");
    nimbus
        .post(
            &pools,
            &owner,
            json!({"name": "corp", "cidr": "10.0.0.0/16", "reserved": ["10.0.0.0/24"]}),
        )
        .await
        .ok();
    for (wrong, code) in [
        (json!({"name": "b", "cidr": "10.0.0.0/8"}), "NIM-0994"),
        (
            json!({"name": "b", "cidr": "11.0.0.0/24", "parent": "corp"}),
            "NIM-0995",
        ),
        (
            json!({"name": "b", "cidr": "10.0.0.0/25", "parent": "corp"}),
            "NIM-0997",
        ),
        (json!({"name": "b", "cidr": "10.0.0.1/8"}), "NIM-0991"),
        (
            json!({"name": "b", "cidr": "11.0.0.0/24", "gateway": "11.0.0.1"}),
            "NIM-0993",
        ),
        (json!({"name": "B", "cidr": "11.0.0.0/24"}), "NIM-0993"),
        (json!({"name": "corp", "cidr": "11.0.0.0/24"}), "NIM-0860"),
        (
            json!({"name": "b", "cidr": "11.0.0.0/24", "parent": "none"}),
            "NIM-1004",
        ),
    ] {
        let answer = nimbus.post(&pools, &owner, wrong.clone()).await;
        assert!(answer.text.contains(code), "{wrong}: {}", answer.text);
    }
    for (resolver, config, code) in [
        ("ipam", json!({"pol": "x"}), "NIM-0993"),
        ("naming", json!({"pattern": "{who}"}), "NIM-0993"),
        ("dns", json!({"a": 1}), "NIM-0990"),
    ] {
        let path = format!("{base}/resolvers/{resolver}/configuration");
        let answer = put(&nimbus, &path, &owner, json!({"config": config})).await;
        assert!(answer.text.contains(code), "{resolver}: {}", answer.text);
    }
    let lan =
        json!({"name": "lan", "cidr": "10.0.1.0/24", "parent": "corp", "purpose": "addresses"});
    nimbus.post(&pools, &owner, lan).await.ok();
    let shown = nimbus.get(&format!("{pools}/corp"), &owner).await.ok();
    assert_eq!(shown["usage"]["free"], (65536 - 512).to_string());
    let deleted = nimbus
        .call("DELETE", &format!("{pools}/corp"), Some(&owner), None)
        .await;
    assert!(deleted.text.contains("NIM-1003"), "{}", deleted.text);
    let block = json!({"cidr": "10.0.2.0/24"});
    nimbus
        .post(&format!("{pools}/corp/reserve"), &owner, block.clone())
        .await
        .ok();
    let again = nimbus
        .post(&format!("{pools}/corp/reserve"), &owner, block.clone())
        .await;
    assert!(again.text.contains("NIM-0997"), "{}", again.text);
    nimbus
        .post(&format!("{pools}/corp/unreserve"), &owner, block)
        .await
        .ok();
    // The catalog: one's own comes before what is shipped.
    let images = format!("{base}/images");
    let own =
        json!({"cloud": "proxmox", "os_family": "debian", "os_version": "13", "image_id": "mine"});
    put(&nimbus, &images, &owner, own).await.ok();
    let listed = nimbus.get(&images, &owner).await.ok();
    assert_eq!(listed["items"][0]["image_id"], "mine");
    let id = text(&listed["items"][0]["id"]);
    nimbus
        .call("DELETE", &format!("{images}/{id}"), Some(&owner), None)
        .await
        .ok();
    let listed = nimbus.get(&images, &owner).await.ok();
    assert_eq!(listed["items"][0].get("id"), None);
    let leases = nimbus
        .get(&format!("{base}/resolver-leases"), &owner)
        .await
        .ok();
    assert!(leases["items"].as_array().unwrap().is_empty());
}
