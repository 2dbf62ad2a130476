//! What a log line carries, and what it must not.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use nimbus_core::TraceId;
use nimbus_telemetry::{LogLineFormat, TelemetryOptions, register_secret, subscriber};
use serde_json::{Value, json};
use tracing::level_filters::LevelFilter;

#[derive(Clone, Default)]
struct Captured(Arc<Mutex<Vec<u8>>>);

impl Write for Captured {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0
            .lock()
            .map_err(|_| io::Error::other("poisoned"))?
            .extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

const TRACE: &str = "0123456789abcdef0123456789abcdef";

fn logged(level: LevelFilter, format: LogLineFormat, body: impl FnOnce()) -> String {
    let captured = Captured::default();
    let options = TelemetryOptions {
        level,
        format,
        trace_id: TRACE.parse::<TraceId>().expect("a trace id"),
        otlp_endpoint: None,
        trace: None,
        writer: Box::new(captured.clone()),
    };
    let (subscriber, _guard) = subscriber(options).expect("no export, no error");
    tracing::subscriber::with_default(subscriber, body);
    let bytes = captured.0.lock().expect("not poisoned").clone();
    String::from_utf8(bytes).expect("text")
}

fn json_lines(body: impl FnOnce()) -> Vec<Value> {
    let text = logged(LevelFilter::INFO, LogLineFormat::Json, body);
    text.lines()
        .map(|line| serde_json::from_str(line).expect("one JSON object per line"))
        .collect()
}

#[test]
fn a_json_line_has_the_specified_fields_in_order() {
    let text = logged(LevelFilter::INFO, LogLineFormat::Json, || {
        let span = tracing::info_span!(target: "nimbus_api", "request", tenant_id = "t-1", user_id = tracing::field::Empty
        );
        let _inside = span.enter();
        span.record("user_id", "u-1");
        tracing::info!(
            target: "nimbus_api::cmdb",
            resource_id = "r-1",
            duration_ms = 45,
            attempts = 2,
            "Resource {}",
            "created"
        );
    });
    let mut line: Value = serde_json::from_str(&text).unwrap();
    let timestamp = line["timestamp"].take();
    let timestamp = timestamp.as_str().unwrap();
    assert!(
        timestamp.len() == 24 && timestamp.ends_with('Z'),
        "{timestamp}"
    );
    assert_eq!(
        line,
        json!({
            "timestamp": null,
            "level": "INFO",
            "logger": "nimbus.api.cmdb",
            "message": "Resource created",
            "trace_id": TRACE,
            "tenant_id": "t-1",
            "user_id": "u-1",
            "resource_id": "r-1",
            "duration_ms": 45,
            "fields": {"attempts": 2},
        })
    );
    let order = [
        "timestamp",
        "level",
        "logger",
        "message",
        "trace_id",
        "tenant_id",
        "user_id",
    ];
    let places: Vec<_> = order
        .iter()
        .map(|key| text.find(&format!("\"{key}\":")).unwrap())
        .collect();
    assert!(places.is_sorted(), "{text}");
}

#[test]
fn a_request_has_its_own_trace_id() {
    let lines = json_lines(|| {
        let request =
            tracing::info_span!(target: "nimbus_api", "request", trace_id = "of-the-request");
        request.in_scope(|| tracing::info!(target: "nimbus", "inside"));
        tracing::info!(target: "nimbus", "outside");
    });
    assert_eq!(lines[0]["trace_id"], "of-the-request");
    assert_eq!(lines[1]["trace_id"], TRACE);
}

#[test]
fn ids_of_a_span_are_on_its_errors_at_any_level() {
    let text = logged(LevelFilter::ERROR, LogLineFormat::Json, || {
        let request = tracing::info_span!(target: "nimbus_api", "request", tenant_id = "t-1");
        request.in_scope(|| tracing::error!(target: "nimbus_api", "bad"));
    });
    assert!(text.contains("\"tenant_id\":\"t-1\""), "{text}");
}

#[test]
fn libraries_are_heard_from_warnings_on() {
    let heard = |level| {
        let text = logged(level, LogLineFormat::Plain { color: false }, || {
            tracing::debug!(target: "nimbus_core", "ours");
            tracing::info!(target: "h2::codec", "theirs");
            tracing::warn!(target: "h2::codec", "warning");
        });
        ["ours", "theirs", "warning"].map(|word| text.contains(word))
    };
    assert_eq!(heard(LevelFilter::ERROR), [false, false, false]);
    assert_eq!(heard(LevelFilter::INFO), [false, false, true]);
    assert_eq!(heard(LevelFilter::DEBUG), [true, false, true]);
    assert_eq!(heard(LevelFilter::TRACE), [true, true, true]);
}

#[test]
fn plain_lines_are_short_and_cannot_move_the_cursor() {
    let text = logged(
        LevelFilter::INFO,
        LogLineFormat::Plain { color: false },
        || {
            tracing::warn!(target: "nimbus_cli", file = "a\x1b[2Jb", "two\nlines");
        },
    );
    assert_eq!(
        &text[12..],
        " WARN  nimbus.cli: two\\nlines file=a\\u{1b}[2Jb\n"
    );
    let text = logged(
        LevelFilter::INFO,
        LogLineFormat::Plain { color: true },
        || {
            tracing::error!(target: "nimbus_cli", "bad");
        },
    );
    assert!(text.contains("\x1b[31mERROR\x1b[0m"), "{text:?}");
}

#[test]
fn secrets_are_written_by_neither_format() {
    let secret = "s3cr\"et\nvalue-of-logging";
    register_secret(secret);
    for format in [LogLineFormat::Json, LogLineFormat::Plain { color: false }] {
        let text = logged(LevelFilter::INFO, format, || {
            let span = tracing::info_span!(target: "nimbus_api", "login", password = secret);
            let _inside = span.enter();
            tracing::info!(target: "nimbus", token = ?secret, "with {secret}");
        });
        assert!(!text.contains("value-of-logging"), "{format:?}: {text}");
        assert!(text.contains("[secret]"), "{format:?}: {text}");
        if format == LogLineFormat::Json {
            serde_json::from_str::<Value>(&text).expect("still JSON");
        }
    }
}
