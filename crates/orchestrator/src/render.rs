//! From templates and answers to a deployment's files: the manifest and one configuration file for
//! each stack and environment.
//!
//! A pure function: either everything is rendered and checked, or there is an error and nothing
//! has been written.

use std::collections::BTreeMap;

use nimbus_core::{DeploymentId, Error, ErrorCode, Result};
use nimbus_document::did_you_mean;
use serde_json::{Map, Value, json};

use crate::environment::Environment;
use crate::graph::Name;
use crate::manifest::{Manifest, Metadata, StackEntry, Target};
use crate::naming;
use crate::template::{ManifestTemplate, StackChoice, StackTemplate};
use crate::variables::{GLOBAL, Variables};
use crate::yaml;

/// Every template of a workspace.
#[derive(Clone, Debug, Default)]
pub struct Library {
    pub stacks: BTreeMap<Name, StackTemplate>,
    pub manifests: BTreeMap<String, ManifestTemplate>,
}

/// What a user answers when a deployment is initialised, however the answers came.
#[derive(Clone, Debug, Default)]
pub struct Answers {
    pub organization: String,
    pub project: String,
    pub domain: String,
    pub template: String,
    pub user_email: String,
    /// ISO 8601.
    pub timestamp: String,
    pub description: Option<String>,
    pub accounts: BTreeMap<Environment, String>,
    /// Any other variable, by name.
    pub variables: BTreeMap<String, String>,
    /// Use every stack of the template, also those that it leaves off.
    pub all_stacks: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Rendered {
    pub manifest: Manifest,
    /// File name under `config/` and its text.
    pub configs: BTreeMap<String, String>,
}

/// Renders and validates.
pub fn render(library: &Library, id: &DeploymentId, answers: &Answers) -> Result<Rendered> {
    let template = library.manifest(&answers.template)?;
    // A stack that is switched off may be gone from the registry.
    let wanted =
        |name: &str, choice: &StackChoice| choice.enabled || library.stacks.contains_key(name);
    let stacks = template
        .stacks
        .iter()
        .filter(|(name, choice)| wanted(name, choice))
        .map(|(name, choice)| Ok((name, choice, library.stack(name, &template.name)?)))
        .collect::<Result<Vec<_>>>()?;
    let variables = variables(id, answers, stacks.iter().map(|(_, _, stack)| *stack))?;
    let environments = template
        .environments
        .iter()
        .map(|(environment, target)| Ok((*environment, rendered_target(&variables, target)?)))
        .collect::<Result<BTreeMap<_, _>>>()?;

    let mut entries = BTreeMap::new();
    for (name, choice, stack) in stacks {
        let mut config = BTreeMap::new();
        for environment in environments.keys() {
            let mut values = stack.defaults(*environment);
            values.extend(choice.config.get(environment).cloned().unwrap_or_default());
            let values = variables.render_map(&values).map_err(|error| {
                Error::new(
                    ErrorCode::TEMPLATE_INVALID,
                    format!("stack {name}, {environment}: {error}"),
                )
                .with_help("give it with --set NAME=VALUE, or declare it under `variables`")
            })?;
            config.insert(*environment, values);
        }
        let entry = StackEntry {
            enabled: choice.enabled || answers.all_stacks,
            priority: stack.priority,
            dependencies: stack.dependencies.clone(),
            network: stack.network,
            config,
        };
        entries.insert(name.clone(), entry);
    }
    let manifest = Manifest {
        metadata: metadata(id, answers, &variables),
        environments,
        stacks: entries,
    };
    for environment in manifest.environments.keys() {
        manifest
            .graph(*environment)
            .map_err(|error| Error::new(ErrorCode::GRAPH_INVALID, format!("ERROR: {error}")))?;
    }
    let configs = configs(&manifest);
    Ok(Rendered { manifest, configs })
}

/// The configuration files of a manifest: stacks × environments.
pub fn configs(manifest: &Manifest) -> BTreeMap<String, String> {
    let mut files = BTreeMap::new();
    for (name, entry) in manifest.enabled() {
        for (environment, target) in &manifest.environments {
            let values = entry.config.get(environment).cloned().unwrap_or_default();
            let text = config_text(name, target, &values);
            files.insert(format!("{name}.{environment}.yaml"), text);
        }
    }
    files
}

/// A stack configuration as Pulumi reads it: keys in the stack's namespace, and the region that
/// its provider works in.
fn config_text(stack: &str, target: &Target, values: &Map<String, Value>) -> String {
    let mut config = Map::new();
    config.insert("aws:region".to_owned(), json!(target.region));
    for (key, value) in values {
        let key = if key.contains(':') {
            key.clone()
        } else {
            format!("{stack}:{key}")
        };
        config.insert(key, value.clone());
    }
    let header = ["Generated from the manifest. Placeholders are resolved at run time.".to_owned()];
    yaml::write(
        &header,
        &Map::from_iter([("config".to_owned(), Value::Object(config))]),
    )
}

impl Library {
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

    pub(crate) fn stack(&self, name: &str, template: &str) -> Result<&StackTemplate> {
        self.stacks.get(name).ok_or_else(|| {
            let message =
                format!("template `{template}` uses the stack `{name}`, which is not registered");
            Error::new(ErrorCode::TEMPLATE_INVALID, message)
                .with_help(format!("register it: nimbus register-stack {name}"))
        })
    }
}

fn variables<'a>(
    id: &DeploymentId,
    answers: &Answers,
    stacks: impl Iterator<Item = &'a StackTemplate>,
) -> Result<Variables> {
    let mut variables = Variables::default();
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
    for environment in Environment::ALL {
        let name = format!("AWS_ACCOUNT_{}", environment.as_str().to_ascii_uppercase());
        let account = answers
            .accounts
            .get(&environment)
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

fn rendered_target(variables: &Variables, target: &Map<String, Value>) -> Result<Target> {
    let invalid = |message: String| Error::new(ErrorCode::TEMPLATE_INVALID, message);
    let values = variables
        .render_map(target)
        .map_err(|error| invalid(error.to_string()))?;
    let text = |key: &str| {
        values
            .get(key)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let enabled = values
        .get("enabled")
        .is_none_or(|value| value == &json!(true));
    Ok(Target {
        enabled,
        account: text("account"),
        region: text("region"),
        checks: BTreeMap::new(),
    })
}

fn metadata(id: &DeploymentId, answers: &Answers, variables: &Variables) -> Metadata {
    let label = |key: &str, name: &str| {
        let value = variables
            .get(name)
            .and_then(Value::as_str)
            .unwrap_or_default();
        (key.to_owned(), value.to_owned())
    };
    Metadata {
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

#[cfg(test)]
mod tests {
    use nimbus_document::Document;

    use super::*;

    fn library() -> Library {
        let stack = |name: &str, text: &str| {
            let document = Document::parse(name, &format!("name: {name}\n{text}")).unwrap();
            (name.to_owned(), StackTemplate::read(&document).unwrap())
        };
        let template = "name: small\nenvironments:\n\
            \x20 dev: {enabled: true, account: '{{AWS_ACCOUNT_DEV}}', region: '{{PRIMARY_REGION}}'}\n\
            \x20 prod: {enabled: false, account: '{{AWS_ACCOUNT_PROD}}', region: '{{PRIMARY_REGION}}'}\n\
            stacks: {network: , security: , extra: {enabled: false}}\n";
        let manifest =
            ManifestTemplate::read(&Document::parse("small", template).unwrap()).unwrap();
        Library {
            stacks: BTreeMap::from([
                stack(
                    "network",
                    "variables: {VPC_CIDR_DEV: {default: 10.0.0.0/16}, AZ_COUNT_DEV: {default: 2}}\n\
                     environments: {dev: {vpcCidr: '{{VPC_CIDR_DEV}}', zones: '{{AZ_COUNT_DEV}}'}}\n",
                ),
                stack(
                    "security",
                    "dependencies: [network]\nconfig: {vpcId: '{{RUNTIME:network:vpcId}}'}\n",
                ),
                stack("extra", "dependencies: [security]\n"),
            ]),
            manifests: BTreeMap::from([("small".to_owned(), manifest)]),
        }
    }

    fn answers() -> Answers {
        Answers {
            organization: "Company-A".to_owned(),
            project: "ecommerce".to_owned(),
            template: "small".to_owned(),
            accounts: BTreeMap::from([(Environment::Dev, "111111111111".to_owned())]),
            ..Answers::default()
        }
    }

    fn id() -> DeploymentId {
        "D1BRV40".parse().unwrap()
    }

    #[test]
    fn there_is_one_file_for_each_enabled_stack_and_environment() {
        let rendered = render(&library(), &id(), &answers()).unwrap();
        assert_eq!(
            rendered.configs.keys().collect::<Vec<_>>(),
            [
                "network.dev.yaml",
                "network.prod.yaml",
                "security.dev.yaml",
                "security.prod.yaml"
            ]
        );
        assert_eq!(
            rendered.configs["network.dev.yaml"],
            "# Generated from the manifest. Placeholders are resolved at run time.\n\
             config:\n  \"aws:region\": us-east-1\n  \"network:vpcCidr\": \"10.0.0.0/16\"\n  \"network:zones\": 2\n"
        );
        assert!(rendered.configs["security.dev.yaml"].contains("{{RUNTIME:network:vpcId}}"));
        let security = &rendered.manifest.stacks["security"];
        assert!(
            security.dependencies.contains("network"),
            "dependencies come from the template"
        );
    }

    #[test]
    fn answers_override_defaults_and_keep_types() {
        let mut answers = answers();
        answers
            .variables
            .insert("VPC_CIDR_DEV".to_owned(), "10.50.0.0/16".to_owned());
        answers
            .variables
            .insert("AZ_COUNT_DEV".to_owned(), "3".to_owned());
        let rendered = render(&library(), &id(), &answers).unwrap();
        let dev = &rendered.manifest.stacks["network"].config[&Environment::Dev];
        assert_eq!(dev["vpcCidr"], json!("10.50.0.0/16"));
        assert_eq!(dev["zones"], json!(3));
        assert!(rendered.configs["network.dev.yaml"].contains("10.50.0.0/16"));
    }

    #[test]
    fn all_stacks_may_be_asked_for() {
        let answers = Answers {
            all_stacks: true,
            ..answers()
        };
        assert_eq!(
            render(&library(), &id(), &answers).unwrap().configs.len(),
            6
        );
    }

    #[test]
    fn no_variable_is_left_after_rendering() {
        let rendered = render(&library(), &id(), &answers()).unwrap();
        let texts = rendered
            .configs
            .values()
            .cloned()
            .chain([rendered.manifest.write()]);
        for text in texts {
            assert!(crate::variables::variables_in(&text).is_empty(), "{text}");
        }
    }

    #[test]
    fn unknown_templates_and_variables_are_refused_with_a_hint() {
        let error = render(
            &library(),
            &id(),
            &Answers {
                template: "smal".into(),
                ..answers()
            },
        );
        assert_eq!(error.unwrap_err().help(), Some("did you mean `small`?"));
        let mut answers = answers();
        answers
            .variables
            .insert("VPC_CIDR_DEF".to_owned(), "x".to_owned());
        let error = render(&library(), &id(), &answers).unwrap_err();
        assert_eq!(error.help(), Some("did you mean `VPC_CIDR_DEV`?"));
    }

    #[test]
    fn a_template_with_a_broken_chain_renders_nothing() {
        let mut library = library();
        library
            .manifests
            .get_mut("small")
            .unwrap()
            .stacks
            .remove("network");
        let error = render(&library, &id(), &answers()).unwrap_err();
        assert!(
            error
                .message()
                .contains("Stack 'security' depends on 'network'"),
            "{error}"
        );
    }
}
