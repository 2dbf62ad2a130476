//! From a provider's answers to messages.

use nimbus_engine_model::PropertyMap;
use nimbus_engine_ports::{
    CallResponse, CheckFailure, CheckResponse, CreateResponse, DiffKind, DiffResponse, Diffs,
    InvokeResponse, PropertyDiff, ReadResponse, UpdateResponse,
};
use nimbus_engine_proto as proto;
use nimbus_engine_wire::{Accept, encode};
use proto::diff_response::DiffChanges;
use proto::property_diff::Kind;
use tonic::Status;

use crate::failure::unsendable;

pub(crate) fn properties(
    properties: &PropertyMap,
    accept: Accept,
) -> Result<Option<proto::Struct>, Status> {
    encode(properties, accept).map(Some).map_err(unsendable)
}

pub(crate) fn check(
    response: CheckResponse,
    accept: Accept,
) -> Result<proto::CheckResponse, Status> {
    Ok(proto::CheckResponse {
        inputs: properties(&response.properties, accept)?,
        failures: failures(response.failures),
    })
}

pub(crate) fn diff(response: DiffResponse) -> proto::DiffResponse {
    let changes = match response.changes {
        Diffs::Unknown => DiffChanges::DiffUnknown,
        Diffs::None => DiffChanges::DiffNone,
        Diffs::Some => DiffChanges::DiffSome,
    };
    let has_detailed_diff = response.detailed.is_some();
    let detailed = response.detailed.unwrap_or_default().into_iter();
    proto::DiffResponse {
        replaces: response.replace_keys,
        stables: response.stable_keys,
        delete_before_replace: response.delete_before_replace,
        changes: changes.into(),
        diffs: response.changed_keys,
        detailed_diff: detailed
            .map(|(path, diff)| (path, property_diff(diff)))
            .collect(),
        has_detailed_diff,
    }
}

fn property_diff(diff: PropertyDiff) -> proto::PropertyDiff {
    let kind = match diff.kind {
        DiffKind::Add => Kind::Add,
        DiffKind::AddReplace => Kind::AddReplace,
        DiffKind::Delete => Kind::Delete,
        DiffKind::DeleteReplace => Kind::DeleteReplace,
        DiffKind::Update => Kind::Update,
        DiffKind::UpdateReplace => Kind::UpdateReplace,
    };
    proto::PropertyDiff {
        kind: kind.into(),
        input_diff: diff.input_diff,
    }
}

pub(crate) fn create(
    response: CreateResponse,
    accept: Accept,
) -> Result<proto::CreateResponse, Status> {
    Ok(proto::CreateResponse {
        id: response.id,
        properties: properties(&response.properties, accept)?,
        refresh_before_update: response.refresh_before_update,
    })
}

pub(crate) fn read(response: ReadResponse, accept: Accept) -> Result<proto::ReadResponse, Status> {
    let inputs = response.inputs.map(|inputs| properties(&inputs, accept));
    Ok(proto::ReadResponse {
        id: response.id.unwrap_or_default(),
        properties: properties(&response.outputs, accept)?,
        inputs: inputs.transpose()?.flatten(),
        refresh_before_update: response.refresh_before_update,
    })
}

pub(crate) fn update(
    response: UpdateResponse,
    accept: Accept,
) -> Result<proto::UpdateResponse, Status> {
    Ok(proto::UpdateResponse {
        properties: properties(&response.properties, accept)?,
        refresh_before_update: response.refresh_before_update,
    })
}

pub(crate) fn invoke(
    response: InvokeResponse,
    accept: Accept,
) -> Result<proto::InvokeResponse, Status> {
    Ok(proto::InvokeResponse {
        r#return: properties(&response.properties, accept)?,
        failures: failures(response.failures),
    })
}

pub(crate) fn call(response: CallResponse, accept: Accept) -> Result<proto::CallResponse, Status> {
    let dependencies = response.dependencies.into_iter().map(|(key, urns)| {
        let urns = urns.iter().map(ToString::to_string).collect();
        (key, proto::call_response::ReturnDependencies { urns })
    });
    Ok(proto::CallResponse {
        r#return: properties(&response.properties, accept)?,
        return_dependencies: dependencies.collect(),
        failures: failures(response.failures),
    })
}

fn failures(failures: Vec<CheckFailure>) -> Vec<proto::CheckFailure> {
    let convert = |failure: CheckFailure| proto::CheckFailure {
        property: failure.property,
        reason: failure.reason,
    };
    failures.into_iter().map(convert).collect()
}
