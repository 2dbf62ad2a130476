//! One interface for every engine that can carry out operations.

use std::sync::Arc;

use async_trait::async_trait;
use nimbus_core::Result;
use nimbus_engine_ports::EventSink;

use crate::cancel::Cancellation;
use crate::report::OperationReport;
use crate::request::OperationRequest;

/// Carries out operations on stacks. Engines take the same requests, emit the same events and
/// leave the same state files, so that a stack can move between them at any time.
#[async_trait]
pub trait Engine: Send + Sync {
    /// An error means that the operation did not start. What happened afterwards is in the report,
    /// failures included.
    async fn run(
        &self,
        request: &OperationRequest,
        events: Arc<dyn EventSink>,
        cancellation: &Cancellation,
    ) -> Result<OperationReport>;
}
