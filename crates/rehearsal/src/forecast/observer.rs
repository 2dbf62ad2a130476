//! Hears what engines tell and what the simulated cloud does, and keeps when it was.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use nimbus_engine_model::{ResourceState, Urn};
use nimbus_engine_ports::{Diagnostic, EngineEvent, EventSink, Severity, StepEvent};
use parking_lot::Mutex;

/// What each resource needs, by URN.
pub(super) type ResourceNeeds = BTreeMap<String, BTreeSet<String>>;

/// Shared by the engines of a run and the simulated cloud that they use.
#[derive(Clone, Default)]
pub struct Observer {
    seen: Arc<Mutex<ObservedRun>>,
}

#[derive(Default)]
pub(super) struct ObservedRun {
    pub(super) units: BTreeMap<String, UnitSeen>,
    pub(super) calls: Vec<CallSeen>,
}

/// One unit: what its engine told.
pub(super) struct UnitSeen {
    /// Not kept alive: an audience that is let go has shown everything.
    audience: Weak<dyn EventSink>,
    pub(super) resources: ResourceNeeds,
    /// When its operations began and ended.
    pub(super) operations: Vec<(Instant, Instant)>,
}

/// What a call is to the order of things.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallKind {
    /// A refresh looks at what is recorded.
    Look,
    Make,
    Delete,
}

#[derive(Clone, Debug)]
pub(super) struct CallSeen {
    pub(super) urn: String,
    pub(super) type_: String,
    pub(super) name: String,
    pub(super) kind: CallKind,
    pub(super) began: Instant,
    pub(super) ended: Instant,
    /// What it takes at the scale of one.
    pub(super) takes: Duration,
    /// Simulated time in it.
    pub(super) simulated: Duration,
}

impl Observer {
    /// Hears a unit's engine and passes everything on.
    pub fn listen(&self, unit: &str, audience: Arc<dyn EventSink>) -> Arc<dyn EventSink> {
        let mut seen = self.seen.lock();
        let weak = Arc::downgrade(&audience);
        let known = seen.units.entry(unit.to_owned()).or_insert(UnitSeen {
            audience: weak.clone(),
            resources: ResourceNeeds::new(),
            operations: Vec::new(),
        });
        known.audience = weak;
        Arc::new(ForwardingSink {
            unit: unit.to_owned(),
            observer: self.clone(),
            audience,
        })
    }

    pub(super) fn seen(&self) -> parking_lot::MutexGuard<'_, ObservedRun> {
        self.seen.lock()
    }

    pub(super) fn call(&self, call: CallSeen) {
        self.seen.lock().calls.push(call);
    }

    /// Says something about a resource to whoever watches its unit.
    pub(crate) fn warn(&self, urn: Option<&Urn>, message: String) {
        let Some(urn) = urn else { return };
        let seen = self.seen.lock();
        let mut units = seen.units.values();
        let unit = units.find(|unit| unit.resources.contains_key(urn.as_str()));
        let audience = unit.and_then(|unit| unit.audience.upgrade());
        drop(seen);
        if let Some(audience) = audience {
            audience.emit(EngineEvent::Diagnostic(Diagnostic {
                severity: Severity::Warning,
                urn: Some(urn.clone()),
                message,
                stream_id: 0,
                ephemeral: false,
            }));
        }
    }
}

struct ForwardingSink {
    unit: String,
    observer: Observer,
    audience: Arc<dyn EventSink>,
}

impl ForwardingSink {
    fn hear(&self, event: &EngineEvent) {
        let mut seen = self.observer.seen.lock();
        let Some(unit) = seen.units.get_mut(&self.unit) else {
            return;
        };
        match event {
            EngineEvent::ResourcePre { step, .. } | EngineEvent::ResourceOutputs { step, .. } => {
                let needs = unit.resources.entry(step.urn.to_string()).or_default();
                needs.extend(states(step).flat_map(needs_of));
            }
            EngineEvent::Summary(summary) => {
                let ended = Instant::now();
                let began = ended.checked_sub(summary.duration).unwrap_or(ended);
                unit.operations.push((began, ended));
            }
            _ => {}
        }
    }
}

impl EventSink for ForwardingSink {
    fn emit(&self, event: EngineEvent) {
        self.hear(&event);
        self.audience.emit(event);
    }
}

fn states(step: &StepEvent) -> impl Iterator<Item = &ResourceState> {
    step.old.iter().chain(&step.new).map(AsRef::as_ref)
}

fn needs_of(state: &ResourceState) -> impl Iterator<Item = String> {
    let listed = state.dependencies.iter();
    let listed = listed.chain(state.property_dependencies.values().flatten());
    let listed = listed.chain(&state.parent).map(ToString::to_string);
    let provider = state.provider.rsplit_once("::");
    listed.chain(provider.map(|(urn, _)| urn.to_owned()))
}
