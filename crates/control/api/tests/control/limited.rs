//! Roles that hold in some environments only: what is in others is not there, in lists, searches and graphs either.

use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::cmdb::{Inventory, unit};
use crate::support::{installation, text};

fn names(page: &Value) -> Vec<String> {
    let items = page["items"].as_array().unwrap().iter();
    items.map(|item| text(&item["name"])).collect()
}

#[tokio::test]
async fn who_may_look_into_dev_alone_finds_nothing_of_prod() {
    let nimbus = installation!();
    let acme = Inventory::new(&nimbus).await;
    let dev = acme.begin().await;
    acme.end(&dev, vec![unit("net", &[("mild", "1")])])
        .await
        .unwrap();
    let prod = acme.begin_in("prod").await;
    acme.end(&prod, vec![unit("app", &[("harsh", "1")])])
        .await
        .unwrap();
    let tenant = acme.tenant.to_string();
    let role = json!({"name": "dev-reader", "description": "", "grants": [{
        "permissions": ["cmdb:read", "cmdb:write", "deployment:definition:read", "deployment:log:read"],
        "environments": ["dev"]}]});
    let roles = format!("/api/v1/tenants/{tenant}/roles");
    nimbus.post(&roles, &acme.owner, role).await.ok();
    nimbus
        .user(&acme.owner, &tenant, "lim@acme.example", Some("dev-reader"))
        .await;
    let limited = nimbus.token("acme", "lim@acme.example").await;
    let get = async |path: &str| nimbus.get(&format!("/api/v1/{path}"), &limited).await;

    // Somebody may see both, so that what is missing below is missing for the reason that is meant.
    let all = acme.get("items?class=aws:ec2%2Fvpc:Vpc").await;
    assert_eq!(names(&all), ["harsh", "mild"]);
    let id = |name: &str| {
        let items = all["items"].as_array().unwrap();
        let item = items.iter().find(|item| item["name"] == name);
        text(&item.unwrap()["id"])
    };
    let (mild, harsh) = (id("mild"), id("harsh"));
    let relate = json!({"source": mild, "target": harsh, "relationship": "feeds"});
    let related = nimbus
        .post("/api/v1/cmdb/relationships", &acme.admin, relate.clone())
        .await
        .ok();

    let seen = get("cmdb/items?status=any&class=aws:ec2%2Fvpc:Vpc")
        .await
        .ok();
    assert_eq!(names(&seen), ["mild"]);
    assert!(names(&get("cmdb/items?environment=prod").await.ok()).is_empty());
    assert!(names(&get("cmdb/search?query=harsh").await.ok()).is_empty());
    for path in ["", "/history", "/graph", "/relationships"] {
        let own = get(&format!("cmdb/items/{mild}{path}")).await;
        assert_eq!(own.status, StatusCode::OK, "{path}: {}", own.text);
        assert!(!own.text.contains(&harsh), "{path}: {}", own.text);
        let other = get(&format!("cmdb/items/{harsh}{path}")).await;
        assert_eq!(
            other.status,
            StatusCode::NOT_FOUND,
            "{path}: {}",
            other.text
        );
    }
    let syncs = get("cmdb/syncs").await.ok();
    assert!(!syncs.to_string().contains("prod"), "{syncs}");
    // Nor do they change anything there, or say anything about it.
    let path = format!("/api/v1/cmdb/items/{harsh}");
    let moved = nimbus
        .call(
            "PATCH",
            &path,
            Some(&limited),
            Some(json!({"compartment": null})),
        )
        .await;
    assert_eq!(moved.status, StatusCode::NOT_FOUND, "{}", moved.text);
    let said = nimbus
        .post("/api/v1/cmdb/relationships", &limited, relate)
        .await;
    assert_eq!(said.status, StatusCode::NOT_FOUND, "{}", said.text);
    let path = format!("/api/v1/cmdb/relationships/{}", text(&related["id"]));
    let taken = nimbus.call("DELETE", &path, Some(&limited), None).await;
    assert_eq!(taken.status, StatusCode::NOT_FOUND, "{}", taken.text);

    let runs = get("runs").await.ok();
    let ids: Vec<_> = runs["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|run| text(&run["id"]))
        .collect();
    assert_eq!(ids, [dev.id.to_string()]);
    let query = json!({"query": "{ runs(first: 10) { edges { node { environment } } } resources(first: 10) { edges { node { name environment } } } }"});
    let asked = nimbus.post("/graphql", &limited, query).await;
    assert_eq!(asked.status, StatusCode::OK, "{}", asked.text);
    assert!(
        !asked.text.contains("prod") && !asked.text.contains("harsh"),
        "{}",
        asked.text
    );
}
