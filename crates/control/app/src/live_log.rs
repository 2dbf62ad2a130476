//! The end of a tenant's log, read once for everybody of this server who watches it.
//!
//! Readers have cursors and take what they are ready for, so a slow one costs no memory. Those who keep up share one copy of
//! the newest events; whoever is further behind reads the database by themselves, and whoever is too far behind is told of
//! the gap.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Weak};

use nimbus_control_events::{LiveCursor, LiveEvent};
use nimbus_control_store::Store;
use nimbus_core::TenantId;
use parking_lot::Mutex;

use crate::failure::{Failure, Result};

/// Newest events that are kept for those who keep up.
const SHARED_EVENTS: usize = 1000;
/// Events that are read at once.
const EVENTS_AT_ONCE: u32 = 200;
/// Whoever is further behind than this is told of the gap instead.
pub(crate) const MOST_BEHIND: i64 = 10_000;

/// What follows a place of a log.
#[derive(Debug)]
pub(crate) enum LogPart {
    /// Events in order, and whether there are more at once.
    Events(Vec<Arc<LiveEvent>>, bool),
    /// What follows is gone, or too much; the log goes on here.
    Gap(LiveCursor),
}

/// Logs that somebody on this server watches.
#[derive(Debug, Default)]
pub(crate) struct LiveLogs {
    logs: Mutex<HashMap<TenantId, Weak<TenantLog>>>,
}

impl LiveLogs {
    pub(crate) fn of(&self, tenant: TenantId) -> Arc<TenantLog> {
        let mut logs = self.logs.lock();
        if let Some(log) = logs.get(&tenant).and_then(Weak::upgrade) {
            return log;
        }
        logs.retain(|_, log| log.strong_count() > 0);
        let log = Arc::new(TenantLog {
            tenant,
            end: tokio::sync::Mutex::default(),
        });
        logs.insert(tenant, Arc::downgrade(&log));
        log
    }
}

/// The log of a tenant.
#[derive(Debug)]
pub(crate) struct TenantLog {
    tenant: TenantId,
    end: tokio::sync::Mutex<LogEnd>,
}

/// The newest events of a log as they were last read.
#[derive(Debug, Default)]
struct LogEnd {
    /// After so many news; `None` before the first time.
    read_at: Option<u64>,
    /// Everything after this place is here.
    from: LiveCursor,
    events: VecDeque<Arc<LiveEvent>>,
}

impl LogEnd {
    fn head(&self) -> LiveCursor {
        let last = self.events.back();
        last.map_or(self.from, |event| event.cursor)
    }

    /// Whether a place is none of the log as it was last read. It may still be one of the log: another server may have told
    /// of it before this one heard that there was news.
    fn lacks(&self, cursor: LiveCursor) -> bool {
        let head = self.head();
        cursor.epoch != head.epoch || cursor.seq > head.seq
    }

    fn after(&self, cursor: LiveCursor) -> LogPart {
        // By what they are and not by how many: numbers may be missing.
        let known = |event: &Arc<LiveEvent>| event.cursor.seq <= cursor.seq;
        let skipped = self.events.partition_point(known);
        let most = usize::try_from(EVENTS_AT_ONCE).unwrap_or(usize::MAX);
        let rest = self.events.iter().skip(skipped);
        let part: Vec<_> = rest.take(most).cloned().collect();
        let more = skipped + part.len() < self.events.len();
        LogPart::Events(part, more)
    }
}

impl TenantLog {
    /// Where the log ends.
    pub(crate) async fn head(&self, store: &Store) -> Result<LiveCursor> {
        let head = store.tenant_tx(self.tenant, async |tx| tx.live_head().await);
        Ok(head.await?)
    }

    /// What follows a place, after so many news.
    pub(crate) async fn after(
        &self,
        store: &Store,
        cursor: LiveCursor,
        news: u64,
    ) -> Result<LogPart> {
        let mut end = self.end.lock().await;
        // A gap that were told because this server is behind would lead its reader back, to events that they have.
        if end.read_at != Some(news) || end.lacks(cursor) {
            self.read_on(store, &mut end).await?;
            end.read_at = Some(news);
        }
        let head = end.head();
        // A place of another log, or one that this log has not reached, is nobody's.
        if end.lacks(cursor) {
            return Ok(LogPart::Gap(head));
        }
        if cursor.seq >= end.from.seq {
            return Ok(end.after(cursor));
        }
        drop(end);
        self.further_back(store, cursor, head).await
    }

    async fn read_on(&self, store: &Store, end: &mut LogEnd) -> Result<()> {
        let read = store.tenant_tx(self.tenant, async |tx| {
            let head = tx.live_head().await?;
            let known = end.head();
            let most = i64::try_from(SHARED_EVENTS).unwrap_or(i64::MAX);
            let from = if known.epoch == head.epoch && head.seq - known.seq <= most {
                known
            } else {
                LiveCursor {
                    seq: head.seq.saturating_sub(i64::from(EVENTS_AT_ONCE)).max(0),
                    ..head
                }
            };
            let limit = u32::try_from(SHARED_EVENTS).unwrap_or(u32::MAX);
            let events = tx.live_after(from, limit).await?;
            Ok::<_, Failure>((from, events))
        });
        let (from, events) = read.await?;
        if from != end.head() || end.read_at.is_none() {
            end.events.clear();
            // Older ones may be gone already.
            end.from = match events.first() {
                Some(first) => LiveCursor {
                    seq: first.cursor.seq - 1,
                    ..from
                },
                None => from,
            };
        }
        end.events.extend(events.into_iter().map(Arc::new));
        while end.events.len() > SHARED_EVENTS {
            if let Some(gone) = end.events.pop_front() {
                end.from = gone.cursor;
            }
        }
        Ok(())
    }

    async fn further_back(
        &self,
        store: &Store,
        cursor: LiveCursor,
        head: LiveCursor,
    ) -> Result<LogPart> {
        if head.seq - cursor.seq > MOST_BEHIND {
            return Ok(LogPart::Gap(head));
        }
        let read = store.tenant_tx(self.tenant, async |tx| {
            let first = tx.live_first(head).await?;
            let events = tx.live_after(cursor, EVENTS_AT_ONCE).await?;
            Ok::<_, Failure>((first, events))
        });
        let (first, events) = read.await?;
        if cursor.seq + 1 < first {
            return Ok(LogPart::Gap(head));
        }
        Ok(LogPart::Events(
            events.into_iter().map(Arc::new).collect(),
            true,
        ))
    }
}
