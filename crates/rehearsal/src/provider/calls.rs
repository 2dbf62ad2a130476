//! Create, read, update and delete on the simulated cloud.

use std::collections::BTreeMap;
use std::io;

use nimbus_engine_model::{PropertyMap, PropertyValue};
use nimbus_engine_ports::{
    CreateRequest, CreateResponse, DeleteRequest, DiffKind, DiffResponse, Diffs, FailureCause,
    InitFailure, PropertyDiff, ProviderError, ReadRequest, ReadResponse, UpdateRequest,
    UpdateResponse,
};

use super::RehearsalProvider;
use super::fault_orders::ProviderCall;
use crate::identity::{self, ObjectLocation};
use crate::orders::{CloudCall, OrderedEffect};
use crate::protection;
use crate::values::{self, SimulatedResource};
use crate::world::{self, SimulatedObject};

/// A difference key by key, as a provider reports it.
pub(super) fn compare(
    old: &PropertyMap,
    new: &PropertyMap,
    forces_new: impl Fn(&str) -> bool,
) -> DiffResponse {
    let mut detailed = BTreeMap::new();
    for key in old.keys().chain(new.keys()) {
        if old.get(key) == new.get(key) || key.starts_with("__") {
            continue;
        }
        let kind = match (old.contains_key(key), new.contains_key(key)) {
            (true, false) => DiffKind::Delete,
            (false, _) => DiffKind::Add,
            (true, true) => DiffKind::Update,
        };
        let kind = if forces_new(key) {
            kind.as_replace()
        } else {
            kind
        };
        detailed.insert(
            key.clone(),
            PropertyDiff {
                kind,
                input_diff: true,
            },
        );
    }
    let replaced = detailed.iter().filter(|(_, diff)| diff.kind.is_replace());
    DiffResponse {
        changes: if detailed.is_empty() {
            Diffs::None
        } else {
            Diffs::Some
        },
        replace_keys: replaced.map(|(key, _)| key.clone()).collect(),
        changed_keys: detailed.keys().cloned().collect(),
        stable_keys: Vec::new(),
        delete_before_replace: false,
        detailed: Some(detailed),
    }
}

pub(super) fn refused(message: impl Into<String>) -> ProviderError {
    ProviderError::failed(format!("rehearsal: {}", message.into()))
}

fn lost() -> ProviderError {
    let message = "rehearsal: the answer was lost, by order".to_owned();
    ProviderError::Unknown { message }
}

fn unwritable(error: io::Error) -> ProviderError {
    refused(format!("the world's file cannot be written: {error}"))
}

impl RehearsalProvider {
    fn outputs(&self, type_: &str, name: &str, id: &str, inputs: &PropertyMap) -> PropertyMap {
        let declared = self.shared.declarations.resource(type_);
        let region = self.region.lock().clone();
        let account = self.shared.orders.account();
        let subject = SimulatedResource {
            type_,
            name,
            id,
            region: &region,
            account: &account,
        };
        values::outputs(
            inputs,
            declared.as_ref().map(|list| list.as_slice()),
            &subject,
        )
    }

    pub(super) async fn create_object(
        &self,
        request: CreateRequest,
    ) -> Result<CreateResponse, ProviderError> {
        let CreateRequest {
            urn,
            type_,
            name,
            properties: inputs,
            preview,
            ..
        } = request;
        if preview {
            return Ok(CreateResponse {
                id: String::new(),
                properties: self.preview(&type_, &inputs),
                refresh_before_update: false,
            });
        }
        let asked = ProviderCall {
            call: CloudCall::Create,
            urn: urn.as_ref(),
            type_: &type_,
            name: &name,
            recorded: false,
        };
        let order = self.obey(&asked).await?;
        let seed = urn.map(|urn| urn.to_string()).unwrap_or_default();
        let id = self.claim_id(&type_, &name, &inputs, &seed)?;
        let properties = self.outputs(&type_, &name, &id, &inputs);
        self.keep(&type_, &name, &id, &inputs, &properties)?;
        match order {
            Some(OrderedEffect::Lose) => Err(lost()),
            Some(OrderedEffect::Half { message }) => {
                Err(ProviderError::InitFailed(Box::new(InitFailure {
                    id,
                    properties,
                    inputs: Some(inputs),
                    reasons: vec![message],
                    refresh_before_update: false,
                })))
            }
            _ => Ok(CreateResponse {
                id,
                properties,
                refresh_before_update: false,
            }),
        }
    }

    /// Known before anything exists: the inputs, and what has only one possible value.
    fn preview(&self, type_: &str, inputs: &PropertyMap) -> PropertyMap {
        let mut properties = inputs.clone();
        let declared = self.shared.declarations.resource(type_);
        for property in declared.iter().flat_map(|list| list.iter()) {
            if !property.optional && !properties.contains_key(&property.name) {
                properties.insert(property.name.clone(), PropertyValue::Computed);
            }
        }
        properties
    }

    /// An id that is free, within the type's quota. A replacement of the same resource gets
    /// another id than the object that it replaces.
    fn claim_id(
        &self,
        type_: &str,
        name: &str,
        inputs: &PropertyMap,
        seed: &str,
    ) -> Result<String, ProviderError> {
        let region = self.region.lock().clone();
        let account = self.shared.orders.account();
        let place = ObjectLocation {
            region: &region,
            account: &account,
        };
        let new_id = |generation: u32| {
            let seed = format!("{seed}#{generation}");
            identity::new_id(type_, name, inputs, &seed, place)
        };
        let world = self.shared.world()?;
        if let Some(most) = self.shared.orders.quota(type_)
            && world.count(type_) >= most
        {
            return Err(ProviderError::Failed {
                cause: FailureCause::ServiceLimit,
                message: format!("rehearsal: LimitExceeded: no more than {most} of {type_}"),
            });
        }
        for generation in 0_u32.. {
            let id = new_id(generation);
            if world.get(type_, &id).is_none() {
                return Ok(id);
            }
            let is_chosen = id == new_id(generation + 1);
            if is_chosen {
                return Err(refused(format!("AlreadyExists: {id} is taken")));
            }
        }
        Err(refused("no id is free"))
    }

    fn keep(
        &self,
        type_: &str,
        name: &str,
        id: &str,
        inputs: &PropertyMap,
        outputs: &PropertyMap,
    ) -> Result<(), ProviderError> {
        let object = SimulatedObject {
            type_: type_.to_owned(),
            name: name.to_owned(),
            inputs: world::to_json(inputs),
            outputs: world::to_json(outputs),
        };
        self.shared.world()?.put(id, object).map_err(unwritable)
    }

    pub(super) async fn read_object(
        &self,
        request: ReadRequest,
    ) -> Result<ReadResponse, ProviderError> {
        let asked = ProviderCall {
            call: CloudCall::Read,
            urn: request.urn.as_ref(),
            type_: &request.type_,
            name: &request.name,
            recorded: !request.state.is_empty(),
        };
        let order = self.obey(&asked).await?;
        let mut world = self.shared.world()?;
        if order == Some(OrderedEffect::Vanish) {
            world
                .remove(&request.type_, &request.id)
                .map_err(unwritable)?;
        }
        if order == Some(OrderedEffect::Lose) {
            return Err(lost());
        }
        Ok(match world.get(&request.type_, &request.id) {
            None => ReadResponse::default(),
            Some(object) => ReadResponse {
                outputs: world::from_json(&object.outputs, &request.state),
                inputs: Some(world::from_json(&object.inputs, &request.inputs)),
                id: Some(request.id),
                refresh_before_update: false,
            },
        })
    }

    pub(super) async fn update_object(
        &self,
        request: UpdateRequest,
    ) -> Result<UpdateResponse, ProviderError> {
        let UpdateRequest {
            urn,
            type_,
            name,
            id,
            new_inputs,
            preview,
            ..
        } = request;
        if preview {
            let properties = self.outputs(&type_, &name, &id, &new_inputs);
            return Ok(UpdateResponse {
                properties,
                refresh_before_update: false,
            });
        }
        let asked = ProviderCall {
            call: CloudCall::Update,
            urn: urn.as_ref(),
            type_: &type_,
            name: &name,
            recorded: true,
        };
        let order = self.obey(&asked).await?;
        if order == Some(OrderedEffect::Vanish) {
            let mut world = self.shared.world()?;
            world.remove(&type_, &id).map_err(unwritable)?;
        }
        if self.shared.world()?.get(&type_, &id).is_none() {
            return Err(ProviderError::Failed {
                cause: FailureCause::NotFound,
                message: format!("rehearsal: NotFound: {id} does not exist"),
            });
        }
        let properties = self.outputs(&type_, &name, &id, &new_inputs);
        self.keep(&type_, &name, &id, &new_inputs, &properties)?;
        match order {
            Some(OrderedEffect::Lose) => Err(lost()),
            Some(OrderedEffect::Half { message }) => {
                Err(ProviderError::InitFailed(Box::new(InitFailure {
                    id,
                    properties,
                    inputs: Some(new_inputs),
                    reasons: vec![message],
                    refresh_before_update: false,
                })))
            }
            _ => Ok(UpdateResponse {
                properties,
                refresh_before_update: false,
            }),
        }
    }

    pub(super) async fn delete_object(&self, request: DeleteRequest) -> Result<(), ProviderError> {
        let asked = ProviderCall {
            call: CloudCall::Delete,
            urn: request.urn.as_ref(),
            type_: &request.type_,
            name: &request.name,
            recorded: true,
        };
        let order = self.obey(&asked).await?;
        let mut world = self.shared.world()?;
        let object = world.get(&request.type_, &request.id);
        if let Some(switch) = object.and_then(|object| protection::protecting(&object.inputs)) {
            return Err(refused(format!(
                "OperationNotPermitted: {} is protected against deletion; turn its {switch} off, \
                 deploy, and delete it then",
                request.id
            )));
        }
        // Deleting what is gone already is no error, as with most clouds.
        world
            .remove(&request.type_, &request.id)
            .map_err(unwritable)?;
        if order == Some(OrderedEffect::Lose) {
            Err(lost())
        } else {
            Ok(())
        }
    }
}
