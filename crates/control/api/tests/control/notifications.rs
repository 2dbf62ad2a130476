//! What people are told in person: who is, who is not, live and later, and what is kept of it.

use axum::http::StatusCode;
use jiff::{SignedDuration, Timestamp};
use nimbus_control_store::{HeldRun, NewNotification, NotifiedPeople, RunEnd, StoreError};
use nimbus_core::TenantId;
use serde_json::{Value, json};
use tokio_tungstenite::connect_async;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use uuid::Uuid;

use crate::approvals::{Site, refused, site, step, user};
use crate::graphql_events::{head, told};
use crate::graphql_live::{next, say, subscribe};
use crate::live::Socket;
use crate::socket_io::Served;
use crate::support::{installation, text};

const LIST: &str = "/api/v1/notifications";

/// Somebody's notifications, newest first.
async fn listed(site: &Site, token: &str) -> Vec<Value> {
    let found = site.nimbus.get(LIST, token).await.ok();
    found["items"].as_array().unwrap().clone()
}

/// How many each of dev, ana, ben and eve has.
async fn counts(site: &Site) -> [usize; 4] {
    let mut counts = [0; 4];
    let people = [&site.dev, &site.ana, &site.ben, &site.eve];
    for (count, person) in counts.iter_mut().zip(people) {
        *count = listed(site, &person.0).await.len();
    }
    counts
}

async fn mark_read(site: &Site, token: &str, id: &str) -> crate::support::Answer {
    let path = format!("{LIST}/{id}/read");
    site.nimbus.call("POST", &path, Some(token), None).await
}

/// Tells somebody something, as a use case would.
async fn notify(site: &Site, to: &str, title: &str) -> usize {
    let new = NewNotification {
        kind: "run_failed",
        title: title.to_owned(),
        body: String::new(),
        approval: None,
        run: None,
        deployment: None,
        environment: None,
    };
    let to = NotifiedPeople {
        users: vec![to.parse().unwrap()],
        ..NotifiedPeople::default()
    };
    let store = &site.nimbus.database.store;
    let told: Result<_, StoreError> = store
        .tenant_tx(site.acme, async |tx| tx.notify(&new, &to).await)
        .await;
    told.unwrap().len()
}

async fn open(served: &Served, token: &str) -> Socket {
    let mut request = format!("ws://{}/graphql", served.address)
        .into_client_request()
        .unwrap();
    let bearer = format!("Bearer {token}");
    for (name, value) in [
        ("authorization", bearer.as_str()),
        ("sec-websocket-protocol", "graphql-transport-ws"),
    ] {
        request.headers_mut().insert(name, value.parse().unwrap());
    }
    let (mut socket, _) = connect_async(request).await.unwrap();
    say(&mut socket, json!({"type": "connection_init"})).await;
    assert_eq!(next(&mut socket).await.unwrap()["type"], "connection_ack");
    socket
}

#[tokio::test]
async fn whoever_may_decide_is_told_live_and_later_and_nobody_else_is() {
    let site = site(installation!()).await;
    let nimbus = &site.nimbus;
    let beta = nimbus.tenant(&site.owner, "beta").await;
    let admin = Some("tenant_admin");
    nimbus
        .user(&site.owner, &beta, "mal@beta.example", admin)
        .await;
    let mal = nimbus.token("beta", "mal@beta.example").await;
    let groups = format!("/api/v1/tenants/{}/groups", site.acme);
    let group = nimbus
        .post(&groups, &site.owner, json!({"name": "release"}))
        .await
        .ok();
    let group = text(&group["id"]);
    let member = format!("{groups}/{group}/members/{}", site.ben.1);
    nimbus
        .call("PUT", &member, Some(&site.owner), None)
        .await
        .ok();
    let approvers = [user(&site.ana), json!({"group": group})];
    site.needs(json!([step(&approvers, json!("any"))])).await;

    let served = Served::new(nimbus.router.clone()).await;
    let _relay = nimbus.relay();
    let since = head(nimbus, site.acme).await;
    // Ana watches in another session than the one in which she decides.
    let session = nimbus.token("acme", "ana@acme.example").await;
    let mut ana = open(&served, &session).await;
    for (field, asked) in [
        ("approvalRequired", "requestId data"),
        ("notificationReceived", "title text data"),
    ] {
        let query = format!(
            "subscription {{ {field}(userId: \"{}\", since: \"{since}\") {{ {asked} }} }}",
            site.ana.1
        );
        subscribe(&mut ana, field, &query).await;
    }
    let mut eve = open(&served, &site.eve.0).await;
    let types = r#"["approval.required", "approval.completed", "notification.new"]"#;
    let query = format!(
        "subscription {{ eventReceived(tenantId: \"{}\", types: {types}, since: \"{since}\") {{ type }} }}",
        site.acme
    );
    subscribe(&mut eve, "all", &query).await;

    let (run, approval) = site.waiting().await;
    let mut asked = None;
    let mut notified = None;
    // They come on one socket, in no order between them.
    while asked.is_none() || notified.is_none() {
        let message = next(&mut ana).await.unwrap();
        let data = message["payload"]["data"].clone();
        match message["id"].as_str() {
            Some("approvalRequired") => asked = Some(data["approvalRequired"].clone()),
            Some("notificationReceived") => notified = Some(data["notificationReceived"].clone()),
            _ => {}
        }
    }
    assert_eq!(asked.unwrap()["requestId"], approval.as_str());
    let notified = notified.unwrap();
    assert!(
        text(&notified["title"]).contains("waits for your decision"),
        "{notified}"
    );
    assert_eq!(notified["data"]["approval"], approval.as_str());

    assert_eq!(counts(&site).await, [0, 1, 1, 0]);
    for token in [&mal, &site.owner] {
        assert_eq!(listed(&site, token).await, Vec::<Value>::new());
    }
    let of_ana = &listed(&site, &session).await[0];
    assert_eq!(of_ana["id"], notified["data"]["resource_id"]);
    assert_eq!(of_ana["kind"], "approval_required");
    assert_eq!(of_ana["run"], run.as_str());
    assert_eq!(of_ana["deployment"], "D1APR");
    assert!(of_ana.get("read_at").is_none(), "{of_ana}");

    site.grant(&site.ana, &approval).await.ok();
    let done = &listed(&site, &site.dev.0).await[0];
    assert_eq!(done["kind"], "approval_completed");
    assert!(text(&done["title"]).ends_with("was approved"), "{done}");
    // Whoever may see approvals hears once what several people were asked.
    let mut heard: Vec<String> = Vec::new();
    while heard.last().is_none_or(|last| last != "approval.completed") {
        heard.push(text(&told(&mut eve, "all", "eventReceived").await["type"]));
    }
    assert_eq!(heard, ["approval.required", "approval.completed"]);
}

#[tokio::test]
async fn each_step_asks_its_own_people_once_and_escalation_asks_again() {
    let site = site(installation!()).await;
    let first = step(&[user(&site.ana), user(&site.ben)], json!({"quorum": 2}));
    let mut last = step(&[user(&site.eve)], json!("any"));
    last["name"] = json!("security");
    site.needs(json!([first, last])).await;
    let (_, approval) = site.waiting().await;
    assert_eq!(counts(&site).await, [0, 1, 1, 0]);
    site.grant(&site.ana, &approval).await.ok();
    assert_eq!(
        counts(&site).await,
        [0, 1, 1, 0],
        "one of two changes nothing"
    );
    site.grant(&site.ben, &approval).await.ok();
    assert_eq!(counts(&site).await, [0, 1, 1, 1]);
    let asked = &listed(&site, &site.eve.0).await[0];
    assert!(text(&asked["text"]).contains("step security"), "{asked}");
    site.deny(&site.eve, &approval, "not now").await.ok();
    assert_eq!(counts(&site).await, [1, 1, 1, 1]);
    let denied = &listed(&site, &site.dev.0).await[0];
    assert_eq!(denied["text"], "not now");

    // Ana is away, and Eve decides in her place.
    let path = site.at(&format!("approval-delegations/{}", site.eve.1));
    let until = Timestamp::now() + SignedDuration::from_hours(48);
    let until = json!({"until": until.to_string()});
    site.nimbus
        .call("PUT", &path, Some(&site.ana.0), Some(until))
        .await
        .ok();
    let mut only = step(&[user(&site.ana)], json!("any"));
    only["escalate_to"] = json!([user(&site.ben)]);
    site.needs(json!([only])).await;
    let (_, approval) = site.waiting().await;
    assert_eq!(counts(&site).await, [1, 2, 1, 2]);
    let later = Timestamp::now() + SignedDuration::from_hours(2);
    assert_eq!(site.nimbus.app.sweep_approvals(later).await.unwrap(), 1);
    assert_eq!(counts(&site).await, [1, 3, 2, 3]);
    let asked = &listed(&site, &site.ben.0).await[0];
    assert!(
        text(&asked["text"]).contains("others may decide"),
        "{asked}"
    );
    site.deny(&site.ben, &approval, "late").await.ok();
    assert_eq!(counts(&site).await, [2, 3, 2, 3]);

    // Whoever asks is not asked, and nobody in their place.
    let both = step(&[user(&site.ana), user(&site.ben)], json!("any"));
    site.needs(json!([both])).await;
    let destroy = site.at("deployments/D1APR/destroy");
    let asked = json!({"environment": "dev", "rehearsal": true});
    let run = site.nimbus.post(&destroy, &site.ana.0, asked).await.ok();
    assert_eq!(counts(&site).await, [2, 3, 3, 3]);
    // Somebody else takes the run back.
    let cancel = site.at(&format!("runs/{}/cancel", text(&run["id"])));
    site.nimbus
        .call("POST", &cancel, Some(&site.ben.0), None)
        .await
        .ok();
    assert_eq!(counts(&site).await, [2, 4, 3, 3]);
    let withdrawn = &listed(&site, &site.ana.0).await[0];
    assert!(text(&withdrawn["title"]).ends_with("was withdrawn"));
}

#[tokio::test]
async fn whoever_asked_for_a_run_is_told_of_its_bad_end() {
    let site = site(installation!()).await;
    let ends = [
        ("succeeded", None, None),
        ("failed", Some("the network was gone"), Some("run_failed")),
        ("needs_attention", None, Some("run_needs_attention")),
        ("interrupted", None, None),
    ];
    let mut known = 0;
    for (result, problem, kind) in ends {
        // Somebody of the tenant above has no notifications here.
        for (token, own) in [(&site.dev.0, true), (&site.owner, false)] {
            let asked = json!({"environment": "dev", "rehearsal": true});
            let path = site.at("deployments/D1APR/preview");
            let run = site.nimbus.post(&path, token, asked).await.ok();
            let taken = site.take().await.unwrap();
            assert_eq!(taken.id.to_string(), text(&run["id"]));
            let held = HeldRun {
                deployment: taken.deployment.clone(),
                number: taken.number,
                epoch: taken.epoch,
            };
            let end = RunEnd {
                status: "ended",
                wish: None,
                result: Some(result.to_owned()),
                problem: problem.map(|message| json!({"code": "NIM-0001", "message": message})),
            };
            let release = |held: HeldRun| {
                let end = end.clone();
                let store = site.nimbus.database.store.clone();
                let acme = site.acme;
                async move {
                    let released: Result<_, StoreError> = store
                        .tenant_tx(acme, async |tx| tx.run_release(&held, &end).await)
                        .await;
                    released
                }
            };
            let another = HeldRun {
                epoch: held.epoch + 1,
                ..held.clone()
            };
            assert!(release(another).await.is_err(), "it is not theirs");
            release(held).await.unwrap();
            if own && kind.is_some() {
                known += 1;
            }
            let found = listed(&site, &site.dev.0).await;
            assert_eq!(found.len(), known, "{result} {found:?}");
            if let (true, Some(kind)) = (own, kind) {
                assert_eq!(found[0]["kind"], kind);
                assert_eq!(found[0]["run"], run["id"]);
                assert_eq!(found[0]["text"], problem.unwrap_or_default());
            }
        }
    }
    assert_eq!(listed(&site, &site.owner).await, Vec::<Value>::new());
    assert_eq!(counts(&site).await, [2, 0, 0, 0]);
}

#[tokio::test]
async fn notifications_have_pages_are_read_and_are_nobody_elses() {
    let site = site(installation!()).await;
    let ana = &site.ana;
    for number in 1..=5 {
        assert_eq!(notify(&site, &ana.1, &format!("n{number}")).await, 1);
    }
    // Nobody is told who is not there, cannot read, or is of another tenant.
    let users = format!("/api/v1/tenants/{}/users", site.acme);
    let robot = json!({"email": "robot", "service_account": true});
    let robot = site.nimbus.post(&users, &site.owner, robot).await.ok();
    let owner = site.nimbus.get("/api/v1/auth/me", &site.owner).await.ok();
    for nobody in [
        &robot["id"],
        &owner["user"]["id"],
        &json!(Uuid::new_v4().to_string()),
    ] {
        assert_eq!(notify(&site, &text(nobody), "x").await, 0, "{nobody}");
    }

    let mut titles = Vec::new();
    let mut after = String::new();
    loop {
        let path = format!("{LIST}?limit=2{after}");
        let page = site.nimbus.get(&path, &ana.0).await.ok();
        let items = page["items"].as_array().unwrap().iter();
        titles.extend(items.map(|one| text(&one["title"])));
        let Some(next) = page["next"].as_str() else {
            break;
        };
        after = format!("&after={next}");
    }
    assert_eq!(titles, ["n5", "n4", "n3", "n2", "n1"]);

    for wrong in [
        "unread=maybe",
        "after=x",
        "limit=0",
        "limit=501",
        "tenant=acme",
    ] {
        let answer = site.nimbus.get(&format!("{LIST}?{wrong}"), &ana.0).await;
        refused(&answer, StatusCode::BAD_REQUEST, "NIM-0859");
    }
    let newest = text(&listed(&site, &ana.0).await[0]["id"]);
    let strange = Uuid::new_v4().to_string();
    for (token, id) in [
        (&site.eve.0, newest.as_str()),
        (&site.owner, newest.as_str()),
        (&ana.0, strange.as_str()),
        (&ana.0, "yesterday"),
    ] {
        let answer = mark_read(&site, token, id).await;
        assert_eq!(answer.status, StatusCode::NOT_FOUND, "{}", answer.text);
    }
    let unread = format!("{LIST}?unread=true");
    let unread_titles = async || {
        let found = site.nimbus.get(&unread, &ana.0).await.ok();
        let items = found["items"].as_array().unwrap().iter();
        items.map(|one| text(&one["title"])).collect::<Vec<_>>()
    };
    assert_eq!(unread_titles().await.len(), 5);
    let read = mark_read(&site, &ana.0, &newest).await.ok();
    assert!(read["read_at"].is_string(), "{read}");
    let again = mark_read(&site, &ana.0, &newest).await.ok();
    assert_eq!(again, read, "the first time stays");
    assert_eq!(unread_titles().await, ["n4", "n3", "n2", "n1"]);

    let all = "{ notifications(unread: true, pagination: {first: 1}) \
               { nodes { id title kind readAt } pageInfo { hasNextPage } } }";
    let found = site.nimbus.graphql(&ana.0, all, json!({})).await.ok();
    let found = &found["data"]["notifications"];
    assert_eq!(found["nodes"][0]["title"], "n4", "{found}");
    assert_eq!(found["pageInfo"]["hasNextPage"], true);
    let mark = "mutation($id: ID!) { markNotificationRead(id: $id) { title readAt } }";
    let one = json!({"id": found["nodes"][0]["id"]});
    let foreign = site.nimbus.graphql(&site.eve.0, mark, one.clone()).await;
    assert!(foreign.text.contains("NOT_FOUND"), "{}", foreign.text);
    let marked = site.nimbus.graphql(&ana.0, mark, one).await.ok();
    let marked = &marked["data"]["markNotificationRead"];
    assert_eq!(marked["title"], "n4");
    assert!(marked["readAt"].is_string(), "{marked}");

    let path = format!("{LIST}/read-all");
    for rest in [3, 0] {
        let done = site.nimbus.call("POST", &path, Some(&ana.0), None).await;
        assert_eq!(done.ok(), json!({"read": rest}));
    }
    assert_eq!(unread_titles().await, Vec::<String>::new());
    let recorded = site
        .nimbus
        .database
        .texts(
            "SELECT action FROM nimbus_core.audit_logs
             WHERE action LIKE 'notifications.read%' AND outcome = 'done' ORDER BY sequence",
        )
        .await;
    let read = "notifications.read";
    let read_all = "notifications.read_all";
    assert_eq!(recorded, [read, read, read, read_all, read_all]);
}

/// The schema that a tenant's rows are in.
async fn schema_of(site: &Site, tenant: TenantId) -> String {
    let query = format!("SELECT schema_name FROM nimbus_core.tenants WHERE id = '{tenant}'");
    site.nimbus.database.texts(&query).await.concat()
}

#[tokio::test]
async fn what_was_read_goes_after_a_thousand_newer_ones_and_the_unread_stay() {
    let site = site(installation!()).await;
    let schema = schema_of(&site, site.acme).await;
    let database = &site.nimbus.database;
    let (acme, ana, ben) = (site.acme, &site.ana.1, &site.ben.1);
    // The five oldest are too many, and the three oldest were never read.
    let filled = format!(
        "INSERT INTO {schema}.notifications (tenant_id, id, person, kind, title, created_at, read_at)
         SELECT '{acme}', gen_random_uuid(), '{ana}', 'run_failed', 'n' || age, now() - make_interval(secs => age),
             CASE WHEN age <= 1002 THEN now() END
         FROM generate_series(1, 1005) age"
    );
    database.run_as_administrator(&filled).await;
    notify(&site, ben, "of ben").await;
    let app = &site.nimbus.app;
    assert_eq!(app.remove_read_notifications().await.unwrap(), 2);
    assert_eq!(app.remove_read_notifications().await.unwrap(), 0);
    let unread = format!("{LIST}?unread=true");
    let found = site.nimbus.get(&unread, &site.ana.0).await.ok();
    let items = found["items"].as_array().unwrap().iter();
    let titles: Vec<_> = items.map(|one| text(&one["title"])).collect();
    assert_eq!(titles, ["n1003", "n1004", "n1005"]);
    assert_eq!(listed(&site, &site.ben.0).await.len(), 1);

    // Nobody can read what somebody was told who is gone.
    let gone = format!("/api/v1/tenants/{acme}/users/{ana}");
    site.nimbus
        .call("DELETE", &gone, Some(&site.owner), None)
        .await
        .ok();
    let left = format!("SELECT DISTINCT person::text FROM {schema}.notifications");
    assert_eq!(database.texts(&left).await, [ben.as_str()]);
}
