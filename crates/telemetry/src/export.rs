//! Traces to an OpenTelemetry collector.

use std::borrow::Cow;
use std::time::Duration;

use nimbus_core::{Error, ErrorCode, TraceId};
use opentelemetry::trace::{SpanId, Status, TracerProvider as _};
use opentelemetry::{Array, KeyValue, StringValue, Value};
use opentelemetry_otlp::WithExportConfig as _;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{
    IdGenerator, RandomIdGenerator, SdkTracer, SdkTracerProvider, SpanData, SpanExporter,
};

use crate::redact::redact;

const TIMEOUT: Duration = Duration::from_secs(5);

/// The collector's address cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("traces cannot be sent to {endpoint}")]
pub struct ExportError {
    endpoint: String,
    source: opentelemetry_otlp::ExporterBuildError,
}

impl From<ExportError> for Error {
    fn from(error: ExportError) -> Self {
        Error::new(ErrorCode::CONFIG_BAD_VALUE, error.to_string())
            .with_help("set telemetry.otlp_endpoint to an address such as http://localhost:4317")
            .with_source(error)
    }
}

/// The running export.
pub(crate) struct Exporter {
    provider: SdkTracerProvider,
}

impl Exporter {
    /// Connects when the first batch is sent, so that a collector that is away delays nothing.
    pub(crate) fn new(endpoint: &str, trace_id: TraceId) -> Result<Self, ExportError> {
        let exporter = opentelemetry_otlp::SpanExporter::builder()
            .with_tonic()
            .with_endpoint(endpoint)
            .with_timeout(TIMEOUT)
            .build()
            .map_err(|source| ExportError {
                endpoint: endpoint.to_owned(),
                source,
            })?;
        let resource = Resource::builder().with_service_name("nimbus").build();
        let provider = SdkTracerProvider::builder()
            .with_batch_exporter(Redacting(exporter))
            .with_id_generator(CommandIds {
                trace_id,
                random: RandomIdGenerator::default(),
            })
            .with_resource(resource)
            .build();
        Ok(Self { provider })
    }

    pub(crate) fn tracer(&self) -> SdkTracer {
        self.provider.tracer("nimbus")
    }

    pub(crate) fn shutdown(self) {
        // A collector that does not answer must not fail the command.
        let _ = self.provider.shutdown_with_timeout(TIMEOUT);
    }
}

/// Every root span of a command belongs to the command's trace, so that logs and traces meet.
#[derive(Debug)]
struct CommandIds {
    trace_id: TraceId,
    random: RandomIdGenerator,
}

impl IdGenerator for CommandIds {
    fn new_trace_id(&self) -> opentelemetry::TraceId {
        opentelemetry::TraceId::from(self.trace_id.as_u128())
    }

    fn new_span_id(&self) -> SpanId {
        self.random.new_span_id()
    }
}

/// Cleans what is sent, as the log layer cleans what is written.
#[derive(Debug)]
struct Redacting<E>(E);

impl<E: SpanExporter> SpanExporter for Redacting<E> {
    async fn export(&self, mut batch: Vec<SpanData>) -> OTelSdkResult {
        batch.iter_mut().for_each(clean_span);
        self.0.export(batch).await
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.0.shutdown_with_timeout(timeout)
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.0.force_flush()
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.0.set_resource(resource);
    }
}

fn clean_span(span: &mut SpanData) {
    span.attributes.iter_mut().for_each(clean_attribute);
    for event in &mut span.events.events {
        clean_text(&mut event.name);
        event.attributes.iter_mut().for_each(clean_attribute);
    }
    clean_text(&mut span.name);
    if let Status::Error { description } = &mut span.status {
        clean_text(description);
    }
}

fn clean_attribute(attribute: &mut KeyValue) {
    match &mut attribute.value {
        Value::String(text) => clean_string(text),
        Value::Array(Array::String(texts)) => texts.iter_mut().for_each(clean_string),
        _ => {}
    }
}

fn clean_string(text: &mut StringValue) {
    if let Cow::Owned(clean) = redact(text.as_str()) {
        *text = clean.into();
    }
}

fn clean_text(text: &mut Cow<'static, str>) {
    if let Cow::Owned(clean) = redact(text) {
        *text = Cow::Owned(clean);
    }
}
