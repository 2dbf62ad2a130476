//! The `Engine` service: what programs and plugins tell the engine besides resources.

use std::sync::Arc;

use nimbus_engine_model::Urn;
use nimbus_engine_ports::{Diagnostic, EngineEvent, EventSink, Severity};
use nimbus_engine_proto as proto;
use nimbus_engine_proto::engine_server::Engine;
use parking_lot::Mutex;
use tonic::{Request, Response, Status};

use super::version_range::{COMPATIBLE_VERSION, VersionRange};

pub(super) struct EngineService {
    events: Arc<dyn EventSink>,
    root: Mutex<String>,
}

impl EngineService {
    pub(super) fn new(events: Arc<dyn EventSink>) -> Self {
        Self {
            events,
            root: Mutex::default(),
        }
    }
}

fn severity(severity: i32) -> Severity {
    match proto::LogSeverity::try_from(severity) {
        Ok(proto::LogSeverity::Debug) => Severity::Debug,
        Ok(proto::LogSeverity::Info) => Severity::Info,
        Ok(proto::LogSeverity::Warning) => Severity::Warning,
        // What is not understood must not be overlooked.
        Ok(proto::LogSeverity::Error) | Err(_) => Severity::Error,
    }
}

#[tonic::async_trait]
impl Engine for EngineService {
    async fn log(&self, request: Request<proto::LogRequest>) -> Result<Response<()>, Status> {
        let message = request.into_inner();
        self.events.emit(EngineEvent::Diagnostic(Diagnostic {
            severity: severity(message.severity),
            urn: Urn::parse(&message.urn).ok(),
            message: message.message,
            stream_id: message.stream_id,
            ephemeral: message.ephemeral,
        }));
        Ok(Response::new(()))
    }

    async fn get_root_resource(
        &self,
        _request: Request<proto::GetRootResourceRequest>,
    ) -> Result<Response<proto::GetRootResourceResponse>, Status> {
        let urn = self.root.lock().clone();
        Ok(Response::new(proto::GetRootResourceResponse { urn }))
    }

    async fn set_root_resource(
        &self,
        request: Request<proto::SetRootResourceRequest>,
    ) -> Result<Response<proto::SetRootResourceResponse>, Status> {
        *self.root.lock() = request.into_inner().urn;
        Ok(Response::new(proto::SetRootResourceResponse {}))
    }

    async fn start_debugging(
        &self,
        request: Request<proto::StartDebuggingRequest>,
    ) -> Result<Response<()>, Status> {
        self.events.emit(EngineEvent::Diagnostic(Diagnostic {
            severity: Severity::Info,
            urn: None,
            message: request.into_inner().message,
            stream_id: 0,
            ephemeral: false,
        }));
        Ok(Response::new(()))
    }

    async fn require_pulumi_version(
        &self,
        request: Request<proto::RequirePulumiVersionRequest>,
    ) -> Result<Response<proto::RequirePulumiVersionResponse>, Status> {
        let text = request.into_inner().pulumi_version_range;
        let range = VersionRange::parse(&text).map_err(Status::invalid_argument)?;
        if range.contains(&COMPATIBLE_VERSION) {
            return Ok(Response::new(proto::RequirePulumiVersionResponse {}));
        }
        Err(Status::failed_precondition(format!(
            "the program asks for Pulumi {text}; this engine stands in for version \
             {COMPATIBLE_VERSION}"
        )))
    }
}
