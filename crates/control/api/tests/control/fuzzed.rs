//! Whatever the descriptions of the API allow, and what they do not, asked by a program that makes it up: nothing is a
//! failure of the server's own, and every answer is one that is described.
//!
//! A machine that does other things beside this is slow, which is no finding. A server that is busy says so, and is
//! asked again; the program waits for longer than the server's own limit, and for as long as it needs to ask anything.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::StatusCode;
use axum::middleware::{Next, from_fn};
use axum::response::Response;
use nimbus_control_auth::permission::Tier;
use nimbus_test_tools::{Tool, short_or_long, tool_or_skip};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::support::{Installation, installation, text};

/// How often a request is asked before a server that is busy is believed never to answer it.
const TRIES: u32 = 3;
/// Longer than all of them may take, at thirty seconds each.
const ANSWER_SECONDS: u32 = 150;

/// A server with something in it, and a key that nobody can sign out.
async fn served(nimbus: &Installation) -> (SocketAddr, String) {
    let owner = nimbus.set_up().await;
    let acme = nimbus.tenant(&owner, "acme").await;
    let ann = nimbus
        .user(&owner, &acme, "ann@acme.example", Some("admin"))
        .await;
    nimbus.deployments(&acme, &ann, 3).await;
    let robot = json!({"email": "robot", "service_account": true});
    let users = format!("/api/v1/tenants/{}/users", nimbus.root);
    let robot = text(&nimbus.post(&users, &owner, robot).await.ok()["id"]);
    let root = nimbus.root.to_string();
    nimbus
        .assign(&owner, &root, &robot, "provider_admin")
        .await
        .ok();
    let all: Vec<_> = nimbus_control_auth::permission::PERMISSIONS
        .iter()
        // What belongs to the system itself is nobody's to give.
        .filter(|permission| permission.tier != Tier::System)
        .map(|permission| permission.key)
        .collect();
    let keys = format!("/api/v1/tenants/{root}/keys");
    let key = json!({"service_account_id": robot, "name": "fuzzer", "scopes": all});
    let key = text(&nimbus.post(&keys, &owner, key).await.ok()["secret"]);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let routes = nimbus.router.clone().layer(from_fn(patiently));
    tokio::spawn(async move {
        let service = routes.into_make_service_with_connect_info::<SocketAddr>();
        axum::serve(listener, service).await.unwrap();
    });
    (address, key)
}

/// Asks again as a client does that is told to come back. What is answered so every time is a finding: 503 is the one
/// failure that an API may describe, and no input may cause it.
async fn patiently(request: Request, next: Next) -> Response {
    let (parts, body) = request.into_parts();
    let body = axum::body::to_bytes(body, usize::MAX).await;
    let body: Bytes = body.unwrap_or_default();
    let mut tries = 1;
    loop {
        let request = Request::from_parts(parts.clone(), Body::from(body.clone()));
        let answer = next.clone().run(request).await;
        if answer.status() != StatusCode::SERVICE_UNAVAILABLE || tries >= TRIES {
            return answer;
        }
        tries += 1;
    }
}

/// Runs the program on a description; what it says if it found something.
async fn fuzz(python: PathBuf, folder: &Path, arguments: Vec<String>) {
    // The time counts from when the program is ready to ask, and making up the first question may take all of it.
    for seconds in [short_or_long(15, 600), short_or_long(60, 600), 600] {
        let (report, said) = fuzz_once(&python, folder, &arguments, seconds).await;
        let asked = report["test_cases"]["generated"].as_u64().unwrap_or(0);
        if report["exit_code"] == 0 && asked == 0 && report["stop_reason"] == "max_time" {
            continue;
        }
        assert_eq!(report["exit_code"], 0, "{report:#}\n{said}");
        assert_eq!(report["failures"], json!([]), "{said}");
        assert_eq!(report["errors"], json!([]), "{said}");
        assert!(asked > 0, "nothing was asked: {report:#}\n{said}");
        return;
    }
    panic!("nothing was asked in all that time");
}

/// What the program found, and its own words about it.
async fn fuzz_once(
    python: &Path,
    folder: &Path,
    arguments: &[String],
    seconds: u64,
) -> (Value, String) {
    let report = folder.join("report.json");
    let mut command = Command::new(python);
    command
        .args(["-m", "schemathesis.cli", "run"])
        .args(arguments)
        .args(["--workers", "2", "--seed", "15"])
        .args(["--generation-database", "none", "--no-color"])
        .args(["--max-time", &seconds.to_string()])
        .args(["--max-examples", &short_or_long(4, 200).to_string()])
        .args(["--request-timeout", &ANSWER_SECONDS.to_string()])
        // How fast questions are made up says something of the machine.
        .args(["--suppress-health-check", "too_slow"])
        .args(["--continue-on-failure", "--warnings", "off"])
        .args(["--report", "json", "--report-json-path"])
        .arg(&report)
        .env(
            "SCHEMATHESIS_HOOKS",
            concat!(
                env!("CARGO_MANIFEST_DIR"),
                "/tests/control/graphql_answers.py"
            ),
        )
        .current_dir(folder);
    let done = tokio::task::spawn_blocking(move || command.output()).await;
    let done = done.unwrap().unwrap();
    let said = String::from_utf8_lossy(&done.stdout);
    let end = said.chars().count().saturating_sub(12_000);
    let said: String = said.chars().skip(end).collect();
    let said = format!("{said}\n{}", String::from_utf8_lossy(&done.stderr));
    let written = std::fs::read(&report).unwrap_or_else(|error| panic!("{error}: {said}"));
    let found = serde_json::from_slice(&written).unwrap_or_else(|error| panic!("{error}: {said}"));
    // What the next try says is its own.
    std::fs::remove_file(&report).unwrap();
    assert_eq!(done.status.code(), found_code(&found), "{said}");
    (found, said)
}

/// The code that the program says it ended with.
fn found_code(report: &Value) -> Option<i32> {
    let code = report["exit_code"].as_i64()?;
    i32::try_from(code).ok()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rest_answers_whatever_it_is_asked_as_it_is_described() {
    let python = tool_or_skip!(Tool::Schemathesis);
    let nimbus = installation!();
    let (address, key) = served(&nimbus).await;
    let file = nimbus.folder.path().join("openapi.json");
    std::fs::write(&file, nimbus_control_api::openapi().to_string()).unwrap();
    let mut arguments: Vec<String> = [
        &file.display().to_string(),
        "--url",
        &format!("http://{address}"),
        "--header",
        &format!("Authorization: Bearer {key}"),
        "--checks",
        "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance",
        // Sockets are another protocol, and probes are the server's.
        "--exclude-operation-id-regex",
        "progress$|^graphql[.]|^probes[.]",
    ]
    .map(ToOwned::to_owned)
    .into();
    arguments.extend(["--phases", "examples,coverage,fuzzing"].map(ToOwned::to_owned));
    fuzz(python, nimbus.folder.path(), arguments).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn graphql_answers_whatever_it_is_asked() {
    let python = tool_or_skip!(Tool::Schemathesis);
    let nimbus = installation!();
    let (address, key) = served(&nimbus).await;
    let file = nimbus.folder.path().join("schema.graphql");
    std::fs::write(&file, nimbus_control_api::graphql_schema()).unwrap();
    let arguments = [
        &file.display().to_string(),
        "--url",
        &format!("http://{address}/graphql"),
        "--header",
        &format!("Authorization: Bearer {key}"),
        "--checks",
        "no_failure_of_the_server",
        "--phases",
        "fuzzing",
    ];
    fuzz(
        python,
        nimbus.folder.path(),
        arguments.map(ToOwned::to_owned).into(),
    )
    .await;
    // A field that fails by itself answers 200; the audit trail has what it was.
    let internal = "SELECT action || new_value::text FROM nimbus_core.audit_logs WHERE new_value::text ~ 'NIM-(0001|0809)'";
    nimbus.database.store.audit_flush_all().await;
    let found = nimbus.database.texts(internal).await;
    assert!(found.is_empty(), "{found:?}");
}
