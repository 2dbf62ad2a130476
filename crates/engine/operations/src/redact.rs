//! Keeps known secrets out of everything that is shown or stored about an operation.
//!
//! Marked secrets are hidden by whoever shows them. This is for those that lost their mark: a
//! program that logs its password, a provider that quotes one in an error.

use std::borrow::Cow;
use std::sync::Arc;

use nimbus_engine_backend::project::ResolvedConfig;
use nimbus_engine_model::{Asset, PropertyMap, PropertyValue, ResourceState};
use nimbus_engine_ports::{EngineEvent, StepEvent};
use nimbus_telemetry::redact;

/// Makes a secret of the operation known, so that it is hidden wherever it turns up. Words that
/// stand in every text are no secrets, even if somebody marked them as such.
pub(crate) fn hide(secret: &str) {
    if !is_word(secret) {
        nimbus_telemetry::register_secret(secret);
    }
}

fn is_word(secret: &str) -> bool {
    matches!(secret.trim(), "true" | "false" | "null" | "yes" | "no")
}

/// Makes the secrets of a configuration known: the ones inside a value each for itself, because the
/// program takes the value apart, and the whole text as the program gets it.
pub(crate) fn hide_config(config: &ResolvedConfig) {
    secrets_of(config, &mut |text| hide(text));
}

/// Every secret of a configuration, as the program may come to have it. Texts of a secret structure
/// count each: the program takes it apart.
pub(crate) fn secrets_of(config: &ResolvedConfig, tell: &mut dyn FnMut(&str)) {
    let mut texts = |value: &PropertyValue| {
        value.walk(&mut |part| {
            if let Some(text) = part.as_str().filter(|text| !is_word(text)) {
                tell(text);
            }
        });
    };
    for value in config.properties.values() {
        value.walk(&mut |part| {
            if let PropertyValue::Secret(secret) = part {
                texts(secret);
            }
        });
    }
    for key in &config.secret_keys {
        let text = config.values.get(key).filter(|text| !is_word(text));
        text.into_iter().for_each(|text| tell(text));
    }
}

/// The event without any known secret.
pub(crate) fn redacted(event: EngineEvent) -> EngineEvent {
    match event {
        EngineEvent::Diagnostic(mut diagnostic) => {
            diagnostic.message = redact(&diagnostic.message).into_owned();
            EngineEvent::Diagnostic(diagnostic)
        }
        EngineEvent::PolicyViolation(mut violation) => {
            violation.message = redact(&violation.message).into_owned();
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
            before: map(&before),
            after: map(&after),
        },
        EngineEvent::ResourcePre { step, planning } => EngineEvent::ResourcePre {
            step: self::step(step),
            planning,
        },
        EngineEvent::ResourceOutputs { step, planning } => EngineEvent::ResourceOutputs {
            step: self::step(step),
            planning,
        },
        EngineEvent::ResourceFailed {
            step,
            planning,
            cause,
        } => EngineEvent::ResourceFailed {
            step: self::step(step),
            planning,
            cause,
        },
        other @ (EngineEvent::Prelude { .. }
        | EngineEvent::PolicyLoaded { .. }
        | EngineEvent::Summary(_)
        | EngineEvent::Cancelled) => other,
    }
}

fn step(mut step: StepEvent) -> StepEvent {
    step.old = step.old.map(state);
    step.new = step.new.map(state);
    step
}

/// States are large and rarely hold a bare secret, so they are copied only if they do.
fn state(state: Arc<ResourceState>) -> Arc<ResourceState> {
    if !state
        .inputs
        .values()
        .chain(state.outputs.values())
        .any(holds_secret)
    {
        return state;
    }
    Arc::new(ResourceState {
        inputs: map(&state.inputs),
        outputs: map(&state.outputs),
        ..(*state).clone()
    })
}

fn holds_secret(value: &PropertyValue) -> bool {
    match value {
        PropertyValue::String(text) | PropertyValue::Asset(Asset::Text { text, .. }) => {
            matches!(redact(text), Cow::Owned(_))
        }
        // Marked as secret, so nobody shows it.
        PropertyValue::Secret(_) => false,
        PropertyValue::Output(output) if output.secret => false,
        other => other.parts().any(holds_secret),
    }
}

fn map(map: &PropertyMap) -> PropertyMap {
    map.iter()
        .map(|(key, content)| (key.clone(), value(content)))
        .collect()
}

fn value(value: &PropertyValue) -> PropertyValue {
    if !holds_secret(value) {
        return value.clone();
    }
    match value {
        PropertyValue::String(text) => redact(text).into_owned().into(),
        PropertyValue::Array(items) => {
            PropertyValue::Array(items.iter().map(self::value).collect())
        }
        PropertyValue::Object(object) => map(object).into(),
        // Content with a secret in it is as good as a secret.
        other => PropertyValue::secret(other.clone()),
    }
}

#[cfg(test)]
mod tests {
    use nimbus_engine_backend::project::ConfigMap;
    use nimbus_engine_model::{StepOp, Urn};
    use nimbus_engine_ports::{Diagnostic, Severity};

    use super::*;

    fn message(text: &str) -> String {
        let event = redacted(EngineEvent::Diagnostic(Diagnostic {
            severity: Severity::Error,
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
    fn a_secret_inside_a_configured_value_is_hidden_by_itself() {
        let secret = PropertyValue::secret("nested-in-config".into());
        let list = PropertyValue::Array(vec!["open".into(), secret]);
        hide_config(&ResolvedConfig {
            encrypted: ConfigMap::default(),
            values: [(
                "p:list".to_owned(),
                r#"["open","nested-in-config"]"#.to_owned(),
            )]
            .into(),
            secret_keys: ["p:list".to_owned()].into(),
            properties: [("p:list".into(), list)].into_iter().collect(),
        });
        assert_eq!(message("got nested-in-config"), "got [secret]");
        assert_eq!(message("got open"), "got open");
    }

    #[test]
    fn secrets_are_replaced_in_messages_and_in_nested_values() {
        hide("hunter2-operations");
        assert_eq!(
            message("login hunter2-operations failed"),
            "login [secret] failed"
        );

        let url = "http://u:hunter2-operations@h".into();
        let inner: PropertyMap = [("url".to_owned(), url)].into();
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
        let text = format!(
            "{:?}",
            redacted(EngineEvent::ResourcePre {
                step,
                planning: false
            })
        );
        assert!(
            !text.contains("hunter2") && text.contains("http://u:[secret]@h"),
            "{text}"
        );
    }

    #[test]
    fn words_of_every_text_are_not_blotted_out() {
        for word in ["true", "false", "null"] {
            hide(word);
            assert_eq!(message(word), word);
        }
    }
}
