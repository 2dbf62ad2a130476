//! A lease in a bucket: one object, replaced only by who knows its current tag.
//!
//! The holder renews it. A contender measures the age of the last renewal by the bucket's own
//! clock, so that no machine's clock matters, and may take over when the lease has run out. The
//! former holder notices at its next renewal; its journal notices sooner, because the successor
//! seals it (see `journal::objects`). A holder that cannot renew counts its own monotonic time and
//! stops before anybody may take over.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use nimbus_core::Epoch;
use parking_lot::Mutex;
use uuid::Uuid;

use super::owner::Owner;
use super::record::LeaseRecord;
use super::{HeldBy, LeaseError};
use crate::clock::LeaseClock;
use crate::layout::StackKeys;
use crate::names::StackRef;
use crate::store::{Put, Storage, Tag, WriteCondition};

/// Bucket clocks count in seconds.
const CLOCK_GRAIN: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub(super) struct RemoteHold {
    storage: Arc<dyn Storage>,
    clock: Arc<dyn LeaseClock>,
    stack: StackRef,
    lifetime: Duration,
    pub(super) epoch: Epoch,
    pub(super) id: Uuid,
    pub(super) stale_pulumi_lock: Option<String>,
    current: Mutex<Current>,
}

/// The record as we last wrote it.
#[derive(Clone, Debug)]
struct Current {
    record: LeaseRecord,
    tag: Tag,
    /// Taken before the write was sent: the lease may have begun as early as that.
    renewed: Duration,
}

struct ReadLease {
    record: Option<LeaseRecord>,
    unreadable: Option<serde_json::Error>,
    expect: WriteCondition,
    modified: Timestamp,
}

impl RemoteHold {
    pub(super) async fn acquire(
        storage: &Arc<dyn Storage>,
        clock: &Arc<dyn LeaseClock>,
        stack: &StackRef,
        owner: Owner,
        lifetime: Duration,
    ) -> Result<Self, LeaseError> {
        let found = find(storage.as_ref(), stack).await?;
        if let Some(source) = found.unreadable {
            let key = StackKeys::new(stack).lease();
            return Err(LeaseError::Unreadable { key, source });
        }
        let previous = found.record;
        if let Some(record) = previous.as_ref()
            && let Some(holder) = &record.holder
        {
            let silence = silence(storage.as_ref(), found.modified).await?;
            // The holder stops by its own setting, not by ours.
            let theirs = holder.lifetime.map_or(lifetime, Duration::from_secs);
            if silence <= theirs + CLOCK_GRAIN {
                return Err(held(stack, record, silence));
            }
        }
        let renewed = clock.monotonic();
        let id = Uuid::new_v4();
        let mut record = LeaseRecord::held(previous.as_ref(), id, owner, clock.now());
        if let Some(holder) = &mut record.holder {
            holder.lifetime = Some(lifetime.as_secs());
        }
        let key = StackKeys::new(stack).lease();
        let tag = match storage
            .put(&key, record.to_bytes().into(), found.expect)
            .await?
        {
            Put::Stored(tag) => tag,
            Put::Refused => {
                // Somebody was faster; who, is worth one more look.
                let winner = find(storage.as_ref(), stack).await?.record;
                return Err(match winner {
                    Some(record) => held(stack, &record, Duration::ZERO),
                    None => LeaseError::Held {
                        stack: stack.clone(),
                        holder: None,
                    },
                });
            }
        };
        Ok(Self {
            storage: Arc::clone(storage),
            clock: Arc::clone(clock),
            stack: stack.clone(),
            lifetime,
            epoch: record.epoch,
            id,
            stale_pulumi_lock: previous.and_then(|record| record.pulumi_lock),
            current: Mutex::new(Current {
                record,
                tag,
                renewed,
            }),
        })
    }

    /// Whether the lease has not run out by our own count.
    pub(super) fn check(&self) -> Result<(), LeaseError> {
        let elapsed = self
            .clock
            .monotonic()
            .saturating_sub(self.current.lock().renewed);
        if elapsed < self.lifetime {
            return Ok(());
        }
        Err(self.lost("whoever wants it: it could not be renewed in time".to_owned()))
    }

    /// Epochs whose journals have to be shut before anything is read.
    pub(super) fn abandoned(&self) -> Vec<Epoch> {
        self.current.lock().record.abandoned.clone()
    }

    /// To be called when they are shut; the next renewal writes it down.
    pub(super) fn forget_abandoned(&self) {
        self.current.lock().record.abandoned.clear();
    }

    pub(super) async fn renew(&self) -> Result<(), LeaseError> {
        self.check()?;
        let mut record = self.current.lock().record.clone();
        if let Some(holder) = &mut record.holder {
            holder.renewed = self.clock.now();
        }
        self.replace(record).await
    }

    pub(super) async fn release(&self) -> Result<(), LeaseError> {
        let keys = StackKeys::new(&self.stack);
        self.check()?;
        self.storage
            .delete(&keys.pulumi_lock(&self.id.to_string()))
            .await?;
        let freed = self.current.lock().record.freed();
        self.replace(freed).await
    }

    async fn replace(&self, record: LeaseRecord) -> Result<(), LeaseError> {
        let key = StackKeys::new(&self.stack).lease();
        let mut tag = self.current.lock().tag.clone();
        // A renewal whose answer got lost has changed the tag; the second try knows the new one.
        for _ in 0..2 {
            let renewed = self.clock.monotonic();
            let bytes = record.to_bytes().into();
            let expect = WriteCondition::Unchanged(tag);
            if let Put::Stored(tag) = self.storage.put(&key, bytes, expect).await? {
                *self.current.lock() = Current {
                    record,
                    tag,
                    renewed,
                };
                return Ok(());
            }
            let found = find(self.storage.as_ref(), &self.stack).await?;
            match (found.record, found.expect) {
                (Some(other), WriteCondition::Unchanged(current))
                    if other.epoch == self.epoch && other.is_held_by(self.id) =>
                {
                    tag = current;
                }
                (Some(other), _) => return Err(self.lost(other.describe_holder())),
                (None, _) => {
                    return Err(self.lost("nobody: the lease's record was deleted".to_owned()));
                }
            }
        }
        Err(self.lost("somebody who writes under our name".to_owned()))
    }

    fn lost(&self, holder: String) -> LeaseError {
        LeaseError::Lost {
            stack: self.stack.clone(),
            holder,
        }
    }
}

/// Ends whatever lease there is. The epoch goes up, so its holder cannot renew.
pub(super) async fn unlock(
    storage: &dyn Storage,
    stack: &StackRef,
    now: Timestamp,
) -> Result<Epoch, LeaseError> {
    let found = find(storage, stack).await?;
    let record = LeaseRecord::unlocked(found.record.as_ref(), found.unreadable.is_some(), now);
    let key = StackKeys::new(stack).lease();
    match storage
        .put(&key, record.to_bytes().into(), found.expect)
        .await?
    {
        Put::Stored(_) => Ok(record.epoch),
        Put::Refused => Err(LeaseError::Held {
            stack: stack.clone(),
            holder: None,
        }),
    }
}

pub(super) async fn inspect(
    storage: &dyn Storage,
    stack: &StackRef,
) -> Result<Option<HeldBy>, LeaseError> {
    let found = find(storage, stack).await?;
    let Some(record) = found.record.filter(|record| record.holder.is_some()) else {
        return Ok(None);
    };
    let silence = silence(storage, found.modified).await?;
    Ok(held_by(&record, silence))
}

async fn find(storage: &dyn Storage, stack: &StackRef) -> Result<ReadLease, LeaseError> {
    let key = StackKeys::new(stack).lease();
    let Some(object) = storage.get(&key).await? else {
        return Ok(ReadLease {
            record: None,
            unreadable: None,
            expect: WriteCondition::Absent,
            modified: Timestamp::UNIX_EPOCH,
        });
    };
    let (record, unreadable) = match LeaseRecord::from_bytes(&object.bytes) {
        Ok(record) => (Some(record), None),
        Err(error) => (None, Some(error)),
    };
    Ok(ReadLease {
        record,
        unreadable,
        expect: WriteCondition::Unchanged(object.tag),
        modified: object.modified,
    })
}

/// How long ago, by the bucket's clock, something was written.
async fn silence(storage: &dyn Storage, written: Timestamp) -> Result<Duration, LeaseError> {
    let silence = storage.time().await?.duration_since(written);
    Ok(Duration::try_from(silence).unwrap_or_default())
}

fn held(stack: &StackRef, record: &LeaseRecord, silence: Duration) -> LeaseError {
    let holder = held_by(record, silence).map(Box::new);
    LeaseError::Held {
        stack: stack.clone(),
        holder,
    }
}

fn held_by(record: &LeaseRecord, silence: Duration) -> Option<HeldBy> {
    let holder = record.holder.as_ref()?;
    Some(HeldBy {
        owner: holder.owner.clone(),
        since: holder.acquired,
        silence,
    })
}
