//! Deployments over the API: the server carries runs out, and its sudden end interrupts none of them for long.

use std::time::Instant;

use nimbus_test_tools::{Tool, tool_or_skip};
use serde_json::{Value, json};

use crate::support::{PATIENCE, Site, Up, body_of, request};

/// A server, and somebody who is signed in at it.
pub(crate) struct ApiCaller {
    address: String,
    token: String,
}

impl ApiCaller {
    pub(crate) fn new(server: &Up) -> Self {
        let (status, answer) = server.login("");
        assert_eq!(status, 200, "{answer}");
        let token = body_of(&answer)["access_token"]
            .as_str()
            .unwrap()
            .to_owned();
        Self {
            address: server.address(),
            token,
        }
    }

    pub(crate) fn ask(&self, method: &str, path: &str, more: &str, body: &Value) -> (u16, String) {
        let headers = format!("Authorization: Bearer {}\r\n{more}", self.token);
        let body = match body {
            Value::Null => String::new(),
            body => body.to_string(),
        };
        request(
            &self.address,
            method,
            &format!("/api/v1{path}"),
            &headers,
            &body,
        )
    }

    pub(crate) fn get(&self, path: &str) -> Value {
        let (status, answer) = self.ask("GET", path, "", &Value::Null);
        assert_eq!(status, 200, "{path}: {answer}");
        body_of(&answer)
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> Value {
        let (status, answer) = self.ask("POST", path, "", body);
        assert!((200..300).contains(&status), "{path}: {answer}");
        body_of(&answer)
    }

    /// Every event of a run once `enough` has seen what it waits for, or the run is over.
    pub(crate) fn watch(&self, run: &Value, enough: impl Fn(&Value) -> bool) -> Vec<Value> {
        let started = Instant::now();
        let (mut events, mut after) = (Vec::new(), 0);
        loop {
            let id = run["id"].as_str().unwrap();
            let page = self.get(&format!("/runs/{id}/events?after={after}"));
            after = page["next"].as_i64().unwrap();
            for item in page["items"].as_array().unwrap() {
                let seq = i64::try_from(events.len()).unwrap() + 1;
                assert_eq!(item["seq"], seq, "nothing is lost or doubled");
                events.push(item["event"].clone());
            }
            if page["complete"] == true || events.iter().any(&enough) {
                return events;
            }
            assert!(started.elapsed() < PATIENCE, "{events:?}");
            // tidy-allow(sleep): the events of a run are asked for, as a client without a socket does
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
    }

    pub(crate) fn finish(&self, run: &Value) -> (Value, Vec<Value>) {
        let events = self.watch(run, |_| false);
        let id = run["id"].as_str().unwrap();
        (self.get(&format!("/runs/{id}")), events)
    }
}

/// A program that makes one resource, after a while.
pub(crate) fn program(milliseconds: u32) -> String {
    format!(
        "const pulumi = require('@pulumi/pulumi');
module.exports = (async () => {{
    await new Promise((done) => setTimeout(done, {milliseconds}));
    const made = new pulumi.CustomResource('demo:index:Thing', 'thing', {{ size: '1' }});
    return {{ first: made.id }};
}})();
"
    )
}

pub(crate) fn register(caller: &ApiCaller, name: &str, needs: &str, milliseconds: u32) {
    let template = format!(
        "name: {name}\ndependencies: [{needs}]\nconfig:\n  size: '1'\noutputs: {{first: }}\n"
    );
    let files = json!({
        "src/Pulumi.yaml": format!("name: {name}\nruntime: nodejs\ndescription: {name}\n"),
        "src/package.json": "{\"main\":\"index.js\"}\n",
        "src/index.js": program(milliseconds),
    });
    caller.post(
        "/stacks",
        &json!({"name": name, "template": template, "files": files}),
    );
}

fn statuses(events: &[Value], unit: &str) -> Vec<String> {
    let of_unit = |event: &&Value| event["event"] == "unit" && event["unit"] == unit;
    let status = |event: &Value| event["status"].as_str().unwrap().to_owned();
    events.iter().filter(of_unit).map(status).collect()
}

#[test]
fn a_deployment_is_made_deployed_skipped_and_gone_on_with_after_a_kill() {
    let postgres = tool_or_skip!(Tool::Postgres);
    let sdk = tool_or_skip!(Tool::NodeSdk);
    let modules = sdk.join("node_modules").display().to_string();
    let path = std::env::var("PATH").unwrap();
    let site = Site::new(&postgres)
        .with("PATH", &path)
        .with("NIMBUS_ENGINE_SANDBOX", "best-effort")
        .with("NIMBUS_RATE_LIMITING_ENABLED", "false")
        .with("NIMBUS_RUNS_NODE_MODULES", &modules);
    let mut server = site.up();
    site.set_up(&server);
    let caller = ApiCaller::new(&server);
    register(&caller, "first", "", 1);
    register(&caller, "second", "first", 1);
    let template = "name: pair\ndescription: Two stacks\nenvironments:\n  dev: {enabled: true, \
                    account: '111111111111', region: eu-west-1}\nstacks: {first: , second: }\n";
    caller.post("/templates", &json!({"content": template}));
    let wanted = json!({"id": "D1PAIR", "organization": "o", "project": "p", "template": "pair"});
    let key = "Idempotency-Key: once\r\n";
    let (status, made) = caller.ask("POST", "/deployments", key, &wanted);
    assert_eq!(status, 201, "{made}");
    let (status, again) = caller.ask("POST", "/deployments", key, &wanted);
    assert_eq!((status, body_of(&again)), (201, body_of(&made)));

    let (status, refused) = caller.ask(
        "POST",
        "/deployments/D1PAIR/deploy",
        "",
        &json!({"environment": "dev"}),
    );
    assert_ne!(status / 100, 2, "{refused}");
    assert!(refused.contains("NIM-0880"), "{refused}");
    let rehearse = json!({"environment": "dev", "rehearsal": true, "transpile_only": true});
    let run = caller.post("/deployments/D1PAIR/deploy", &rehearse);
    let (ended, events) = caller.finish(&run);
    assert_eq!(ended["result"], "succeeded", "{ended} {events:?}");
    assert_eq!(statuses(&events, "second"), ["running", "succeeded"]);
    let second = caller.post("/deployments/D1PAIR/deploy", &rehearse);
    let (ended, events) = caller.finish(&second);
    assert_eq!(ended["result"], "succeeded", "{ended} {events:?}");
    assert_eq!(statuses(&events, "first"), ["skipped"]);

    // A program that takes its time is at it when the server is killed.
    let (status, changed) = caller.ask(
        "PUT",
        "/stacks/second",
        "",
        &json!({
            "template": "name: second\ndependencies: [first]\nconfig:\n  size: '1'\noutputs: {first: }\n",
            "files": {
                "src/Pulumi.yaml": "name: second\nruntime: nodejs\ndescription: second\n",
                "src/package.json": "{\"main\":\"index.js\"}\n",
                "src/index.js": program(4000),
            },
        }),
    );
    assert_eq!(status, 200, "{changed}");
    let third = caller.post("/deployments/D1PAIR/deploy", &rehearse);
    caller.watch(&third, |event| {
        event["event"] == "unit" && event["unit"] == "second" && event["status"] == "running"
    });
    server.process.kill().unwrap();
    server.process.wait().unwrap();
    server = site.up();
    let caller = ApiCaller::new(&server);
    let (ended, events) = caller.finish(&third);
    assert_eq!(ended["result"], "succeeded", "{ended} {events:?}");
    assert!(
        events.iter().any(|event| event["status"] == "resumed"),
        "{events:?}"
    );
    let status = caller.get("/deployments/D1PAIR/status");
    assert_eq!(
        status["items"][0]["last_run"]["number"], "R0003",
        "{status}"
    );
    assert_eq!(server.stop(), 0);
}
