//! Every metric, under the name that Prometheus sees.

use std::fmt::Debug;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::TypedMetric;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Metric, Registry};

use crate::activity::RecentUsers;
use crate::flows::FlowMetrics;
use crate::inventory::InventoryMetrics;
use crate::labels::{
    ActionLabel, AuditLabels, BoundedPairs, CodeLabel, OTHER, OutcomeLabel, ReasonLabel,
    RequestLabels, ResourceLabels, RouteLabels, RunLabels, StackLabel, StateLabel, StatusLabel,
    VersionLabel,
};
use crate::live::LiveMetrics;
use crate::process;

/// What [`Metrics::text`] is.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Kinds of audit entries that are counted apart; there are as many as there are operations.
const MOST_ACTIONS: usize = 500;

pub(crate) type Timed<L> = Family<L, Histogram, fn() -> Histogram>;

/// The name and the kind of a metric, as they stand in its `# TYPE` line, and its unit's suffix in queries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetricName {
    pub name: String,
    pub kind: &'static str,
}

impl MetricName {
    /// The names that a query may use for it.
    pub fn series(&self) -> Vec<String> {
        let suffixes: &[&str] = match self.kind {
            "counter" => &["_total"],
            "histogram" => &["_bucket", "_sum", "_count"],
            _ => &[""],
        };
        let name = &self.name;
        suffixes
            .iter()
            .map(|suffix| format!("{name}{suffix}"))
            .collect()
    }
}

/// What a server counts. Methods are cheap and wait for nobody.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    names: Vec<MetricName>,
    requests: Family<RequestLabels, Counter>,
    request_seconds: Timed<RouteLabels>,
    in_flight: Gauge,
    shed: Family<ReasonLabel, Counter>,
    connections: Gauge,
    connections_ended: Family<ReasonLabel, Counter>,
    sockets: Gauge,
    sockets_ended: Family<ReasonLabel, Counter>,
    pub(crate) live: LiveMetrics,
    pub(crate) flows: FlowMetrics,
    pub(crate) inventory: InventoryMetrics,
    sign_ins: Family<OutcomeLabel, Counter>,
    active_users: Gauge,
    recent_users: RecentUsers,
    errors: Family<CodeLabel, Counter>,
    active_tenants: Gauge,
    ready: Gauge,
    audit: Family<AuditLabels, Counter>,
    audit_actions: BoundedPairs,
    reads_waiting: Gauge,
    reads_shed: Counter,
    flushes: Family<OutcomeLabel, Counter>,
    flush_seconds: Histogram,
    pool_connections: Family<StateLabel, Gauge>,
    pool_size: Gauge,
    pool_waiting: Gauge,
    queries: Counter,
    query_seconds: Histogram,
    runs: Family<RunLabels, Counter>,
    run_seconds: Timed<ActionLabel>,
    runs_active: Gauge,
    units: Family<StatusLabel, Counter>,
    unit_seconds: Timed<StackLabel>,
    resources: Family<ResourceLabels, Counter>,
    resident: Gauge,
    cpu: Counter<f64, AtomicU64>,
    open_files: Gauge,
    threads: Gauge,
}

impl Default for Metrics {
    fn default() -> Self {
        let mut list = MetricList::default();
        let metrics = Self {
            requests: list.add(
                "nimbus_http_requests",
                "Requests that were answered, by the path's template",
            ),
            request_seconds: list.timed(
                "nimbus_http_request_duration_seconds",
                "Time from a request to its answer",
                request_times,
            ),
            in_flight: list.add(
                "nimbus_http_requests_in_flight",
                "Requests of the API under way",
            ),
            shed: list.add(
                "nimbus_http_requests_shed",
                "Requests that were refused because the server was overloaded",
            ),
            connections: list.add("nimbus_http_connections", "Open connections"),
            connections_ended: list.add(
                "nimbus_http_connections_ended",
                "Connections that were refused or made room for others",
            ),
            sockets: list.add("nimbus_websocket_connections", "Open sockets"),
            sockets_ended: list.add("nimbus_websocket_closes", "Sockets that ended, and why"),
            live: LiveMetrics::new(&mut list),
            flows: FlowMetrics::new(&mut list),
            inventory: InventoryMetrics::new(&mut list),
            sign_ins: list.add("nimbus_sign_ins", "Attempts to sign in"),
            active_users: list.add(
                "nimbus_active_users",
                "Users whose requests this server answered within five minutes",
            ),
            errors: list.add("nimbus_errors", "What failed, by its code in docs/errors"),
            active_tenants: list.add("nimbus_active_tenants", "Tenants that are not deleted"),
            ready: list.add("nimbus_ready", "Whether requests can be answered: 1 or 0"),
            audit: list.add("nimbus_audit_events", "Entries of the audit trail"),
            reads_waiting: list.add(
                "nimbus_audit_reads_waiting",
                "Records of reads that are not in the audit trail yet",
            ),
            reads_shed: list.add(
                "nimbus_audit_reads_shed",
                "Records of reads that were left out because too many waited",
            ),
            flushes: list.add(
                "nimbus_audit_flushes",
                "Groups of records of reads that were written, or were not",
            ),
            flush_seconds: list.histogram(
                "nimbus_audit_flush_duration_seconds",
                "Time to write the records of reads of one tenant",
                query_times,
            ),
            pool_connections: list.add(
                "nimbus_db_pool_connections",
                "Connections to the database that serve requests",
            ),
            pool_size: list.add(
                "nimbus_db_pool_size",
                "Connections to the database that there may be",
            ),
            pool_waiting: list.add(
                "nimbus_db_pool_waiting",
                "Transactions that wait for a connection to the database",
            ),
            queries: list.add("nimbus_db_queries", "Statements for tenants"),
            query_seconds: list.histogram(
                "nimbus_db_query_duration_seconds",
                "Time of a statement, with that of reading its rows",
                query_times,
            ),
            runs: list.add(
                "nimbus_runs",
                "Runs of deployments that ended on this server",
            ),
            run_seconds: list.timed(
                "nimbus_run_duration_seconds",
                "Time that a worker spent with a run",
                run_times,
            ),
            runs_active: list.add("nimbus_runs_active", "Runs that this server carries out"),
            units: list.add("nimbus_units", "Units of runs that ended"),
            unit_seconds: list.timed(
                "nimbus_unit_duration_seconds",
                "Time of a unit, by the stack of the shipped library",
                run_times,
            ),
            resources: list.add("nimbus_resource_operations", "Steps on resources"),
            resident: list.add("process_resident_memory_bytes", "Memory of the process"),
            cpu: list.add("process_cpu_seconds", "Processor time of the process"),
            open_files: list.add("process_open_fds", "Files that the process has open"),
            threads: list.add("process_threads", "Threads of the process"),
            recent_users: RecentUsers::default(),
            audit_actions: BoundedPairs::new(MOST_ACTIONS),
            names: Vec::new(),
            registry: Registry::default(),
        };
        let build: Family<VersionLabel, Gauge> =
            list.add("nimbus_build_info", "The version that runs");
        let version = env!("CARGO_PKG_VERSION");
        build.get_or_create(&VersionLabel { version }).set(1);
        Self {
            registry: list.registry,
            names: list.names,
            ..metrics
        }
    }
}

/// Registers, and remembers under which name.
#[derive(Default)]
pub(crate) struct MetricList {
    registry: Registry,
    names: Vec<MetricName>,
}

impl MetricList {
    pub(crate) fn add<M: Metric + TypedMetric + Clone + Debug + Default>(
        &mut self,
        name: &str,
        help: &str,
    ) -> M {
        self.put(name, help, M::default())
    }

    pub(crate) fn timed<L>(&mut self, name: &str, help: &str, times: fn() -> Histogram) -> Timed<L>
    where
        Timed<L>: Metric + TypedMetric,
        L: Clone + Eq + std::hash::Hash,
    {
        self.put(name, help, Family::new_with_constructor(times))
    }

    pub(crate) fn histogram(
        &mut self,
        name: &str,
        help: &str,
        times: fn() -> Histogram,
    ) -> Histogram {
        self.put(name, help, times())
    }

    fn put<M: Metric + TypedMetric + Clone>(&mut self, name: &str, help: &str, metric: M) -> M {
        self.names.push(MetricName {
            name: name.to_owned(),
            kind: match M::TYPE {
                MetricType::Counter => "counter",
                MetricType::Histogram => "histogram",
                MetricType::Gauge => "gauge",
                _ => "unknown",
            },
        });
        self.registry.register(name, help, metric.clone());
        metric
    }
}

fn request_times() -> Histogram {
    Histogram::new([
        0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0,
    ])
}

pub(crate) fn query_times() -> Histogram {
    Histogram::new([
        0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0,
    ])
}

pub(crate) fn run_times() -> Histogram {
    Histogram::new([
        1.0, 5.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1200.0, 1800.0, 3600.0, 7200.0,
    ])
}

fn gauge(value: usize) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// Requests of the API, connections and sockets.
impl Metrics {
    /// `path` is the template of the route, or [`OTHER`] for what is none.
    pub fn request(&self, method: &str, path: &'static str, status: u16, took: Duration) {
        let method = crate::known_word(
            method,
            &["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"],
        );
        let labels = RequestLabels {
            method,
            path,
            status,
        };
        self.requests.get_or_create(&labels).inc();
        let route = RouteLabels { method, path };
        self.request_seconds
            .get_or_create(&route)
            .observe(took.as_secs_f64());
    }

    /// Counts a request as long as the answer is kept.
    pub fn request_begins(&self) -> InFlight<'_> {
        self.in_flight.inc();
        InFlight(&self.in_flight)
    }

    /// A request was refused because too much is going on: no room to wait, or too long a wait.
    pub fn request_shed(&self, reason: &'static str) {
        self.shed.get_or_create(&ReasonLabel { reason }).inc();
    }

    pub fn set_connections(&self, open: usize) {
        self.connections.set(gauge(open));
    }

    pub fn connection_ended(&self, reason: &'static str) {
        self.connections_ended
            .get_or_create(&ReasonLabel { reason })
            .inc();
    }

    pub fn set_sockets(&self, open: usize) {
        self.sockets.set(gauge(open));
    }

    pub fn socket_ended(&self, reason: &'static str) {
        self.sockets_ended
            .get_or_create(&ReasonLabel { reason })
            .inc();
    }

    /// Somebody asked for something; who it was is not kept.
    pub fn user_seen(&self, user: &str) {
        self.recent_users.saw(user, Instant::now());
    }

    pub fn sign_in(&self, outcome: &'static str) {
        self.sign_ins.get_or_create(&OutcomeLabel { outcome }).inc();
    }

    /// `code` is one of `docs/errors`.
    pub fn error(&self, code: String) {
        self.errors.get_or_create(&CodeLabel { code }).inc();
    }
}

/// Counts down when it is dropped, however the request ends.
#[derive(Debug)]
pub struct InFlight<'a>(&'a Gauge);

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.0.dec();
    }
}

/// The database and the audit trail.
impl Metrics {
    pub fn query(&self, took: Duration) {
        self.queries.inc();
        self.query_seconds.observe(took.as_secs_f64());
    }

    pub fn set_pool(&self, open: usize, idle: usize, most: usize) {
        let set = |state, value| {
            let gauge = self.pool_connections.get_or_create(&StateLabel { state });
            gauge.set(value);
        };
        set("idle", gauge(idle));
        set("used", gauge(open.saturating_sub(idle)));
        self.pool_size.set(gauge(most));
    }

    pub fn set_pool_waiting(&self, waiting: usize) {
        self.pool_waiting.set(gauge(waiting));
    }

    /// Entries are counted once they are committed.
    pub fn audit_event(&self, action: &str, resource_type: &str) {
        let labels = if self.audit_actions.admits(action, resource_type) {
            AuditLabels {
                action: action.to_owned(),
                resource_type: resource_type.to_owned(),
            }
        } else {
            AuditLabels {
                action: OTHER.to_owned(),
                resource_type: OTHER.to_owned(),
            }
        };
        self.audit.get_or_create(&labels).inc();
    }

    pub fn set_reads_waiting(&self, waiting: usize) {
        self.reads_waiting.set(gauge(waiting));
    }

    pub fn reads_shed(&self, count: u64) {
        self.reads_shed.inc_by(count);
    }

    pub fn flushed(&self, outcome: &'static str, took: Duration) {
        self.flushes.get_or_create(&OutcomeLabel { outcome }).inc();
        self.flush_seconds.observe(took.as_secs_f64());
    }

    pub fn set_active_tenants(&self, tenants: u64) {
        self.active_tenants
            .set(i64::try_from(tenants).unwrap_or(i64::MAX));
    }

    pub fn set_ready(&self, ready: bool) {
        self.ready.set(i64::from(ready));
    }
}

/// Runs of deployments.
impl Metrics {
    /// Counts a run as long as the answer is kept.
    pub fn run_begins(&self) -> InFlight<'_> {
        self.runs_active.inc();
        InFlight(&self.runs_active)
    }

    pub fn run_ended(&self, action: &'static str, result: &'static str, took: Duration) {
        self.runs.get_or_create(&RunLabels { action, result }).inc();
        self.run_seconds
            .get_or_create(&ActionLabel { action })
            .observe(took.as_secs_f64());
    }

    /// `stack` is one of the shipped library, or [`OTHER`].
    pub fn unit_ended(&self, status: &'static str, stack: &'static str, seconds: Option<u64>) {
        self.units.get_or_create(&StatusLabel { status }).inc();
        if let Some(seconds) = seconds {
            self.unit_seconds
                .get_or_create(&StackLabel { stack })
                .observe(seconds as f64);
        }
    }

    pub fn resource_step(&self, operation: &'static str, outcome: &'static str) {
        let labels = ResourceLabels { operation, outcome };
        self.resources.get_or_create(&labels).inc();
    }
}

impl Metrics {
    /// Every name there is, whether or not something was counted under it.
    pub fn names(&self) -> &[MetricName] {
        &self.names
    }

    /// Everything, as [`CONTENT_TYPE`].
    pub fn text(&self) -> String {
        self.active_users
            .set(gauge(self.recent_users.count(Instant::now())));
        let process = process::figures();
        self.resident.set(process.resident_bytes);
        self.open_files.set(process.open_files);
        self.threads.set(process.threads);
        self.cpu.inner().store(
            process.cpu_seconds.to_bits(),
            std::sync::atomic::Ordering::Relaxed,
        );
        let mut text = String::new();
        // Writing to a string fails only when the library has a mistake, and then there is nothing to tell.
        let _ = encode(&mut text, &self.registry);
        text
    }
}

#[cfg(test)]
mod tests;
