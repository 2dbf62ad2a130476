//! The use of a process by an operation.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use nimbus_engine_model::Urn;
use tokio_util::sync::CancellationToken;

use super::ProviderPool;
use super::slot::Starting;
use super::users::PoolUser;
use crate::error::PluginError;
use crate::plugin::Plugin;

/// As long as it is held, the process stays. Dropped, it is given back.
pub(crate) struct ProcessLease {
    pub(super) pool: Arc<ProviderPool>,
    pub(super) slot: u64,
    pub(super) user: Arc<PoolUser>,
    pub(super) starting: Starting,
    pub(super) hurry: CancellationToken,
    pub(super) given_back: AtomicBool,
}

impl ProcessLease {
    /// The process, as soon as it has started.
    pub(crate) async fn plugin(&self) -> Result<Arc<Plugin>, Arc<PluginError>> {
        let started = self.starting.clone().await;
        if self.pool.is_closed() {
            return Err(Arc::new(PluginError::Ending));
        }
        started
    }

    pub(crate) fn pool(&self) -> &Arc<ProviderPool> {
        &self.pool
    }

    /// A call begins. `acts` says whether it may change something.
    pub(crate) fn call(&self, about: Option<&Urn>, acts: bool) -> CallGuard<'_> {
        if let Some(urn) = about {
            self.user.asks(urn);
        }
        CallGuard {
            lease: self,
            about: about.cloned(),
            unfinished: acts,
        }
    }

    /// The process is another than it was started as: nobody else gets it.
    pub(crate) fn keep_from_others(&self) {
        self.pool.retire(self.slot);
    }

    /// Returns when calls that change nothing are not worth waiting for.
    pub(crate) async fn hurried(&self) {
        self.hurry.cancelled().await;
    }

    /// Gives it back. The last user gets a process that is not wanted any more, to end it.
    pub(crate) fn give_back(&self) -> Option<Arc<Plugin>> {
        if self.given_back.swap(true, Ordering::Relaxed) {
            return None;
        }
        self.pool.leave(self.slot, &self.user)
    }
}

impl Drop for ProcessLease {
    fn drop(&mut self) {
        // Whoever drops instead of closing does not wait: the process is killed.
        drop(self.give_back());
    }
}

/// A call under way.
pub(crate) struct CallGuard<'a> {
    lease: &'a ProcessLease,
    about: Option<Urn>,
    /// It may still be at work on something that nobody waits for. Others must not meet that.
    unfinished: bool,
}

impl CallGuard<'_> {
    /// A valid answer came.
    pub(crate) fn answered(&mut self) {
        self.unfinished = false;
    }

    /// No valid answer came, and none may come to others.
    pub(crate) fn lost(&mut self) {
        self.unfinished = true;
    }
}

impl Drop for CallGuard<'_> {
    fn drop(&mut self) {
        if let Some(urn) = &self.about {
            self.lease.user.has_asked(urn);
        }
        if self.unfinished {
            self.lease.pool.retire(self.lease.slot);
        }
    }
}
