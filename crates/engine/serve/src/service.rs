//! The methods of the protocol, each a few lines over a provider.

use std::sync::Arc;

use nimbus_engine_model::Parameterization;
use nimbus_engine_proto as proto;
use proto::parameterize_request::Parameters;
use proto::resource_provider_server::ResourceProvider;
use semver::Version;
use serde_json::json;
use tonic::{Code, Request, Response, Status};

use crate::connection::ConnectionState;
use crate::failure::{status, unreadable};
use crate::{answer, request};

pub(crate) struct Service;

/// A message together with the state of the connection that it came over.
fn open<M>(request: Request<M>) -> Result<(M, Arc<ConnectionState>), Status> {
    let connection = request.extensions().get::<Arc<ConnectionState>>().cloned();
    let connection =
        connection.ok_or_else(|| Status::new(Code::Internal, "a call without a connection"))?;
    Ok((request.into_inner(), connection))
}

type RpcResult<M> = Result<Response<M>, Status>;

#[tonic::async_trait]
impl ResourceProvider for Service {
    async fn handshake(
        &self,
        request: Request<proto::ProviderHandshakeRequest>,
    ) -> RpcResult<proto::ProviderHandshakeResponse> {
        let (message, connection) = open(request)?;
        connection.learn(|engine| engine.byte_strings = message.accepts_byte_string);
        Ok(Response::new(proto::ProviderHandshakeResponse {
            accept_secrets: true,
            accept_resources: true,
            accept_outputs: true,
            supports_autonaming_configuration: true,
            accepts_byte_string: true,
        }))
    }

    /// From arguments that a person typed nothing can be concluded here.
    async fn parameterize(
        &self,
        request: Request<proto::ParameterizeRequest>,
    ) -> RpcResult<proto::ParameterizeResponse> {
        let (message, connection) = open(request)?;
        let Some(Parameters::Value(value)) = message.parameters else {
            return Err(unreadable("only a recorded parameter is understood"));
        };
        let (name, version) = (value.name, value.version);
        connection
            .become_package(Parameterization {
                name: name.clone(),
                version: Version::parse(&version).map_err(unreadable)?,
                value: value.value,
            })
            .await?;
        Ok(Response::new(proto::ParameterizeResponse { name, version }))
    }

    /// A package without declared types: what a provider accepts is not known before it is asked.
    async fn get_schema(
        &self,
        request: Request<proto::GetSchemaRequest>,
    ) -> RpcResult<proto::GetSchemaResponse> {
        let (_, connection) = open(request)?;
        let package = connection.package().await;
        let mut schema = json!({"name": package.package()});
        if let Some(version) = package.package_version() {
            schema["version"] = json!(version.to_string());
        }
        let schema = schema.to_string();
        Ok(Response::new(proto::GetSchemaResponse { schema }))
    }

    async fn check_config(
        &self,
        request: Request<proto::CheckRequest>,
    ) -> RpcResult<proto::CheckResponse> {
        let (message, connection) = open(request)?;
        let (asked, accept) = (request::check(message)?, connection.accept());
        let found = connection.provider().await?.check_config(asked).await;
        let found = found.map_err(|error| status(error, accept))?;
        answer::check(found, accept).map(Response::new)
    }

    async fn diff_config(
        &self,
        request: Request<proto::DiffRequest>,
    ) -> RpcResult<proto::DiffResponse> {
        let (message, connection) = open(request)?;
        let asked = request::diff(message)?;
        let found = connection.provider().await?.diff_config(asked).await;
        let found = found.map_err(|error| status(error, connection.accept()))?;
        Ok(Response::new(answer::diff(found)))
    }

    async fn configure(
        &self,
        request: Request<proto::ConfigureRequest>,
    ) -> RpcResult<proto::ConfigureResponse> {
        let (message, connection) = open(request)?;
        connection.learn(|engine| {
            engine.secrets = message.accept_secrets;
            engine.resources = message.accept_resources;
        });
        let asked = request::configure(message)?;
        let done = connection.provider().await?.configure(asked).await;
        done.map_err(|error| status(error, connection.accept()))?;
        Ok(Response::new(proto::ConfigureResponse {
            accept_secrets: true,
            supports_preview: true,
            accept_resources: true,
            accept_outputs: true,
            supports_autonaming_configuration: true,
        }))
    }

    async fn invoke(
        &self,
        request: Request<proto::InvokeRequest>,
    ) -> RpcResult<proto::InvokeResponse> {
        let (message, connection) = open(request)?;
        let (asked, accept) = (request::invoke(message)?, connection.accept());
        let found = connection.provider().await?.invoke(asked).await;
        let found = found.map_err(|error| status(error, accept))?;
        answer::invoke(found, accept).map(Response::new)
    }

    async fn call(&self, request: Request<proto::CallRequest>) -> RpcResult<proto::CallResponse> {
        let (message, connection) = open(request)?;
        let mut accept = connection.accept();
        accept.outputs = message.accepts_output_values;
        let asked = request::call(message)?;
        let found = connection.provider().await?.call(asked).await;
        let found = found.map_err(|error| status(error, accept))?;
        answer::call(found, accept).map(Response::new)
    }

    async fn check(
        &self,
        request: Request<proto::CheckRequest>,
    ) -> RpcResult<proto::CheckResponse> {
        let (message, connection) = open(request)?;
        let (asked, accept) = (request::check(message)?, connection.accept());
        let found = connection.provider().await?.check(asked).await;
        let found = found.map_err(|error| status(error, accept))?;
        answer::check(found, accept).map(Response::new)
    }

    async fn diff(&self, request: Request<proto::DiffRequest>) -> RpcResult<proto::DiffResponse> {
        let (message, connection) = open(request)?;
        let asked = request::diff(message)?;
        let found = connection.provider().await?.diff(asked).await;
        let found = found.map_err(|error| status(error, connection.accept()))?;
        Ok(Response::new(answer::diff(found)))
    }

    async fn create(
        &self,
        request: Request<proto::CreateRequest>,
    ) -> RpcResult<proto::CreateResponse> {
        let (message, connection) = open(request)?;
        let (asked, accept) = (request::create(message)?, connection.accept());
        let found = connection.provider().await?.create(asked).await;
        let found = found.map_err(|error| status(error, accept))?;
        answer::create(found, accept).map(Response::new)
    }

    async fn read(&self, request: Request<proto::ReadRequest>) -> RpcResult<proto::ReadResponse> {
        let (message, connection) = open(request)?;
        let (asked, accept) = (request::read(message)?, connection.accept());
        let found = connection.provider().await?.read(asked).await;
        let found = found.map_err(|error| status(error, accept))?;
        answer::read(found, accept).map(Response::new)
    }

    async fn update(
        &self,
        request: Request<proto::UpdateRequest>,
    ) -> RpcResult<proto::UpdateResponse> {
        let (message, connection) = open(request)?;
        let (asked, accept) = (request::update(message)?, connection.accept());
        let found = connection.provider().await?.update(asked).await;
        let found = found.map_err(|error| status(error, accept))?;
        answer::update(found, accept).map(Response::new)
    }

    async fn delete(&self, request: Request<proto::DeleteRequest>) -> RpcResult<()> {
        let (message, connection) = open(request)?;
        let asked = request::delete(message)?;
        let done = connection.provider().await?.delete(asked).await;
        done.map_err(|error| status(error, connection.accept()))?;
        Ok(Response::new(()))
    }

    async fn construct(
        &self,
        request: Request<proto::ConstructRequest>,
    ) -> RpcResult<proto::ConstructResponse> {
        let (message, _) = open(request)?;
        let type_ = message.r#type;
        let message = format!("{type_} is a remote component; its own plugin must run");
        Err(Status::new(Code::FailedPrecondition, message))
    }

    async fn cancel(&self, request: Request<()>) -> RpcResult<()> {
        let ((), connection) = open(request)?;
        let done = connection.provider().await?.cancel().await;
        done.map_err(|error| status(error, connection.accept()))?;
        Ok(Response::new(()))
    }

    async fn get_plugin_info(&self, request: Request<()>) -> RpcResult<proto::PluginInfo> {
        let ((), connection) = open(request)?;
        let version = connection.package().await.version;
        let version = version.map(|version| version.to_string());
        Ok(Response::new(proto::PluginInfo {
            version: version.unwrap_or_default(),
        }))
    }

    /// Nothing here reports to the engine on its own.
    async fn attach(&self, _: Request<proto::PluginAttach>) -> RpcResult<()> {
        Ok(Response::new(()))
    }
}
