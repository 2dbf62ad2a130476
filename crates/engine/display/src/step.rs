//! One step in detail: what happens to which resource, and which properties differ.

use std::collections::BTreeSet;

use nimbus_engine_model::{ProviderRef, ResourceState, StepOp};
use nimbus_engine_ports::StepEvent;

use crate::diff::{DiffNodes, LinePrefix, Renderer, Sides, TextLimits, detailed, hide, structural};
use crate::line::{StyledLine, Tone};
use crate::ops;
use crate::text::clean_name;

/// How much of a step is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum StepDetail {
    /// Long texts are cut and deleted resources are named only.
    #[default]
    Short,
    Full,
}

impl StepDetail {
    pub(crate) fn limits(self) -> TextLimits {
        match self {
            Self::Short => TextLimits::SHORT,
            Self::Full => TextLimits::NONE,
        }
    }
}

/// Where a step's new side comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// What the program wants.
    Program,
    /// What a refresh found.
    Refresh,
}

/// A step as it is shown by `--diff`: a heading, its identity and its differing properties.
pub fn step_lines(
    step: &StepEvent,
    depth: usize,
    basis: Basis,
    detail: StepDetail,
) -> Vec<StyledLine> {
    let mut lines = vec![heading(step, depth)];
    lines.extend(identity(step, depth + 1));
    lines.extend(body(step, depth + 1, basis, detail));
    lines
}

fn heading(step: &StepEvent, depth: usize) -> StyledLine {
    let tone = ops::tone(step.op);
    let mut line = StyledLine::of(Tone::Plain, "    ".repeat(depth));
    line.push(
        tone,
        format!(
            "{}{}: ({})",
            ops::symbol(step.op),
            clean_name(&step.type_),
            ops::planned(step.op)
        ),
    );
    if keeps_object(step) {
        line.push(Tone::Warning, " [retain]");
    }
    match protection(step) {
        Some((false, true)) => line.push(Tone::Info, " [protect]"),
        Some((true, true)) => line.push(Tone::Dim, " [protect]"),
        Some((true, false)) => line.push(Tone::Warning, " [unprotect]"),
        Some((false, false)) | None => {}
    }
    line
}

/// Whether the object stays in the world although the step removes it from state.
fn keeps_object(step: &StepEvent) -> bool {
    let removes = matches!(
        step.op,
        StepOp::Delete | StepOp::Replace | StepOp::CreateReplacement | StepOp::DeleteReplaced
    );
    removes && step.old.as_ref().is_some_and(|old| old.retain_on_delete)
}

/// Protection before and after; the side that does not exist counts as the other.
fn protection(step: &StepEvent) -> Option<(bool, bool)> {
    match (&step.old, &step.new) {
        (Some(old), Some(new)) => Some((old.protect, new.protect)),
        (Some(old), None) => Some((old.protect, old.protect)),
        (None, Some(new)) => Some((false, new.protect)),
        (None, None) => None,
    }
}

fn identity(step: &StepEvent, depth: usize) -> Vec<StyledLine> {
    let indent = "    ".repeat(depth);
    let mut lines = Vec::new();
    let mut fact = |name: &str, value: &str| {
        let text = format!("{indent}[{name}={}]", clean_name(value));
        lines.push(StyledLine::of(Tone::Dim, text));
    };
    if let Some(id) = step.old.as_ref().and_then(|old| old.id.as_deref()) {
        fact("id", id);
    }
    fact("urn", step.urn.as_str());
    if let Some(text) = provider_fact(step) {
        fact("provider", &text);
    }
    lines
}

/// The provider, where it changed or is not the one that everybody gets by default.
fn provider_fact(step: &StepEvent) -> Option<String> {
    let shown = |text: &str| match ProviderRef::parse(text) {
        Ok(reference) if reference.is_unknown() => format!("{}::[unknown]", reference.urn),
        _ => text.to_owned(),
    };
    if let (Some(old), Some(new)) = (&step.old, &step.new)
        && !old.provider.is_empty()
        && old.provider != new.provider
    {
        return Some(format!(
            "{} => {}",
            shown(&old.provider),
            shown(&new.provider)
        ));
    }
    let reference = ProviderRef::parse(&step.provider).ok()?;
    let by_default = reference.urn.name().starts_with("default");
    (!by_default).then(|| shown(&step.provider))
}

fn body(step: &StepEvent, depth: usize, basis: Basis, detail: StepDetail) -> Vec<StyledLine> {
    let mut renderer = Renderer::new(depth, detail.limits());
    match (step.old.as_deref(), step.new.as_deref()) {
        _ if step.op == StepOp::Same => {}
        (Some(old), Some(new)) => {
            let mut tree = differences(step, old, new, basis);
            let hidden = hide(&mut tree, &new.hide_diff);
            renderer.diff(&tree);
            if hidden > 0 {
                let mark = LinePrefix {
                    tone: Tone::Dim,
                    ..LinePrefix::NONE
                };
                renderer.line(mark, format!("({hidden} differences hidden)"), "");
            }
        }
        (None, Some(new)) => renderer.properties(&new.inputs, LinePrefix::NONE),
        (Some(old), None) if detail == StepDetail::Full => {
            renderer.properties(&old.inputs, LinePrefix::REMOVED);
        }
        (Some(_) | None, None) => {}
    }
    renderer.finish()
}

/// What differs, as the provider says or, where it does not, as both sides show.
pub(crate) fn differences(
    step: &StepEvent,
    old: &ResourceState,
    new: &ResourceState,
    basis: Basis,
) -> DiffNodes {
    if let Some(diffs) = step.detailed_diff.as_ref().filter(|d| !d.is_empty()) {
        let refreshed = basis == Basis::Refresh;
        let tree = detailed(
            diffs,
            &Sides {
                old,
                new,
                refreshed,
            },
        );
        if !tree.is_empty() {
            return tree;
        }
    }
    let mut tree = match basis {
        Basis::Program => structural(&old.inputs, &new.inputs),
        Basis::Refresh => structural(&old.outputs, &new.outputs),
    };
    if !step.changed_keys.is_empty() && basis == Basis::Program {
        let named: BTreeSet<&String> = step.changed_keys.iter().collect();
        let narrowed: DiffNodes = tree
            .iter()
            .filter(|(key, _)| named.contains(key))
            .map(|(key, node)| (key.clone(), node.clone()))
            .collect();
        if !narrowed.is_empty() {
            tree = narrowed;
        }
    }
    for key in &step.replace_keys {
        if let Some(node) = tree.get_mut(key) {
            node.forces_replacement = true;
        }
    }
    tree
}

/// The differing top-level keys in a few words, such as `~foo,+bar`.
pub(crate) fn key_summary(step: &StepEvent, basis: Basis) -> StyledLine {
    use crate::diff::PropertyChange;
    let (Some(old), Some(new)) = (step.old.as_deref(), step.new.as_deref()) else {
        return StyledLine::new();
    };
    let mut line = StyledLine::new();
    let mut tree = differences(step, old, new, basis);
    hide(&mut tree, &new.hide_diff);
    for (key, node) in tree {
        let mark = match node.change {
            PropertyChange::Added(_) => LinePrefix::ADDED,
            PropertyChange::Removed(_) => LinePrefix::REMOVED,
            PropertyChange::Set { .. } | PropertyChange::Object(_) | PropertyChange::Array(_) => {
                LinePrefix::CHANGED
            }
        };
        if !line.is_empty() {
            line.push(Tone::Plain, ",");
        }
        line.push(
            mark.tone,
            format!("{}{}", mark.symbol.trim(), clean_name(&key)),
        );
    }
    line
}
