//! What is counted of events on their way to whoever watches.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;

use crate::labels::{KindLabel, WayLabel};
use crate::metrics::{MetricList, Metrics, query_times};

#[derive(Debug)]
pub(crate) struct LiveMetrics {
    events: Family<KindLabel, Counter>,
    delay_seconds: Histogram,
    waiting: Gauge,
    shards: Gauge,
    fan_out: Family<WayLabel, Gauge>,
    unannounced: Counter,
    gaps: Counter,
}

impl LiveMetrics {
    pub(crate) fn new(list: &mut MetricList) -> Self {
        Self {
            events: list.add(
                "nimbus_live_events",
                "Events that this server moved from the outbox to the logs of tenants",
            ),
            delay_seconds: list.histogram(
                "nimbus_live_delay_seconds",
                "Time that the oldest event of a group waited in the outbox",
                query_times,
            ),
            waiting: list.add("nimbus_live_outbox_rows", "Events that wait in the outbox"),
            shards: list.add(
                "nimbus_live_shards",
                "Shards of the outbox that this server relays",
            ),
            fan_out: list.add(
                "nimbus_live_fan_out",
                "Whether announcements of other servers are heard: 1 or 0",
            ),
            unannounced: list.add(
                "nimbus_live_announcements_failed",
                "Announcements that other servers were not told",
            ),
            gaps: list.add(
                "nimbus_live_gaps",
                "Times that somebody was too far behind and was told of a gap",
            ),
        }
    }
}

/// Events that are told live.
impl Metrics {
    /// An event of this kind of the registry was relayed.
    pub fn live_event(&self, kind: &'static str) {
        self.live.events.get_or_create(&KindLabel { kind }).inc();
    }

    /// For so many seconds the oldest event of a group waited.
    pub fn live_waited(&self, seconds: f64) {
        self.live.delay_seconds.observe(seconds);
    }

    pub fn set_live_waiting(&self, rows: i64) {
        self.live.waiting.set(rows);
    }

    pub fn set_live_shards(&self, shards: usize) {
        let shards = i64::try_from(shards).unwrap_or(i64::MAX);
        self.live.shards.set(shards);
    }

    /// Whether other servers are heard, and by which way.
    pub fn set_live_fan_out(&self, way: &'static str, heard: bool) {
        let gauge = self.live.fan_out.get_or_create(&WayLabel { way });
        gauge.set(i64::from(heard));
    }

    pub fn live_announcement_failed(&self) {
        self.live.unannounced.inc();
    }

    pub fn live_gap(&self) {
        self.live.gaps.inc();
    }
}
