//! The deployment as the program's monitor sees it.

use std::sync::Arc;

use async_trait::async_trait;
use nimbus_engine_model::{Goal, PropertyMap, ProviderRef, ResourceState, Urn};
use nimbus_engine_ports::{Provider, ReadGoal, RegisterError, RegisterResult, Registrar};

use tracing::Instrument as _;

use super::Deployment;
use super::register::NoAnswer;
use crate::error::DeployError;

/// Lets registrations in. Each becomes a task, so that it is finished even if its caller leaves.
pub(crate) struct RegistrationGate(pub Arc<Deployment>);

impl RegistrationGate {
    async fn run<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, NoAnswer>> + Send + 'static,
    ) -> Result<T, RegisterError> {
        let deployment = &self.0;
        let work = work.instrument(deployment.span.clone());
        let ended = deployment.tasks.spawn(work).await.unwrap_or_else(|panic| {
            let message = format!("a registration ended abnormally: {panic}");
            Err(NoAnswer::Error(DeployError::Internal { message }))
        });
        match ended {
            Ok(answer) => Ok(answer),
            Err(NoAnswer::Stopped) => Err(RegisterError::ShuttingDown),
            Err(NoAnswer::Error(error)) => {
                let answer = match &error {
                    DeployError::InvalidGoal { message, .. } => RegisterError::Invalid {
                        message: message.clone(),
                    },
                    _ => RegisterError::ShuttingDown,
                };
                deployment.stop(error);
                Err(answer)
            }
        }
    }
}

#[async_trait]
impl Registrar for RegistrationGate {
    async fn register(&self, goal: Goal) -> Result<RegisterResult, RegisterError> {
        let deployment = Arc::clone(&self.0);
        self.run(async move { deployment.register(goal).await })
            .await
    }

    async fn register_outputs(&self, urn: Urn, outputs: PropertyMap) -> Result<(), RegisterError> {
        let deployment = Arc::clone(&self.0);
        self.run(async move { deployment.register_outputs(urn, outputs).await })
            .await
    }

    async fn read(&self, goal: ReadGoal) -> Result<RegisterResult, RegisterError> {
        let deployment = Arc::clone(&self.0);
        self.run(async move { deployment.read(goal).await }).await
    }

    fn provider(&self, reference: &ProviderRef) -> Option<Arc<dyn Provider>> {
        self.0
            .executor
            .registry
            .get(reference)
            .map(|handle| handle.provider)
    }

    fn resource(&self, urn: &Urn) -> Option<Arc<ResourceState>> {
        self.0.resource(urn)
    }
}
