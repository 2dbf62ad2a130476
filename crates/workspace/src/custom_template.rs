//! Manifest templates of an organisation: made from a deployment, and changed later.
//!
//! A template says only what differs from the stack templates. Whatever rendering gives anyway for
//! the deployment's own answers is left out, so that ids, names and accounts of one deployment never
//! reach another.

use std::collections::BTreeMap;
use std::path::PathBuf;

use nimbus_core::{EnvironmentName, Error, ErrorCode, Result};
use nimbus_document::{Document, did_you_mean};
use nimbus_orchestrator::{
    ComponentChoice, EnvironmentTarget, InitAnswers, Manifest, ManifestTemplate, TemplateLibrary,
    account_variable, edit, render, yaml,
};
use serde_json::{Map, Value, json};

use crate::files;
use crate::workspace::Workspace;

/// What changes in a template.
#[derive(Clone, Debug, Default)]
pub struct TemplateChange {
    pub description: Option<String>,
    pub enable: Vec<String>,
    pub disable: Vec<String>,
}

/// Answers that would make this manifest again, as far as it remembers them.
fn answers_of(manifest: &Manifest, template: &str) -> InitAnswers {
    let metadata = &manifest.metadata;
    let label = |key: &str| metadata.labels.get(key).cloned();
    let accounts = manifest.environments.iter();
    let mut variables = BTreeMap::new();
    for (name, value) in [
        ("TEAM", label("team")),
        ("COST_CENTER", label("costCenter")),
        ("SECONDARY_REGION", label("secondaryRegion")),
        ("PRIMARY_REGION", primary_region(manifest)),
    ] {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            variables.insert(name.to_owned(), value);
        }
    }
    InitAnswers {
        organization: metadata.organization.clone(),
        project: metadata.project.clone(),
        domain: label("domain").unwrap_or_default(),
        template: template.to_owned(),
        user_email: label("createdBy").unwrap_or_default(),
        timestamp: label("createdAt").unwrap_or_default(),
        description: label("description"),
        accounts: accounts
            .filter_map(|(e, target)| Some((*e, target.account.clone()?)))
            .collect(),
        variables,
        all_stacks: false,
    }
}

fn primary_region(manifest: &Manifest) -> Option<String> {
    manifest
        .environments
        .values()
        .next()
        .map(|target| target.region.clone())
        .filter(|region| !region.is_empty())
}

/// The environments of a deployment, in its order, with variables where its own values were. Gates,
/// checks and whether somebody has to confirm were chosen, so they are kept.
fn environments(
    manifest: &Manifest,
) -> impl Iterator<Item = (EnvironmentName, Map<String, Value>)> {
    let primary = primary_region(manifest);
    let secondary = manifest.metadata.labels.get("secondaryRegion");
    let template = move |environment: EnvironmentName, target: &EnvironmentTarget| {
        let region = if Some(&target.region) == primary.as_ref() {
            "{{PRIMARY_REGION}}"
        } else if Some(&target.region) == secondary {
            "{{SECONDARY_REGION}}"
        } else {
            &target.region
        };
        let mut values = match target.to_json() {
            Value::Object(values) => values,
            _ => Map::new(),
        };
        // What lives in no AWS account makes templates that ask for none.
        if target.account.is_some() {
            let account = format!("{{{{{}}}}}", account_variable(environment));
            values.insert("account".to_owned(), json!(account));
        }
        if !target.region.is_empty() {
            values.insert("region".to_owned(), json!(region));
        }
        values
    };
    manifest
        .environments
        .iter()
        .map(move |(environment, target)| (*environment, template(*environment, target)))
}

/// A template that makes deployments like this one.
pub fn from_deployment(
    manifest: &Manifest,
    library: &TemplateLibrary,
    name: &str,
    description: &str,
) -> Result<ManifestTemplate> {
    let choice = |enabled| ComponentChoice {
        enabled,
        config: BTreeMap::new(),
    };
    // What the template that it was made of has for all stacks, variables and all.
    let origin = library.manifests.get(&manifest.metadata.template);
    let shared = |(environment, mut target): (EnvironmentName, Map<String, Value>)| {
        let origin = origin.and_then(|origin| origin.environments.get(&environment));
        if let Some(defaults) = origin.and_then(|target| target.get("defaults")) {
            target.insert("defaults".to_owned(), defaults.clone());
        }
        (environment, target)
    };
    let mut template = ManifestTemplate {
        name: name.to_owned(),
        description: description.to_owned(),
        environments: environments(manifest).map(shared).collect(),
        defaults: origin
            .map(|origin| origin.defaults.clone())
            .unwrap_or_default(),
        stacks: manifest
            .stacks
            .iter()
            .map(|(name, entry)| (name.clone(), choice(entry.enabled)))
            .collect(),
    };
    let mut plain = library.clone();
    plain.manifests.insert(name.to_owned(), template.clone());
    let rendered = render(&plain, &manifest.metadata.id, &answers_of(manifest, name))?;
    for (stack, entry) in &manifest.stacks {
        // One that is switched off may be registered no more, and is not rendered then.
        let usual = rendered.manifest.stacks.get(stack);
        let chosen = template.stacks.entry(stack.clone()).or_default();
        for (environment, values) in &entry.config {
            let usual = usual.and_then(|usual| usual.config.get(environment));
            let own: Map<_, _> = values
                .iter()
                .filter(|(key, value)| usual.and_then(|usual| usual.get(*key)) != Some(value))
                .map(|(key, value)| (key.clone(), value.clone()))
                .collect();
            if !own.is_empty() {
                chosen.config.insert(*environment, own);
            }
        }
    }
    Ok(template)
}

/// The text of a template's file.
pub fn write(template: &ManifestTemplate) -> String {
    let header =
        ["yaml-language-server: $schema=../../schemas/manifest-template.schema.json".to_owned()];
    let environments: Map<_, _> = template
        .environments
        .iter()
        .map(|(environment, target)| (environment.to_string(), Value::Object(target.clone())))
        .collect();
    let stack = |choice: &ComponentChoice| {
        let mut map = Map::from_iter([("enabled".to_owned(), json!(choice.enabled))]);
        if !choice.config.is_empty() {
            let config = choice.config.iter();
            let config = config.map(|(e, values)| (e.to_string(), Value::Object(values.clone())));
            map.insert("config".to_owned(), Value::Object(config.collect()));
        }
        Value::Object(map)
    };
    let stacks: Map<_, _> = template
        .stacks
        .iter()
        .map(|(name, choice)| (name.to_string(), stack(choice)))
        .collect();
    let promotion: Vec<_> = template.environments.keys().collect();
    let mut root = Map::from_iter([
        ("name".to_owned(), json!(template.name)),
        ("description".to_owned(), json!(template.description)),
        ("environments".to_owned(), Value::Object(environments)),
        ("promotion".to_owned(), json!(promotion)),
        ("stacks".to_owned(), Value::Object(stacks)),
    ]);
    if !template.defaults.is_empty() {
        let defaults = Value::Object(template.defaults.clone());
        root.insert("defaults".to_owned(), defaults);
    }
    yaml::write(&header, &root)
}

/// Refuses names that cannot be a file's.
pub fn check_template_name(name: &str) -> Result<()> {
    let fits = |b: u8| b.is_ascii_alphanumeric() || b == b'-';
    if !name.is_empty() && name.len() <= 63 && name.bytes().all(fits) && !name.starts_with('-') {
        return Ok(());
    }
    let shown: String = name.chars().take(60).collect();
    Err(Error::new(
        ErrorCode::MALFORMED_ID,
        format!("`{shown}` cannot be the name of a template"),
    )
    .with_help("use letters, digits and `-`, at most 63 characters, such as shop-standard"))
}

impl Workspace {
    /// Where a manifest template is, shipped or custom.
    pub fn manifest_template(&self, name: &str) -> Option<PathBuf> {
        let path = |kind: &str| {
            self.root()
                .join("tools/templates")
                .join(kind)
                .join(format!("{name}.yaml"))
        };
        ["custom", "default"]
            .into_iter()
            .map(path)
            .find(|path| path.is_file())
    }

    /// Writes a custom template made from a deployment.
    pub fn create_template(
        &self,
        name: &str,
        id: &str,
        description: Option<&str>,
    ) -> Result<ManifestTemplate> {
        check_template_name(name)?;
        let library = self.library()?;
        if library.manifests.contains_key(name) {
            let message = format!("there is a template `{name}` already");
            return Err(
                Error::new(ErrorCode::TEMPLATE_EXISTS, message).with_help(format!(
                    "choose another name, or change it with `nimbus update-template {name}`"
                )),
            );
        }
        let manifest = self.deployment(id)?.manifest;
        let usual = || format!("Made from deployment {}", manifest.metadata.id);
        let description = description.map_or_else(usual, str::to_owned);
        let template = from_deployment(&manifest, &library, name, &description)?;
        let path = self
            .root()
            .join("tools/templates/custom")
            .join(format!("{name}.yaml"));
        files::replace(&path, &write(&template))?;
        Ok(template)
    }

    /// Switches stacks of a template on and off. Deployments that were made of it stay as they are.
    pub fn update_template(&self, name: &str, change: &TemplateChange) -> Result<ManifestTemplate> {
        let mut library = self.library()?;
        let path = self
            .manifest_template(name)
            .filter(|_| library.manifests.contains_key(name));
        let path = path.ok_or_else(|| {
            let known = library.manifests.keys().map(String::as_str);
            let error = Error::new(
                ErrorCode::TEMPLATE_UNKNOWN,
                format!("there is no template `{name}`"),
            );
            error.with_help(
                did_you_mean(name, known)
                    .unwrap_or_else(|| "`nimbus list-templates` shows what there is".to_owned()),
            )
        })?;
        let mut document = Document::read(&path)?;
        if let Some(description) = &change.description {
            let text = edit::set(&document, &["description"], &json!(description))?;
            document = Document::parse(document.name(), &text)?;
        }
        let switches = change.enable.iter().map(|stack| (stack, true));
        for (stack, on) in switches.chain(change.disable.iter().map(|stack| (stack, false))) {
            if on {
                library.stack(stack, name)?;
            }
            let text = edit::set(&document, &["stacks", stack, "enabled"], &json!(on))?;
            document = Document::parse(document.name(), &text)?;
        }
        let template = ManifestTemplate::read(&document)?;
        library.manifests.insert(name.to_owned(), template.clone());
        check(&library, name)?;
        files::replace(&path, document.text())?;
        Ok(template)
    }
}

/// Renders a template with made-up answers: what a user would run into shows here.
pub fn check(library: &TemplateLibrary, name: &str) -> Result<Manifest> {
    let template = library.manifests.get(name);
    let environments = template.into_iter().flat_map(|t| t.environments.keys());
    let answers = InitAnswers {
        organization: "example".to_owned(),
        project: "example".to_owned(),
        domain: "example.com".to_owned(),
        template: name.to_owned(),
        user_email: "someone@example.com".to_owned(),
        timestamp: "1970-01-01T00:00:00Z".to_owned(),
        accounts: environments
            .map(|environment| (*environment, "000000000000".to_owned()))
            .collect(),
        ..InitAnswers::default()
    };
    render(library, &nimbus_core::DeploymentId::at(0), &answers).map(|rendered| rendered.manifest)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn workspace() -> (tempfile::TempDir, Workspace) {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path().join("cloud");
        for (file, text) in [
            (
                "config/network.yaml",
                "name: network\nvariables: {VPC_CIDR_DEV: {default: 10.0.0.0/16}}\n\
                 config: {owner: '{{ORGANIZATION}}', id: '{{DEPLOYMENT_ID}}', cidr: '{{VPC_CIDR_DEV}}'}\n",
            ),
            (
                "config/web.yaml",
                "name: web\ndependencies: [network]\nconfig: {size: 1}\n",
            ),
            (
                "default/small.yaml",
                "# Ours\nname: small\nenvironments:\n  dev: {enabled: true, account: '{{AWS_ACCOUNT_DEV}}', region: '{{PRIMARY_REGION}}'}\n\
                 stacks:\n  network: { enabled: true } # always\n  web:\n",
            ),
        ] {
            files::replace(&root.join("tools/templates").join(file), text).unwrap();
        }
        let workspace = Workspace::find(&root).unwrap();
        let answers = InitAnswers {
            organization: "shop".to_owned(),
            project: "p".to_owned(),
            template: "small".to_owned(),
            accounts: BTreeMap::from([(EnvironmentName::DEV, "111111111111".to_owned())]),
            variables: BTreeMap::from([
                ("VPC_CIDR_DEV".to_owned(), "10.9.0.0/16".to_owned()),
                ("PRIMARY_REGION".to_owned(), "eu-west-1".to_owned()),
            ]),
            ..InitAnswers::default()
        };
        let rendered = render(
            &workspace.library().unwrap(),
            &"D1".parse().unwrap(),
            &answers,
        )
        .unwrap();
        workspace.create(&rendered, "").unwrap();
        (temp, workspace)
    }

    #[test]
    fn a_template_keeps_what_was_chosen_and_nothing_that_is_one_deployments_own() {
        let (_temp, workspace) = workspace();
        workspace
            .create_template("shop-standard", "D1", None)
            .unwrap();
        let text =
            fs::read_to_string(workspace.manifest_template("shop-standard").unwrap()).unwrap();
        assert!(text.contains("cidr: \"10.9.0.0/16\""), "{text}");
        for own in ["111111111111", "owner", "id: D1\n", "eu-west-1"] {
            assert!(!text.contains(own), "{own}: {text}");
        }
        let again = check(&workspace.library().unwrap(), "shop-standard").unwrap();
        assert_eq!(
            again.stacks["network"].config[&EnvironmentName::DEV]["cidr"],
            json!("10.9.0.0/16")
        );
        let taken = workspace
            .create_template("shop-standard", "D1", None)
            .unwrap_err();
        assert_eq!(taken.code(), ErrorCode::TEMPLATE_EXISTS);
        for name in ["../x", "", "ü", &"a".repeat(300)] {
            let error = workspace.create_template(name, "D1", None).unwrap_err();
            assert_eq!(error.code(), ErrorCode::MALFORMED_ID, "{name}");
        }
    }

    #[test]
    fn stacks_of_a_template_are_switched_in_place() {
        let (_temp, workspace) = workspace();
        let disable = |name: &str| TemplateChange {
            disable: vec![name.to_owned()],
            ..TemplateChange::default()
        };
        let changed = workspace.update_template("small", &disable("web")).unwrap();
        assert!(!changed.stacks["web"].enabled);
        let text = fs::read_to_string(workspace.manifest_template("small").unwrap()).unwrap();
        assert!(text.starts_with("# Ours\nname: small\n"), "{text}");
        assert_eq!(
            check(&workspace.library().unwrap(), "small")
                .unwrap()
                .enabled()
                .count(),
            1
        );

        let enable = TemplateChange {
            enable: vec!["web".to_owned()],
            ..TemplateChange::default()
        };
        workspace.update_template("small", &enable).unwrap();
        let before = fs::read_to_string(workspace.manifest_template("small").unwrap()).unwrap();
        let broken = workspace
            .update_template("small", &disable("network"))
            .unwrap_err();
        assert_eq!(broken.code(), ErrorCode::GRAPH_INVALID, "web needs it");
        let unknown = TemplateChange {
            enable: vec!["nope".to_owned()],
            ..TemplateChange::default()
        };
        assert_eq!(
            workspace
                .update_template("small", &unknown)
                .unwrap_err()
                .code(),
            ErrorCode::TEMPLATE_INVALID
        );
        let after = fs::read_to_string(workspace.manifest_template("small").unwrap()).unwrap();
        assert_eq!(before, after, "a refused change changes nothing");
    }

    #[test]
    fn a_disabled_stack_may_be_unregistered_and_the_template_still_works() {
        let (_temp, workspace) = workspace();
        let disable = TemplateChange {
            disable: vec!["web".to_owned()],
            ..TemplateChange::default()
        };
        workspace.update_template("small", &disable).unwrap();
        workspace.unregister(&"web".parse().unwrap(), true).unwrap();
        assert_eq!(
            check(&workspace.library().unwrap(), "small")
                .unwrap()
                .enabled()
                .count(),
            1
        );
    }

    #[test]
    fn a_template_keeps_order_gates_and_checks_of_environments_with_any_names() {
        let (_temp, workspace) = workspace();
        let text = "name: other\nenvironments:\n  live: {account: '{{AWS_ACCOUNT_LIVE}}', region: eu-west-1, confirm: true}\n  \
                    pre-live:\n    account: '{{AWS_ACCOUNT_PRE_LIVE}}'\n    region: eu-west-1\n    \
                    gate: {items: [deploy]}\n    checks: {smoke: {command: 'true'}}\n\
                    promotion: [pre-live, live]\nstacks: {network: , web: }\n";
        let path = workspace.root().join("tools/templates/default/other.yaml");
        files::replace(&path, text).unwrap();
        let answers = InitAnswers {
            organization: "shop".to_owned(),
            project: "p".to_owned(),
            template: "other".to_owned(),
            accounts: BTreeMap::from([("live".parse().unwrap(), "999999999999".to_owned())]),
            ..InitAnswers::default()
        };
        let library = workspace.library().unwrap();
        let rendered = render(&library, &"D2".parse().unwrap(), &answers).unwrap();
        workspace.create(&rendered, "").unwrap();
        workspace.create_template("again", "D2", None).unwrap();
        let file = fs::read_to_string(workspace.manifest_template("again").unwrap()).unwrap();
        assert!(!file.contains("999999999999"), "{file}");

        let again = check(&workspace.library().unwrap(), "again").unwrap();
        let names: Vec<_> = again.environments.keys().map(|e| e.as_str()).collect();
        assert_eq!(names, ["pre-live", "live"]);
        for (environment, target) in &rendered.manifest.environments {
            let kept = &again.environments[environment];
            assert_eq!(kept.gate, target.gate);
            assert_eq!(kept.checks, target.checks);
            assert_eq!(kept.confirm, target.confirm);
        }
    }

    #[test]
    fn a_template_is_made_of_a_deployment_with_a_stack_that_is_gone() {
        let (_temp, workspace) = workspace();
        let path = workspace.deployment("D1").unwrap().directory;
        let path = path.join(nimbus_orchestrator::FILE_NAME);
        let document = Document::read(&path).unwrap();
        let gone = json!({"enabled": false, "config": {"dev": {"size": 1}}});
        let text = edit::set(&document, &["spec", "stacks", "gone"], &gone).unwrap();
        files::replace(&path, &text).unwrap();
        let template = workspace.create_template("rest", "D1", None).unwrap();
        assert!(!template.stacks["gone"].enabled);
    }
}
