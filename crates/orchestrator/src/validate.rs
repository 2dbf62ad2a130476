//! Everything that can be wrong with a deployment before anything runs.
//!
//! Findings are data: all of them are collected, not only the first, each with what to do. Whether
//! the cloud would agree is not asked here.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::fmt;

use nimbus_core::EnvironmentName;
use serde_json::Value;

use crate::calculate;
use crate::graph::GraphError;
use crate::manifest::Manifest;
use crate::placeholder::{Placeholder, PlaceholderSource, TemplateText};
use crate::render::TemplateLibrary;
use crate::resolve::secret_name;
use crate::spot::ManifestSpot;

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
            if let Some(config) = entry.config.get(environment) {
                findings.extend(config_of(name, *environment, config, manifest, library));
            }
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

fn config_of(
    stack: &str,
    environment: EnvironmentName,
    config: &serde_json::Map<String, Value>,
    manifest: &Manifest,
    library: &TemplateLibrary,
) -> Vec<ValidationFinding> {
    let mut findings = Vec::new();
    let mut has_placeholder = BTreeSet::new();
    for (key, value) in config {
        let place = format!("spec.stacks.{stack}.config.{environment}.{key}");
        let spot = ManifestSpot::config(stack, environment, key);
        if names_secret(value) {
            has_placeholder.insert(key.clone());
        }
        for text in texts(value) {
            match TemplateText::parse(text) {
                Err(error) => findings.push(
                    ValidationFinding::error(
                        "Malformed placeholder",
                        format!("{place}: {error}: {text}"),
                        "write {{RUNTIME:<type>:<parameters>}}; see the reference of placeholders",
                    )
                    .at(spot.clone().with_text(text)),
                ),
                Ok(template) => {
                    if !template.is_literal() {
                        has_placeholder.insert(key.clone());
                    }
                    for placeholder in template.placeholders() {
                        let found = reference(stack, placeholder, manifest, library)
                            .or_else(|| calculation(&place, placeholder));
                        let spot = spot.clone().with_text(&placeholder.to_string());
                        findings.extend(found.map(|finding| finding.at(spot)));
                    }
                }
            }
        }
    }
    findings.extend(parameters(
        stack,
        environment,
        config,
        &has_placeholder,
        library,
    ));
    findings
}

fn reference(
    stack: &str,
    placeholder: &Placeholder,
    manifest: &Manifest,
    library: &TemplateLibrary,
) -> Option<ValidationFinding> {
    let (other, output) = placeholder.reference()?;
    let title = "Invalid cross-stack reference";
    // With a default, the stack need not be there; what is registered is still checked below.
    let may_be_missing = placeholder.default.is_some() && library.stacks.contains_key(other);
    if !manifest.stacks.contains_key(other) && !may_be_missing {
        return Some(ValidationFinding::error(
            title,
            format!("Stack '{stack}' references '{other}' but there is no such stack"),
            "use the name of a stack of this deployment, or aws, calculate or env",
        ));
    }
    let (output, template) = (output?, library.stacks.get(other)?);
    if template.outputs.is_empty() || template.outputs.contains_key(output) {
        return None;
    }
    let known = template.outputs.keys().map(String::as_str);
    let help = nimbus_document::did_you_mean(output, known.clone())
        .unwrap_or_else(|| format!("'{other}' has: {}", known.collect::<Vec<_>>().join(", ")));
    Some(ValidationFinding::error(
        title,
        format!("Stack '{stack}' references '{other}:{output}' but output does not exist"),
        help,
    ))
}

/// A calculation that would be refused at run time. One whose parameters are not known yet is
/// trusted.
fn calculation(place: &str, placeholder: &Placeholder) -> Option<ValidationFinding> {
    let PlaceholderSource::Calculate {
        function,
        parameters,
    } = &placeholder.source
    else {
        return None;
    };
    let literal = |template: &TemplateText| template.is_literal().then(|| template.to_string());
    let parameters = parameters.iter().map(literal).collect::<Option<Vec<_>>>()?;
    let error = calculate::check(function, &parameters).err()?;
    Some(ValidationFinding::error(
        "Invalid calculation",
        format!("{place}: {error}"),
        "correct the placeholder",
    ))
}

/// Checks values against the stack's schema. A value that is known only at run time is taken out,
/// and with it the demand that it be there.
fn parameters(
    stack: &str,
    environment: EnvironmentName,
    config: &serde_json::Map<String, Value>,
    later: &BTreeSet<String>,
    library: &TemplateLibrary,
) -> Vec<ValidationFinding> {
    let Some(schema) = library
        .stacks
        .get(stack)
        .and_then(|t| t.parameters.as_ref())
    else {
        return Vec::new();
    };
    let mut schema = schema.clone();
    if let Some(required) = schema.get_mut("required").and_then(Value::as_array_mut) {
        required.retain(|key| key.as_str().is_none_or(|key| !later.contains(key)));
    }
    let known: serde_json::Map<_, _> = config
        .iter()
        .filter(|(key, _)| !later.contains(*key))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    let place = format!("spec.stacks.{stack}.config.{environment}");
    let spot = |path: &str| {
        let key = path.trim_start_matches('.').split('.').next();
        ManifestSpot::config(stack, environment, key.unwrap_or_default())
    };
    let validator = match jsonschema::validator_for(&schema) {
        Ok(validator) => validator,
        Err(error) => {
            return vec![ValidationFinding::error(
                "Invalid template",
                format!("`parameters` of stack '{stack}' is no JSON Schema: {error}"),
                format!("correct templates/config/{stack}.yaml"),
            )];
        }
    };
    validator
        .iter_errors(&Value::Object(known))
        .map(|error| {
            let path = error.instance_path().to_string().replace('/', ".");
            ValidationFinding::error(
                "Invalid configuration",
                format!("{place}{path}: {error}"),
                format!(
                    "change it in the manifest; the rules are in templates/config/{stack}.yaml"
                ),
            )
            .at(spot(&path))
        })
        .collect()
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

/// Whether a value is, or has inside, a secret of the deployment, which is known only at run time.
fn names_secret(value: &Value) -> bool {
    match value {
        Value::Object(map) => secret_name(map).is_some() || map.values().any(names_secret),
        Value::Array(items) => items.iter().any(names_secret),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
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
