//! A contract: what a component takes, what it gives, and which inputs a resolver answers.
//!
//! Schemas come from people that the server does not know. They are small, refer to nothing outside of
//! themselves, and their patterns are matched in linear time.

use std::collections::BTreeMap;

use jsonschema::{Draft, PatternOptions, Validator};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::expansion::{expanded_size, is_too_much};

/// The largest schema, as text.
const MOST_BYTES: usize = 128 * 1024;
/// How deep a schema may be.
const DEEPEST: usize = 24;
/// Inputs, or outputs, of one component.
const MOST_PROPERTIES: usize = 500;

/// What a component takes and gives.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ComponentContract {
    /// JSON Schema of an object: one property for each input.
    #[serde(default = "nothing")]
    pub inputs: Value,
    /// JSON Schema of an object: one property for each output.
    #[serde(default = "nothing")]
    pub outputs: Value,
    /// Inputs that a resolver answers.
    #[serde(default)]
    pub resolvers: BTreeMap<String, ContractBinding>,
}

/// Which resolver answers an input, and with which of its outputs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ContractBinding {
    pub resolver: String,
    pub output: String,
    /// What the resolver is asked with.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub inputs: Map<String, Value>,
}

/// What is wrong with a contract, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {message}")]
pub struct ContractProblem {
    pub place: String,
    pub message: String,
}

impl ContractProblem {
    fn new(place: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            place: place.into(),
            message: message.into(),
        }
    }
}

fn nothing() -> Value {
    serde_json::json!({"type": "object"})
}

impl Default for ComponentContract {
    fn default() -> Self {
        Self {
            inputs: nothing(),
            outputs: nothing(),
            resolvers: BTreeMap::new(),
        }
    }
}

impl ComponentContract {
    /// Everything that is wrong with it; empty for one that can be used.
    pub fn problems(&self) -> Vec<ContractProblem> {
        let mut problems = schema_problems("inputs", &self.inputs);
        problems.extend(schema_problems("outputs", &self.outputs));
        for (place, schema) in [("inputs", &self.inputs), ("outputs", &self.outputs)] {
            problems.extend(object_problems(place, schema));
        }
        for (input, binding) in &self.resolvers {
            problems.extend(self.binding_problem(input, binding));
        }
        if problems.is_empty() {
            problems.extend(self.bindings_problem());
        }
        problems
    }

    /// What is wrong with bindings together: parameters that there are not, and some that need each other.
    fn bindings_problem(&self) -> Option<ContractProblem> {
        let written = self.resolvers.iter();
        let written = written.map(|(input, binding)| (input.clone(), serde_json::json!(binding)));
        let bindings: Map<String, Value> = written.collect();
        let read = nimbus_resolvers::ParameterContract::read(&self.inputs, &bindings);
        let error = read.err()?;
        Some(ContractProblem::new("resolvers", error.to_string()))
    }

    fn binding_problem(&self, input: &str, binding: &ContractBinding) -> Option<ContractProblem> {
        let place = format!("resolvers.{input}");
        let Some(schema) = properties(&self.inputs).get(input) else {
            let message = format!("there is no input `{input}` for a resolver to answer");
            return Some(ContractProblem::new(place, message));
        };
        let written = serde_json::json!(binding);
        let read = match nimbus_resolvers::ResolverBinding::read(input, &written) {
            Ok(read) => read,
            Err(error) => return Some(ContractProblem::new(place, error.to_string())),
        };
        let outputs = read.resolver.definition().output_schema();
        let given = properties(&outputs).get(&read.output).map(types);
        let given = given.unwrap_or_default();
        let taken = types(schema);
        if taken.is_empty() || given.is_empty() || taken.iter().any(|one| given.contains(one)) {
            return None;
        }
        let message = format!(
            "the resolver gives a {}, and the input is a {}",
            given.join(" or "),
            taken.join(" or ")
        );
        Some(ContractProblem::new(place, message))
    }

    /// Names of inputs.
    pub fn input_names(&self) -> impl Iterator<Item = &str> {
        properties(&self.inputs).keys().map(String::as_str)
    }

    /// Names of outputs.
    pub fn output_names(&self) -> impl Iterator<Item = &str> {
        properties(&self.outputs).keys().map(String::as_str)
    }

    /// The schema of what somebody gives: inputs that a resolver answers need not be there.
    pub fn given_inputs(&self) -> Value {
        let mut schema = self.inputs.clone();
        if let Some(required) = schema.get_mut("required").and_then(Value::as_array_mut) {
            required.retain(|name| {
                name.as_str()
                    .is_none_or(|name| !self.resolvers.contains_key(name))
            });
        }
        schema
    }

    /// What is wrong with values for the inputs. Those that a resolver answers need not be there.
    pub fn input_problems(&self, values: &Map<String, Value>) -> Vec<ContractProblem> {
        let schema = self.given_inputs();
        value_problems("inputs", &schema, &Value::Object(values.clone()))
    }
}

/// The properties of a schema of an object.
pub(crate) fn properties(schema: &Value) -> &Map<String, Value> {
    static NONE: std::sync::LazyLock<Map<String, Value>> = std::sync::LazyLock::new(Map::new);
    schema
        .get("properties")
        .and_then(Value::as_object)
        .unwrap_or(&NONE)
}

/// Names that a schema of an object asks for.
pub(crate) fn required(schema: &Value) -> std::collections::BTreeSet<&str> {
    let names = schema.get("required").and_then(Value::as_array);
    names
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect()
}

/// Types that a schema names; any, where it names none.
pub(crate) fn types(schema: &Value) -> Vec<String> {
    match schema.get("type") {
        Some(Value::String(name)) => vec![name.clone()],
        Some(Value::Array(names)) => names
            .iter()
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect(),
        _ => Vec::new(),
    }
}

/// What keeps a JSON Schema from being used.
pub fn schema_problems(place: &str, schema: &Value) -> Vec<ContractProblem> {
    if !schema.is_object() {
        return vec![ContractProblem::new(place, "a schema is an object")];
    }
    if depth(schema) > DEEPEST || schema.to_string().len() > MOST_BYTES {
        let message =
            format!("it is deeper than {DEEPEST} or larger than {MOST_BYTES} bytes of JSON");
        return vec![ContractProblem::new(place, message)];
    }
    if let Some(address) = outside_reference(schema) {
        let message = format!("it refers to `{address}`; a schema refers to itself alone, with #");
        return vec![ContractProblem::new(place, message)];
    }
    if let Err(error) = expanded_size(schema) {
        return vec![ContractProblem::new(place, error.to_string())];
    }
    if let Err(error) = jsonschema::draft202012::meta::validate(schema) {
        let at = error.instance_path().to_string();
        let message = format!("this is no JSON Schema 2020-12: {error}");
        return vec![ContractProblem::new(format!("{place}{at}"), message)];
    }
    match validator(schema) {
        Ok(_) => Vec::new(),
        Err(message) => vec![ContractProblem::new(place, message)],
    }
}

/// What is wrong with a value, by a schema that was checked before.
pub fn value_problems(place: &str, schema: &Value, value: &Value) -> Vec<ContractProblem> {
    // One that was kept before its size was counted is not gone through either.
    match expanded_size(schema) {
        Err(error) => return vec![ContractProblem::new(place, error.to_string())],
        Ok(size) if is_too_much(size, value) => {
            let message = "this value and its schema are too large to be held to each other";
            return vec![ContractProblem::new(place, message)];
        }
        Ok(_) => {}
    }
    let validator = match validator(schema) {
        Ok(validator) => validator,
        Err(message) => return vec![ContractProblem::new(place, message)],
    };
    validator
        .iter_errors(value)
        .map(|error| {
            let path = error.instance_path().to_string().replace('/', ".");
            // The value itself may be a secret.
            let message = error.masked().to_string();
            ContractProblem::new(format!("{place}{path}"), message)
        })
        .collect()
}

fn validator(schema: &Value) -> Result<Validator, String> {
    jsonschema::options()
        .with_draft(Draft::Draft202012)
        // Patterns of strangers: never backtracking.
        .with_pattern_options(PatternOptions::regex())
        .build(schema)
        .map_err(|error| format!("it cannot be used: {error}"))
}

fn object_problems(place: &str, schema: &Value) -> Vec<ContractProblem> {
    let mut problems = Vec::new();
    if schema.get("type").and_then(Value::as_str) != Some("object") {
        problems.push(ContractProblem::new(place, "its `type` is `object`"));
    }
    let named = properties(schema);
    if named.len() > MOST_PROPERTIES {
        let message = format!("it has more than {MOST_PROPERTIES} properties");
        problems.push(ContractProblem::new(place, message));
    }
    for name in named.keys() {
        let valid = (1..=100).contains(&name.len())
            && name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"_-:.".contains(&byte));
        if !valid {
            let message = "a name has 1 to 100 letters, digits and _-:.";
            problems.push(ContractProblem::new(format!("{place}.{name}"), message));
        }
    }
    for name in required(schema) {
        if !named.contains_key(name) {
            let message = format!("it asks for `{name}`, which is none of its properties");
            problems.push(ContractProblem::new(place, message));
        }
    }
    problems
}

fn depth(value: &Value) -> usize {
    // Documents come from a reader that has a limit of its own.
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(entries) => 1 + entries.values().map(depth).max().unwrap_or(0),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

fn outside_reference(schema: &Value) -> Option<&str> {
    let mut open = vec![schema];
    while let Some(value) = open.pop() {
        match value {
            Value::Object(entries) => {
                for key in ["$ref", "$dynamicRef", "$id", "$schema"] {
                    let Some(address) = entries.get(key).and_then(Value::as_str) else {
                        continue;
                    };
                    let own = address.starts_with('#')
                        || key == "$schema"
                            && address == "https://json-schema.org/draft/2020-12/schema";
                    if !own {
                        return Some(address);
                    }
                }
                open.extend(entries.values());
            }
            Value::Array(items) => open.extend(items),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn contract(inputs: Value) -> ComponentContract {
        ComponentContract {
            inputs,
            ..ComponentContract::default()
        }
    }

    #[test]
    fn a_contract_is_made_of_schemas_of_objects() {
        let good = contract(json!({"type": "object", "required": ["size"],
            "properties": {"size": {"type": "integer", "minimum": 1}}}));
        assert_eq!(good.problems(), []);
        for (bad, word) in [
            (json!([]), "object"),
            (json!({"type": "string"}), "`type` is `object`"),
            (json!({"type": "objekt"}), "no JSON Schema"),
            (
                json!({"type": "object", "required": ["x"]}),
                "none of its properties",
            ),
            (
                json!({"type": "object", "properties": {"a b": {}}}),
                "letters",
            ),
            (
                json!({"type": "object", "properties": {"a": {"$ref": "https://evil.example/x.json"}}}),
                "refers to",
            ),
            (
                json!({"type": "object", "properties": {"a": {"pattern": "(?=x)"}}}),
                "inputs",
            ),
        ] {
            let problems = contract(bad.clone()).problems();
            assert!(
                problems.iter().any(|one| one.to_string().contains(word)),
                "{bad}: {problems:?}"
            );
        }
    }

    #[test]
    fn references_that_multiply_or_go_round_are_refused_before_anything_is_held_to_them() {
        let mut definitions = Map::new();
        for level in 0..13 {
            let next = json!({"$ref": format!("#/$defs/d{}", level + 1)});
            let four = json!({"allOf": [next, next, next, next]});
            definitions.insert(format!("d{level}"), four);
        }
        definitions.insert("d13".to_owned(), json!({"type": "object"}));
        let bomb =
            json!({"type": "object", "allOf": [{"$ref": "#/$defs/d0"}], "$defs": definitions});
        let problems = contract(bomb.clone()).problems();
        assert!(problems[0].message.contains("larger than"), "{problems:?}");
        // And one that is there already is not gone through.
        assert_eq!(value_problems("params", &bomb, &json!({})).len(), 1);
        let circle = json!({"type": "object", "properties": {"a": {"items": {"$ref": "#"}}}});
        let problems = contract(circle).problems();
        assert!(
            problems[0].message.contains("back to itself"),
            "{problems:?}"
        );
    }

    #[test]
    fn a_binding_names_an_input_a_resolver_and_an_output_that_fit() {
        let bound = |input: &str, resolver: &str, output: &str| {
            let mut one = contract(json!({"type": "object", "properties": {
                "ip_address": {"type": "string"}, "count": {"type": "integer"}}}));
            let binding = ContractBinding {
                resolver: resolver.to_owned(),
                output: output.to_owned(),
                inputs: Map::new(),
            };
            one.resolvers.insert(input.to_owned(), binding);
            one.problems()
        };
        assert_eq!(bound("ip_address", "ipam", "cidr"), []);
        for (problems, word) in [
            (bound("nothing", "ipam", "cidr"), "no input `nothing`"),
            (bound("ip_address", "oracle", "cidr"), "oracle"),
            (bound("ip_address", "ipam", "vlan"), "vlan"),
            (bound("count", "ipam", "cidr"), "gives a string"),
        ] {
            assert!(problems[0].message.contains(word), "{problems:?}");
        }
    }

    #[test]
    fn bindings_that_could_never_be_answered_are_refused() {
        let bound = |of: &str, other: &str| {
            let mut one = contract(json!({"type": "object", "properties": {
                "a": {"type": "string"}, "b": {"type": "string"}}}));
            for (input, needs) in [("a", of), ("b", other)] {
                let binding = ContractBinding {
                    resolver: "naming".to_owned(),
                    output: "name".to_owned(),
                    inputs: Map::from_iter([("resource_type".to_owned(), json!({"param": needs}))]),
                };
                one.resolvers.insert(input.to_owned(), binding);
            }
            one.problems()
        };
        assert!(bound("b", "a")[0].message.contains("need each other"));
        assert!(bound("nothing", "a")[0].message.contains("needs `nothing`"));
    }

    #[test]
    fn values_are_checked_without_repeating_them_and_without_what_a_resolver_answers() {
        let mut one = contract(json!({"type": "object", "additionalProperties": false,
            "required": ["name", "password"],
            "properties": {"name": {"type": "string"}, "password": {"type": "string", "minLength": 12}}}));
        one.resolvers.insert(
            "name".to_owned(),
            ContractBinding {
                resolver: "naming".to_owned(),
                output: "name".to_owned(),
                inputs: Map::new(),
            },
        );
        let values = |value: Value| value.as_object().cloned().unwrap_or_default();
        assert_eq!(
            one.input_problems(&values(json!({"password": "long enough it is"}))),
            []
        );
        let problems = one.input_problems(&values(json!({"password": "hunter2", "more": 1})));
        assert_eq!(problems.len(), 2, "{problems:?}");
        assert!(!format!("{problems:?}").contains("hunter2"));
    }
}
