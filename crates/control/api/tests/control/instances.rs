//! One instance of a component: by GraphQL, and where people have to agree to its upgrade.

use serde_json::json;

use crate::catalog::put;
use crate::support::{installation, text};
use crate::upgrades::{Fleet, wider};

#[tokio::test]
async fn an_upgrade_waits_where_people_have_to_agree() {
    let fleet = Fleet::new(installation!()).await;
    let acme = fleet.acme.clone();
    let id = fleet.bucket_of(&acme, "D1ASK", 2).await;
    fleet.publish_next(wider(), json!({})).await;
    let ana = fleet
        .nimbus
        .user(
            &fleet.owner,
            &acme,
            "ana@acme.example",
            Some("tenant_admin"),
        )
        .await;
    let policy = json!({"steps": [{"name": "team", "approvers": [{"user": ana}], "needs": "any",
        "timeout_seconds": 60}], "rehearsals": true});
    let path = format!("/api/v1/approval-policies/dev?tenant={acme}");
    put(&fleet.nimbus, &path, &fleet.owner, policy).await.ok();
    let run = fleet.act(&acme, &id, "upgrade", json!({})).await.ok();
    assert!(fleet.take(&acme).await.is_none(), "nobody agreed yet");
    let deny = format!(
        "/api/v1/approvals/{}/deny?tenant={acme}",
        text(&run["approval"])
    );
    let ana = fleet.nimbus.token("acme", "ana@acme.example").await;
    let body = json!({"reason": "not now"});
    fleet.nimbus.post(&deny, &ana, body).await.ok();
    let back = fleet.instance(&acme, &id).await;
    assert_eq!(
        (&back["version"], &back["status"]),
        (&json!(1), &json!("deployed"))
    );
}

#[tokio::test]
async fn graphql_has_what_is_deployed_by_environment_and_acts_on_it() {
    let fleet = Fleet::new(installation!()).await;
    let (nimbus, owner) = (&fleet.nimbus, &fleet.owner);
    let id = fleet.bucket_of(&fleet.acme, "D1ONE", 2).await;
    fleet.publish_next(wider(), json!({})).await;
    let list =
        "query($env: String) { deployedComponents(tenantId: \"acme\", environment: $env) { nodes {
        id deploymentId component version status resolvedParameters pulumiStackName } } }";
    let found = nimbus.data(owner, list, json!({"env": "dev"})).await;
    let one = &found["deployedComponents"]["nodes"][0];
    assert_eq!(
        (
            &one["id"],
            &one["version"],
            &one["status"],
            &one["resolvedParameters"]["size"]
        ),
        (&json!(id), &json!(1), &json!("deployed"), &json!(2))
    );
    let none = nimbus.data(owner, list, json!({"env": "prod"})).await;
    assert_eq!(none["deployedComponents"]["nodes"], json!([]));
    let impact = "{ componentImpact(name: \"bucket\", rehearsal: true) { toVersion fit instances {
        fits instance { tenantName deploymentId } } } }";
    let impact = nimbus.data(owner, impact, json!({})).await;
    assert_eq!(
        (
            &impact["componentImpact"]["toVersion"],
            &impact["componentImpact"]["fit"]
        ),
        (&json!(2), &json!(1)),
        "{impact}"
    );
    let act = |field: &str, input: &str| {
        format!(
            "mutation($id: ID!) {{ {field}(tenantId: \"acme\", id: $id{input}) {{ action status }} }}"
        )
    };
    let upgrade = act("upgradeComponent", ", input: {version: 2}");
    let queued = nimbus.data(owner, &upgrade, json!({"id": id})).await;
    assert_eq!(queued["upgradeComponent"]["action"], "deploy");
    fleet.carry(&fleet.acme, "succeeded").await.expect("a run");
    let get =
        "query($id: ID!) { deployedComponent(tenantId: \"acme\", id: $id) { version status } }";
    let done = nimbus.data(owner, get, json!({"id": id})).await;
    assert_eq!(
        done["deployedComponent"],
        json!({"version": 2, "status": "deployed"})
    );
    for (field, input, action) in [
        ("previewComponent", ", input: {version: 1}", "preview"),
        ("deployComponent", "", "deploy"),
        ("destroyComponent", "", "destroy"),
    ] {
        let queued = nimbus
            .data(owner, &act(field, input), json!({"id": id}))
            .await;
        assert_eq!(queued[field]["action"], action);
        fleet.carry(&fleet.acme, "succeeded").await.expect("a run");
    }
    let again = nimbus
        .graphql(owner, &act("destroyComponent", ""), json!({"id": id}))
        .await;
    assert!(again.text.contains("NIM-1032"), "{}", again.text);
}
