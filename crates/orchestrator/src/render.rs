//! From templates and answers to a deployment's files: the manifest and one configuration file for
//! each stack and environment.
//!
//! A pure function: either everything is rendered and checked, or there is an error and nothing
//! has been written.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use indexmap::IndexMap;
use nimbus_core::{ComponentName, DeploymentId, EnvironmentName, Error, ErrorCode, Result};
use nimbus_document::{Document, did_you_mean};
use serde_json::{Map, Value, json};

use crate::config_files::configs;
use crate::manifest::{ComponentEntry, EnvironmentTarget, Manifest, ManifestMetadata};
use crate::naming;
use crate::shared_values::SharedValues;
use crate::template::{ComponentChoice, ComponentTemplate, ManifestTemplate};
use crate::variables::{GLOBAL, TemplateVariables, variables_in};
use crate::yaml;

/// Every template of a workspace.
#[derive(Clone, Debug, Default)]
pub struct TemplateLibrary {
    pub stacks: BTreeMap<ComponentName, ComponentTemplate>,
    pub manifests: BTreeMap<String, ManifestTemplate>,
}

/// What a user answers when a deployment is initialised, however the answers came.
#[derive(Clone, Debug, Default)]
pub struct InitAnswers {
    pub organization: String,
    pub project: String,
    pub domain: String,
    pub template: String,
    pub user_email: String,
    /// ISO 8601.
    pub timestamp: String,
    pub description: Option<String>,
    pub accounts: BTreeMap<EnvironmentName, String>,
    /// Any other variable, by name.
    pub variables: BTreeMap<String, String>,
    /// Use every stack of the template, also those that it leaves off.
    pub all_stacks: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct RenderedDeployment {
    pub manifest: Manifest,
    /// File name under `config/` and its text.
    pub configs: BTreeMap<String, String>,
}

/// Renders and validates.
pub fn render(
    library: &TemplateLibrary,
    id: &DeploymentId,
    answers: &InitAnswers,
) -> Result<RenderedDeployment> {
    let template = library.manifest(&answers.template)?;
    refuse_other_accounts(template, answers)?;
    // A stack that is switched off may be gone from the registry.
    let wanted =
        |name: &str, choice: &ComponentChoice| choice.enabled || library.stacks.contains_key(name);
    let stacks = template
        .stacks
        .iter()
        .filter(|(name, choice)| wanted(name, choice))
        .map(|(name, choice)| Ok((name, choice, library.stack(name, &template.name)?)))
        .collect::<Result<Vec<_>>>()?;
    let variables = variables(
        id,
        answers,
        template,
        stacks.iter().map(|(_, _, stack)| *stack),
    )?;
    let environments = template
        .environments
        .iter()
        .map(|(environment, target)| {
            Ok((
                *environment,
                rendered_target(&variables, *environment, target)?,
            ))
        })
        .collect::<Result<IndexMap<_, _>>>()?;

    let mut shared = SharedValues {
        all: rendered_values(&variables, "defaults", &template.defaults)?,
        ..SharedValues::default()
    };
    for (environment, target) in &template.environments {
        if let Some(Value::Object(defaults)) = target.get("defaults") {
            let place = format!("environment {environment}");
            let values = rendered_values(&variables, &place, defaults)?;
            shared.environments.insert(*environment, values);
        }
    }
    let mut entries = BTreeMap::new();
    for (name, choice, stack) in stacks {
        let mut config = BTreeMap::new();
        for environment in environments.keys() {
            let mut values = stack.defaults(*environment);
            values.extend(choice.config.get(environment).cloned().unwrap_or_default());
            if answers.domain.is_empty() && (choice.enabled || answers.all_stacks) {
                refuse_without_domain(name, *environment, &values)?;
            }
            let place = format!("stack {name}, {environment}");
            config.insert(*environment, rendered_values(&variables, &place, &values)?);
        }
        let mut common = rendered_values(&variables, &format!("stack {name}"), &stack.config)?;
        common.retain(|key, value| shared.all.get(key) != Some(value));
        if !common.is_empty() {
            shared.stacks.insert(name.clone(), common);
        }
        if !accepts(stack, &shared) {
            shared.apart.insert(name.clone());
        }
        let entry = ComponentEntry {
            enabled: choice.enabled || answers.all_stacks,
            priority: stack.priority,
            dependencies: stack.dependencies.clone(),
            network: stack.network,
            pulumi: None,
            config,
        };
        entries.insert(name.clone(), entry);
    }
    let mut manifest = Manifest {
        metadata: metadata(id, answers, &variables),
        environments,
        stacks: entries,
        shared,
    };
    manifest.inherit();
    for environment in manifest.environments.keys() {
        manifest
            .graph(*environment)
            .map_err(|error| Error::new(ErrorCode::GRAPH_INVALID, format!("ERROR: {error}")))?;
    }
    let configs = configs(&manifest);
    Ok(RenderedDeployment { manifest, configs })
}

/// A name below the domain is none without it, and the cloud would say so in the middle of a run.
fn refuse_without_domain(
    stack: &str,
    environment: EnvironmentName,
    values: &Map<String, Value>,
) -> Result<()> {
    fn below_domain(value: &Value) -> bool {
        match value {
            Value::String(text) => text.contains(".{{DOMAIN}}"),
            Value::Array(items) => items.iter().any(below_domain),
            Value::Object(map) => map.values().any(below_domain),
            Value::Null | Value::Bool(_) | Value::Number(_) => false,
        }
    }
    let Some((key, _)) = values.iter().find(|(_, value)| below_domain(value)) else {
        return Ok(());
    };
    let message = format!(
        "stack {stack}, {environment}: `{key}` is a name below the domain, and there is no domain"
    );
    Err(Error::new(ErrorCode::TEMPLATE_INVALID, message)
        .with_help("give one: --domain shop.example.com, or `domain` over the API"))
}

/// An account for an environment that the template does not have would be forgotten.
fn refuse_other_accounts(template: &ManifestTemplate, answers: &InitAnswers) -> Result<()> {
    let mut given = answers.accounts.keys();
    let Some(other) = given.find(|name| !template.environments.contains_key(*name)) else {
        return Ok(());
    };
    let message = format!("template {} has no environment {other}", template.name);
    let known: Vec<&str> = template
        .environments
        .keys()
        .map(|name| name.as_str())
        .collect();
    Err(
        Error::new(ErrorCode::TEMPLATE_INVALID, message).with_help(format!(
            "leave its account out, or use another template; it has: {}",
            known.join(", ")
        )),
    )
}

impl TemplateLibrary {
    /// The variables that a manifest template and the templates of its stacks have in their values: what is worth asking for.
    ///
    /// # Errors
    ///
    /// When there is no such template.
    pub fn variables_of(&self, name: &str) -> Result<BTreeSet<String>> {
        let template = self.manifest(name)?;
        let mut found = BTreeSet::new();
        let targets = template.environments.values();
        for values in targets.chain([&template.defaults]) {
            values.values().for_each(|value| note(value, &mut found));
        }
        for (name, choice) in &template.stacks {
            let own = self.stacks.get(name).into_iter();
            let own = own.flat_map(|stack| stack.environments.values().chain([&stack.config]));
            for values in own.chain(choice.config.values()) {
                values.values().for_each(|value| note(value, &mut found));
            }
        }
        Ok(found)
    }

    fn manifest(&self, name: &str) -> Result<&ManifestTemplate> {
        self.manifests.get(name).ok_or_else(|| {
            let known = self.manifests.keys().map(String::as_str);
            let error = Error::new(
                ErrorCode::TEMPLATE_UNKNOWN,
                format!("there is no template `{name}`"),
            );
            let all = known.clone().collect::<Vec<_>>().join(", ");
            error
                .with_help(did_you_mean(name, known).unwrap_or_else(|| format!("there are: {all}")))
        })
    }

    /// A stack that a template uses.
    pub fn stack(&self, name: &str, template: &str) -> Result<&ComponentTemplate> {
        self.stacks.get(name).ok_or_else(|| {
            let message =
                format!("template `{template}` uses the stack `{name}`, which is not registered");
            Error::new(ErrorCode::TEMPLATE_INVALID, message)
                .with_help(format!("register it: nimbus register-stack {name}"))
        })
    }
}

/// Notes the variables in a value.
fn note(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::String(text) => {
            let names = variables_in(text).into_iter();
            found.extend(names.map(|(_, name)| name.to_owned()));
        }
        Value::Array(items) => items.iter().for_each(|item| note(item, found)),
        Value::Object(map) => map.values().for_each(|value| note(value, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn variables<'a>(
    id: &DeploymentId,
    answers: &InitAnswers,
    template: &ManifestTemplate,
    stacks: impl Iterator<Item = &'a ComponentTemplate>,
) -> Result<TemplateVariables> {
    let mut variables = TemplateVariables::default();
    for (name, default) in GLOBAL {
        if let Some(default) = default {
            variables.set_default(name, json!(default));
        }
    }
    for stack in stacks {
        for (name, variable) in &stack.variables {
            if let Some(default) = &variable.default {
                variables.set_default(name, default.clone());
            }
        }
    }
    let description = answers.description.clone().unwrap_or_else(|| {
        format!(
            "{} for {}, from template {}",
            answers.project, answers.organization, answers.template
        )
    });
    let pulumi_org = naming::sanitize(&answers.organization).to_ascii_lowercase();
    for (name, value) in [
        ("DEPLOYMENT_ID", id.as_str()),
        ("TIMESTAMP", &answers.timestamp),
        ("USER_EMAIL", &answers.user_email),
        ("ORGANIZATION", &answers.organization),
        ("PROJECT_NAME", &answers.project),
        ("DOMAIN", &answers.domain),
        ("PULUMI_ORG", &pulumi_org),
        ("DESCRIPTION", &description),
    ] {
        variables.set(name, json!(value));
    }
    for environment in template.environments.keys() {
        let name = account_variable(*environment);
        let account = answers
            .accounts
            .get(environment)
            .cloned()
            .unwrap_or_default();
        variables.set(&name, json!(account));
    }
    for (name, value) in &answers.variables {
        if variables.get(name).is_none() {
            let known = variables.names();
            let error = Error::new(
                ErrorCode::TEMPLATE_INVALID,
                format!("no template has a variable {name}"),
            );
            return Err(match did_you_mean(name, known) {
                Some(help) => error.with_help(help),
                None => error.with_help("`nimbus show-template` lists a template's variables"),
            });
        }
        variables.set_text(name, value);
    }
    Ok(variables)
}

/// The template variable that holds the account of an environment: `AWS_ACCOUNT_DEV`.
pub fn account_variable(environment: EnvironmentName) -> String {
    let name = environment.as_str().to_ascii_uppercase().replace('-', "_");
    format!("AWS_ACCOUNT_{name}")
}

/// Whether a stack's rules let it have everything that all stacks have.
fn accepts(stack: &ComponentTemplate, shared: &SharedValues) -> bool {
    let Some(rules) = &stack.parameters else {
        return true;
    };
    if rules.get("additionalProperties") != Some(&Value::Bool(false)) {
        return true;
    }
    let known = |key: &String| {
        let properties = rules.get("properties");
        properties.is_some_and(|properties| properties.get(key).is_some())
    };
    let in_environments = shared.environments.values().flat_map(Map::keys);
    shared.all.keys().chain(in_environments).all(known)
}

/// Values of a template with their variables replaced.
fn rendered_values(
    variables: &TemplateVariables,
    place: &str,
    values: &Map<String, Value>,
) -> Result<Map<String, Value>> {
    variables.render_map(values).map_err(|error| {
        Error::new(ErrorCode::TEMPLATE_INVALID, format!("{place}: {error}"))
            .with_help("give it with --set NAME=VALUE, or declare it under `variables`")
    })
}

/// A target of a template, with its variables replaced, is read like one of a manifest.
fn rendered_target(
    variables: &TemplateVariables,
    environment: EnvironmentName,
    target: &Map<String, Value>,
) -> Result<EnvironmentTarget> {
    let invalid = |message: String| Error::new(ErrorCode::TEMPLATE_INVALID, message);
    let mut values = variables
        .render_map(target)
        .map_err(|error| invalid(format!("environment {environment}: {error}")))?;
    values.entry("enabled").or_insert(json!(true));
    let text = yaml::write(&[], &values);
    let document = Document::parse(&format!("environment {environment}"), &text)?;
    EnvironmentTarget::read(&document.view()).map_err(|error| {
        let message = format!("environment {environment}: {}", error.message());
        match error.help() {
            Some(help) => invalid(message).with_help(help),
            None => invalid(message),
        }
    })
}

fn metadata(
    id: &DeploymentId,
    answers: &InitAnswers,
    variables: &TemplateVariables,
) -> ManifestMetadata {
    let label = |key: &str, name: &str| {
        let value = variables
            .get(name)
            .and_then(Value::as_str)
            .unwrap_or_default();
        (key.to_owned(), value.to_owned())
    };
    ManifestMetadata {
        id: id.clone(),
        organization: answers.organization.clone(),
        project: answers.project.clone(),
        template: answers.template.clone(),
        labels: BTreeMap::from([
            label("costCenter", "COST_CENTER"),
            label("createdAt", "TIMESTAMP"),
            label("createdBy", "USER_EMAIL"),
            label("description", "DESCRIPTION"),
            label("domain", "DOMAIN"),
            label("pulumiOrganization", "PULUMI_ORG"),
            label("secondaryRegion", "SECONDARY_REGION"),
            label("team", "TEAM"),
        ]),
    }
}
