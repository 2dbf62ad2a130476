//! What is written down about a lease.

use jiff::Timestamp;
use nimbus_core::Epoch;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::owner::Owner;

/// The record outlives every holder: the epoch only goes up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct LeaseRecord {
    pub(super) epoch: Epoch,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) holder: Option<LeaseHolder>,
    /// The lock of the official layout that goes with the last holder, which may have left it
    /// behind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) pulumi_lock: Option<String>,
    /// Epochs whose holders never released the lease and may still try to write. Whoever takes
    /// over shuts their journals and then clears the list.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) abandoned: Vec<Epoch>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct LeaseHolder {
    pub(super) id: Uuid,
    pub(super) owner: Owner,
    /// Wall clock of the holder, for people.
    pub(super) acquired: Timestamp,
    pub(super) renewed: Timestamp,
    /// Seconds after which the holder itself stops without a renewal. A local holder is alive or
    /// dead, and has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) lifetime: Option<u64>,
}

impl LeaseRecord {
    /// The record of a new holder, after `previous`.
    pub(super) fn held(previous: Option<&Self>, id: Uuid, owner: Owner, now: Timestamp) -> Self {
        Self {
            epoch: next_epoch(previous, false, now),
            holder: Some(LeaseHolder {
                id,
                owner,
                acquired: now,
                renewed: now,
                lifetime: None,
            }),
            pulumi_lock: Some(id.to_string()),
            abandoned: previous.map(Self::abandoned_until_now).unwrap_or_default(),
        }
    }

    /// The same epoch with nobody in it.
    pub(super) fn freed(&self) -> Self {
        Self {
            holder: None,
            ..self.clone()
        }
    }

    /// A record that ends whatever `previous` said.
    pub(super) fn unlocked(previous: Option<&Self>, unreadable: bool, now: Timestamp) -> Self {
        Self {
            epoch: next_epoch(previous, unreadable, now),
            holder: None,
            pulumi_lock: None,
            abandoned: previous.map(Self::abandoned_until_now).unwrap_or_default(),
        }
    }

    fn abandoned_until_now(&self) -> Vec<Epoch> {
        let mut abandoned = self.abandoned.clone();
        abandoned.extend(self.holder.as_ref().map(|_| self.epoch));
        abandoned
    }

    pub(super) fn is_held_by(&self, id: Uuid) -> bool {
        self.holder.as_ref().is_some_and(|holder| holder.id == id)
    }

    pub(super) fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("a record has only text keys")
    }

    pub(super) fn from_bytes(bytes: &[u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(bytes)
    }

    /// How a loser of the lease names the winner.
    pub(super) fn describe_holder(&self) -> String {
        match &self.holder {
            Some(holder) => holder.owner.to_string(),
            None => "nobody: the stack was unlocked".to_owned(),
        }
    }
}

/// The epoch after the one in `record`. Where the record cannot be read, time stands in for it: a
/// count of writers never gets near the seconds since 1970.
fn next_epoch(record: Option<&LeaseRecord>, unreadable: bool, now: Timestamp) -> Epoch {
    match record {
        Some(record) => record.epoch.next(),
        None if unreadable => Epoch::from_stored(now.as_second().unsigned_abs()),
        None => Epoch::FIRST,
    }
}
