//! Every call to a provider as a span of the trace: which method, of which type, how it ended.
//!
//! Wrapped where providers are loaded, so that plugins, built-ins and simulated clouds are traced
//! alike. Inputs, outputs and messages stay out: they may hold secrets.

use std::sync::Arc;

use async_trait::async_trait;
use nimbus_engine_model::Parameterization;
use nimbus_engine_ports::{
    CallRequest, CallResponse, CheckRequest, CheckResponse, ConfigureRequest, ConstructRequest,
    ConstructResponse, CreateRequest, CreateResponse, DeleteRequest, DiffRequest, DiffResponse,
    InvokeRequest, InvokeResponse, Provider, ProviderError, ReadRequest, ReadResponse,
    UpdateRequest, UpdateResponse,
};
use tracing::field::Empty;
use tracing::{Instrument as _, Span, info_span};

/// A provider whose calls are spans.
pub(super) struct TracedProvider {
    inner: Arc<dyn Provider>,
    package: String,
}

impl TracedProvider {
    pub(super) fn new(package: &str, inner: Arc<dyn Provider>) -> Self {
        Self {
            inner,
            package: package.to_owned(),
        }
    }

    /// `subject` is a type, or the token of a function.
    fn span(&self, method: &'static str, subject: &str) -> Span {
        info_span!(
            target: "nimbus_trace",
            "provider_call",
            method,
            package = %self.package,
            subject,
            outcome = Empty,
            cause = Empty,
        )
    }
}

async fn traced<T>(
    span: Span,
    call: impl Future<Output = Result<T, ProviderError>>,
) -> Result<T, ProviderError> {
    let answer = call.instrument(span.clone()).await;
    if span.is_disabled() {
        return answer;
    }
    let outcome = match &answer {
        Ok(_) => "ok",
        Err(ProviderError::Failed { cause, .. }) => {
            span.record("cause", cause.as_str());
            "failed"
        }
        Err(ProviderError::InitFailed(_)) => "half-made",
        Err(ProviderError::Unknown { .. }) => "unknown",
        Err(ProviderError::Unimplemented { .. }) => "unimplemented",
        Err(ProviderError::Cancelled) => "cancelled",
    };
    span.record("outcome", outcome);
    answer
}

#[async_trait]
impl Provider for TracedProvider {
    async fn check_config(&self, request: CheckRequest) -> Result<CheckResponse, ProviderError> {
        let span = self.span("CheckConfig", &request.type_);
        traced(span, self.inner.check_config(request)).await
    }

    async fn diff_config(&self, request: DiffRequest) -> Result<DiffResponse, ProviderError> {
        let span = self.span("DiffConfig", &request.type_);
        traced(span, self.inner.diff_config(request)).await
    }

    async fn configure(&self, request: ConfigureRequest) -> Result<(), ProviderError> {
        let span = self.span("Configure", &request.type_);
        traced(span, self.inner.configure(request)).await
    }

    async fn extend(&self, extension: &Parameterization) -> Result<(), ProviderError> {
        let span = self.span("Parameterize", &extension.name);
        traced(span, self.inner.extend(extension)).await
    }

    async fn check(&self, request: CheckRequest) -> Result<CheckResponse, ProviderError> {
        let span = self.span("Check", &request.type_);
        traced(span, self.inner.check(request)).await
    }

    async fn diff(&self, request: DiffRequest) -> Result<DiffResponse, ProviderError> {
        let span = self.span("Diff", &request.type_);
        traced(span, self.inner.diff(request)).await
    }

    async fn create(&self, request: CreateRequest) -> Result<CreateResponse, ProviderError> {
        let span = self.span("Create", &request.type_);
        traced(span, self.inner.create(request)).await
    }

    async fn read(&self, request: ReadRequest) -> Result<ReadResponse, ProviderError> {
        let span = self.span("Read", &request.type_);
        traced(span, self.inner.read(request)).await
    }

    async fn update(&self, request: UpdateRequest) -> Result<UpdateResponse, ProviderError> {
        let span = self.span("Update", &request.type_);
        traced(span, self.inner.update(request)).await
    }

    async fn delete(&self, request: DeleteRequest) -> Result<(), ProviderError> {
        let span = self.span("Delete", &request.type_);
        traced(span, self.inner.delete(request)).await
    }

    async fn invoke(&self, request: InvokeRequest) -> Result<InvokeResponse, ProviderError> {
        let span = self.span("Invoke", &request.token);
        traced(span, self.inner.invoke(request)).await
    }

    async fn call(&self, request: CallRequest) -> Result<CallResponse, ProviderError> {
        let span = self.span("Call", &request.token);
        traced(span, self.inner.call(request)).await
    }

    async fn construct(
        &self,
        request: ConstructRequest,
    ) -> Result<ConstructResponse, ProviderError> {
        let span = self.span("Construct", &request.type_);
        traced(span, self.inner.construct(request)).await
    }

    async fn cancel(&self) -> Result<(), ProviderError> {
        self.inner.cancel().await
    }

    async fn close(&self) {
        self.inner.close().await;
    }
}
