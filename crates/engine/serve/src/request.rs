//! From messages to what a provider is asked.
//!
//! Engines before the handshake name neither a resource nor its type: both are in its URN.

use std::collections::BTreeMap;
use std::time::Duration;

use nimbus_engine_model::{Naming, NamingMode, PropertyMap, TypeToken, Urn};
use nimbus_engine_ports::{
    CallRequest, CheckRequest, ConfigureRequest, CreateRequest, DeleteRequest, DeploymentContext,
    DiffRequest, InvokeRequest, ReadRequest, UpdateRequest,
};
use nimbus_engine_proto as proto;
use nimbus_engine_wire::{AcceptedValues, Outputs, UnknownEncoding, decode};
use proto::check_request::AutonamingOptions;
use proto::check_request::autonaming_options::Mode;
use tonic::Status;

use crate::failure::unreadable;

/// The resource that a call is about.
struct CalledResource {
    urn: Option<Urn>,
    name: String,
    type_: TypeToken,
}

impl CalledResource {
    fn new(urn: &str, name: String, type_: String) -> Result<Self, Status> {
        let urn = match urn {
            "" => None,
            urn => Some(Urn::parse(urn).map_err(unreadable)?),
        };
        let or_of_urn = |given: String, part: fn(&Urn) -> &str| match &urn {
            Some(urn) if given.is_empty() => part(urn).to_owned(),
            _ => given,
        };
        let name = or_of_urn(name, Urn::name);
        let type_ = or_of_urn(type_, Urn::type_);
        Ok(Self { urn, name, type_ })
    }
}

fn properties(sent: Option<proto::Struct>, outputs: Outputs) -> Result<PropertyMap, Status> {
    let expect = AcceptedValues {
        unknowns: UnknownEncoding::Keep,
        outputs,
    };
    decode(sent, expect).map_err(unreadable)
}

fn plain(sent: Option<proto::Struct>) -> Result<PropertyMap, Status> {
    properties(sent, Outputs::Flatten)
}

fn has_unknowns(properties: &PropertyMap) -> bool {
    properties.values().any(|value| value.contains_unknowns())
}

/// None is written as zero.
fn limit(seconds: f64) -> Option<Duration> {
    let limit = Duration::try_from_secs_f64(seconds).ok();
    limit.filter(|limit| !limit.is_zero())
}

pub(crate) fn check(request: proto::CheckRequest) -> Result<CheckRequest, Status> {
    let subject = CalledResource::new(&request.urn, request.name, request.r#type)?;
    let olds = plain(request.olds)?;
    let news = plain(request.news)?;
    Ok(CheckRequest {
        urn: subject.urn,
        name: subject.name,
        type_: subject.type_,
        // A new resource has none, and engines write that as an empty value.
        olds: (!olds.is_empty()).then_some(olds),
        allow_unknowns: has_unknowns(&news),
        news,
        random_seed: request.random_seed,
        naming: request.autonaming.map(naming),
    })
}

fn naming(options: AutonamingOptions) -> Naming {
    let mode = match options.mode() {
        Mode::Propose => NamingMode::Propose,
        Mode::Enforce => NamingMode::Enforce,
        Mode::Disable => NamingMode::Disable,
    };
    Naming {
        proposed: options.proposed_name,
        mode,
        // Whether to warn is for the engine that asks.
        deliberate: false,
    }
}

pub(crate) fn diff(request: proto::DiffRequest) -> Result<DiffRequest, Status> {
    let subject = CalledResource::new(&request.urn, request.name, request.r#type)?;
    let new_inputs = plain(request.news)?;
    Ok(DiffRequest {
        urn: subject.urn,
        name: subject.name,
        type_: subject.type_,
        id: request.id,
        old_inputs: plain(request.old_inputs)?,
        old_outputs: plain(request.olds)?,
        allow_unknowns: has_unknowns(&new_inputs),
        new_inputs,
        ignore_changes: request.ignore_changes,
    })
}

pub(crate) fn configure(request: proto::ConfigureRequest) -> Result<ConfigureRequest, Status> {
    let urn = request.urn.unwrap_or_default();
    let name = request.name.unwrap_or_default();
    let type_ = request.r#type.unwrap_or_default();
    let subject = CalledResource::new(&urn, name, type_)?;
    Ok(ConfigureRequest {
        urn: subject.urn,
        name: subject.name,
        type_: subject.type_,
        id: request.id,
        inputs: plain(request.args)?,
    })
}

pub(crate) fn create(request: proto::CreateRequest) -> Result<CreateRequest, Status> {
    let subject = CalledResource::new(&request.urn, request.name, request.r#type)?;
    Ok(CreateRequest {
        urn: subject.urn,
        name: subject.name,
        type_: subject.type_,
        properties: plain(request.properties)?,
        timeout: limit(request.timeout),
        preview: request.preview,
    })
}

pub(crate) fn read(request: proto::ReadRequest) -> Result<ReadRequest, Status> {
    let subject = CalledResource::new(&request.urn, request.name, request.r#type)?;
    Ok(ReadRequest {
        urn: subject.urn,
        name: subject.name,
        type_: subject.type_,
        id: request.id,
        inputs: plain(request.inputs)?,
        state: plain(request.properties)?,
    })
}

pub(crate) fn update(request: proto::UpdateRequest) -> Result<UpdateRequest, Status> {
    let subject = CalledResource::new(&request.urn, request.name, request.r#type)?;
    Ok(UpdateRequest {
        urn: subject.urn,
        name: subject.name,
        type_: subject.type_,
        id: request.id,
        old_inputs: plain(request.old_inputs)?,
        old_outputs: plain(request.olds)?,
        new_inputs: plain(request.news)?,
        timeout: limit(request.timeout),
        ignore_changes: request.ignore_changes,
        preview: request.preview,
    })
}

pub(crate) fn delete(request: proto::DeleteRequest) -> Result<DeleteRequest, Status> {
    let subject = CalledResource::new(&request.urn, request.name, request.r#type)?;
    Ok(DeleteRequest {
        urn: subject.urn,
        name: subject.name,
        type_: subject.type_,
        id: request.id,
        inputs: plain(request.old_inputs)?,
        outputs: plain(request.properties)?,
        timeout: limit(request.timeout),
    })
}

pub(crate) fn invoke(request: proto::InvokeRequest) -> Result<InvokeRequest, Status> {
    Ok(InvokeRequest {
        token: request.tok,
        args: plain(request.args)?,
        preview: request.preview,
    })
}

pub(crate) fn call(request: proto::CallRequest) -> Result<CallRequest, Status> {
    let mut arg_dependencies = BTreeMap::new();
    for (key, dependencies) in request.arg_dependencies {
        let urns = dependencies.urns.iter().map(|urn| Urn::parse(urn));
        let urns = urns.collect::<Result<_, _>>().map_err(unreadable)?;
        arg_dependencies.insert(key, urns);
    }
    Ok(CallRequest {
        context: DeploymentContext {
            project: request.project,
            stack: request.stack,
            organization: request.organization,
            config: request.config,
            config_secret_keys: request.config_secret_keys.into_iter().collect(),
            dry_run: request.dry_run,
            parallel: request.parallel,
            monitor_endpoint: request.monitor_endpoint,
        },
        token: request.tok,
        args: properties(request.args, Outputs::Keep)?,
        arg_dependencies,
        stack_trace_handle: request.stack_trace_handle,
    })
}
