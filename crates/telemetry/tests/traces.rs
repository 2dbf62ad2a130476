//! Spans of traces in a file that Perfetto opens.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use nimbus_core::TraceId;
use nimbus_telemetry::{LogLineFormat, TelemetryOptions, register_secret, subscriber};
use serde_json::Value;
use tracing::info_span;
use tracing::level_filters::LevelFilter;

#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Shared {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

fn options(level: LevelFilter, log: &Shared, trace: Option<&Shared>) -> TelemetryOptions {
    TelemetryOptions {
        level,
        format: LogLineFormat::Json,
        trace_id: TraceId::random(),
        otlp_endpoint: None,
        writer: Box::new(log.clone()),
        trace: trace.map(|trace| Box::new(trace.clone()) as Box<dyn Write + Send>),
    }
}

#[test]
fn a_file_has_every_span_with_its_parent_and_no_secret() {
    register_secret("traced-password");
    let (log, file) = (Shared::default(), Shared::default());
    let options = options(LevelFilter::WARN, &log, Some(&file));
    let (subscriber, guard) = subscriber(options).unwrap();
    tracing::subscriber::with_default(subscriber, || {
        let run = info_span!(target: "nimbus_trace", "run", run = "R0001", outcome = tracing::field::Empty);
        // Two at once: neither is drawn inside the other.
        let first = info_span!(target: "nimbus_trace", parent: &run, "unit", unit = "a");
        let second =
            info_span!(target: "nimbus_trace", parent: &run, "unit", unit = "traced-password");
        drop((first, second));
        run.record("outcome", "succeeded");
    });
    guard.shutdown();
    let text = file.text();
    assert!(!text.contains("traced-password"), "{text}");
    let events: Vec<Value> = serde_json::from_str(&text).unwrap();
    assert_eq!(events.len(), 3);
    let run = events.iter().find(|event| event["name"] == "run").unwrap();
    assert_eq!(run["ph"], "X");
    assert_eq!(run["args"]["outcome"], "succeeded");
    let units: Vec<&Value> = events
        .iter()
        .filter(|event| event["name"] == "unit")
        .collect();
    assert!(
        units
            .iter()
            .all(|unit| unit["args"]["parent"] == run["args"]["span"])
    );
    assert_ne!(units[0]["tid"], units[1]["tid"]);
    assert_eq!(log.text(), "");
}

#[test]
fn an_empty_trace_is_a_list_too() {
    let (log, file) = (Shared::default(), Shared::default());
    let (_subscriber, guard) = subscriber(options(LevelFilter::WARN, &log, Some(&file))).unwrap();
    guard.shutdown();
    let events: Vec<Value> = serde_json::from_str(&file.text()).unwrap();
    assert_eq!(events, Vec::<Value>::new());
}
