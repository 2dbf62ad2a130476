//! A provider that refused its configuration.
//!
//! A program may make a provider that nothing uses, such as one for a region that is switched off,
//! so a refusal is no failure until somebody asks for something. Whoever does gets the provider's
//! own words. The official engine behaves alike: it configures in the background.

use std::sync::Arc;

use async_trait::async_trait;
use nimbus_engine_model::Parameterization;
use nimbus_engine_ports::{
    CallRequest, CallResponse, CheckRequest, CheckResponse, ConfigureRequest, ConstructRequest,
    ConstructResponse, CreateRequest, CreateResponse, DeleteRequest, DiffRequest, DiffResponse,
    InvokeRequest, InvokeResponse, Provider, ProviderError, ReadRequest, ReadResponse,
    UpdateRequest, UpdateResponse,
};

pub(crate) struct Misconfigured {
    pub provider: Arc<dyn Provider>,
    pub message: String,
}

impl Misconfigured {
    /// It was never asked, so it did nothing: the outcome is known.
    fn refuse<T>(&self) -> Result<T, ProviderError> {
        Err(ProviderError::failed(self.message.clone()))
    }
}

#[async_trait]
impl Provider for Misconfigured {
    async fn check_config(&self, request: CheckRequest) -> Result<CheckResponse, ProviderError> {
        self.provider.check_config(request).await
    }

    async fn diff_config(&self, request: DiffRequest) -> Result<DiffResponse, ProviderError> {
        self.provider.diff_config(request).await
    }

    async fn configure(&self, request: ConfigureRequest) -> Result<(), ProviderError> {
        self.provider.configure(request).await
    }

    async fn extend(&self, extension: &Parameterization) -> Result<(), ProviderError> {
        self.provider.extend(extension).await
    }

    async fn check(&self, _: CheckRequest) -> Result<CheckResponse, ProviderError> {
        self.refuse()
    }

    async fn diff(&self, _: DiffRequest) -> Result<DiffResponse, ProviderError> {
        self.refuse()
    }

    async fn create(&self, _: CreateRequest) -> Result<CreateResponse, ProviderError> {
        self.refuse()
    }

    async fn read(&self, _: ReadRequest) -> Result<ReadResponse, ProviderError> {
        self.refuse()
    }

    async fn update(&self, _: UpdateRequest) -> Result<UpdateResponse, ProviderError> {
        self.refuse()
    }

    async fn delete(&self, _: DeleteRequest) -> Result<(), ProviderError> {
        self.refuse()
    }

    async fn invoke(&self, _: InvokeRequest) -> Result<InvokeResponse, ProviderError> {
        self.refuse()
    }

    async fn call(&self, _: CallRequest) -> Result<CallResponse, ProviderError> {
        self.refuse()
    }

    async fn construct(&self, _: ConstructRequest) -> Result<ConstructResponse, ProviderError> {
        self.refuse()
    }

    async fn cancel(&self) -> Result<(), ProviderError> {
        self.provider.cancel().await
    }

    async fn close(&self) {
        self.provider.close().await;
    }
}
