//! What a server counts about itself, in the text format of OpenMetrics, which Prometheus reads.
//!
//! There is one [`Metrics`] per process, made with the store and handed on by it: no global registry, so
//! that servers in one process do not count for each other. Every name is registered in `metrics.rs`, and
//! `docs/monitoring.md`, the alert rules and the dashboard are checked against that list.
//!
//! The set of labels is bounded. Paths are templates, words come from enums or from lists, and what comes
//! from outside of the code goes through [`known_word`] or a set that stops growing. No label names a
//! person, a tenant or a thing of a tenant; drift alone is counted by the id of its tenant.

mod activity;
mod flows;
mod inventory;
mod labels;
mod live;
mod metrics;
mod process;

pub use inventory::DRIFT_SEVERITIES;
pub use labels::{OTHER, known_word};
pub use metrics::{CONTENT_TYPE, MetricName, Metrics};
