//! Under which names Pulumi knows the units of a deployment.
//!
//! Usually the project is the business project and the stack is named after deployment, component and
//! environment. A component that existed before its deployment keeps the names that it had: URNs have
//! them, its own programs ask for them, and other programs refer to its stacks by them.

use std::collections::BTreeMap;
use std::fmt;

use nimbus_core::{ComponentName, EnvironmentName, Result, UnitName};
use nimbus_document::View;
use serde_json::{Map, Value, json};

use crate::manifest::Manifest;
use crate::naming;
use crate::template::by_environment;

pub(crate) const IDENTITY_KEYS: &[&str] = &["project", "stacks"];

/// Longest name of a project or a stack.
const LONGEST: usize = 100;

/// The project of a component and its stacks, as they were before the deployment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PulumiIdentity {
    pub project: String,
    /// By environment; one that is left out has a stack of its own name.
    pub stacks: BTreeMap<EnvironmentName, String>,
}

/// A stack as Pulumi knows it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PulumiStack {
    pub project: String,
    pub stack: String,
}

/// The full name in a self-managed backend.
impl fmt::Display for PulumiStack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "organization/{}/{}", self.project, self.stack)
    }
}

impl PulumiIdentity {
    pub(crate) fn read(view: &View<'_>) -> Result<Self> {
        view.only_keys(IDENTITY_KEYS)?;
        let name = |view: View<'_>| {
            let text = view.str()?;
            if is_name(text) {
                return Ok(text.to_owned());
            }
            let message = format!("`{text}` is no name that Pulumi allows");
            Err(view.error(message, "letters, digits, `-`, `_` and `.`, at most 100"))
        };
        Ok(Self {
            project: name(view.required("project")?)?,
            stacks: by_environment(view, "stacks", name)?,
        })
    }

    pub(crate) fn to_json(&self) -> Value {
        let stacks: Map<_, _> = self
            .stacks
            .iter()
            .map(|(environment, stack)| (environment.to_string(), stack.as_str().into()))
            .collect();
        json!({ "project": self.project, "stacks": stacks })
    }

    fn stack(&self, environment: EnvironmentName) -> PulumiStack {
        let kept = self.stacks.get(&environment);
        PulumiStack {
            project: self.project.clone(),
            stack: kept.map_or(environment.as_str(), String::as_str).to_owned(),
        }
    }
}

/// Whether Pulumi allows a text as the name of a project or a stack.
pub fn is_name(text: &str) -> bool {
    (1..=LONGEST).contains(&text.len())
        && text != "."
        && text != ".."
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
}

impl Manifest {
    /// The stack that holds the state of a component in an environment, whether or not the manifest
    /// has such a component.
    pub fn pulumi_stack(
        &self,
        component: &ComponentName,
        environment: EnvironmentName,
    ) -> PulumiStack {
        let entry = self.stacks.get(component);
        match entry.and_then(|entry| entry.pulumi.as_ref()) {
            Some(identity) => identity.stack(environment),
            None => PulumiStack {
                project: naming::sanitize(&self.metadata.project),
                stack: UnitName::new(&self.metadata.id, component, environment).to_string(),
            },
        }
    }

    /// Configuration keys without a namespace are in this one.
    pub fn namespace<'a>(&'a self, component: &'a ComponentName) -> &'a str {
        let entry = self.stacks.get(component);
        let identity = entry.and_then(|entry| entry.pulumi.as_ref());
        identity.map_or(component, |identity| identity.project.as_str())
    }

    /// Each unit, disabled ones included, has a Pulumi stack of its own. Names are joined with
    /// hyphens that names may have too: `app` in `eu-prod` and `app-eu` in `prod` would be one stack,
    /// and each deploy would delete what the other made.
    pub(crate) fn refuse_shared_stacks(&self, stacks: &View<'_>) -> Result<()> {
        let mut taken = BTreeMap::new();
        for (component, environment, unit) in self.units() {
            let Some((other, elsewhere)) = taken.insert(unit.clone(), (component, environment))
            else {
                continue;
            };
            let stack = &unit.stack;
            let message = format!(
                "`{other}` in {elsewhere} and `{component}` in {environment} would both be the stack \
                 {stack}"
            );
            let hint = "rename one of the two";
            return Err(stacks.required(component)?.error(message, hint));
        }
        Ok(())
    }

    /// Every component in every environment, with the Pulumi stack of the two.
    fn units(&self) -> impl Iterator<Item = (&ComponentName, EnvironmentName, PulumiStack)> {
        let environments = self.environments.keys().copied();
        environments.flat_map(move |environment| {
            self.stacks.keys().map(move |component| {
                let stack = self.pulumi_stack(component, environment);
                (component, environment, stack)
            })
        })
    }

    /// The environment that a Pulumi stack of this deployment is in, if a component of the manifest
    /// has it.
    pub fn environment_of(&self, project: &str, stack: &str) -> Option<EnvironmentName> {
        self.units()
            .find(|(_, _, unit)| unit.project == project && unit.stack == stack)
            .map(|(_, environment, _)| environment)
    }

    /// Whether a Pulumi stack is this deployment's in this environment, also one of a component that
    /// the manifest no longer has. A name that ends like the environment's may be a unit of another.
    pub fn has_unit_in(&self, environment: EnvironmentName, project: &str, stack: &str) -> bool {
        if let Some(known) = self.environment_of(project, stack) {
            return known == environment;
        }
        let inner = stack
            .strip_prefix(self.metadata.id.as_str())
            .and_then(|rest| rest.strip_prefix('-'))
            .and_then(|rest| rest.strip_suffix(environment.as_str()))
            .and_then(|rest| rest.strip_suffix('-'));
        inner.is_some_and(|component| !component.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use nimbus_document::Document;

    use super::*;

    fn manifest(stacks: &str) -> Result<Manifest> {
        let text = format!(
            "apiVersion: nimbus/v1\nkind: DeploymentManifest\nmetadata: {{deploymentId: D1, \
             organization: o, project: shop, template: t}}\nspec:\n  environments:\n    test: \
             {{enabled: true}}\n    live: {{enabled: true}}\n  stacks:\n{stacks}"
        );
        Manifest::read(&Document::parse("m.yaml", &text).unwrap())
    }

    fn environment(name: &str) -> EnvironmentName {
        name.parse().unwrap()
    }

    #[test]
    fn a_component_keeps_the_names_that_it_had() {
        let text = "    net: {enabled: true, pulumi: {project: acme_net, stacks: {test: dev}}}\n    \
                    app: {enabled: true}\n";
        let manifest = manifest(text).unwrap();
        let stack = |component: &str, name: &str| {
            let component = component.parse().unwrap();
            let stack = manifest.pulumi_stack(&component, environment(name));
            stack.to_string()
        };
        assert_eq!(stack("net", "test"), "organization/acme_net/dev");
        assert_eq!(stack("net", "live"), "organization/acme_net/live");
        assert_eq!(stack("app", "live"), "organization/shop/D1-app-live");
        assert_eq!(manifest.namespace(&"net".parse().unwrap()), "acme_net");
        assert_eq!(manifest.namespace(&"app".parse().unwrap()), "app");
        let [test, live] = ["test", "live"].map(environment);
        assert_eq!(manifest.environment_of("acme_net", "dev"), Some(test));
        assert!(manifest.has_unit_in(test, "acme_net", "dev"));
        assert!(!manifest.has_unit_in(live, "acme_net", "dev"));
        assert!(!manifest.has_unit_in(test, "other", "dev"));
        let written = Document::parse("m.yaml", &manifest.write()).unwrap();
        assert_eq!(Manifest::read(&written).unwrap(), manifest);
    }

    #[test]
    fn names_that_pulumi_refuses_and_stacks_that_are_taken_are_refused() {
        let error = manifest("    a: {enabled: true, pulumi: {project: 'a b'}}\n").unwrap_err();
        assert!(error.message().contains("a b"), "{error}");
        let same = "{enabled: true, pulumi: {project: p, stacks: {test: dev, live: dev}}}";
        let error = manifest(&format!("    a: {same}\n")).unwrap_err();
        assert!(error.message().contains("would both be"), "{error}");
        let both = "{enabled: true, pulumi: {project: p}}";
        let error = manifest(&format!("    a: {both}\n    b: {both}\n")).unwrap_err();
        assert!(error.message().contains("`a` in test"), "{error}");
    }
}
