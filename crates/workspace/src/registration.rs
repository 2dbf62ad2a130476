//! Registering stacks: from a program on disk to a stack template that deployments are made of.
//!
//! The directory of stack templates is the registry. A template is written whole or not at all,
//! and only after the graph of all templates with it was found to be in order.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use nimbus_core::{ComponentName, Error, ErrorCode, Result};
use nimbus_disk::unwritable;
use nimbus_document::{Document, View, did_you_mean};
use nimbus_orchestrator::{ComponentTemplate, GraphUnit, TemplateLibrary, UnitGraph, edit, yaml};
use regex::Regex;
use serde_json::{Map, Value, json};

use crate::files;
use crate::workspace::Workspace;

/// What a user says of a stack.
#[derive(Clone, Debug, Default)]
pub struct ComponentRegistration {
    pub description: Option<String>,
    pub priority: Option<i64>,
    pub dependencies: Option<BTreeSet<ComponentName>>,
    /// Parts of a stack template, see [`nimbus_orchestrator::read_defaults`].
    pub defaults: Map<String, Value>,
}

/// Refuses names that cannot be a directory, a Pulumi project and a part of unit names.
pub fn check_name(name: &str) -> Result<ComponentName> {
    let reserved = ["aws", "calculate", "env", "shared"].contains(&name);
    let message = match name.parse() {
        Ok(name) if !reserved => return Ok(name),
        Ok(_) => format!("`{name}` means something else in placeholders and directories"),
        Err(_) => {
            // It may be anything, of any length.
            let shown: String = name.chars().take(60).collect();
            format!("`{shown}` cannot be the name of a stack")
        }
    };
    Err(
        Error::new(ErrorCode::MALFORMED_ID, message).with_help(format!(
            "use lower-case letters, digits and `-`, a letter first, at most {} characters",
            ComponentName::LONGEST
        )),
    )
}

/// What a project's file may be called.
const PROJECT_FILES: &[&str] = &["Pulumi.yaml", "Pulumi.yml", "Pulumi.json"];

/// What a stack's `Pulumi.yaml` says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProjectFile {
    pub description: String,
}

impl ProjectFile {
    /// Reads a stack's project file and refuses one that says more than it may: a program is shared
    /// by all deployments, so nothing of one deployment belongs in it.
    pub fn read(document: &Document, stack: &str) -> Result<Self> {
        let view = document.view();
        for (key, value) in view.entries()? {
            if !["name", "runtime", "description"].contains(&key) {
                let label = "belongs in the manifest or in the stack's template";
                return Err(says_more(
                    &value,
                    format!("`{key}` has no place in the Pulumi.yaml of a stack"),
                    label,
                ));
            }
        }
        let name = view.required("name")?;
        if name.str()? != stack {
            let message = format!("the project of the stack {stack} must have its name");
            return Err(says_more(&name, message, "another name"));
        }
        let runtime = view.required("runtime")?;
        if !matches!(runtime.node().as_str(), Some("nodejs" | "python")) {
            let message = "the runtime of a stack is `nodejs` or `python`, without settings";
            return Err(says_more(&runtime, message.to_owned(), "not one of these"));
        }
        Self::described(&view)
    }

    /// Reads the project file of a program that is not the workspace's own. It says what it likes; the
    /// engine reads the rest.
    fn read_foreign(document: &Document) -> Result<Self> {
        let view = document.view();
        view.required("name")?.str()?;
        Self::described(&view)
    }

    fn described(view: &View<'_>) -> Result<Self> {
        let description = view.optional("description")?;
        Ok(Self {
            description: description
                .map(|v| v.str().map(str::to_owned))
                .transpose()?
                .unwrap_or_default(),
        })
    }
}

fn says_more(view: &View<'_>, message: String, label: &str) -> Error {
    let code = ErrorCode::PROJECT_NOT_MINIMAL;
    view.document()
        .error(code, view.span(), message, label)
        .with_help("a stack's Pulumi.yaml has name, runtime and description, and nothing else")
}

impl Workspace {
    /// Names of the programs under `stacks/`, registered or not. They are names of directories:
    /// one that cannot be a component's is among them, so that registering it says so.
    pub fn programs(&self) -> BTreeSet<String> {
        let entries = fs::read_dir(self.root().join("stacks"))
            .into_iter()
            .flatten()
            .flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        let source = |name: &str| match name.parse::<ComponentName>() {
            Ok(component) => self.stack_source(&component),
            Err(_) => self.root().join("stacks").join(name).join("src"),
        };
        names
            .filter(|name| source(name).join("Pulumi.yaml").is_file())
            .collect()
    }

    pub fn stack_template(&self, stack: &ComponentName) -> PathBuf {
        self.stack_templates().join(format!("{stack}.yaml"))
    }

    /// What the program of a stack says of itself.
    pub fn project_file(&self, stack: &ComponentName) -> Result<ProjectFile> {
        let source = self.stack_source(stack);
        let path = PROJECT_FILES
            .iter()
            .map(|name| source.join(name))
            .find(|path| path.is_file())
            .unwrap_or_else(|| source.join("Pulumi.yaml"));
        if !path.is_file() {
            let message = format!(
                "the stack {stack} has no program: {} does not exist",
                path.display()
            );
            let error = Error::new(ErrorCode::STACK_PROGRAM_MISSING, message);
            let programs = self.programs();
            let near = did_you_mean(stack, programs.iter().map(String::as_str));
            return Err(error.with_help(near.unwrap_or_else(|| {
                format!("put the program there, or make one: nimbus new-stack {stack}")
            })));
        }
        let document = Document::read(&path)?;
        let own = self.root().join("stacks");
        match path.starts_with(&own) {
            true => ProjectFile::read(&document, stack),
            // It was somebody's project before it became a component, and stays as it is.
            false => ProjectFile::read_foreign(&document),
        }
    }

    /// The registered stack that somebody names.
    pub fn registered(&self, name: &str) -> Result<ComponentName> {
        let library = self.library()?;
        registered(&library, name).map(|template| template.name.clone())
    }

    /// Writes the template of a stack that is not registered yet.
    pub fn register(
        &self,
        stack: &ComponentName,
        registration: &ComponentRegistration,
    ) -> Result<ComponentTemplate> {
        check_name(stack)?;
        let project = self.project_file(stack)?;
        let library = self.library()?;
        if library.stacks.contains_key(stack) {
            let message = format!("the stack {stack} is registered already");
            return Err(Error::new(ErrorCode::STACK_REGISTERED, message)
                .with_help(format!("change it with `nimbus update-stack {stack}`")));
        }
        let mut root = registration.defaults.clone();
        root.insert("name".to_owned(), json!(stack));
        let description = registration
            .description
            .clone()
            .unwrap_or(project.description);
        root.insert("description".to_owned(), json!(description));
        root.insert(
            "priority".to_owned(),
            json!(registration.priority.unwrap_or(100)),
        );
        let dependencies = registration.dependencies.clone().unwrap_or_default();
        root.insert("dependencies".to_owned(), json!(dependencies));
        if !root.contains_key("outputs") {
            root.insert("outputs".to_owned(), self.exported(stack));
        }
        let header = [
            "yaml-language-server: $schema=../../schemas/stack-template.schema.json".to_owned(),
            format!(
                "What the component `{stack}` is: dependencies, contract and defaults. Programs are in stacks/{stack}."
            ),
        ];
        let text = yaml::write(&header, &root);
        self.write_template(stack, &text, &library)
    }

    /// Changes the template of a registered stack; what is not mentioned stays as it is written.
    pub fn update_registration(
        &self,
        stack: &ComponentName,
        change: &ComponentRegistration,
    ) -> Result<ComponentTemplate> {
        let library = self.library()?;
        registered(&library, stack)?;
        let path = self.stack_template(stack);
        let mut document = Document::read(&path)?;
        let mut set = |key: &str, value: Value| -> Result<()> {
            let text = edit::set(&document, &[key], &value)?;
            document = Document::parse(document.name(), &text)?;
            Ok(())
        };
        if let Some(description) = &change.description {
            set("description", json!(description))?;
        }
        if let Some(priority) = change.priority {
            set("priority", json!(priority))?;
        }
        if let Some(dependencies) = &change.dependencies {
            set("dependencies", json!(dependencies))?;
        }
        for (key, value) in &change.defaults {
            set(key, value.clone())?;
        }
        let text = document.text().to_owned();
        self.write_template(stack, &text, &library)
    }

    /// Takes a stack out of the registry. Its program stays.
    pub fn unregister(&self, stack: &ComponentName, force: bool) -> Result<()> {
        let library = self.library()?;
        registered(&library, stack)?;
        let users = self.users(&library, stack)?;
        if !force && !users.is_empty() {
            let message = format!("the stack {stack} is used by {}", users.join(", "));
            return Err(Error::new(ErrorCode::STACK_IN_USE, message)
                .with_help("disable it there first, or give --force"));
        }
        let path = self.stack_template(stack);
        fs::remove_file(&path).map_err(|error| unwritable(&path, error))
    }

    /// Who enables a stack: stack templates, manifest templates and deployments.
    fn users(&self, library: &TemplateLibrary, stack: &ComponentName) -> Result<Vec<String>> {
        let mut users = Vec::new();
        for (name, template) in &library.stacks {
            if template.dependencies.contains(stack) {
                users.push(format!("stack {name}"));
            }
        }
        for (name, template) in &library.manifests {
            if template
                .stacks
                .get(stack)
                .is_some_and(|choice| choice.enabled)
            {
                users.push(format!("template {name}"));
            }
        }
        for deployment in self.readable_deployments()? {
            if deployment.enabled().any(|(name, _)| name == stack) {
                users.push(format!("deployment {}", deployment.metadata.id));
            }
        }
        Ok(users)
    }

    /// What deployments say a stack needs: the union over all manifests that name it.
    pub fn needs_in_manifests(&self) -> Result<BTreeMap<ComponentName, BTreeSet<ComponentName>>> {
        let mut needs: BTreeMap<ComponentName, BTreeSet<ComponentName>> = BTreeMap::new();
        for manifest in self.readable_deployments()? {
            for (name, entry) in manifest.stacks {
                needs.entry(name).or_default().extend(entry.dependencies);
            }
        }
        Ok(needs)
    }

    /// Reads the text as a template, checks all templates together, and writes it.
    fn write_template(
        &self,
        stack: &ComponentName,
        text: &str,
        library: &TemplateLibrary,
    ) -> Result<ComponentTemplate> {
        let path = self.stack_template(stack);
        let document = Document::parse(&path.display().to_string(), text)?;
        let template = ComponentTemplate::read(&document)?;
        let mut stacks = library.stacks.clone();
        stacks.insert(template.name.clone(), template.clone());
        check_graph(&stacks)?;
        files::replace(&path, text)?;
        Ok(template)
    }

    /// Names that the program exports, as far as its entry file shows them.
    fn exported(&self, stack: &ComponentName) -> Value {
        let source = self.stack_source(stack);
        let read = |name: &str| fs::read_to_string(source.join(name)).unwrap_or_default();
        let names = exports(&(read("index.ts") + &read("index.js") + &read("__main__.py")));
        let empty = Value::Object(Map::new());
        Value::Object(
            names
                .into_iter()
                .map(|name| (name, empty.clone()))
                .collect(),
        )
    }
}

fn registered<'a>(library: &'a TemplateLibrary, stack: &str) -> Result<&'a ComponentTemplate> {
    library.stacks.get(stack).ok_or_else(|| {
        let known = library.stacks.keys().map(ComponentName::as_str);
        let error = Error::new(
            ErrorCode::STACK_UNKNOWN,
            format!("the stack {stack} is not registered"),
        );
        error.with_help(
            did_you_mean(stack, known)
                .unwrap_or_else(|| "`nimbus list-stacks` shows what there is".to_owned()),
        )
    })
}

/// Every dependency is registered and nothing needs itself.
fn check_graph(stacks: &BTreeMap<ComponentName, ComponentTemplate>) -> Result<()> {
    for (name, template) in stacks {
        for needed in &template.dependencies {
            if !stacks.contains_key(needed) {
                let message = format!("the stack {name} needs {needed}, which is not registered");
                return Err(Error::new(ErrorCode::STACK_UNKNOWN, message)
                    .with_help(format!("register it first: nimbus register-stack {needed}")));
            }
        }
    }
    let units = stacks.values().map(|template| GraphUnit {
        name: template.name.clone(),
        priority: template.priority,
        needs: template.dependencies.clone(),
    });
    UnitGraph::new(units)
        .map(|_| ())
        .map_err(|error| Error::new(ErrorCode::GRAPH_INVALID, format!("ERROR: {error}")))
}

/// Names that the text of an entry file exports.
pub(crate) fn exports(text: &str) -> BTreeSet<String> {
    let patterns = [
        r"(?m)^export\s+(?:const|let|var)\s+([A-Za-z_$][\w$]*)",
        r#"pulumi\.export\(\s*["']([^"']+)["']"#,
        r"(?m)^(?:module\.)?exports\.([A-Za-z_$][\w$]*)\s*=",
    ];
    patterns
        .iter()
        .filter_map(|pattern| Regex::new(pattern).ok())
        .flat_map(|pattern| {
            pattern
                .captures_iter(text)
                .filter_map(|found| Some(found.get(1)?.as_str().to_owned()))
                .collect::<Vec<_>>()
        })
        .collect()
}

#[cfg(test)]
mod tests;
