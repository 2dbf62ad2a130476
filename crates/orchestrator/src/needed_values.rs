//! Values that a run of an environment needs and only the outside has: secrets of the deployment, and variables.
//!
//! They are listed without being asked for, so that what is missing is found before the first unit starts and not when
//! the turn of the last one comes. A value with a default is not needed, and neither is one that only a default names.

use nimbus_core::{ComponentName, DeploymentId, EnvironmentName};
use serde_json::Value;

use crate::manifest::Manifest;
use crate::placeholder::{PlaceholderSource, TemplateText, TextPart};
use crate::resolve::secret_name;
use crate::spot::ManifestSpot;
use crate::validate::{FindingSeverity, ValidationFinding};

/// Something that has to be there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NeededValue {
    /// A secret of the deployment, by its name.
    Secret(String),
    /// A variable of the process that runs the deployment.
    Variable(String),
}

/// A needed value, and who needs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NeededInput {
    pub value: NeededValue,
    pub stack: ComponentName,
    pub environment: EnvironmentName,
    /// Keys, for people.
    pub place: String,
    pub spot: ManifestSpot,
}

impl NeededInput {
    /// What is said of one that is not there.
    pub fn missing(&self, deployment: &DeploymentId) -> ValidationFinding {
        let (environment, place) = (self.environment, &self.place);
        let (title, detail, help) = match &self.value {
            NeededValue::Secret(name) => (
                "Missing secret",
                format!("{place}: there is no secret `{name}` for {environment}"),
                format!(
                    "set it with `nimbus secret set {deployment} {name} --environment {environment}`"
                ),
            ),
            NeededValue::Variable(name) => (
                "Missing variable",
                format!("{place}: the variable {name} is not set"),
                format!(
                    "set {name} where the deployment is run, or give the placeholder a default"
                ),
            ),
        };
        ValidationFinding {
            severity: FindingSeverity::Error,
            title,
            detail,
            help,
            spot: Some(self.spot.clone()),
        }
    }
}

/// What the enabled stacks need in an environment, in the order in which it stands in the manifest.
pub fn needed_inputs(manifest: &Manifest, environment: EnvironmentName) -> Vec<NeededInput> {
    let mut found = Vec::new();
    for (stack, entry) in manifest.enabled() {
        for (key, value) in entry.config.get(&environment).into_iter().flatten() {
            let mut values = Vec::new();
            needed_in(value, &mut values);
            for (value, text) in values {
                let spot = ManifestSpot::config(stack, environment, key);
                found.push(NeededInput {
                    value,
                    stack: stack.clone(),
                    environment,
                    place: format!("spec.stacks.{stack}.config.{environment}.{key}"),
                    spot: match text {
                        Some(text) => spot.with_text(&text),
                        None => spot,
                    },
                });
            }
        }
    }
    found
}

/// Each with the placeholder that asks for it, if it is one.
fn needed_in(value: &Value, found: &mut Vec<(NeededValue, Option<String>)>) {
    match value {
        Value::Object(map) => match secret_name(map) {
            Some(name) => found.push((NeededValue::Secret(name.to_owned()), None)),
            None => map.values().for_each(|item| needed_in(item, found)),
        },
        Value::Array(items) => items.iter().for_each(|item| needed_in(item, found)),
        Value::String(text) => {
            // What is malformed is complained of by validation.
            if let Ok(template) = TemplateText::parse(text) {
                variables_of(&template, found);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn variables_of(template: &TemplateText, found: &mut Vec<(NeededValue, Option<String>)>) {
    for part in &template.parts {
        let TextPart::Placeholder(placeholder) = part else {
            continue;
        };
        for parameter in placeholder.parameters() {
            variables_of(parameter, found);
        }
        if let PlaceholderSource::Env { variable } = &placeholder.source
            && placeholder.default.is_none()
            && let Some(name) = variable.literal()
        {
            let value = NeededValue::Variable(name.to_owned());
            found.push((value, Some(placeholder.to_string())));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn needed(value: &Value) -> Vec<NeededValue> {
        let mut found = Vec::new();
        needed_in(value, &mut found);
        found.into_iter().map(|(value, _)| value).collect()
    }

    #[test]
    fn secrets_and_variables_are_found_wherever_they_stand() {
        let secret = |name: &str| NeededValue::Secret(name.to_owned());
        let variable = |name: &str| NeededValue::Variable(name.to_owned());
        assert_eq!(needed(&json!({"secret": "db"})), [secret("db")]);
        assert_eq!(needed(&json!([{"a": {"secret": "db"}}])), [secret("db")]);
        assert_eq!(
            needed(&json!("x{{RUNTIME:env:A}}-{{RUNTIME:env:B|secret}}")),
            [variable("A"), variable("B")]
        );
        let inside = json!("{{RUNTIME:calculate:hash:{{RUNTIME:env:A}}}}");
        assert_eq!(needed(&inside), [variable("A")]);
    }

    #[test]
    fn what_has_a_default_is_not_needed() {
        for text in [
            "{{RUNTIME:env:A|none}}",
            "{{RUNTIME:env:A|{{RUNTIME:env:B}}}}",
            "{{RUNTIME:network:vpcId}}",
            "plain",
        ] {
            assert_eq!(needed(&json!(text)), [], "{text}");
        }
    }
}
