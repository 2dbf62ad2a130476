//! Holds a program's requests back until its types are known to be right.
//!
//! The program starts and runs meanwhile, but nothing that it asks for is decided, let alone done,
//! before the verdict. A program that is turned away here has changed nothing.

use std::sync::Arc;

use async_trait::async_trait;
use nimbus_engine_model::{Goal, PropertyMap, ProviderRef, ResourceState, Urn};
use nimbus_engine_ports::{Provider, ReadGoal, RegisterError, RegisterResult, Registrar};
use tokio::sync::watch;

use crate::check::TypeVerdict;

pub(crate) struct TypeCheckGate {
    registrar: Arc<dyn Registrar>,
    verdict: watch::Receiver<Option<TypeVerdict>>,
}

impl TypeCheckGate {
    /// `check` says when to open. It is not waited for once nobody holds the gate.
    pub(crate) fn before(
        registrar: Arc<dyn Registrar>,
        check: impl Future<Output = TypeVerdict> + Send + 'static,
    ) -> Arc<Self> {
        let (sender, verdict) = watch::channel(None);
        tokio::spawn(async move {
            tokio::select! {
                found = check => {
                    sender.send_replace(Some(found));
                }
                () = sender.closed() => {}
            }
        });
        Arc::new(Self { registrar, verdict })
    }

    /// Waits for the verdict.
    pub(crate) async fn verdict(&self) -> TypeVerdict {
        let mut verdict = self.verdict.clone();
        let known = verdict.wait_for(Option::is_some).await;
        let gone = || TypeVerdict::Unavailable("the check ended without a verdict".to_owned());
        known
            .ok()
            .and_then(|known| known.clone())
            .unwrap_or_else(gone)
    }

    /// Waits for a verdict other than that all is well.
    pub(crate) async fn denied(&self) {
        if self.verdict().await == TypeVerdict::Passed {
            std::future::pending::<()>().await;
        }
    }

    /// Whether the program was turned away only to be compiled in another way.
    pub(crate) fn wants_whole_program(&self) -> bool {
        let verdict = self.verdict.borrow();
        matches!(
            *verdict,
            Some(TypeVerdict::Whole | TypeVerdict::Unavailable(_))
        )
    }

    async fn pass(&self) -> Result<(), RegisterError> {
        match self.verdict().await {
            TypeVerdict::Passed => Ok(()),
            _ => Err(RegisterError::ShuttingDown),
        }
    }
}

#[async_trait]
impl Registrar for TypeCheckGate {
    async fn register(&self, goal: Goal) -> Result<RegisterResult, RegisterError> {
        self.pass().await?;
        self.registrar.register(goal).await
    }

    async fn register_outputs(&self, urn: Urn, outputs: PropertyMap) -> Result<(), RegisterError> {
        self.pass().await?;
        self.registrar.register_outputs(urn, outputs).await
    }

    async fn read(&self, goal: ReadGoal) -> Result<RegisterResult, RegisterError> {
        self.pass().await?;
        self.registrar.read(goal).await
    }

    fn provider(&self, reference: &ProviderRef) -> Option<Arc<dyn Provider>> {
        self.registrar.provider(reference)
    }

    fn resource(&self, urn: &Urn) -> Option<Arc<ResourceState>> {
        self.registrar.resource(urn)
    }
}
