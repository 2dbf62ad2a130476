//! Records of reads, on their way to the audit trail.
//!
//! A read changes nothing that its record would have to agree with, so its record does not need the read's own
//! transaction: records wait here for a moment, and those of a tenant are written together, in the order in
//! which the reads were answered. Changes, refusals and failures never come here.
//!
//! There is room for so many, of one tenant and of all. What finds none is left out and counted, for the
//! tenant in its own trail, where an entry says how many records of reads are missing.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp as Time;
use nimbus_control_audit::{Actor, AuditRecord, Outcome, Priority};
use nimbus_core::TenantId;
use parking_lot::Mutex;
use serde_json::json;
use tokio::sync::Notify;
use tracing::warn;

use crate::{Store, StoreError};

/// How long records wait for others. Written within a second, with the time that writing takes.
const PAUSE: Duration = Duration::from_millis(300);
/// After a database that did not take them.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_millis(1000);
/// Records of everybody that wait.
const MOST: usize = 20_000;
/// Records of one tenant that wait: nobody's reads make those of others go unrecorded.
const MOST_OF_TENANT: usize = 5_000;
/// So many are not kept waiting for more.
const ENOUGH: usize = 1_000;
/// Written in one transaction, which holds the end of the tenant's chain meanwhile.
const AT_ONCE: usize = 1_000;

/// What a tenant's reads left behind.
#[derive(Debug, Default)]
struct TenantReads {
    records: VecDeque<(Time, AuditRecord)>,
    shed: u64,
}

#[derive(Debug, Default)]
struct WaitingReads {
    tenants: HashMap<TenantId, TenantReads>,
    count: usize,
}

/// Records that wait.
#[derive(Debug, Default)]
pub(crate) struct ReadTrail {
    waiting: Mutex<WaitingReads>,
    /// One writer per tenant at a time, or a later group could overtake an earlier one.
    writers: Mutex<HashMap<TenantId, Arc<tokio::sync::Mutex<()>>>>,
    /// There is something to write.
    some: Notify,
    /// There is enough to write at once.
    enough: Notify,
}

impl ReadTrail {
    /// How many wait now; `None` if this one found no room.
    fn push(&self, tenant: TenantId, now: Time, record: AuditRecord) -> Option<usize> {
        let mut waiting = self.waiting.lock();
        let full = waiting.count >= MOST;
        let reads = waiting.tenants.entry(tenant).or_default();
        if full || reads.records.len() >= MOST_OF_TENANT {
            reads.shed += 1;
            return None;
        }
        reads.records.push_back((now, record));
        waiting.count += 1;
        Some(waiting.count)
    }

    /// The oldest records of a tenant, and how many were left out meanwhile.
    fn take(&self, tenant: TenantId) -> Option<(Vec<(Time, AuditRecord)>, u64)> {
        let mut waiting = self.waiting.lock();
        let reads = waiting.tenants.get_mut(&tenant)?;
        let part = reads.records.len().min(AT_ONCE);
        let records: Vec<_> = reads.records.drain(..part).collect();
        // Told with the last group, after everything that was recorded before the room was used up.
        let shed = if reads.records.is_empty() {
            std::mem::take(&mut reads.shed)
        } else {
            0
        };
        if reads.records.is_empty() {
            waiting.tenants.remove(&tenant);
        }
        waiting.count -= part;
        Some((records, shed))
    }

    /// In front of what came meanwhile, for another try.
    fn put_back(&self, tenant: TenantId, records: Vec<(Time, AuditRecord)>, shed: u64) {
        let mut waiting = self.waiting.lock();
        waiting.count += records.len();
        let reads = waiting.tenants.entry(tenant).or_default();
        for record in records.into_iter().rev() {
            reads.records.push_front(record);
        }
        reads.shed += shed;
    }

    /// Whose records wait, or are being written now: whoever flushes waits for those too.
    fn tenants(&self) -> Vec<TenantId> {
        let mut tenants: Vec<_> = self.writers.lock().keys().copied().collect();
        tenants.extend(self.waiting.lock().tenants.keys().copied());
        tenants.sort_unstable();
        tenants.dedup();
        tenants
    }

    fn count(&self) -> usize {
        self.waiting.lock().count
    }

    fn writer(&self, tenant: TenantId) -> Arc<tokio::sync::Mutex<()>> {
        Arc::clone(self.writers.lock().entry(tenant).or_default())
    }

    /// Forgets a writer that nobody else waits for.
    fn writer_done(&self, tenant: TenantId, writer: &Arc<tokio::sync::Mutex<()>>) {
        let mut writers = self.writers.lock();
        // Ours and the table's.
        if Arc::strong_count(writer) <= 2 {
            writers.remove(&tenant);
        }
    }
}

/// What a flush did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlushedReads {
    pub written: usize,
    /// Still waiting, because the database did not take them.
    pub waiting: usize,
}

impl Store {
    /// Records a read soon, together with others. If there is no room, it is counted instead.
    pub fn audit_later(&self, tenant: TenantId, now: Time, record: AuditRecord) {
        match self.reads.push(tenant, now, record) {
            Some(count) => {
                self.metrics().set_reads_waiting(count);
                self.reads.some.notify_one();
                if count >= ENOUGH {
                    self.reads.enough.notify_one();
                }
            }
            None => self.metrics().reads_shed(1),
        }
    }

    /// Writes what waits, group by group, until it is dropped. A server has one of these.
    pub async fn write_reads(&self) {
        loop {
            self.reads.some.notified().await;
            tokio::select! {
                () = tokio::time::sleep(PAUSE) => {}
                () = self.reads.enough.notified() => {}
            }
            if self.audit_flush_all().await.waiting > 0 {
                tokio::time::sleep(PAUSE_AFTER_FAILURE).await;
                self.reads.some.notify_one();
            }
        }
    }

    /// Writes everything that waits. A database that does not answer ends it: the rest goes on waiting.
    pub async fn audit_flush_all(&self) -> FlushedReads {
        let mut done = FlushedReads::default();
        for tenant in self.reads.tenants() {
            match self.audit_flush(tenant).await {
                Ok(written) => done.written += written,
                Err(error) => {
                    warn!(%error, %tenant, "records of reads wait on: they could not be written");
                    if error.retryable() {
                        break;
                    }
                }
            }
        }
        done.waiting = self.reads.count();
        self.metrics().set_reads_waiting(done.waiting);
        done
    }

    /// Writes what waits for one tenant; how many records that were. Whoever reads the trail calls this first.
    ///
    /// # Errors
    ///
    /// When the database did not take them. They wait on.
    pub async fn audit_flush(&self, tenant: TenantId) -> Result<usize, StoreError> {
        let store = self.clone();
        // A task of its own: a caller who gives up in the middle would leave it open what was written.
        let task = tokio::spawn(async move { store.flush_groups(tenant).await });
        match task.await {
            Ok(written) => written,
            // The process ends, and with it whatever waits for this.
            Err(_) => Ok(0),
        }
    }

    async fn flush_groups(&self, tenant: TenantId) -> Result<usize, StoreError> {
        let writer = self.reads.writer(tenant);
        let guard = writer.lock().await;
        let mut written = 0;
        let result = loop {
            let Some((records, shed)) = self.reads.take(tenant) else {
                break Ok(written);
            };
            match self.write_group(tenant, records, shed).await {
                Ok(count) => written += count,
                Err(error) => break Err(error),
            }
        };
        drop(guard);
        self.reads.writer_done(tenant, &writer);
        result
    }

    async fn write_group(
        &self,
        tenant: TenantId,
        records: Vec<(Time, AuditRecord)>,
        shed: u64,
    ) -> Result<usize, StoreError> {
        let begun = Instant::now();
        let mut group = records.clone();
        group.extend((shed > 0).then(|| (Time::now(), missing(shed))));
        let count = records.len();
        let result = self
            .tenant_tx(tenant, async |tx| tx.audit_append_reads(group).await)
            .await;
        match result {
            Ok(()) => {
                self.metrics().flushed("written", begun.elapsed());
                Ok(count)
            }
            // Nobody can read its trail any more, nor add to it.
            Err(StoreError::TenantUnknown) => {
                self.metrics().flushed("left_out", begun.elapsed());
                self.metrics().reads_shed(count as u64);
                Ok(0)
            }
            Err(error) if error.retryable() => {
                self.metrics().flushed("failed", begun.elapsed());
                self.reads.put_back(tenant, records, shed);
                Err(error)
            }
            // It would refuse them for ever. The trail says that they are missing.
            Err(error) => {
                self.metrics().flushed("refused", begun.elapsed());
                self.metrics().reads_shed(count as u64);
                self.reads.put_back(tenant, Vec::new(), shed + count as u64);
                Err(error)
            }
        }
    }
}

/// The entry that says that others are missing.
fn missing(shed: u64) -> AuditRecord {
    AuditRecord::new(Actor::system(), "audit.reads.shed", "audit")
        .after(json!({"missing": shed}))
        .outcome(Outcome::Failed)
        .priority(Priority::High)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(number: usize) -> AuditRecord {
        AuditRecord::new(Actor::system(), "users.list", "users").on(number)
    }

    fn places(records: &[(Time, AuditRecord)]) -> Vec<String> {
        let place = |(_, record): &(Time, AuditRecord)| record.resource_id.clone();
        records.iter().filter_map(place).collect()
    }

    #[test]
    fn groups_are_taken_in_order_and_put_back_in_front() {
        let trail = ReadTrail::default();
        let tenant = TenantId::random();
        for number in 0..(AT_ONCE + 2) {
            trail.push(tenant, Time::now(), read(number)).unwrap();
        }
        let (first, shed) = trail.take(tenant).unwrap();
        assert_eq!((first.len(), shed), (AT_ONCE, 0));
        trail.put_back(tenant, first, 0);
        trail.push(tenant, Time::now(), read(AT_ONCE + 2)).unwrap();
        let (first, _) = trail.take(tenant).unwrap();
        let (second, _) = trail.take(tenant).unwrap();
        let all = [places(&first), places(&second)].concat();
        let expected: Vec<String> = (0..(AT_ONCE + 3))
            .map(|number| number.to_string())
            .collect();
        assert_eq!(all, expected);
        assert!(trail.take(tenant).is_none());
        assert_eq!(trail.count(), 0);
    }

    #[test]
    fn one_tenant_uses_up_its_own_room_and_nobody_elses() {
        let trail = ReadTrail::default();
        let (busy, quiet) = (TenantId::random(), TenantId::random());
        for number in 0..MOST_OF_TENANT {
            assert!(trail.push(busy, Time::now(), read(number)).is_some());
        }
        for number in 0..7 {
            assert!(trail.push(busy, Time::now(), read(number)).is_none());
        }
        assert!(trail.push(quiet, Time::now(), read(0)).is_some());
        let mut shed = 0;
        while let Some((_, missing)) = trail.take(busy) {
            shed += missing;
        }
        assert_eq!(shed, 7, "what was left out is told once");
        assert_eq!(trail.take(quiet).unwrap().1, 0);
    }

    #[test]
    fn there_is_an_end_to_what_all_tenants_together_have_waiting() {
        let trail = ReadTrail::default();
        for _ in 0..=(MOST / MOST_OF_TENANT) {
            let tenant = TenantId::random();
            for number in 0..MOST_OF_TENANT {
                trail.push(tenant, Time::now(), read(number));
            }
        }
        assert_eq!(trail.count(), MOST);
    }
}
