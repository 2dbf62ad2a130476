//! The pre-resolution pipeline: what a component's program is given.
//!
//! In this order, as the founding documents have it: defaults of the input schema; the user's values
//! over them; the answers of resolvers for bound inputs over both; then everything is validated against
//! the schema and the rules of governance; what comes out has no unknowns. A program never asks back.
//! When anything fails, what was leased on the way is given back.
//!
//! A preview may be given what is known only later: outputs of units that are not there yet. What depends on it
//! stays unknown, is in no rule, and nothing is asked or leased for it.

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use jsonschema::{Draft, PatternOptions};
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::definition::ResolverKind;
use crate::error::ResolverError;
use crate::question::{ResolverAnswer, ResolverBinding, ResolverQuestion};

/// Answers for one unit. Every call asks the live service; nothing is cached.
#[async_trait]
pub trait ResolverService: Send + Sync {
    async fn answer(&self, question: &ResolverQuestion) -> Result<ResolverAnswer, ResolverError>;
    /// Takes leases back that were taken for nothing.
    async fn give_back(&self, leases: &[Uuid]) -> Result<(), ResolverError>;
}

/// Rules besides the schema, such as those of governance: what is wrong, in words that name the rule and
/// its owner. What is unknown is not among the parameters; only a preview has any.
pub trait ParameterCheck: Send + Sync {
    fn problems(&self, parameters: &Map<String, Value>, unknown: &BTreeSet<String>) -> Vec<String>;
}

/// What the user gives for the inputs of a component.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GivenParameters {
    pub values: Map<String, Value>,
    /// Inputs that have a value only later.
    pub unknown: BTreeSet<String>,
    /// Inputs that nobody may see.
    pub secret: BTreeSet<String>,
}

/// What a component says about its inputs, checked.
#[derive(Clone, Debug)]
pub struct ParameterContract {
    schema: Value,
    bindings: BTreeMap<String, ResolverBinding>,
    /// Bound inputs, each after those that its own question needs.
    order: Vec<String>,
}

/// Where a value came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ParameterOrigin {
    Default,
    User,
    Resolver {
        resolver: ResolverKind,
        output: String,
        lease: Option<Uuid>,
        /// A value of the user's was in its place.
        replaced: bool,
    },
}

/// The whole set, without unknowns unless some were given.
#[derive(Clone, Debug, PartialEq)]
pub struct ResolvedParameters {
    pub values: Map<String, Value>,
    /// Inputs that have a value only later.
    pub unknown: BTreeSet<String>,
    pub origins: BTreeMap<String, ParameterOrigin>,
    /// Inputs that nobody may see.
    pub secret: BTreeSet<String>,
    pub notes: Vec<String>,
}

/// Makes parameters through a service and the checks that hold for them.
pub struct ParameterResolver<'a> {
    pub service: &'a dyn ResolverService,
    pub checks: Vec<&'a dyn ParameterCheck>,
}

impl ParameterContract {
    /// Reads a component's input schema and bindings, and refuses bindings of inputs that there are not,
    /// to resolvers or outputs that there are not, and in a circle.
    pub fn read(schema: &Value, bindings: &Map<String, Value>) -> Result<Self, ResolverError> {
        let properties = schema.get("properties").and_then(Value::as_object);
        let mut read = BTreeMap::new();
        for (input, value) in bindings {
            let known = properties.is_some_and(|properties| properties.contains_key(input));
            if !known {
                return Err(ResolverError::Parameters(vec![format!(
                    "`{input}` is bound to a resolver and is no input of the component"
                )]));
            }
            let binding = ResolverBinding::read(input, value)?;
            for parameter in binding.parameters() {
                if !properties.is_some_and(|properties| properties.contains_key(parameter)) {
                    return Err(ResolverError::Parameters(vec![format!(
                        "the binding of `{input}` needs `{parameter}`, which is no input"
                    )]));
                }
            }
            read.insert(input.clone(), binding);
        }
        Ok(Self {
            order: order(&read)?,
            schema: schema.clone(),
            bindings: read,
        })
    }

    /// Whether any input is answered by a resolver.
    pub fn is_bound(&self) -> bool {
        !self.bindings.is_empty()
    }

    fn defaults(&self) -> impl Iterator<Item = (&String, &Value)> {
        let properties = self.schema.get("properties").and_then(Value::as_object);
        let properties = properties.into_iter().flatten();
        properties.filter_map(|(name, property)| Some((name, property.get("default")?)))
    }

    /// What is wrong with the whole set, each with where it is. What is not known yet is not asked for.
    fn problems(&self, values: &Map<String, Value>, unknown: &BTreeSet<String>) -> Vec<String> {
        let mut schema = self.schema.clone();
        if let Some(required) = schema.get_mut("required").and_then(Value::as_array_mut) {
            required.retain(|name| name.as_str().is_none_or(|name| !unknown.contains(name)));
        }
        let validator = jsonschema::options()
            .with_draft(Draft::Draft202012)
            // Patterns of strangers: never backtracking.
            .with_pattern_options(PatternOptions::regex())
            .build(&schema);
        let validator = match validator {
            Ok(validator) => validator,
            Err(error) => return vec![format!("the input schema is not one: {error}")],
        };
        let known = values.iter().map(|(name, value)| {
            let value = self.typed(name, value);
            (name.clone(), value)
        });
        let instance = Value::Object(known.collect());
        let errors = validator.iter_errors(&instance);
        let told = errors.map(|error| match error.instance_path().to_string() {
            place if place.is_empty() => error.masked().to_string(),
            // Masked: a value may be secret.
            place => format!("{}: {}", place.trim_start_matches('/'), error.masked()),
        });
        told.collect()
    }

    /// Configuration is text: a number or a flag that came out of a placeholder is held to its type all the same.
    fn typed(&self, name: &str, value: &Value) -> Value {
        let property = self.schema.get("properties").and_then(|all| all.get(name));
        let wanted = property.and_then(|one| one.get("type"));
        match (wanted.and_then(Value::as_str), value) {
            (Some("integer" | "number" | "boolean"), Value::String(text)) => {
                let read = serde_json::from_str::<Value>(text).ok();
                let read = read.filter(|one| one.is_number() || one.is_boolean());
                read.unwrap_or_else(|| value.clone())
            }
            _ => value.clone(),
        }
    }
}

fn order(bindings: &BTreeMap<String, ResolverBinding>) -> Result<Vec<String>, ResolverError> {
    let mut order: Vec<String> = Vec::new();
    while order.len() < bindings.len() {
        let waits = |binding: &ResolverBinding| {
            let mut needs = binding.parameters();
            needs.any(|need| bindings.contains_key(need) && !order.iter().any(|one| one == need))
        };
        let next = bindings
            .iter()
            .find(|(input, binding)| !order.contains(input) && !waits(binding));
        match next {
            Some((input, _)) => order.push(input.clone()),
            None => {
                let left = bindings.keys().filter(|input| !order.contains(input));
                let left: Vec<_> = left.map(String::as_str).collect();
                return Err(ResolverError::Parameters(vec![format!(
                    "the bindings of {} need each other",
                    left.join(", ")
                )]));
            }
        }
    }
    Ok(order)
}

impl ParameterResolver<'_> {
    /// The parameters of a component.
    pub async fn resolve(
        &self,
        contract: &ParameterContract,
        given: &GivenParameters,
    ) -> Result<ResolvedParameters, ResolverError> {
        let mut fresh = Vec::new();
        let resolved = self.resolve_taking(contract, given, &mut fresh).await;
        if resolved.is_err() && !fresh.is_empty() {
            // What went wrong first is what is told; a lease that stays behind ends with its plan.
            let _ = self.service.give_back(&fresh).await;
        }
        resolved
    }

    async fn resolve_taking(
        &self,
        contract: &ParameterContract,
        given: &GivenParameters,
        fresh: &mut Vec<Uuid>,
    ) -> Result<ResolvedParameters, ResolverError> {
        let mut resolved = ResolvedParameters {
            values: Map::new(),
            unknown: given.unknown.clone(),
            origins: BTreeMap::new(),
            secret: given.secret.clone(),
            notes: Vec::new(),
        };
        for (name, value) in contract.defaults() {
            // What somebody gives, though nobody knows it yet, stands before a default.
            if !given.unknown.contains(name) {
                resolved.set(name, value.clone(), ParameterOrigin::Default);
            }
        }
        for (name, value) in &given.values {
            resolved.set(name, value.clone(), ParameterOrigin::User);
        }
        for input in &contract.order {
            let binding = &contract.bindings[input];
            self.bind(input, binding, given, &mut resolved, fresh)
                .await?;
        }
        let mut problems = contract.problems(&resolved.values, &resolved.unknown);
        for check in &self.checks {
            problems.extend(check.problems(&resolved.values, &resolved.unknown));
        }
        if problems.is_empty() {
            Ok(resolved)
        } else {
            Err(ResolverError::Parameters(problems))
        }
    }

    /// Lets a resolver answer an input, whatever was given for it.
    async fn bind(
        &self,
        input: &str,
        binding: &ResolverBinding,
        given: &GivenParameters,
        resolved: &mut ResolvedParameters,
        fresh: &mut Vec<Uuid>,
    ) -> Result<(), ResolverError> {
        // What is asked is the key of a lease: lists, plans and events show it.
        if let Some(hidden) = binding
            .parameters()
            .find(|one| resolved.secret.contains(*one))
        {
            return Err(ResolverError::Parameters(vec![format!(
                "the binding of `{input}` needs `{hidden}`, which is secret, and what a resolver is asked is shown"
            )]));
        }
        resolved.forget(input);
        if binding
            .parameters()
            .any(|one| resolved.unknown.contains(one))
        {
            resolved.unknown.insert(input.to_owned());
            return Ok(());
        }
        let question = binding.question(&resolved.values)?;
        let answer = self.service.answer(&question).await?;
        if answer.fresh {
            fresh.extend(answer.lease);
        }
        resolved.notes.extend(answer.notes);
        let value = answer.outputs.get(&binding.output);
        let value = value.filter(|value| !value.is_null()).cloned();
        let value = value.ok_or_else(|| ResolverError::Unresolved {
            input: input.to_owned(),
            problem: format!(
                "the resolver {} has no {} in its answer",
                binding.resolver, binding.output
            ),
        })?;
        let output = binding.resolver.definition().output(&binding.output)?;
        if output.secret {
            resolved.secret.insert(input.to_owned());
        }
        let origin = ParameterOrigin::Resolver {
            resolver: binding.resolver,
            output: binding.output.clone(),
            lease: answer.lease,
            replaced: given.values.contains_key(input),
        };
        resolved.set(input, value, origin);
        Ok(())
    }
}

impl ResolvedParameters {
    fn set(&mut self, input: &str, value: Value, origin: ParameterOrigin) {
        self.values.insert(input.to_owned(), value);
        self.origins.insert(input.to_owned(), origin);
    }

    /// As if nobody had given anything for it.
    fn forget(&mut self, input: &str) {
        self.values.remove(input);
        self.origins.remove(input);
        self.unknown.remove(input);
        self.secret.remove(input);
    }
}

#[cfg(test)]
mod tests;
