//! A provider whose configuration is not known yet, as happens in previews.
//!
//! It must not be asked for anything that depends on its configuration, so everything it would
//! answer is unknown. Only its configuration itself can be checked and compared.

use std::sync::Arc;

use async_trait::async_trait;
use nimbus_engine_model::{Parameterization, PropertyMap};
use nimbus_engine_ports::{
    CallRequest, CallResponse, CheckRequest, CheckResponse, ConfigureRequest, ConstructRequest,
    ConstructResponse, CreateRequest, CreateResponse, DeleteRequest, DiffRequest, DiffResponse,
    Diffs, InvokeRequest, InvokeResponse, Provider, ProviderError, ReadRequest, ReadResponse,
    UpdateRequest, UpdateResponse,
};

pub(crate) struct Unconfigured(pub Arc<dyn Provider>);

#[async_trait]
impl Provider for Unconfigured {
    async fn check_config(&self, request: CheckRequest) -> Result<CheckResponse, ProviderError> {
        self.0.check_config(request).await
    }

    async fn diff_config(&self, request: DiffRequest) -> Result<DiffResponse, ProviderError> {
        self.0.diff_config(request).await
    }

    async fn configure(&self, request: ConfigureRequest) -> Result<(), ProviderError> {
        self.0.configure(request).await
    }

    async fn extend(&self, extension: &Parameterization) -> Result<(), ProviderError> {
        self.0.extend(extension).await
    }

    async fn check(&self, request: CheckRequest) -> Result<CheckResponse, ProviderError> {
        Ok(CheckResponse {
            properties: request.news,
            failures: Vec::new(),
        })
    }

    async fn diff(&self, _: DiffRequest) -> Result<DiffResponse, ProviderError> {
        Ok(DiffResponse {
            changes: Diffs::Some,
            ..DiffResponse::default()
        })
    }

    async fn create(&self, _: CreateRequest) -> Result<CreateResponse, ProviderError> {
        Ok(CreateResponse::default())
    }

    async fn read(&self, request: ReadRequest) -> Result<ReadResponse, ProviderError> {
        Ok(ReadResponse {
            id: Some(request.id),
            outputs: PropertyMap::new(),
            inputs: Some(PropertyMap::new()),
            refresh_before_update: false,
        })
    }

    async fn update(&self, _: UpdateRequest) -> Result<UpdateResponse, ProviderError> {
        Ok(UpdateResponse::default())
    }

    async fn delete(&self, _: DeleteRequest) -> Result<(), ProviderError> {
        Err(unknown_configuration())
    }

    async fn invoke(&self, _: InvokeRequest) -> Result<InvokeResponse, ProviderError> {
        Ok(InvokeResponse::default())
    }

    async fn call(&self, _: CallRequest) -> Result<CallResponse, ProviderError> {
        Ok(CallResponse::default())
    }

    async fn construct(&self, _: ConstructRequest) -> Result<ConstructResponse, ProviderError> {
        Err(unknown_configuration())
    }

    async fn cancel(&self) -> Result<(), ProviderError> {
        self.0.cancel().await
    }

    async fn close(&self) {
        self.0.close().await;
    }
}

fn unknown_configuration() -> ProviderError {
    ProviderError::failed("the provider's configuration is not known in this preview".to_owned())
}
