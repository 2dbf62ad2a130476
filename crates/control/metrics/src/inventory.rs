//! What tenants have, and what of it is not as it was left.
//!
//! Types are those of the semantic catalog, which the operator owns; what tenants call their own things is counted
//! together. Drift alone is counted by tenant, because whose it is decides who is told (ADR 0310): by id, never by
//! name, and for a limited number of tenants.

use std::collections::{BTreeMap, HashSet};

use parking_lot::Mutex;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;

use crate::labels::{BoundedPairs, DriftLabels, OTHER, TypeLabels, known_word};
use crate::metrics::{MetricList, Metrics};

/// Tenants whose drift is counted apart.
const MOST_TENANTS: usize = 1000;

/// Providers that are told by name.
const PROVIDERS: &[&str] = &[
    "aws",
    "aws-native",
    "azure",
    "azure-native",
    "gcp",
    "kubernetes",
    "nimbus",
    "openstack",
    "proxmoxve",
    "random",
    "tls",
];

/// How much it matters that something drifted.
pub const DRIFT_SEVERITIES: &[&str] = &["critical", "warning", "info", "silenced"];

#[derive(Debug)]
pub(crate) struct InventoryMetrics {
    resources: Family<TypeLabels, Gauge>,
    known: Mutex<HashSet<TypeLabels>>,
    drift: Family<DriftLabels, Counter>,
    drift_tenants: BoundedPairs,
}

impl InventoryMetrics {
    pub(crate) fn new(list: &mut MetricList) -> Self {
        Self {
            // A gauge, whatever its name says: document 002 calls it so.
            resources: list.add(
                "nimbus_resources_total",
                "Configuration items that are there, of all tenants",
            ),
            known: Mutex::default(),
            drift: list.add(
                "nimbus_drift_detected",
                "Units that were found not to be as their last run left them",
            ),
            drift_tenants: BoundedPairs::new(MOST_TENANTS),
        }
    }
}

/// Configuration items and drift.
impl Metrics {
    /// How many items of which type there are, by provider and type. What is not among them any more is 0.
    pub fn set_resources(&self, counts: &BTreeMap<(String, String), u64>) {
        let inventory = &self.inventory;
        let mut sums: BTreeMap<(&'static str, &str), u64> = BTreeMap::new();
        for ((provider, kind), count) in counts {
            let provider = known_word(provider, PROVIDERS);
            *sums.entry((provider, kind)).or_default() += count;
        }
        let mut known = inventory.known.lock();
        for labels in known.iter() {
            if !sums.contains_key(&(labels.provider, labels.r#type.as_str())) {
                inventory.resources.get_or_create(labels).set(0);
            }
        }
        for ((provider, kind), count) in sums {
            let labels = TypeLabels {
                provider,
                r#type: kind.to_owned(),
            };
            let count = i64::try_from(count).unwrap_or(i64::MAX);
            inventory.resources.get_or_create(&labels).set(count);
            known.insert(labels);
        }
    }

    /// A unit of a tenant was found to have drifted.
    pub fn drift_detected(&self, tenant: &str, severity: &str) {
        let inventory = &self.inventory;
        let named = inventory.drift_tenants.admits(tenant, "");
        let labels = DriftLabels {
            tenant_id: if named { tenant } else { OTHER }.to_owned(),
            severity: known_word(severity, DRIFT_SEVERITIES),
        };
        inventory.drift.get_or_create(&labels).inc();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_counted_by_type_and_what_is_gone_is_none() {
        let metrics = Metrics::default();
        let of =
            |provider: &str, kind: &str, count| ((provider.to_owned(), kind.to_owned()), count);
        metrics.set_resources(&BTreeMap::from([
            of("aws", "aws:ec2/vpc:Vpc", 3),
            of("acme-own", OTHER, 2),
            of("other-own", OTHER, 5),
        ]));
        let text = metrics.text();
        assert!(
            text.contains("nimbus_resources_total{provider=\"aws\",type=\"aws:ec2/vpc:Vpc\"} 3"),
            "{text}"
        );
        assert!(
            text.contains("nimbus_resources_total{provider=\"other\",type=\"other\"} 7"),
            "{text}"
        );
        assert!(!text.contains("acme-own"));
        metrics.set_resources(&BTreeMap::from([of("acme-own", OTHER, 2)]));
        let text = metrics.text();
        assert!(text.contains("type=\"aws:ec2/vpc:Vpc\"} 0"), "{text}");
    }

    #[test]
    fn drift_is_counted_by_tenant_until_there_are_too_many() {
        let metrics = Metrics::default();
        metrics.drift_detected("t-1", "critical");
        metrics.drift_detected("t-1", "critical");
        metrics.drift_detected("t-1", "whatever");
        for number in 0..2 * MOST_TENANTS {
            metrics.drift_detected(&format!("n-{number}"), "warning");
        }
        let text = metrics.text();
        let drift = "nimbus_drift_detected_total";
        let told = format!("{drift}{{tenant_id=\"t-1\",severity=\"critical\"}} 2");
        assert!(text.contains(&told), "{text}");
        let together = format!("{drift}{{tenant_id=\"other\",severity=\"warning\"}} 1001");
        assert!(text.contains(&together), "{text}");
        let series = text.lines().filter(|line| line.starts_with(drift)).count();
        assert_eq!(series, MOST_TENANTS + 2, "bounded");
    }
}
