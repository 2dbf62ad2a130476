//! Spans of traces are not made when nobody listens. In a process of its own: whether a place in the
//! code is heard is known to a whole process, and a subscriber of another test would hear it.

use nimbus_core::TraceId;
use nimbus_telemetry::{LogLineFormat, TelemetryOptions, subscriber};
use tracing::level_filters::LevelFilter;
use tracing::{Level, info_span};

#[test]
fn nothing_of_a_trace_is_made_when_nobody_listens() {
    for level in [LevelFilter::WARN, LevelFilter::DEBUG, LevelFilter::TRACE] {
        let options = TelemetryOptions {
            level,
            format: LogLineFormat::Json,
            trace_id: TraceId::random(),
            otlp_endpoint: None,
            writer: Box::new(std::io::sink()),
            trace: None,
        };
        let (subscriber, _guard) = subscriber(options).unwrap();
        tracing::subscriber::with_default(subscriber, || {
            assert!(
                !tracing::enabled!(target: "nimbus_trace", Level::INFO),
                "{level}"
            );
            let span = info_span!(target: "nimbus_trace", "step");
            assert!(span.is_disabled(), "{level}");
        });
    }
}
