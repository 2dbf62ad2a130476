//! Structured logs, trace ids, secret redaction and OpenTelemetry export.
//!
//! [`init`] is called once, by the binary, after the settings are known; before it and without it
//! every `tracing` call is free. Logs go to standard error, because standard output belongs to the
//! command. Whatever leaves the process through this crate passes [`redact`] first, so that a
//! secret that anybody registered with [`register_secret`] is never written, in any of the
//! encodings in which it usually travels.
//!
//! Export to a collector happens only when an endpoint is set. Nothing of it is built otherwise.

mod export;
mod layer;
mod redact;

use std::io::Write;

use nimbus_core::TraceId;
use tracing::level_filters::LevelFilter;
use tracing::{Level, Metadata};
use tracing_subscriber::filter::{FilterFn, Targets, filter_fn};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::{Layer as _, Registry};

pub use export::ExportError;
pub use layer::LogLineFormat;
pub use redact::{REDACTED, redact, register_secret};

use crate::export::Exporter;
use crate::layer::LogLayer;

/// How this process reports about itself.
pub struct TelemetryOptions {
    /// Least severe level of Nimbus's own code that is written. Libraries are heard from `WARN` on,
    /// and at this level only when it is `TRACE`.
    pub level: LevelFilter,
    pub format: LogLineFormat,
    /// Joins every line and span of this command. A span with its own `trace_id` field, such as a
    /// request's, overrides it.
    pub trace_id: TraceId,
    /// Where traces are sent over gRPC; nowhere without one.
    pub otlp_endpoint: Option<String>,
    /// Where lines go; standard error in the binary.
    pub writer: Box<dyn Write + Send>,
}

/// Keeps the export alive. Drop it at the end of the command: what is still queued is sent then.
#[must_use]
pub struct Guard {
    exporter: Option<Exporter>,
}

impl Guard {
    /// Sends what is queued and stops. Waits a few seconds at most.
    pub fn shutdown(mut self) {
        if let Some(exporter) = self.exporter.take() {
            exporter.shutdown();
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if let Some(exporter) = self.exporter.take() {
            exporter.shutdown();
        }
    }
}

/// Starts reporting for the whole process. With an endpoint, call it inside a multi-threaded tokio
/// runtime. A second call changes nothing.
pub fn init(options: TelemetryOptions) -> Result<Guard, ExportError> {
    let (subscriber, guard) = subscriber(options)?;
    // The first one stays; tests of the binary's library may come here twice.
    let _ = tracing::subscriber::set_global_default(subscriber);
    Ok(guard)
}

/// The subscriber that [`init`] installs, for tests that want their own.
pub fn subscriber(
    options: TelemetryOptions,
) -> Result<(impl tracing::Subscriber + Send + Sync, Guard), ExportError> {
    let filter = filter(options.level);
    let exporter = options
        .otlp_endpoint
        .as_deref()
        .map(|endpoint| Exporter::new(endpoint, options.trace_id))
        .transpose()?;
    let export_layer = exporter.as_ref().map(|exporter| {
        tracing_opentelemetry::layer()
            .with_tracer(exporter.tracer())
            .with_filter(filter.clone())
    });
    let log_layer = LogLayer::new(options.format, options.trace_id, options.writer);
    let subscriber = Registry::default()
        .with(export_layer)
        .with(log_layer.with_filter(filter));
    Ok((subscriber, Guard { exporter }))
}

/// Our own spans always pass: the ids they carry belong on every line inside them, whatever the
/// level of the line.
fn filter(level: LevelFilter) -> FilterFn<impl Fn(&Metadata<'_>) -> bool + Clone> {
    let libraries = if level == LevelFilter::TRACE {
        level
    } else {
        level.min(LevelFilter::WARN)
    };
    let targets = Targets::new()
        .with_default(libraries)
        .with_target("nimbus", level);
    let enabled = move |metadata: &Metadata<'_>| {
        let (target, level) = (metadata.target(), metadata.level());
        let identifies =
            metadata.is_span() && *level <= Level::INFO && target.starts_with("nimbus");
        identifies || targets.would_enable(target, level)
    };
    filter_fn(enabled).with_max_level_hint(level.max(LevelFilter::INFO))
}
