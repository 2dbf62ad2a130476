//! `Deployment_Manifest.yaml`: what one deployment is, over all its environments.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use indexmap::IndexMap;
use nimbus_core::{ComponentName, DeploymentId, EnvironmentName, Error, ErrorCode, Result};
use nimbus_document::{Document, View};
use serde_json::{Map, Value, json};

use crate::gate::GateDefinition;
use crate::graph::{GraphError, GraphUnit, UnitGraph};
use crate::identity::PulumiIdentity;
use crate::network::NetworkAccess;
use crate::placeholder::TemplateText;
use crate::promotion::{promotion_order, refuse_stray_config};
use crate::shared_values::{OwnConfig, SharedValues};
use crate::template::{by_environment, components, entries, names, object};
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
pub(crate) const SPEC_KEYS: &[&str] = &["defaults", "environments", "promotion", "stacks"];
pub(crate) const TARGET_KEYS: &[&str] = &[
    "enabled", "account", "region", "confirm", "gate", "checks", "defaults",
];
pub(crate) const GATE_KEYS: &[&str] = &["items", "monitoringHours"];
pub(crate) const CHECK_KEYS: &[&str] = &["command", "timeoutSeconds", "needed", "rehearse"];
/// How long a check may take when nobody says.
const CHECK_SECONDS: u64 = 300;
pub(crate) const STACK_KEYS: &[&str] = &[
    "enabled",
    "priority",
    "dependencies",
    "network",
    "pulumi",
    "inherit",
    "defaults",
    "config",
];

/// Where an environment stands among the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PromotionPlace {
    First,
    Middle,
    Last,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Manifest {
    pub metadata: ManifestMetadata,
    /// In the order of promotion.
    pub environments: IndexMap<EnvironmentName, EnvironmentTarget>,
    pub stacks: BTreeMap<ComponentName, ComponentEntry>,
    /// What is written once. Each stack's configuration has it too.
    pub shared: SharedValues,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManifestMetadata {
    pub id: DeploymentId,
    pub organization: String,
    pub project: String,
    pub template: String,
    /// Everything else that somebody wrote down: domain, team, cost centre, who and when.
    pub labels: BTreeMap<String, String>,
}

/// Where an environment lives.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EnvironmentTarget {
    pub enabled: bool,
    /// An AWS account, where one is declared; a deployment may live in another cloud or in none.
    pub account: Option<String>,
    /// An AWS region; empty where none is declared.
    pub region: String,
    /// Whether a deploy needs `--confirm`, if it is said here.
    pub confirm: Option<bool>,
    /// What the next environment waits for, if it is said here.
    pub gate: Option<GateDefinition>,
    /// What must work after a deploy, by name.
    pub checks: BTreeMap<String, CheckCommand>,
}

/// A command that tells whether what was deployed works: exit code zero, in time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckCommand {
    /// For a shell, in the deployment's directory.
    pub command: String,
    pub seconds: u64,
    /// Whether the run fails with it; otherwise it is a warning.
    pub needed: bool,
    /// Whether it makes sense on a simulated cloud.
    pub rehearse: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ComponentEntry {
    pub enabled: bool,
    pub priority: i64,
    /// A copy of the stack template's; a difference is an error.
    pub dependencies: BTreeSet<ComponentName>,
    /// What its program may reach from a sandbox, if it is said here.
    pub network: Option<NetworkAccess>,
    /// Names that it had before this deployment and keeps.
    pub pulumi: Option<PulumiIdentity>,
    pub config: BTreeMap<EnvironmentName, Map<String, Value>>,
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
        let environments = promotion_order(&spec, |v| EnvironmentTarget::read(&v))?;
        refuse_stray_config(&spec, &environments)?;
        let mut manifest = Self {
            metadata: ManifestMetadata::read(&view.required("metadata")?)?,
            environments,
            stacks: components(&spec, "stacks", |v| ComponentEntry::read(&v))?,
            shared: SharedValues::read(&spec)?,
        };
        manifest.inherit();
        manifest.refuse_shared_stacks(&spec.required("stacks")?)?;
        Ok(manifest)
    }

    /// The file's text, with a line for editors that know the schema.
    pub fn write(&self) -> String {
        let header = [
            "yaml-language-server: $schema=../../tools/schemas/manifest.schema.json".to_owned(),
            "What this deployment is. Edit it, then run `nimbus validate`.".to_owned(),
        ];
        let (shared, mut own) = self.layered();
        let target = |(environment, target): (&EnvironmentName, &EnvironmentTarget)| {
            let mut written = target.to_json();
            if let Some(defaults) = shared.environments.get(environment) {
                written["defaults"] = Value::Object(defaults.clone());
            }
            (environment.to_string(), written)
        };
        let environments: Map<_, _> = self.environments.iter().map(target).collect();
        let stacks: Map<_, _> = self
            .stacks
            .iter()
            .map(|(name, entry)| {
                let mut written = entry.to_json(&own.remove(name).unwrap_or_default());
                if let Some(defaults) = shared.stacks.get(name) {
                    written["defaults"] = Value::Object(defaults.clone());
                }
                if shared.apart.contains(name) {
                    written["inherit"] = false.into();
                }
                (name.to_string(), written)
            })
            .collect();
        let mut root = json!({
            "apiVersion": API_VERSION,
            "kind": KIND,
            "metadata": self.metadata.to_json(),
            "spec": {
                "environments": environments,
                "promotion": self.environments.keys().collect::<Vec<_>>(),
                "stacks": stacks,
            },
        });
        if !shared.all.is_empty() {
            root["spec"]["defaults"] = Value::Object(shared.all);
        }
        let Value::Object(root) = root else {
            return String::new();
        };
        yaml::write(&header, &root)
    }

    /// The environment that must be deployed and tested before this one.
    pub fn promoted_from(&self, environment: EnvironmentName) -> Option<EnvironmentName> {
        let at = self.environments.get_index_of(&environment)?;
        let (before, _) = self.environments.get_index(at.checked_sub(1)?)?;
        Some(*before)
    }

    /// What the gate of an environment asks for: what the manifest says, or what is usual for its
    /// place in the order of promotion.
    pub fn gate(&self, environment: EnvironmentName) -> GateDefinition {
        let declared = self.environments.get(&environment);
        if let Some(gate) = declared.and_then(|target| target.gate.clone()) {
            return gate;
        }
        match self.promotion_place(environment) {
            PromotionPlace::First => GateDefinition::of_first(),
            PromotionPlace::Middle => GateDefinition::of_middle(),
            PromotionPlace::Last => GateDefinition::of_last(),
        }
    }

    /// Where an environment stands in the manifest's order of promotion. A name can only make it
    /// stricter: production is production when it is the only environment, or written first.
    fn promotion_place(&self, environment: EnvironmentName) -> PromotionPlace {
        if environment == EnvironmentName::PROD {
            return PromotionPlace::Last;
        }
        match self.environments.get_index_of(&environment) {
            None | Some(0) => PromotionPlace::First,
            Some(at) if at + 1 == self.environments.len() => PromotionPlace::Last,
            Some(_) => PromotionPlace::Middle,
        }
    }

    /// An environment that this deployment does not have, with those that it has.
    pub fn unknown_environment(&self, environment: EnvironmentName) -> Error {
        let id = &self.metadata.id;
        let message = format!("deployment {id} has no environment {environment}");
        let known = self.environments.keys().map(EnvironmentName::as_str);
        let help = if environment == "staging" {
            "staging is called stage since 3.1; `nimbus migrate-environment-names` renames it"
                .to_owned()
        } else {
            format!("there are: {}", known.collect::<Vec<_>>().join(", "))
        };
        Error::new(ErrorCode::ENVIRONMENT_UNKNOWN, message).with_help(help)
    }

    /// Whether somebody has to say twice that this environment is meant: where the manifest says so,
    /// and else the last of several.
    pub fn needs_confirmation(&self, environment: EnvironmentName) -> bool {
        let declared = self.environments.get(&environment);
        if let Some(confirm) = declared.and_then(|target| target.confirm) {
            return confirm;
        }
        self.promotion_place(environment) == PromotionPlace::Last
    }

    /// Names of stacks that this deployment uses.
    pub fn enabled(&self) -> impl Iterator<Item = (&ComponentName, &ComponentEntry)> {
        self.stacks.iter().filter(|(_, entry)| entry.enabled)
    }

    /// What needs what in one environment: declared dependencies, and those that placeholders
    /// imply. Malformed placeholders imply nothing; validation reports them. A placeholder with a
    /// default waits for its stack where there is one, and takes the default where there is none.
    pub fn graph(
        &self,
        environment: EnvironmentName,
    ) -> std::result::Result<UnitGraph, GraphError> {
        let is_used =
            |name: &ComponentName| self.stacks.get(name).is_some_and(|entry| entry.enabled);
        UnitGraph::new(self.enabled().map(|(name, entry)| {
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
            GraphUnit {
                name: name.clone(),
                priority: entry.priority,
                needs,
            }
        }))
    }
}

/// Components that placeholders anywhere in these values refer to, and whether a default stands in
/// for each when it is not there.
pub fn referenced<'a>(
    values: impl IntoIterator<Item = &'a Value>,
) -> BTreeSet<(ComponentName, bool)> {
    let mut found = BTreeSet::new();
    let mut open: Vec<&Value> = values.into_iter().collect();
    while let Some(value) = open.pop() {
        match value {
            Value::String(text) => {
                let template = TemplateText::parse(text).ok();
                let placeholders = template.iter().flat_map(TemplateText::placeholders);
                found.extend(placeholders.filter_map(|placeholder| {
                    let (name, _) = placeholder.reference()?;
                    Some((name.clone(), placeholder.default.is_some()))
                }));
            }
            Value::Array(items) => open.extend(items),
            Value::Object(map) => open.extend(map.values()),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    found
}

impl ManifestMetadata {
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

impl EnvironmentTarget {
    pub(crate) fn read(view: &View<'_>) -> Result<Self> {
        view.only_keys(TARGET_KEYS)?;
        let account = view
            .optional("account")?
            .map(|v| v.scalar_text())
            .transpose()?;
        let region = view.optional("region")?.map(|v| v.str()).transpose()?;
        Ok(Self {
            enabled: view.required("enabled")?.bool()?,
            account: account.map(str::to_owned),
            region: region.unwrap_or_default().to_owned(),
            confirm: view.optional("confirm")?.map(|v| v.bool()).transpose()?,
            gate: view
                .optional("gate")?
                .map(|v| GateDefinition::read(&v))
                .transpose()?,
            checks: entries(view, "checks", |v| CheckCommand::read(&v))?,
        })
    }

    /// As it stands in a file.
    pub fn to_json(&self) -> Value {
        let mut target = json!({ "enabled": self.enabled });
        if let Some(account) = &self.account {
            target["account"] = account.as_str().into();
        }
        if !self.region.is_empty() {
            target["region"] = self.region.as_str().into();
        }
        if let Some(confirm) = self.confirm {
            target["confirm"] = confirm.into();
        }
        if let Some(gate) = &self.gate {
            target["gate"] = gate.to_json();
        }
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

impl CheckCommand {
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

impl ComponentEntry {
    fn read(view: &View<'_>) -> Result<Self> {
        view.only_keys(STACK_KEYS)?;
        let priority = view.optional("priority")?.map(|v| v.i64()).transpose()?;
        Ok(Self {
            enabled: view.required("enabled")?.bool()?,
            priority: priority.unwrap_or(100),
            dependencies: names(view, "dependencies")?,
            network: NetworkAccess::read(view)?,
            pulumi: view
                .optional("pulumi")?
                .map(|v| PulumiIdentity::read(&v))
                .transpose()?,
            config: by_environment(view, "config", |v| object(&v))?,
        })
    }

    fn to_json(&self, config: &OwnConfig) -> Value {
        let config: Map<_, _> = config
            .iter()
            .map(|(environment, map)| (environment.to_string(), Value::Object(map.clone())))
            .collect();
        let mut written = json!({
            "enabled": self.enabled,
            "priority": self.priority,
            "dependencies": self.dependencies,
        });
        if !config.is_empty() {
            written["config"] = Value::Object(config);
        }
        if let Some(network) = self.network {
            written["network"] = network.as_str().into();
        }
        if let Some(identity) = &self.pulumi {
            written["pulumi"] = identity.to_json();
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
