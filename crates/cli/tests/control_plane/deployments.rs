//! Deployments over the API: the server carries runs out, and its sudden end interrupts none of them for long.

use std::time::Instant;

use nimbus_test_tools::{Tool, tool_or_skip};
use serde_json::{Value, json};

use crate::support::{PATIENCE, Site, Up, body_of, request, wait_for};
use crate::{cmdb, unit_states};

/// A server, and somebody who is signed in at it.
pub(crate) struct ApiCaller {
    pub(crate) address: String,
    pub(crate) token: String,
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

    /// What happened in a run, in the words of document 004, without what is only said, and once for each resource of a
    /// program.
    fn kinds(&self, run: &Value) -> Vec<String> {
        let id = run["id"].as_str().unwrap();
        let page = self.get(&format!("/runs/{id}/events"));
        let items = page["items"].as_array().unwrap().iter();
        let told = items.filter(|item| {
            let event = &item["event"];
            let own = event["type"]
                .as_str()
                .is_some_and(|kind| kind.starts_with("demo:"));
            match item["kind"].as_str().unwrap() {
                "plan" | "log" | "warning" | "check" | "resource_started" => false,
                kind => !kind.starts_with("resource_") || own,
            }
        });
        told.map(|item| item["kind"].as_str().unwrap().to_owned())
            .collect()
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
    let site = Site::of_programs(&postgres, &sdk);
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
    assert_eq!(status, 422, "{refused}");
    assert!(refused.contains("NIM-0880"), "{refused}");
    let rehearse = json!({"environment": "dev", "rehearsal": true, "transpile_only": true});
    let run = caller.post("/deployments/D1PAIR/deploy", &rehearse);
    let (ended, events) = caller.finish(&run);
    assert_eq!(ended["result"], "succeeded", "{ended} {events:?}");
    assert_eq!(statuses(&events, "second"), ["running", "succeeded"]);
    assert_eq!(
        caller.kinds(&run),
        [
            "deployment_started",
            "layer_started",
            "stack_started",
            "resource_created",
            "stack_completed",
            "layer_completed",
            "layer_started",
            "stack_started",
            "resource_created",
            "stack_completed",
            "layer_completed",
            "deployment_completed",
        ]
    );
    let id = run["id"].as_str().unwrap();
    let detail = caller.get(&format!("/runs/{id}/detail"));
    assert_eq!(detail["units"][1]["needs"], json!(["first"]), "{detail}");
    assert_eq!(detail["seq"], detail["run"]["last_seq"]);
    let second = caller.post("/deployments/D1PAIR/deploy", &rehearse);
    let (ended, events) = caller.finish(&second);
    assert_eq!(ended["result"], "succeeded", "{ended} {events:?}");
    assert_eq!(statuses(&events, "first"), ["skipped"]);

    // What they came to is counted: two runs, a stack that ran and one that was skipped in each, and its resource.
    let (status, counted) = request(&server.address(), "GET", "/metrics", "", "");
    assert_eq!(status, 200, "{counted}");
    for line in [
        r#"nimbus_runs_total{action="deploy",result="succeeded"} 2"#,
        r#"nimbus_units_total{status="succeeded"} 2"#,
        r#"nimbus_units_total{status="skipped"} 2"#,
        r#"nimbus_unit_duration_seconds_count{stack="other"} 2"#,
        r#"nimbus_resource_operations_total{operation="create",outcome="done"} "#,
    ] {
        assert!(counted.contains(line), "{line}\n{counted}");
    }
    assert!(!counted.contains("stack=\"first\""), "{counted}");

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
    // Each deploy was a workflow, that of the killed server's run too.
    let ended = "/workflows?type=ComponentDeployWorkflow&ended=true";
    wait_for("the workflows ended as their runs did", || {
        let (status, answer) = caller.ask("GET", ended, "", &Value::Null);
        status == 200 && answer.matches(r#""status":"succeeded""#).count() == 3
    });
    assert_eq!(server.stop(), 0);
}

pub(crate) fn slow_down(caller: &ApiCaller, name: &str, milliseconds: u32, size: u32) {
    put_program(caller, name, &program(milliseconds), size);
}

fn put_program(caller: &ApiCaller, name: &str, source: &str, size: u32) {
    let (status, changed) = caller.ask(
        "PUT",
        &format!("/stacks/{name}"),
        "",
        &json!({
            "template": format!("name: {name}\nconfig:\n  size: '{size}'\noutputs: {{first: }}\n"),
            "files": {
                "src/Pulumi.yaml": format!("name: {name}\nruntime: nodejs\ndescription: {name}\n"),
                "src/package.json": "{\"main\":\"index.js\"}\n",
                "src/index.js": source,
            },
        }),
    );
    assert_eq!(status, 200, "{changed}");
}

#[test]
fn runs_are_previewed_paused_cancelled_rolled_back_and_destroyed() {
    let postgres = tool_or_skip!(Tool::Postgres);
    let sdk = tool_or_skip!(Tool::NodeSdk);
    let site = Site::of_programs(&postgres, &sdk);
    let server = site.up();
    site.set_up(&server);
    let caller = ApiCaller::new(&server);
    register(&caller, "first", "", 1);
    register(&caller, "second", "first", 1);
    let template = "name: pair\ndescription: Two stacks\nenvironments:\n  dev: {enabled: true, \
                    account: '111111111111', region: eu-west-1}\nstacks: {first: , second: }\n";
    caller.post("/templates", &json!({"content": template}));
    let wanted = json!({"id": "D1ACTS", "organization": "o", "project": "p", "template": "pair"});
    caller.post("/deployments", &wanted);
    let rehearse = json!({"environment": "dev", "rehearsal": true, "transpile_only": true});
    let act = |what: &str| caller.post(&format!("/deployments/D1ACTS/{what}"), &rehearse);
    let signal = |run: &Value, what: &str| {
        let id = run["id"].as_str().unwrap();
        caller.post(&format!("/runs/{id}/{what}"), &Value::Null)
    };

    // A preview shows and changes nothing.
    let (preview, events) = caller.finish(&act("preview"));
    assert_eq!(preview["result"], "succeeded", "{preview} {events:?}");
    let planned = |event: &&Value| event["event"] == "resource" && event["status"] == "planned";
    assert!(events.iter().any(|event| planned(&event)), "{events:?}");
    assert!(
        !events
            .iter()
            .any(|event| event["event"] == "resource" && event["status"] == "done")
    );

    // A deploy does what that preview showed. Once it is done the plan is of another state, and does nothing.
    let held = |plan: &Value| {
        let mut body = rehearse.clone();
        body["plan"] = plan["id"].clone();
        body
    };
    let deploy = |plan: &Value| caller.post("/deployments/D1ACTS/deploy", &held(plan));
    let (done, events) = caller.finish(&deploy(&preview));
    assert_eq!(
        (&done["result"], &done["plan"]),
        (&json!("succeeded"), &preview["id"]),
        "{done} {events:?}"
    );
    let (late, events) = caller.finish(&deploy(&preview));
    assert_eq!(late["problem"]["code"], "NIM-0601", "{late}");
    assert!(
        !events.iter().any(|event| event["event"] == "resource"),
        "{events:?}"
    );
    // What is no preview of this environment seals nothing.
    let nobodys = json!({"id": "00000000-0000-4000-8000-000000000000"});
    for body in [held(&done), held(&nobodys), held(&json!({"id": "x"}))] {
        let (status, answer) = caller.ask("POST", "/deployments/D1ACTS/deploy", "", &body);
        assert_eq!(status, 400, "{answer}");
        assert!(answer.contains("\"plan\""), "{answer}");
    }
    let (status, answer) = caller.ask("POST", "/deployments/D1ACTS/destroy", "", &held(&preview));
    assert_eq!(status, 400, "{answer}");

    // What is only a warning and what fails are told apart, each when it happens.
    let broken = "const pulumi = require('@pulumi/pulumi');
pulumi.log.warn('this is old');
new pulumi.CustomResource('demo:index:Thing', 'thing', { size: '1' });
throw new Error('and this is broken');
";
    put_program(&caller, "first", broken, 1);
    let failing = act("deploy");
    let (ended, events) = caller.finish(&failing);
    assert_ne!(ended["result"], "succeeded", "{ended} {events:?}");
    let path = format!("/runs/{}/events", failing["id"].as_str().unwrap());
    let page = caller.get(&path);
    let items = page["items"].as_array().unwrap();
    let place = |kind: &str, text: &str| {
        let said = |item: &Value| item["kind"] == kind && item.to_string().contains(text);
        items.iter().position(said)
    };
    let (warned, failed) = (
        place("warning", "this is old"),
        place("error_occurred", "and this is broken"),
    );
    assert!(warned.is_some() && failed.is_some(), "{items:?}");
    assert!(
        warned < failed && failed < Some(items.len() - 1),
        "{items:?}"
    );
    // A run that is at work is paused between two steps; one that waits for it is cancelled, or paused and gone on with.
    slow_down(&caller, "first", 2000, 2);
    let busy = act("deploy");
    caller.watch(&busy, |event| {
        event["event"] == "unit" && event["unit"] == "first" && event["status"] == "running"
    });
    let (unwanted, later) = (act("deploy"), act("deploy"));
    assert_eq!(
        (&unwanted["position"], &later["position"]),
        (&json!(0), &json!(1))
    );
    unit_states::is_refused_while_a_run_is_open(&caller);
    assert_eq!(signal(&unwanted, "cancel")["result"], "cancelled");
    assert_eq!(signal(&later, "pause")["status"], "paused");
    assert_eq!(signal(&busy, "pause")["wish"], "pause");
    let started = Instant::now();
    loop {
        let run = caller.get(&format!("/runs/{}", busy["id"].as_str().unwrap()));
        if run["status"] == "paused" {
            break;
        }
        assert!(started.elapsed() < PATIENCE, "{run}");
        // tidy-allow(sleep): a run is asked for until it is paused
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    assert_eq!(signal(&busy, "resume")["status"], "queued");
    let (ended, events) = caller.finish(&busy);
    assert_eq!(ended["result"], "succeeded", "{ended} {events:?}");
    assert_eq!(signal(&later, "resume")["status"], "queued");
    assert_eq!(caller.finish(&later).0["result"], "succeeded");

    // What is there can be looked at, and taken along.
    let query = "environment=dev&rehearsal=true";
    let state = caller.get(&format!("/deployments/D1ACTS/state?{query}"));
    let units = state["units"].as_array().unwrap();
    assert_eq!(units.len(), 2, "{state}");
    for unit in units {
        let made = unit["resources"].as_array().unwrap().iter();
        let mut made = made.filter(|one| one["type"] == "demo:index:Thing");
        let thing = made.next().unwrap_or_else(|| panic!("{unit}"));
        assert!(
            thing["id"].as_str().is_some_and(|id| !id.is_empty()),
            "{unit}"
        );
    }
    let outputs = caller.get(&format!("/deployments/D1ACTS/outputs?{query}"));
    let made = outputs["units"][units[0]["unit"].as_str().unwrap()]["first"].as_str();
    assert!(made.is_some(), "{outputs}");
    assert_eq!(outputs["units"].as_object().unwrap().len(), 2, "{outputs}");
    let wanted = json!({"environment": "dev", "rehearsal": true});
    let export = caller.post("/deployments/D1ACTS/state/export", &wanted);
    let exported = export["units"].as_object().unwrap();
    assert_eq!(exported.len(), 2, "{export}");
    // The form that `pulumi stack import` reads.
    for state in exported.values() {
        assert_eq!(state["version"], 3, "{export}");
        let resources = state["deployment"]["resources"].as_array().unwrap();
        assert!(
            resources
                .iter()
                .any(|one| one["type"] == "demo:index:Thing"),
            "{export}"
        );
    }

    unit_states::has_versions_with_differences(&caller);
    cmdb::has_the_items_of_both_units(&site, &caller);

    // Back to what was there before, and away.
    let (back, events) = caller.finish(&act("rollback"));
    assert_eq!(
        (&back["action"], &back["result"]),
        (&json!("rollback"), &json!("succeeded")),
        "{events:?}"
    );
    unit_states::is_mended_step_by_step(&caller);
    let (gone, events) = caller.finish(&act("destroy"));
    assert_eq!(gone["result"], "succeeded", "{gone} {events:?}");
    let deleted = |event: &&Value| event["event"] == "resource" && event["op"] == "delete";
    assert!(events.iter().any(|event| deleted(&event)), "{events:?}");
    cmdb::has_decommissioned_all(&site, &caller);

    // A manifest that somebody else changed meanwhile is not written over.
    let (_, found) = caller.ask("GET", "/deployments/D1ACTS", "", &Value::Null);
    let tag = found
        .lines()
        .find(|line| line.to_lowercase().starts_with("etag:"))
        .unwrap();
    let tag = tag.split_once(':').unwrap().1.trim().to_owned();
    let manifest = caller.get("/deployments/D1ACTS/manifest")["manifest"].clone();
    let write = |tag: &str| {
        let more = format!("If-Match: {tag}\r\n");
        let text = format!("{}\n# seen\n", manifest.as_str().unwrap());
        caller
            .ask(
                "PUT",
                "/deployments/D1ACTS",
                &more,
                &json!({"manifest": text}),
            )
            .0
    };
    assert_eq!((write(&tag), write(&tag)), (200, 409));
    assert_eq!(server.stop(), 0);
}
