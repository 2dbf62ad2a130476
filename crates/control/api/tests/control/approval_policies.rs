//! Which runs need approval, policies that cannot be, who decides in whose place, and requests that are taken back.

use axum::http::StatusCode;
use jiff::{SignedDuration, Timestamp};
use serde_json::json;
use uuid::Uuid;

use crate::approvals::{refused, site, step, user};
use crate::support::{installation, text};

#[tokio::test]
async fn a_deploy_that_needs_approval_needs_a_plan_and_other_runs_do_not_wait() {
    let site = site(installation!()).await;
    let steps = json!([step(&[user(&site.ana)], json!("any"))]);
    // Without a word about rehearsals they go on as before.
    site.put_policy("*", json!({"steps": steps})).await.ok();
    let path = site.at("deployments/D1APR/deploy");
    let asked = json!({"environment": "dev", "rehearsal": true});
    let free = site
        .nimbus
        .post(&path, &site.dev.0, asked.clone())
        .await
        .ok();
    assert!(free.get("approval").is_none(), "{free}");
    let cancel = site.at(&format!("runs/{}/cancel", text(&free["id"])));
    site.nimbus
        .call("POST", &cancel, Some(&site.dev.0), None)
        .await
        .ok();

    let for_all = json!({"steps": steps, "rehearsals": true});
    site.put_policy("*", for_all).await.ok();
    let blind = site.nimbus.post(&path, &site.dev.0, asked.clone()).await;
    refused(&blind, StatusCode::UNPROCESSABLE_ENTITY, "NIM-1020");
    assert!(
        blind.text.contains("every environment"),
        "whose policy it is: {}",
        blind.text
    );
    // A preview changes nothing, and a destroy has no plan: it is approved as it was asked for.
    site.preview().await;
    let destroy = site.at("deployments/D1APR/destroy");
    let run = site
        .nimbus
        .post(&destroy, &site.ana.0, asked.clone())
        .await
        .ok();
    assert!(run["approval"].is_string(), "{run}");
    assert!(site.take().await.is_none());

    // The policy of an environment stands before that for all, and a request keeps the one that it was made under.
    let closer = json!({"steps": [step(&[user(&site.ben)], json!("any"))], "rehearsals": false});
    site.put_policy("dev", closer).await.ok();
    let free = site.nimbus.post(&path, &site.dev.0, asked).await.ok();
    assert!(free.get("approval").is_none(), "{free}");
    let shown = site.show(&text(&run["approval"])).await;
    assert_eq!(shown["steps"][0]["approvers"][0], user(&site.ana));
    let policies = site
        .nimbus
        .get(&site.at("approval-policies"), &site.dev.0)
        .await
        .ok();
    let names = policies["items"].as_array().unwrap().iter();
    let names: Vec<_> = names.map(|policy| text(&policy["environment"])).collect();
    assert_eq!(names, ["*", "dev"]);
}

#[tokio::test]
async fn policies_that_could_never_be_met_are_refused_by_field() {
    let site = site(installation!()).await;
    let ana = user(&site.ana);
    let any = json!("any");
    let with = |key: &str, value: serde_json::Value| {
        let mut one = step(std::slice::from_ref(&ana), json!("any"));
        one[key] = value;
        json!({"steps": [one]})
    };
    let one = step(std::slice::from_ref(&ana), any);
    for (wrong, place) in [
        (json!({"steps": []}), "steps"),
        (json!({"steps": [one.clone(), one.clone()]}), "owners"),
        (with("name", json!(" ")), "steps"),
        (with("approvers", json!([])), "owners"),
        (
            with("approvers", json!([ana.clone(), ana.clone()])),
            "owners",
        ),
        (
            with("approvers", json!([{"user": "ana"}])),
            "steps[0].approvers[0]",
        ),
        (
            with("approvers", json!([{"robot": "x"}])),
            "steps[0].approvers[0]",
        ),
        (
            with("approvers", json!([{"group": Uuid::new_v4().to_string()}])),
            "there is no group",
        ),
        (
            with("escalate_to", json!([{"user": Uuid::new_v4().to_string()}])),
            "there is no user",
        ),
        (with("escalate_to", json!([ana.clone()])), "owners"),
        (with("needs", json!({"quorum": 2})), "owners"),
        (with("needs", json!({"quorum": 0})), "owners"),
        (with("needs", json!("most")), "needs"),
        (with("timeout_seconds", json!(0)), "owners"),
        (with("timeout_seconds", json!(-1)), "timeout_seconds"),
        (with("timeout_seconds", json!(90 * 24 * 3600 + 1)), "owners"),
        (with("colour", json!("red")), "colour"),
    ] {
        let answer = site.put_policy("dev", wrong.clone()).await;
        assert_eq!(
            answer.status,
            StatusCode::BAD_REQUEST,
            "{wrong}: {}",
            answer.text
        );
        assert!(answer.text.contains(place), "{wrong}: {}", answer.text);
    }
    let right = json!({"steps": [one]});
    let nowhere = site.put_policy("Not%20A%20Place", right.clone()).await;
    refused(&nowhere, StatusCode::BAD_REQUEST, "environment");
    let listed = site
        .nimbus
        .get(&site.at("approval-policies"), &site.ana.0)
        .await
        .ok();
    assert_eq!(listed["items"], json!([]), "nothing of it stayed");
    let path = site.at("approval-policies/dev");
    let by_dev = site
        .nimbus
        .call("PUT", &path, Some(&site.dev.0), Some(right))
        .await;
    refused(&by_dev, StatusCode::FORBIDDEN, "approval:policy:manage");
    let gone = site
        .nimbus
        .call("DELETE", &path, Some(&site.ana.0), None)
        .await;
    assert_eq!(gone.status, StatusCode::NOT_FOUND);
    let asked = format!("{}&status=nearly", site.at("approvals"));
    let listed = site.nimbus.get(&asked, &site.ana.0).await;
    refused(&listed, StatusCode::BAD_REQUEST, "status");
}

#[tokio::test]
async fn somebody_decides_in_anothers_place_for_as_long_as_they_were_asked_to() {
    let site = site(installation!()).await;
    site.needs(json!([step(&[user(&site.ana)], json!("any"))]))
        .await;
    let (_, approval) = site.waiting().await;
    let until = |hours: i64| {
        let at = Timestamp::now() + SignedDuration::from_hours(hours);
        json!({"until": at.to_string()})
    };
    let put = async |to: &str, body: serde_json::Value| {
        let path = site.at(&format!("approval-delegations/{to}"));
        site.nimbus
            .call("PUT", &path, Some(&site.ana.0), Some(body))
            .await
    };
    for wrong in [until(-1), until(24 * 91), json!({"until": "tomorrow"})] {
        refused(
            &put(&site.ben.1, wrong).await,
            StatusCode::BAD_REQUEST,
            "until",
        );
    }
    refused(
        &put(&site.ana.1, until(1)).await,
        StatusCode::BAD_REQUEST,
        "user",
    );
    let nobody = put(&Uuid::new_v4().to_string(), until(1)).await;
    assert_eq!(nobody.status, StatusCode::NOT_FOUND);

    refused(
        &site.grant(&site.ben, &approval).await,
        StatusCode::FORBIDDEN,
        "NIM-1021",
    );
    put(&site.ben.1, until(1)).await.ok();
    // Whoever asked decides in nobody's place.
    put(&site.dev.1, until(1)).await.ok();
    let admin = site
        .nimbus
        .assign(
            &site.owner,
            &site.acme.to_string(),
            &site.dev.1,
            "tenant_admin",
        )
        .await;
    admin.ok();
    refused(
        &site.grant(&site.dev, &approval).await,
        StatusCode::FORBIDDEN,
        "NIM-1022",
    );
    // Somebody who was disabled has no place that another could take.
    let ana = format!("/api/v1/tenants/{}/users/{}", site.acme, site.ana.1);
    let disable = async |disabled: bool| {
        let body = json!({"disabled": disabled});
        site.nimbus
            .call("PATCH", &ana, Some(&site.owner), Some(body))
            .await
            .ok()
    };
    disable(true).await;
    refused(
        &site.grant(&site.ben, &approval).await,
        StatusCode::FORBIDDEN,
        "NIM-1021",
    );
    disable(false).await;
    let decided = site.grant(&site.ben, &approval).await.ok();
    assert_eq!(decided["status"], "approved");
    assert_eq!(decided["decisions"][0]["by"], site.ben.1.as_str());
    assert_eq!(decided["decisions"][0]["for_user"], site.ana.1.as_str());

    let session = site.nimbus.token("acme", "ana@acme.example").await;
    let path = site.at("approval-delegations");
    let listed = site.nimbus.get(&path, &session).await.ok();
    assert_eq!(listed["items"].as_array().unwrap().len(), 2, "{listed}");
    let path = site.at(&format!("approval-delegations/{}", site.ben.1));
    for expected in [StatusCode::NO_CONTENT, StatusCode::NOT_FOUND] {
        let gone = site.nimbus.call("DELETE", &path, Some(&session), None);
        assert_eq!(gone.await.status, expected);
    }
}

#[tokio::test]
async fn whoever_cancels_a_run_that_waits_takes_the_request_back() {
    let site = site(installation!()).await;
    site.needs(json!([step(&[user(&site.ana)], json!("any"))]))
        .await;
    let (run, approval) = site.waiting().await;
    let signal = async |word: &str| {
        let path = site.at(&format!("runs/{run}/{word}"));
        site.nimbus
            .call("POST", &path, Some(&site.dev.0), None)
            .await
            .ok()
    };
    // Pausing and going on is no way round the people.
    signal("pause").await;
    let again = signal("resume").await;
    assert_eq!(again["approval"], approval.as_str(), "{again}");
    assert!(site.take().await.is_none());
    signal("cancel").await;
    assert_eq!(site.show(&approval).await["status"], "withdrawn");
    assert_eq!(site.run(&run).await["result"], "cancelled");
    refused(
        &site.grant(&site.ana, &approval).await,
        StatusCode::CONFLICT,
        "NIM-1025",
    );
}

#[tokio::test]
async fn graphql_approves_and_rejects_with_a_reason() {
    let site = site(installation!()).await;
    site.needs(json!([step(
        &[user(&site.ana), user(&site.eve)],
        json!("any")
    )]))
    .await;
    let (_, approval) = site.waiting().await;
    let reject = "mutation($id: ID!, $reason: String!) { rejectRequest(id: $id, reason: $reason) { status } }";
    let variables = json!({"id": approval, "reason": " "});
    let empty = site
        .nimbus
        .graphql(&site.ana.0, reject, variables)
        .await
        .ok();
    let said = empty["errors"][0].to_string();
    assert!(said.contains("reason"), "{empty}");
    assert_eq!(site.show(&approval).await["status"], "pending");
    let approve =
        "mutation($id: ID!) { approveRequest(id: $id, comment: \"seen\") { status planDigest } }";
    let variables = json!({"id": approval});
    let done = site
        .nimbus
        .graphql(&site.eve.0, approve, variables)
        .await
        .ok();
    let result = &done["data"]["approveRequest"];
    assert_eq!(result["status"], "approved", "{done}");
    let shown = site.show(&approval).await;
    assert_eq!(result["planDigest"], shown["plan_digest"]);
    assert_eq!(shown["decisions"][0]["comment"], "seen");
}

#[tokio::test]
async fn graphql_lists_approvals_in_pages_shows_one_and_the_policies() {
    let site = site(installation!()).await;
    let mut only = step(&[user(&site.ana), user(&site.eve)], json!({"quorum": 1}));
    only["escalate_to"] = json!([user(&site.ben)]);
    site.needs(json!([only])).await;
    let (_, denied) = site.waiting().await;
    site.deny(&site.eve, &denied, "not now").await.ok();
    let (run, pending) = site.waiting().await;
    let ask = async |query: &str, variables: serde_json::Value| {
        let answer = site.nimbus.graphql(&site.dev.0, query, variables);
        answer.await.ok()
    };

    let list = "query($filter: ApprovalFilter, $page: Pagination) { approvals(filter: $filter, pagination: $page) \
                { nodes { id status } pageInfo { hasNextPage endCursor } } }";
    let newest = ask(list, json!({"page": {"first": 1}})).await;
    let newest = &newest["data"]["approvals"];
    assert_eq!(newest["nodes"][0]["id"], pending.as_str(), "{newest}");
    assert_eq!(newest["pageInfo"]["hasNextPage"], true);
    let after = &newest["pageInfo"]["endCursor"];
    let older = ask(list, json!({"page": {"first": 1, "after": after}})).await;
    let nodes = json!([{"id": denied, "status": "rejected"}]);
    assert_eq!(older["data"]["approvals"]["nodes"], nodes, "{older}");
    let filter = json!({"status": "rejected", "environment": "dev", "deployment": "D1APR"});
    let rejected = ask(list, json!({"filter": filter})).await;
    assert_eq!(rejected["data"]["approvals"]["nodes"], nodes, "{rejected}");
    let wrong = ask(list, json!({"filter": {"status": "maybe"}})).await;
    let details = &wrong["errors"][0]["extensions"]["details"];
    assert_eq!(details[0]["field"], "status", "{wrong}");

    let one = "query($id: ID!) { approval(id: $id) { runId step planDigest requestedById \
               steps { needs quorum approvers { userId groupId } escalateTo { userId } } \
               decisions { byId verdict comment } } }";
    let waiting = ask(one, json!({"id": pending})).await;
    let waiting = &waiting["data"]["approval"];
    assert_eq!(waiting["runId"], run.as_str(), "{waiting}");
    assert_eq!(waiting["step"], "owners");
    assert_eq!(waiting["requestedById"], site.dev.1.as_str());
    let shown = site.show(&pending).await;
    assert_eq!(waiting["planDigest"], shown["plan_digest"]);
    let steps = json!([{"needs": "quorum", "quorum": 1,
        "approvers": [{"userId": site.ana.1, "groupId": null}, {"userId": site.eve.1, "groupId": null}],
        "escalateTo": [{"userId": site.ben.1}]}]);
    assert_eq!(waiting["steps"], steps);
    let ended = ask(one, json!({"id": denied})).await;
    let decisions = json!([{"byId": site.eve.1, "verdict": "reject", "comment": "not now"}]);
    assert_eq!(ended["data"]["approval"]["decisions"], decisions, "{ended}");
    let none = ask(one, json!({"id": Uuid::new_v4()})).await;
    let code = &none["errors"][0]["extensions"]["code"];
    assert_eq!(code, "NOT_FOUND", "{none}");

    let policies =
        "{ approvalPolicies { environment rehearsals ownRequests setById steps { name } } }";
    let found = ask(policies, json!({})).await;
    let policy = json!([{"environment": "dev", "rehearsals": true, "ownRequests": false,
        "setById": site.ana.1, "steps": [{"name": "owners"}]}]);
    assert_eq!(found["data"]["approvalPolicies"], policy, "{found}");
}

#[tokio::test]
async fn a_request_says_whose_decision_would_count() {
    let site = site(installation!()).await;
    let people = [user(&site.ana), user(&site.dev)];
    site.needs(json!([step(&people, json!("all"))])).await;
    let (_, approval) = site.waiting().await;
    let yours = async |who: &(String, String)| {
        let path = site.at(&format!("approvals/{approval}"));
        let one = site.nimbus.get(&path, &who.0).await.ok();
        let list = site.nimbus.get(&site.at("approvals"), &who.0).await.ok();
        assert_eq!(list["items"][0]["yours"], one["yours"], "{list}");
        one["yours"].as_bool().unwrap()
    };
    assert!(yours(&site.ana).await);
    // Others decide; an approver who asked for it, and lacks the permission as well.
    assert!(!yours(&site.ben).await);
    assert!(!yours(&site.dev).await);
    let path = site.at(&format!("approval-delegations/{}", site.ben.1));
    let soon = Timestamp::now() + SignedDuration::from_hours(1);
    let until = json!({"until": soon.to_string()});
    site.nimbus
        .call("PUT", &path, Some(&site.ana.0), Some(until))
        .await
        .ok();
    assert!(yours(&site.ben).await, "in the place of another");
    let asked = "query($id: ID!) { approval(id: $id) { yours } }";
    let variables = json!({"id": approval});
    let found = site.nimbus.graphql(&site.ben.0, asked, variables).await;
    assert_eq!(found.ok()["data"]["approval"]["yours"], true);
    let granted = site.grant(&site.ana, &approval).await.ok();
    assert_eq!(granted["yours"], false, "{granted}");
    assert!(!yours(&site.ana).await, "nobody decides twice");
    assert!(!yours(&site.ben).await, "nor in the place of one who has");
}
