//! Text of steps and states for golden comparisons: short, stable, and readable in a diff.

use std::fmt::Write as _;

use nimbus_engine_model::{PropertyValue, ResourceState, Snapshot};
use nimbus_engine_ports::EngineEvent;

use crate::rig::RigRun;

/// One line for each announced, finished and failed step, and for each diagnostic.
pub fn render_steps(run: &RigRun) -> String {
    let mut text = String::new();
    for event in &run.events {
        let (phase, step) = match event {
            EngineEvent::ResourcePre { step, .. } => ("begin", step),
            EngineEvent::ResourceOutputs { step, .. } => ("  end", step),
            EngineEvent::ResourceFailed { step, .. } => (" FAIL", step),
            EngineEvent::Diagnostic(diagnostic) => {
                let _ = writeln!(
                    text,
                    "{:?}: {}",
                    diagnostic.severity,
                    diagnostic.message.trim()
                );
                continue;
            }
            _ => continue,
        };
        let keys = if step.replace_keys.is_empty() {
            String::new()
        } else {
            format!(" [{}]", step.replace_keys.join(", "))
        };
        let _ = writeln!(
            text,
            "{phase} {:<22} {}{keys}",
            step.op.as_str(),
            step.urn.name()
        );
    }
    text
}

/// One line for each resource, and one for each pending operation.
pub fn render_snapshot(snapshot: &Snapshot) -> String {
    let mut text = String::new();
    for resource in &snapshot.resources {
        let _ = writeln!(text, "{}", resource_line(resource));
    }
    for pending in &snapshot.pending_operations {
        let _ = writeln!(
            text,
            "pending {:?} {}",
            pending.kind,
            pending.resource.urn.name()
        );
    }
    text
}

fn resource_line(resource: &ResourceState) -> String {
    let mut line = resource.urn.name().to_owned();
    if let Some(id) = &resource.id {
        let _ = write!(line, " id={id}");
    }
    for (key, value) in &resource.inputs {
        let _ = write!(line, " {key}={}", short(value));
    }
    let flags = [
        (resource.delete, "delete"),
        (resource.pending_replacement, "pending-replacement"),
        (resource.protect, "protect"),
        (resource.external, "external"),
        (!resource.init_errors.is_empty(), "init-errors"),
        (resource.taint, "taint"),
    ];
    for (set, name) in flags {
        if set {
            let _ = write!(line, " +{name}");
        }
    }
    line
}

fn short(value: &PropertyValue) -> String {
    match value {
        PropertyValue::String(text) => text.clone(),
        PropertyValue::Computed => "?".to_owned(),
        PropertyValue::Secret(inner) => format!("secret({})", short(inner)),
        PropertyValue::Number(number) => number.to_string(),
        PropertyValue::Bool(value) => value.to_string(),
        other => format!("{other:?}"),
    }
}
