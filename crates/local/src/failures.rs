//! What an operation did to which resource, and what kind of failure ended it: some undo a run by
//! themselves.

use std::collections::BTreeMap;
use std::sync::Arc;

use nimbus_core::{Error, ErrorCode};
use nimbus_engine_model::StepOp;
use nimbus_engine_ports::{EngineEvent, EventSink, Severity};
use nimbus_orchestrator::RollbackTrigger;
use parking_lot::Mutex;

/// Words by which clouds say that they allow no more of something.
const LIMIT_WORDS: &[&str] = &[
    "limitexceeded",
    "limit exceeded",
    "quotaexceeded",
    "quota exceeded",
    "servicequota",
    "toomany",
    "insufficientcapacity",
    "insufficientinstancecapacity",
    "exceeds the limit",
    "limit reached",
    "quota",
];

/// Passes events on and remembers what was done and what says why a unit failed.
pub(crate) struct FailureWatch {
    audience: Arc<dyn EventSink>,
    seen: Mutex<ObservedFailures>,
}

#[derive(Clone, Debug, Default)]
struct ObservedFailures {
    /// What is done to which resource.
    steps: BTreeMap<String, String>,
    failed_create: bool,
    limit: bool,
    corrupt: bool,
}

impl FailureWatch {
    pub(crate) fn new(audience: Arc<dyn EventSink>) -> Arc<Self> {
        Arc::new(Self {
            audience,
            seen: Mutex::default(),
        })
    }

    /// The trigger that a failure of this operation amounts to.
    pub(crate) fn trigger(&self, error: &Error) -> Option<RollbackTrigger> {
        let seen = self.seen.lock();
        let damaged = matches!(
            error.code(),
            ErrorCode::STATE_UNREADABLE
                | ErrorCode::STATE_BROKEN
                | ErrorCode::STATE_UNUSABLE
                | ErrorCode::JOURNAL_DAMAGED
                | ErrorCode::JOURNAL_BASE
        );
        if damaged || seen.corrupt {
            Some(RollbackTrigger::StateCorruption)
        } else if seen.limit {
            Some(RollbackTrigger::ServiceLimit)
        } else if seen.failed_create {
            Some(RollbackTrigger::Creation)
        } else {
            None
        }
    }
}

impl FailureWatch {
    /// What was done, or would be, to which resource.
    pub(crate) fn steps(&self) -> BTreeMap<String, String> {
        self.seen.lock().steps.clone()
    }
}

impl EventSink for FailureWatch {
    fn emit(&self, event: EngineEvent) {
        match &event {
            EngineEvent::ResourcePre { step, .. } if step.logical && step.op != StepOp::Same => {
                let (urn, op) = (step.urn.to_string(), step.op.to_string());
                self.seen.lock().steps.insert(urn, op);
            }
            EngineEvent::ResourceFailed { step, .. } => {
                let creates = matches!(
                    step.op,
                    StepOp::Create | StepOp::CreateReplacement | StepOp::Replace
                );
                self.seen.lock().failed_create |= creates;
            }
            EngineEvent::Diagnostic(said) if said.severity == Severity::Error => {
                self.seen.lock().limit |= names_a_limit(&said.message);
            }
            EngineEvent::Summary(summary) => self.seen.lock().corrupt |= summary.maybe_corrupt,
            _ => {}
        }
        self.audience.emit(event);
    }
}

fn names_a_limit(message: &str) -> bool {
    let message = message.to_ascii_lowercase();
    LIMIT_WORDS.iter().any(|word| message.contains(word))
}

#[cfg(test)]
mod tests {
    use nimbus_engine_ports::{Diagnostic, Summary};

    use super::*;

    struct Nobody;

    impl EventSink for Nobody {
        fn emit(&self, _: EngineEvent) {}
    }

    fn watch(events: impl IntoIterator<Item = EngineEvent>) -> Option<RollbackTrigger> {
        let watch = FailureWatch::new(Arc::new(Nobody));
        for event in events {
            watch.emit(event);
        }
        watch.trigger(&Error::new(ErrorCode::INTERNAL, "x"))
    }

    fn said(message: &str) -> EngineEvent {
        EngineEvent::Diagnostic(Diagnostic {
            severity: Severity::Error,
            urn: None,
            message: message.to_owned(),
            stream_id: 0,
            ephemeral: false,
        })
    }

    #[test]
    fn limits_and_damage_are_told_apart_from_other_failures() {
        assert_eq!(watch([said("the program threw")]), None);
        assert_eq!(
            watch([said("creating VPC: VpcLimitExceeded: the maximum number …")]),
            Some(RollbackTrigger::ServiceLimit)
        );
        let summary = EngineEvent::Summary(Summary {
            is_preview: false,
            duration: std::time::Duration::ZERO,
            changes: BTreeMap::new(),
            maybe_corrupt: true,
            succeeded: false,
            policy_packs: BTreeMap::new(),
        });
        assert_eq!(watch([summary]), Some(RollbackTrigger::StateCorruption));
        let watch = FailureWatch::new(Arc::new(Nobody));
        let broken = Error::new(ErrorCode::STATE_BROKEN, "x");
        assert_eq!(
            watch.trigger(&broken),
            Some(RollbackTrigger::StateCorruption)
        );
    }
}
