//! What can be wrong with the configuration of a stack: its placeholders, and its values by the stack's schema.

use std::collections::BTreeSet;

use nimbus_core::{ComponentName, EnvironmentName};
use nimbus_resolvers::ResolverQuestion;
use serde_json::Value;

use super::{INVALID_CONFIGURATION, ValidationFinding, texts};
use crate::calculate;
use crate::manifest::Manifest;
use crate::parameters::own_parameter;
use crate::placeholder::{Placeholder, PlaceholderSource, TemplateText};
use crate::render::TemplateLibrary;
use crate::resolve::secret_name;
use crate::spot::ManifestSpot;

pub(super) fn config_of(
    stack: &ComponentName,
    environment: EnvironmentName,
    config: &serde_json::Map<String, Value>,
    manifest: &Manifest,
    library: &TemplateLibrary,
) -> Vec<ValidationFinding> {
    let mut findings = Vec::new();
    let mut has_placeholder = BTreeSet::new();
    for (key, value) in config {
        let place = format!("spec.stacks.{stack}.config.{environment}.{key}");
        let spot = ManifestSpot::config(stack, environment, key);
        if names_secret(value) {
            has_placeholder.insert(key.clone());
        }
        for text in texts(value) {
            match TemplateText::parse(text) {
                Err(error) => findings.push(
                    ValidationFinding::error(
                        "Malformed placeholder",
                        format!("{place}: {error}: {text}"),
                        "write {{RUNTIME:<type>:<parameters>}}; see the reference of placeholders",
                    )
                    .at(spot.clone().with_text(text)),
                ),
                Ok(template) => {
                    if !template.is_literal() {
                        has_placeholder.insert(key.clone());
                    }
                    for placeholder in template.placeholders() {
                        let found = reference(stack, placeholder, manifest, library)
                            .or_else(|| calculation(&place, placeholder))
                            .or_else(|| question(&place, placeholder));
                        let spot = spot.clone().with_text(&placeholder.to_string());
                        findings.extend(found.map(|finding| finding.at(spot)));
                    }
                }
            }
        }
    }
    let named = match manifest.parameters_of(stack, environment) {
        Ok(named) => named,
        Err(repeated) => {
            let place = format!("spec.stacks.{stack}.config.{environment}");
            findings.push(
                ValidationFinding::error(
                    INVALID_CONFIGURATION,
                    format!("{place}: {repeated}"),
                    "a key means the same with and without the program's name in front of it",
                )
                .at(ManifestSpot::config(stack, environment, &repeated.second)),
            );
            return findings;
        }
    };
    let namespace = manifest.namespace(stack);
    let later = has_placeholder.iter();
    let later = later.map(|key| own_parameter(namespace, key).unwrap_or(key).to_owned());
    let checked = UnitParameters {
        stack,
        environment,
        written: config,
        namespace,
        named,
    };
    findings.extend(parameters(&checked, &later.collect(), library));
    findings
}

fn reference(
    stack: &ComponentName,
    placeholder: &Placeholder,
    manifest: &Manifest,
    library: &TemplateLibrary,
) -> Option<ValidationFinding> {
    let (other, output) = placeholder.reference()?;
    let title = "Invalid cross-stack reference";
    // With a default, the stack need not be there; what is registered is still checked below.
    let may_be_missing = placeholder.default.is_some() && library.stacks.contains_key(other);
    if !manifest.stacks.contains_key(other) && !may_be_missing {
        return Some(ValidationFinding::error(
            title,
            format!("Stack '{stack}' references '{other}' but there is no such stack"),
            "use the name of a stack of this deployment, or aws, calculate or env",
        ));
    }
    let (output, template) = (output?, library.stacks.get(other)?);
    if template.outputs.is_empty() || template.outputs.contains_key(output) {
        return None;
    }
    let known = template.outputs.keys().map(String::as_str);
    let help = nimbus_document::did_you_mean(output, known.clone())
        .unwrap_or_else(|| format!("'{other}' has: {}", known.collect::<Vec<_>>().join(", ")));
    Some(ValidationFinding::error(
        title,
        format!("Stack '{stack}' references '{other}:{output}' but output does not exist"),
        help,
    ))
}

/// A question to a resolver that would be refused at run time, whatever is configured.
fn question(place: &str, placeholder: &Placeholder) -> Option<ValidationFinding> {
    let PlaceholderSource::Resolver {
        resolver,
        parameters,
        ..
    } = &placeholder.source
    else {
        return None;
    };
    let literal = |template: &TemplateText| template.is_literal().then(|| template.to_string());
    let parameters = parameters.iter().map(literal).collect::<Option<Vec<_>>>()?;
    let error = ResolverQuestion::from_texts(*resolver, &parameters).err()?;
    Some(ValidationFinding::error(
        "Invalid question to a resolver",
        format!("{place}: {error}"),
        "`nimbus resolver list` shows inputs and outputs of every resolver",
    ))
}

/// A calculation that would be refused at run time. One whose parameters are not known yet is
/// trusted.
fn calculation(place: &str, placeholder: &Placeholder) -> Option<ValidationFinding> {
    let PlaceholderSource::Calculate {
        function,
        parameters,
    } = &placeholder.source
    else {
        return None;
    };
    let literal = |template: &TemplateText| template.is_literal().then(|| template.to_string());
    let parameters = parameters.iter().map(literal).collect::<Option<Vec<_>>>()?;
    let error = calculate::check(function, &parameters).err()?;
    Some(ValidationFinding::error(
        "Invalid calculation",
        format!("{place}: {error}"),
        "correct the placeholder",
    ))
}

/// A unit's configuration, as it is written and by the names that a schema has.
struct UnitParameters<'a> {
    stack: &'a ComponentName,
    environment: EnvironmentName,
    written: &'a serde_json::Map<String, Value>,
    namespace: &'a str,
    named: serde_json::Map<String, Value>,
}

/// Checks values against the stack's schema. A value that is known only at run time is taken out,
/// and with it the demand that it be there.
fn parameters(
    unit: &UnitParameters<'_>,
    later: &BTreeSet<String>,
    library: &TemplateLibrary,
) -> Vec<ValidationFinding> {
    let (stack, environment) = (unit.stack, unit.environment);
    let Some(schema) = library
        .stacks
        .get(stack)
        .and_then(|t| t.parameters.as_ref())
    else {
        return Vec::new();
    };
    let mut schema = schema.clone();
    if let Some(required) = schema.get_mut("required").and_then(Value::as_array_mut) {
        required.retain(|key| key.as_str().is_none_or(|key| !later.contains(key)));
    }
    let known: serde_json::Map<_, _> = unit
        .named
        .iter()
        .filter(|(key, _)| !later.contains(*key))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    let place = format!("spec.stacks.{stack}.config.{environment}");
    let spot = |path: &str| {
        let key = path.trim_start_matches('.').split('.').next();
        let key = key.unwrap_or_default();
        let mut written = unit.written.keys();
        let spelled = written.find(|one| own_parameter(unit.namespace, one) == Some(key));
        ManifestSpot::config(stack, environment, spelled.map_or(key, String::as_str))
    };
    let validator = match jsonschema::validator_for(&schema) {
        Ok(validator) => validator,
        Err(error) => {
            return vec![ValidationFinding::error(
                "Invalid template",
                format!("`parameters` of stack '{stack}' is no JSON Schema: {error}"),
                format!("correct templates/config/{stack}.yaml"),
            )];
        }
    };
    validator
        .iter_errors(&Value::Object(known))
        .map(|error| {
            let path = error.instance_path().to_string().replace('/', ".");
            ValidationFinding::error(
                INVALID_CONFIGURATION,
                format!("{place}{path}: {error}"),
                format!(
                    "change it in the manifest; the rules are in templates/config/{stack}.yaml"
                ),
            )
            .at(spot(&path))
        })
        .collect()
}

/// Whether a value is, or has inside, a secret of the deployment, which is known only at run time.
fn names_secret(value: &Value) -> bool {
    match value {
        Value::Object(map) => secret_name(map).is_some() || map.values().any(names_secret),
        Value::Array(items) => items.iter().any(names_secret),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}
