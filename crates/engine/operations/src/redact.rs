//! Keeps known secrets out of everything that is shown or stored about an operation.
//!
//! Marked secrets are hidden by whoever shows them. This is for those that lost their mark: a
//! program that logs its password, a provider that quotes one in an error.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use nimbus_engine_model::{Archive, Asset, PropertyMap, PropertyValue, ResourceState};
use nimbus_engine_ports::{EngineEvent, StepEvent};
use secrecy::{ExposeSecret, SecretString};

const BLIND: &str = "[secret]";

/// Shorter secrets would blot out ordinary words and numbers.
const SHORTEST: usize = 4;

/// Replaces the secrets it knows. Without any it costs nothing.
#[derive(Clone, Default)]
pub struct Redactor {
    /// Longest first, so that a secret inside another does not leave the other's rest visible.
    secrets: Arc<Vec<SecretString>>,
}

impl Redactor {
    pub fn new(secrets: impl IntoIterator<Item = String>) -> Self {
        let mut secrets: Vec<String> = secrets
            .into_iter()
            .filter(|secret| secret.trim().len() >= SHORTEST)
            .filter(|secret| !matches!(secret.as_str(), "true" | "false" | "null"))
            .collect();
        secrets.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        secrets.dedup();
        let secrets = secrets.into_iter().map(SecretString::from).collect();
        Self {
            secrets: Arc::new(secrets),
        }
    }

    pub fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut text = Cow::Borrowed(text);
        for secret in self.secrets.iter() {
            if text.contains(secret.expose_secret()) {
                text = Cow::Owned(text.replace(secret.expose_secret(), BLIND));
            }
        }
        text
    }

    pub fn event(&self, event: EngineEvent) -> EngineEvent {
        if self.secrets.is_empty() {
            return event;
        }
        match event {
            EngineEvent::Diagnostic(mut diagnostic) => {
                diagnostic.message = self.text(&diagnostic.message).into_owned();
                EngineEvent::Diagnostic(diagnostic)
            }
            EngineEvent::PolicyViolation(mut violation) => {
                violation.message = self.text(&violation.message).into_owned();
                EngineEvent::PolicyViolation(violation)
            }
            EngineEvent::PolicyRemediation {
                urn,
                policy,
                pack,
                pack_version,
                before,
                after,
            } => EngineEvent::PolicyRemediation {
                urn,
                policy,
                pack,
                pack_version,
                before: self.map(&before),
                after: self.map(&after),
            },
            EngineEvent::ResourcePre { step, planning } => EngineEvent::ResourcePre {
                step: self.step(step),
                planning,
            },
            EngineEvent::ResourceOutputs { step, planning } => EngineEvent::ResourceOutputs {
                step: self.step(step),
                planning,
            },
            EngineEvent::ResourceFailed { step, planning } => EngineEvent::ResourceFailed {
                step: self.step(step),
                planning,
            },
            other @ (EngineEvent::Prelude { .. }
            | EngineEvent::PolicyLoaded { .. }
            | EngineEvent::Summary(_)
            | EngineEvent::Cancelled) => other,
        }
    }

    fn step(&self, mut step: StepEvent) -> StepEvent {
        step.old = step.old.map(|state| self.state(state));
        step.new = step.new.map(|state| self.state(state));
        step
    }

    /// States are large and rarely hold a bare secret, so they are copied only if they do.
    fn state(&self, state: Arc<ResourceState>) -> Arc<ResourceState> {
        let found = state.inputs.values().any(|value| self.is_in(value))
            || state.outputs.values().any(|value| self.is_in(value));
        if !found {
            return state;
        }
        Arc::new(ResourceState {
            inputs: self.map(&state.inputs),
            outputs: self.map(&state.outputs),
            ..(*state).clone()
        })
    }

    fn is_in(&self, value: &PropertyValue) -> bool {
        let is_in_text = |text: &str| {
            let mut secrets = self.secrets.iter();
            secrets.any(|secret| text.contains(secret.expose_secret()))
        };
        match value {
            PropertyValue::String(text) | PropertyValue::Asset(Asset::Text { text, .. }) => {
                is_in_text(text)
            }
            PropertyValue::Array(items) => items.iter().any(|item| self.is_in(item)),
            PropertyValue::Object(map) => map.values().any(|item| self.is_in(item)),
            PropertyValue::Archive(Archive::Assets { assets, .. }) => {
                assets.values().any(|item| self.is_in(item))
            }
            PropertyValue::Output(output) => {
                !output.secret && output.value.as_ref().is_some_and(|inner| self.is_in(inner))
            }
            PropertyValue::Null
            | PropertyValue::Bool(_)
            | PropertyValue::Number(_)
            | PropertyValue::Bytes(_)
            | PropertyValue::Asset(_)
            | PropertyValue::Archive(_)
            | PropertyValue::Secret(_)
            | PropertyValue::Computed
            | PropertyValue::ResourceReference(_) => false,
        }
    }

    fn map(&self, map: &PropertyMap) -> PropertyMap {
        map.iter()
            .map(|(key, value)| (key.clone(), self.value(value)))
            .collect::<BTreeMap<_, _>>()
    }

    fn value(&self, value: &PropertyValue) -> PropertyValue {
        if !self.is_in(value) {
            return value.clone();
        }
        match value {
            PropertyValue::String(text) => self.text(text).into_owned().into(),
            PropertyValue::Array(items) => {
                PropertyValue::Array(items.iter().map(|item| self.value(item)).collect())
            }
            PropertyValue::Object(map) => self.map(map).into(),
            // Content with a secret in it is as good as a secret.
            other => PropertyValue::secret(other.clone()),
        }
    }
}

impl std::fmt::Debug for Redactor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Redactor({} secrets)", self.secrets.len())
    }
}

#[cfg(test)]
mod tests {
    use nimbus_engine_model::{StepOp, Urn};
    use nimbus_engine_ports::{Diagnostic, Severity};

    use super::*;

    #[test]
    fn secrets_are_replaced_in_messages_and_in_nested_values() {
        let redactor = Redactor::new(["hunter22".to_owned(), "hunter2".to_owned()]);
        assert_eq!(
            redactor.text("pw=hunter22, hunter2!"),
            "pw=[secret], [secret]!"
        );
        let EngineEvent::Diagnostic(diagnostic) =
            redactor.event(EngineEvent::Diagnostic(Diagnostic {
                severity: Severity::Error,
                urn: None,
                message: "login hunter2 failed".into(),
                stream_id: 0,
                ephemeral: false,
            }))
        else {
            panic!("the kind of event stays");
        };
        assert_eq!(diagnostic.message, "login [secret] failed");

        let inner: PropertyMap = [("url".to_owned(), "http://u:hunter2@h".into())].into();
        let mut state = ResourceState::new(Urn::new("s", "p", None, "a:b:C", "n"), true);
        state
            .inputs
            .insert("list".into(), vec![inner.into()].into());
        let step = StepEvent {
            op: StepOp::Create,
            urn: state.urn.clone(),
            type_: state.type_.clone(),
            provider: String::new(),
            old: None,
            new: Some(Arc::new(state)),
            replace_keys: Vec::new(),
            changed_keys: Vec::new(),
            detailed_diff: None,
            logical: true,
        };
        let event = redactor.event(EngineEvent::ResourcePre {
            step,
            planning: false,
        });
        let text = format!("{event:?}");
        assert!(
            !text.contains("hunter2") && text.contains("http://u:[secret]@h"),
            "{text}"
        );
    }

    #[test]
    fn ordinary_words_are_no_secrets_and_the_list_is_not_printed() {
        let redactor = Redactor::new(["1".to_owned(), "true".to_owned(), "long-enough".to_owned()]);
        assert_eq!(redactor.text("true 1"), "true 1");
        assert_eq!(format!("{redactor:?}"), "Redactor(1 secrets)");
    }
}
