//! What a unit's engine says, as events of the run.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use jiff::Timestamp;
use nimbus_core::{ComponentName, printable};
use nimbus_engine_model::StepOp;
use nimbus_engine_ports::{EngineEvent, EventSink, Severity, StepEvent};
use nimbus_orchestrator::{DiagnosticLevel, ResourceStatus, RunEvent};
use nimbus_runs::{EventBus, timestamp};

use crate::changed_properties::changed_properties;

/// Hears one unit's engine.
pub(crate) struct UnitEventSink {
    unit: ComponentName,
    bus: Arc<EventBus>,
    begun: Mutex<HashMap<String, Instant>>,
}

impl UnitEventSink {
    pub(crate) fn new(unit: &ComponentName, bus: Arc<EventBus>) -> Self {
        Self {
            unit: unit.clone(),
            bus,
            begun: Mutex::default(),
        }
    }

    fn resource(&self, step: &StepEvent, status: ResourceStatus) {
        if step.op == StepOp::Same || !step.logical {
            return;
        }
        let urn = step.urn.to_string();
        let mut begun = self.begun.lock().unwrap_or_else(PoisonError::into_inner);
        let seconds = match status {
            ResourceStatus::Planned => None,
            ResourceStatus::Started => {
                begun.insert(urn.clone(), Instant::now());
                None
            }
            ResourceStatus::Done | ResourceStatus::Failed => {
                begun.remove(&urn).map(|at| at.elapsed().as_secs_f64())
            }
        };
        drop(begun);
        let state = step.new.as_ref().or(step.old.as_ref());
        self.bus.publish(RunEvent::Resource {
            at: timestamp(Timestamp::now()),
            unit: self.unit.clone(),
            status,
            op: step.op.to_string(),
            type_: step.type_.to_string(),
            name: step.urn.name().to_owned(),
            urn,
            id: state.and_then(|state| state.id.clone()),
            seconds: seconds.map(|s| (s * 1000.0).round() / 1000.0),
            properties: match status {
                ResourceStatus::Planned => changed_properties(step, true),
                ResourceStatus::Started => changed_properties(step, false),
                ResourceStatus::Done | ResourceStatus::Failed => Vec::new(),
            },
        });
    }
}

impl EventSink for UnitEventSink {
    fn emit(&self, event: EngineEvent) {
        match event {
            EngineEvent::ResourcePre { step, planning } => {
                let status = if planning {
                    ResourceStatus::Planned
                } else {
                    ResourceStatus::Started
                };
                self.resource(&step, status);
            }
            EngineEvent::ResourceOutputs { step, planning } if !planning => {
                self.resource(&step, ResourceStatus::Done);
            }
            EngineEvent::ResourceFailed { step, .. } => {
                self.resource(&step, ResourceStatus::Failed);
            }
            EngineEvent::Diagnostic(said) if !said.ephemeral => {
                let level = match said.severity {
                    Severity::Debug => return,
                    Severity::Info | Severity::Notice => DiagnosticLevel::Info,
                    Severity::Warning => DiagnosticLevel::Warning,
                    Severity::Error => DiagnosticLevel::Error,
                };
                self.bus.publish(RunEvent::Diagnostic {
                    at: timestamp(Timestamp::now()),
                    // What the engine itself says is of the run: programs talk much, and go to the log.
                    unit: (said.severity != Severity::Notice).then(|| self.unit.clone()),
                    level,
                    // Records and logs are read anywhere; colours of a program are for the terminal that it thought it had.
                    message: printable(said.message.trim_end()).into_owned(),
                });
            }
            EngineEvent::PolicyViolation(violation) => {
                self.bus.publish(RunEvent::Diagnostic {
                    at: timestamp(Timestamp::now()),
                    unit: Some(self.unit.clone()),
                    level: DiagnosticLevel::Warning,
                    message: format!("policy {}: {}", violation.policy, violation.message),
                });
            }
            _ => {}
        }
    }
}
