//! Programs of tenants on a server: what they reach of it (X1, X6), and what becomes of their secrets (S21).

use std::fs;
use std::path::Path;
use std::process::Command;

use nimbus_test_tools::{Tool, tool_or_skip};
use serde_json::{Value, json};

use crate::deployments::ApiCaller;
use crate::secrets::{contains, search};
use crate::support::{PASSWORD, Site, Up};

const TOKEN_SECRET: &str = "canary-of-the-tokens and long enough";

/// A server in its usual mode, which is strict, with one tenant's stack.
fn server(postgres: &Path, sdk: &Path) -> (Site, Up) {
    let path = std::env::var("PATH").unwrap();
    let site = Site::new(postgres)
        .with("PATH", &path)
        .with("NIMBUS_JWT_SECRET", TOKEN_SECRET)
        .with("NIMBUS_LOGGING_LEVEL", "DEBUG")
        .with("NIMBUS_RATE_LIMITING_ENABLED", "false")
        .with("AWS_SECRET_ACCESS_KEY", "canary-of-the-operator")
        .with(
            "NIMBUS_RUNS_NODE_MODULES",
            &sdk.join("node_modules").display().to_string(),
        );
    let server = site.up();
    site.set_up(&server);
    (site, server)
}

fn put_stack(caller: &ApiCaller, program: &str, exists: bool) {
    let template = "name: guest\nconfig:\n  size: '1'\noutputs: {first: }\n";
    let files = json!({
        "src/Pulumi.yaml": "name: guest\nruntime: nodejs\ndescription: guest\n",
        "src/package.json": "{\"main\":\"index.js\"}\n",
        "src/index.js": program,
    });
    if exists {
        let body = json!({"template": template, "files": files});
        let (status, answer) = caller.ask("PUT", "/stacks/guest", "", &body);
        assert_eq!(status, 200, "{answer}");
        return;
    }
    let body = json!({"name": "guest", "template": template, "files": files});
    caller.post("/stacks", &body);
    let template = "name: one\ndescription: One stack\nenvironments:\n  dev: {enabled: true, \
                    account: '111111111111', region: eu-west-1}\nstacks: {guest: }\n";
    caller.post("/templates", &json!({"content": template}));
    let wanted = json!({"id": "D1ONE", "organization": "o", "project": "p", "template": "one"});
    caller.post("/deployments", &wanted);
}

fn deploy(caller: &ApiCaller) -> Value {
    let rehearse = json!({"environment": "dev", "rehearsal": true, "transpile_only": true});
    caller.post("/deployments/D1ONE/deploy", &rehearse)
}

/// Whether this machine cannot keep a program of a stranger, which a server then refuses to run.
fn cannot_be_strict(ended: &Value, events: &[Value], test: &str) -> bool {
    let said = format!("{ended} {events:?}");
    let refused = said.contains("NIM-0450");
    if refused {
        nimbus_test_tools::record_skip("no complete sandbox", test);
    }
    refused
}

/// Tries everything that it should not reach, and tells by failing.
fn curious(site: &Site, server: &Up, database_socket: &Path) -> String {
    let data = site.data().display().to_string();
    let home = std::env::var("HOME").unwrap_or_default();
    let (host, port) = {
        let address = server.address();
        let (host, port) = address.split_once(':').unwrap();
        (host.to_owned(), port.to_owned())
    };
    let pid = server.process.id();
    let socket = database_socket.display();
    format!(
        r#"const fs = require("fs"), net = require("net");
const found = [];
const attempt = (name, act) => {{ try {{ act(); found.push(name); }} catch {{}} }};
attempt("keys", () => fs.readdirSync("{data}/keys"));
attempt("vault key", () => fs.readFileSync("{data}/keys/vault"));
attempt("database files", () => fs.readdirSync("{data}/postgres"));
// Of the folder above its own it sees nothing but the way down.
attempt("data", () => {{ if (fs.readdirSync("{data}").every((name) => name === "runs")) throw 1; }});
attempt("server's environment", () => fs.readFileSync("/proc/{pid}/environ"));
attempt("server's memory", () => fs.openSync("/proc/{pid}/mem"));
attempt("first process", () => fs.readFileSync("/proc/1/environ").toString().includes("NIMBUS_JWT") || (() => {{ throw 1; }})());
attempt("shadow", () => fs.readFileSync("/etc/shadow"));
attempt("ssh", () => fs.readdirSync("{home}/.ssh"));
attempt("docker", () => fs.statSync("/var/run/docker.sock"));
for (const [name, value] of Object.entries(process.env))
    if (/canary|secret|password|token/i.test(value)) found.push(`variable ${{name}}`);
const connect = (name, to) => new Promise((done) => {{
    const socket = net.connect(to);
    socket.setTimeout(3000);
    const end = (ok) => {{ if (ok) found.push(name); socket.destroy(); done(); }};
    socket.on("connect", () => end(true));
    socket.on("error", () => end(false));
    socket.on("timeout", () => end(false));
}});
module.exports = (async () => {{
    await connect("api", {{ host: "{host}", port: {port} }});
    await connect("database", {{ path: "{socket}" }});
    await connect("metadata", {{ host: "169.254.169.254", port: 80 }});
    throw new Error(`FOUND[${{found.join(", ")}}]`);
}})();
"#
    )
}

fn database_socket(site: &Site) -> std::path::PathBuf {
    let file = fs::read_to_string(site.data().join("postgres/postmaster.pid")).unwrap();
    let lines: Vec<&str> = file.lines().collect();
    Path::new(lines[4]).join(format!(".s.PGSQL.{}", lines[3]))
}

#[test]
fn a_tenants_program_reaches_nothing_of_the_server() {
    let (postgres, sdk) = (tool_or_skip!(Tool::Postgres), tool_or_skip!(Tool::NodeSdk));
    let (site, server) = server(&postgres, &sdk);
    let caller = ApiCaller::new(&server);
    let socket = database_socket(&site);
    assert!(socket.exists(), "{}", socket.display());
    put_stack(&caller, &curious(&site, &server, &socket), false);
    // A preview runs the program as well.
    for action in ["preview", "deploy"] {
        let asked = json!({"environment": "dev", "rehearsal": true, "transpile_only": true});
        let run = caller.post(&format!("/deployments/D1ONE/{action}"), &asked);
        let (ended, events) = caller.finish(&run);
        if cannot_be_strict(
            &ended,
            &events,
            "a_tenants_program_reaches_nothing_of_the_server",
        ) {
            return;
        }
        let said = format!("{ended} {events:?}");
        assert!(said.contains("FOUND[]"), "{action}: {said}");
    }
    assert_eq!(server.stop(), 0);
}

/// Makes a secret that is written nowhere in the program, and hands it to a resource and to an output.
fn secretive(secret: &str, milliseconds: u32) -> String {
    let backwards: String = secret.chars().rev().collect();
    format!(
        "const pulumi = require('@pulumi/pulumi');
const secret = pulumi.secret('{backwards}'.split('').reverse().join(''));
module.exports = (async () => {{
    const made = new pulumi.CustomResource('demo:index:Thing', 'thing', {{ size: '1', password: secret }});
    await new Promise((done) => setTimeout(done, {milliseconds}));
    return {{ first: secret, id: made.id }};
}})();
"
    )
}

/// Everything that the database holds, as text.
fn dump(postgres: &Path, site: &Site) -> Option<String> {
    let socket = database_socket(site);
    let port = socket.extension()?.to_str()?.to_owned();
    let output = Command::new(postgres.join("pg_dumpall"))
        .args(["--host", &socket.parent()?.display().to_string()])
        .args([
            "--port",
            &port,
            "--username",
            nimbus_control_testing::ADMINISTRATOR,
        ])
        .output()
        .ok()?;
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Variables and command lines of every process, but for those of this test.
fn processes() -> Vec<u8> {
    let own = std::process::id().to_string();
    let mut all = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let name = entry.file_name().into_string().unwrap_or_default();
        if name != own && name.bytes().all(|byte| byte.is_ascii_digit()) {
            for file in ["environ", "cmdline"] {
                all.extend(fs::read(entry.path().join(file)).unwrap_or_default());
            }
        }
    }
    all
}

/// S21: the old secret and the new one, in state and outputs of a run that is also cut off by a kill.
#[test]
fn secrets_of_programs_are_in_clear_nowhere() {
    let (postgres, sdk) = (tool_or_skip!(Tool::Postgres), tool_or_skip!(Tool::NodeSdk));
    let (site, mut server) = server(&postgres, &sdk);
    let (old, new) = ("canary \"lighthouse\" 82", "canary-umbrella-93");
    let mut caller = ApiCaller::new(&server);
    put_stack(&caller, &secretive(old, 1), false);
    let (ended, mut events) = caller.finish(&deploy(&caller));
    if cannot_be_strict(&ended, &events, "secrets_of_programs_are_in_clear_nowhere") {
        return;
    }
    assert_eq!(ended["result"], "succeeded", "{ended} {events:?}");
    put_stack(&caller, &secretive(new, 2000), true);
    let run = deploy(&caller);
    let is_running = |event: &Value| event["event"] == "unit" && event["status"] == "running";
    events.extend(caller.watch(&run, is_running));
    let seen = processes();
    server.process.kill().unwrap();
    server.process.wait().unwrap();
    server = site.up();
    caller = ApiCaller::new(&server);
    let (ended, more) = caller.finish(&run);
    assert_eq!(ended["result"], "succeeded", "{ended} {more:?}");
    events.extend(more);
    let mut said = format!("{ended} {events:?}");
    for path in [
        "/deployments/D1ONE",
        "/deployments/D1ONE/status",
        "/runs",
        "/stacks/guest",
    ] {
        said.push_str(&caller.ask("GET", path, "", &Value::Null).1);
    }
    for arguments in [["audit", "export"].as_slice(), &["audit", "list"]] {
        let ran = site.run_with(arguments, "");
        said.push_str(&(ran.stdout + &ran.stderr));
    }
    let stored = dump(&postgres, &site).unwrap_or_default();
    assert!(stored.contains("D1ONE"), "the search finds what is there");
    let seen = [seen, processes()].concat();
    assert_eq!(server.stop(), 0);
    for secret in [old, new, TOKEN_SECRET, PASSWORD] {
        let mut files = Vec::new();
        search(site.folder.path(), secret, &mut files);
        assert!(files.is_empty(), "{secret} is in {files:?}");
        assert!(!contains(stored.as_bytes(), secret), "{secret} is stored");
        assert!(!contains(said.as_bytes(), secret), "{secret} was said");
    }
    for secret in [old, new, PASSWORD] {
        assert!(!contains(&seen, secret), "{secret} is in a process");
    }
    // What rooms of runs were made of is gone with them.
    let left: Vec<_> = fs::read_dir(std::env::temp_dir())
        .unwrap()
        .flatten()
        .filter(|entry| {
            entry
                .file_name()
                .to_string_lossy()
                .starts_with("nimbus-run-")
        })
        .filter(|entry| {
            let mut files = Vec::new();
            search(&entry.path(), new, &mut files);
            !files.is_empty()
        })
        .collect();
    assert!(left.is_empty(), "{left:?}");
}
