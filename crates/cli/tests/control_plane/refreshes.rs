//! A refresh on a server: what is found is told live, shown, and put right by the next deploy.

use std::io::ErrorKind;
use std::net::TcpStream;
use std::sync::mpsc::{self, Receiver, Sender, TryRecvError};
use std::thread;
use std::time::Duration;

use nimbus_test_tools::{Tool, tool_or_skip};
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::stream::MaybeTlsStream;
use tokio_tungstenite::tungstenite::{Error, Message, WebSocket, connect};

use crate::deployments::ApiCaller;
use crate::remote::{Both, ID, with};
use crate::support::{PATIENCE, body_of, request};

/// A connection on which events of a tenant are heard. A thread of its own reads, so that signs of life are answered
/// while the test is about something else: a server ends a connection that gives none.
struct EventListener {
    heard: Receiver<String>,
    said: Sender<String>,
}

impl EventListener {
    fn open(caller: &ApiCaller, path: &str, protocol: Option<&'static str>) -> Self {
        let place = format!("ws://{}{path}", caller.address);
        let mut asked = place.into_client_request().unwrap();
        let headers = asked.headers_mut();
        let bearer = format!("Bearer {}", caller.token);
        headers.insert("authorization", bearer.parse().unwrap());
        if let Some(name) = protocol {
            headers.insert("sec-websocket-protocol", name.parse().unwrap());
        }
        let (socket, _) = connect(asked).unwrap();
        if let MaybeTlsStream::Plain(stream) = socket.get_ref() {
            let look = Duration::from_millis(50);
            stream.set_read_timeout(Some(look)).unwrap();
        }
        let (tell, heard) = mpsc::channel();
        let (said, wishes) = mpsc::channel();
        thread::spawn(move || attend(socket, &tell, &wishes));
        Self { heard, said }
    }

    /// Engine.IO 4 and Socket.IO 5 in plain texts, signed in; and what the server said then.
    fn of_socket_io(caller: &ApiCaller) -> (Self, Value) {
        let listener = Self::open(caller, "/socket.io/?EIO=4&transport=websocket", None);
        listener.say(format!("40{}", json!({"token": caller.token})));
        let ready = listener.event("ready");
        (listener, ready)
    }

    fn of_graphql(caller: &ApiCaller, query: &str) -> Self {
        let listener = Self::open(caller, "/graphql", Some("graphql-transport-ws"));
        listener.say(json!({"type": "connection_init"}).to_string());
        assert!(listener.text().contains("connection_ack"));
        let payload = json!({"query": query});
        let subscribe = json!({"type": "subscribe", "id": "1", "payload": payload});
        listener.say(subscribe.to_string());
        listener
    }

    fn say(&self, text: String) {
        self.said.send(text).unwrap();
    }

    fn text(&self) -> String {
        self.heard.recv_timeout(PATIENCE).unwrap()
    }

    /// The next event of Socket.IO with this name.
    fn event(&self, name: &str) -> Value {
        loop {
            let packet = self.text();
            let Some(said) = packet.strip_prefix("42") else {
                continue;
            };
            let said: Value = serde_json::from_str(said).unwrap();
            if said[0] == name {
                return said[1].clone();
            }
        }
    }

    /// The next thing that the subscription tells.
    fn told(&self, field: &str) -> Value {
        loop {
            let message: Value = serde_json::from_str(&self.text()).unwrap();
            if message["type"] == "next" {
                return message["payload"]["data"][field].clone();
            }
            assert_ne!(message["type"], "error", "{message}");
        }
    }
}

/// Says what the test wants said and hands on what is heard, until either end is gone.
fn attend(
    mut socket: WebSocket<MaybeTlsStream<TcpStream>>,
    tell: &Sender<String>,
    wishes: &Receiver<String>,
) {
    loop {
        let wish = wishes.try_recv();
        if wish == Err(TryRecvError::Disconnected) {
            return;
        }
        if let Ok(text) = wish
            && socket.send(Message::Text(text.into())).is_err()
        {
            return;
        }
        let text = match socket.read() {
            Ok(Message::Text(text)) => text.to_string(),
            Ok(_) => continue,
            Err(Error::Io(error))
                if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) =>
            {
                continue;
            }
            Err(_) => return,
        };
        // Engine.IO asks for a sign of life in a packet of its own.
        let lives = text != "2" || socket.send(Message::Text("3".into())).is_ok();
        if !lives || tell.send(text).is_err() {
            return;
        }
    }
}

fn graphql(caller: &ApiCaller, query: &str) -> Value {
    let headers = format!("Authorization: Bearer {}\r\n", caller.token);
    let body = json!({"query": query}).to_string();
    let (status, answer) = request(&caller.address, "POST", "/graphql", &headers, &body);
    assert_eq!(status, 200, "{answer}");
    let answer = body_of(&answer);
    assert!(answer["errors"].is_null(), "{answer}");
    answer["data"].clone()
}

#[test]
fn drift_is_told_shown_and_put_right_by_the_next_deploy() {
    let postgres = tool_or_skip!(Tool::Postgres);
    let sdk = tool_or_skip!(Tool::NodeSdk);
    let both = Both::new(&postgres, &sdk);
    both.push();
    both.same(&with("deploy", &[]), 0);
    // A look that finds nothing says the same here and there, and voids nothing.
    let looked = both.same(&with("refresh", &["--message", "look"]), 0);
    assert!(
        looked.stdout.contains("Stacks: 2 done"),
        "{}",
        looked.stdout
    );
    let skipped = both.same(&with("deploy", &[]), 0);
    assert!(skipped.stdout.contains("2 skipped"), "{}", skipped.stdout);

    let caller = ApiCaller::new(&both.server);
    let (live, ready) = EventListener::of_socket_io(&caller);
    let watched = format!(
        "subscription {{ driftDetected(tenantId: {}, since: {}) \
         {{ deployment environment unit run rehearsal traceId }} }}",
        ready["tenant_id"], ready["cursor"]
    );
    let subscribed = EventListener::of_graphql(&caller, &watched);
    let standing = || {
        let query = format!(
            "{{ deploymentStatus(id: \"{ID}\", rehearsal: true) {{ stacks {{ name state }} }} }}"
        );
        let told = graphql(&caller, &query)["deploymentStatus"][0]["stacks"].clone();
        let shown = both.there(&["status", ID, "--rehearse", "--json"]).json();
        let shown = shown["environments"][0]["stacks"].clone();
        let states = |list: &Value| {
            let list = list.as_array().unwrap().iter();
            let one = |one: &Value| {
                (
                    one["name"].as_str().unwrap().to_owned(),
                    one["state"].as_str().unwrap().to_owned(),
                )
            };
            list.map(one).collect::<std::collections::BTreeMap<_, _>>()
        };
        assert_eq!(states(&told), states(&shown));
        states(&shown)
    };
    assert_eq!(standing()["second"], "deployed");

    // Somebody deleted what `second` has, behind the engine's back. All of what a unit has is more than a look
    // believes by itself, and then nothing is written.
    let vanish = json!({"environment": "dev", "rehearsal": true, "stacks": ["second"],
        "orders": ["on: read, name: thing, do: vanish"]});
    let run = caller.post(&format!("/deployments/{ID}/refresh"), &vanish);
    let (ended, events) = caller.finish(&run);
    assert_eq!(ended["result"], "failed", "{ended} {events:?}");
    assert!(
        events
            .iter()
            .any(|event| event.to_string().contains("--allow-mass-removal")),
        "{events:?}"
    );
    assert_eq!(standing()["second"], "deployed");

    let mutation = format!(
        "mutation {{ refresh(id: \"{ID}\", input: {{environment: \"dev\", rehearsal: true, stacks: [\"second\"], \
         allowMassRemoval: true, orders: [\"on: read, name: thing, do: vanish\"]}}) {{ id number action }} }}"
    );
    let run = graphql(&caller, &mutation)["refresh"].clone();
    assert_eq!(run["action"], "refresh");
    let (ended, events) = caller.finish(&run);
    assert_eq!(ended["result"], "succeeded", "{ended} {events:?}");
    // Told once, by the run that found it and not by the one that was refused.
    let event = live.event("drift.detected");
    assert_eq!(
        event["data"],
        json!({"resource_id": "second", "resource_type": "units", "deployment": ID, "environment": "dev",
            "rehearsal": true, "run": run["number"]})
    );
    let told = subscribed.told("driftDetected");
    assert_eq!(
        (&told["unit"], &told["run"], &told["deployment"]),
        (&json!("second"), &run["number"], &json!(ID)),
        "{told}"
    );
    assert_eq!(told["traceId"], event["trace_id"]);
    assert!(told["traceId"].is_string(), "{told}");
    let stands = standing();
    assert_eq!(
        (stands["first"].as_str(), stands["second"].as_str()),
        ("deployed", "drifted")
    );

    // What is known is no news: another look tells nothing, as the next event below shows.
    both.there(&with("refresh", &[])).expect(0);
    assert_eq!(standing()["second"], "drifted");

    // The skip is void: the next deploy makes again what is gone, and nothing else.
    let mended = both.there(&with("deploy", &["--json"])).expect(0);
    let lines = mended.stdout.lines();
    let lines: Vec<Value> = lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let ends = |unit: &str| {
        let of_unit = |line: &&Value| line["event"] == "unit" && line["unit"] == unit;
        let last = lines.iter().rfind(of_unit).unwrap();
        last["status"].as_str().unwrap().to_owned()
    };
    assert_eq!(
        (ends("first"), ends("second")),
        ("skipped".into(), "succeeded".into())
    );
    assert!(
        lines.iter().any(|line| line["event"] == "resource"
            && line["op"] == "create"
            && line["type"] == "demo:index:Thing"),
        "{}",
        mended.stdout
    );
    assert_eq!(standing()["second"], "deployed");

    // What drifts again is told again.
    let again = graphql(&caller, &mutation)["refresh"].clone();
    assert_eq!(caller.finish(&again).0["result"], "succeeded");
    assert_eq!(live.event("drift.detected")["data"]["run"], again["number"]);
    assert_eq!(subscribed.told("driftDetected")["run"], again["number"]);
    let metrics = request(&both.server.address(), "GET", "/metrics", "", "").1;
    let counted = r#"nimbus_runs_total{action="refresh",result="succeeded"} 4"#;
    assert!(metrics.contains(counted), "{metrics}");
    assert_eq!(both.server.stop(), 0);
}
