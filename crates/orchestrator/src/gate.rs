//! What has to be true of an environment before the next one follows, and what is known of it.
//!
//! Items are recorded: by a run where the item has a check of its name, by the clock, or by the
//! person who did it. While one is open the next environment is not deployed.

use std::collections::BTreeMap;

use nimbus_core::Result;
use nimbus_document::{View, did_you_mean};
use serde_json::{Value, json};

use crate::record::CheckStatus;

/// One thing that a gate asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum GateItem {
    Enable,
    Window,
    Deploy,
    SmokeTests,
    ResourceValidation,
    IntegrationTests,
    LoadTests,
    PerformanceValidation,
    MetricWatch,
    Monitoring,
}

/// What is known about an environment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GateEvidence {
    pub enabled: bool,
    /// Whether its last run succeeded, checks included.
    pub deployed: bool,
    /// Whole hours since that run ended.
    pub hours: u64,
    /// How the checks of the last run ended.
    pub checks: BTreeMap<String, CheckStatus>,
    /// What somebody vouches for, and with which words.
    pub signed: BTreeMap<String, String>,
}

/// An item and how it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GateItemStatus {
    pub item: GateItem,
    pub done: bool,
    /// Who or what says so, or what is missing.
    pub note: String,
}

impl GateItem {
    pub const ALL: [Self; 10] = [
        Self::Enable,
        Self::Window,
        Self::Deploy,
        Self::SmokeTests,
        Self::ResourceValidation,
        Self::IntegrationTests,
        Self::LoadTests,
        Self::PerformanceValidation,
        Self::MetricWatch,
        Self::Monitoring,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Enable => "enable",
            Self::Window => "window",
            Self::Deploy => "deploy",
            Self::SmokeTests => "smoke-tests",
            Self::ResourceValidation => "resource-validation",
            Self::IntegrationTests => "integration-tests",
            Self::LoadTests => "load-tests",
            Self::PerformanceValidation => "performance-validation",
            Self::MetricWatch => "metric-watch",
            Self::Monitoring => "monitoring",
        }
    }

    /// What somebody can vouch for; the rest is known without them.
    pub fn can_be_signed(self) -> bool {
        !matches!(self, Self::Enable | Self::Deploy)
    }
}

/// What a gate asks for, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GateDefinition {
    pub items: Vec<GateItem>,
    /// How long the environment is watched before the next one follows; `None`: for ever.
    pub monitoring_hours: Option<u64>,
}

impl GateDefinition {
    /// Of the environment that comes first.
    pub fn of_first() -> Self {
        Self {
            items: vec![
                GateItem::Deploy,
                GateItem::SmokeTests,
                GateItem::ResourceValidation,
                GateItem::Monitoring,
            ],
            monitoring_hours: Some(24),
        }
    }

    /// Of those between the first and the last.
    pub fn of_middle() -> Self {
        Self {
            items: vec![
                GateItem::Enable,
                GateItem::Deploy,
                GateItem::IntegrationTests,
                GateItem::LoadTests,
                GateItem::PerformanceValidation,
                GateItem::Monitoring,
            ],
            monitoring_hours: Some(48),
        }
    }

    /// Of the last one, which nothing follows.
    pub fn of_last() -> Self {
        Self {
            items: vec![
                GateItem::Enable,
                GateItem::Window,
                GateItem::Deploy,
                GateItem::SmokeTests,
                GateItem::MetricWatch,
                GateItem::Monitoring,
            ],
            monitoring_hours: None,
        }
    }

    pub(crate) fn read(view: &View<'_>) -> Result<Self> {
        view.only_keys(crate::manifest::GATE_KEYS)?;
        let mut items = Vec::new();
        for item in view.required("items")?.items()? {
            let text = item.str()?;
            let Some(found) = GateItem::ALL.iter().find(|one| one.as_str() == text) else {
                let known = GateItem::ALL.iter().map(|one| one.as_str());
                let all = known.clone().collect::<Vec<_>>().join(", ");
                let hint = did_you_mean(text, known).unwrap_or_else(|| format!("there are: {all}"));
                return Err(item.error(format!("no gate has an item `{text}`"), hint));
            };
            if items.contains(found) {
                return Err(item.error(format!("`{text}` is asked for twice"), "again"));
            }
            items.push(*found);
        }
        let hours = view.optional("monitoringHours")?;
        if let Some(hours) = &hours
            && !items.contains(&GateItem::Monitoring)
        {
            // Somebody believes that it is watched; nothing would be.
            let message = "`monitoringHours` without the item `monitoring`: nothing watches";
            return Err(hours.error(message, "add `monitoring` to the items, or remove this"));
        }
        Ok(Self {
            items,
            monitoring_hours: hours.map(|v| v.u64()).transpose()?,
        })
    }

    pub(crate) fn to_json(&self) -> Value {
        let items: Vec<_> = self.items.iter().map(|item| item.as_str()).collect();
        let mut gate = json!({ "items": items });
        if let Some(hours) = self.monitoring_hours {
            gate["monitoringHours"] = hours.into();
        }
        gate
    }

    /// Every item and how it stands.
    pub fn status(&self, evidence: &GateEvidence) -> Vec<GateItemStatus> {
        let stand = |item: &GateItem| {
            let (done, note) = judge(*item, self.monitoring_hours, evidence);
            GateItemStatus {
                item: *item,
                done,
                note,
            }
        };
        self.items.iter().map(stand).collect()
    }
}

fn judge(item: GateItem, monitoring: Option<u64>, evidence: &GateEvidence) -> (bool, String) {
    let said = |done: bool, text: &str| (done, text.to_owned());
    if let Some(words) = evidence.signed.get(item.as_str()) {
        return (true, words.clone());
    }
    match item {
        GateItem::Enable if evidence.enabled => said(true, "enabled in the manifest"),
        GateItem::Enable => said(false, "not enabled in the manifest"),
        GateItem::Deploy if evidence.deployed => said(true, "the last run succeeded"),
        GateItem::Deploy => said(false, "no successful run is the last one"),
        GateItem::ResourceValidation => by_check("resources", evidence),
        GateItem::Monitoring => monitored(monitoring, evidence),
        GateItem::Window
        | GateItem::SmokeTests
        | GateItem::IntegrationTests
        | GateItem::LoadTests
        | GateItem::PerformanceValidation
        | GateItem::MetricWatch => by_check(item.as_str(), evidence),
    }
}

fn by_check(name: &str, evidence: &GateEvidence) -> (bool, String) {
    match evidence.checks.get(name) {
        Some(CheckStatus::Passed) => (true, format!("check {name} passed")),
        Some(status) => (false, format!("check {name} {}", status.word())),
        None => (false, "nobody has recorded it".to_owned()),
    }
}

fn monitored(hours: Option<u64>, evidence: &GateEvidence) -> (bool, String) {
    if !evidence.deployed {
        return (false, "not deployed".to_owned());
    }
    match hours {
        None => (true, "goes on".to_owned()),
        Some(wanted) => (
            evidence.hours >= wanted,
            format!("{} of {wanted} hours", evidence.hours.min(wanted)),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(gate: &GateDefinition, evidence: &GateEvidence) -> Vec<String> {
        gate.status(evidence)
            .iter()
            .map(|one| format!("{} {} {}", one.item.as_str(), one.done, one.note))
            .collect()
    }

    #[test]
    fn the_first_asks_for_deploy_smoke_tests_validation_and_a_day() {
        let mut evidence = GateEvidence {
            deployed: true,
            hours: 3,
            ..GateEvidence::default()
        };
        evidence
            .checks
            .insert("resources".to_owned(), CheckStatus::Passed);
        evidence
            .checks
            .insert("smoke-tests".to_owned(), CheckStatus::Failed);
        assert_eq!(
            shown(&GateDefinition::of_first(), &evidence),
            [
                "deploy true the last run succeeded",
                "smoke-tests false check smoke-tests failed",
                "resource-validation true check resources passed",
                "monitoring false 3 of 24 hours",
            ]
        );
    }

    #[test]
    fn one_in_the_middle_asks_for_three_kinds_of_tests_and_two_days() {
        let mut evidence = GateEvidence {
            enabled: true,
            deployed: true,
            hours: 50,
            ..GateEvidence::default()
        };
        evidence
            .signed
            .insert("load-tests".to_owned(), "ann: 2000/s".to_owned());
        assert_eq!(
            shown(&GateDefinition::of_middle(), &evidence),
            [
                "enable true enabled in the manifest",
                "deploy true the last run succeeded",
                "integration-tests false nobody has recorded it",
                "load-tests true ann: 2000/s",
                "performance-validation false nobody has recorded it",
                "monitoring true 48 of 48 hours",
            ]
        );
    }

    #[test]
    fn the_last_asks_for_a_window_and_is_watched_for_ever() {
        let evidence = GateEvidence::default();
        assert_eq!(
            shown(&GateDefinition::of_last(), &evidence),
            [
                "enable false not enabled in the manifest",
                "window false nobody has recorded it",
                "deploy false no successful run is the last one",
                "smoke-tests false nobody has recorded it",
                "metric-watch false nobody has recorded it",
                "monitoring false not deployed",
            ]
        );
        let evidence = GateEvidence {
            deployed: true,
            ..GateEvidence::default()
        };
        assert_eq!(
            shown(&GateDefinition::of_last(), &evidence)[5],
            "monitoring true goes on"
        );
    }
}
