//! A plugin together with what it understands: the context of every call.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use nimbus_engine_model::{PropertyMap, Urn};
use nimbus_engine_ports::{CheckFailure, ProviderError};
use nimbus_engine_proto as proto;
use nimbus_engine_proto::resource_provider_client::ResourceProviderClient;
use nimbus_engine_wire::{Accept, AcceptedValues, Outputs, UnknownEncoding, decode, encode};
use tonic::{Request, Response, Status};

use super::failure::{failure, nonsense, unsendable};
use crate::folder::{absolute, has_paths, relative_again};
use crate::link::{CallError, Observed};
use crate::options::PluginTimeouts;
use crate::plugin::{Plugin, Protocol};
use crate::pool::ProcessLease;

#[derive(Clone)]
pub(crate) struct CallContext {
    pub(crate) plugin: Arc<Plugin>,
    pub(crate) protocol: Protocol,
    pub(crate) limits: PluginTimeouts,
    /// Keeps the process while it is called; `None` while somebody else does.
    pub(crate) lease: Option<Arc<ProcessLease>>,
    /// The program's folder, if the process runs elsewhere.
    pub(crate) folder: Option<PathBuf>,
    /// The resource that the call is about.
    pub(crate) about: Option<Urn>,
    /// Whether the call may change something.
    pub(crate) acts: bool,
}

impl CallContext {
    /// Makes one call and draws the usual conclusion from its failure.
    pub(crate) async fn call<M, R, F>(
        &self,
        method: &'static str,
        limit: Duration,
        message: M,
        send: impl FnOnce(ResourceProviderClient<Observed>, Request<M>) -> F,
    ) -> Result<R, ProviderError>
    where
        F: Future<Output = Result<Response<R>, Status>>,
    {
        self.try_call(method, limit, message, send)
            .await
            .map_err(|error| failure(method, error))
    }

    pub(crate) async fn try_call<M, R, F>(
        &self,
        method: &'static str,
        limit: Duration,
        message: M,
        send: impl FnOnce(ResourceProviderClient<Observed>, Request<M>) -> F,
    ) -> Result<R, CallError>
    where
        F: Future<Output = Result<Response<R>, Status>>,
    {
        let client = self.plugin.link.provider();
        let send = |request| send(client, request);
        let answer = self.plugin.link.call(method, limit, message, send);
        let Some(lease) = &self.lease else {
            return answer.await;
        };
        let mut call = lease.call(self.about.as_ref(), self.acts);
        let answer = tokio::select! {
            answer = answer => answer,
            () = lease.hurried(), if !self.acts => Err(CallError::Abandoned),
        };
        match &answer {
            Err(CallError::Lost { .. }) => call.lost(),
            _ => call.answered(),
        }
        answer
    }

    /// Properties as this plugin can read them.
    pub(crate) fn send(
        &self,
        properties: &PropertyMap,
        accept: Accept,
    ) -> Result<Option<proto::Struct>, ProviderError> {
        match &self.folder {
            Some(folder) if !accept.hashes_only && has_paths(properties) => {
                send(&absolute(folder, properties), accept)
            }
            _ => send(properties, accept),
        }
    }

    /// Undoes to an answer what sending did to paths.
    pub(crate) fn restore_paths(&self, received: &mut PropertyMap, sent: &PropertyMap) {
        if let Some(folder) = &self.folder {
            relative_again(folder, received, sent);
        }
    }

    /// How long to wait for an act: the provider's own limit with some grace, or the general one.
    pub(crate) fn act_limit(&self, own: Option<Duration>) -> Duration {
        own.map_or(self.limits.slow, |own| {
            own.saturating_add(self.limits.grace)
        })
    }

    pub(crate) fn accept(&self, unknowns: UnknownEncoding) -> Accept {
        Accept {
            unknowns,
            secrets: self.protocol.accepts_secrets,
            resources: self.protocol.accepts_resources,
            byte_strings: self.protocol.accepts_byte_strings,
            ..Accept::default()
        }
    }

    /// Old values go without the contents of their assets.
    pub(crate) fn accept_old(&self, unknowns: UnknownEncoding) -> Accept {
        Accept {
            hashes_only: true,
            ..self.accept(unknowns)
        }
    }
}

pub(crate) fn send(
    properties: &PropertyMap,
    accept: Accept,
) -> Result<Option<proto::Struct>, ProviderError> {
    encode(properties, accept).map(Some).map_err(unsendable)
}

/// What came back. Unknown values belong in previews only.
pub(crate) fn receive(
    method: &str,
    properties: Option<proto::Struct>,
    unknowns: UnknownEncoding,
) -> Result<PropertyMap, ProviderError> {
    let expect = AcceptedValues {
        unknowns,
        outputs: Outputs::Flatten,
    };
    decode(properties, expect).map_err(|error| nonsense(method, error))
}

pub(crate) fn keep_if(allowed: bool) -> UnknownEncoding {
    if allowed {
        UnknownEncoding::Keep
    } else {
        UnknownEncoding::Drop
    }
}

pub(crate) fn keep_or_reject(allowed: bool) -> UnknownEncoding {
    if allowed {
        UnknownEncoding::Keep
    } else {
        UnknownEncoding::Reject
    }
}

pub(crate) fn failures(failures: Vec<proto::CheckFailure>) -> Vec<CheckFailure> {
    let convert = |f: proto::CheckFailure| CheckFailure {
        property: f.property,
        reason: f.reason,
    };
    failures.into_iter().map(convert).collect()
}

pub(crate) fn text(urn: Option<&Urn>) -> String {
    urn.map(Urn::to_string).unwrap_or_default()
}

/// The protocol writes time limits in seconds, and none as zero.
pub(crate) fn seconds(limit: Option<Duration>) -> f64 {
    limit.map_or(0.0, |limit| limit.as_secs_f64())
}
