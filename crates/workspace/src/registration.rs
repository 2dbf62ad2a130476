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
        names
            .filter(|name| self.stack_source(name).join("Pulumi.yaml").is_file())
            .collect()
    }

    pub fn stack_template(&self, stack: &str) -> PathBuf {
        self.stack_templates().join(format!("{stack}.yaml"))
    }

    /// What the program of a stack says of itself.
    pub fn project_file(&self, stack: &str) -> Result<ProjectFile> {
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

    /// Writes the template of a stack that is not registered yet.
    pub fn register(
        &self,
        stack: &str,
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
        stack: &str,
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
    pub fn unregister(&self, stack: &str, force: bool) -> Result<()> {
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
    fn users(&self, library: &TemplateLibrary, stack: &str) -> Result<Vec<String>> {
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
        stack: &str,
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
    fn exported(&self, stack: &str) -> Value {
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
mod tests {
    use nimbus_core::EnvironmentName;
    use nimbus_orchestrator::read_defaults;

    use super::*;

    fn workspace() -> (tempfile::TempDir, Workspace) {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path().join("cloud");
        for stack in ["network", "web", "queue"] {
            let source = root.join("stacks").join(stack).join("src");
            fs::create_dir_all(&source).unwrap();
            let project = format!("name: {stack}\nruntime: nodejs\ndescription: The {stack}\n");
            fs::write(source.join("Pulumi.yaml"), project).unwrap();
            fs::write(
                source.join("index.ts"),
                "export const url = 1;\nconst x = 2;\n",
            )
            .unwrap();
        }
        fs::create_dir_all(root.join("tools/templates/config")).unwrap();
        let workspace = Workspace::find(&root).unwrap();
        (temp, workspace)
    }

    fn needing(names: &[&str]) -> ComponentRegistration {
        ComponentRegistration {
            dependencies: Some(names.iter().map(|name| name.parse().unwrap()).collect()),
            ..ComponentRegistration::default()
        }
    }

    #[test]
    fn a_program_becomes_a_stack_with_its_description_and_exports() {
        let (_temp, workspace) = workspace();
        workspace
            .register("network", &ComponentRegistration::default())
            .unwrap();
        let web = workspace.register("web", &needing(&["network"])).unwrap();
        assert_eq!(web.description, "The web");
        assert_eq!(web.outputs.keys().collect::<Vec<_>>(), ["url"]);
        let library = workspace.library().unwrap();
        assert!(library.stacks["web"].dependencies.contains("network"));
    }

    #[test]
    fn defaults_are_kept() {
        let (_temp, workspace) = workspace();
        let text = "config: {size: 1}\nenvironments: {prod: {size: 3}}\n";
        let defaults = read_defaults(&Document::parse("d.yaml", text).unwrap()).unwrap();
        let registration = ComponentRegistration {
            defaults,
            ..ComponentRegistration::default()
        };
        let template = workspace.register("web", &registration).unwrap();
        let size = |environment| template.defaults(environment)["size"].clone();
        assert_eq!(size(EnvironmentName::DEV), json!(1));
        assert_eq!(size(EnvironmentName::PROD), json!(3));
        let wrong = Document::parse("d.yaml", "name: x\n").unwrap();
        assert!(read_defaults(&wrong).is_err());
    }

    #[test]
    fn what_cannot_be_registered_leaves_no_template() {
        let (_temp, workspace) = workspace();
        let code = |stack: &str, registration: &ComponentRegistration| {
            workspace.register(stack, registration).unwrap_err().code()
        };
        assert_eq!(
            code("nope", &needing(&[])),
            ErrorCode::STACK_PROGRAM_MISSING
        );
        assert_eq!(code("web", &needing(&["nope"])), ErrorCode::STACK_UNKNOWN);
        assert_eq!(code("web", &needing(&["web"])), ErrorCode::GRAPH_INVALID);
        for name in ["../x", "Web", "", "ü", "aws", "-a", &"a".repeat(300)] {
            assert_eq!(code(name, &needing(&[])), ErrorCode::MALFORMED_ID, "{name}");
        }
        assert!(workspace.library().unwrap().stacks.is_empty());
        workspace.register("web", &needing(&[])).unwrap();
        assert_eq!(code("web", &needing(&[])), ErrorCode::STACK_REGISTERED);
    }

    #[test]
    fn an_update_keeps_what_it_does_not_mention() {
        let (_temp, workspace) = workspace();
        workspace.register("network", &needing(&[])).unwrap();
        workspace.register("web", &needing(&[])).unwrap();
        let path = workspace.stack_template("web");
        let text = fs::read_to_string(&path).unwrap();
        fs::write(
            &path,
            format!("{text}\n# Ask Ada before changing this.\nconfig: {{size: 1}}\n"),
        )
        .unwrap();
        workspace
            .update_registration("web", &needing(&["network"]))
            .unwrap();
        let text = fs::read_to_string(&path).unwrap();
        assert!(
            text.contains("# Ask Ada before changing this.\nconfig: {size: 1}\n"),
            "{text}"
        );
        let cycle = workspace.update_registration("network", &needing(&["web"]));
        assert!(cycle.unwrap_err().message().contains("Circular dependency"));
        assert!(
            workspace.library().unwrap().stacks["network"]
                .dependencies
                .is_empty()
        );
    }

    #[test]
    fn a_stack_in_use_is_not_unregistered_by_mistake() {
        let (_temp, workspace) = workspace();
        workspace.register("network", &needing(&[])).unwrap();
        workspace.register("web", &needing(&["network"])).unwrap();
        let error = workspace.unregister("network", false).unwrap_err();
        assert_eq!(error.code(), ErrorCode::STACK_IN_USE);
        assert!(error.message().contains("stack web"), "{error}");
        workspace.unregister("web", false).unwrap();
        workspace.unregister("network", false).unwrap();
        assert!(workspace.library().unwrap().stacks.is_empty());
        assert_eq!(workspace.programs().len(), 3, "programs stay");
    }

    #[test]
    fn a_project_file_says_no_more_than_it_may() {
        let read = |text: &str| {
            ProjectFile::read(&Document::parse("Pulumi.yaml", text).unwrap(), "web")
                .map_err(|e| e.code())
        };
        assert!(read("name: web\nruntime: nodejs\ndescription: d\n").is_ok());
        for more in [
            "name: other\nruntime: nodejs\n",
            "name: web\nruntime: go\n",
            "name: web\nruntime: {name: nodejs, options: {typescript: true}}\n",
            "name: web\nruntime: nodejs\nmain: index.ts\n",
            "name: web\nruntime: nodejs\nconfig: {aws:region: eu-west-1}\n",
            "name: web\nruntime: nodejs\norganization: shop\n",
        ] {
            assert_eq!(read(more), Err(ErrorCode::PROJECT_NOT_MINIMAL), "{more}");
        }
    }

    #[test]
    fn exports_are_found_in_both_languages() {
        let text = "export const a = 1;\nexport let b: string;\n  export const no = 1;\n\
                    pulumi.export('c', 1)\nexports.d = 1;\n";
        let names: Vec<_> = exports(text).into_iter().collect();
        assert_eq!(names, ["a", "b", "c", "d"]);
    }
}
