//! Resources as policies see them, and what policies say about them.

use nimbus_engine_model::Urn;
use nimbus_engine_ports::{
    AnalyzeRequest, AnalyzerProvider, AnalyzerResource, PolicyDiagnostic, Remediation,
};
use nimbus_engine_proto as proto;
use nimbus_engine_wire::{
    Accept, AcceptedValues, Outputs, UnknownEncoding, WireError, decode, encode,
};
use proto::analyzer_resource_options::CustomTimeouts;

use super::config::level;

/// All properties, secrets marked, references as plain ids.
pub(super) const WHOLE: Accept = Accept {
    unknowns: UnknownEncoding::Keep,
    secrets: true,
    resources: false,
    outputs: false,
    byte_strings: false,
    hashes_only: false,
    skip_internal: false,
};
/// The same without properties that are none of the user's business.
pub(super) const VISIBLE: Accept = Accept {
    skip_internal: true,
    ..WHOLE
};

pub(super) fn request(
    request: &AnalyzeRequest,
    accept: Accept,
) -> Result<proto::AnalyzeRequest, WireError> {
    Ok(proto::AnalyzeRequest {
        r#type: request.type_.clone(),
        properties: Some(encode(&request.properties, accept)?),
        urn: request.urn.to_string(),
        name: request.name.clone(),
        options: Some(options(request)),
        provider: request.provider.as_ref().map(provider).transpose()?,
    })
}

pub(super) fn resource(resource: &AnalyzerResource) -> Result<proto::AnalyzerResource, WireError> {
    let AnalyzerResource {
        resource,
        dependencies,
        property_dependencies,
    } = resource;
    let depending = property_dependencies
        .iter()
        .filter(|(_, urns)| !urns.is_empty());
    let property_dependencies = depending
        .map(|(key, urns)| {
            (
                key.clone(),
                proto::AnalyzerPropertyDependencies { urns: texts(urns) },
            )
        })
        .collect();
    Ok(proto::AnalyzerResource {
        r#type: resource.type_.clone(),
        properties: Some(encode(&resource.properties, VISIBLE)?),
        urn: resource.urn.to_string(),
        name: resource.name.clone(),
        options: Some(options(resource)),
        provider: resource.provider.as_ref().map(provider).transpose()?,
        parent: parent(resource),
        dependencies: texts(dependencies),
        property_dependencies,
    })
}

fn options(request: &AnalyzeRequest) -> proto::AnalyzerResourceOptions {
    let timeouts = &request.custom_timeouts;
    proto::AnalyzerResourceOptions {
        protect: request.protect,
        ignore_changes: request.ignore_changes.clone(),
        delete_before_replace: request.delete_before_replace.unwrap_or_default(),
        delete_before_replace_defined: request.delete_before_replace.is_some(),
        additional_secret_outputs: request.additional_secret_outputs.clone(),
        aliases: texts(&request.aliases),
        custom_timeouts: Some(CustomTimeouts {
            create: timeouts.create,
            update: timeouts.update,
            delete: timeouts.delete,
            read: 0.0,
        }),
        parent: parent(request),
    }
}

fn provider(provider: &AnalyzerProvider) -> Result<proto::AnalyzerProviderResource, WireError> {
    Ok(proto::AnalyzerProviderResource {
        r#type: provider.type_.clone(),
        properties: Some(encode(&provider.properties, VISIBLE)?),
        urn: provider.urn.to_string(),
        name: provider.name.clone(),
    })
}

fn parent(request: &AnalyzeRequest) -> String {
    request
        .parent
        .as_ref()
        .map(Urn::to_string)
        .unwrap_or_default()
}

fn texts(urns: &[Urn]) -> Vec<String> {
    urns.iter().map(Urn::to_string).collect()
}

pub(super) fn diagnostic(
    diagnostic: proto::AnalyzeDiagnostic,
    version: Option<&str>,
) -> Result<PolicyDiagnostic, String> {
    Ok(PolicyDiagnostic {
        enforcement: level(diagnostic.enforcement_level)?,
        policy: diagnostic.policy_name,
        pack: diagnostic.policy_pack_name,
        pack_version: version.map_or(diagnostic.policy_pack_version, str::to_owned),
        message: diagnostic.message,
        urn: Urn::parse(&diagnostic.urn).ok(),
    })
}

pub(super) fn remediation(
    remediation: proto::Remediation,
    version: Option<&str>,
) -> Result<Remediation, String> {
    let expect = AcceptedValues {
        unknowns: UnknownEncoding::Keep,
        outputs: Outputs::Flatten,
    };
    let properties = remediation
        .properties
        .map(|properties| decode(Some(properties), expect));
    Ok(Remediation {
        properties: properties.transpose().map_err(|error| error.to_string())?,
        policy: remediation.policy_name,
        pack: remediation.policy_pack_name,
        pack_version: version.map_or(remediation.policy_pack_version, str::to_owned),
        diagnostic: remediation.diagnostic,
    })
}
