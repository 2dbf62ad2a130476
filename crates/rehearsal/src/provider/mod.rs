//! The provider of every package: any type, any property.
//!
//! What a real cloud would do is imitated where programs notice: ids and computed properties appear
//! at creation, some properties cannot be changed in place, names are unique, quotas end, and an
//! object can be gone. Orders come before all of it.

mod calls;
mod fault_orders;

use std::sync::Arc;

use async_trait::async_trait;
use nimbus_engine_model::{PackageDescriptor, Parameterization, PropertyMap, PropertyValue};
use nimbus_engine_ports::{
    CallRequest, CallResponse, CheckRequest, CheckResponse, ConfigureRequest, ConstructRequest,
    ConstructResponse, CreateRequest, CreateResponse, DeleteRequest, DiffRequest, DiffResponse,
    InvokeRequest, InvokeResponse, LoadError, Provider, ProviderError, ProviderHost, ReadRequest,
    ReadResponse, UpdateRequest, UpdateResponse,
};
use parking_lot::{Mutex, MutexGuard};

use crate::declarations::Declarations;
use crate::forecast::Observer;
use crate::identity;
use crate::invokes::Answers;
use crate::orders::FaultOrders;
use crate::replacements;
use crate::values::{self, SimulatedResource};
use crate::world::{SimulatedObject, SimulatedWorld};

/// The simulated cloud: give it to an engine as its provider host.
#[derive(Clone)]
pub struct Rehearsal {
    shared: Arc<SharedRehearsal>,
    observer: Observer,
}

struct SharedRehearsal {
    world: Mutex<SimulatedWorld>,
    declarations: Declarations,
    orders: FaultOrders,
    answers: Answers,
}

impl SharedRehearsal {
    /// The world as it is now, whoever changed it.
    fn world(&self) -> Result<MutexGuard<'_, SimulatedWorld>, ProviderError> {
        let mut world = self.world.lock();
        let caught_up = world.catch_up();
        caught_up.map_err(|error| calls::refused(error.to_string()))?;
        Ok(world)
    }
}

impl Rehearsal {
    /// Planted objects of the orders are put into the world unless they are there.
    pub fn new(
        mut world: SimulatedWorld,
        declarations: Declarations,
        orders: FaultOrders,
        answers: Answers,
    ) -> std::io::Result<Self> {
        for planted in &orders.planted {
            if world.get(&planted.type_, &planted.id).is_none() {
                let object = SimulatedObject {
                    type_: planted.type_.clone(),
                    name: String::new(),
                    inputs: planted.properties.clone(),
                    outputs: planted.properties.clone(),
                };
                world.put(&planted.id, object)?;
            }
        }
        let shared = SharedRehearsal {
            world: Mutex::new(world),
            declarations,
            orders,
            answers,
        };
        Ok(Self {
            shared: Arc::new(shared),
            observer: Observer::default(),
        })
    }

    /// Tells an observer of every call.
    pub fn observed_by(mut self, observer: Observer) -> Self {
        self.observer = observer;
        self
    }

    /// Everything that exists, as type and id.
    pub fn objects(&self) -> Vec<(String, String)> {
        let world = self.shared.world.lock();
        world
            .ids()
            .map(|(type_, id)| (type_.to_owned(), id.to_owned()))
            .collect()
    }
}

#[async_trait]
impl ProviderHost for Rehearsal {
    async fn load(&self, _: &PackageDescriptor) -> Result<Arc<dyn Provider>, LoadError> {
        let region = self.shared.orders.region.clone();
        Ok(Arc::new(RehearsalProvider {
            shared: Arc::clone(&self.shared),
            observer: self.observer.clone(),
            region: Mutex::new(region),
        }))
    }
}

/// One configured provider of the rehearsal.
pub struct RehearsalProvider {
    shared: Arc<SharedRehearsal>,
    observer: Observer,
    region: Mutex<String>,
}

#[async_trait]
impl Provider for RehearsalProvider {
    async fn check_config(&self, request: CheckRequest) -> Result<CheckResponse, ProviderError> {
        Ok(CheckResponse {
            properties: request.news,
            failures: Vec::new(),
        })
    }

    async fn diff_config(&self, request: DiffRequest) -> Result<DiffResponse, ProviderError> {
        Ok(calls::compare(
            &request.old_inputs,
            &request.new_inputs,
            |_| false,
        ))
    }

    async fn configure(&self, request: ConfigureRequest) -> Result<(), ProviderError> {
        if let Some(PropertyValue::String(region)) = request.inputs.get("region") {
            region.clone_into(&mut self.region.lock());
        }
        Ok(())
    }

    /// Objects of every type are simulated, whatever package they are from.
    async fn extend(&self, _: &Parameterization) -> Result<(), ProviderError> {
        Ok(())
    }

    async fn check(&self, request: CheckRequest) -> Result<CheckResponse, ProviderError> {
        Ok(CheckResponse {
            properties: request.news,
            failures: Vec::new(),
        })
    }

    async fn diff(&self, request: DiffRequest) -> Result<DiffResponse, ProviderError> {
        let declared = self.shared.declarations.resource(&request.type_);
        let kind = match request.new_inputs.get("loadBalancerType") {
            Some(PropertyValue::String(kind)) => Some(kind.as_str()),
            _ => None,
        };
        let forces = |key: &str| {
            !replacements::stays(&request.type_, key, kind)
                && (replacements::forces_new(&request.type_, key)
                    || declared.as_ref().is_some_and(|list| {
                        list.iter()
                            .any(|property| property.name == key && property.forces_new)
                    }))
        };
        let mut diff = calls::compare(&request.old_inputs, &request.new_inputs, forces);
        // Two objects cannot have the name that the user chose.
        let named = identity::naming_key(&request.type_);
        let chosen = named.and_then(|key| request.new_inputs.get(key));
        let before = named.and_then(|key| request.old_inputs.get(key));
        diff.delete_before_replace = diff.replaces() && chosen.is_some() && chosen == before;
        Ok(diff)
    }

    async fn create(&self, request: CreateRequest) -> Result<CreateResponse, ProviderError> {
        self.create_object(request).await
    }

    async fn read(&self, request: ReadRequest) -> Result<ReadResponse, ProviderError> {
        self.read_object(request).await
    }

    async fn update(&self, request: UpdateRequest) -> Result<UpdateResponse, ProviderError> {
        self.update_object(request).await
    }

    async fn delete(&self, request: DeleteRequest) -> Result<(), ProviderError> {
        self.delete_object(request).await
    }

    async fn invoke(&self, request: InvokeRequest) -> Result<InvokeResponse, ProviderError> {
        let region = self.region.lock().clone();
        let SharedRehearsal {
            answers,
            orders,
            declarations,
            ..
        } = self.shared.as_ref();
        let token = request.token.as_str();
        let account = orders.account();
        let Some(stored) = answers.answer(token, &request.args, &region, &account) else {
            return Err(ProviderError::failed(answers.unknown(token)));
        };
        let declared = declarations.function(token);
        let subject = SimulatedResource {
            type_: token,
            name: "rehearsal",
            id: &region,
            region: &region,
            account: &account,
        };
        let declared = declared.as_ref().map(|list| list.as_slice());
        let properties = values::outputs(&stored, declared, &subject);
        Ok(InvokeResponse {
            properties,
            failures: Vec::new(),
        })
    }

    async fn call(&self, _: CallRequest) -> Result<CallResponse, ProviderError> {
        Ok(CallResponse {
            properties: PropertyMap::new(),
            ..CallResponse::default()
        })
    }

    async fn construct(
        &self,
        request: ConstructRequest,
    ) -> Result<ConstructResponse, ProviderError> {
        Err(ProviderError::failed(format!(
            "{} is a remote component; its own plugin must run",
            request.type_
        )))
    }

    async fn cancel(&self) -> Result<(), ProviderError> {
        Ok(())
    }

    async fn close(&self) {}
}
