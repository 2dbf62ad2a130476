//! Everything that can be wrong with a deployment before anything runs.
//!
//! Findings are data: all of them are collected, not only the first, each with what to do. Whether
//! the cloud would agree is not asked here.

mod configuration;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::fmt;

use nimbus_core::EnvironmentName;
use serde_json::Value;

use crate::graph::GraphError;
use crate::manifest::Manifest;
use crate::placeholder::{Placeholder, PlaceholderSource, TemplateText};
use crate::render::TemplateLibrary;
use crate::spot::ManifestSpot;

use configuration::config_of;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValidationFinding {
    pub severity: FindingSeverity,
    pub title: &'static str,
    pub detail: String,
    pub help: String,
    /// Where in the manifest, if it is there.
    pub spot: Option<ManifestSpot>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FindingSeverity {
    Warning,
    Error,
}

impl ValidationFinding {
    fn error(title: &'static str, detail: String, help: impl Into<String>) -> Self {
        Self {
            severity: FindingSeverity::Error,
            title,
            detail,
            help: help.into(),
            spot: None,
        }
    }

    fn at(mut self, spot: ManifestSpot) -> Self {
        self.spot = Some(spot);
        self
    }
}

impl fmt::Display for ValidationFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let severity = match self.severity {
            FindingSeverity::Warning => "WARNING",
            FindingSeverity::Error => "ERROR",
        };
        write!(f, "{severity}: {}\n  {}", self.title, self.detail)
    }
}

/// All findings for these environments.
pub fn validate(
    manifest: &Manifest,
    library: &TemplateLibrary,
    environments: &[EnvironmentName],
) -> Vec<ValidationFinding> {
    let mut findings = stacks(manifest, library);
    for environment in environments {
        findings.extend(target(manifest, *environment));
        findings.extend(region(manifest, *environment));
        findings.extend(graph(manifest, *environment));
        for (name, entry) in manifest.enabled() {
            // A stack of which an environment says nothing runs there with nothing.
            let nothing = serde_json::Map::new();
            let config = entry.config.get(environment).unwrap_or(&nothing);
            findings.extend(config_of(name, *environment, config, manifest, library));
        }
    }
    findings.extend(shared_production_account(manifest));
    let mut seen = BTreeSet::new();
    findings.retain(|finding| seen.insert(finding.to_string()));
    findings
}

/// Only what concerns which stack needs which.
pub fn validate_dependencies(
    manifest: &Manifest,
    library: &TemplateLibrary,
) -> Vec<ValidationFinding> {
    let titles = [
        CYCLE,
        MISSING,
        "Invalid cross-stack reference",
        "Template dependency mismatch",
        UNKNOWN,
    ];
    let environments: Vec<_> = manifest.environments.keys().copied().collect();
    let mut findings = validate(manifest, library, &environments);
    findings.retain(|finding| titles.contains(&finding.title));
    findings
}

/// A value that is missing, or is not what the rules of its stack allow.
pub const INVALID_CONFIGURATION: &str = "Invalid configuration";
const CYCLE: &str = "Circular dependency detected";
const MISSING: &str = "Missing dependency";
const UNKNOWN: &str = "Unknown stack";

fn stacks(manifest: &Manifest, library: &TemplateLibrary) -> Vec<ValidationFinding> {
    let mut findings = Vec::new();
    for (name, entry) in manifest.enabled() {
        let Some(template) = library.stacks.get(name) else {
            findings.push(
                ValidationFinding::error(
                    UNKNOWN,
                    format!("Stack '{name}' is in the manifest but not registered"),
                    format!("register it with `nimbus register-stack {name}`, or disable it"),
                )
                .at(ManifestSpot::of(&["spec", "stacks", name])),
            );
            continue;
        };
        for missing in template.dependencies.difference(&entry.dependencies) {
            findings.push(ValidationFinding::error(
                "Template dependency mismatch",
                format!("Stack '{name}' declares dependency on '{missing}' in template but not in manifest"),
                format!("add '{missing}' to spec.stacks.{name}.dependencies"),
            )
            .at(ManifestSpot::of(&["spec", "stacks", name, "dependencies"])));
        }
        for extra in entry.dependencies.difference(&template.dependencies) {
            findings.push(ValidationFinding::error(
                "Template dependency mismatch",
                format!("Stack '{name}' declares dependency on '{extra}' in manifest but not in template"),
                format!("templates are the source: `nimbus update-stack {name}`, or remove it"),
            )
            .at(ManifestSpot::of(&["spec", "stacks", name, "dependencies"]).with_text(extra)));
        }
    }
    findings
}

fn target(manifest: &Manifest, environment: EnvironmentName) -> Option<ValidationFinding> {
    let target = manifest.environments.get(&environment)?;
    // Nobody has to have an account; whoever names one names a real one.
    let account = target.account.as_deref()?;
    let valid = account.len() == 12 && account.bytes().all(|b| b.is_ascii_digit());
    (target.enabled && !valid).then(|| {
        ValidationFinding::error(
            "Invalid AWS account",
            format!("Environment '{environment}' has the account '{account}'"),
            format!(
                "set spec.environments.{environment}.account to 12 digits, in quotes, or leave it \
                 out where no stack uses AWS"
            ),
        )
        .at(ManifestSpot::of(&[
            "spec",
            "environments",
            environment.as_str(),
            "account",
        ]))
    })
}

/// A placeholder that asks AWS needs to know where.
fn region(manifest: &Manifest, environment: EnvironmentName) -> Option<ValidationFinding> {
    let target = manifest.environments.get(&environment)?;
    if !target.enabled || !target.region.is_empty() {
        return None;
    }
    let mut asked = placeholders(manifest, &[environment]).into_iter();
    let first =
        asked.find(|found| matches!(found.placeholder.source, PlaceholderSource::Aws { .. }))?;
    let finding = ValidationFinding::error(
        "Missing AWS region",
        format!(
            "{} asks AWS with {}, and environment '{environment}' has no region",
            first.place, first.placeholder
        ),
        format!("set spec.environments.{environment}.region"),
    );
    Some(finding.at(first.spot))
}

fn graph(manifest: &Manifest, environment: EnvironmentName) -> Option<ValidationFinding> {
    let error = manifest.graph(environment).err()?;
    let (title, help, spot) = match &error {
        GraphError::Cycle { .. } => (
            CYCLE,
            "remove one of these dependencies, or the placeholder that implies it".to_owned(),
            None,
        ),
        GraphError::Missing { unit, needs } => (
            MISSING,
            format!("enable '{needs}' under spec.stacks, or disable '{unit}'"),
            Some(ManifestSpot::of(&["spec", "stacks", needs, "enabled"])),
        ),
    };
    let text = error.to_string();
    let detail = text
        .split_once("\n  ")
        .map_or(text.as_str(), |(_, detail)| detail);
    Some(ValidationFinding {
        spot,
        ..ValidationFinding::error(title, detail.to_owned(), help)
    })
}

fn shared_production_account(manifest: &Manifest) -> Option<ValidationFinding> {
    let (last, production) = manifest.environments.last()?;
    let mut others = manifest.environments.iter();
    let shared = others.find_map(|(environment, other)| {
        let named = other
            .account
            .as_ref()
            .filter(|account| !account.is_empty())?;
        let same = Some(named) == production.account.as_ref();
        (environment != last && production.enabled && same).then_some((environment, named))
    })?;
    let (shared, account) = shared;
    Some(ValidationFinding {
        severity: FindingSeverity::Warning,
        title: "Production shares an account",
        detail: format!("Environments '{shared}' and '{last}' use the account {account}"),
        help: "give production an account of its own".to_owned(),
        spot: Some(ManifestSpot::of(&["spec", "environments", last, "account"])),
    })
}

/// A placeholder, and where it is.
#[derive(Clone, Debug)]
pub struct FoundPlaceholder {
    pub placeholder: Placeholder,
    /// Keys, for people.
    pub place: String,
    pub spot: ManifestSpot,
}

/// Every well-formed placeholder of the enabled stacks.
pub fn placeholders(
    manifest: &Manifest,
    environments: &[EnvironmentName],
) -> Vec<FoundPlaceholder> {
    let mut found = Vec::new();
    for (stack, entry) in manifest.enabled() {
        for environment in environments {
            for (key, value) in entry.config.get(environment).into_iter().flatten() {
                let templates = texts(value)
                    .into_iter()
                    .filter_map(|text| TemplateText::parse(text).ok());
                for placeholder in templates
                    .flat_map(|t| t.placeholders().into_iter().cloned().collect::<Vec<_>>())
                {
                    let spot = ManifestSpot::config(stack, *environment, key);
                    found.push(FoundPlaceholder {
                        place: format!("spec.stacks.{stack}.config.{environment}.{key}"),
                        spot: spot.with_text(&placeholder.to_string()),
                        placeholder,
                    });
                }
            }
        }
    }
    found
}

fn texts(value: &Value) -> Vec<&str> {
    let mut found = Vec::new();
    let mut open = vec![value];
    while let Some(value) = open.pop() {
        match value {
            Value::String(text) => found.push(text.as_str()),
            Value::Array(items) => open.extend(items),
            Value::Object(map) => open.extend(map.values()),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    found
}
