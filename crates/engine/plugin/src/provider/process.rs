//! The process that a provider acts through: obtained, told its configuration, and given back.

use std::sync::Arc;

use futures::FutureExt as _;
use nimbus_engine_ports::{ConfigureRequest, ProviderError};
use tokio::sync::OnceCell;

use super::config::is_known;
use super::{CallContext, Elsewhere, GrpcProvider, ProviderState, Ready};
use crate::allocator::{Configuration, failed};
use crate::plugin::{Plugin, Protocol};
use crate::pool::{ProcessLease, Starting};
use crate::sharing::SharingReach;
use crate::start::StartPlan;

impl GrpcProvider {
    /// A process with this configuration.
    pub(super) async fn obtain(
        &self,
        plan: &StartPlan,
        request: ConfigureRequest,
        held: Option<&ProcessLease>,
    ) -> Result<Ready, ProviderError> {
        let everywhere = plan.reach() == SharingReach::Everywhere;
        let limits = self.allocator.limits();
        let wanted = request.clone();
        let configure = move |starting: Starting| {
            let configuring = async move {
                let plugin = starting.await.map_err(|error| failed(&error))?;
                let session = CallContext {
                    plugin,
                    protocol: Protocol::default(),
                    limits,
                    lease: None,
                    folder: None,
                    about: None,
                    acts: false,
                };
                session.configure(&wanted, !everywhere).await
            };
            configuring.boxed().shared()
        };
        let configuration = Configuration {
            urn: request.urn.as_ref(),
            name: &request.name,
            id: request.id.as_deref(),
            type_: &request.type_,
            inputs: &request.inputs,
        };
        let obtained = self
            .allocator
            .to_configure(plan, &configuration, held, configure);
        let (lease, configuring) = obtained?;
        let call = lease.call(request.urn.as_ref(), false);
        let configured = configuring.await;
        drop(call);
        let protocol = match configured {
            Ok(protocol) => protocol,
            Err(error) => {
                self.end(lease.give_back()).await;
                return Err(error);
            }
        };
        let plugin = lease.plugin().await.map_err(|error| failed(&error))?;
        let folder = self.allocator.folder_for(plan);
        let elsewhere = folder.map(|folder| Elsewhere {
            folder,
            request,
            in_folder: OnceCell::new(),
        });
        Ok(Ready {
            lease: Arc::new(lease),
            plugin,
            protocol,
            elsewhere: elsewhere.map(Arc::new),
        })
    }

    pub(super) async fn configure_with(
        &self,
        request: ConfigureRequest,
    ) -> Result<(), ProviderError> {
        let held = match &*self.state.lock() {
            ProviderState::Blank(lease) | ProviderState::Unconfigurable(lease) => {
                Some(Arc::clone(lease))
            }
            ProviderState::Ready(_) | ProviderState::Unusable => None,
        };
        let plan = self
            .allocator
            .plan_for(&self.plan, &self.package, &request.inputs);
        let plan = plan.map_err(|error| failed(&error))?;
        if !is_known(&request.inputs) {
            let lease = match held {
                Some(lease) => lease,
                None => Arc::new(self.allocator.any(&plan).map_err(|error| failed(&error))?),
            };
            self.turn_into(ProviderState::Unconfigurable(lease)).await;
            return Ok(());
        }
        let obtained = self.obtain(&plan, request, held.as_deref()).await;
        drop(held);
        match obtained {
            Ok(ready) => {
                self.turn_into(ProviderState::Ready(ready)).await;
                Ok(())
            }
            Err(error) => {
                self.turn_into(ProviderState::Unusable).await;
                Err(error)
            }
        }
    }

    /// Takes on a new state and gives back what the old one held.
    pub(super) async fn turn_into(&self, state: ProviderState) {
        let old = std::mem::replace(&mut *self.state.lock(), state);
        let kept = self.lease();
        let is_kept =
            |lease: &Arc<ProcessLease>| kept.as_ref().is_some_and(|kept| Arc::ptr_eq(kept, lease));
        for lease in old.leases().into_iter().filter(|lease| !is_kept(lease)) {
            self.end(lease.give_back()).await;
        }
    }

    async fn end(&self, plugin: Option<Arc<Plugin>>) {
        if let Some(plugin) = plugin {
            plugin.end(self.allocator.limits()).await;
        }
    }
}
