//! Live events over Socket.IO as it goes over the wire, spoken by the tests themselves: what a client of any make hears,
//! with none installed. What the official one makes of it is in `live_rooms.rs`.

use axum::http::StatusCode;
use futures::{SinkExt as _, StreamExt as _};
use nimbus_control_api::{ApiLimits, ApiState, Limit, router};
use nimbus_core::TenantId;
use serde_json::{Value, json};
use tokio_tungstenite::connect_async;
use tokio_tungstenite::tungstenite::Message;

use crate::live::{PATIENCE, Socket};
use crate::live_rooms::{Site, number, publish};
use crate::socket_io::Served;
use crate::support::{ORIGIN, installation, text};

/// A connection that speaks Engine.IO 4 and Socket.IO 5 in plain texts.
pub(crate) struct WireClient {
    socket: Socket,
    /// What came while something else was waited for: a kind and what it says.
    waiting: Vec<(String, Value)>,
    asked: u64,
}

impl WireClient {
    /// Connected to the protocol, before anybody said who they are.
    async fn open(served: &Served) -> Self {
        let place = format!(
            "ws://{}/socket.io/?EIO=4&transport=websocket",
            served.address
        );
        let (socket, _) = connect_async(place).await.unwrap();
        Self {
            socket,
            waiting: Vec::new(),
            asked: 0,
        }
    }

    /// Signed in and welcomed; what the server said.
    pub(crate) async fn connected(served: &Served, auth: Value) -> (Self, Value) {
        let mut client = Self::open(served).await;
        client.send(format!("40{auth}")).await;
        let ready = client.event("ready").await;
        (client, ready)
    }

    async fn send(&mut self, packet: String) {
        let sent = self.socket.send(Message::Text(packet.into())).await;
        sent.unwrap();
    }

    /// The next packet, as a kind and what it says: `event:<name>`, `answer:<id>`, `connected`, `refused` or `ended`.
    pub(crate) async fn packet(&mut self) -> (String, Value) {
        loop {
            let message = tokio::time::timeout(PATIENCE, self.socket.next()).await;
            let message =
                message.unwrap_or_else(|_| panic!("nothing came after {:?}", self.waiting));
            let packet = match message {
                Some(Ok(Message::Text(packet))) => packet.to_string(),
                None | Some(Err(_) | Ok(Message::Close(_))) => {
                    return ("ended".to_owned(), Value::Null);
                }
                Some(Ok(_)) => continue,
            };
            let read =
                |from: usize| serde_json::from_str::<Value>(&packet[from..]).unwrap_or_default();
            match packet.get(..2).unwrap_or(&packet) {
                // A sign of life is answered with one.
                "2" => self.send("3".to_owned()).await,
                "40" => return ("connected".to_owned(), read(2)),
                "41" => return ("ended".to_owned(), Value::Null),
                "42" => {
                    let said = read(2);
                    return (format!("event:{}", text(&said[0])), said[1].clone());
                }
                "43" => {
                    let id: String = packet[2..]
                        .chars()
                        .take_while(char::is_ascii_digit)
                        .collect();
                    let said = read(2 + id.len());
                    return (format!("answer:{id}"), said[0].clone());
                }
                "44" => return ("refused".to_owned(), read(2)),
                // What the transport says of itself.
                _ => {}
            }
        }
    }

    async fn until(&mut self, wanted: impl Fn(&str, &Value) -> bool) -> Value {
        let known = self.waiting.iter();
        let mut places = known.map(|(kind, said)| wanted(kind, said));
        if let Some(place) = places.position(|found| found) {
            return self.waiting.remove(place).1;
        }
        loop {
            let (kind, said) = self.packet().await;
            if wanted(&kind, &said) {
                return said;
            }
            assert_ne!(kind, "ended", "after {:?}", self.waiting);
            self.waiting.push((kind, said));
        }
    }

    pub(crate) async fn event(&mut self, name: &str) -> Value {
        let wanted = format!("event:{name}");
        self.until(|kind, _| kind == wanted).await
    }

    /// The answer of the server to a request.
    pub(crate) async fn ask(&mut self, name: &str, message: Value) -> Value {
        self.asked += 1;
        let wanted = format!("answer:{}", self.asked);
        let packet = format!("42{}{}", self.asked, json!([name, message]));
        self.send(packet).await;
        self.until(|kind, _| kind == wanted).await
    }

    /// Reads until the event with this number. Types of all events that came before it and were not waited for, and
    /// their numbers.
    async fn heard_until(&mut self, last: i64) -> (Vec<String>, Vec<i64>) {
        self.until(|_, said| number(said) == Some(last)).await;
        let heard = std::mem::take(&mut self.waiting);
        let kinds = heard
            .iter()
            .map(|(_, said)| said["type"].as_str().unwrap_or_default());
        let kinds = kinds.map(ToOwned::to_owned).collect();
        let mut numbers: Vec<_> = heard.iter().filter_map(|(_, said)| number(said)).collect();
        numbers.push(last);
        (kinds, numbers)
    }
}

#[tokio::test]
async fn a_connection_is_in_the_rooms_of_its_token_and_hears_what_is_about_them() {
    let site = Site::new(installation!()).await;
    let (viewer, token) = site.person("vi", Some("viewer")).await;
    let (mut vi, ready) = WireClient::connected(&site.served, json!({"token": token})).await;
    let own = [format!("tenant:{}", site.acme), format!("user:{viewer}")];
    assert_eq!(ready["rooms"], json!(own));
    let (_, token) = site.person("ann", Some("admin")).await;
    let (mut ann, _) = WireClient::connected(&site.served, json!({"token": token})).await;
    // The tenant's room: a change is told to those who may hear it, once, although it is in two of vi's rooms.
    let path = format!("/api/v1/tenants/{}/users/{viewer}", site.acme);
    let rename = async |name: &str| {
        let change = json!({"display_name": name});
        let call = site
            .nimbus
            .call("PATCH", &path, Some(&site.owner), Some(change));
        assert_eq!(call.await.status, StatusCode::OK);
    };
    rename("Violet").await;
    for client in [&mut vi, &mut ann] {
        let event = client.event("user.updated").await;
        assert_eq!(event["data"]["changes"]["display_name"], "Violet");
        assert_eq!(event["data"]["resource_id"], viewer.as_str());
    }
    publish(&site.nimbus, site.acme, 0..1, 1).await;
    let (kinds, _) = vi.heard_until(0).await;
    assert!(
        !kinds.iter().any(|kind| kind == "user.updated"),
        "{kinds:?}"
    );
    assert!(
        !kinds.iter().any(|kind| kind == "audit.recorded"),
        "{kinds:?}"
    );
    let (kinds, _) = ann.heard_until(0).await;
    assert!(
        kinds.iter().any(|kind| kind == "audit.recorded"),
        "{kinds:?}"
    );
    // A resource's room tells what is about it and nothing else.
    let left = ann.ask("unsubscribe", json!({"room": own[0]})).await;
    assert_eq!(left["ok"], true, "{left}");
    let room = json!({"room": format!("resource:{viewer}")});
    assert_eq!(ann.ask("subscribe", room).await["ok"], true);
    site.person("joe", None).await;
    rename("Vera").await;
    let event = ann.event("user.updated").await;
    assert_eq!(event["data"]["changes"]["display_name"], "Vera");
    let others = |kind: &str| kind == "event:user.created";
    assert!(
        !ann.waiting.iter().any(|(kind, _)| others(kind)),
        "{:?}",
        ann.waiting
    );
    // A user's room is that user's alone, whatever else one may hear.
    let back = ann.ask("subscribe", json!({"room": own[0]})).await;
    assert_eq!(back["ok"], true, "{back}");
    site.nimbus.token("acme", "vi@acme.example").await;
    vi.event("session.started").await;
    publish(&site.nimbus, site.acme, 1..2, 1).await;
    let (kinds, _) = ann.heard_until(1).await;
    assert!(
        !kinds.iter().any(|kind| kind == "session.started"),
        "{kinds:?}"
    );
}

#[tokio::test]
async fn nobody_without_a_token_connects_and_rooms_of_others_are_not_there() {
    let site = Site::new(installation!()).await;
    for auth in [json!({}), json!({"token": "garbage"})] {
        let mut nobody = WireClient::open(&site.served).await;
        nobody.send(format!("40{auth}")).await;
        let refused = nobody.until(|kind, _| kind == "refused").await;
        assert!(text(&refused["message"]).starts_with("NIM-08"), "{refused}");
    }
    let other = site.nimbus.tenant(&site.owner, "other").await;
    let email = "eve@other.example";
    site.nimbus
        .user(&site.owner, &other, email, Some("admin"))
        .await;
    let (viewer, _) = site.person("vi", Some("viewer")).await;
    let token = site.nimbus.token("other", email).await;
    let (mut eve, _) = WireClient::connected(&site.served, json!({"token": token})).await;
    let nowhere = json!({"room": format!("tenant:{}", uuid::Uuid::new_v4())});
    let absent = eve.ask("subscribe", nowhere).await;
    assert_eq!(absent["error"]["code"], "NIM-0856", "{absent}");
    for room in [
        json!({"room": format!("tenant:{}", site.acme)}),
        json!({"room": format!("user:{viewer}")}),
        json!({"room": format!("resource:{viewer}"), "tenant": site.acme.to_string()}),
        json!({"room": "stack_instance:D1/dev", "tenant": "acme"}),
    ] {
        assert_eq!(eve.ask("subscribe", room.clone()).await, absent, "{room}");
    }
    publish(&site.nimbus, site.acme, 0..5, 1).await;
    publish(&site.nimbus, other.parse().unwrap(), 10..11, 1).await;
    assert_eq!(eve.heard_until(10).await.1, [10]);
}

#[tokio::test]
async fn a_connection_asks_as_often_as_its_caller_may() {
    let mut nimbus = installation!();
    let owner = nimbus.set_up().await;
    let many = Limit::per_second(1_000_000);
    let limits = ApiLimits::new(many, many, Limit::per_minute(10));
    let state = ApiState::new(nimbus.app.clone(), vec![ORIGIN.to_owned()], limits);
    nimbus.router = router(state);
    let _relay = nimbus.relay();
    let served = Served::new(nimbus.router.clone()).await;
    let (mut client, _) = WireClient::connected(&served, json!({"token": owner})).await;
    let room = json!({"room": format!("tenant:{}", nimbus.root)});
    assert_eq!(client.ask("subscribe", room.clone()).await["ok"], true);
    let mut refused = Value::Null;
    for _ in 0..40 {
        refused = client.ask("subscribe", room.clone()).await;
        if refused["ok"] == false {
            break;
        }
    }
    let words = text(&refused["error"]["message"]);
    assert!(words.starts_with("too many attempts"), "{refused}");
}

#[tokio::test]
async fn what_was_done_at_another_server_is_heard_here_without_a_broker() {
    let nimbus = installation!();
    let owner = nimbus.set_up().await;
    let acme: TenantId = nimbus.tenant(&owner, "acme").await.parse().unwrap();
    let second = nimbus.another_server("second").await;
    let (one, two) = (
        Served::new(nimbus.router.clone()).await,
        Served::new(second.router.clone()).await,
    );
    let (_relay, _other) = (nimbus.relay(), second.relay());
    let room = json!({"room": format!("tenant:{acme}")});
    let (mut here, _) = WireClient::connected(&one, json!({"token": owner})).await;
    let (mut there, _) = WireClient::connected(&two, json!({"token": owner})).await;
    for client in [&mut here, &mut there] {
        assert_eq!(client.ask("subscribe", room.clone()).await["ok"], true);
    }
    publish(&nimbus, acme, 0..20, 1).await;
    publish(&second, acme, 20..40, 1).await;
    let all: Vec<i64> = (0..40).collect();
    assert_eq!(here.heard_until(39).await.1, all);
    assert_eq!(there.heard_until(39).await.1, all);
}
