//! Requests and answers of the monitor on the wire.

use std::collections::BTreeMap;
use std::sync::Arc;

use nimbus_engine_model::{Alias, PackageDescriptor, Parameterization, PropertyMap, Urn};
use nimbus_engine_ports::{CallResponse, CheckFailure, RegisterStatus};
use nimbus_engine_proto as proto;
use nimbus_engine_wire::{Accept, AcceptedValues, Outputs, UnknownEncoding, decode, encode};
use tonic::metadata::MetadataMap;

use super::options::{self, AliasDialect};
use crate::error::MonitorError;
use crate::options::{InvokeOptions, ResourceOptions};
use crate::packages::{RegisteredPackage, parse_version};
use crate::position::{RawOrigin, RawPosition};
use crate::requests::{
    InvokeCall, Invoked, MethodCall, ReadCall, ReadDone, Registration, RegistrationResult,
};
use crate::transforms::ResourceTransform;

const KEEP: AcceptedValues = AcceptedValues {
    unknowns: UnknownEncoding::Keep,
    outputs: Outputs::Keep,
};

const FLATTEN: AcceptedValues = AcceptedValues {
    unknowns: UnknownEncoding::Keep,
    outputs: Outputs::Flatten,
};

/// Whether aliases have to be read as an old Node.js SDK meant them.
pub(super) fn alias_dialect(
    metadata: &MetadataMap,
    request: &proto::RegisterResourceRequest,
) -> AliasDialect {
    let value = |key| metadata.get(key).and_then(|value| value.to_str().ok());
    let from_node = match value("pulumi-runtime") {
        Some(runtime) => runtime == "nodejs",
        None => value("user-agent").is_some_and(|agent| agent.starts_with("grpc-node-js/")),
    };
    if from_node && !request.alias_specs {
        AliasDialect::OldNode
    } else {
        AliasDialect::Proper
    }
}

pub(super) fn registration(
    request: proto::RegisterResourceRequest,
    dialect: AliasDialect,
    transforms: Vec<Arc<dyn ResourceTransform>>,
) -> Result<Registration, MonitorError> {
    if !request.state_migrations.is_empty() {
        return Err(MonitorError::StateMigrations);
    }
    let by_urn = request.alias_ur_ns.iter();
    let by_urn = by_urn.map(|text| options::urn("alias", text).map(Alias::Urn));
    let by_spec = request.aliases.into_iter();
    let by_spec = by_spec.map(|alias| options::alias(alias, dialect));
    let aliases = by_urn.chain(by_spec).collect::<Result<_, _>>()?;
    // Some SDKs never say whether they defined it.
    let replaces_defined = request.delete_before_replace_defined || request.delete_before_replace;
    let told = request.property_dependencies.into_iter();
    let told: BTreeMap<_, _> = told
        .map(|(key, deps)| Ok((key, options::urns("property dependency", &deps.urns)?)))
        .collect::<Result<_, MonitorError>>()?;
    let options = ResourceOptions {
        depends_on: options::urns("dependency", &request.dependencies)?,
        protect: request.protect,
        ignore_changes: request.ignore_changes,
        replace_on_changes: request.replace_on_changes,
        aliases,
        provider: request.provider,
        providers: request.providers,
        version: request.version,
        plugin_download_url: request.plugin_download_url,
        plugin_checksums: request.plugin_checksums,
        timeouts: options::timeouts(request.custom_timeouts),
        retain_on_delete: request.retain_on_delete,
        deleted_with: options::optional_urn("deletedWith", &request.deleted_with)?,
        replace_with: options::urns("replaceWith", &request.replace_with)?,
        replacement_trigger: options::trigger(request.replacement_trigger)?,
        delete_before_replace: replaces_defined.then_some(request.delete_before_replace),
        additional_secret_outputs: request.additional_secret_outputs,
        hooks: options::hooks(request.hooks),
        import_id: request.import_id,
        hide_diff: request.hide_diffs,
    };
    Ok(Registration {
        parent: options::optional_urn("parent", &request.parent)?,
        custom: request.custom,
        remote: request.remote,
        properties: properties(&request.name, request.object, KEEP)?,
        property_dependencies: Some(told).filter(|told| !told.is_empty()),
        options,
        transforms,
        package_reference: request.package_ref,
        env_var_mappings: request.env_var_mappings,
        origin: origin(
            request.source_position,
            request.stack_trace,
            request.parent_stack_trace_handle,
        ),
        takes_failures: request.supports_result_reporting,
        takes_partial_values: request.supports_partial_values,
        type_: request.r#type,
        name: request.name,
    })
}

pub(super) fn registered(
    registered: RegistrationResult,
    accept: Accept,
) -> Result<proto::RegisterResourceResponse, MonitorError> {
    use proto::register_resource_response::PropertyDependencies;
    let dependencies = registered.dependencies.iter();
    let result = match registered.status {
        RegisterStatus::Succeeded => proto::Result::Success,
        RegisterStatus::Failed => proto::Result::Fail,
        RegisterStatus::Skipped => proto::Result::Skip,
    };
    Ok(proto::RegisterResourceResponse {
        urn: registered.urn.to_string(),
        id: registered.id.unwrap_or_default(),
        object: Some(encoded(
            registered.urn.as_str(),
            &registered.outputs,
            accept,
        )?),
        stable: false,
        stables: registered.stable,
        property_dependencies: dependencies
            .map(|(key, urns)| {
                let urns = options::texts(urns);
                (key.clone(), PropertyDependencies { urns })
            })
            .collect(),
        result: result.into(),
        unknown: registered.unknown,
    })
}

pub(super) fn outputs(
    request: proto::RegisterResourceOutputsRequest,
) -> Result<(Urn, PropertyMap), MonitorError> {
    let urn = options::urn("resource", &request.urn)?;
    let outputs = properties(&request.urn, request.outputs, FLATTEN)?;
    Ok((urn, outputs))
}

pub(super) fn read(request: proto::ReadResourceRequest) -> Result<ReadCall, MonitorError> {
    Ok(ReadCall {
        id: request.id,
        parent: options::optional_urn("parent", &request.parent)?,
        properties: properties(&request.name, request.properties, FLATTEN)?,
        dependencies: options::urns("dependency", &request.dependencies)?,
        provider: request.provider,
        version: request.version,
        plugin_download_url: request.plugin_download_url,
        plugin_checksums: request.plugin_checksums,
        package_reference: request.package_ref,
        additional_secret_outputs: request.additional_secret_outputs,
        origin: origin(
            request.source_position,
            request.stack_trace,
            request.parent_stack_trace_handle,
        ),
        type_: request.r#type,
        name: request.name,
    })
}

pub(super) fn read_done(
    done: &ReadDone,
    accept: Accept,
) -> Result<proto::ReadResourceResponse, MonitorError> {
    Ok(proto::ReadResourceResponse {
        urn: done.urn.to_string(),
        properties: Some(encoded(done.urn.as_str(), &done.outputs, accept)?),
    })
}

pub(super) fn invoke(request: proto::ResourceInvokeRequest) -> Result<InvokeCall, MonitorError> {
    Ok(InvokeCall {
        args: properties(&request.tok, request.args, FLATTEN)?,
        token: request.tok,
        options: InvokeOptions {
            provider: request.provider,
            version: request.version,
            plugin_download_url: request.plugin_download_url,
            plugin_checksums: request.plugin_checksums,
        },
        package_reference: request.package_ref,
        parent: options::optional_urn("parent", &request.parent)?,
        depends_on: options::urns("dependsOn", &request.depends_on)?,
    })
}

pub(super) fn invoked(
    token: &str,
    invoked: Invoked,
    accept: Accept,
) -> Result<proto::ResourceInvokeResponse, MonitorError> {
    match invoked {
        Invoked::Unknown => Ok(proto::ResourceInvokeResponse {
            unknown: true,
            ..proto::ResourceInvokeResponse::default()
        }),
        Invoked::Answered {
            properties,
            failures,
        } => Ok(proto::ResourceInvokeResponse {
            r#return: Some(encoded(token, &properties, accept)?),
            failures: check_failures(failures),
            unknown: false,
        }),
    }
}

pub(super) fn call(request: proto::ResourceCallRequest) -> Result<MethodCall, MonitorError> {
    let dependencies = request.arg_dependencies.into_iter();
    Ok(MethodCall {
        args: properties(&request.tok, request.args, KEEP)?,
        token: request.tok,
        arg_dependencies: dependencies
            .map(|(key, deps)| Ok((key, options::urns("argument dependency", &deps.urns)?)))
            .collect::<Result<_, MonitorError>>()?,
        provider: request.provider,
        version: request.version,
        plugin_download_url: request.plugin_download_url,
        plugin_checksums: request.plugin_checksums,
        package_reference: request.package_ref,
        origin: origin(
            request.source_position,
            request.stack_trace,
            request.parent_stack_trace_handle,
        ),
    })
}

pub(super) fn called(
    token: &str,
    answer: CallResponse,
    accept: Accept,
) -> Result<proto::CallResponse, MonitorError> {
    use proto::call_response::ReturnDependencies;
    let dependencies = answer.dependencies.iter();
    Ok(proto::CallResponse {
        r#return: Some(encoded(token, &answer.properties, accept)?),
        return_dependencies: dependencies
            .map(|(key, urns)| {
                let urns = options::texts(urns);
                (key.clone(), ReturnDependencies { urns })
            })
            .collect(),
        failures: check_failures(answer.failures),
    })
}

pub(super) fn package(
    request: proto::RegisterPackageRequest,
) -> Result<RegisteredPackage, MonitorError> {
    let version = parse_version(&request.name, &request.version)?;
    let parameterization = request.parameterization.map(parameterized).transpose()?;
    let extension = request.extension.map(parameterized).transpose()?;
    let checksums = request.checksums.into_iter();
    let plugin = PackageDescriptor {
        name: request.name,
        version,
        download_url: request.download_url,
        checksums: checksums
            .map(|(platform, sum)| (platform, hex::encode(sum)))
            .collect(),
        parameterization,
        ..PackageDescriptor::default()
    };
    Ok(RegisteredPackage {
        plugin,
        extension: extension.map(Arc::new),
    })
}

fn parameterized(parameter: proto::Parameterization) -> Result<Parameterization, MonitorError> {
    let parsed = parse_version(&parameter.name, &parameter.version)?;
    let version = parsed.ok_or_else(|| MonitorError::BadVersion {
        package: parameter.name.clone(),
        text: String::new(),
        reason: "it is empty".to_owned(),
    })?;
    Ok(Parameterization {
        name: parameter.name,
        version,
        value: parameter.value,
    })
}

fn properties(
    what: &str,
    properties: Option<proto::Struct>,
    expect: AcceptedValues,
) -> Result<PropertyMap, MonitorError> {
    decode(properties, expect).map_err(|error| MonitorError::unreadable(what, &error))
}

fn encoded(
    what: &str,
    properties: &PropertyMap,
    accept: Accept,
) -> Result<proto::Struct, MonitorError> {
    encode(properties, accept).map_err(|error| MonitorError::unsendable(what, &error))
}

fn check_failures(failures: Vec<CheckFailure>) -> Vec<proto::CheckFailure> {
    let failures = failures.into_iter();
    failures
        .map(|failure| proto::CheckFailure {
            property: failure.property,
            reason: failure.reason,
        })
        .collect()
}

fn origin(
    position: Option<proto::SourcePosition>,
    trace: Option<proto::StackTrace>,
    parent_handle: String,
) -> RawOrigin {
    let raw = |position: proto::SourcePosition| RawPosition {
        uri: position.uri,
        line: position.line,
        column: position.column,
    };
    let frames = trace.unwrap_or_default().frames.into_iter();
    RawOrigin {
        position: position.map(raw),
        frames: frames.map(|frame| frame.pc.map(raw)).collect(),
        parent_handle,
    }
}
