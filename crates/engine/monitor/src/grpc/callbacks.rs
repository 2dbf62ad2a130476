//! Calls back into the program: transforms and hooks are functions that live there.

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use hyper_util::rt::TokioIo;
use nimbus_engine_model::PropertyMap;
use nimbus_engine_ports::HookRequest;
use nimbus_engine_proto::callbacks_client::CallbacksClient;
use nimbus_engine_proto::{
    Callback, CallbackInvokeRequest, ErrorHookRequest, ErrorHookResponse, MAX_MESSAGE_BYTES,
    Message, ResourceHookRequest, ResourceHookResponse, Struct, TransformInvokeRequest,
    TransformInvokeResponse, TransformRequest, TransformResponse,
};
use nimbus_engine_wire::{Accept, AcceptedValues, Outputs, UnknownEncoding, decode, encode};
use parking_lot::Mutex;
use tonic::transport::{Channel, Endpoint};
use tower::service_fn;

use super::meter::{Meter, MeteredChannel};
use super::options;
use crate::confinement::{Confinement, Dial};
use crate::error::MonitorError;
use crate::hooks::{ErrorHookCallback, HookCallback};
use crate::options::{InvokeOptions, ResourceOptions};
use crate::transforms::{InvokeTransform, ResourceTransform, TransformedResource};

/// Connections to programs that can be called back, by address.
pub(super) struct CallbackClients {
    by_target: Mutex<HashMap<String, FunctionClient>>,
    confinement: Option<Confinement>,
    meter: Option<Arc<Meter>>,
}

/// One connection, and who counts what comes from it.
#[derive(Clone)]
struct FunctionClient {
    client: CallbacksClient<MeteredChannel>,
    channel: MeteredChannel,
}

impl CallbackClients {
    pub(super) fn new(confinement: Option<Confinement>, meter: Option<Arc<Meter>>) -> Self {
        Self {
            by_target: Mutex::default(),
            confinement,
            meter,
        }
    }

    /// The function that a callback stands for. Connects when it is first called.
    pub(super) fn function(
        &self,
        what: &str,
        callback: &Callback,
    ) -> Result<RemoteFunction, MonitorError> {
        if callback.target.is_empty() {
            return Err(MonitorError::CallbackWithoutTarget {
                what: what.to_owned(),
            });
        }
        Ok(RemoteFunction {
            what: what.to_owned(),
            token: callback.token.clone(),
            byte_strings: callback.accepts_byte_string,
            client: self.client(what, &callback.target)?,
        })
    }

    fn client(&self, what: &str, target: &str) -> Result<FunctionClient, MonitorError> {
        let mut clients = self.by_target.lock();
        if let Some(client) = clients.get(target) {
            return Ok(client.clone());
        }
        // Each address is a connection that we keep.
        if let Some(confined) = &self.confinement
            && clients.len() >= confined.requests.connections
        {
            return Err(MonitorError::TooManyFunctions {
                what: "addresses to be called back at",
                count: confined.requests.connections,
            });
        }
        let channel = match &self.confinement {
            None => anywhere(target),
            Some(confinement) => inside(target, confinement.dial.clone()),
        };
        let channel = channel.map_err(|message| MonitorError::Callback {
            what: what.to_owned(),
            message,
        })?;
        let channel = MeteredChannel {
            channel,
            meter: self.meter.clone(),
        };
        let client = CallbacksClient::new(channel.clone())
            .max_decoding_message_size(super::largest_message(self.meter.as_ref()))
            .max_encoding_message_size(MAX_MESSAGE_BYTES);
        let client = FunctionClient { client, channel };
        clients.insert(target.to_owned(), client.clone());
        Ok(client)
    }
}

/// To whomever the program names.
fn anywhere(target: &str) -> Result<Channel, String> {
    let address = if target.starts_with("unix:") {
        target.to_owned()
    } else {
        format!("http://{target}")
    };
    let endpoint = Endpoint::from_shared(address).map_err(|error| error.to_string())?;
    Ok(endpoint.connect_lazy())
}

/// To the program itself, which is all that a confined program may name.
fn inside(target: &str, dial: Option<Arc<dyn Dial>>) -> Result<Channel, String> {
    let port = Confinement::port_of(target).ok_or_else(|| {
        format!("a program in a sandbox can be called back on its own loopback only, not {target}")
    })?;
    let endpoint = Endpoint::from_shared(format!("http://127.0.0.1:{port}"));
    let endpoint = endpoint.map_err(|error| error.to_string())?;
    let Some(dial) = dial else {
        return Ok(endpoint.connect_lazy());
    };
    let connect = service_fn(move |_| {
        let dial = Arc::clone(&dial);
        async move { dial.dial(port).await.map(TokioIo::new) }
    });
    Ok(endpoint.connect_with_connector_lazy(connect))
}

/// One function of a program.
#[derive(Clone)]
pub(super) struct RemoteFunction {
    /// For messages.
    what: String,
    token: String,
    byte_strings: bool,
    client: FunctionClient,
}

impl RemoteFunction {
    async fn call<Request: Message, Response: Message + Default>(
        &self,
        request: &Request,
    ) -> Result<Response, MonitorError> {
        let failed = |message: String| MonitorError::Callback {
            what: self.what.clone(),
            message,
        };
        let request = CallbackInvokeRequest {
            token: self.token.clone(),
            request: request.encode_to_vec(),
        };
        let answer = self.client.client.clone().invoke(request).await;
        let answer = answer.map_err(|status| failed(status.message().to_owned()))?;
        let answer = answer.into_inner().response;
        Response::decode(answer.as_slice()).map_err(|error| failed(error.to_string()))
    }

    /// Programs that can be called back understand everything; byte strings they ask for.
    fn accept(&self) -> Accept {
        Accept {
            unknowns: UnknownEncoding::Keep,
            secrets: true,
            resources: true,
            outputs: true,
            byte_strings: self.byte_strings,
            ..Accept::default()
        }
    }

    fn encode(&self, properties: &PropertyMap) -> Result<Struct, MonitorError> {
        let encoded = encode(properties, self.accept());
        encoded.map_err(|error| MonitorError::unsendable(&self.what, &error))
    }

    fn decode(&self, properties: Struct) -> Result<PropertyMap, MonitorError> {
        let kept = self.client.channel.keep_values(Some(&properties));
        kept.map_err(|status| MonitorError::Callback {
            what: self.what.clone(),
            message: status.message().to_owned(),
        })?;
        let expect = AcceptedValues {
            unknowns: UnknownEncoding::Keep,
            outputs: Outputs::Keep,
        };
        let decoded = decode(Some(properties), expect);
        decoded.map_err(|error| MonitorError::unreadable(&self.what, &error))
    }
}

#[async_trait]
impl ResourceTransform for RemoteFunction {
    async fn transform(
        &self,
        subject: &TransformedResource,
        properties: PropertyMap,
        resource_options: ResourceOptions,
    ) -> Result<(PropertyMap, ResourceOptions), MonitorError> {
        let request = TransformRequest {
            r#type: subject.type_.clone(),
            name: subject.name.clone(),
            custom: subject.custom,
            parent: subject
                .parent
                .as_ref()
                .map(ToString::to_string)
                .unwrap_or_default(),
            properties: Some(self.encode(&properties)?),
            options: Some(options::for_transform(&resource_options, self.accept())?),
        };
        let response: TransformResponse = self.call(&request).await?;
        let properties = match response.properties {
            Some(changed) => self.decode(changed)?,
            None => properties,
        };
        let resource_options = match response.options {
            Some(changed) => options::from_transform(changed)?,
            None => resource_options,
        };
        Ok((properties, resource_options))
    }
}

#[async_trait]
impl InvokeTransform for RemoteFunction {
    async fn transform(
        &self,
        token: &str,
        args: PropertyMap,
        invoke_options: InvokeOptions,
    ) -> Result<(PropertyMap, InvokeOptions), MonitorError> {
        let request = TransformInvokeRequest {
            token: token.to_owned(),
            args: Some(self.encode(&args)?),
            options: Some(options::for_invoke_transform(&invoke_options)),
        };
        let response: TransformInvokeResponse = self.call(&request).await?;
        let args = match response.args {
            Some(changed) => self.decode(changed)?,
            None => args,
        };
        let changed = response.options.map(options::from_invoke_transform);
        Ok((args, changed.unwrap_or(invoke_options)))
    }
}

#[async_trait]
impl HookCallback for RemoteFunction {
    async fn run(&self, request: &HookRequest) -> Result<(), String> {
        let encode = |properties: &Option<PropertyMap>| {
            properties.as_ref().map(|map| self.encode(map)).transpose()
        };
        let message = || -> Result<_, MonitorError> {
            Ok(ResourceHookRequest {
                urn: request.urn.to_string(),
                id: request.id.clone().unwrap_or_default(),
                name: request.name.clone(),
                r#type: request.type_.clone(),
                new_inputs: encode(&request.new_inputs)?,
                old_inputs: encode(&request.old_inputs)?,
                new_outputs: encode(&request.new_outputs)?,
                old_outputs: encode(&request.old_outputs)?,
                old_options: None,
                new_options: None,
            })
        };
        let message = message().map_err(|error| error.to_string())?;
        let answer = self.call(&message).await;
        let answer: ResourceHookResponse = answer.map_err(|error| error.to_string())?;
        said(answer.error)
    }
}

#[async_trait]
impl ErrorHookCallback for RemoteFunction {
    async fn retry(&self, request: &HookRequest, errors: &[String]) -> Result<bool, String> {
        let encode = |properties: &Option<PropertyMap>| {
            properties.as_ref().map(|map| self.encode(map)).transpose()
        };
        let message = || -> Result<_, MonitorError> {
            Ok(ErrorHookRequest {
                urn: request.urn.to_string(),
                id: request.id.clone().unwrap_or_default(),
                name: request.name.clone(),
                r#type: request.type_.clone(),
                new_inputs: encode(&request.new_inputs)?,
                old_inputs: encode(&request.old_inputs)?,
                old_outputs: encode(&request.old_outputs)?,
                failed_operation: failed_operation(request).to_owned(),
                errors: errors.to_vec(),
                old_options: None,
                new_options: None,
            })
        };
        let message = message().map_err(|error| error.to_string())?;
        let answer = self.call(&message).await;
        let answer: ErrorHookResponse = answer.map_err(|error| error.to_string())?;
        said(answer.error)?;
        Ok(answer.retry)
    }
}

/// An empty text is no error.
fn said(error: String) -> Result<(), String> {
    if error.is_empty() { Ok(()) } else { Err(error) }
}

/// What was tried shows in which inputs there are.
fn failed_operation(request: &HookRequest) -> &'static str {
    match (&request.old_inputs, &request.new_inputs) {
        (_, None) => "delete",
        (None, Some(_)) => "create",
        (Some(_), Some(_)) => "update",
    }
}

/// A function as the pipeline knows it.
pub(super) fn resource_transform(function: RemoteFunction) -> Arc<dyn ResourceTransform> {
    Arc::new(function)
}
