//! Structured logs, trace ids, secret redaction and OpenTelemetry export.
//!
//! [`init`] is called once, by the binary, after the settings are known; before it and without it
//! every `tracing` call is free. Logs go to standard error, because standard output belongs to the
//! command. Whatever leaves the process through this crate passes [`redact`] first, so that a
//! secret that anybody registered with [`register_secret`] is never written, in any of the
//! encodings in which it usually travels.
//!
//! Export to a collector happens only when an endpoint is set, a trace is written only when a file is
//! given. Nothing of either is built otherwise, and spans of [`TRACE_TARGET`] are not made then.

mod export;
mod layer;
mod redact;
mod trace_file;

use std::io::Write;
use std::sync::Arc;

use nimbus_core::TraceId;
use tracing::level_filters::LevelFilter;
use tracing::{Level, Metadata};
use tracing_subscriber::filter::{Targets, filter_fn};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::{Layer as _, Registry};

pub use export::ExportError;
pub use layer::LogLineFormat;
pub use redact::{REDACTED, SecretFinder, SecretSet, redact, register_secret};

use crate::export::Exporter;
use crate::layer::LogLayer;
use crate::trace_file::{TraceFile, TraceFileLayer};

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
    /// Where a trace of the command goes, for Perfetto and Chrome; nowhere without one.
    pub trace: Option<Box<dyn Write + Send>>,
}

/// The target of spans that make up a trace: runs, units, operations, steps and calls. They carry ids,
/// counts and outcomes, never values. Nothing of them is made unless somebody listens: a deployment
/// has thousands, and no log line needs them.
pub const TRACE_TARGET: &str = "nimbus_trace";

/// Keeps the export alive. Drop it at the end of the command: what is still queued is sent then.
#[must_use]
pub struct Guard {
    exporter: Option<Exporter>,
    trace: Option<Arc<TraceFile>>,
}

impl Guard {
    /// Sends what is queued and stops. Waits a few seconds at most.
    pub fn shutdown(mut self) {
        self.end();
    }

    fn end(&mut self) {
        if let Some(exporter) = self.exporter.take() {
            exporter.shutdown();
        }
        if let Some(trace) = self.trace.take()
            && let Err(error) = trace.close()
        {
            tracing::warn!("the trace could not be written: {error}");
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.end();
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
    let most = options.level.max(LevelFilter::INFO);
    let exporter = options
        .otlp_endpoint
        .as_deref()
        .map(|endpoint| Exporter::new(endpoint, options.trace_id))
        .transpose()?;
    // An absent layer without a filter of its own would count as one that wants everything, and every
    // span would be made for nobody. So the filters are there always, and let nothing pass then.
    let (logged, exports) = (filter.clone(), exporter.is_some());
    let exported =
        move |metadata: &Metadata<'_>| exports && (is_traced(metadata) || logged(metadata));
    let export_layer = exporter
        .as_ref()
        .map(|exporter| tracing_opentelemetry::layer().with_tracer(exporter.tracer()));
    let export_layer = export_layer.with_filter(filter_fn(exported).with_max_level_hint(most));
    let trace = options.trace.map(TraceFile::new);
    let traces = trace.is_some();
    let traced = move |metadata: &Metadata<'_>| traces && is_traced(metadata);
    let trace_layer = trace.clone().map(TraceFileLayer::new);
    let trace_layer =
        trace_layer.with_filter(filter_fn(traced).with_max_level_hint(LevelFilter::INFO));
    let log_layer = LogLayer::new(options.format, options.trace_id, options.writer);
    let subscriber = Registry::default()
        .with(export_layer)
        .with(trace_layer)
        .with(log_layer.with_filter(filter_fn(filter).with_max_level_hint(most)));
    Ok((subscriber, Guard { exporter, trace }))
}

fn is_traced(metadata: &Metadata<'_>) -> bool {
    metadata.is_span() && metadata.target() == TRACE_TARGET
}

/// Our own spans always pass: the ids they carry belong on every line inside them, whatever the
/// level of the line. Spans of traces do not: if nobody listens to them they must cost nothing.
fn filter(level: LevelFilter) -> impl Fn(&Metadata<'_>) -> bool + Clone {
    let libraries = if level == LevelFilter::TRACE {
        level
    } else {
        level.min(LevelFilter::WARN)
    };
    let targets = Targets::new()
        .with_default(libraries)
        .with_target("nimbus", level);
    move |metadata: &Metadata<'_>| {
        let (target, level) = (metadata.target(), metadata.level());
        if target == TRACE_TARGET {
            return false;
        }
        let identifies =
            metadata.is_span() && *level <= Level::INFO && target.starts_with("nimbus");
        identifies || targets.would_enable(target, level)
    }
}
