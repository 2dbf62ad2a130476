//! Runs as they are watched: nothing lost, nothing doubled, nobody who may not.

use std::net::SocketAddr;
use std::time::Duration;

use axum::http::StatusCode;
use futures::{SinkExt as _, StreamExt as _};
use nimbus_control_app::LiveRelay;
use nimbus_control_store::{HeldRun, NewDeployment, NewRun, RunEnd, StoreError};
use nimbus_core::{TenantId, UserId};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};
use uuid::Uuid;

use crate::socket_io::Served;
use crate::support::{Installation, ORIGIN, installation, text};

pub(crate) type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// A server on a port, and a run that a worker has.
pub(crate) struct Watched<'a> {
    pub(crate) nimbus: &'a Installation,
    address: SocketAddr,
    pub(crate) owner: String,
    pub(crate) tenant: TenantId,
    pub(crate) run: Uuid,
    held: HeldRun,
    _relay: LiveRelay,
}

impl<'a> Watched<'a> {
    pub(crate) async fn new(nimbus: &'a Installation) -> Self {
        let owner = nimbus.set_up().await;
        let tenant: TenantId = nimbus.tenant(&owner, "acme").await.parse().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let routes = nimbus.router.clone();
        tokio::spawn(async move {
            let service = routes.into_make_service_with_connect_info::<SocketAddr>();
            axum::serve(listener, service).await.unwrap();
        });
        let relay = nimbus.relay();
        let store = &nimbus.database.store;
        let taken: Result<_, StoreError> = store
            .tenant_tx(tenant, async |tx| {
                let user = UserId::from(Uuid::new_v4());
                tx.deployment_create(&NewDeployment {
                    id: "D1".to_owned(),
                    organization: "o".to_owned(),
                    project: "p".to_owned(),
                    template: "t".to_owned(),
                    manifest: String::new(),
                    created_by: user,
                })
                .await?;
                let new = NewRun {
                    deployment: "D1".to_owned(),
                    action: "deploy".to_owned(),
                    environment: "dev".to_owned(),
                    rehearsal: true,
                    request: json!({}),
                    catalog: json!({}),
                    requested_by: user,
                    trace_id: None,
                };
                tx.run_queue(&new).await?;
                Ok(tx.run_take(Uuid::new_v4()).await?.unwrap())
            })
            .await;
        let run = taken.unwrap();
        Self {
            nimbus,
            _relay: relay,
            address,
            owner,
            tenant,
            run: run.id,
            held: HeldRun {
                deployment: run.deployment,
                number: run.number,
                epoch: run.epoch,
            },
        }
    }

    pub(crate) async fn append(&self, events: &[Value]) {
        let store = &self.nimbus.database.store;
        let appended: Result<_, StoreError> = store
            .tenant_tx(self.tenant, async |tx| {
                tx.events_append(&self.held, events).await
            })
            .await;
        appended.unwrap();
    }

    pub(crate) async fn end(&self) {
        let end = RunEnd {
            status: "ended",
            wish: None,
            result: Some("succeeded".to_owned()),
            problem: None,
        };
        let store = &self.nimbus.database.store;
        let ended: Result<_, StoreError> = store
            .tenant_tx(self.tenant, async |tx| {
                tx.run_release(&self.held, &end).await
            })
            .await;
        ended.unwrap();
    }

    fn path(&self, more: &str) -> String {
        format!("/api/v1/runs/{}/progress?tenant=acme{more}", self.run)
    }

    async fn open(&self, token: &str, more: &str) -> Result<Socket, Error> {
        self.open_at(
            &self.path(more),
            &[("authorization", &format!("Bearer {token}"))],
        )
        .await
    }

    pub(crate) async fn open_at(
        &self,
        path: &str,
        headers: &[(&str, &str)],
    ) -> Result<Socket, Error> {
        let mut request = format!("ws://{}{path}", self.address)
            .into_client_request()
            .unwrap();
        for (name, value) in headers {
            let name: axum::http::HeaderName = name.parse().unwrap();
            request.headers_mut().insert(name, value.parse().unwrap());
        }
        connect_async(request).await.map(|(socket, _)| socket)
    }
}

/// The next message; `Err` is the number with which the socket was closed.
async fn next(socket: &mut Socket) -> Result<Value, u16> {
    loop {
        let message = tokio::time::timeout(PATIENCE, socket.next()).await.unwrap();
        match message.unwrap().unwrap() {
            Message::Text(text) => {
                let frame: Value = serde_json::from_str(&text).unwrap();
                if frame["type"] != "heartbeat" {
                    return Ok(frame);
                }
            }
            Message::Close(close) => return Err(close.map_or(0, |close| close.code.into())),
            _ => {}
        }
    }
}

/// Reads until so many events came; the numbers that they have.
async fn events(socket: &mut Socket, count: usize) -> Vec<i64> {
    let mut numbers = Vec::new();
    while numbers.len() < count {
        let frame = next(socket).await.unwrap();
        let items = frame["items"].as_array().into_iter().flatten();
        numbers.extend(items.map(|item| item["seq"].as_i64().unwrap()));
    }
    numbers
}

pub(crate) fn unit(name: &str, status: &str) -> Value {
    json!({"event": "unit", "at": "2026-01-01T00:00:00.000Z", "unit": name, "status": status})
}

pub(crate) fn plan() -> Value {
    json!({"event": "plan", "at": "t", "minutes": 1, "layers": [[
        {"unit": "net", "priority": 1, "decision": "run", "minutes": 1},
    ]]})
}

#[tokio::test]
async fn whoever_watches_gets_a_snapshot_and_every_event_after_it_once() {
    let nimbus = installation!();
    let watched = Watched::new(&nimbus).await;
    watched.append(&[plan(), unit("net", "running")]).await;
    let mut first = watched.open(&watched.owner, "").await.unwrap();
    let snapshot = next(&mut first).await.unwrap();
    assert_eq!(
        (&snapshot["type"], &snapshot["seq"]),
        (&json!("snapshot"), &json!(2))
    );
    assert_eq!(snapshot["detail"]["units"][0]["status"], "running");
    watched.append(&[unit("net", "succeeded")]).await;
    let frame = next(&mut first).await.unwrap();
    assert_eq!(frame["items"][0]["seq"], 3);
    assert_eq!(frame["items"][0]["kind"], "stack_completed");
    // The connection breaks, things go on, and the reader comes back with what it has.
    drop(first);
    watched
        .append(&[unit("db", "running"), unit("db", "succeeded")])
        .await;
    let mut again = watched.open(&watched.owner, "&since=3").await.unwrap();
    assert_eq!(next(&mut again).await.unwrap()["type"], "resumed");
    assert_eq!(events(&mut again, 2).await, [4, 5]);
    // Several watch one run, by its deployment as well, and get the same.
    let path = "/api/v1/deployments/D1/progress?tenant=acme&since=0";
    let token = format!("{path}&access_token={}", watched.owner);
    let mut other = watched.open_at(&token, &[]).await.unwrap();
    assert_eq!(next(&mut other).await.unwrap()["type"], "resumed");
    assert_eq!(events(&mut other, 5).await, [1, 2, 3, 4, 5]);
    let many: Vec<Value> = (0..1200).map(|_| unit("db", "running")).collect();
    watched.append(&many).await;
    let expected: Vec<i64> = (6..=1205).collect();
    assert_eq!(events(&mut again, 1200).await, expected);
    assert_eq!(events(&mut other, 1200).await, expected);
    watched.end().await;
    for socket in [&mut again, &mut other] {
        assert_eq!(next(socket).await.unwrap()["run"]["status"], "ended");
        let last = next(socket).await.unwrap();
        assert_eq!(
            (&last["type"], &last["seq"]),
            (&json!("complete"), &json!(1205))
        );
        assert_eq!(next(socket).await, Err(1000));
    }
}

#[tokio::test]
async fn errors_and_warnings_are_told_when_they_happen_and_either_server_goes_on() {
    let nimbus = installation!();
    let mut watched = Watched::new(&nimbus).await;
    let second = nimbus.another_server("second").await;
    let _relay = second.relay();
    let other = Served::new(second.router.clone()).await;
    let mut here = watched.open(&watched.owner, "").await.unwrap();
    assert_eq!(next(&mut here).await.unwrap()["type"], "snapshot");
    let warned = json!({"event": "diagnostic", "at": "t", "unit": "net", "level": "warning", "message": "old"});
    let failed = json!({"event": "resource", "at": "t", "unit": "net", "status": "failed", "op": "create",
        "type": "a:b:C", "name": "c", "urn": "urn:c", "id": "i"});
    watched.append(&[warned, failed]).await;
    // The run goes on, and they are there.
    let frame = next(&mut here).await.unwrap();
    assert_eq!(frame["items"][0]["kind"], "warning");
    assert_eq!(frame["items"][1]["kind"], "error_occurred");
    drop(here);
    watched.append(&[unit("net", "failed")]).await;
    watched.address = other.address;
    let mut there = watched.open(&watched.owner, "&since=2").await.unwrap();
    assert_eq!(next(&mut there).await.unwrap()["type"], "resumed");
    let frame = next(&mut there).await.unwrap();
    assert_eq!(
        (&frame["items"][0]["seq"], &frame["items"][0]["kind"]),
        (&json!(3), &json!("error_occurred"))
    );
    watched.append(&[unit("db", "not_started")]).await;
    let frame = next(&mut there).await.unwrap();
    assert_eq!(
        (&frame["items"][0]["seq"], &frame["items"][0]["kind"]),
        (&json!(4), &json!("warning"))
    );
}

#[tokio::test]
async fn whoever_is_too_far_behind_is_told_of_the_gap_and_gets_a_snapshot() {
    let nimbus = installation!();
    let watched = Watched::new(&nimbus).await;
    watched.append(&vec![unit("net", "running"); 10_002]).await;
    let mut late = watched.open(&watched.owner, "&since=1").await.unwrap();
    let gap = next(&mut late).await.unwrap();
    assert_eq!(gap, json!({"type": "gap", "from": 2, "to": 10_002}));
    assert_eq!(next(&mut late).await.unwrap()["seq"], 10_002);
    // A place that there is not yet is not believed.
    let mut wrong = watched.open(&watched.owner, "&since=20000").await.unwrap();
    assert_eq!(next(&mut wrong).await.unwrap()["type"], "snapshot");
}

#[tokio::test]
async fn only_who_may_watches_and_only_as_long() {
    let nimbus = installation!();
    let watched = Watched::new(&nimbus).await;
    let refused = |opened: Result<Socket, Error>| match opened {
        Err(Error::Http(response)) => response.status(),
        other => panic!("{other:?}"),
    };
    for path in [watched.path(""), watched.path("&access_token=garbage")] {
        let opened = watched.open_at(&path, &[]).await;
        assert_eq!(refused(opened), StatusCode::UNAUTHORIZED, "{path}");
    }
    // Somebody of another tenant sees nothing.
    let other = nimbus.tenant(&watched.owner, "other").await;
    let elsewhere = nimbus
        .user(&watched.owner, &other, "eve@other.example", Some("admin"))
        .await;
    assert!(!elsewhere.is_empty());
    let eve = nimbus.token("other", "eve@other.example").await;
    let opened = watched.open(&eve, "").await;
    assert_eq!(refused(opened), StatusCode::NOT_FOUND);
    // A viewer watches. A page of another site does not get their cookie to work, ours does.
    let viewer = nimbus
        .user(
            &watched.owner,
            &watched.tenant.to_string(),
            "vi@acme.example",
            Some("viewer"),
        )
        .await;
    let token = nimbus.token("acme", "vi@acme.example").await;
    let cookie = format!("nimbus_session={token}");
    let foreign = [
        ("cookie", cookie.as_str()),
        ("origin", "https://evil.example"),
    ];
    let opened = watched.open_at(&watched.path(""), &foreign).await;
    assert_eq!(refused(opened), StatusCode::FORBIDDEN);
    let own = [("cookie", cookie.as_str()), ("origin", ORIGIN)];
    let mut signed_out = watched.open_at(&watched.path(""), &own).await.unwrap();
    assert_eq!(next(&mut signed_out).await.unwrap()["type"], "snapshot");
    let other_session = nimbus.token("acme", "vi@acme.example").await;
    let mut unassigned = watched.open(&other_session, "").await.unwrap();
    assert_eq!(next(&mut unassigned).await.unwrap()["type"], "snapshot");

    // What they send means nothing.
    unassigned
        .send(Message::Text("{\"type\":\"cancel\"}".into()))
        .await
        .unwrap();
    let began = std::time::Instant::now();
    nimbus
        .post("/api/v1/auth/logout", &token, json!({}))
        .await
        .ok();
    assert_eq!(next(&mut signed_out).await, Err(4401));
    assert!(began.elapsed() < Duration::from_secs(5));
    let list = format!("/api/v1/tenants/{}/role-assignments", watched.tenant);
    let assignments = nimbus.get(&list, &watched.owner).await.ok();
    let own = assignments["items"].as_array().unwrap().iter();
    let own = own.filter(|one| one["user_id"] == viewer.as_str());
    let began = std::time::Instant::now();
    for assignment in own {
        let path = format!("{list}/{}", text(&assignment["id"]));
        nimbus
            .call("DELETE", &path, Some(&watched.owner), None)
            .await
            .ok();
    }
    assert_eq!(next(&mut unassigned).await, Err(4404));
    assert!(began.elapsed() < Duration::from_secs(5));
}

#[tokio::test]
async fn a_runs_detail_its_units_and_its_log_are_read_in_parts() {
    let nimbus = installation!();
    let watched = Watched::new(&nimbus).await;
    let step = |name: String| {
        json!({"event": "resource", "at": "t", "unit": "net", "status": "done", "op": "create",
            "type": "aws:ec2/vpc:Vpc", "name": name, "urn": format!("urn:{name}"), "id": "i"})
    };
    let said = |unit: &str, level: &str, message: &str| json!({"event": "diagnostic", "at": "t", "unit": unit, "level": level, "message": message});
    watched.append(&[plan(), unit("net", "running")]).await;
    watched
        .append(&(0..5).map(|n| step(format!("r{n}"))).collect::<Vec<_>>())
        .await;
    let lines: Vec<Value> = (0..6)
        .map(|n| said("net", "info", &format!("line {n}")))
        .collect();
    watched.append(&lines).await;
    watched.append(&[said("db", "error", "no room")]).await;
    let get = async |path: &str| {
        let path = format!("/api/v1/runs/{}{path}", watched.run);
        nimbus.get(&path, &watched.owner).await
    };
    let detail = get("/detail?tenant=acme").await.ok();
    assert_eq!(detail["totals"]["resources"]["by_op"]["create"], 5);
    assert_eq!(detail["totals"]["errors"], 1);
    assert_eq!(detail["layers"], json!([["net"]]));
    let part = get("/units/net?tenant=acme&limit=3").await.ok();
    assert_eq!(
        (&part["next"], &part["resources"][2]["name"]),
        (&json!(3), &json!("r2"))
    );
    let rest = get("/units/net?tenant=acme&limit=3&after=3").await.ok();
    assert_eq!(rest["resources"].as_array().unwrap().len(), 2);
    assert!(rest.get("next").is_none());
    assert_eq!(
        get("/units/none?tenant=acme").await.status,
        StatusCode::NOT_FOUND
    );
    let messages = |page: &Value| -> Vec<String> {
        let lines = page["lines"].as_array().unwrap().iter();
        lines.map(|line| text(&line["message"])).collect()
    };
    let end = get("/log?tenant=acme&unit=net&limit=2").await.ok();
    assert_eq!(
        (messages(&end), &end["more"]),
        (vec!["line 4".into(), "line 5".into()], &json!(true))
    );
    let before = get(&format!(
        "/log?tenant=acme&unit=net&limit=4&before={}",
        end["first"]
    ))
    .await
    .ok();
    assert_eq!(messages(&before).len(), 4);
    assert_eq!(before["more"], false);
    let worse = get("/log?tenant=acme&level=warning").await.ok();
    assert_eq!(messages(&worse), ["no room"]);
    for wrong in ["level=loud", "before=1&after=2", "limit=0", "limit=3000"] {
        let answer = get(&format!("/log?tenant=acme&{wrong}")).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{wrong}");
    }
}
