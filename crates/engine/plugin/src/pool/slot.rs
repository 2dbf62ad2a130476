//! One process: how it came about, what it was told, and who uses it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::{BoxFuture, Shared};
use nimbus_engine_ports::ProviderError;
use tokio_util::sync::CancellationToken;

use super::key::KeyDigest;
use super::users::{PoolUser, PoolUsers};
use crate::error::PluginError;
use crate::plugin::{Plugin, Protocol};
use crate::sharing::SharingReach;

/// The start of a process, which everybody who wants it waits for and takes forward.
pub(crate) type Starting = Shared<BoxFuture<'static, Result<Arc<Plugin>, Arc<PluginError>>>>;
/// Likewise its configuration.
pub(crate) type Configuring = Shared<BoxFuture<'static, Result<Protocol, ProviderError>>>;

pub(super) struct PooledProcess {
    pub(super) id: u64,
    pub(super) launch: KeyDigest,
    pub(super) reach: SharingReach,
    /// The configuration that it was asked about. It is asked about no other.
    pub(super) checked: Option<KeyDigest>,
    /// The configuration that it has, or is about to have.
    pub(super) configured: Option<(KeyDigest, Configuring)>,
    pub(super) starting: Starting,
    pub(super) audience: Arc<PoolUsers>,
    uses: BTreeMap<u64, OperationUse>,
    /// When it was told its configuration.
    configured_at: Option<Instant>,
    /// Since when nobody uses it.
    pub(super) idle: Option<Instant>,
    /// It takes no new users.
    pub(super) retired: bool,
    /// It was told to stop.
    pub(super) stopped: bool,
}

/// What one operation has of a process.
struct OperationUse {
    leases: usize,
    /// Cancelled when calls that change nothing are not worth waiting for any more.
    hurry: CancellationToken,
    cancelled: bool,
}

impl PooledProcess {
    pub(super) fn new(
        id: u64,
        (launch, reach): (KeyDigest, SharingReach),
        starting: Starting,
        audience: Arc<PoolUsers>,
    ) -> Self {
        Self {
            id,
            launch,
            reach,
            checked: None,
            configured: None,
            starting,
            audience,
            uses: BTreeMap::new(),
            configured_at: None,
            idle: None,
            retired: false,
            stopped: false,
        }
    }

    /// Whether somebody new may use it.
    pub(super) fn is_usable(&self, age: Duration) -> bool {
        let refused = |(_, configuring): &(_, Configuring)| {
            configuring.peek().is_some_and(|result| result.is_err())
        };
        let refused = self.configured.as_ref().is_some_and(refused);
        let fresh = self.configured_at.is_none_or(|at| at.elapsed() < age);
        !self.retired && !refused && self.is_alive() && fresh
    }

    /// Its configuration: the one that it has, or this one.
    pub(super) fn configure(
        &mut self,
        configuration: KeyDigest,
        configure: impl FnOnce(Starting) -> Configuring,
    ) -> Configuring {
        let starting = self.starting.clone();
        let (_, configuring) = self.configured.get_or_insert_with(|| {
            self.configured_at = Some(Instant::now());
            (configuration, configure(starting))
        });
        configuring.clone()
    }

    /// Running, or about to.
    pub(super) fn is_alive(&self) -> bool {
        match self.starting.peek() {
            Some(Ok(plugin)) => plugin.link.is_alive(),
            Some(Err(_)) => false,
            None => true,
        }
    }

    pub(super) fn is_starting(&self) -> bool {
        self.starting.peek().is_none()
    }

    /// Nobody has told it anything.
    pub(super) fn is_blank(&self) -> bool {
        self.checked.is_none() && self.configured.is_none()
    }

    pub(super) fn plugin(&self) -> Option<Arc<Plugin>> {
        self.starting.peek()?.as_ref().ok().cloned()
    }

    pub(super) fn enter(&mut self, user: &Arc<PoolUser>) -> CancellationToken {
        self.idle = None;
        self.audience.add(user);
        let used = self.uses.entry(user.id()).or_insert_with(|| OperationUse {
            leases: 0,
            hurry: CancellationToken::new(),
            cancelled: false,
        });
        used.leases += 1;
        used.hurry.clone()
    }

    /// Returns whether nobody is left.
    pub(super) fn leave(&mut self, user: &PoolUser) -> bool {
        if let Some(used) = self.uses.get_mut(&user.id()) {
            used.leases -= 1;
            if used.leases == 0 {
                self.uses.remove(&user.id());
                self.audience.remove(user);
            }
        }
        self.uses.is_empty()
    }

    pub(super) fn cancel(&mut self, user: &PoolUser) {
        if let Some(used) = self.uses.get_mut(&user.id()) {
            used.cancelled = true;
        }
    }

    /// Whether everybody who uses it wants to stop.
    pub(super) fn is_cancelled(&self) -> bool {
        !self.uses.is_empty() && self.uses.values().all(|used| used.cancelled)
    }

    /// Its plugin, to be told to stop. It is of no use to anybody else then.
    pub(super) fn stop(&mut self) -> Option<Arc<Plugin>> {
        self.retired = true;
        self.stopped = true;
        self.plugin()
    }

    /// Lets an operation that wants to stop go on without the answers that it can do without.
    pub(super) fn hurry(&self, user: &PoolUser) {
        if let Some(used) = self.uses.get(&user.id()) {
            used.hurry.cancel();
        }
    }
}
