//! What a resolver is asked, for whom, and what it answers.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::definition::ResolverKind;
use crate::error::ResolverError;

/// A question with checked inputs. Equal questions of one unit have equal answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResolverQuestion {
    pub resolver: ResolverKind,
    pub inputs: Map<String, Value>,
}

impl ResolverQuestion {
    /// Refuses inputs that the resolver does not have or that are of another type.
    pub fn new(resolver: ResolverKind, inputs: Map<String, Value>) -> Result<Self, ResolverError> {
        resolver.definition().check(&inputs)?;
        Ok(Self { resolver, inputs })
    }

    /// From parameters such as `prefix_length=24`, as placeholders have them.
    pub fn from_texts(
        resolver: ResolverKind,
        parameters: &[String],
    ) -> Result<Self, ResolverError> {
        let mut inputs = Map::new();
        for parameter in parameters {
            let Some((name, text)) = parameter.split_once('=') else {
                let problem = "write a parameter as name=value";
                return Err(ResolverError::input(resolver, parameter, problem));
            };
            let value = resolver.definition().read(name, text)?;
            if inputs.insert(name.to_owned(), value).is_some() {
                return Err(ResolverError::input(resolver, name, "it is given twice"));
            }
        }
        Self::new(resolver, inputs)
    }

    /// Tells it from the other questions of its unit. The order of inputs makes no difference.
    pub fn key(&self) -> String {
        let ordered: BTreeMap<_, _> = self.inputs.iter().collect();
        let inputs = ordered.iter().map(|(name, value)| match value {
            Value::String(text) => format!("{name}={text}"),
            other => format!("{name}={other}"),
        });
        let inputs: Vec<_> = inputs.collect();
        format!("{}({})", self.resolver, inputs.join(", "))
    }

    pub(crate) fn text(&self, input: &str) -> Option<&str> {
        self.inputs.get(input).and_then(Value::as_str)
    }

    pub(crate) fn number(&self, input: &str) -> Option<i64> {
        self.inputs.get(input).and_then(Value::as_i64)
    }

    pub(crate) fn flag(&self, input: &str) -> Option<bool> {
        self.inputs.get(input).and_then(Value::as_bool)
    }
}

/// What is known of the unit that asks; parts of names come from here.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnitFacts {
    pub deployment: String,
    pub environment: String,
    pub component: String,
    pub organization: String,
    pub project: String,
    /// Empty where the environment has none.
    pub region: String,
}

/// Every output by name, of which one is usually taken.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ResolverAnswer {
    pub outputs: Map<String, Value>,
    /// The lease that it is held by; none where nothing was taken.
    pub lease: Option<Uuid>,
    /// Whether the lease was taken just now.
    pub fresh: bool,
    /// What is worth knowing, such as that an image is deprecated.
    pub notes: Vec<String>,
}

impl ResolverAnswer {
    /// An answer that takes nothing.
    pub fn looked_up(outputs: Map<String, Value>) -> Self {
        Self {
            outputs,
            lease: None,
            fresh: false,
            notes: Vec::new(),
        }
    }
}

/// Binds an input of a component to an output of a resolver.
///
/// In a contract it is `{"resolver": "ipam", "output": "cidr", "inputs": {"prefix_length": 24}}`. A value
/// of `inputs` that is `{"param": "size"}` is the value of that parameter. The short form of the founding
/// documents, the resolver's name alone, means its first output and no inputs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ResolverBinding {
    pub resolver: ResolverKind,
    pub output: String,
    pub inputs: Map<String, Value>,
}

/// Where an input of a resolver comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BoundInput<'a> {
    Value(&'a Value),
    /// Another parameter of the component.
    Parameter(&'a str),
}

impl ResolverBinding {
    /// Reads one and refuses what could never be answered.
    pub fn read(input: &str, value: &Value) -> Result<Self, ResolverError> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct WrittenQuestion {
            resolver: String,
            output: Option<String>,
            #[serde(default)]
            inputs: Map<String, Value>,
        }
        let written = match value {
            Value::String(name) => WrittenQuestion {
                resolver: name.clone(),
                output: None,
                inputs: Map::new(),
            },
            other => serde_json::from_value(other.clone()).map_err(|error| {
                ResolverError::Parameters(vec![format!("the binding of `{input}`: {error}")])
            })?,
        };
        let resolver: ResolverKind = written.resolver.parse()?;
        let definition = resolver.definition();
        let output = match written.output {
            Some(output) => definition.output(&output)?.name,
            None => definition.outputs.first().map_or("", |first| first.name),
        };
        let binding = Self {
            resolver,
            output: output.to_owned(),
            inputs: written.inputs,
        };
        // What is written is checked now; what comes from parameters when it is known.
        for (name, value) in &binding.inputs {
            match bound(value) {
                BoundInput::Value(value) => {
                    let alone = Map::from_iter([(name.clone(), value.clone())]);
                    let wrong = definition.check(&alone).err();
                    let about_it = |error: &ResolverError| matches!(error, ResolverError::Input { input, .. } if input == name);
                    if let Some(error) = wrong.filter(about_it) {
                        return Err(error);
                    }
                }
                BoundInput::Parameter(_) => {
                    let known = definition.inputs.iter().any(|field| field.name == name);
                    if !known {
                        let problem = "there is none";
                        return Err(ResolverError::input(resolver, name, problem));
                    }
                }
            }
        }
        Ok(binding)
    }

    /// Parameters that have to be known before it can be asked.
    pub fn parameters(&self) -> impl Iterator<Item = &str> {
        self.inputs.values().filter_map(|value| match bound(value) {
            BoundInput::Parameter(name) => Some(name),
            BoundInput::Value(_) => None,
        })
    }

    /// The question, with inputs that come from parameters filled in.
    pub fn question(
        &self,
        parameters: &Map<String, Value>,
    ) -> Result<ResolverQuestion, ResolverError> {
        let mut inputs = Map::new();
        for (name, value) in &self.inputs {
            let value = match bound(value) {
                BoundInput::Value(value) => value,
                BoundInput::Parameter(parameter) => {
                    parameters
                        .get(parameter)
                        .ok_or_else(|| ResolverError::Unresolved {
                            input: parameter.to_owned(),
                            problem: format!(
                                "the input `{name}` of the resolver {} comes from it",
                                self.resolver
                            ),
                        })?
                }
            };
            inputs.insert(name.clone(), value.clone());
        }
        ResolverQuestion::new(self.resolver, inputs)
    }
}

fn bound(value: &Value) -> BoundInput<'_> {
    match value.as_object() {
        Some(object) if object.len() == 1 => match object.get("param").and_then(Value::as_str) {
            Some(parameter) => BoundInput::Parameter(parameter),
            None => BoundInput::Value(value),
        },
        _ => BoundInput::Value(value),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(value: Value) -> Result<ResolverBinding, ResolverError> {
        ResolverBinding::read("ip_address", &value)
    }

    #[test]
    fn questions_are_told_apart_by_their_inputs_in_any_order() {
        let texts = |list: &[&str]| list.iter().map(ToString::to_string).collect::<Vec<_>>();
        let ask = |list: &[&str]| ResolverQuestion::from_texts(ResolverKind::Ipam, &texts(list));
        let one = ask(&["prefix_length=24", "label=a"]).unwrap();
        let other = ask(&["label=a", "prefix_length=24"]).unwrap();
        assert_eq!(one.key(), other.key());
        assert_eq!(one.key(), "ipam(label=a, prefix_length=24)");
        assert_ne!(
            one.key(),
            ask(&["prefix_length=24", "label=b"]).unwrap().key()
        );
        for (wrong, says) in [
            (vec!["prefix_length"], "name=value"),
            (vec!["prefix_length=24", "prefix_length=25"], "twice"),
            (vec!["vlan=3"], "there is none"),
        ] {
            let error = ask(&wrong).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
    }

    #[test]
    fn a_binding_names_resolver_output_and_inputs() {
        let short = read(json!("naming")).unwrap();
        assert_eq!(
            (short.resolver, short.output.as_str()),
            (ResolverKind::Naming, "name")
        );
        let long = json!({"resolver": "ipam", "output": "address",
            "inputs": {"allocation_type": "address", "parent_scope": {"param": "network"}}});
        let long = read(long).unwrap();
        assert_eq!(long.parameters().collect::<Vec<_>>(), ["network"]);
        let parameters = json!({"network": "hosts"});
        let question = long.question(parameters.as_object().unwrap()).unwrap();
        assert_eq!(
            question.key(),
            "ipam(allocation_type=address, parent_scope=hosts)"
        );
        let error = long.question(&Map::new()).unwrap_err();
        assert!(matches!(error, ResolverError::Unresolved { .. }), "{error}");
    }

    #[test]
    fn a_binding_that_can_never_be_answered_is_refused() {
        for (wrong, says) in [
            (json!("dns"), "no resolver `dns`"),
            (
                json!({"resolver": "ipam", "output": "vlan"}),
                "no output `vlan`",
            ),
            (
                json!({"resolver": "ipam", "inputs": {"size": 1}}),
                "there is none",
            ),
            (
                json!({"resolver": "ipam", "inputs": {"size": {"param": "x"}}}),
                "there is none",
            ),
            (
                json!({"resolver": "ipam", "inputs": {"prefix_length": "x"}}),
                "whole number",
            ),
            (
                json!({"resolver": "ipam", "outputs": "cidr"}),
                "unknown field",
            ),
            (json!(7), "invalid type"),
        ] {
            let error = read(wrong.clone()).unwrap_err().to_string();
            assert!(error.contains(says), "{wrong}: {error}");
        }
    }
}
