//! The two kinds of template: what a stack is, and which stacks make a deployment.
//!
//! A stack template is the single source of a stack's dependencies, defaults and outputs. A
//! manifest template picks stacks and sets the environments. Both are read here from their files;
//! `render` makes a manifest of them.

use std::collections::{BTreeMap, BTreeSet};

use indexmap::IndexMap;
use nimbus_core::{ComponentName, EnvironmentName, Result};
use nimbus_document::{Document, View};
use serde_json::{Map, Value};

use crate::network::NetworkAccess;
use crate::promotion::{promotion_order, refuse_stray_config};

/// `templates/config/<stack>.yaml`.
#[derive(Clone, Debug, PartialEq)]
pub struct ComponentTemplate {
    pub name: ComponentName,
    pub description: String,
    /// Where its program is, relative to the workspace, if it is not where programs usually are.
    pub source: Option<String>,
    /// Smaller runs first among stacks that are ready.
    pub priority: i64,
    pub dependencies: BTreeSet<ComponentName>,
    /// What its program may reach from a sandbox, if it is said here.
    pub network: Option<NetworkAccess>,
    pub outputs: BTreeMap<String, OutputContract>,
    pub variables: BTreeMap<String, VariableDeclaration>,
    /// JSON Schema of the stack's configuration.
    pub parameters: Option<Value>,
    /// Defaults for every environment.
    pub config: Map<String, Value>,
    /// Defaults of one environment, over the common ones.
    pub environments: BTreeMap<EnvironmentName, Map<String, Value>>,
    pub estimate: Estimate,
}

#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct OutputContract {
    pub description: String,
    pub secret: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct VariableDeclaration {
    pub description: String,
    pub default: Option<Value>,
}

/// How long a unit takes in the cloud, and in a rehearsal. What nobody said and nobody measured is not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Estimate {
    /// In the cloud: what the template says, until there are runs to learn from.
    pub minutes: Option<u64>,
    /// What its last rehearsal took, in seconds, in the plan of a rehearsal.
    pub rehearsed: Option<u64>,
    /// What it may well take, if somebody said so: whoever does not know a program cannot say that it
    /// takes too long. The last run may have had nothing to do, so that is no limit.
    pub longest: Option<u64>,
    pub resources: Option<u64>,
    /// Whether `minutes` is what the last real run took, and not what the template says.
    pub measured: bool,
}

impl Estimate {
    /// What the last real run tells, beside what the template says.
    pub fn learnt(self, seconds: u64, resources: u64) -> Self {
        let minutes = seconds.div_ceil(60);
        Self {
            minutes: Some(minutes),
            longest: self.longest.map(|longest| longest.max(minutes)),
            resources: Some(resources),
            measured: true,
            ..self
        }
    }

    /// What the last rehearsal tells: nothing of the time that a cloud takes.
    pub fn rehearsed(self, seconds: u64, resources: u64) -> Self {
        Self {
            rehearsed: Some(seconds),
            resources: Some(resources),
            ..self
        }
    }
}

/// `templates/default/<name>.yaml` or `templates/custom/<name>.yaml`.
#[derive(Clone, Debug, PartialEq)]
pub struct ManifestTemplate {
    pub name: String,
    pub description: String,
    /// In the order of promotion, with variables still in them.
    pub environments: IndexMap<EnvironmentName, Map<String, Value>>,
    /// For every stack in every environment, with variables still in them.
    pub defaults: Map<String, Value>,
    pub stacks: BTreeMap<ComponentName, ComponentChoice>,
}

/// What a manifest template says of one stack.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct ComponentChoice {
    pub enabled: bool,
    /// Over the stack template's defaults.
    pub config: BTreeMap<EnvironmentName, Map<String, Value>>,
}

const PRIORITY: i64 = 100;

pub(crate) const STACK_TEMPLATE_KEYS: &[&str] = &[
    "name",
    "description",
    "source",
    "priority",
    "dependencies",
    "network",
    "outputs",
    "variables",
    "parameters",
    "config",
    "environments",
    "estimate",
];
pub(crate) const OUTPUT_KEYS: &[&str] = &["description", "type", "secret"];
pub(crate) const VARIABLE_KEYS: &[&str] = &["description", "default"];
pub(crate) const ESTIMATE_KEYS: &[&str] = &["minutes", "resources"];
pub(crate) const MANIFEST_TEMPLATE_KEYS: &[&str] = &[
    "name",
    "description",
    "defaults",
    "environments",
    "promotion",
    "stacks",
];
pub(crate) const CHOICE_KEYS: &[&str] = &["enabled", "config"];

/// Keys that a file of defaults may have: those of a stack template that are not its identity.
pub(crate) const DEFAULTS_KEYS: &[&str] = &[
    "config",
    "environments",
    "estimate",
    "outputs",
    "parameters",
    "variables",
];

/// Reads a file of defaults: the part of a stack template that says how a stack is configured.
pub fn read_defaults(document: &Document) -> Result<Map<String, Value>> {
    let view = document.view();
    view.only_keys(DEFAULTS_KEYS)?;
    match document.to_json(document.root())? {
        Value::Object(map) => Ok(map),
        _ => Ok(Map::new()),
    }
}

impl ComponentTemplate {
    pub fn read(document: &Document) -> Result<Self> {
        let view = document.view();
        view.only_keys(STACK_TEMPLATE_KEYS)?;
        let priority = view.optional("priority")?.map(|v| v.i64()).transpose()?;
        let parameters = view.optional("parameters")?;
        Ok(Self {
            name: component(&view.required("name")?)?,
            description: text(&view, "description")?,
            source: view
                .optional("source")?
                .map(|v| v.str().map(str::to_owned))
                .transpose()?,
            priority: priority.unwrap_or(PRIORITY),
            dependencies: names(&view, "dependencies")?,
            network: NetworkAccess::read(&view)?,
            outputs: entries(&view, "outputs", |output| {
                if output.node().is_null() {
                    return Ok(OutputContract::default());
                }
                output.only_keys(OUTPUT_KEYS)?;
                let secret = output.optional("secret")?.map(|v| v.bool()).transpose()?;
                Ok(OutputContract {
                    description: text(&output, "description")?,
                    secret: secret.unwrap_or(false),
                })
            })?,
            variables: entries(&view, "variables", |variable| {
                variable.only_keys(VARIABLE_KEYS)?;
                let default = variable.optional("default")?;
                Ok(VariableDeclaration {
                    description: text(&variable, "description")?,
                    default: default.map(|v| document.to_json(v.node())).transpose()?,
                })
            })?,
            parameters: parameters.map(|v| document.to_json(v.node())).transpose()?,
            config: view
                .optional("config")?
                .map(|v| object(&v))
                .transpose()?
                .unwrap_or_default(),
            environments: by_environment(&view, "environments", |v| object(&v))?,
            estimate: estimate(&view)?,
        })
    }

    /// Defaults for one environment, with variables still in them.
    pub fn defaults(&self, environment: EnvironmentName) -> Map<String, Value> {
        let mut config = self.config.clone();
        config.extend(
            self.environments
                .get(&environment)
                .cloned()
                .unwrap_or_default(),
        );
        config
    }
}

impl ManifestTemplate {
    pub fn read(document: &Document) -> Result<Self> {
        let view = document.view();
        view.only_keys(MANIFEST_TEMPLATE_KEYS)?;
        let environments = promotion_order(&view, |v| {
            v.only_keys(crate::manifest::TARGET_KEYS)?;
            object(&v)
        })?;
        refuse_stray_config(&view, &environments)?;
        Ok(Self {
            name: view.required("name")?.str()?.to_owned(),
            description: text(&view, "description")?,
            environments,
            defaults: view
                .optional("defaults")?
                .map(|v| object(&v))
                .transpose()?
                .unwrap_or_default(),
            stacks: components(&view, "stacks", |stack| {
                if stack.node().is_null() {
                    return Ok(ComponentChoice {
                        enabled: true,
                        ..ComponentChoice::default()
                    });
                }
                stack.only_keys(CHOICE_KEYS)?;
                let enabled = stack.optional("enabled")?.map(|v| v.bool()).transpose()?;
                Ok(ComponentChoice {
                    enabled: enabled.unwrap_or(true),
                    config: by_environment(&stack, "config", |v| object(&v))?,
                })
            })?,
        })
    }
}

fn text(view: &View<'_>, key: &str) -> Result<String> {
    Ok(match view.optional(key)? {
        Some(value) => value.str()?.to_owned(),
        None => String::new(),
    })
}

pub(crate) fn names(view: &View<'_>, key: &str) -> Result<BTreeSet<ComponentName>> {
    let Some(list) = view.optional(key)? else {
        return Ok(BTreeSet::new());
    };
    list.items()?.map(|item| component(&item)).collect()
}

/// The name of a component, with the place of one that cannot be.
pub(crate) fn component(view: &View<'_>) -> Result<ComponentName> {
    view.str()?
        .parse()
        .map_err(|error: nimbus_core::Malformed| view.error(error.to_string(), "not a name"))
}

pub(crate) fn components<T>(
    view: &View<'_>,
    key: &str,
    read: impl Fn(View<'_>) -> Result<T>,
) -> Result<BTreeMap<ComponentName, T>> {
    let Some(map) = view.optional(key)? else {
        return Ok(BTreeMap::new());
    };
    map.entries()?
        .map(|(name, value)| {
            let name = name
                .parse::<ComponentName>()
                .map_err(|error| value.error(error.to_string(), "of this component"))?;
            Ok((name, read(value)?))
        })
        .collect()
}

pub(crate) fn object(view: &View<'_>) -> Result<Map<String, Value>> {
    view.mapping()?;
    match view.document().to_json(view.node())? {
        Value::Object(map) => Ok(map),
        _ => Ok(Map::new()),
    }
}

pub(crate) fn entries<T>(
    view: &View<'_>,
    key: &str,
    read: impl Fn(View<'_>) -> Result<T>,
) -> Result<BTreeMap<String, T>> {
    let Some(map) = view.optional(key)? else {
        return Ok(BTreeMap::new());
    };
    map.entries()?
        .map(|(name, value)| Ok((name.to_owned(), read(value)?)))
        .collect()
}

pub(crate) fn by_environment<T>(
    view: &View<'_>,
    key: &str,
    read: impl Fn(View<'_>) -> Result<T>,
) -> Result<BTreeMap<EnvironmentName, T>> {
    let Some(map) = view.optional(key)? else {
        return Ok(BTreeMap::new());
    };
    map.entries()?
        .map(|(name, value)| {
            let environment = name
                .parse::<EnvironmentName>()
                .map_err(|error| value.error(error.to_string(), "of this environment"))?;
            Ok((environment, read(value)?))
        })
        .collect()
}

fn estimate(view: &View<'_>) -> Result<Estimate> {
    let Some(value) = view.optional("estimate")? else {
        return Ok(Estimate::default());
    };
    value.only_keys(ESTIMATE_KEYS)?;
    let minutes = value.optional("minutes")?.map(|v| v.u64()).transpose()?;
    let resources = value.optional("resources")?.map(|v| v.u64()).transpose()?;
    Ok(Estimate {
        minutes,
        longest: minutes,
        resources,
        rehearsed: None,
        measured: false,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_stack_template_is_read_with_layered_defaults() {
        let document = Document::parse(
            "network.yaml",
            "name: network\npriority: 20\ndependencies: [dns]\n\
             outputs:\n  vpcId: {type: string}\n\
             variables:\n  VPC_CIDR_DEV: {default: 10.0.0.0/16}\n\
             config: {flowLogs: true, zones: 2}\n\
             environments:\n  prod: {zones: 3}\n",
        )
        .unwrap();
        let template = ComponentTemplate::read(&document).unwrap();
        assert_eq!(template.priority, 20);
        assert_eq!(
            template.variables["VPC_CIDR_DEV"].default,
            Some(json!("10.0.0.0/16"))
        );
        let zones = |environment| template.defaults(environment)["zones"].clone();
        assert_eq!(
            (zones(EnvironmentName::DEV), zones(EnvironmentName::PROD)),
            (json!(2), json!(3))
        );
        assert_eq!(
            template.defaults(EnvironmentName::PROD)["flowLogs"],
            json!(true)
        );
    }

    #[test]
    fn wrong_keys_and_environments_are_refused_with_a_hint() {
        let read = |text: &str| {
            ComponentTemplate::read(&Document::parse("t.yaml", text).unwrap()).unwrap_err()
        };
        let typo = read("name: a\ndependancies: []\n");
        assert_eq!(typo.help(), Some("did you mean `dependencies`?"));
        for bad in [
            "name: A_b\n",
            "name: a\ndependencies: [../b]\n",
            "name: a\nenvironments: {Live_1: {}}\n",
        ] {
            assert!(read(bad).message().contains("lower-case letters"), "{bad}");
        }
    }

    #[test]
    fn a_manifest_template_enables_what_it_names() {
        let document = Document::parse(
            "minimal.yaml",
            "name: minimal\nenvironments: {dev: {enabled: true}}\n\
             stacks:\n  dns:\n  network: {config: {dev: {zones: 1}}}\n  eks: {enabled: false}\n",
        )
        .unwrap();
        let template = ManifestTemplate::read(&document).unwrap();
        let enabled: Vec<_> = template
            .stacks
            .iter()
            .map(|(n, s)| (n.as_str(), s.enabled))
            .collect();
        assert_eq!(enabled, [("dns", true), ("eks", false), ("network", true)]);
        assert_eq!(
            template.stacks["network"].config[&EnvironmentName::DEV]["zones"],
            json!(1)
        );
    }
}
