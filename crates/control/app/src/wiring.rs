//! Inputs that take other components' outputs, held to the contracts of both.

use std::collections::BTreeSet;

use nimbus_catalog::{ComponentContract, ComponentDefinition, ContractChanges, check_wiring};
use nimbus_control_store::ComponentUser;
use nimbus_core::{ComponentName, EnvironmentName, Error, ErrorCode};
use nimbus_orchestrator::{Manifest, TemplateText};
use serde_json::{Map, Value};

use crate::component_rows::contract_of;
use crate::deployments::read_manifest;
use crate::failure::{Failure, FieldProblem, Result};
use crate::governance::GovernedRun;
use crate::versions::ChosenVersions;

/// Whether a value is known only while a run goes on.
pub(crate) fn is_open(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains("{{RUNTIME:"),
        Value::Array(items) => items.iter().any(is_open),
        Value::Object(entries) => entries.values().any(is_open),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Refuses a run with an input that takes an output which is not there, or of another type. What neither side has a
/// contract for is not looked at.
pub(crate) fn check(run: &GovernedRun<'_>, versions: &ChosenVersions) -> Result<()> {
    let mut problems = Vec::new();
    for stack in run.stacks() {
        let Some(version) = versions.get(stack) else {
            continue;
        };
        let contract = contract_of(version)?;
        let config = run.config(stack)?;
        for (input, value) in &config {
            for wire in wires(value) {
                let Some(source) = versions.get(&wire.component) else {
                    continue;
                };
                let given = contract_of(source)?;
                let source = (wire.component.as_str(), &given);
                let whole = wire.whole;
                if let Some(problem) = check_wiring(&contract, input, source, &wire.output, whole) {
                    problems.push(FieldProblem {
                        field: format!("{stack}.{input}").into(),
                        message: problem.to_string(),
                    });
                }
            }
        }
    }
    if problems.is_empty() {
        return Ok(());
    }
    let words: Vec<String> = problems
        .iter()
        .map(|one| format!("{}: {}", one.field, one.message))
        .collect();
    let error = Error::new(ErrorCode::WIRING_INVALID, words.join("; "))
        .with_help("wire it to an output of the contract, or give a value");
    Err(Failure {
        details: problems,
        ..error.into()
    })
}

/// An output that an input takes.
struct TakenOutput {
    component: ComponentName,
    output: String,
    /// Whether the input is the output and nothing else.
    whole: bool,
}

fn wires(value: &Value) -> Vec<TakenOutput> {
    let mut found = Vec::new();
    let mut open = vec![(value, true)];
    while let Some((value, top)) = open.pop() {
        match value {
            Value::String(text) => {
                let Ok(template) = TemplateText::parse(text) else {
                    continue;
                };
                let single = template.single().is_some();
                for placeholder in template.placeholders() {
                    if let Some((component, Some(output))) = placeholder.reference()
                        && placeholder.default.is_none()
                    {
                        found.push(TakenOutput {
                            component: component.clone(),
                            // What is inside of an output has no name in the contract.
                            output: output.split('.').next().unwrap_or(output).to_owned(),
                            whole: top && single && !output.contains('.'),
                        });
                    }
                }
            }
            Value::Array(items) => open.extend(items.iter().map(|item| (item, false))),
            Value::Object(entries) => open.extend(entries.values().map(|item| (item, false))),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    found
}

/// Why somebody who uses a component could not take its new contract as they are.
pub(crate) fn broken_user(
    user: &ComponentUser,
    definition: &ComponentDefinition,
    changes: &ContractChanges,
) -> Option<FieldProblem> {
    let place = format!(
        "{}/{}/{}{}",
        user.tenant_name,
        user.deployment,
        user.environment,
        if user.rehearsal { " (rehearsal)" } else { "" }
    );
    let problem = |message: String| {
        Some(FieldProblem {
            field: place.clone().into(),
            message,
        })
    };
    let (Ok(manifest), Ok(environment), Ok(stack)) = (
        read_manifest(&user.manifest),
        user.environment.parse::<EnvironmentName>(),
        user.stack.parse::<ComponentName>(),
    ) else {
        return problem("its manifest cannot be read, so nobody can say".to_owned());
    };
    let values = match manifest.parameters_of(&stack, environment) {
        Ok(values) => values,
        Err(repeated) => return problem(repeated.to_string()),
    };
    let mut words = input_words(&definition.contract, &values);
    words.extend(broken_wires(&manifest, environment, &stack, changes));
    if words.is_empty() {
        return None;
    }
    problem(words.join("; "))
}

/// Stacks that take an output of another one which changes so that they break, or goes.
pub(crate) fn broken_wires(
    manifest: &Manifest,
    environment: EnvironmentName,
    stack: &ComponentName,
    changes: &ContractChanges,
) -> Vec<String> {
    let gone: BTreeSet<&str> = changes
        .breaking()
        .filter_map(|change| change.place.strip_prefix("outputs."))
        .collect();
    let mut words = Vec::new();
    for (other, entry) in manifest.enabled() {
        let config = entry.config.get(&environment).into_iter().flatten();
        for (input, value) in config {
            for wire in wires(value) {
                if wire.component == *stack && gone.contains(wire.output.as_str()) {
                    words.push(format!("{other}.{input} takes the output {}", wire.output));
                }
            }
        }
    }
    words
}

/// What is wrong with values under a contract. Those that are known later are held to what can be said of them now.
pub(crate) fn input_words(
    contract: &ComponentContract,
    values: &Map<String, Value>,
) -> Vec<String> {
    let open: BTreeSet<&String> = values
        .iter()
        .filter(|(_, value)| is_open(value))
        .map(|(key, _)| key)
        .collect();
    let known: Map<String, Value> = values
        .iter()
        .filter(|(key, _)| !open.contains(key))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    let mut contract = contract.clone();
    if let Some(required) = contract
        .inputs
        .get_mut("required")
        .and_then(Value::as_array_mut)
    {
        required.retain(|name| name.as_str().is_none_or(|name| !values.contains_key(name)));
    }
    let problems = contract.input_problems(&known);
    let mut words: Vec<String> = problems.iter().map(ToString::to_string).collect();
    // One that is known later still has to be an input.
    let closed = contract.inputs.get("additionalProperties") == Some(&Value::Bool(false));
    let names: BTreeSet<&str> = contract.input_names().collect();
    for key in open {
        if closed && !names.contains(key.as_str()) {
            words.push(format!("inputs.{key}: is gone"));
        }
    }
    words
}
