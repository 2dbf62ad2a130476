//! Traces reach a real collector over gRPC, cleaned of secrets.

use std::io;
use std::net::SocketAddr;

use nimbus_core::TraceId;
use nimbus_telemetry::{LogLineFormat, TelemetryOptions, register_secret, subscriber};
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{
    TraceService, TraceServiceServer,
};
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::{Request, Response, Status};
use tracing::level_filters::LevelFilter;

struct Collector(mpsc::UnboundedSender<ExportTraceServiceRequest>);

#[tonic::async_trait]
impl TraceService for Collector {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        let _ = self.0.send(request.into_inner());
        Ok(Response::new(ExportTraceServiceResponse::default()))
    }
}

async fn collector() -> (
    SocketAddr,
    mpsc::UnboundedReceiver<ExportTraceServiceRequest>,
) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("an address");
    let (sender, receiver) = mpsc::unbounded_channel();
    let server = tonic::transport::Server::builder()
        .add_service(TraceServiceServer::new(Collector(sender)))
        .serve_with_incoming(TcpListenerStream::new(listener));
    tokio::spawn(server);
    (address, receiver)
}

fn options(trace_id: TraceId, endpoint: String) -> TelemetryOptions {
    TelemetryOptions {
        level: LevelFilter::INFO,
        format: LogLineFormat::Json,
        trace_id,
        otlp_endpoint: Some(endpoint),
        trace: None,
        writer: Box::new(io::sink()),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn spans_arrive_with_the_commands_trace_id_and_without_secrets() {
    register_secret("exported-password");
    let (address, mut received) = collector().await;
    let trace_id = TraceId::random();
    let (subscriber, guard) = subscriber(options(trace_id, format!("http://{address}"))).unwrap();
    tracing::subscriber::with_default(subscriber, || {
        let span = tracing::info_span!(target: "nimbus", "deploy", token = "exported-password");
        span.in_scope(|| tracing::info!(target: "nimbus", "with exported-password inside"));
    });
    tokio::task::spawn_blocking(|| guard.shutdown())
        .await
        .unwrap();

    let request = received.recv().await.unwrap();
    let span = &request.resource_spans[0].scope_spans[0].spans[0];
    assert_eq!(span.name, "deploy");
    assert_eq!(span.trace_id, trace_id.as_u128().to_be_bytes());
    assert_eq!(span.events.len(), 1);
    let everything = format!("{request:?}");
    assert!(everything.contains("[secret]"), "{everything}");
    assert!(!everything.contains("exported-password"), "{everything}");
}

#[tokio::test(flavor = "multi_thread")]
async fn spans_of_a_trace_arrive_below_each_other() {
    let (address, mut received) = collector().await;
    let mut options = options(TraceId::random(), format!("http://{address}"));
    // What is logged does not decide what is traced.
    options.level = LevelFilter::ERROR;
    let (subscriber, guard) = subscriber(options).unwrap();
    tracing::subscriber::with_default(subscriber, || {
        let run = tracing::info_span!(target: "nimbus_trace", "run", units = 1);
        let unit = tracing::info_span!(target: "nimbus_trace", parent: &run, "unit");
        drop(unit);
    });
    tokio::task::spawn_blocking(|| guard.shutdown())
        .await
        .unwrap();
    let request = received.recv().await.unwrap();
    let spans = &request.resource_spans[0].scope_spans[0].spans;
    let find = |name: &str| spans.iter().find(|span| span.name == name).unwrap();
    assert_eq!(find("unit").parent_span_id, find("run").span_id);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collector_that_is_away_fails_nothing() {
    let endpoint = "http://127.0.0.1:1".to_owned();
    let (subscriber, guard) = subscriber(options(TraceId::random(), endpoint)).unwrap();
    tracing::subscriber::with_default(subscriber, || {
        tracing::info_span!(target: "nimbus", "work").in_scope(|| {});
    });
    tokio::task::spawn_blocking(|| guard.shutdown())
        .await
        .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_that_is_none_is_refused_with_help() {
    let Err(error) = subscriber(options(TraceId::random(), "not an address".into())) else {
        panic!("accepted");
    };
    let error = nimbus_core::Error::from(error);
    assert_eq!(error.code(), nimbus_core::ErrorCode::CONFIG_BAD_VALUE);
    assert!(error.help().unwrap().contains("telemetry.otlp_endpoint"));
}
