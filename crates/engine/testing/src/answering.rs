//! A provider of functions, methods and components that answers as told.

use async_trait::async_trait;
use nimbus_engine_ports::{
    CallRequest, CallResponse, CheckRequest, CheckResponse, ConfigureRequest, ConstructRequest,
    ConstructResponse, CreateRequest, CreateResponse, DeleteRequest, DiffRequest, DiffResponse,
    InvokeRequest, InvokeResponse, Provider, ProviderError, ReadRequest, ReadResponse,
    UpdateRequest, UpdateResponse,
};
use parking_lot::Mutex;

type Reply<Request, Response> =
    Box<dyn Fn(Request) -> Result<Response, ProviderError> + Send + Sync>;

/// A provider that answers functions and methods as told and records what it was asked.
#[derive(Default)]
pub struct AnsweringProvider {
    on_invoke: Option<Reply<InvokeRequest, InvokeResponse>>,
    on_call: Option<Reply<CallRequest, CallResponse>>,
    on_construct: Option<Reply<ConstructRequest, ConstructResponse>>,
    invokes: Mutex<Vec<InvokeRequest>>,
    calls: Mutex<Vec<CallRequest>>,
    constructs: Mutex<Vec<ConstructRequest>>,
}

impl AnsweringProvider {
    #[must_use]
    pub fn on_invoke(
        mut self,
        reply: impl Fn(InvokeRequest) -> Result<InvokeResponse, ProviderError> + Send + Sync + 'static,
    ) -> Self {
        self.on_invoke = Some(Box::new(reply));
        self
    }

    #[must_use]
    pub fn on_call(
        mut self,
        reply: impl Fn(CallRequest) -> Result<CallResponse, ProviderError> + Send + Sync + 'static,
    ) -> Self {
        self.on_call = Some(Box::new(reply));
        self
    }

    #[must_use]
    pub fn on_construct(
        mut self,
        reply: impl Fn(ConstructRequest) -> Result<ConstructResponse, ProviderError>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        self.on_construct = Some(Box::new(reply));
        self
    }

    pub fn invokes(&self) -> Vec<InvokeRequest> {
        self.invokes.lock().clone()
    }

    pub fn calls(&self) -> Vec<CallRequest> {
        self.calls.lock().clone()
    }

    pub fn constructs(&self) -> Vec<ConstructRequest> {
        self.constructs.lock().clone()
    }
}

fn unimplemented<T>(method: &'static str) -> Result<T, ProviderError> {
    Err(ProviderError::Unimplemented { method })
}

#[async_trait]
impl Provider for AnsweringProvider {
    async fn check_config(&self, _: CheckRequest) -> Result<CheckResponse, ProviderError> {
        unimplemented("CheckConfig")
    }

    async fn diff_config(&self, _: DiffRequest) -> Result<DiffResponse, ProviderError> {
        unimplemented("DiffConfig")
    }

    async fn configure(&self, _: ConfigureRequest) -> Result<(), ProviderError> {
        unimplemented("Configure")
    }

    async fn check(&self, _: CheckRequest) -> Result<CheckResponse, ProviderError> {
        unimplemented("Check")
    }

    async fn diff(&self, _: DiffRequest) -> Result<DiffResponse, ProviderError> {
        unimplemented("Diff")
    }

    async fn create(&self, _: CreateRequest) -> Result<CreateResponse, ProviderError> {
        unimplemented("Create")
    }

    async fn read(&self, request: ReadRequest) -> Result<ReadResponse, ProviderError> {
        Ok(ReadResponse {
            id: Some(request.id),
            outputs: request.state,
            inputs: None,
            refresh_before_update: false,
        })
    }

    async fn update(&self, _: UpdateRequest) -> Result<UpdateResponse, ProviderError> {
        unimplemented("Update")
    }

    async fn delete(&self, _: DeleteRequest) -> Result<(), ProviderError> {
        unimplemented("Delete")
    }

    async fn invoke(&self, request: InvokeRequest) -> Result<InvokeResponse, ProviderError> {
        self.invokes.lock().push(request.clone());
        match &self.on_invoke {
            Some(reply) => reply(request),
            None => unimplemented("Invoke"),
        }
    }

    async fn call(&self, request: CallRequest) -> Result<CallResponse, ProviderError> {
        self.calls.lock().push(request.clone());
        match &self.on_call {
            Some(reply) => reply(request),
            None => unimplemented("Call"),
        }
    }

    async fn construct(
        &self,
        request: ConstructRequest,
    ) -> Result<ConstructResponse, ProviderError> {
        self.constructs.lock().push(request.clone());
        match &self.on_construct {
            Some(reply) => reply(request),
            None => unimplemented("Construct"),
        }
    }

    async fn cancel(&self) -> Result<(), ProviderError> {
        Ok(())
    }

    async fn close(&self) {}
}
