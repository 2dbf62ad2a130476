//! What has to be true of an environment before the next one follows, and what is known of it.
//!
//! Two items close a gate by themselves: the deploy, and the checks that the manifest declares. The
//! others are recorded: by a run where the item has a check of its name, by the clock, or by the
//! person who did it. What is open is shown as a warning when the next environment is deployed.

use std::collections::BTreeMap;

use crate::environment::Environment;
use crate::record::CheckStatus;

/// One thing that a gate asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Item {
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
pub struct Evidence {
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
pub struct Standing {
    pub item: Item,
    pub done: bool,
    /// Who or what says so, or what is missing.
    pub note: String,
}

impl Item {
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

/// What the gate of an environment asks for, in order.
pub fn items(environment: Environment) -> &'static [Item] {
    match environment {
        Environment::Dev => &[
            Item::Deploy,
            Item::SmokeTests,
            Item::ResourceValidation,
            Item::Monitoring,
        ],
        Environment::Stage => &[
            Item::Enable,
            Item::Deploy,
            Item::IntegrationTests,
            Item::LoadTests,
            Item::PerformanceValidation,
            Item::Monitoring,
        ],
        Environment::Prod => &[
            Item::Enable,
            Item::Window,
            Item::Deploy,
            Item::SmokeTests,
            Item::MetricWatch,
            Item::Monitoring,
        ],
    }
}

/// How long an environment is watched before the next one follows; production is watched for ever.
pub fn hours_of_monitoring(environment: Environment) -> Option<u64> {
    match environment {
        Environment::Dev => Some(24),
        Environment::Stage => Some(48),
        Environment::Prod => None,
    }
}

/// Every item of an environment's gate and how it stands.
pub fn record(environment: Environment, evidence: &Evidence) -> Vec<Standing> {
    let stand = |item: &Item| {
        let (done, note) = judge(*item, environment, evidence);
        Standing {
            item: *item,
            done,
            note,
        }
    };
    items(environment).iter().map(stand).collect()
}

fn judge(item: Item, environment: Environment, evidence: &Evidence) -> (bool, String) {
    let said = |done: bool, text: &str| (done, text.to_owned());
    if let Some(words) = evidence.signed.get(item.as_str()) {
        return (true, words.clone());
    }
    match item {
        Item::Enable if evidence.enabled => said(true, "enabled in the manifest"),
        Item::Enable => said(false, "not enabled in the manifest"),
        Item::Deploy if evidence.deployed => said(true, "the last run succeeded"),
        Item::Deploy => said(false, "no successful run is the last one"),
        Item::ResourceValidation => by_check("resources", evidence),
        Item::Monitoring => monitored(environment, evidence),
        Item::Window
        | Item::SmokeTests
        | Item::IntegrationTests
        | Item::LoadTests
        | Item::PerformanceValidation
        | Item::MetricWatch => by_check(item.as_str(), evidence),
    }
}

fn by_check(name: &str, evidence: &Evidence) -> (bool, String) {
    match evidence.checks.get(name) {
        Some(CheckStatus::Passed) => (true, format!("check {name} passed")),
        Some(status) => (false, format!("check {name} {}", status.word())),
        None => (false, "nobody has recorded it".to_owned()),
    }
}

fn monitored(environment: Environment, evidence: &Evidence) -> (bool, String) {
    if !evidence.deployed {
        return (false, "not deployed".to_owned());
    }
    match hours_of_monitoring(environment) {
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

    fn shown(environment: Environment, evidence: &Evidence) -> Vec<String> {
        record(environment, evidence)
            .iter()
            .map(|one| format!("{} {} {}", one.item.as_str(), one.done, one.note))
            .collect()
    }

    #[test]
    fn dev_asks_for_deploy_smoke_tests_validation_and_a_day() {
        let mut evidence = Evidence {
            deployed: true,
            hours: 3,
            ..Evidence::default()
        };
        evidence
            .checks
            .insert("resources".to_owned(), CheckStatus::Passed);
        evidence
            .checks
            .insert("smoke-tests".to_owned(), CheckStatus::Failed);
        assert_eq!(
            shown(Environment::Dev, &evidence),
            [
                "deploy true the last run succeeded",
                "smoke-tests false check smoke-tests failed",
                "resource-validation true check resources passed",
                "monitoring false 3 of 24 hours",
            ]
        );
    }

    #[test]
    fn stage_asks_for_three_kinds_of_tests_and_two_days() {
        let mut evidence = Evidence {
            enabled: true,
            deployed: true,
            hours: 50,
            ..Evidence::default()
        };
        evidence
            .signed
            .insert("load-tests".to_owned(), "ann: 2000/s".to_owned());
        assert_eq!(
            shown(Environment::Stage, &evidence),
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
    fn prod_asks_for_a_window_and_is_watched_for_ever() {
        let evidence = Evidence::default();
        assert_eq!(
            shown(Environment::Prod, &evidence),
            [
                "enable false not enabled in the manifest",
                "window false nobody has recorded it",
                "deploy false no successful run is the last one",
                "smoke-tests false nobody has recorded it",
                "metric-watch false nobody has recorded it",
                "monitoring false not deployed",
            ]
        );
        let evidence = Evidence {
            deployed: true,
            ..Evidence::default()
        };
        assert_eq!(
            shown(Environment::Prod, &evidence)[5],
            "monitoring true goes on"
        );
    }
}
