//! Events in a few words, for the tests of this crate.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use nimbus_engine_display::{DisplayState, DisplaySubject, StyledLine};
use nimbus_engine_model::{PropertyMap, PropertyValue, ResourceState, StepOp, Urn};
use nimbus_engine_ports::{
    Diagnostic, DiffKind, EngineEvent, PropertyDiff, Severity, StepEvent, Summary,
};

pub(crate) const STACK: &str = "dev";
pub(crate) const PROJECT: &str = "shop";

pub(crate) fn map<const N: usize>(pairs: [(&str, PropertyValue); N]) -> PropertyMap {
    pairs
        .into_iter()
        .map(|(key, value)| (key.to_owned(), value))
        .collect()
}

pub(crate) fn object<const N: usize>(pairs: [(&str, PropertyValue); N]) -> PropertyValue {
    map(pairs).into()
}

pub(crate) fn array<const N: usize>(items: [PropertyValue; N]) -> PropertyValue {
    items.to_vec().into()
}

pub(crate) fn secret(value: impl Into<PropertyValue>) -> PropertyValue {
    PropertyValue::secret(value.into())
}

pub(crate) fn urn(type_: &str, name: &str) -> Urn {
    Urn::new(STACK, PROJECT, None, type_, name)
}

pub(crate) fn root() -> Urn {
    Urn::root_stack(STACK, PROJECT)
}

/// A custom resource under the stack.
pub(crate) fn state(type_: &str, name: &str, inputs: PropertyMap) -> ResourceState {
    ResourceState {
        inputs,
        parent: Some(root()),
        ..ResourceState::new(urn(type_, name), true)
    }
}

pub(crate) fn step(
    op: StepOp,
    old: Option<ResourceState>,
    new: Option<ResourceState>,
) -> StepEvent {
    let any = new.as_ref().or(old.as_ref()).expect("a step has a side");
    StepEvent {
        op,
        urn: any.urn.clone(),
        type_: any.type_.clone(),
        provider: any.provider.clone(),
        old: old.map(Arc::new),
        new: new.map(Arc::new),
        replace_keys: Vec::new(),
        changed_keys: Vec::new(),
        detailed_diff: None,
        logical: true,
    }
}

pub(crate) fn detailed<const N: usize>(
    paths: [(&str, DiffKind); N],
) -> Option<BTreeMap<String, PropertyDiff>> {
    let entry = |(path, kind): (&str, DiffKind)| {
        let diff = PropertyDiff {
            kind,
            input_diff: true,
        };
        (path.to_owned(), diff)
    };
    Some(paths.into_iter().map(entry).collect())
}

pub(crate) fn pre(step: &StepEvent) -> EngineEvent {
    EngineEvent::ResourcePre {
        step: step.clone(),
        planning: false,
    }
}

pub(crate) fn outputs(step: &StepEvent) -> EngineEvent {
    EngineEvent::ResourceOutputs {
        step: step.clone(),
        planning: false,
    }
}

pub(crate) fn planned(step: &StepEvent) -> [EngineEvent; 2] {
    [
        EngineEvent::ResourcePre {
            step: step.clone(),
            planning: true,
        },
        EngineEvent::ResourceOutputs {
            step: step.clone(),
            planning: true,
        },
    ]
}

pub(crate) fn diagnostic(severity: Severity, urn: Option<Urn>, message: &str) -> EngineEvent {
    EngineEvent::Diagnostic(Diagnostic {
        severity,
        urn,
        message: message.to_owned(),
        stream_id: 0,
        ephemeral: false,
    })
}

pub(crate) fn summary<const N: usize>(
    is_preview: bool,
    changes: [(StepOp, usize); N],
) -> EngineEvent {
    EngineEvent::Summary(Summary {
        is_preview,
        duration: Duration::from_millis(3400),
        changes: changes.into(),
        maybe_corrupt: false,
        succeeded: true,
        policy_packs: BTreeMap::new(),
    })
}

pub(crate) fn display(title: &str) -> DisplayState {
    DisplayState::new(DisplaySubject {
        title: title.to_owned(),
        stack: STACK.to_owned(),
        project: PROJECT.to_owned(),
    })
}

pub(crate) fn plain(lines: &[StyledLine]) -> String {
    lines.iter().map(|line| line.plain() + "\n").collect()
}

pub(crate) fn marked(lines: &[StyledLine]) -> String {
    lines.iter().map(|line| line.marked() + "\n").collect()
}
