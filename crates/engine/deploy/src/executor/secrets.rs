//! Outputs that must be kept secret.

use std::collections::HashSet;

use nimbus_engine_model::{PropertyValue, ResourceState};

/// Marks outputs that the resource names as secret, and those whose input of the same name is: a
/// provider may hand back what it was given. The id cannot be secret; whether it was asked for is
/// the answer.
pub(crate) fn mark_secret_outputs(state: &mut ResourceState) -> bool {
    let ResourceState {
        inputs,
        outputs,
        additional_secret_outputs,
        ..
    } = state;
    let secret_names: HashSet<&str> = additional_secret_outputs
        .iter()
        .map(String::as_str)
        .collect();
    for (key, value) in outputs.iter_mut() {
        let named = secret_names.contains(key.as_str()) && key != "id";
        let given = matches!(inputs.get(key), Some(PropertyValue::Secret(_)));
        if (named || given) && !matches!(value, PropertyValue::Secret(_)) {
            *value = PropertyValue::secret(std::mem::take(value));
        }
    }
    secret_names.contains("id")
}

#[cfg(test)]
mod tests {
    use nimbus_engine_model::Urn;

    use super::*;

    #[test]
    fn named_and_echoed_secrets_are_marked_and_the_id_is_not() {
        let mut state = ResourceState::new(Urn::root_stack("s", "p"), true);
        state
            .inputs
            .insert("password".to_owned(), PropertyValue::secret("x".into()));
        for key in ["password", "token", "id", "plain"] {
            state.outputs.insert(key.to_owned(), "x".into());
        }
        state.additional_secret_outputs = vec!["token".to_owned(), "id".to_owned()];
        assert!(mark_secret_outputs(&mut state));
        let secret = |key: &str| matches!(state.outputs[key], PropertyValue::Secret(_));
        assert!(secret("password") && secret("token"));
        assert!(!secret("id") && !secret("plain"));
    }
}
