//! The `ResourceMonitor` service: each method reads its request, has the pipeline do the work and
//! writes the answer.

use std::sync::Arc;

use nimbus_engine_proto as proto;
use nimbus_engine_proto::resource_monitor_server::ResourceMonitor;
use nimbus_engine_wire::{Accept, UnknownEncoding};
use tonic::{Request, Response, Status};

use super::callbacks::{CallbackClients, resource_transform};
use super::convert;
use super::meter::RequestShare;
use crate::error::{Ending, MonitorError};
use crate::features;
use crate::hooks::Hook;
use crate::invoke::InvokeError;
use crate::monitor::Monitor;

pub(super) struct MonitorService {
    monitor: Arc<Monitor>,
    callbacks: CallbackClients,
}

/// What an SDK says about itself with each request.
#[derive(Clone, Copy)]
struct Peer {
    secrets: bool,
    resources: bool,
    byte_strings: bool,
}

impl Peer {
    fn accept(self) -> Accept {
        Accept {
            unknowns: UnknownEncoding::Keep,
            secrets: self.secrets,
            resources: self.resources,
            byte_strings: self.byte_strings,
            ..Accept::default()
        }
    }
}

impl MonitorService {
    pub(super) fn new(monitor: Arc<Monitor>, callbacks: CallbackClients) -> Self {
        Self { monitor, callbacks }
    }

    /// For requests whose failure ends the deployment.
    fn or_end<T>(&self, result: Result<T, MonitorError>) -> Result<T, Status> {
        result.map_err(|error| turned_away(self.monitor.abort_with(None, &error)))
    }

    fn registration(
        &self,
        request: Request<proto::RegisterResourceRequest>,
    ) -> Result<crate::requests::Registration, MonitorError> {
        let dialect = convert::alias_dialect(request.metadata(), request.get_ref());
        let request = request.into_inner();
        let transforms = request.transforms.iter().map(|callback| {
            let what = format!("a transform of {}", request.name);
            self.callbacks
                .function(&what, callback)
                .map(resource_transform)
        });
        let transforms = transforms.collect::<Result<_, _>>()?;
        convert::registration(request, dialect, transforms)
    }
}

/// What one request makes the engine hold, if its program is not trusted.
struct Share(Option<Arc<RequestShare>>);

impl Share {
    fn of<T>(request: &Request<T>) -> Self {
        Self(request.extensions().get::<Arc<RequestShare>>().cloned())
    }

    /// Counts what was asked with.
    fn asked(&self, values: Option<&proto::Struct>) -> Result<(), Status> {
        self.0
            .as_ref()
            .map_or(Ok(()), |share| share.hold_values(values))
    }

    /// Counts an answer, which is held until its peer has taken it.
    fn answer<T: proto::Message>(&self, answer: T) -> Result<Response<T>, Status> {
        if let Some(share) = &self.0 {
            share.hold(answer.encoded_len() as u64)?;
        }
        Ok(Response::new(answer))
    }
}

/// The one answer to requests that come too late. SDKs know it and end quietly.
fn turned_away(_: Ending) -> Status {
    Status::unavailable("the deployment is ending")
}

/// For requests whose failure a program can see and handle.
fn refused(error: &MonitorError) -> Status {
    Status::invalid_argument(error.to_string())
}

#[tonic::async_trait]
impl ResourceMonitor for MonitorService {
    async fn get_deployment_info(
        &self,
        _request: Request<()>,
    ) -> Result<Response<proto::DeploymentInfo>, Status> {
        // This method is younger than the announcement of the program's end.
        self.monitor.sdk_announces_end();
        let context = self.monitor.context();
        Ok(Response::new(proto::DeploymentInfo {
            project: context.project.clone(),
            stack: context.stack.clone(),
            organization: context.organization.clone(),
            config: context.config.clone(),
            config_secret_keys: context.config_secret_keys.iter().cloned().collect(),
            dry_run: context.dry_run,
            parallel: context.parallel,
            supported_features: features::all().map(i32::from).collect(),
        }))
    }

    async fn supports_feature(
        &self,
        request: Request<proto::SupportsFeatureRequest>,
    ) -> Result<Response<proto::SupportsFeatureResponse>, Status> {
        let has_support = features::supports(&request.get_ref().id);
        Ok(Response::new(proto::SupportsFeatureResponse {
            has_support,
        }))
    }

    async fn register_resource(
        &self,
        request: Request<proto::RegisterResourceRequest>,
    ) -> Result<Response<proto::RegisterResourceResponse>, Status> {
        let share = Share::of(&request);
        let message = request.get_ref();
        share.asked(message.object.as_ref())?;
        let peer = Peer {
            secrets: message.accept_secrets,
            resources: message.accept_resources,
            byte_strings: message.accepts_byte_string,
        };
        let registration = self.or_end(self.registration(request))?;
        let registered = self.monitor.register(registration).await;
        let registered = registered.map_err(turned_away)?;
        let answer = self.or_end(convert::registered(registered, peer.accept()))?;
        share.answer(answer)
    }

    async fn register_resource_outputs(
        &self,
        request: Request<proto::RegisterResourceOutputsRequest>,
    ) -> Result<Response<()>, Status> {
        Share::of(&request).asked(request.get_ref().outputs.as_ref())?;
        let (urn, outputs) = self.or_end(convert::outputs(request.into_inner()))?;
        let done = self.monitor.register_outputs(urn, outputs).await;
        done.map_err(turned_away)?;
        Ok(Response::new(()))
    }

    async fn read_resource(
        &self,
        request: Request<proto::ReadResourceRequest>,
    ) -> Result<Response<proto::ReadResourceResponse>, Status> {
        let share = Share::of(&request);
        let message = request.into_inner();
        share.asked(message.properties.as_ref())?;
        let peer = Peer {
            secrets: message.accept_secrets,
            resources: message.accept_resources,
            byte_strings: message.accepts_byte_string,
        };
        let call = self.or_end(convert::read(message))?;
        let done = self.monitor.read(call).await.map_err(turned_away)?;
        let answer = self.or_end(convert::read_done(&done, peer.accept()))?;
        share.answer(answer)
    }

    async fn invoke(
        &self,
        request: Request<proto::ResourceInvokeRequest>,
    ) -> Result<Response<proto::ResourceInvokeResponse>, Status> {
        let share = Share::of(&request);
        let message = request.into_inner();
        share.asked(message.args.as_ref())?;
        let token = message.tok.clone();
        let peer = Peer {
            secrets: true,
            // Older SDKs rely on references in this answer without saying so.
            resources: message.accept_resources || token == "pulumi:pulumi:getResource",
            byte_strings: message.accepts_byte_string,
        };
        let call = convert::invoke(message).map_err(|error| refused(&error))?;
        let invoked = self
            .monitor
            .invoke(call)
            .await
            .map_err(|error| match error {
                InvokeError::Ending(ending) => turned_away(ending),
                InvokeError::Failed(error) => Status::unknown(error.to_string()),
            })?;
        let answer = convert::invoked(&token, invoked, peer.accept());
        share.answer(answer.map_err(|error| refused(&error))?)
    }

    async fn call(
        &self,
        request: Request<proto::ResourceCallRequest>,
    ) -> Result<Response<proto::CallResponse>, Status> {
        let share = Share::of(&request);
        let message = request.into_inner();
        share.asked(message.args.as_ref())?;
        let token = message.tok.clone();
        let peer = Peer {
            secrets: true,
            resources: true,
            byte_strings: message.accepts_byte_string,
        };
        let call = self.or_end(convert::call(message))?;
        let answer = self.monitor.call(call).await.map_err(turned_away)?;
        let answer = self.or_end(convert::called(&token, answer, peer.accept()))?;
        share.answer(answer)
    }

    async fn register_stack_transform(
        &self,
        request: Request<proto::Callback>,
    ) -> Result<Response<()>, Status> {
        let function = self
            .callbacks
            .function("a stack transform", request.get_ref());
        let function = function.map_err(|error| refused(&error))?;
        let added = self
            .monitor
            .add_stack_transform(resource_transform(function));
        added.map_err(|error| refused(&error))?;
        Ok(Response::new(()))
    }

    async fn register_stack_invoke_transform(
        &self,
        request: Request<proto::Callback>,
    ) -> Result<Response<()>, Status> {
        let function = self
            .callbacks
            .function("an invoke transform", request.get_ref());
        let function = function.map_err(|error| refused(&error))?;
        let added = self.monitor.add_invoke_transform(Arc::new(function));
        added.map_err(|error| refused(&error))?;
        Ok(Response::new(()))
    }

    async fn register_resource_hook(
        &self,
        request: Request<proto::RegisterResourceHookRequest>,
    ) -> Result<Response<()>, Status> {
        let message = request.into_inner();
        let callback = message.callback.unwrap_or_default();
        let what = format!("hook {}", message.name);
        let registered = self
            .callbacks
            .function(&what, &callback)
            .and_then(|function| {
                let hook = Hook {
                    callback: Arc::new(function),
                    on_dry_run: message.on_dry_run,
                    ignore_errors: message.ignore_errors,
                };
                self.monitor.hooks().register(&message.name, hook)
            });
        registered.map_err(|error| refused(&error))?;
        Ok(Response::new(()))
    }

    async fn register_error_hook(
        &self,
        request: Request<proto::RegisterErrorHookRequest>,
    ) -> Result<Response<()>, Status> {
        let message = request.into_inner();
        let callback = message.callback.unwrap_or_default();
        let what = format!("error hook {}", message.name);
        let registered = self
            .callbacks
            .function(&what, &callback)
            .and_then(|function| {
                let hooks = self.monitor.hooks();
                hooks.register_error_hook(&message.name, Arc::new(function))
            });
        registered.map_err(|error| refused(&error))?;
        Ok(Response::new(()))
    }

    async fn register_package(
        &self,
        request: Request<proto::RegisterPackageRequest>,
    ) -> Result<Response<proto::RegisterPackageResponse>, Status> {
        let registered = convert::package(request.into_inner())
            .and_then(|package| self.monitor.register_package(package));
        let r#ref = registered.map_err(|error| refused(&error))?;
        Ok(Response::new(proto::RegisterPackageResponse { r#ref }))
    }

    async fn signal_and_wait_for_shutdown(
        &self,
        _request: Request<()>,
    ) -> Result<Response<()>, Status> {
        match self.monitor.announce_end().await {
            Ok(true) => Ok(Response::new(())),
            Ok(false) => Err(Status::failed_precondition(
                "the end of the program was announced before",
            )),
            Err(ending) => Err(turned_away(ending)),
        }
    }
}
