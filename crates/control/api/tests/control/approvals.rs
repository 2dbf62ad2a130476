//! Runs that wait for people: who decides, who cannot, what moved, and what time does.

use axum::http::StatusCode;
use jiff::{SignedDuration, Timestamp};
use nimbus_control_store::{HeldRun, NewRun, RunEnd, StoreError, StoredRun};
use nimbus_core::{TenantId, UserId};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::support::{Answer, Installation, installation, text};

/// A tenant with a deployment, somebody who asks, and three administrators.
pub(crate) struct Site {
    pub(crate) nimbus: Installation,
    pub(crate) owner: String,
    pub(crate) acme: TenantId,
    /// Sessions, and the ids of whose they are.
    pub(crate) dev: (String, String),
    pub(crate) ana: (String, String),
    pub(crate) ben: (String, String),
    pub(crate) eve: (String, String),
}

pub(crate) async fn site(nimbus: Installation) -> Site {
    let owner = nimbus.set_up().await;
    let acme = nimbus.tenant(&owner, "acme").await;
    let join = async |name: &str, role: &str| {
        let email = format!("{name}@acme.example");
        let id = nimbus.user(&owner, &acme, &email, Some(role)).await;
        (nimbus.token("acme", &email).await, id)
    };
    let dev = join("dev", "developer").await;
    let ana = join("ana", "tenant_admin").await;
    let ben = join("ben", "tenant_admin").await;
    let eve = join("eve", "tenant_admin").await;
    let deployment = json!({"id": "D1APR", "organization": "o", "project": "p", "template": "minimal",
        "domain": "o.example", "accounts": {"dev": "111111111111"}});
    let path = format!("/api/v1/deployments?tenant={acme}");
    nimbus.post(&path, &owner, deployment).await.ok();
    let acme = acme.parse().unwrap();
    Site {
        nimbus,
        owner,
        acme,
        dev,
        ana,
        ben,
        eve,
    }
}

pub(crate) fn user(person: &(String, String)) -> Value {
    json!({"user": person.1})
}

pub(crate) fn step(approvers: &[Value], needs: Value) -> Value {
    json!({"name": "owners", "approvers": approvers, "needs": needs, "timeout_seconds": 3600})
}

impl Site {
    pub(crate) fn at(&self, path: &str) -> String {
        format!("/api/v1/{path}?tenant={}", self.acme)
    }

    pub(crate) async fn put_policy(&self, environment: &str, policy: Value) -> Answer {
        let path = self.at(&format!("approval-policies/{environment}"));
        self.nimbus
            .call("PUT", &path, Some(&self.ana.0), Some(policy))
            .await
    }

    /// The policy of dev, for rehearsals too.
    pub(crate) async fn needs(&self, steps: Value) {
        let policy = json!({"steps": steps, "rehearsals": true});
        self.put_policy("dev", policy).await.ok();
    }

    pub(crate) async fn take(&self) -> Option<StoredRun> {
        let store = &self.nimbus.database.store;
        let taken: Result<_, StoreError> = store
            .tenant_tx(self.acme, async |tx| tx.run_take(Uuid::new_v4()).await)
            .await;
        taken.unwrap()
    }

    pub(crate) async fn end(&self, run: &StoredRun, plan: Option<Value>) {
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
        let store = &self.nimbus.database.store;
        let ended: Result<_, StoreError> = store
            .tenant_tx(self.acme, async |tx| {
                match &plan {
                    Some(plan) => tx.plan_keep(&held, plan).await?,
                    None => drop(tx.run_begin(&held, &run.request).await?),
                }
                tx.run_release(&held, &end).await
            })
            .await;
        ended.unwrap();
    }

    /// A preview that came to its end, as a worker leaves it.
    pub(crate) async fn preview(&self) -> String {
        let asked = json!({"environment": "dev", "rehearsal": true});
        let path = self.at("deployments/D1APR/preview");
        let run = self.nimbus.post(&path, &self.dev.0, asked).await.ok();
        let taken = self.take().await.unwrap();
        assert_eq!(taken.id.to_string(), text(&run["id"]));
        let plan = json!({"schema": "nimbus/deployment-plan/2", "made": "2026-01-01T00:00:00Z",
            "deployment": "D1APR", "environment": "dev", "rehearsal": true, "units": {}});
        self.end(&taken, Some(plan)).await;
        text(&run["id"])
    }

    async fn deploy(&self, who: &(String, String)) -> Value {
        let plan = self.preview().await;
        let asked = json!({"environment": "dev", "rehearsal": true, "plan": plan});
        let path = self.at("deployments/D1APR/deploy");
        self.nimbus.post(&path, &who.0, asked).await.ok()
    }

    /// A deploy that waits: its run, and the approval.
    pub(crate) async fn waiting(&self) -> (String, String) {
        let run = self.deploy(&self.dev).await;
        (text(&run["id"]), text(&run["approval"]))
    }

    pub(crate) async fn grant(&self, who: &(String, String), approval: &str) -> Answer {
        let path = self.at(&format!("approvals/{approval}/grant"));
        self.nimbus.post(&path, &who.0, json!({})).await
    }

    pub(crate) async fn deny(
        &self,
        who: &(String, String),
        approval: &str,
        reason: &str,
    ) -> Answer {
        let path = self.at(&format!("approvals/{approval}/deny"));
        let body = json!({"reason": reason});
        self.nimbus.post(&path, &who.0, body).await
    }

    pub(crate) async fn show(&self, approval: &str) -> Value {
        let path = self.at(&format!("approvals/{approval}"));
        self.nimbus.get(&path, &self.dev.0).await.ok()
    }

    pub(crate) async fn run(&self, id: &str) -> Value {
        let path = self.at(&format!("runs/{id}"));
        self.nimbus.get(&path, &self.dev.0).await.ok()
    }
}

#[track_caller]
pub(crate) fn refused(answer: &Answer, status: StatusCode, code: &str) {
    assert_eq!(answer.status, status, "{}", answer.text);
    assert!(answer.text.contains(code), "{}", answer.text);
}

#[tokio::test]
async fn a_run_waits_until_enough_people_in_their_own_sessions_agree() {
    let site = site(installation!()).await;
    let people = [user(&site.ana), user(&site.ben)];
    site.needs(json!([step(&people, json!({"quorum": 2}))]))
        .await;
    let run = site.deploy(&site.dev).await;
    let approval = text(&run["approval"]);
    assert_eq!(run["status"], "queued");
    assert_eq!(run["position"], Value::Null, "it has no place yet: {run}");
    assert!(site.take().await.is_none(), "nobody takes what waits");

    let listed = site
        .nimbus
        .get(
            &format!("{}&status=pending", site.at("approvals")),
            &site.ben.0,
        )
        .await
        .ok();
    assert_eq!(listed["items"][0]["id"], approval.as_str());
    assert_eq!(listed["items"][0]["step"], "owners");
    assert_eq!(text(&listed["items"][0]["plan_digest"]).len(), 64);
    // Whoever may not decide at all is told by the permission.
    refused(
        &site.grant(&site.dev, &approval).await,
        StatusCode::FORBIDDEN,
        "approval:request:decide",
    );
    let first = site.grant(&site.ana, &approval).await.ok();
    assert_eq!(first["status"], "pending");
    refused(
        &site.grant(&site.ana, &approval).await,
        StatusCode::CONFLICT,
        "NIM-1023",
    );
    assert!(site.take().await.is_none(), "one of two is not enough");
    let second = site.grant(&site.ben, &approval).await.ok();
    assert_eq!(second["status"], "approved");
    assert_eq!(second["decisions"].as_array().unwrap().len(), 2, "{second}");
    let taken = site.take().await.unwrap();
    assert_eq!(taken.id.to_string(), text(&run["id"]));
    refused(
        &site.grant(&site.eve, &approval).await,
        StatusCode::CONFLICT,
        "NIM-1025",
    );

    let database = &site.nimbus.database;
    let granted = database
        .texts("SELECT outcome FROM nimbus_core.audit_logs WHERE action = 'approvals.grant' AND outcome = 'done'")
        .await;
    assert_eq!(granted.len(), 2);
    let told = database
        .texts("SELECT kind FROM nimbus_core.live_outbox WHERE kind LIKE 'approval.%' AND person IS NULL ORDER BY id")
        .await;
    assert_eq!(
        told,
        [
            "approval.required",
            "approval.changed",
            "approval.completed"
        ]
    );
}

#[tokio::test]
async fn one_denial_ends_the_run_and_says_why() {
    let site = site(installation!()).await;
    let first = step(&[user(&site.ana)], json!("all"));
    let mut last = step(&[user(&site.ben)], json!("any"));
    last["name"] = json!("security");
    site.needs(json!([first, last])).await;
    let (run, approval) = site.waiting().await;
    let moved = site.grant(&site.ana, &approval).await.ok();
    assert_eq!(moved["step"], "security", "{moved}");
    for nothing in ["", "  \n"] {
        refused(
            &site.deny(&site.ben, &approval, nothing).await,
            StatusCode::BAD_REQUEST,
            "reason",
        );
    }
    let denied = site.deny(&site.ben, &approval, "not on a Friday").await;
    assert_eq!(denied.ok()["status"], "rejected");
    let ended = site.run(&run).await;
    assert_eq!(ended["status"], "ended");
    assert_eq!(ended["result"], "cancelled");
    assert_eq!(ended["problem"]["code"], "NIM-1026");
    assert!(text(&ended["problem"]["message"]).contains("not on a Friday"));
    assert!(ended.get("approval").is_none(), "{ended}");
    assert!(site.take().await.is_none());
    refused(
        &site.grant(&site.ben, &approval).await,
        StatusCode::CONFLICT,
        "NIM-1025",
    );
    let resumed = site
        .nimbus
        .call(
            "POST",
            &site.at(&format!("runs/{run}/resume")),
            Some(&site.dev.0),
            None,
        )
        .await;
    assert_eq!(resumed.status, StatusCode::CONFLICT, "{}", resumed.text);
}

#[tokio::test]
async fn nobody_approves_their_own_request_unless_the_policy_says_so() {
    let site = site(installation!()).await;
    let steps = json!([step(&[user(&site.ana), user(&site.ben)], json!("any"))]);
    site.needs(steps.clone()).await;
    let own = text(&site.deploy(&site.ana).await["approval"]);
    refused(
        &site.grant(&site.ana, &own).await,
        StatusCode::FORBIDDEN,
        "NIM-1022",
    );
    assert_eq!(site.grant(&site.ben, &own).await.ok()["status"], "approved");
    let run = site.take().await.unwrap();
    site.end(&run, None).await;
    let policy = json!({"steps": steps, "rehearsals": true, "own_requests": true});
    site.put_policy("dev", policy).await.ok();
    let own = text(&site.deploy(&site.ana).await["approval"]);
    assert_eq!(site.grant(&site.ana, &own).await.ok()["status"], "approved");
}

#[tokio::test]
async fn outsiders_decide_nothing_and_other_tenants_find_nothing() {
    let site = site(installation!()).await;
    let nimbus = &site.nimbus;
    let beta = nimbus.tenant(&site.owner, "beta").await;
    let id = nimbus
        .user(&site.owner, &beta, "mal@beta.example", Some("tenant_admin"))
        .await;
    let mal = nimbus.token("beta", "mal@beta.example").await;
    let stranger = json!({"steps": [step(&[json!({"user": id})], json!("any"))]});
    refused(
        &site.put_policy("dev", stranger).await,
        StatusCode::BAD_REQUEST,
        "there is no user",
    );
    site.needs(json!([step(&[user(&site.ana)], json!("any"))]))
        .await;
    let (_, approval) = site.waiting().await;
    refused(
        &site.grant(&site.eve, &approval).await,
        StatusCode::FORBIDDEN,
        "NIM-1021",
    );
    for place in [site.acme.to_string(), beta.clone()] {
        for (method, path) in [
            ("GET", format!("approvals/{approval}")),
            ("POST", format!("approvals/{approval}/grant")),
            ("POST", format!("approvals/{approval}/deny")),
        ] {
            let body = match (method, path.ends_with("deny")) {
                ("GET", _) => None,
                (_, true) => Some(json!({"reason": "x"})),
                (_, false) => Some(json!({})),
            };
            let path = format!("/api/v1/{path}?tenant={place}");
            let answer = nimbus.call(method, &path, Some(&mal), body).await;
            assert_eq!(answer.status, StatusCode::NOT_FOUND, "{}", answer.text);
        }
    }
    for path in ["approvals", "approval-policies"] {
        let listed = nimbus.get(&format!("/api/v1/{path}"), &mal).await.ok();
        assert_eq!(listed["items"], json!([]));
    }
    assert_eq!(site.show(&approval).await["status"], "pending");
}

#[tokio::test]
async fn what_moved_is_not_approved() {
    let site = site(installation!()).await;
    site.needs(json!([step(&[user(&site.ana)], json!("any"))]))
        .await;
    let (_, approval) = site.waiting().await;
    // Another run changes the environment meanwhile, beside the API.
    let store = &site.nimbus.database.store;
    let queued: Result<_, StoreError> = store
        .tenant_tx(site.acme, async |tx| {
            let new = NewRun {
                deployment: "D1APR".to_owned(),
                action: "deploy".to_owned(),
                environment: "dev".to_owned(),
                rehearsal: true,
                request: json!({}),
                catalog: json!({}),
                requested_by: UserId::random(),
                trace_id: None,
            };
            tx.run_queue(&new).await
        })
        .await;
    queued.unwrap();
    let other = site.take().await.unwrap();
    site.end(&other, None).await;
    refused(
        &site.grant(&site.ana, &approval).await,
        StatusCode::UNPROCESSABLE_ENTITY,
        "NIM-0601",
    );
    assert_eq!(site.show(&approval).await["decisions"], json!([]));
    site.deny(&site.ana, &approval, "stale").await.ok();

    let (_, approval) = site.waiting().await;
    let path = site.at("deployments/D1APR/manifest");
    let manifest = site.nimbus.get(&path, &site.owner).await.ok();
    let manifest = format!("{}\n# another\n", text(&manifest["manifest"]));
    let path = site.at("deployments/D1APR");
    site.nimbus
        .call(
            "PUT",
            &path,
            Some(&site.owner),
            Some(json!({"manifest": manifest})),
        )
        .await
        .ok();
    let moved = site.grant(&site.ana, &approval).await;
    refused(&moved, StatusCode::UNPROCESSABLE_ENTITY, "NIM-0601");
    assert!(moved.text.contains("revision 2"), "{}", moved.text);
    assert!(site.take().await.is_none());
}

#[tokio::test]
async fn time_escalates_then_ends_and_a_late_decision_does_not_count() {
    let site = site(installation!()).await;
    let mut first = step(&[user(&site.ana)], json!("any"));
    first["escalate_to"] = json!([user(&site.ben)]);
    site.needs(json!([first])).await;
    let (_, approval) = site.waiting().await;
    refused(
        &site.grant(&site.ben, &approval).await,
        StatusCode::FORBIDDEN,
        "NIM-1021",
    );
    let app = &site.nimbus.app;
    let later = |hours: i64| Timestamp::now() + SignedDuration::from_hours(hours);
    assert_eq!(app.sweep_approvals(later(0)).await.unwrap(), 0);
    assert_eq!(app.sweep_approvals(later(2)).await.unwrap(), 1);
    assert_eq!(site.show(&approval).await["escalated"], true);
    let done = site.grant(&site.ben, &approval).await.ok();
    assert_eq!(done["status"], "approved");
    let run = site.take().await.unwrap();
    site.end(&run, None).await;

    let (run, approval) = site.waiting().await;
    assert_eq!(app.sweep_approvals(later(2)).await.unwrap(), 1);
    assert_eq!(app.sweep_approvals(later(4)).await.unwrap(), 1);
    assert_eq!(app.sweep_approvals(later(6)).await.unwrap(), 0);
    assert_eq!(site.show(&approval).await["status"], "expired");
    let ended = site.run(&run).await;
    assert_eq!(ended["problem"]["code"], "NIM-1027", "{ended}");
    refused(
        &site.grant(&site.ana, &approval).await,
        StatusCode::CONFLICT,
        "NIM-1025",
    );

    // Nobody has looked yet, and the time is over all the same.
    let (_, approval) = site.waiting().await;
    let database = &site.nimbus.database;
    let schema = database
        .texts("SELECT schema_name FROM nimbus_core.tenants WHERE slug = 'acme'")
        .await
        .concat();
    let aged = format!(
        "UPDATE {schema}.approval_requests SET state = jsonb_set(state, '{{since}}', '\"2020-01-01T00:00:00Z\"')
         WHERE id = '{approval}'"
    );
    database.run_as_administrator(&aged).await;
    refused(
        &site.grant(&site.ana, &approval).await,
        StatusCode::CONFLICT,
        "NIM-1024",
    );
    let recorded = database
        .texts("SELECT action FROM nimbus_core.audit_logs WHERE action IN ('approvals.escalate', 'approvals.expire') ORDER BY 1")
        .await;
    assert_eq!(
        recorded,
        [
            "approvals.escalate",
            "approvals.escalate",
            "approvals.expire"
        ]
    );
}

/// A browser that asks again, a proxy that sends twice: what somebody decided is decided once.
#[tokio::test]
async fn decisions_that_come_twice_at_once_count_once() {
    let site = site(installation!()).await;
    let people = [user(&site.ana), user(&site.ben)];
    site.needs(json!([step(&people, json!({"quorum": 2}))]))
        .await;
    let (run, approval) = site.waiting().await;
    let twice = async |who: &(String, String)| {
        let (one, other) = tokio::join!(site.grant(who, &approval), site.grant(who, &approval));
        let mut statuses = [one.status, other.status];
        statuses.sort();
        statuses
    };
    let counted = [StatusCode::OK, StatusCode::CONFLICT];
    assert_eq!(twice(&site.ana).await, counted);
    assert_eq!(site.show(&approval).await["status"], "pending");
    assert_eq!(twice(&site.ben).await, counted);
    let shown = site.show(&approval).await;
    assert_eq!(shown["status"], "approved");
    assert_eq!(shown["decisions"].as_array().unwrap().len(), 2, "{shown}");
    assert_eq!(site.take().await.unwrap().id.to_string(), run);
    assert!(site.take().await.is_none(), "there is one run");
    let database = &site.nimbus.database;
    let told = database
        .texts("SELECT kind FROM nimbus_core.live_outbox WHERE kind = 'approval.completed' AND person IS NULL")
        .await;
    assert_eq!(told.len(), 1);
    let recorded = database
        .texts("SELECT outcome FROM nimbus_core.audit_logs WHERE action = 'approvals.grant' AND outcome = 'done'")
        .await;
    assert_eq!(recorded.len(), 2);
}
