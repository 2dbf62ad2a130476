//! Programs of tenants that mean no good: that never end, and that talk.

use std::time::{Duration, Instant};

use nimbus_test_tools::{Tool, tool_or_skip};
use serde_json::{Value, json};

use crate::deployments::{ApiCaller, program};
use crate::support::{PATIENCE, Site, body_of};

const ENDLESS: &str = "process.on('SIGTERM', () => {}); process.on('SIGINT', () => {});
module.exports = new Promise(() => setInterval(() => {}, 1000));
";

/// A tenant with one stack, and deployments of it.
struct Customer<'a> {
    caller: &'a ApiCaller,
    tenant: String,
}

impl<'a> Customer<'a> {
    fn new(caller: &'a ApiCaller, slug: &str, program: &str) -> Self {
        let me = caller.get("/auth/me");
        let root = me["tenant"]["id"].as_str().unwrap();
        let path = format!("/tenants/{root}/tenants");
        let made = caller.post(&path, &json!({"slug": slug, "name": slug}));
        let tenant = made["id"].as_str().unwrap().to_owned();
        let customer = Self { caller, tenant };
        let template = "name: guest\nconfig:\n  size: '1'\noutputs: {first: }\n";
        let files = json!({
            "src/Pulumi.yaml": "name: guest\nruntime: nodejs\ndescription: guest\n",
            "src/package.json": "{\"main\":\"index.js\"}\n",
            "src/index.js": program,
        });
        let stack = json!({"name": "guest", "template": template, "files": files});
        customer.post("/stacks", &stack);
        let template = "name: one\ndescription: One stack\nenvironments:\n  dev: {enabled: true, \
                        account: '111111111111', region: eu-west-1}\nstacks: {guest: }\n";
        customer.post("/templates", &json!({"content": template}));
        customer
    }

    fn path(&self, path: &str) -> String {
        format!("{path}?tenant={}", self.tenant)
    }

    fn post(&self, path: &str, body: &Value) -> Value {
        self.caller.post(&self.path(path), body)
    }

    fn get(&self, path: &str) -> Value {
        self.caller.get(&self.path(path))
    }

    /// The id of a run of a new deployment.
    fn deploy(&self, id: &str) -> String {
        let wanted = json!({"id": id, "organization": "o", "project": "p", "template": "one"});
        self.post("/deployments", &wanted);
        let asked = json!({"environment": "dev", "rehearsal": true, "transpile_only": true});
        let run = self.post(&format!("/deployments/{id}/deploy"), &asked);
        run["id"].as_str().unwrap().to_owned()
    }

    fn run(&self, run: &str) -> Value {
        self.get(&format!("/runs/{run}"))
    }

    fn wait(&self, run: &str, status: &str) -> Value {
        let started = Instant::now();
        loop {
            let found = self.run(run);
            if found["status"] == status {
                return found;
            }
            assert!(started.elapsed() < PATIENCE, "{found}");
            // tidy-allow(sleep): a run is asked for, as a client without a socket does
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

/// A customer whose programs never end leaves a place to others, and its runs are ended.
#[test]
fn endless_programs_neither_take_every_place_nor_stay() {
    let (postgres, sdk) = (tool_or_skip!(Tool::Postgres), tool_or_skip!(Tool::NodeSdk));
    let mut site = Site::of_programs(&postgres, &sdk).with("NIMBUS_RUNS_AT_ONCE", "2");
    let server = site.up();
    site.set_up(&server);
    let caller = ApiCaller::new(&server);
    let greedy = Customer::new(&caller, "greedy", ENDLESS);
    let runs: Vec<_> = ["D1A", "D2A", "D3A"].map(|id| greedy.deploy(id)).into();
    greedy.wait(&runs[0], "running");
    let quiet = Customer::new(&caller, "quiet", &program(1));
    let ended = quiet.wait(&quiet.deploy("D1B"), "ended");
    assert_eq!(ended["result"], "succeeded", "{ended}");
    let statuses: Vec<_> = runs
        .iter()
        .map(|run| greedy.run(run)["status"].clone())
        .collect();
    assert_eq!(statuses, ["running", "queued", "queued"]);
    let greedy = greedy.tenant;
    assert_eq!(server.stop(), 0);

    site.set("NIMBUS_RUNS_TIME_LIMIT", "2");
    let server = site.up();
    let caller = ApiCaller::new(&server);
    let greedy = Customer {
        caller: &caller,
        tenant: greedy,
    };
    let ended = greedy.wait(&runs[0], "ended");
    assert_eq!(ended["problem"]["code"], "NIM-0887", "{ended}");
    assert_eq!(ended["result"], "interrupted", "{ended}");
    // And its place is another's.
    greedy.wait(&runs[1], "ended");
    assert_eq!(server.stop(), 0);
}

/// Says where it is, what it knows, and to the terminal what it likes.
fn talkative(secret: &str) -> String {
    let backwards: String = secret.chars().rev().collect();
    format!(
        r#"const pulumi = require("@pulumi/pulumi");
const plain = "{backwards}".split("").reverse().join("");
module.exports = (async () => {{
    const made = new pulumi.CustomResource("demo:index:Thing", "thing", {{ size: "1", password: pulumi.secret(plain) }});
    await new Promise((done) => made.id.apply(done));
    console.log("\u001b]0;owned\u0007\u001b[2JI am " + __filename + " in " + process.cwd());
    console.log("I know " + plain);
    throw new Error("boom in " + __filename);
}})();
"#
    )
}

/// What is served of a run names nothing of the server, moves no terminal and has no secret that the engine
/// knew.
#[test]
fn what_a_program_says_tells_nothing_of_the_server_and_moves_no_terminal() {
    let (postgres, sdk) = (tool_or_skip!(Tool::Postgres), tool_or_skip!(Tool::NodeSdk));
    let site = Site::of_programs(&postgres, &sdk);
    let server = site.up();
    site.set_up(&server);
    let caller = ApiCaller::new(&server);
    let secret = "canary-of-the-program-71";
    let guest = Customer::new(&caller, "guest", &talkative(secret));
    let run = guest.deploy("D1G");
    let ended = guest.wait(&run, "ended");
    let mut said = ended.to_string();
    for path in ["events", "detail", "log", "units/guest"] {
        said.push_str(&guest.get(&format!("/runs/{run}/{path}")).to_string());
    }
    assert!(said.contains("boom in stacks/guest/src/index.js"), "{said}");
    assert!(said.contains("I know [secret]"), "{said}");
    let state = format!(
        "/deployments/D1G/state?environment=dev&rehearsal=true&tenant={}",
        guest.tenant
    );
    said.push_str(&caller.get(&state).to_string());
    let export = guest.path("/deployments/D1G/state/export");
    let asked = json!({"environment": "dev", "rehearsal": true});
    let (status, answer) = caller.ask("POST", &export, "", &asked);
    assert_eq!(status, 200, "{answer}");
    said.push_str(&body_of(&answer).to_string());
    let logs = site.run_with(
        &[
            "logs",
            "D1G",
            "--rehearse",
            "--tenant",
            &guest.tenant,
            "--server",
            &format!("http://{}", server.address()),
        ],
        "",
    );
    assert_eq!(logs.code, 0, "{}\n{}", logs.stdout, logs.stderr);
    assert!(logs.stdout.contains("I am stacks/guest"), "{}", logs.stdout);
    said.push_str(&logs.stdout);
    let data = site.data().display().to_string();
    let modules = sdk.display().to_string();
    let hidden = [
        data.as_str(),
        &modules,
        secret,
        "\\u001b",
        "\u{1b}",
        "owned",
    ];
    for word in hidden {
        assert!(!said.contains(word), "{word} is in {said}");
    }
    assert_eq!(server.stop(), 0);
}

/// A folder of packages that is not there is told to whoever starts the server, not to a tenant.
#[test]
fn a_folder_of_packages_that_is_not_there_is_an_error_at_the_start() {
    let site = Site::new(&tool_or_skip!(Tool::Postgres))
        .with("NIMBUS_RUNS_NODE_MODULES", "/nowhere/node_modules");
    let refused = site.try_up().err().unwrap();
    assert!(refused.contains("/nowhere/node_modules"), "{refused}");
    assert!(refused.contains("NIMBUS_RUNS_NODE_MODULES"), "{refused}");
}
