//! `Deployment_Manifest.yaml`: what one deployment is, over all its environments.

use std::collections::{BTreeMap, BTreeSet};

use nimbus_core::{DeploymentId, Result};
use nimbus_document::{Document, View};
use serde_json::{Map, Value, json};

use crate::environment::Environment;
use crate::graph::{Graph, GraphError, Name, Unit};
use crate::network::NetworkAccess;
use crate::placeholder::Template;
use crate::template::{entries, environments, names, object};
use crate::yaml;

pub const FILE_NAME: &str = "Deployment_Manifest.yaml";
const API_VERSION: &str = "nimbus/v1";
const KIND: &str = "DeploymentManifest";

pub(crate) const KEYS: &[&str] = &["apiVersion", "kind", "metadata", "spec"];
pub(crate) const METADATA_KEYS: &[&str] = &[
    "deploymentId",
    "organization",
    "project",
    "template",
    "labels",
];
pub(crate) const SPEC_KEYS: &[&str] = &["environments", "stacks"];
pub(crate) const TARGET_KEYS: &[&str] = &["enabled", "account", "region", "checks"];
pub(crate) const CHECK_KEYS: &[&str] = &["command", "timeoutSeconds", "needed", "rehearse"];
/// How long a check may take when nobody says.
const CHECK_SECONDS: u64 = 300;
pub(crate) const STACK_KEYS: &[&str] =
    &["enabled", "priority", "dependencies", "network", "config"];

#[derive(Clone, Debug, PartialEq)]
pub struct Manifest {
    pub metadata: Metadata,
    pub environments: BTreeMap<Environment, Target>,
    pub stacks: BTreeMap<Name, StackEntry>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Metadata {
    pub id: DeploymentId,
    pub organization: String,
    pub project: String,
    pub template: String,
    /// Everything else that somebody wrote down: domain, team, cost centre, who and when.
    pub labels: BTreeMap<String, String>,
}

/// Where an environment lives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    pub enabled: bool,
    pub account: String,
    pub region: String,
    /// What must work after a deploy, by name.
    pub checks: BTreeMap<String, Check>,
}

/// A command that tells whether what was deployed works: exit code zero, in time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// For a shell, in the deployment's directory.
    pub command: String,
    pub seconds: u64,
    /// Whether the run fails with it; otherwise it is a warning.
    pub needed: bool,
    /// Whether it makes sense on a simulated cloud.
    pub rehearse: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct StackEntry {
    pub enabled: bool,
    pub priority: i64,
    /// A copy of the stack template's; a difference is an error.
    pub dependencies: BTreeSet<Name>,
    /// What its program may reach from a sandbox, if it is said here.
    pub network: Option<NetworkAccess>,
    pub config: BTreeMap<Environment, Map<String, Value>>,
}

impl Manifest {
    pub fn read(document: &Document) -> Result<Self> {
        let view = document.view();
        view.only_keys(KEYS)?;
        expect(&view, "apiVersion", API_VERSION)?;
        expect(&view, "kind", KIND)?;
        let spec = view.required("spec")?;
        spec.only_keys(SPEC_KEYS)?;
        spec.required("environments")?;
        spec.required("stacks")?;
        Ok(Self {
            metadata: Metadata::read(&view.required("metadata")?)?,
            environments: environments(&spec, "environments", |v| Target::read(&v))?,
            stacks: entries(&spec, "stacks", |v| StackEntry::read(&v))?,
        })
    }

    /// The file's text, with a line for editors that know the schema.
    pub fn write(&self) -> String {
        let header = [
            "yaml-language-server: $schema=../../tools/schemas/manifest.schema.json".to_owned(),
            "What this deployment is. Edit it, then run `nimbus validate`.".to_owned(),
        ];
        let environments: Map<_, _> = self
            .environments
            .iter()
            .map(|(environment, target)| (environment.to_string(), target.to_json()))
            .collect();
        let stacks: Map<_, _> = self
            .stacks
            .iter()
            .map(|(name, entry)| (name.clone(), entry.to_json()))
            .collect();
        let root = json!({
            "apiVersion": API_VERSION,
            "kind": KIND,
            "metadata": self.metadata.to_json(),
            "spec": { "environments": environments, "stacks": stacks },
        });
        let Value::Object(root) = root else {
            return String::new();
        };
        yaml::write(&header, &root)
    }

    /// Names of stacks that this deployment uses.
    pub fn enabled(&self) -> impl Iterator<Item = (&Name, &StackEntry)> {
        self.stacks.iter().filter(|(_, entry)| entry.enabled)
    }

    /// What needs what in one environment: declared dependencies, and those that placeholders
    /// imply. Malformed placeholders imply nothing; validation reports them. A placeholder with a
    /// default waits for its stack where there is one, and takes the default where there is none.
    pub fn graph(&self, environment: Environment) -> std::result::Result<Graph, GraphError> {
        let is_used = |stack: &str| self.stacks.get(stack).is_some_and(|entry| entry.enabled);
        Graph::new(self.enabled().map(|(name, entry)| {
            let config = entry.config.get(&environment);
            let implied = config.into_iter().flat_map(|map| referenced(map.values()));
            let mut needs = entry.dependencies.clone();
            needs.extend(
                implied
                    .filter(|(stack, may_be_missing)| {
                        stack != name && (!may_be_missing || is_used(stack))
                    })
                    .map(|(stack, _)| stack),
            );
            Unit {
                name: name.clone(),
                priority: entry.priority,
                needs,
            }
        }))
    }
}

/// Stacks that placeholders anywhere in these values refer to, and whether a default stands in for
/// each when it is not there.
pub fn referenced<'a>(values: impl IntoIterator<Item = &'a Value>) -> BTreeSet<(Name, bool)> {
    let mut found = BTreeSet::new();
    let mut open: Vec<&Value> = values.into_iter().collect();
    while let Some(value) = open.pop() {
        match value {
            Value::String(text) => {
                let template = Template::parse(text).ok();
                let placeholders = template.iter().flat_map(Template::placeholders);
                found.extend(placeholders.filter_map(|placeholder| {
                    let (stack, _) = placeholder.reference()?;
                    Some((stack.to_owned(), placeholder.default.is_some()))
                }));
            }
            Value::Array(items) => open.extend(items),
            Value::Object(map) => open.extend(map.values()),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    found
}

impl Metadata {
    fn read(view: &View<'_>) -> Result<Self> {
        view.only_keys(METADATA_KEYS)?;
        let text = |key: &str| view.required(key).and_then(|v| Ok(v.str()?.to_owned()));
        Ok(Self {
            id: view.required("deploymentId")?.parse()?,
            organization: text("organization")?,
            project: text("project")?,
            template: text("template")?,
            labels: entries(view, "labels", |v| Ok(v.scalar_text()?.to_owned()))?,
        })
    }

    fn to_json(&self) -> Value {
        json!({
            "deploymentId": self.id.as_str(),
            "organization": self.organization,
            "project": self.project,
            "template": self.template,
            "labels": self.labels,
        })
    }
}

impl Target {
    fn read(view: &View<'_>) -> Result<Self> {
        view.only_keys(TARGET_KEYS)?;
        let account = view
            .optional("account")?
            .map(|v| v.scalar_text())
            .transpose()?;
        Ok(Self {
            enabled: view.required("enabled")?.bool()?,
            account: account.unwrap_or_default().to_owned(),
            region: view.required("region")?.str()?.to_owned(),
            checks: entries(view, "checks", |v| Check::read(&v))?,
        })
    }

    fn to_json(&self) -> Value {
        let mut target = json!({
            "enabled": self.enabled,
            "account": self.account,
            "region": self.region,
        });
        if !self.checks.is_empty() {
            let checks: Map<_, _> = self
                .checks
                .iter()
                .map(|(name, check)| (name.clone(), check.to_json()))
                .collect();
            target["checks"] = Value::Object(checks);
        }
        target
    }
}

impl Check {
    fn read(view: &View<'_>) -> Result<Self> {
        view.only_keys(CHECK_KEYS)?;
        let flag = |key: &str| view.optional(key)?.map(|v| v.bool()).transpose();
        let seconds = view.optional("timeoutSeconds")?;
        let command = view.required("command")?;
        if command.str()?.trim().is_empty() {
            return Err(command.error("a check needs a command", "empty"));
        }
        Ok(Self {
            command: command.str()?.to_owned(),
            seconds: seconds
                .map(|v| v.u64())
                .transpose()?
                .unwrap_or(CHECK_SECONDS),
            needed: flag("needed")?.unwrap_or(true),
            rehearse: flag("rehearse")?.unwrap_or(false),
        })
    }

    fn to_json(&self) -> Value {
        json!({
            "command": self.command,
            "timeoutSeconds": self.seconds,
            "needed": self.needed,
            "rehearse": self.rehearse,
        })
    }
}

impl StackEntry {
    fn read(view: &View<'_>) -> Result<Self> {
        view.only_keys(STACK_KEYS)?;
        let priority = view.optional("priority")?.map(|v| v.i64()).transpose()?;
        Ok(Self {
            enabled: view.required("enabled")?.bool()?,
            priority: priority.unwrap_or(100),
            dependencies: names(view, "dependencies")?,
            network: NetworkAccess::read(view)?,
            config: environments(view, "config", |v| object(&v))?,
        })
    }

    fn to_json(&self) -> Value {
        let config: Map<_, _> = self
            .config
            .iter()
            .map(|(environment, map)| (environment.to_string(), Value::Object(map.clone())))
            .collect();
        let mut written = json!({
            "enabled": self.enabled,
            "priority": self.priority,
            "dependencies": self.dependencies,
            "config": config,
        });
        if let Some(network) = self.network {
            written["network"] = network.as_str().into();
        }
        written
    }
}

fn expect(view: &View<'_>, key: &str, value: &str) -> Result<()> {
    let found = view.required(key)?;
    if found.str()? == value {
        return Ok(());
    }
    Err(found.error(format!("{key} must be `{value}`"), "another kind of file"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest() -> Manifest {
        let config = |value: Value| match value {
            Value::Object(map) => BTreeMap::from([(Environment::Dev, map)]),
            _ => BTreeMap::new(),
        };
        let stack = |needs: &[&str], values| StackEntry {
            enabled: true,
            priority: 100,
            dependencies: needs.iter().map(|n| (*n).to_owned()).collect(),
            network: (!needs.is_empty()).then_some(NetworkAccess::Full),
            config: config(values),
        };
        Manifest {
            metadata: Metadata {
                id: "D1BRV40".parse().unwrap(),
                organization: "Company-A".to_owned(),
                project: "ecommerce".to_owned(),
                template: "minimal".to_owned(),
                labels: BTreeMap::from([("team".to_owned(), "infrastructure".to_owned())]),
            },
            environments: BTreeMap::from([(
                Environment::Dev,
                Target {
                    enabled: true,
                    account: "111111111111".to_owned(),
                    region: "us-east-1".to_owned(),
                    checks: BTreeMap::from([(
                        "smoke".to_owned(),
                        Check {
                            command: "curl -f https://example.com".to_owned(),
                            seconds: 60,
                            needed: true,
                            rehearse: false,
                        },
                    )]),
                },
            )]),
            stacks: BTreeMap::from([
                (
                    "network".to_owned(),
                    stack(&[], json!({"vpcCidr": "10.0.0.0/16"})),
                ),
                (
                    "compute".to_owned(),
                    stack(&[], json!({"a": [{"b": "x-{{RUNTIME:network:vpcId}}"}]})),
                ),
            ]),
        }
    }

    #[test]
    fn it_is_written_and_read_back() {
        let text = manifest().write();
        let document = Document::parse(FILE_NAME, &text).unwrap();
        assert_eq!(Manifest::read(&document).unwrap(), manifest(), "{text}");
    }

    #[test]
    fn placeholders_make_edges_in_the_graph() {
        let graph = manifest().graph(Environment::Dev).unwrap();
        assert_eq!(graph.needs("compute").collect::<Vec<_>>(), ["network"]);
        let other = manifest().graph(Environment::Prod).unwrap();
        assert_eq!(
            other.needs("compute").count(),
            0,
            "prod has no such placeholder"
        );
    }

    #[test]
    fn a_disabled_dependency_is_missing() {
        let mut manifest = manifest();
        manifest.stacks.get_mut("network").unwrap().enabled = false;
        assert!(matches!(
            manifest.graph(Environment::Dev),
            Err(GraphError::Missing { needs, .. }) if needs == "network"
        ));
    }

    #[test]
    fn a_placeholder_with_a_default_waits_for_its_stack_only_where_there_is_one() {
        let mut manifest = manifest();
        let value = json!("{{RUNTIME:network:vpcId|none}}");
        let compute = manifest.stacks.get_mut("compute").unwrap();
        compute.config = BTreeMap::from([(
            Environment::Dev,
            Map::from_iter([("vpcId".to_owned(), value)]),
        )]);
        let graph = manifest.graph(Environment::Dev).unwrap();
        assert_eq!(graph.needs("compute").collect::<Vec<_>>(), ["network"]);
        manifest.stacks.get_mut("network").unwrap().enabled = false;
        let graph = manifest.graph(Environment::Dev).unwrap();
        assert_eq!(graph.needs("compute").count(), 0);
        manifest.stacks.remove("network");
        assert!(manifest.graph(Environment::Dev).is_ok());
    }

    #[test]
    fn another_kind_of_file_is_refused() {
        let document = Document::parse(FILE_NAME, "apiVersion: v1\nkind: Pod\n").unwrap();
        let error = Manifest::read(&document).unwrap_err();
        assert!(error.message().contains("apiVersion must be"), "{error}");
    }
}
