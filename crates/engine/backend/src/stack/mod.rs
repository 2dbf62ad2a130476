//! One stack of a backend.

mod checkpoint;
mod history;
mod keep_sealed;
mod load;
mod rename;
mod tags;
mod transfer;

use jiff::Timestamp;
use nimbus_engine_model::format::{CheckpointHead, Layout, SecretsMode, write_checkpoint};
use nimbus_engine_model::secrets::{CiphertextCache, NoSecrets};

use crate::backend::Backend;
use crate::error::BackendError;
use crate::journal::{JournalSeal, seal_abandoned, sweep};
use crate::layout::StackKeys;
use crate::lease::{self, HeldBy, Lease, LeaseGuard, Owner, Unlocked};
use crate::names::StackRef;

pub(crate) use self::checkpoint::Stored;
pub use self::history::{StackVersion, UpdateInfo, UpdateKind, UpdateResult};
pub(crate) use self::keep_sealed::KeepSealed;
pub use self::load::{LoadedState, Unverified};
pub use self::transfer::{ImportOptions, Imported};

/// Cheap to make and to clone; does nothing by itself.
#[derive(Clone, Debug)]
pub struct Stack {
    pub(crate) backend: Backend,
    pub(crate) stack: StackRef,
    pub(crate) keys: StackKeys,
}

impl Stack {
    pub(crate) fn new(backend: Backend, stack: StackRef) -> Self {
        let keys = StackKeys::new(&stack);
        Self {
            backend,
            stack,
            keys,
        }
    }

    pub fn name(&self) -> &StackRef {
        &self.stack
    }

    pub async fn exists(&self) -> Result<bool, BackendError> {
        Ok(self.find().await?.is_some())
    }

    /// Makes the stack, with nothing in it.
    pub async fn create(&self, owner: Owner) -> Result<(), BackendError> {
        self.locked(owner, async |lease| self.create_under(lease).await)
            .await
    }

    async fn create_under(&self, lease: &Lease) -> Result<(), BackendError> {
        if self.exists().await? {
            return Err(BackendError::Exists {
                stack: self.stack.clone(),
            });
        }
        let secrets = SecretsMode::Encrypt {
            crypter: &NoSecrets,
            cache: &mut CiphertextCache::default(),
        };
        let bytes = write_checkpoint(&self.head(), None, secrets, Layout::Compact)
            .map_err(|source| self.state_error(source))?;
        self.save(lease, None, bytes).await.map(drop)
    }

    /// Does something as the stack's one writer.
    pub(crate) async fn locked<T>(
        &self,
        owner: Owner,
        work: impl AsyncFnOnce(&Lease) -> Result<T, BackendError>,
    ) -> Result<T, BackendError> {
        let lease = self.lock(owner).await?;
        let result = work(&lease).await;
        let released = lease.release().await;
        // What went wrong first is what matters.
        let value = result?;
        released?;
        Ok(value)
    }

    /// Becomes the stack's one writer. Predecessors that may still live are shut out first.
    pub(crate) async fn lock(&self, owner: Owner) -> Result<LeaseGuard, BackendError> {
        let backend = &self.backend;
        backend.ensure_layout().await?;
        let sealed_by = owner.to_string();
        let settings = backend.options().lease;
        let lease = Lease::acquire(
            backend.place(),
            &self.stack,
            owner,
            backend.clock(),
            settings,
        )
        .await?;
        let lease = LeaseGuard::new(lease);
        if let Err(error) = self.settle(&lease, sealed_by).await {
            lease.release().await?;
            return Err(error);
        }
        Ok(lease)
    }

    async fn settle(&self, lease: &Lease, by: String) -> Result<(), BackendError> {
        let place = self.backend.place();
        let seal = JournalSeal {
            epoch: lease.epoch(),
            by,
        };
        seal_abandoned(place, &self.stack, &lease.abandoned(), &seal).await?;
        lease.forget_abandoned();
        sweep(place, &self.stack, self.now()).await?;
        Ok(())
    }

    /// Who is changing the stack.
    pub async fn holder(&self) -> Result<Option<HeldBy>, BackendError> {
        let clock = self.backend.clock().as_ref();
        Ok(lease::inspect(self.backend.place(), &self.stack, clock).await?)
    }

    /// Ends whatever lease and locks there are, unless the holder is alive on this machine.
    pub async fn unlock(&self) -> Result<Unlocked, BackendError> {
        let clock = self.backend.clock().as_ref();
        Ok(lease::unlock(self.backend.place(), &self.stack, clock).await?)
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.backend.clock().now()
    }

    pub(crate) fn head(&self) -> CheckpointHead {
        CheckpointHead {
            stack: self.stack.to_string(),
            ..CheckpointHead::default()
        }
    }

    pub(crate) fn not_found(&self) -> BackendError {
        BackendError::NotFound {
            stack: self.stack.clone(),
            backend: self.backend.name().to_owned(),
        }
    }

    pub(crate) fn state_error(
        &self,
        source: nimbus_engine_model::format::StateError,
    ) -> BackendError {
        BackendError::state(&format!("the state of {}", self.stack), source)
    }
}
