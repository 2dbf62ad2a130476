//! Which stack of which project becomes which component in which environment. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;

use indexmap::IndexMap;
use nimbus_core::{ComponentName, EnvironmentName, Error, ErrorCode, Result};
use nimbus_orchestrator::sort_by_usual_promotion;

/// `[PROJECT/]STACK=[COMPONENT@]ENVIRONMENT`, as somebody asks for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StackMapping {
    /// Of every project that has such a stack, when left out.
    pub project: Option<String>,
    pub stack: String,
    /// The project's own component, when left out.
    pub component: Option<ComponentName>,
    pub environment: EnvironmentName,
}

impl FromStr for StackMapping {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let (from, to) = text
            .split_once('=')
            .ok_or("write it as STACK=ENVIRONMENT, or PROJECT/STACK=COMPONENT@ENVIRONMENT")?;
        let (project, stack) = match from.rsplit_once('/') {
            Some((project, stack)) => (Some(project.to_owned()), stack),
            None => (None, from),
        };
        let (component, environment) = match to.split_once('@') {
            Some((component, environment)) => {
                let component = component.parse::<ComponentName>();
                (
                    Some(component.map_err(|error| error.to_string())?),
                    environment,
                )
            }
            None => (None, to),
        };
        Ok(Self {
            project,
            stack: stack.to_owned(),
            component,
            environment: environment
                .parse::<EnvironmentName>()
                .map_err(|error| error.to_string())?,
        })
    }
}

/// A project, as far as names go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NamedProject {
    pub(crate) name: String,
    /// What its component is called, if somebody said so.
    pub(crate) component: Option<ComponentName>,
    pub(crate) stacks: BTreeSet<String>,
}

/// A component to be, and the stacks that it keeps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MappedComponent {
    /// Index of its project.
    pub(crate) project: usize,
    pub(crate) stacks: BTreeMap<EnvironmentName, String>,
}

/// What becomes of all projects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MappedProjects {
    pub(crate) components: IndexMap<ComponentName, MappedComponent>,
    /// In the order of promotion.
    pub(crate) environments: Vec<EnvironmentName>,
    /// Stacks that nobody asked for: `project/stack`.
    pub(crate) left_out: Vec<String>,
}

/// Without any mapping every stack is in the environment of its name. With one, only mapped stacks
/// come in. `wanted` are environments in the order in which they follow each other; others come after.
pub(crate) fn map_projects(
    projects: &[NamedProject],
    mappings: &[StackMapping],
    wanted: &[EnvironmentName],
) -> Result<MappedProjects> {
    require_used(projects, mappings)?;
    let projects = &with_new_stacks(projects, mappings)[..];
    let mut components: IndexMap<ComponentName, MappedComponent> = IndexMap::new();
    let mut left_out = Vec::new();
    let mut found: IndexMap<EnvironmentName, ()> = IndexMap::new();
    found.extend(wanted.iter().map(|environment| (*environment, ())));
    found.extend(mappings.iter().map(|mapping| (mapping.environment, ())));
    for (index, project) in projects.iter().enumerate() {
        let own = match &project.component {
            Some(name) => name.clone(),
            None => component_name(&project.name)?,
        };
        let mut used = false;
        for stack in &project.stacks {
            let Some((component, environment)) = place_of(project, stack, &own, mappings)? else {
                left_out.push(format!("{}/{stack}", project.name));
                continue;
            };
            used = true;
            found.entry(environment).or_insert(());
            let mapped = components.entry(component.clone());
            let mapped = mapped.or_insert_with(|| MappedComponent {
                project: index,
                stacks: BTreeMap::new(),
            });
            if mapped.project != index {
                return Err(same_name(&component, project, &projects[mapped.project]));
            }
            if let Some(other) = mapped.stacks.insert(environment, stack.clone()) {
                return Err(same_environment(project, &other, stack, environment));
            }
        }
        // A project without stacks is a component whose stacks are still to come.
        if !used && project.stacks.is_empty() {
            let mapped = MappedComponent {
                project: index,
                stacks: BTreeMap::new(),
            };
            if let Some(other) = components.insert(own.clone(), mapped) {
                return Err(same_name(&own, project, &projects[other.project]));
            }
        }
    }
    if wanted.is_empty() && mappings.is_empty() {
        sort_by_usual_promotion(&mut found);
    }
    let environments: Vec<_> = found.keys().copied().collect();
    if environments.is_empty() {
        return Err(
            refused("the projects have no stacks, so there is no environment")
                .with_help("name at least one: --environment test"),
        );
    }
    Ok(MappedProjects {
        components,
        environments,
        left_out,
    })
}

/// Where a stack goes; `None` when it stays behind.
fn place_of(
    project: &NamedProject,
    stack: &str,
    own: &ComponentName,
    mappings: &[StackMapping],
) -> Result<Option<(ComponentName, EnvironmentName)>> {
    if mappings.is_empty() {
        let environment = stack.parse::<EnvironmentName>().map_err(|error| {
            refused(format!("the stack {}/{stack}: {error}", project.name)).with_help(format!(
                "say which environment it is: --map {stack}=ENVIRONMENT"
            ))
        })?;
        return Ok(Some((own.clone(), environment)));
    }
    let mut meant = mappings
        .iter()
        .filter(|mapping| mapping.means(project, stack));
    // What names the project says more than what does not.
    let exact = meant.clone().find(|mapping| mapping.project.is_some());
    let chosen = exact.or_else(|| meant.next());
    Ok(chosen.map(|mapping| {
        let component = mapping.component.clone().unwrap_or_else(|| own.clone());
        (component, mapping.environment)
    }))
}

impl StackMapping {
    fn means(&self, project: &NamedProject, stack: &str) -> bool {
        let named = self.project.as_ref();
        self.stack == stack && named.is_none_or(|name| *name == project.name)
    }
}

/// A mapping that names its project may name a stack that is still to be made.
fn with_new_stacks(projects: &[NamedProject], mappings: &[StackMapping]) -> Vec<NamedProject> {
    let mut projects = projects.to_vec();
    for mapping in mappings {
        let named = mapping.project.as_ref();
        let project = projects
            .iter_mut()
            .find(|project| named == Some(&project.name));
        if let Some(project) = project {
            project.stacks.insert(mapping.stack.clone());
        }
    }
    projects
}

/// A mapping that means nothing is a slip of the pen.
fn require_used(projects: &[NamedProject], mappings: &[StackMapping]) -> Result<()> {
    for mapping in mappings {
        let used = projects.iter().any(|project| {
            project
                .stacks
                .iter()
                .any(|stack| mapping.means(project, stack))
        });
        let named = mapping.project.as_ref();
        let new = projects.iter().any(|project| named == Some(&project.name));
        if !used && !new {
            let stack = &mapping.stack;
            let stacks: BTreeSet<_> = projects.iter().flat_map(|p| &p.stacks).collect();
            let known = stacks.iter().map(|stack| stack.as_str());
            let near = nimbus_document::did_you_mean(stack, known.clone());
            let all = known.collect::<Vec<_>>().join(", ");
            return Err(refused(format!("no project has the stack `{stack}`"))
                .with_help(near.unwrap_or_else(|| format!("there are: {all}"))));
        }
    }
    Ok(())
}

/// The name of a project as one of a component.
fn component_name(project: &str) -> Result<ComponentName> {
    let mut name = String::new();
    for c in project.chars() {
        match c.to_ascii_lowercase() {
            c if c.is_ascii_lowercase() || c.is_ascii_digit() => name.push(c),
            _ if name.ends_with('-') => {}
            _ => name.push('-'),
        }
    }
    let first = name.find(|c: char| c.is_ascii_lowercase());
    let name = name.get(first.unwrap_or(0)..).unwrap_or_default();
    let name: String = name.chars().take(ComponentName::LONGEST).collect();
    nimbus_workspace::check_name(name.trim_end_matches('-')).map_err(|error| {
        refused(format!("the project {project}: {}", error.message()))
            .with_help(format!("give its component a name: --name {project}=NAME"))
    })
}

fn same_name(name: &ComponentName, one: &NamedProject, other: &NamedProject) -> Error {
    let message = format!(
        "the projects {} and {} would both be the component `{name}`",
        other.name, one.name
    );
    refused(message).with_help(format!("give one another name: --name {}=NAME", one.name))
}

fn same_environment(
    project: &NamedProject,
    one: &str,
    other: &str,
    environment: EnvironmentName,
) -> Error {
    let name = &project.name;
    refused(format!(
        "the stacks {one} and {other} of {name} would both be in {environment}"
    ))
    .with_help(format!(
        "make two components of them: --map {one}=NAME@{environment} --map {other}=NAME@{environment}"
    ))
}

pub(crate) fn refused(message: impl Into<String>) -> Error {
    Error::new(ErrorCode::ADOPTION_REFUSED, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn project(name: &str, stacks: &[&str]) -> NamedProject {
        NamedProject {
            name: name.to_owned(),
            component: None,
            stacks: stacks.iter().map(|stack| (*stack).to_owned()).collect(),
        }
    }

    fn maps(texts: &[&str]) -> Vec<StackMapping> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    fn shown(mapped: &MappedProjects) -> Vec<String> {
        let components = mapped.components.iter();
        components
            .flat_map(|(name, component)| {
                let stacks = component.stacks.iter();
                stacks.map(move |(environment, stack)| format!("{name}@{environment}={stack}"))
            })
            .collect()
    }

    #[test]
    fn stacks_are_environments_of_their_names_in_the_usual_order() {
        let projects = [
            project("Acme_Network", &["prod", "dev"]),
            project("app", &["dev"]),
        ];
        let mapped = map_projects(&projects, &[], &[]).unwrap();
        assert_eq!(mapped.environments, ["dev", "prod"]);
        let expected = [
            "acme-network@dev=dev",
            "acme-network@prod=prod",
            "app@dev=dev",
        ];
        assert_eq!(shown(&mapped), expected);
    }

    #[test]
    fn mappings_choose_stacks_name_environments_and_may_split_a_project() {
        let projects = [
            project("network", &["dev", "prod", "old"]),
            project("shop", &["base", "front"]),
        ];
        let texts = [
            "dev=test",
            "prod=live",
            "base=shop-base@test",
            "shop/front=shop-front@test",
        ];
        let mapped = map_projects(&projects, &maps(&texts), &[]).unwrap();
        assert_eq!(mapped.environments, ["test", "live"]);
        assert_eq!(mapped.left_out, ["network/old"]);
        let expected = [
            "network@live=prod",
            "network@test=dev",
            "shop-base@test=base",
            "shop-front@test=front",
        ];
        let mut found = shown(&mapped);
        found.sort();
        assert_eq!(found, expected);
    }

    #[test]
    fn what_cannot_be_told_apart_is_refused_with_a_way_out() {
        let two = [project("shop", &["base", "front"])];
        let error = map_projects(&two, &maps(&["base=test", "front=test"]), &[]).unwrap_err();
        assert!(
            error.help().unwrap().contains("base=NAME@test"),
            "{error:?}"
        );
        let new = [
            "base=b@test",
            "front=f@test",
            "shop/base-2=b@live",
            "shop/front-2=f@live",
        ];
        let mapped = map_projects(&two, &maps(&new), &[]).unwrap();
        assert_eq!(
            mapped.components["f"].stacks.len(),
            2,
            "a stack that is still to be made"
        );
        let error = map_projects(&two, &maps(&["bsae=test"]), &[]).unwrap_err();
        assert_eq!(error.help(), Some("did you mean `base`?"));
        let same = [project("net", &["a"]), project("Net", &["a"])];
        let error = map_projects(&same, &[], &[]).unwrap_err();
        assert!(
            error.message().contains("both be the component `net`"),
            "{error}"
        );
        let none = [project("net", &[])];
        assert!(map_projects(&none, &[], &[]).is_err());
        let test = "test".parse().unwrap();
        let mapped = map_projects(&none, &[], &[test]).unwrap();
        assert!(mapped.components["net"].stacks.is_empty());
        let odd = [project("net", &["Prod_EU"])];
        let error = map_projects(&odd, &[], &[]).unwrap_err();
        assert!(
            error.help().unwrap().contains("--map Prod_EU="),
            "{error:?}"
        );
    }
}
