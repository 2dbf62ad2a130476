//! Somebody who is somebody in one environment, and the others.

use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::support::{Installation, installation, text};

struct LeadOfDev {
    nimbus: Installation,
    owner: String,
    lead: String,
    acme: String,
}

/// Everything that deployments, programs and cloud accounts need, in dev alone.
async fn lead_of_dev(nimbus: Installation) -> LeadOfDev {
    let owner = nimbus.set_up().await;
    let acme = nimbus.tenant(&owner, "acme").await;
    let base = format!("/api/v1/tenants/{acme}");
    let permissions = [
        "cloud:account:manage",
        "cloud:account:read",
        "component:definition:read",
        "deployment:definition:delete",
        "deployment:definition:read",
        "deployment:definition:update",
        "deployment:environment:manage",
        "deployment:log:read",
        "registry:stack:manage",
        "stack:instance:deploy",
    ];
    let role =
        json!({"name": "lead", "grants": [{"permissions": permissions, "environments": ["dev"]}]});
    nimbus
        .post(&format!("{base}/roles"), &owner, role)
        .await
        .ok();
    let user = nimbus.user(&owner, &acme, "lead@acme.example", None).await;
    nimbus.assign(&owner, &acme, &user, "lead").await.ok();
    let lead = nimbus.token("acme", "lead@acme.example").await;
    let body = json!({"id": "D1ENV", "organization": "o", "project": "p", "template": "default",
        "domain": "a.example", "accounts": {"dev": "111111111111", "prod": "222222222222"}});
    let path = format!("/api/v1/deployments?tenant={acme}");
    nimbus.post(&path, &owner, body).await.ok();
    LeadOfDev {
        nimbus,
        owner,
        lead,
        acme,
    }
}

impl LeadOfDev {
    async fn call(&self, method: &str, path: &str, body: Option<Value>) -> (StatusCode, String) {
        let path = format!("{path}?tenant={}", self.acme);
        let answer = self
            .nimbus
            .call(method, &path, Some(&self.lead), body)
            .await;
        (answer.status, answer.text)
    }

    async fn refused(&self, method: &str, path: &str, body: Option<Value>) {
        let (status, said) = self.call(method, path, body).await;
        assert_eq!(status, StatusCode::FORBIDDEN, "{method} {path}: {said}");
        let elsewhere = ["prod", "stage", "every"];
        assert!(elsewhere.iter().any(|place| said.contains(place)), "{said}");
    }

    async fn manifest(&self) -> String {
        let path = format!("/api/v1/deployments/D1ENV/manifest?tenant={}", self.acme);
        text(&self.nimbus.get(&path, &self.owner).await.ok()["manifest"])
    }
}

fn account(environment: Option<&str>) -> Value {
    json!({
        "provider": "aws",
        "environment": environment,
        "credentials": {"AWS_ACCESS_KEY_ID": "AKIAEXAMPLE", "AWS_SECRET_ACCESS_KEY": "x"},
    })
}

#[tokio::test]
async fn a_developer_switches_dev_and_not_prod_in_whatever_way() {
    let site = lead_of_dev(installation!()).await;
    let (nimbus, owner, acme) = (&site.nimbus, &site.owner, &site.acme);
    let user = nimbus.user(owner, acme, "dev@acme.example", None).await;
    nimbus.assign(owner, acme, &user, "developer").await.ok();
    let developer = nimbus.token("acme", "dev@acme.example").await;
    let before = site.manifest().await;
    let deployment = "/api/v1/deployments/D1ENV";
    for word in ["disable", "enable"] {
        let path = |name: &str| format!("{deployment}/environments/{name}/{word}?tenant={acme}");
        let answer = nimbus
            .call("POST", &path("prod"), Some(&developer), None)
            .await;
        assert_eq!(answer.status, StatusCode::FORBIDDEN, "{}", answer.text);
        assert!(answer.text.contains("in prod"), "{}", answer.text);
        nimbus
            .call("POST", &path("dev"), Some(&developer), None)
            .await
            .ok();
    }
    // Nor by writing the manifest.
    let prod = before.find("    prod:\n").expect("an environment prod");
    let (head, tail) = before.split_at(prod);
    // The first of these is of the environment itself.
    assert!(tail.find("enabled: false") < tail.find("enabled: true"));
    let switched = tail.replacen("enabled: false", "enabled: true", 1);
    let body = json!({"manifest": format!("{head}{switched}")});
    let path = format!("{deployment}?tenant={acme}");
    let answer = nimbus
        .call("PUT", &path, Some(&developer), Some(body))
        .await;
    assert_eq!(answer.status, StatusCode::FORBIDDEN, "{}", answer.text);
    // Nor by leaving an environment out that is on, to put it in again otherwise.
    let enable = format!("{deployment}/environments/prod/enable?tenant={acme}");
    // Whatever it was before.
    let _ = nimbus.call("POST", &enable, Some(owner), None).await;
    let before = site.manifest().await;
    let indent = |line: &str| line.len() - line.trim_start().len();
    let mut left_out = Vec::new();
    let mut within = None;
    for line in before.lines() {
        if within.is_some_and(|depth| indent(line) > depth) {
            continue;
        }
        within = line.trim_start().starts_with("prod:").then(|| indent(line));
        if within.is_none() && line != "    - prod" {
            left_out.push(line);
        }
    }
    let body = json!({"manifest": left_out.join("\n") + "\n"});
    let answer = nimbus
        .call("PUT", &path, Some(&developer), Some(body))
        .await;
    assert_eq!(answer.status, StatusCode::FORBIDDEN, "{}", answer.text);
}

#[tokio::test]
async fn who_may_not_skip_a_gate_does_not_write_it_away() {
    let site = lead_of_dev(installation!()).await;
    let (nimbus, owner, acme) = (&site.nimbus, &site.owner, &site.acme);
    let permissions = [
        "deployment:definition:read",
        "deployment:definition:update",
        "deployment:log:read",
        "stack:instance:deploy",
    ];
    let role = json!({"name": "writer", "grants": [{"permissions": permissions}]});
    let roles = format!("/api/v1/tenants/{acme}/roles");
    nimbus.post(&roles, owner, role).await.ok();
    let user = nimbus.user(owner, acme, "wri@acme.example", None).await;
    nimbus.assign(owner, acme, &user, "writer").await.ok();
    let writer = nimbus.token("acme", "wri@acme.example").await;
    let before = site.manifest().await;
    let path = format!("/api/v1/deployments/D1ENV?tenant={acme}");
    let order = "    - dev\n    - stage\n    - prod\n";
    let with_order = before.replacen(order, "    - prod\n    - dev\n    - stage\n", 1);
    let with_gate = before.replacen("    dev:\n", "    dev:\n      gate: {items: []}\n", 1);
    for (manifest, what) in [(with_order, "promotion"), (with_gate, "gate")] {
        assert_ne!(manifest, before, "{what}");
        let body = json!({"manifest": manifest});
        let answer = nimbus.call("PUT", &path, Some(&writer), Some(body.clone()));
        let answer = answer.await;
        assert_eq!(
            answer.status,
            StatusCode::FORBIDDEN,
            "{what}: {}",
            answer.text
        );
        let needed = "deployment:environment:manage";
        assert!(answer.text.contains(needed), "{what}: {}", answer.text);
        assert_eq!(site.manifest().await, before, "{what}");
        // Whoever may skip gates may write them as well.
        nimbus
            .call("PUT", &path, Some(owner), Some(body))
            .await
            .ok();
        let back = json!({"manifest": before});
        nimbus
            .call("PUT", &path, Some(owner), Some(back))
            .await
            .ok();
    }
    // What is nobody's gate is the writer's.
    let body = json!({"manifest": format!("{before}# looked at\n")});
    nimbus
        .call("PUT", &path, Some(&writer), Some(body))
        .await
        .ok();
}

#[tokio::test]
async fn a_lead_of_dev_decides_nothing_for_prod() {
    let site = lead_of_dev(installation!()).await;
    let base = format!("/api/v1/tenants/{}/cloud-accounts", site.acme);
    let main = format!("{base}/main");
    let prod = Some(account(Some("prod")));
    let (nimbus, owner) = (&site.nimbus, &site.owner);
    nimbus
        .call("PUT", &main, Some(owner), prod.clone())
        .await
        .ok();
    // Over prod's account, to prod, for everybody, and prod's to another environment.
    site.refused("PUT", &main, prod.clone()).await;
    site.refused("PUT", &format!("{base}/other"), prod).await;
    site.refused("PUT", &format!("{base}/all"), Some(account(None)))
        .await;
    site.refused("PUT", &main, Some(account(Some("dev")))).await;
    site.refused("DELETE", &main, None).await;
    let (status, said) = site
        .call("PUT", &format!("{base}/own"), Some(account(Some("dev"))))
        .await;
    assert_eq!(status, StatusCode::OK, "{said}");

    let deployment = "/api/v1/deployments/D1ENV";
    let manifest = site.manifest().await;
    let written = json!({"manifest": manifest.replace("222222222222", "999999999999")});
    site.refused("PUT", deployment, Some(written)).await;
    site.refused("DELETE", deployment, None).await;
    for word in ["enable", "disable"] {
        let path = format!("{deployment}/environments/prod/{word}");
        let (status, said) = site.call("POST", &path, None).await;
        assert_eq!(status, StatusCode::NOT_FOUND, "{word}: {said}");
    }
    assert_eq!(site.manifest().await, manifest);

    let template = "name: dns\ndescription: mine\nconfig: {}\n";
    let program = json!({"name": "dns", "template": template, "files": {"src/index.js": "1"}});
    site.refused("POST", "/api/v1/stacks", Some(program)).await;
}

/// A run of prod is there for those who may look at prod.
#[tokio::test]
async fn a_lead_of_dev_looks_into_no_run_of_prod() {
    let site = lead_of_dev(installation!()).await;
    let (nimbus, owner) = (&site.nimbus, &site.owner);
    for environment in ["dev", "prod"] {
        let switch = format!(
            "/api/v1/deployments/D1ENV/environments/{environment}/enable?tenant={}",
            site.acme
        );
        nimbus.post(&switch, owner, json!({})).await.ok();
        let deploy = format!("/api/v1/deployments/D1ENV/deploy?tenant={}", site.acme);
        let body = json!({"environment": environment, "rehearsal": true});
        let run = text(&nimbus.post(&deploy, owner, body).await.ok()["id"]);
        for part in ["", "/detail", "/events", "/log"] {
            let path = format!("/api/v1/runs/{run}{part}");
            let (status, said) = site.call("GET", &path, None).await;
            let expected = match environment {
                "dev" => StatusCode::OK,
                _ => StatusCode::NOT_FOUND,
            };
            assert_eq!(status, expected, "{environment}{part}: {said}");
        }
    }
}

#[tokio::test]
async fn an_environment_is_switched_in_the_manifest_and_nowhere_else() {
    let site = lead_of_dev(installation!()).await;
    let (nimbus, owner) = (&site.nimbus, &site.owner);
    let before = site.manifest().await;
    let switched = |listed: &Value| {
        let found = listed["items"]
            .as_array()
            .or_else(|| listed.as_array())
            .unwrap()
            .clone();
        let one = found
            .iter()
            .find(|one| one["name"] == "prod")
            .unwrap()
            .clone();
        one["enabled"].as_bool().unwrap()
    };
    let list = format!(
        "/api/v1/deployments/D1ENV/environments?tenant={}",
        site.acme
    );
    for (word, expected) in [("enable", true), ("disable", false), ("enable", true)] {
        let path = format!(
            "/api/v1/deployments/D1ENV/environments/prod/{word}?tenant={}",
            site.acme
        );
        nimbus.post(&path, owner, json!({})).await.ok();
        let listed = nimbus.get(&list, owner).await.ok();
        assert_eq!(switched(&listed), expected, "{word}");
    }
    let after = site.manifest().await;
    assert_eq!(after.lines().count(), before.lines().count(), "{after}");
}

/// States are found by project, so it stays.
#[tokio::test]
async fn a_deployment_keeps_its_project() {
    let site = lead_of_dev(installation!()).await;
    let (nimbus, owner) = (&site.nimbus, &site.owner);
    let path = format!("/api/v1/deployments/D1ENV?tenant={}", site.acme);
    let manifest = site.manifest().await;
    let moved = manifest.replacen("project: p", "project: moved", 1);
    assert_ne!(moved, manifest);
    let body = json!({"manifest": moved});
    let answer = nimbus.call("PUT", &path, Some(owner), Some(body)).await;
    assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{}", answer.text);
    assert_eq!(site.manifest().await, manifest);
    for project in ["a/b", "../../x", "a\nb", " "] {
        let body = json!({"organization": "o", "project": project, "template": "minimal",
            "accounts": {"dev": "111111111111"}});
        let path = format!("/api/v1/deployments?tenant={}", site.acme);
        let answer = nimbus.post(&path, owner, body).await;
        assert_eq!(
            answer.status,
            StatusCode::BAD_REQUEST,
            "{project:?}: {}",
            answer.text
        );
    }
}
