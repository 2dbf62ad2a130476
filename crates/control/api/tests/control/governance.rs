//! Rules about components: inherited, held when a run is queued, and named to whoever is refused.

use axum::http::StatusCode;
use nimbus_control_store::{EnvironmentKey, StoreError};
use nimbus_core::TenantId;
use serde_json::{Value, json};

use crate::catalog::{bucket, deploy, deployed, manifest, published, put, tenant_texts};
use crate::support::{Answer, Installation, installation, text};

async fn set(
    nimbus: &Installation,
    token: &str,
    tenant: &str,
    component: &str,
    rule: Value,
) -> Answer {
    let path = format!("/api/v1/tenants/{tenant}/governance/{component}");
    put(nimbus, &path, token, rule).await
}

/// An operator, a tenant below it and one below that, with a published component.
struct Tree {
    nimbus: Installation,
    owner: String,
    acme: String,
    team: String,
}

async fn tree(nimbus: Installation) -> Tree {
    let owner = nimbus.set_up().await;
    let acme = nimbus.tenant(&owner, "acme").await;
    let path = format!("/api/v1/tenants/{acme}/tenants");
    let body = json!({"slug": "team", "name": "Team"});
    let team = text(&nimbus.post(&path, &owner, body).await.ok()["id"]);
    let root = nimbus.root.to_string();
    published(&nimbus, &owner, &root, bucket("bucket")).await;
    Tree {
        nimbus,
        owner,
        acme,
        team,
    }
}

fn refused(answer: &Answer, words: &[&str]) {
    assert_eq!(
        answer.status,
        StatusCode::UNPROCESSABLE_ENTITY,
        "{}",
        answer.text
    );
    for word in words {
        assert!(answer.text.contains(word), "{word}: {}", answer.text);
    }
}

#[tokio::test]
async fn a_denied_component_is_refused_with_the_rule_and_its_owner_down_the_tree() {
    let Tree {
        nimbus,
        owner,
        acme,
        team,
    } = tree(installation!()).await;
    deployed(&nimbus, &owner, &team, "D1FREE").await.ok();
    let deny = json!({"allowed": false, "reason": "costs too much"});
    set(&nimbus, &owner, &acme, "bucket", deny).await.ok();
    let words = [
        "NIM-0974",
        "bucket is denied",
        "of Tenant acme",
        "set by owner@operator.example",
        "costs too much",
    ];
    refused(&deploy(&nimbus, &owner, &team, "D1FREE").await, &words);
    let preview = "/api/v1/deployments/D1FREE/preview";
    let body = json!({"environment": "dev", "rehearsal": true});
    let preview = nimbus
        .post(&format!("{preview}?tenant={team}"), &owner, body)
        .await;
    refused(&preview, &["NIM-0974"]);
    // Taking away is never denied, and another tenant is not concerned.
    let body = json!({"environment": "dev", "rehearsal": true});
    let destroy = format!("/api/v1/deployments/D1FREE/destroy?tenant={team}");
    nimbus.post(&destroy, &owner, body).await.ok();
    let other = nimbus.tenant(&owner, "other").await;
    deployed(&nimbus, &owner, &other, "D1OTHER").await.ok();
    // A rule further down does not allow what one further up denies.
    set(&nimbus, &owner, &team, "bucket", json!({"allowed": true}))
        .await
        .ok();
    refused(
        &deploy(&nimbus, &owner, &team, "D1FREE").await,
        &["NIM-0974", "Tenant acme"],
    );
    let rules = nimbus
        .get(&format!("/api/v1/tenants/{team}/governance"), &owner)
        .await
        .ok();
    let told: Vec<_> = rules["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|rule| {
            (
                text(&rule["tenant_name"]),
                rule["allowed"].clone(),
                rule["inherited"].clone(),
            )
        })
        .collect();
    assert_eq!(
        told,
        [
            ("Tenant acme".to_owned(), json!(false), json!(true)),
            ("Team".to_owned(), json!(true), json!(false)),
        ]
    );
    let path = format!("/api/v1/tenants/{acme}/governance/bucket");
    nimbus.call("DELETE", &path, Some(&owner), None).await.ok();
    deploy(&nimbus, &owner, &team, "D1FREE").await.ok();
    let trail = nimbus.database
        .texts("SELECT action FROM nimbus_core.audit_logs WHERE action LIKE 'governance.%' AND outcome = 'done' AND priority <> 'low' ORDER BY action")
        .await;
    assert_eq!(
        trail,
        ["governance.delete", "governance.put", "governance.put"]
    );
}

#[tokio::test]
async fn everything_denied_and_some_allowed_is_a_list_of_what_may_be_used() {
    let Tree {
        nimbus,
        owner,
        acme,
        ..
    } = tree(installation!()).await;
    published(&nimbus, &owner, &acme, bucket("own")).await;
    set(&nimbus, &owner, &acme, "*", json!({"allowed": false}))
        .await
        .ok();
    set(&nimbus, &owner, &acme, "bucket", json!({"allowed": true}))
        .await
        .ok();
    deployed(&nimbus, &owner, &acme, "D1LIST").await.ok();
    let path = format!("/api/v1/deployments?tenant={acme}");
    let body = json!({"manifest": manifest("D1OWN", "own", &json!({"size": 2}))});
    nimbus.post(&path, &owner, body).await.ok();
    refused(
        &deploy(&nimbus, &owner, &acme, "D1OWN").await,
        &["NIM-0974", "about `*`"],
    );
}

#[tokio::test]
async fn parameters_are_held_to_limits_schemas_and_expressions() {
    let Tree {
        nimbus,
        owner,
        acme,
        team,
    } = tree(installation!()).await;
    let path = format!("/api/v1/deployments?tenant={team}");
    let body = json!({"manifest": manifest("D1BIG", "bucket", &json!({"size": 6, "zone": "eu"}))});
    nimbus.post(&path, &owner, body).await.ok();
    for (constraints, words) in [
        (json!({"parameters": {"size": {"max": 4}}}), "4 at most"),
        (json!({"parameters": {"size": {"min": 7}}}), "7 at least"),
        (
            json!({"parameters": {"zone": {"allowed": ["us"]}}}),
            "allowed are",
        ),
        (
            json!({"schema": {"type": "object", "required": ["team"]}}),
            "team",
        ),
        (
            json!({"expressions": [{"expression": "environment != 'dev' || params.size <= 4", "message": "dev is small"}]}),
            "dev is small",
        ),
    ] {
        let rule = json!({"allowed": true, "constraints": constraints});
        set(&nimbus, &owner, &acme, "bucket", rule).await.ok();
        let words = [
            "NIM-0975",
            words,
            "of Tenant acme",
            "owner@operator.example",
        ];
        refused(&deploy(&nimbus, &owner, &team, "D1BIG").await, &words);
    }
    let fine = json!({"allowed": true, "constraints": {"parameters": {"size": {"max": 6}}}});
    set(&nimbus, &owner, &acme, "bucket", fine).await.ok();
    deploy(&nimbus, &owner, &team, "D1BIG").await.ok();
    // A value that nobody knows yet cannot be held to the rule.
    let body =
        json!({"manifest": manifest("D1OPEN", "bucket", &json!({"size": "{{RUNTIME:env:SIZE}}"}))});
    nimbus.post(&path, &owner, body).await.ok();
    refused(
        &deploy(&nimbus, &owner, &team, "D1OPEN").await,
        &["NIM-0975", "known only while"],
    );
}

#[tokio::test]
async fn a_rollback_does_not_bring_back_what_is_denied() {
    let Tree {
        nimbus,
        owner,
        acme,
        team,
    } = tree(installation!()).await;
    deployed(&nimbus, &owner, &team, "D1BACK").await.ok();
    let of = EnvironmentKey {
        deployment: "D1BACK".to_owned(),
        environment: "dev".to_owned(),
        rehearsal: true,
    };
    let record = |number: i32| {
        json!({"version": number, "run": format!("R{number:04}"), "kind": "deploy",
            "at": "2026-01-01T00:00:00Z", "user": "owner@operator.example", "units": {"bucket": {
                "stack": "D1BACK-bucket-dev", "state": number, "program": "p", "fingerprint": "f",
                "needs": []}}})
    };
    let tenant: TenantId = team.parse().expect("an id");
    let added: Result<_, StoreError> = nimbus
        .database
        .store
        .tenant_tx(tenant, async |tx| {
            tx.version_add(&of, 1, &record(1)).await?;
            tx.version_add(&of, 2, &record(2)).await
        })
        .await;
    added.expect("two versions");
    let path = format!("/api/v1/deployments/D1BACK/rollback?tenant={team}");
    let back = |more: Value| {
        let mut body = json!({"environment": "dev", "rehearsal": true});
        if !more.is_null() {
            body["to_version"] = more;
        }
        nimbus.post(&path, &owner, body)
    };
    let deny = json!({"allowed": false, "reason": "too dear"});
    set(&nimbus, &owner, &acme, "bucket", deny).await.ok();
    refused(&back(json!(1)).await, &["NIM-0974", "bucket"]);
    refused(&back(Value::Null).await, &["NIM-0974", "bucket"]);
    let allow = json!({"allowed": true});
    set(&nimbus, &owner, &acme, "bucket", allow).await.ok();
    back(json!(1)).await.ok();
}

#[tokio::test]
async fn no_spelling_of_a_parameter_is_a_way_around_a_rule() {
    let Tree {
        nimbus,
        owner,
        acme,
        team,
    } = tree(installation!()).await;
    let path = format!("/api/v1/deployments?tenant={team}");
    let constraints = [
        json!({"parameters": {"size": {"max": 1}}}),
        json!({"schema": {"properties": {"size": {"maximum": 1}}}}),
        json!({"expressions": [{"expression": "params.size <= 1"}]}),
    ];
    let spellings = [
        ("D1NAME", json!({"bucket:size": 9})),
        ("D1OLD", json!({"bucket:config:size": 9})),
    ];
    for (id, config) in &spellings {
        let body = json!({"manifest": manifest(id, "bucket", config)});
        nimbus.post(&path, &owner, body).await.ok();
    }
    for constraints in constraints {
        let rule = json!({"allowed": true, "constraints": constraints});
        set(&nimbus, &owner, &acme, "bucket", rule).await.ok();
        for (id, _) in &spellings {
            refused(&deploy(&nimbus, &owner, &team, id).await, &["NIM-0975"]);
        }
    }
    // Inherited from what is written once for every stack.
    let mut shared: Value =
        serde_json::from_str(&manifest("D1ALL", "bucket", &json!({}))).expect("a manifest");
    shared["spec"]["defaults"] = json!({"bucket:size": 9});
    let body = json!({"manifest": shared.to_string()});
    nimbus.post(&path, &owner, body).await.ok();
    refused(
        &deploy(&nimbus, &owner, &team, "D1ALL").await,
        &["NIM-0975"],
    );
    // Which of two counts nobody can say.
    let both = json!({"size": 1, "bucket:size": 9});
    let body = json!({"manifest": manifest("D1BOTH", "bucket", &both)});
    nimbus.post(&path, &owner, body).await.ok();
    let answer = deploy(&nimbus, &owner, &team, "D1BOTH").await;
    assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{}", answer.text);
    assert!(answer.text.contains("same parameter"), "{}", answer.text);
}

#[tokio::test]
async fn rules_that_cannot_be_kept_and_rules_from_above_are_refused() {
    let Tree {
        nimbus,
        owner,
        acme,
        ..
    } = tree(installation!()).await;
    let chain = vec!["1"; 400].join("+");
    for constraints in [
        json!({"parameters": {"size": {"min": 5, "max": 1}}}),
        json!({"schema": {"type": "objekt"}}),
        json!({"schema": {"$ref": "https://evil.example/schema.json"}}),
        json!({"expressions": [{"expression": "params.size >"}]}),
        json!({"expressions": [{"expression": "params.a.all(x, params.b.all(y, x == y))"}]}),
        json!({"expressions": [{"expression": format!("{chain} == 1")}]}),
        json!({"expressions": [{"expression": "secrets.password == 'x'"}]}),
    ] {
        let rule = json!({"allowed": true, "constraints": constraints});
        let answer = set(&nimbus, &owner, &acme, "bucket", rule.clone()).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{rule}");
        assert!(answer.text.contains("NIM-0977"), "{}", answer.text);
    }
    // Whoever may set rules in a tenant does not undo what was set for it from above.
    let path = format!("/api/v1/tenants/{acme}/roles");
    let role = json!({"name": "governor", "grants": [{"permissions": ["component:governance:manage", "component:governance:read"]}]});
    nimbus.post(&path, &owner, role).await.ok();
    nimbus
        .user(&owner, &acme, "gov@acme.example", Some("governor"))
        .await;
    let governor = nimbus.token("acme", "gov@acme.example").await;
    set(&nimbus, &owner, &acme, "bucket", json!({"allowed": false}))
        .await
        .ok();
    let answer = set(
        &nimbus,
        &governor,
        &acme,
        "bucket",
        json!({"allowed": true}),
    )
    .await;
    refused(&answer, &["NIM-0978", "owner@operator.example"]);
    let path = format!("/api/v1/tenants/{acme}/governance/bucket");
    let answer = nimbus.call("DELETE", &path, Some(&governor), None).await;
    refused(&answer, &["NIM-0978"]);
    set(
        &nimbus,
        &governor,
        &acme,
        "other",
        json!({"allowed": false}),
    )
    .await
    .ok();
    set(&nimbus, &owner, &acme, "other", json!({"allowed": true}))
        .await
        .ok();
}

#[tokio::test]
async fn the_last_instance_is_given_once_however_many_ask_at_once() {
    let Tree {
        nimbus,
        owner,
        acme,
        team,
    } = tree(installation!()).await;
    let limit = json!({"allowed": true, "max_instances": 2});
    set(&nimbus, &owner, &acme, "bucket", limit).await.ok();
    let ids: Vec<String> = (0..6).map(|number| format!("D1N{number}")).collect();
    for id in &ids {
        let path = format!("/api/v1/deployments?tenant={team}");
        let body = json!({"manifest": manifest(id, "bucket", &json!({"size": 2}))});
        nimbus.post(&path, &owner, body).await.ok();
    }
    let asked = ids.iter().map(|id| deploy(&nimbus, &owner, &team, id));
    let answers = futures::future::join_all(asked).await;
    let queued = answers
        .iter()
        .filter(|one| one.status == StatusCode::ACCEPTED)
        .count();
    assert_eq!(queued, 2);
    for answer in answers
        .iter()
        .filter(|one| one.status != StatusCode::ACCEPTED)
    {
        refused(
            answer,
            &[
                "NIM-0976",
                "2 instances of bucket are allowed",
                "of Tenant acme",
            ],
        );
    }
    let runs = tenant_texts(&nimbus, &team, "SELECT id::text FROM {}.runs").await;
    let put_down = tenant_texts(
        &nimbus,
        &team,
        "SELECT deployment FROM {}.deployed_components WHERE status = 'pending'",
    )
    .await;
    assert_eq!(
        (runs.len(), put_down.len()),
        (2, 2),
        "what is refused leaves nothing"
    );
    // The same deployment once more is the same instance.
    deploy(&nimbus, &owner, &team, &put_down[0]).await.ok();
    // A run that never began gives its instance back.
    for run in tenant_texts(
        &nimbus,
        &team,
        &format!(
            "SELECT id::text FROM {{}}.runs WHERE deployment = '{}'",
            put_down[0]
        ),
    )
    .await
    {
        nimbus
            .post(
                &format!("/api/v1/runs/{run}/cancel?tenant={team}"),
                &owner,
                json!({}),
            )
            .await
            .ok();
    }
    let spare = ids.iter().find(|id| !put_down.contains(id)).unwrap();
    deploy(&nimbus, &owner, &team, spare).await.ok();
    refused(
        &deploy(&nimbus, &owner, &team, &put_down[0]).await,
        &["NIM-0976"],
    );
}
