//! The two kinds of template: what a stack is, and which stacks make a deployment.
//!
//! A stack template is the single source of a stack's dependencies, defaults and outputs. A
//! manifest template picks stacks and sets the environments. Both are read here from their files;
//! `render` makes a manifest of them.

use std::collections::{BTreeMap, BTreeSet};

use nimbus_core::Result;
use nimbus_document::{Document, View};
use serde_json::{Map, Value};

use crate::environment::Environment;
use crate::graph::Name;
use crate::network::NetworkAccess;

/// `templates/config/<stack>.yaml`.
#[derive(Clone, Debug, PartialEq)]
pub struct StackTemplate {
    pub name: Name,
    pub description: String,
    /// Smaller runs first among stacks that are ready.
    pub priority: i64,
    pub dependencies: BTreeSet<Name>,
    /// What its program may reach from a sandbox, if it is said here.
    pub network: Option<NetworkAccess>,
    pub outputs: BTreeMap<String, Output>,
    pub variables: BTreeMap<String, Variable>,
    /// JSON Schema of the stack's configuration.
    pub parameters: Option<Value>,
    /// Defaults for every environment.
    pub config: Map<String, Value>,
    /// Defaults of one environment, over the common ones.
    pub environments: BTreeMap<Environment, Map<String, Value>>,
    pub estimate: Estimate,
}

#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Output {
    pub description: String,
    pub secret: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Variable {
    pub description: String,
    pub default: Option<Value>,
}

/// A guess until there are runs to learn from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Estimate {
    pub minutes: u64,
    /// What it may well take. The last run may have had nothing to do, so that is no limit.
    pub longest: u64,
    pub resources: u64,
}

impl Estimate {
    /// What the last run tells, beside this guess.
    pub fn learnt(self, seconds: u64, resources: u64) -> Self {
        let minutes = seconds.div_ceil(60);
        Self {
            minutes,
            longest: minutes.max(self.minutes),
            resources,
        }
    }
}

impl Default for Estimate {
    fn default() -> Self {
        Self {
            minutes: 5,
            longest: 5,
            resources: 10,
        }
    }
}

/// `templates/default/<name>.yaml` or `templates/custom/<name>.yaml`.
#[derive(Clone, Debug, PartialEq)]
pub struct ManifestTemplate {
    pub name: String,
    pub description: String,
    /// With variables still in them.
    pub environments: BTreeMap<Environment, Map<String, Value>>,
    pub stacks: BTreeMap<Name, StackChoice>,
}

/// What a manifest template says of one stack.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct StackChoice {
    pub enabled: bool,
    /// Over the stack template's defaults.
    pub config: BTreeMap<Environment, Map<String, Value>>,
}

const PRIORITY: i64 = 100;

pub(crate) const STACK_TEMPLATE_KEYS: &[&str] = &[
    "name",
    "description",
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
pub(crate) const MANIFEST_TEMPLATE_KEYS: &[&str] =
    &["name", "description", "environments", "stacks"];
pub(crate) const CHOICE_KEYS: &[&str] = &["enabled", "config"];

impl StackTemplate {
    pub fn read(document: &Document) -> Result<Self> {
        let view = document.view();
        view.only_keys(STACK_TEMPLATE_KEYS)?;
        let priority = view.optional("priority")?.map(|v| v.i64()).transpose()?;
        let parameters = view.optional("parameters")?;
        Ok(Self {
            name: view.required("name")?.str()?.to_owned(),
            description: text(&view, "description")?,
            priority: priority.unwrap_or(PRIORITY),
            dependencies: names(&view, "dependencies")?,
            network: NetworkAccess::read(&view)?,
            outputs: entries(&view, "outputs", |output| {
                if output.node().is_null() {
                    return Ok(Output::default());
                }
                output.only_keys(OUTPUT_KEYS)?;
                let secret = output.optional("secret")?.map(|v| v.bool()).transpose()?;
                Ok(Output {
                    description: text(&output, "description")?,
                    secret: secret.unwrap_or(false),
                })
            })?,
            variables: entries(&view, "variables", |variable| {
                variable.only_keys(VARIABLE_KEYS)?;
                let default = variable.optional("default")?;
                Ok(Variable {
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
            environments: environments(&view, "environments", |v| object(&v))?,
            estimate: estimate(&view)?,
        })
    }

    /// Defaults for one environment, with variables still in them.
    pub fn defaults(&self, environment: Environment) -> Map<String, Value> {
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
        Ok(Self {
            name: view.required("name")?.str()?.to_owned(),
            description: text(&view, "description")?,
            environments: environments(&view, "environments", |v| {
                v.only_keys(crate::manifest::TARGET_KEYS)?;
                object(&v)
            })?,
            stacks: entries(&view, "stacks", |stack| {
                if stack.node().is_null() {
                    return Ok(StackChoice {
                        enabled: true,
                        ..StackChoice::default()
                    });
                }
                stack.only_keys(CHOICE_KEYS)?;
                let enabled = stack.optional("enabled")?.map(|v| v.bool()).transpose()?;
                Ok(StackChoice {
                    enabled: enabled.unwrap_or(true),
                    config: environments(&stack, "config", |v| object(&v))?,
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

pub(crate) fn names(view: &View<'_>, key: &str) -> Result<BTreeSet<Name>> {
    let Some(list) = view.optional(key)? else {
        return Ok(BTreeSet::new());
    };
    list.items()?
        .map(|item| Ok(item.str()?.to_owned()))
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

pub(crate) fn environments<T>(
    view: &View<'_>,
    key: &str,
    read: impl Fn(View<'_>) -> Result<T>,
) -> Result<BTreeMap<Environment, T>> {
    let Some(map) = view.optional(key)? else {
        return Ok(BTreeMap::new());
    };
    map.entries()?
        .map(|(name, value)| {
            let environment = name
                .parse::<Environment>()
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
    let usual = Estimate::default();
    let minutes = value.optional("minutes")?.map(|v| v.u64()).transpose()?;
    let resources = value.optional("resources")?.map(|v| v.u64()).transpose()?;
    let minutes = minutes.unwrap_or(usual.minutes);
    Ok(Estimate {
        minutes,
        longest: minutes,
        resources: resources.unwrap_or(usual.resources),
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
        let template = StackTemplate::read(&document).unwrap();
        assert_eq!(template.priority, 20);
        assert_eq!(
            template.variables["VPC_CIDR_DEV"].default,
            Some(json!("10.0.0.0/16"))
        );
        let zones = |environment| template.defaults(environment)["zones"].clone();
        assert_eq!(
            (zones(Environment::Dev), zones(Environment::Prod)),
            (json!(2), json!(3))
        );
        assert_eq!(
            template.defaults(Environment::Prod)["flowLogs"],
            json!(true)
        );
    }

    #[test]
    fn wrong_keys_and_environments_are_refused_with_a_hint() {
        let read = |text: &str| {
            StackTemplate::read(&Document::parse("t.yaml", text).unwrap()).unwrap_err()
        };
        let typo = read("name: a\ndependancies: []\n");
        assert_eq!(typo.help(), Some("did you mean `dependencies`?"));
        let renamed = read("name: a\nenvironments: {staging: {}}\n");
        assert!(
            renamed.message().contains("staging is called stage"),
            "{renamed}"
        );
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
            template.stacks["network"].config[&Environment::Dev]["zones"],
            json!(1)
        );
    }
}
