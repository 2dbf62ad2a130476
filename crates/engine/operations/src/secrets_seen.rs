//! Secrets that an operation comes to know: of the state that it starts from, and of the resources that it registers.
//!
//! A program that prints one of them tells it to everybody who reads the log. What it prints before it has told the
//! engine that a value is secret cannot be known.

use std::sync::atomic::{AtomicUsize, Ordering};

use nimbus_engine_model::{PropertyValue, ResourceState};
use nimbus_engine_ports::EngineEvent;
use nimbus_telemetry::SecretSet;

/// More of them are not learned: each message is held against all of them.
const MOST: usize = 1_000;
/// Shorter ones stand in texts that have nothing to do with them.
const SHORTEST: usize = 6;
/// Nobody prints more than that by mistake, and it would be kept in fifteen forms.
const LONGEST: usize = 16 * 1024;

#[derive(Debug, Default)]
pub(crate) struct SecretsSeen {
    secrets: SecretSet,
    count: AtomicUsize,
}

impl SecretsSeen {
    /// What a resource marks as secret.
    pub(crate) fn learn(&self, resource: &ResourceState) {
        for value in resource.inputs.values().chain(resource.outputs.values()) {
            self.learn_value(value, false);
        }
    }

    fn learn_value(&self, value: &PropertyValue, secret: bool) {
        match value {
            PropertyValue::String(text) if secret => self.add(text),
            PropertyValue::Secret(inner) => self.learn_value(inner, true),
            PropertyValue::Output(output) => {
                let secret = secret || output.secret;
                value
                    .parts()
                    .for_each(|part| self.learn_value(part, secret));
            }
            other => other
                .parts()
                .for_each(|part| self.learn_value(part, secret)),
        }
    }

    fn add(&self, text: &str) {
        let fits = (SHORTEST..=LONGEST).contains(&text.trim().len());
        if fits && self.count.load(Ordering::Relaxed) < MOST && self.secrets.add(text) {
            self.count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The event, learned from, without any of the secrets in its words.
    pub(crate) fn message_without(&self, mut event: EngineEvent) -> EngineEvent {
        match &mut event {
            EngineEvent::Diagnostic(diagnostic) => {
                diagnostic.message = self.secrets.redact(&diagnostic.message).into_owned();
            }
            EngineEvent::PolicyViolation(violation) => {
                violation.message = self.secrets.redact(&violation.message).into_owned();
            }
            EngineEvent::ResourcePre { step, .. }
            | EngineEvent::ResourceOutputs { step, .. }
            | EngineEvent::ResourceFailed { step, .. } => {
                for state in step.old.iter().chain(&step.new) {
                    self.learn(state);
                }
            }
            _ => {}
        }
        event
    }
}

#[cfg(test)]
mod tests {
    use nimbus_engine_model::Urn;
    use nimbus_engine_ports::{Diagnostic, Severity};

    use super::*;

    fn said(seen: &SecretsSeen, text: &str) -> String {
        let event = seen.message_without(EngineEvent::Diagnostic(Diagnostic {
            severity: Severity::Info,
            urn: None,
            message: text.into(),
            stream_id: 0,
            ephemeral: false,
        }));
        match event {
            EngineEvent::Diagnostic(diagnostic) => diagnostic.message,
            other => panic!("the kind of event stays, got {other:?}"),
        }
    }

    #[test]
    fn what_a_resource_marks_as_secret_is_not_printed_any_more() {
        let seen = SecretsSeen::default();
        let mut state = ResourceState::new(Urn::new("s", "p", None, "a:b:C", "n"), true);
        let deep = PropertyValue::Array(vec!["deep-hidden-1".into()]);
        state
            .inputs
            .insert("a".into(), PropertyValue::secret("hidden-input".into()));
        state
            .outputs
            .insert("b".into(), PropertyValue::secret(deep));
        state.inputs.insert("c".into(), "open-value".into());
        state
            .inputs
            .insert("d".into(), PropertyValue::secret("dev".into()));
        seen.learn(&state);
        assert_eq!(
            said(&seen, "hidden-input deep-hidden-1 open-value dev"),
            "[secret] [secret] open-value dev"
        );
    }
}
