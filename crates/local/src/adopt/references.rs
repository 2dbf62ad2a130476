//! Which project reads stacks of which other one. Pure.
//!
//! A recorded state says it for certain, configuration nearly so. Sources are only searched for
//! references to stacks and for names of projects beside them: what is found there is a proposal.

use std::collections::BTreeMap;

use nimbus_core::ComponentName;
use regex::Regex;

/// A component needs another, and what says so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdoptedEdge {
    pub from: ComponentName,
    pub needs: ComponentName,
    /// For people: where it was found.
    pub because: String,
}

/// What is known of one component's wishes.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReferenceHints {
    /// Names of stacks that recorded states refer to.
    pub(crate) recorded: Vec<String>,
    /// Texts of the configuration, with their keys.
    pub(crate) config: Vec<(String, String)>,
    /// Sources, by the name of the file.
    pub(crate) sources: Vec<(String, String)>,
}

/// A component as others refer to it.
#[derive(Clone, Debug)]
pub(crate) struct ReferenceTarget {
    pub(crate) component: ComponentName,
    /// Components of one project have the same sources.
    pub(crate) project: String,
    pub(crate) stacks: Vec<String>,
}

/// Every edge once, with the strongest reason.
pub(crate) fn edges(components: &[(ReferenceTarget, ReferenceHints)]) -> Vec<AdoptedEdge> {
    let mut found: BTreeMap<(ComponentName, ComponentName), String> = BTreeMap::new();
    for (own, hints) in components {
        for (other, _) in components {
            if other.component == own.component {
                continue;
            }
            let because = recorded(other, hints)
                .or_else(|| configured(own, other, hints))
                .or_else(|| written(own, other, hints));
            if let Some(because) = because {
                found.insert((own.component.clone(), other.component.clone()), because);
            }
        }
    }
    let edge = |((from, needs), because)| AdoptedEdge {
        from,
        needs,
        because,
    };
    found.into_iter().map(edge).collect()
}

fn recorded(other: &ReferenceTarget, hints: &ReferenceHints) -> Option<String> {
    let name = hints.recorded.iter().find(|name| names(name, other))?;
    Some(format!("its state has a reference to {name}"))
}

fn configured(
    own: &ReferenceTarget,
    other: &ReferenceTarget,
    hints: &ReferenceHints,
) -> Option<String> {
    let mut texts = hints.config.iter();
    let (key, text) = texts.find(|(_, text)| {
        text.contains('/') && names(text, other)
            // A bare name of a stack means one of the same project.
            || own.project == other.project && other.stacks.contains(text)
    })?;
    Some(format!("its configuration {key} is {text}"))
}

/// `organization/project/stack`, or `project/stack`.
fn names(text: &str, other: &ReferenceTarget) -> bool {
    let parts: Vec<&str> = text.split('/').collect();
    match parts[..] {
        [_, project, stack] | [project, stack] => {
            project == other.project && other.stacks.iter().any(|known| known == stack)
        }
        _ => false,
    }
}

fn written(
    own: &ReferenceTarget,
    other: &ReferenceTarget,
    hints: &ReferenceHints,
) -> Option<String> {
    // Both have these sources, so they cannot tell which of the two reads the other.
    if own.project == other.project {
        return None;
    }
    let project = regex::escape(&other.project);
    let pattern = Regex::new(&format!("(^|[/\"'`]){project}/")).ok()?;
    for (file, text) in &hints.sources {
        if !text.contains("StackReference") {
            continue;
        }
        let lines = text.lines().enumerate();
        let code = lines.filter(|(_, line)| !is_comment(line));
        let found = code.into_iter().find(|(_, line)| pattern.is_match(line));
        if let Some((index, _)) = found {
            return Some(format!("{file}:{} names {}", index + 1, other.project));
        }
    }
    None
}

fn is_comment(line: &str) -> bool {
    let line = line.trim_start();
    ["//", "#", "*", "/*"]
        .iter()
        .any(|start| line.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(component: &str, project: &str, stacks: &[&str]) -> ReferenceTarget {
        ReferenceTarget {
            component: component.parse().unwrap(),
            project: project.to_owned(),
            stacks: stacks.iter().map(|stack| (*stack).to_owned()).collect(),
        }
    }

    fn found(components: &[(ReferenceTarget, ReferenceHints)]) -> Vec<String> {
        let edges = edges(components).into_iter();
        edges
            .map(|edge| format!("{} -> {}: {}", edge.from, edge.needs, edge.because))
            .collect()
    }

    fn source(text: &str) -> ReferenceHints {
        ReferenceHints {
            sources: vec![("index.ts".to_owned(), text.to_owned())],
            ..ReferenceHints::default()
        }
    }

    #[test]
    fn sources_name_projects_beside_references_to_stacks() {
        let net = (
            target("net", "acme-net", &["dev"]),
            ReferenceHints::default(),
        );
        let with = |text: &str| {
            let app = (target("app", "app", &["dev"]), source(text));
            found(&[net.clone(), app])
        };
        let text = "const s = pulumi.getStack();\nnew StackReference(`acme/acme-net/${s}`);\n";
        assert_eq!(with(text), ["app -> net: index.ts:2 names acme-net"]);
        let python = "ref = pulumi.StackReference(\n    f\"{org}/acme-net/{stack}\")\n";
        assert_eq!(with(python).len(), 1);
        for nothing in [
            "import x from '../acme-net/lib';\n",
            "// new StackReference(`acme/acme-net/x`)\nnew StackReference(name)\n",
            "new StackReference(`acme/acme-network/x`)\n",
        ] {
            assert_eq!(with(nothing), Vec::<String>::new(), "{nothing}");
        }
    }

    #[test]
    fn states_and_configuration_say_it_for_stacks_of_one_project_too() {
        let base = (
            target("base", "shop", &["base"]),
            source("new StackReference(`o/shop/base`)"),
        );
        let front = |hints: ReferenceHints| (target("front", "shop", &["front"]), hints);
        let sources_alone = front(source("new StackReference(`o/shop/base`)"));
        assert!(found(&[base.clone(), sources_alone]).is_empty());
        let recorded = front(ReferenceHints {
            recorded: vec!["organization/shop/base".to_owned()],
            ..ReferenceHints::default()
        });
        let edges = found(&[base.clone(), recorded]);
        assert_eq!(
            edges,
            ["front -> base: its state has a reference to organization/shop/base"]
        );
        let configured = front(ReferenceHints {
            config: vec![("shop:upstream".to_owned(), "base".to_owned())],
            ..ReferenceHints::default()
        });
        assert_eq!(found(&[base, configured]).len(), 1);
    }
}
