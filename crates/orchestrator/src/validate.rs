//! Everything that can be wrong with a deployment before anything runs.
//!
//! Findings are data: all of them are collected, not only the first, each with what to do. Whether
//! the cloud would agree is not asked here.

use std::collections::BTreeSet;
use std::fmt;

use serde_json::Value;

use crate::calculate;
use crate::environment::Environment;
use crate::graph::GraphError;
use crate::manifest::Manifest;
use crate::placeholder::{Placeholder, Source, Template};
use crate::render::Library;
use crate::spot::Spot;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub severity: Severity,
    pub title: &'static str,
    pub detail: String,
    pub help: String,
    /// Where in the manifest, if it is there.
    pub spot: Option<Spot>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    Warning,
    Error,
}

impl Finding {
    fn error(title: &'static str, detail: String, help: impl Into<String>) -> Self {
        Self {
            severity: Severity::Error,
            title,
            detail,
            help: help.into(),
            spot: None,
        }
    }

    fn at(mut self, spot: Spot) -> Self {
        self.spot = Some(spot);
        self
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let severity = match self.severity {
            Severity::Warning => "WARNING",
            Severity::Error => "ERROR",
        };
        write!(f, "{severity}: {}\n  {}", self.title, self.detail)
    }
}

/// All findings for these environments.
pub fn validate(
    manifest: &Manifest,
    library: &Library,
    environments: &[Environment],
) -> Vec<Finding> {
    let mut findings = stacks(manifest, library);
    for environment in environments {
        findings.extend(target(manifest, *environment));
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
pub fn validate_dependencies(manifest: &Manifest, library: &Library) -> Vec<Finding> {
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

fn stacks(manifest: &Manifest, library: &Library) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (name, entry) in manifest.enabled() {
        let Some(template) = library.stacks.get(name) else {
            findings.push(
                Finding::error(
                    UNKNOWN,
                    format!("Stack '{name}' is in the manifest but not registered"),
                    format!("register it with `nimbus register-stack {name}`, or disable it"),
                )
                .at(Spot::of(&["spec", "stacks", name])),
            );
            continue;
        };
        for missing in template.dependencies.difference(&entry.dependencies) {
            findings.push(Finding::error(
                "Template dependency mismatch",
                format!("Stack '{name}' declares dependency on '{missing}' in template but not in manifest"),
                format!("add '{missing}' to spec.stacks.{name}.dependencies"),
            )
            .at(Spot::of(&["spec", "stacks", name, "dependencies"])));
        }
        for extra in entry.dependencies.difference(&template.dependencies) {
            findings.push(Finding::error(
                "Template dependency mismatch",
                format!("Stack '{name}' declares dependency on '{extra}' in manifest but not in template"),
                format!("templates are the source: `nimbus update-stack {name}`, or remove it"),
            )
            .at(Spot::of(&["spec", "stacks", name, "dependencies"]).with_text(extra)));
        }
    }
    findings
}

fn target(manifest: &Manifest, environment: Environment) -> Option<Finding> {
    let target = manifest.environments.get(&environment)?;
    let valid = target.account.len() == 12 && target.account.bytes().all(|b| b.is_ascii_digit());
    (target.enabled && !valid).then(|| {
        Finding::error(
            "Invalid AWS account",
            format!(
                "Environment '{environment}' has the account '{}'",
                target.account
            ),
            format!("set spec.environments.{environment}.account to 12 digits, in quotes"),
        )
        .at(Spot::of(&[
            "spec",
            "environments",
            environment.as_str(),
            "account",
        ]))
    })
}

fn graph(manifest: &Manifest, environment: Environment) -> Option<Finding> {
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
            Some(Spot::of(&["spec", "stacks", needs, "enabled"])),
        ),
    };
    let text = error.to_string();
    let detail = text
        .split_once("\n  ")
        .map_or(text.as_str(), |(_, detail)| detail);
    Some(Finding {
        spot,
        ..Finding::error(title, detail.to_owned(), help)
    })
}

fn config_of(
    stack: &str,
    environment: Environment,
    config: &serde_json::Map<String, Value>,
    manifest: &Manifest,
    library: &Library,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut has_placeholder = BTreeSet::new();
    for (key, value) in config {
        let place = format!("spec.stacks.{stack}.config.{environment}.{key}");
        let spot = Spot::config(stack, environment, key);
        for text in texts(value) {
            match Template::parse(text) {
                Err(error) => findings.push(
                    Finding::error(
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
    library: &Library,
) -> Option<Finding> {
    let (other, output) = placeholder.reference()?;
    let title = "Invalid cross-stack reference";
    // With a default, the stack need not be there; what is registered is still checked below.
    let may_be_missing = placeholder.default.is_some() && library.stacks.contains_key(other);
    if !manifest.stacks.contains_key(other) && !may_be_missing {
        return Some(Finding::error(
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
    Some(Finding::error(
        title,
        format!("Stack '{stack}' references '{other}:{output}' but output does not exist"),
        help,
    ))
}

/// A calculation that would be refused at run time. One whose parameters are not known yet is
/// trusted.
fn calculation(place: &str, placeholder: &Placeholder) -> Option<Finding> {
    let Source::Calculate {
        function,
        parameters,
    } = &placeholder.source
    else {
        return None;
    };
    let literal = |template: &Template| template.is_literal().then(|| template.to_string());
    let parameters = parameters.iter().map(literal).collect::<Option<Vec<_>>>()?;
    let error = calculate::check(function, &parameters).err()?;
    Some(Finding::error(
        "Invalid calculation",
        format!("{place}: {error}"),
        "correct the placeholder",
    ))
}

/// Checks values against the stack's schema. A value that is known only at run time is taken out,
/// and with it the demand that it be there.
fn parameters(
    stack: &str,
    environment: Environment,
    config: &serde_json::Map<String, Value>,
    later: &BTreeSet<String>,
    library: &Library,
) -> Vec<Finding> {
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
        Spot::config(stack, environment, key.unwrap_or_default())
    };
    let validator = match jsonschema::validator_for(&schema) {
        Ok(validator) => validator,
        Err(error) => {
            return vec![Finding::error(
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
            Finding::error(
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

fn shared_production_account(manifest: &Manifest) -> Option<Finding> {
    let production = manifest
        .environments
        .get(&Environment::Prod)
        .filter(|t| t.enabled)?;
    let shared = [Environment::Dev, Environment::Stage]
        .into_iter()
        .find(|environment| {
            let other = manifest.environments.get(environment);
            other.is_some_and(|other| {
                !other.account.is_empty() && other.account == production.account
            })
        })?;
    Some(Finding {
        severity: Severity::Warning,
        title: "Production shares an account",
        detail: format!(
            "Environments '{shared}' and 'prod' use the account {}",
            production.account
        ),
        help: "give production an account of its own".to_owned(),
        spot: Some(Spot::of(&["spec", "environments", "prod", "account"])),
    })
}

/// A placeholder, and where it is.
#[derive(Clone, Debug)]
pub struct FoundPlaceholder {
    pub placeholder: Placeholder,
    /// Keys, for people.
    pub place: String,
    pub spot: Spot,
}

/// Every well-formed placeholder of the enabled stacks.
pub fn placeholders(manifest: &Manifest, environments: &[Environment]) -> Vec<FoundPlaceholder> {
    let mut found = Vec::new();
    for (stack, entry) in manifest.enabled() {
        for environment in environments {
            for (key, value) in entry.config.get(environment).into_iter().flatten() {
                let templates = texts(value)
                    .into_iter()
                    .filter_map(|text| Template::parse(text).ok());
                for placeholder in templates
                    .flat_map(|t| t.placeholders().into_iter().cloned().collect::<Vec<_>>())
                {
                    let spot = Spot::config(stack, *environment, key);
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use nimbus_document::Document;

    use super::*;
    use crate::template::StackTemplate;

    fn library() -> Library {
        let stack = |name: &str, rest: &str| {
            let document = Document::parse(name, &format!("name: {name}\n{rest}")).unwrap();
            (name.to_owned(), StackTemplate::read(&document).unwrap())
        };
        Library {
            stacks: BTreeMap::from([
                stack("network", "outputs: {vpcId: , subnetIds: }\n"),
                stack("security", "dependencies: [network]\n"),
                stack(
                    "compute-ec2",
                    "dependencies: [network, security]\nparameters:\n\
                     \x20 required: [size, vpcId]\n  properties: {size: {type: integer, minimum: 1}}\n",
                ),
            ]),
            manifests: BTreeMap::new(),
        }
    }

    fn manifest(stacks: &str) -> Manifest {
        let text = format!(
            "apiVersion: nimbus/v1\nkind: DeploymentManifest\nmetadata: {{deploymentId: D1, organization: o, \
             project: p, template: t}}\nspec:\n  environments:\n    dev: {{enabled: true, account: '111111111111', \
             region: r}}\n  stacks:\n{stacks}"
        );
        Manifest::read(&Document::parse("m.yaml", &text).unwrap()).unwrap()
    }

    fn details(stacks: &str) -> Vec<String> {
        let findings = validate(&manifest(stacks), &library(), &[Environment::Dev]);
        findings.iter().map(ToString::to_string).collect()
    }

    const NETWORK: &str = "    network: {enabled: true}\n";

    #[test]
    fn a_good_manifest_has_no_findings() {
        let good = format!(
            "{NETWORK}    security: {{enabled: true, dependencies: [network]}}\n    compute-ec2:\n      \
             enabled: true\n      dependencies: [network, security]\n      \
             config: {{dev: {{size: 2, vpcId: '{{{{RUNTIME:network:vpcId}}}}'}}}}\n"
        );
        assert_eq!(details(&good), Vec::<String>::new());
    }

    #[test]
    fn the_four_dependency_errors_read_as_specified() {
        let cycle = "    security: {enabled: true, dependencies: [network]}\n    network: {enabled: true, \
                     dependencies: [security]}\n";
        assert!(details(cycle).contains(
            &"ERROR: Circular dependency detected\n  network → security → network".to_owned()
        ));
        let missing = "    network: {enabled: false}\n    security: {enabled: true, dependencies: [network]}\n";
        assert_eq!(
            details(missing),
            [
                "ERROR: Missing dependency\n  Stack 'security' depends on 'network' but 'network' is not enabled"
            ]
        );
        let reference = format!(
            "{NETWORK}    security: {{enabled: true, dependencies: [network], config: {{dev: {{a: \
             '{{{{RUNTIME:network:vpcIdd}}}}'}}}}}}\n"
        );
        assert_eq!(
            details(&reference),
            [
                "ERROR: Invalid cross-stack reference\n  Stack 'security' references 'network:vpcIdd' but output does not exist"
            ]
        );
        let mismatch = format!("{NETWORK}    security: {{enabled: true}}\n");
        assert_eq!(
            details(&mismatch),
            [
                "ERROR: Template dependency mismatch\n  Stack 'security' declares dependency on 'network' in template but not in manifest"
            ]
        );
    }

    #[test]
    fn a_reference_with_a_default_may_lead_nowhere_but_not_astray() {
        let with = |placeholder: &str| {
            details(&format!(
                "{NETWORK}    security: {{enabled: true, dependencies: [network], config: {{dev: {{a: \
                 '{placeholder}'}}}}}}\n"
            ))
        };
        assert_eq!(
            with("{{RUNTIME:compute-ec2:groupName|}}"),
            Vec::<String>::new()
        );
        assert_eq!(with("{{RUNTIME:compute-ec3:groupName|}}").len(), 1);
        assert_eq!(with("{{RUNTIME:network:vpcIdd|}}").len(), 1);
    }

    #[test]
    fn values_are_checked_against_the_schema_and_placeholders_are_trusted() {
        let wrong = format!(
            "{NETWORK}    security: {{enabled: true, dependencies: [network]}}\n    compute-ec2: {{enabled: true, \
             dependencies: [network, security], config: {{dev: {{size: 0}}}}}}\n"
        );
        let found = details(&wrong);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(
            found
                .iter()
                .any(|text| text.contains("config.dev.size: 0 is less than")),
            "{found:?}"
        );
        assert!(
            found
                .iter()
                .any(|text| text.contains("\"vpcId\" is a required")),
            "{found:?}"
        );
    }

    #[test]
    fn malformed_placeholders_and_accounts_are_found() {
        let broken = "    network: {enabled: true, config: {dev: {a: '{{RUNTIME:x'}}}\n";
        assert!(
            details(broken)[0]
                .contains("spec.stacks.network.config.dev.a: the placeholder is not closed")
        );
        let mut no_account = manifest(NETWORK);
        no_account
            .environments
            .get_mut(&Environment::Dev)
            .unwrap()
            .account
            .clear();
        let findings = validate(&no_account, &library(), &[Environment::Dev]);
        assert_eq!(findings[0].title, "Invalid AWS account");
    }

    #[test]
    fn production_in_the_account_of_dev_is_a_warning() {
        let mut manifest = manifest(NETWORK);
        let dev = manifest.environments[&Environment::Dev].clone();
        manifest.environments.insert(Environment::Prod, dev);
        let findings = validate(&manifest, &library(), &[Environment::Prod]);
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].severity, Severity::Warning);
    }
}
