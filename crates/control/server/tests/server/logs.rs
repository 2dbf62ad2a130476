//! What the server writes about requests.

use std::io::Write;
use std::sync::{Arc, Mutex};

use nimbus_core::TraceId;
use nimbus_telemetry::{LogLineFormat, TelemetryOptions};
use nimbus_test_tools::{Tool, tool_or_skip};
use serde_json::{Value, json};
use tracing::level_filters::LevelFilter;

use crate::support::{PASSWORD, Running, call, folder, options, send, set_up};

#[derive(Clone, Default)]
struct SharedLines(Arc<Mutex<Vec<u8>>>);

impl Write for SharedLines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// On one thread, so that the subscriber of this test hears everything and nothing else.
#[tokio::test(flavor = "current_thread")]
async fn every_line_is_json_with_the_requests_ids_and_without_secrets() {
    let binaries = tool_or_skip!(Tool::Postgres);
    let lines = SharedLines::default();
    let (subscriber, _guard) = nimbus_telemetry::subscriber(TelemetryOptions {
        level: LevelFilter::DEBUG,
        format: LogLineFormat::Json,
        trace_id: TraceId::random(),
        otlp_endpoint: None,
        writer: Box::new(lines.clone()),
        trace: None,
    })
    .unwrap();
    let _heard = tracing::subscriber::set_default(subscriber);
    let folder = folder();
    let server = Running::start(&options(folder.path(), &binaries)).await;
    let setup_token = server.setup_link.clone().unwrap();
    let setup_token = setup_token.split_once("token=").unwrap().1.to_owned();
    let owner = set_up(&server).await;
    // Another test of this process that comes to a span first, while the listener above is being made, can leave the span
    // unheard for good; what was come to by now is asked for once more.
    tracing::callsite::rebuild_interest_cache();
    let root = server.store.tenant_find(&[]).await.unwrap();
    let headers = format!("Authorization: Bearer {owner}\r\n");
    let path = format!("/api/v1/tenants/{root}/groups");
    let made = send(
        server.address,
        "POST",
        &path,
        &headers,
        r#"{"name": "on-call"}"#,
    )
    .await;
    let me = call(
        &server,
        "GET",
        "/api/v1/auth/me",
        Some(&owner),
        &Value::Null,
    )
    .await;
    let login = json!({"email": "owner@operator.example", "password": PASSWORD});
    call(&server, "POST", "/api/v1/auth/login", None, &login).await;
    let token =
        format!("/api/v1/runs/00000000-0000-4000-8000-000000000000/progress?access_token={owner}");
    call(&server, "GET", &token, None, &Value::Null).await;
    server.stop().await;

    let text = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
    let parsed: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect();
    for line in &parsed {
        for field in ["timestamp", "level", "logger", "message", "trace_id"] {
            assert!(line[field].is_string(), "{field} of {line}");
        }
    }
    let trace = made
        .head
        .lines()
        .find_map(|line| line.strip_prefix("x-trace-id: "));
    let of_request = |trace: &str, message: &str| {
        parsed
            .iter()
            .find(|line| line["trace_id"] == trace && line["message"] == message)
            .unwrap_or_else(|| panic!("{message} of {trace} in\n{text}"))
    };
    let line = of_request(trace.unwrap().trim(), "a request was answered");
    assert_eq!(line["level"], "INFO");
    assert_eq!(line["logger"], "nimbus.control.api.pipeline");
    assert_eq!(line["tenant_id"], root.to_string());
    assert_eq!(line["user_id"], me["user"]["id"]);
    assert!(line["duration_ms"].is_u64(), "{line}");
    assert_eq!(line["fields"]["operation"], "groups.create");
    assert_eq!(line["fields"]["status"], made.status);
    let read = parsed
        .iter()
        .find(|line| line["fields"]["operation"] == "auth.me");
    assert_eq!(
        read.unwrap()["level"],
        "DEBUG",
        "reads are for whoever wants to know more"
    );
    for secret in [PASSWORD, owner.as_str(), setup_token.as_str()] {
        assert!(!text.contains(secret), "{secret} is in the log");
    }
}
