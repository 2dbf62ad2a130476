//! What an adoption would make, decided before anything is written.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use indexmap::IndexMap;
use nimbus_core::{ComponentName, EnvironmentName, ErrorCode, Result, shell_word};
use nimbus_document::Document;
use nimbus_engine_backend::KeyServices;
use nimbus_engine_backend::project::{ConfigMap, ConfigValue, StackSettings};
use nimbus_engine_operations::key_services;
use nimbus_orchestrator::{
    ComponentEntry, EnvironmentTarget, FILE_NAME, Manifest, ManifestMetadata, PulumiIdentity,
    PulumiStack, SharedValues, TemplateText, secret_name, yaml,
};
use nimbus_workspace::Workspace;
use serde_json::{Map, Value, json};

use super::AdoptionRequest;
use super::mapping::{MappedProjects, NamedProject, StackMapping, map_projects, refused};
use super::references::{AdoptedEdge, ReferenceHints, ReferenceTarget, edges};
use super::survey::{SurveyedProject, refuse_elsewhere, survey};

/// Names the template of deployments that no template made.
pub(crate) const TEMPLATE: &str = "adopted";

/// Everything that an adoption would make.
pub struct AdoptionPlan {
    pub manifest: Manifest,
    /// Folders of the projects, by component.
    pub sources: BTreeMap<ComponentName, PathBuf>,
    pub edges: Vec<AdoptedEdge>,
    pub states: Vec<AdoptedState>,
    /// Stacks that nobody asked for: `project/stack`.
    pub left_out: Vec<String>,
    /// Components in languages that the embedded engine does not run, with their runtimes.
    pub foreign: Vec<(ComponentName, String)>,
    pub(crate) secrets: Vec<AdoptedSecret>,
    pub(crate) templates: BTreeMap<ComponentName, String>,
    /// Who may be asked for keys of what is taken over.
    pub(crate) services: KeyServices,
}

/// A state that would be copied.
pub struct AdoptedState {
    pub component: ComponentName,
    pub environment: EnvironmentName,
    pub stack: PulumiStack,
    pub resources: usize,
    /// Where it is now.
    pub from: String,
    pub(crate) bytes: Vec<u8>,
}

/// A secret of a stack's settings, still encrypted with the stack's key.
pub(crate) struct AdoptedSecret {
    pub(crate) name: String,
    pub(crate) environment: EnvironmentName,
    pub(crate) ciphertext: String,
    pub(crate) settings: StackSettings,
}

impl AdoptionPlan {
    /// Looks at the projects and decides. Nothing is changed.
    ///
    /// # Errors
    ///
    /// When a project cannot be read, or the wish cannot be fulfilled as it is.
    pub async fn make(request: &AdoptionRequest, workspace: &Workspace) -> Result<Self> {
        let surveyed = survey(request).await?;
        refuse_elsewhere(&surveyed, request, workspace)?;
        let named = named(&surveyed, request)?;
        let mapped = map_projects(&named, &request.mappings, &request.environments)?;
        refuse_taken(&mapped, &named, request, workspace)?;
        AdoptionDraft {
            request,
            workspace,
            surveyed,
            mapped,
            secrets: Vec::new(),
        }
        .plan()
    }

    /// Names of secrets with their environments.
    pub fn secret_names(&self) -> impl Iterator<Item = (&str, EnvironmentName)> {
        let secrets = self.secrets.iter();
        secrets.map(|secret| (secret.name.as_str(), secret.environment))
    }
}

fn named(surveyed: &[SurveyedProject], request: &AdoptionRequest) -> Result<Vec<NamedProject>> {
    for (project, _) in &request.names {
        if !surveyed.iter().any(|found| found.project.name == *project) {
            return Err(refused(format!(
                "there is no project `{project}` to be named"
            )));
        }
    }
    let mut seen = BTreeSet::new();
    for found in surveyed {
        if !seen.insert(&found.project.name) {
            let message = format!("two projects are called {}", found.project.name);
            return Err(refused(message)
                .with_help("stacks of one name could not be told apart; adopt one of them"));
        }
    }
    let project = |found: &SurveyedProject| {
        let name = &found.project.name;
        let given = request.names.iter().find(|(project, _)| project == name);
        NamedProject {
            name: name.clone(),
            component: given.map(|(_, component)| component.clone()),
            stacks: found.stacks.keys().cloned().collect(),
        }
    };
    Ok(surveyed.iter().map(project).collect())
}

fn refuse_taken(
    mapped: &MappedProjects,
    projects: &[NamedProject],
    request: &AdoptionRequest,
    workspace: &Workspace,
) -> Result<()> {
    if workspace.is_taken(&request.id) {
        let id = &request.id;
        let message = format!("the workspace has a deployment {id} already");
        return Err(
            nimbus_core::Error::new(ErrorCode::DEPLOYMENT_EXISTS, message).with_help(format!(
                "give another one with --id; an adoption that nothing was run of is taken back with `nimbus adopt --undo {id}`"
            )),
        );
    }
    let registered = workspace.library()?.stacks;
    for (name, component) in &mapped.components {
        if registered.contains_key(name) || workspace.stack_source(name).exists() {
            let message = format!("the workspace has a stack `{name}` already");
            let mapped = |one: &StackMapping| one.component.as_ref() == Some(name);
            let project = projects.get(component.project);
            let help = match project.filter(|_| !request.mappings.iter().any(mapped)) {
                Some(project) => format!(
                    "give the project's component another name: --name {}={name}-2",
                    shell_word(&project.name)
                ),
                None => format!("give its component another name in --map, such as {name}-2@…"),
            };
            let taken = nimbus_core::Error::new(ErrorCode::STACK_REGISTERED, message);
            return Err(taken.with_help(help));
        }
    }
    Ok(())
}

/// A plan in the making.
struct AdoptionDraft<'a> {
    request: &'a AdoptionRequest,
    workspace: &'a Workspace,
    surveyed: Vec<SurveyedProject>,
    mapped: MappedProjects,
    secrets: Vec<AdoptedSecret>,
}

impl AdoptionDraft<'_> {
    fn plan(mut self) -> Result<AdoptionPlan> {
        let edges = self.edges()?;
        let mut stacks = BTreeMap::new();
        let mut states = Vec::new();
        let mut sources = BTreeMap::new();
        let mut templates = BTreeMap::new();
        for (name, component) in self.mapped.components.clone() {
            let needs: BTreeSet<_> = edges
                .iter()
                .filter(|edge| edge.from == name)
                .map(|edge| edge.needs.clone())
                .collect();
            let mut config = BTreeMap::new();
            for (environment, stack) in &component.stacks {
                let values = self.config(&name, component.project, *environment, stack)?;
                config.insert(*environment, values);
                states.extend(self.state(&name, component.project, *environment, stack));
            }
            let found = &self.surveyed[component.project];
            let source = relative(self.workspace.root(), &found.folder);
            let description = found.project.description.as_deref();
            templates.insert(
                name.clone(),
                template(&name, &source, description.unwrap_or_default(), &needs),
            );
            sources.insert(name.clone(), found.folder.clone());
            let identity = PulumiIdentity {
                project: found.project.name.clone(),
                stacks: component.stacks,
            };
            let entry = ComponentEntry {
                enabled: true,
                priority: 100,
                dependencies: needs,
                network: None,
                pulumi: Some(identity),
                config,
            };
            stacks.insert(name, entry);
        }
        let manifest = Manifest {
            metadata: self.metadata(),
            environments: self.environments(),
            stacks,
            shared: SharedValues::default(),
        };
        // What nobody could read again is not written.
        let written = Document::parse(FILE_NAME, &manifest.write())?;
        Manifest::read(&written).map_err(|error| {
            refused(error.message()).with_help(
                "name the stack that is still to be made: --map \
                 PROJECT/STACK=COMPONENT@ENVIRONMENT",
            )
        })?;
        for environment in manifest.environments.keys() {
            manifest.graph(*environment).map_err(|error| {
                refused(error.to_string())
                    .with_help("leave one of these edges out: --not-needs COMPONENT=COMPONENT")
            })?;
        }
        let runtime = |at: usize| {
            let runtime = self.surveyed.get(at)?.project.runtime.as_ref()?;
            let foreign = !matches!(runtime.name.as_str(), "nodejs" | "python");
            foreign.then(|| runtime.name.clone())
        };
        let components = self.mapped.components.iter();
        let foreign = components
            .filter_map(|(name, component)| Some((name.clone(), runtime(component.project)?)))
            .collect();
        Ok(AdoptionPlan {
            foreign,
            manifest,
            sources,
            edges,
            states,
            left_out: self.mapped.left_out,
            secrets: self.secrets,
            templates,
            services: key_services(self.request.sandbox.as_ref()),
        })
    }

    fn metadata(&self) -> ManifestMetadata {
        let labels = [("createdAt", self.request.at.as_str())];
        ManifestMetadata {
            id: self.request.id.clone(),
            organization: self.request.organization.clone(),
            project: self.request.project.clone(),
            template: TEMPLATE.to_owned(),
            labels: labels
                .map(|(key, value)| (key.to_owned(), value.to_owned()))
                .into(),
        }
    }

    fn environments(&self) -> IndexMap<EnvironmentName, EnvironmentTarget> {
        let target = EnvironmentTarget {
            enabled: true,
            ..EnvironmentTarget::default()
        };
        let names = self.mapped.environments.iter();
        names.map(|name| (*name, target.clone())).collect()
    }

    fn state(
        &mut self,
        component: &ComponentName,
        project: usize,
        environment: EnvironmentName,
        stack: &str,
    ) -> Option<AdoptedState> {
        let found = &mut self.surveyed[project];
        let state = found.stacks.get_mut(stack)?.state.take()?;
        Some(AdoptedState {
            component: component.clone(),
            environment,
            stack: PulumiStack {
                project: found.project.name.clone(),
                stack: stack.to_owned(),
            },
            resources: state.resources,
            from: state.from,
            bytes: state.bytes,
        })
    }

    fn config(
        &mut self,
        component: &ComponentName,
        project: usize,
        environment: EnvironmentName,
        stack: &str,
    ) -> Result<Map<String, Value>> {
        let found = &self.surveyed[project];
        let settings = found
            .stacks
            .get(stack)
            .and_then(|stack| stack.settings.as_ref());
        let Some(settings) = settings else {
            return Ok(Map::new());
        };
        let mut reader = ConfigReader {
            component,
            project: &found.project.name,
            secrets: Vec::new(),
        };
        let values = reader.values(&settings.config)?;
        let secrets = reader.secrets.into_iter();
        self.secrets
            .extend(secrets.map(|(name, ciphertext)| AdoptedSecret {
                name,
                environment,
                ciphertext,
                settings: settings.clone(),
            }));
        Ok(values)
    }

    fn edges(&self) -> Result<Vec<AdoptedEdge>> {
        let known = |name: &ComponentName| {
            let there = self.mapped.components.contains_key(name);
            match there {
                true => Ok(()),
                false => Err(refused(format!(
                    "none of the components is called `{name}`"
                ))),
            }
        };
        let hints: Vec<_> = self
            .mapped
            .components
            .iter()
            .map(|(name, component)| {
                let found = &self.surveyed[component.project];
                let target = ReferenceTarget {
                    component: name.clone(),
                    project: found.project.name.clone(),
                    stacks: component.stacks.values().cloned().collect(),
                };
                (target, hints(found, component.stacks.values()))
            })
            .collect();
        let mut found = edges(&hints);
        for (from, needs) in &self.request.needs {
            known(from)?;
            known(needs)?;
            found.retain(|edge| (&edge.from, &edge.needs) != (from, needs));
            found.push(AdoptedEdge {
                from: from.clone(),
                needs: needs.clone(),
                because: "you said so".to_owned(),
            });
        }
        for (from, needs) in &self.request.needs_not {
            known(from)?;
            known(needs)?;
            found.retain(|edge| (&edge.from, &edge.needs) != (from, needs));
        }
        Ok(found)
    }
}

fn hints<'a>(found: &SurveyedProject, stacks: impl Iterator<Item = &'a String>) -> ReferenceHints {
    let mut hints = ReferenceHints {
        sources: found.sources.clone(),
        ..ReferenceHints::default()
    };
    for stack in stacks.filter_map(|stack| found.stacks.get(stack)) {
        if let Some(state) = &stack.state {
            hints.recorded.extend(state.references.iter().cloned());
        }
        let config = stack
            .settings
            .iter()
            .flat_map(|settings| settings.config.iter());
        hints
            .config
            .extend(config.filter_map(|(key, value)| match value {
                ConfigValue::Text(text) => Some((key.to_string(), text.clone())),
                _ => None,
            }));
    }
    hints
}

/// Turns a stack's settings into configuration of a manifest.
struct ConfigReader<'a> {
    component: &'a ComponentName,
    project: &'a str,
    /// Names and ciphertexts.
    secrets: Vec<(String, String)>,
}

impl ConfigReader<'_> {
    fn values(&mut self, config: &ConfigMap) -> Result<Map<String, Value>> {
        let mut values = Map::new();
        for (key, value) in config.iter() {
            let place = match key.namespace() == self.project {
                true => key.name().to_owned(),
                false => key.to_string(),
            };
            values.insert(key.to_string(), self.value(&place, value)?);
        }
        Ok(values)
    }

    fn value(&mut self, place: &str, value: &ConfigValue) -> Result<Value> {
        Ok(match value {
            ConfigValue::Null => Value::Null,
            ConfigValue::Bool(value) => Value::Bool(*value),
            ConfigValue::Int(value) => Value::from(*value),
            ConfigValue::UInt(value) => Value::from(*value),
            ConfigValue::Float(value) => Value::from(*value),
            ConfigValue::Text(text) => {
                let literal = TemplateText::parse(text).is_ok_and(|text| text.is_literal());
                if !literal {
                    return Err(self.ambiguous(place, "a placeholder of Nimbus"));
                }
                Value::from(text.as_str())
            }
            ConfigValue::Secure(ciphertext) => {
                let name = self.secret_name(place);
                self.secrets.push((name.clone(), ciphertext.clone()));
                json!({ "secret": name })
            }
            ConfigValue::List(items) => {
                let items = items.iter().enumerate();
                let items = items.map(|(at, item)| self.value(&format!("{place}.{at}"), item));
                Value::Array(items.collect::<Result<_>>()?)
            }
            ConfigValue::Map(map) => {
                let mut object = Map::new();
                for (key, item) in map {
                    object.insert(key.clone(), self.value(&format!("{place}.{key}"), item)?);
                }
                let from_secret = map
                    .values()
                    .any(|item| matches!(item, ConfigValue::Secure(_)));
                if !from_secret && secret_name(&object).is_some() {
                    return Err(self.ambiguous(place, "a secret of the deployment"));
                }
                Value::Object(object)
            }
        })
    }

    fn ambiguous(&self, place: &str, what: &str) -> nimbus_core::Error {
        refused(format!(
            "the configuration {place} of {} would be read as {what}",
            self.project
        ))
        .with_help("give the value another form in the project first")
    }

    fn secret_name(&self, place: &str) -> String {
        let plain = |c: char| match c {
            c if c.is_ascii_alphanumeric() || "-_.:/".contains(c) => c,
            _ => '_',
        };
        let place: String = place.chars().map(plain).collect();
        let mut name = format!("{}.{place}", self.component);
        while self.secrets.iter().any(|(taken, _)| *taken == name) {
            name.push('_');
        }
        name
    }
}

fn template(
    name: &ComponentName,
    source: &Path,
    description: &str,
    needs: &BTreeSet<ComponentName>,
) -> String {
    let header = [
        "yaml-language-server: $schema=../../schemas/stack-template.schema.json".to_owned(),
        format!("What the component `{name}` is. Its program stays in its own project."),
    ];
    let root = json!({
        "name": name,
        "description": description,
        "source": source.display().to_string(),
        "dependencies": needs,
    });
    match root {
        Value::Object(root) => yaml::write(&header, &root),
        _ => String::new(),
    }
}

/// The way from one folder to another, both absolute.
fn relative(from: &Path, to: &Path) -> PathBuf {
    let common = from
        .components()
        .zip(to.components())
        .take_while(|(one, other)| one == other)
        .count();
    let up = from.components().skip(common).map(|_| Component::ParentDir);
    let path: PathBuf = up.chain(to.components().skip(common)).collect();
    match path.as_os_str().is_empty() {
        true => PathBuf::from("."),
        false => path,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_way_between_two_folders_is_relative() {
        let way = |from: &str, to: &str| {
            relative(Path::new(from), Path::new(to))
                .display()
                .to_string()
        };
        assert_eq!(way("/a/cloud", "/a/apps/net"), "../apps/net");
        assert_eq!(way("/a/net/cloud", "/a/net"), "..");
        assert_eq!(way("/a", "/a/net"), "net");
        assert_eq!(way("/a", "/a"), ".");
    }
}
