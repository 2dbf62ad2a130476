//! What an operation did to which resource, and what kind of failure ended it: some undo a run by
//! themselves. That is decided by typed causes of failed steps, never by words in what was said.

use std::collections::BTreeMap;
use std::sync::Arc;

use nimbus_core::{Error, ErrorCode};
use nimbus_engine_model::StepOp;
use nimbus_engine_ports::{EngineEvent, EventSink, FailureCause, Severity};
use nimbus_orchestrator::RollbackTrigger;
use parking_lot::Mutex;

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
    /// Steps whose outcome nobody knows.
    unknown: bool,
    /// The first thing that was called an error.
    said: Option<String>,
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
        if damaged {
            Some(RollbackTrigger::StateCorruption)
        } else if seen.unknown {
            Some(RollbackTrigger::UnknownOutcome)
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
    /// The first thing that was called an error, in its own words.
    pub(crate) fn said(&self) -> Option<String> {
        self.seen.lock().said.clone()
    }

    /// What was done, or would be, to which resource.
    pub(crate) fn steps(&self) -> BTreeMap<String, String> {
        self.seen.lock().steps.clone()
    }
}

impl EventSink for FailureWatch {
    fn emit(&self, event: EngineEvent) {
        match &event {
            EngineEvent::Diagnostic(diagnostic) if diagnostic.severity == Severity::Error => {
                let mut seen = self.seen.lock();
                seen.said.get_or_insert_with(|| diagnostic.message.clone());
            }
            EngineEvent::ResourcePre { step, .. } if step.logical && step.op != StepOp::Same => {
                let (urn, op) = (step.urn.to_string(), step.op.to_string());
                self.seen.lock().steps.insert(urn, op);
            }
            EngineEvent::ResourceFailed { step, cause, .. } => {
                let creates = matches!(
                    step.op,
                    StepOp::Create | StepOp::CreateReplacement | StepOp::Replace
                );
                let mut seen = self.seen.lock();
                seen.failed_create |= creates;
                seen.limit |= *cause == FailureCause::ServiceLimit;
            }
            // In the protocol's words a state may be corrupt when an outcome is missing in it. The journal has it as
            // unknown, and it is looked up.
            EngineEvent::Summary(summary) => self.seen.lock().unknown |= summary.maybe_corrupt,
            _ => {}
        }
        self.audience.emit(event);
    }
}

#[cfg(test)]
mod tests {
    use nimbus_engine_ports::{Diagnostic, Severity, StepEvent, Summary};

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

    fn failed(op: StepOp, cause: FailureCause) -> EngineEvent {
        let urn = nimbus_engine_model::Urn::parse("urn:pulumi:dev::p::a:b:C::n").unwrap();
        let step = StepEvent {
            op,
            type_: urn.type_().into(),
            urn,
            provider: String::new(),
            old: None,
            new: None,
            replace_keys: Vec::new(),
            changed_keys: Vec::new(),
            detailed_diff: None,
            logical: true,
        };
        EngineEvent::ResourceFailed {
            step,
            planning: false,
            cause,
        }
    }

    #[test]
    fn words_undo_nothing() {
        for words in [
            "the quota of this team is described in quota.md",
            "limit reached",
            "QuotaExceeded",
        ] {
            assert_eq!(watch([said(words)]), None, "{words}");
            let events = [said(words), failed(StepOp::Update, FailureCause::Other)];
            assert_eq!(watch(events), None, "{words}");
        }
    }

    #[test]
    fn limits_and_damage_are_told_apart_from_other_failures() {
        assert_eq!(watch([said("the program threw")]), None);
        assert_eq!(
            watch([failed(StepOp::Update, FailureCause::ServiceLimit)]),
            Some(RollbackTrigger::ServiceLimit)
        );
        assert_eq!(
            watch([failed(StepOp::Update, FailureCause::Throttled)]),
            None
        );
        assert_eq!(
            watch([failed(StepOp::Create, FailureCause::Other)]),
            Some(RollbackTrigger::Creation)
        );
        let summary = EngineEvent::Summary(Summary {
            is_preview: false,
            duration: std::time::Duration::ZERO,
            changes: BTreeMap::new(),
            maybe_corrupt: true,
            succeeded: false,
            policy_packs: BTreeMap::new(),
        });
        let lost = [failed(StepOp::Create, FailureCause::Other), summary];
        assert_eq!(watch(lost), Some(RollbackTrigger::UnknownOutcome));
        let watch = FailureWatch::new(Arc::new(Nobody));
        let broken = Error::new(ErrorCode::STATE_BROKEN, "x");
        assert_eq!(
            watch.trigger(&broken),
            Some(RollbackTrigger::StateCorruption)
        );
    }
}
