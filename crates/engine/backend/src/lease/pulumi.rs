//! Locks of the official layout, so that the official command line and Nimbus keep out of each
//! other's way.
//!
//! The official protocol is: look for locks, write one's own, look again. It can refuse two racers
//! both, but never lets both in.

use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::LeaseError;
use super::owner::Owner;
use crate::layout::StackKeys;
use crate::names::StackRef;
use crate::store::{Storage, StorageError, overwrite};

/// A lock that somebody else wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PulumiLock {
    pub key: String,
    pub content: Option<PulumiLockContent>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PulumiLockContent {
    pub pid: i64,
    pub username: String,
    pub hostname: String,
    pub timestamp: Timestamp,
}

impl fmt::Display for PulumiLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.content {
            Some(PulumiLockContent {
                pid,
                username,
                hostname,
                timestamp,
            }) => {
                write!(f, "{username}@{hostname} (process {pid}) since {timestamp}")
            }
            None => write!(f, "somebody who left an unreadable lock, {}", self.key),
        }
    }
}

/// Puts our lock beside none other, or leaves none behind.
pub(super) async fn acquire(
    storage: &dyn Storage,
    stack: &StackRef,
    id: &str,
    owner: &Owner,
    now: Timestamp,
) -> Result<(), LeaseError> {
    refuse_foreign(storage, stack, id).await?;
    let keys = StackKeys::new(stack);
    let content = PulumiLockContent {
        pid: owner.pid.into(),
        username: owner.username.clone(),
        hostname: owner.hostname.clone(),
        timestamp: now,
    };
    let bytes = serde_json::to_vec(&content).expect("a lock has only text keys");
    overwrite(storage, &keys.pulumi_lock(id), bytes).await?;
    let second_look = refuse_foreign(storage, stack, id).await;
    if second_look.is_err() {
        storage.delete(&keys.pulumi_lock(id)).await?;
    }
    second_look
}

async fn refuse_foreign(
    storage: &dyn Storage,
    stack: &StackRef,
    own: &str,
) -> Result<(), LeaseError> {
    let own = StackKeys::new(stack).pulumi_lock(own);
    let mut locks = all(storage, stack).await?;
    locks.retain(|lock| lock.key != own);
    if locks.is_empty() {
        return Ok(());
    }
    Err(LeaseError::HeldByPulumi {
        stack: stack.clone(),
        locks,
    })
}

pub(super) async fn all(
    storage: &dyn Storage,
    stack: &StackRef,
) -> Result<Vec<PulumiLock>, StorageError> {
    let listed = storage
        .list(&StackKeys::new(stack).pulumi_lock_folder())
        .await?;
    let mut locks = Vec::new();
    for entry in listed
        .into_iter()
        .filter(|entry| entry.key.ends_with(".json"))
    {
        // Gone since it was listed.
        let Some(object) = storage.get(&entry.key).await? else {
            continue;
        };
        locks.push(PulumiLock {
            key: entry.key,
            content: serde_json::from_slice(&object.bytes).ok(),
        });
    }
    Ok(locks)
}
