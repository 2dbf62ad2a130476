//! One writer per stack.
//!
//! A lease has an epoch that only goes up. Whoever holds the lease writes under its epoch, and a
//! writer whose epoch is no longer the current one is refused. Silence alone never ends a local
//! lease: a holder on this machine must be proved dead, and one elsewhere must be unlocked by a
//! person. In a bucket, where nobody can look for a process, the lease runs out and the writer
//! stops itself before it does.

mod local;
mod owner;
mod pulumi;
mod record;
mod remote;

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use nimbus_core::Epoch;
use tokio::sync::watch;

use self::local::LocalHold;
pub use self::owner::Owner;
pub(crate) use self::owner::human;
pub use self::pulumi::{PulumiLock, PulumiLockContent};
use self::remote::RemoteHold;
use crate::clock::LeaseClock;
use crate::layout::StackKeys;
use crate::location::BackendLocation;
use crate::names::StackRef;
use crate::store::{StorageError, blocking};

/// How leases are kept.
#[derive(Clone, Copy, Debug)]
pub struct LeaseSettings {
    /// How long a lease in a bucket lasts without renewal.
    pub lifetime: Duration,
    /// How often the holder gives a sign of life; `None` leaves that to the caller.
    pub heartbeat: Option<Duration>,
}

impl Default for LeaseSettings {
    fn default() -> Self {
        Self {
            lifetime: Duration::from_secs(60),
            heartbeat: Some(Duration::from_secs(15)),
        }
    }
}

/// The right to write one stack's state. Clones are the same lease.
#[derive(Clone, Debug)]
pub struct Lease(Arc<LeaseInner>);

#[derive(Debug)]
struct LeaseInner {
    stack: StackRef,
    hold: Hold,
    released: AtomicBool,
    /// Who took over, once somebody did.
    lost: watch::Sender<Option<String>>,
}

#[derive(Debug)]
enum Hold {
    Local(Arc<LocalHold>),
    Remote(Box<RemoteHold>),
}

/// Who holds a lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldBy {
    pub owner: Owner,
    pub since: Timestamp,
    /// Time since the last sign of life.
    pub silence: Duration,
}

impl fmt::Display for HeldBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            owner,
            since,
            silence,
        } = self;
        write!(
            f,
            "{owner} since {since}, last heard of {} ago",
            human(*silence)
        )
    }
}

#[derive(Debug, thiserror::Error)]
pub enum LeaseError {
    #[error("{stack} is being changed by {}", describe(holder.as_deref()))]
    Held {
        stack: StackRef,
        holder: Option<Box<HeldBy>>,
    },
    #[error("{stack} is locked by {}", list(locks))]
    HeldByPulumi {
        stack: StackRef,
        locks: Vec<PulumiLock>,
    },
    #[error("the lease on {stack} was lost to {holder}")]
    Lost { stack: StackRef, holder: String },
    #[error("{stack} cannot be unlocked: {} is alive", describe(holder.as_deref()))]
    HolderAlive {
        stack: StackRef,
        holder: Option<Box<HeldBy>>,
    },
    #[error("the lease record {key} cannot be read")]
    Unreadable {
        key: String,
        #[source]
        source: serde_json::Error,
    },
    #[error(transparent)]
    Store(#[from] StorageError),
}

/// What `unlock` did away with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unlocked {
    pub former: Option<HeldBy>,
    pub pulumi_locks: Vec<PulumiLock>,
    /// Writers of earlier epochs are refused from now on.
    pub epoch: Epoch,
}

impl Lease {
    pub(crate) async fn acquire(
        place: &BackendLocation,
        stack: &StackRef,
        owner: Owner,
        clock: &Arc<dyn LeaseClock>,
        settings: LeaseSettings,
    ) -> Result<Self, LeaseError> {
        let hold = match place {
            BackendLocation::Local(storage) => {
                let (storage, stack) = (storage.clone(), stack.clone());
                let (owner, now) = (owner.clone(), clock.now());
                let work = move || LocalHold::acquire(&storage, &stack, owner, now);
                Hold::Local(Arc::new(off_thread(work).await?))
            }
            BackendLocation::Remote(storage) => {
                let lifetime = settings.lifetime;
                let hold = RemoteHold::acquire(storage, clock, stack, owner.clone(), lifetime);
                Hold::Remote(Box::new(hold.await?))
            }
        };
        let lease = Self(Arc::new(LeaseInner {
            stack: stack.clone(),
            hold,
            released: AtomicBool::new(false),
            lost: watch::Sender::new(None),
        }));
        if let Err(error) = lease.settle_with_pulumi(place, owner, clock.now()).await {
            lease.release().await?;
            return Err(error);
        }
        if let Some(interval) = settings.heartbeat {
            lease.start_heartbeat(interval);
        }
        Ok(lease)
    }

    pub fn epoch(&self) -> Epoch {
        match &self.0.hold {
            Hold::Local(hold) => hold.epoch,
            Hold::Remote(hold) => hold.epoch,
        }
    }

    /// Epochs before this one whose writers may not know that they have lost the lease.
    pub(crate) fn abandoned(&self) -> Vec<Epoch> {
        match &self.0.hold {
            Hold::Local(_) => Vec::new(),
            Hold::Remote(hold) => hold.abandoned(),
        }
    }

    /// To be called when the journals of those epochs are shut.
    pub(crate) fn forget_abandoned(&self) {
        if let Hold::Remote(hold) = &self.0.hold {
            hold.forget_abandoned();
        }
    }

    pub fn stack(&self) -> &StackRef {
        &self.0.stack
    }

    /// Whether the lease is still ours. Everything that writes asks first.
    pub async fn check(&self) -> Result<(), LeaseError> {
        if let Some(holder) = self.0.lost.borrow().clone() {
            let stack = self.0.stack.clone();
            return Err(LeaseError::Lost { stack, holder });
        }
        let lease = self.clone();
        off_thread(move || lease.check_blocking()).await
    }

    /// The same for threads that may wait for the disk.
    pub(crate) fn check_blocking(&self) -> Result<(), LeaseError> {
        if self.0.released.load(Ordering::SeqCst) {
            return Err(LeaseError::Lost {
                stack: self.0.stack.clone(),
                holder: "nobody: it was given back".to_owned(),
            });
        }
        let result = match &self.0.hold {
            Hold::Local(hold) => hold.check(),
            Hold::Remote(hold) => hold.check(),
        };
        self.noted(result)
    }

    /// Gives a sign of life, and notices when the lease is lost.
    pub async fn renew(&self) -> Result<(), LeaseError> {
        let result = match &self.0.hold {
            Hold::Local(hold) => {
                hold.touch();
                return self.check().await;
            }
            Hold::Remote(hold) => hold.renew().await,
        };
        self.noted(result)
    }

    /// Ends when the lease is lost, with who took it. Whoever runs an operation under this lease
    /// waits for it too, and stops its whole process tree when it comes.
    pub async fn lost(&self) -> String {
        let mut receiver = self.0.lost.subscribe();
        // The guard is let go at once, so that callers can wait for this on any thread.
        let found = receiver
            .wait_for(Option::is_some)
            .await
            .map(|holder| holder.clone());
        match found {
            Ok(holder) => holder.unwrap_or_default(),
            // The sender lives in the lease that is borrowed here.
            Err(_) => std::future::pending().await,
        }
    }

    /// Lets others in. A lease that was lost is not ours to release, and that is no error here.
    pub async fn release(&self) -> Result<(), LeaseError> {
        if self.0.released.swap(true, Ordering::SeqCst) {
            return Ok(());
        }
        let result = match &self.0.hold {
            Hold::Local(hold) => {
                let hold = Arc::clone(hold);
                off_thread(move || hold.release()).await
            }
            Hold::Remote(hold) => hold.release().await,
        };
        match result {
            Err(LeaseError::Lost { .. }) => Ok(()),
            other => other,
        }
    }

    /// Gives a local lease back without waiting; one in a bucket runs out.
    fn abandon(&self) {
        if let Hold::Local(hold) = &self.0.hold
            && !self.0.released.swap(true, Ordering::SeqCst)
            && let Err(error) = hold.release()
        {
            tracing::warn!(%error, "the lease could not be released");
        }
    }

    /// Clears away what a dead predecessor left, and keeps the official command line out.
    async fn settle_with_pulumi(
        &self,
        place: &BackendLocation,
        owner: Owner,
        now: Timestamp,
    ) -> Result<(), LeaseError> {
        let (id, stale) = match &self.0.hold {
            Hold::Local(hold) => (hold.id, &hold.stale_pulumi_lock),
            Hold::Remote(hold) => (hold.id, &hold.stale_pulumi_lock),
        };
        let storage = place.storage();
        if let Some(stale) = stale {
            let key = StackKeys::new(&self.0.stack).pulumi_lock(stale);
            storage.delete(&key).await?;
        }
        pulumi::acquire(storage, &self.0.stack, &id.to_string(), &owner, now).await
    }

    fn start_heartbeat(&self, interval: Duration) {
        let weak = Arc::downgrade(&self.0);
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(interval).await;
                let Some(inner) = weak.upgrade() else { return };
                if inner.released.load(Ordering::SeqCst) {
                    return;
                }
                match Self(inner).renew().await {
                    Err(LeaseError::Lost { holder, .. }) => {
                        tracing::error!(%holder, "the lease was lost");
                        return;
                    }
                    Err(error) => tracing::warn!(%error, "the lease could not be renewed"),
                    Ok(()) => {}
                }
            }
        });
    }

    fn noted(&self, result: Result<(), LeaseError>) -> Result<(), LeaseError> {
        if let Err(LeaseError::Lost { holder, .. }) = &result {
            self.0.lost.send_replace(Some(holder.clone()));
        }
        result
    }
}

/// The one clone that is responsible for giving the lease back. An owner that forgets it, panics
/// or is cancelled does not block the stack.
#[derive(Debug)]
pub(crate) struct LeaseGuard(Lease);

impl LeaseGuard {
    pub(crate) fn new(lease: Lease) -> Self {
        Self(lease)
    }
}

impl Deref for LeaseGuard {
    type Target = Lease;

    fn deref(&self) -> &Lease {
        &self.0
    }
}

impl Drop for LeaseGuard {
    fn drop(&mut self) {
        self.0.abandon();
    }
}

/// Who holds the stack's lease, for display.
pub(crate) async fn inspect(
    place: &BackendLocation,
    stack: &StackRef,
    clock: &dyn LeaseClock,
) -> Result<Option<HeldBy>, LeaseError> {
    match place {
        BackendLocation::Local(storage) => {
            let (storage, stack, now) = (storage.clone(), stack.clone(), clock.now());
            off_thread(move || local::inspect(&storage, &stack, now)).await
        }
        BackendLocation::Remote(storage) => remote::inspect(storage.as_ref(), stack).await,
    }
}

/// Ends whatever lease and locks there are, on a person's word.
pub(crate) async fn unlock(
    place: &BackendLocation,
    stack: &StackRef,
    clock: &dyn LeaseClock,
) -> Result<Unlocked, LeaseError> {
    let former = match inspect(place, stack, clock).await {
        Err(LeaseError::Unreadable { .. }) => None,
        other => other?,
    };
    let epoch = match place {
        BackendLocation::Local(storage) => {
            let (storage, stack, now) = (storage.clone(), stack.clone(), clock.now());
            let here = Owner::current("nimbus state unlock");
            off_thread(move || local::unlock(&storage, &stack, &here, now)).await?
        }
        BackendLocation::Remote(storage) => {
            remote::unlock(storage.as_ref(), stack, clock.now()).await?
        }
    };
    let storage = place.storage();
    let pulumi_locks = pulumi::all(storage, stack).await?;
    for lock in &pulumi_locks {
        storage.delete(&lock.key).await?;
    }
    Ok(Unlocked {
        former,
        pulumi_locks,
        epoch,
    })
}

async fn off_thread<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, LeaseError> + Send + 'static,
) -> Result<T, LeaseError> {
    blocking(move || Ok(work())).await?
}

fn describe(holder: Option<&HeldBy>) -> String {
    holder.map_or_else(|| "another process".to_owned(), ToString::to_string)
}

fn list(locks: &[PulumiLock]) -> String {
    let locks: Vec<String> = locks.iter().map(ToString::to_string).collect();
    locks.join("; ")
}
