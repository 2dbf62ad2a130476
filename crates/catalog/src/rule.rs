//! What a rule says of a component's parameters.
//!
//! Three forms, because each says something that the others cannot say shortly: a limit of one parameter, a JSON Schema
//! over all of them, and an expression that compares them. A value that is not known when a run is queued cannot be
//! held to a rule, so a rule about it refuses.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::contract::{properties, required, schema_problems, value_problems};
use crate::expression::{Expression, ExpressionVerdict};

/// Rules about parameters.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ParameterRules {
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub parameters: BTreeMap<String, ParameterLimit>,
    /// JSON Schema 2020-12 over all parameters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<Value>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub expressions: Vec<CelRule>,
}

/// The limits of one parameter.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ParameterLimit {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed: Option<Vec<Value>>,
}

/// An expression that has to be true.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CelRule {
    /// CEL over `params`, `environment`, `component` and `rehearsal`.
    pub expression: String,
    /// What whoever is refused is told.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// Why a rule cannot be kept.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {message}")]
pub struct RuleProblem {
    pub place: String,
    pub message: String,
}

/// A parameter that a rule does not allow.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {message}")]
pub struct ParameterViolation {
    pub place: String,
    /// The limit, never the value.
    pub message: String,
}

/// Names that an expression may use.
const VARIABLES: &[&str] = &["params", "environment", "component", "rehearsal"];
/// Expressions of one rule.
const MOST_EXPRESSIONS: usize = 20;
const MOST_PARAMETERS: usize = 200;

impl ParameterRules {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The rules that can be held before these parameters have values: those that say nothing of them.
    #[must_use]
    pub fn without(&self, later: &BTreeSet<String>) -> Self {
        if later.is_empty() {
            return self.clone();
        }
        let named = |schema: &Value| {
            let mut names = properties(schema)
                .keys()
                .map(String::as_str)
                .chain(required(schema));
            names.any(|name| later.contains(name))
        };
        // A name that is part of another is taken for it: the rule is held later then, and never less.
        let spoken_of = |rule: &&CelRule| later.iter().any(|name| rule.expression.contains(name));
        let parameters = self.parameters.iter();
        Self {
            parameters: parameters
                .filter(|(name, _)| !later.contains(*name))
                .map(|(name, limit)| (name.clone(), limit.clone()))
                .collect(),
            schema: self.schema.clone().filter(|schema| !named(schema)),
            expressions: self
                .expressions
                .iter()
                .filter(|rule| !spoken_of(rule))
                .cloned()
                .collect(),
        }
    }
}

/// What expressions know besides the parameters.
pub fn rule_facts(environment: &str, component: &str, rehearsal: bool) -> Map<String, Value> {
    let facts = [
        ("environment", Value::from(environment)),
        ("component", Value::from(component)),
        ("rehearsal", Value::from(rehearsal)),
    ];
    let facts = facts.map(|(name, value)| (name.to_owned(), value));
    facts.into_iter().collect()
}

/// Everything that is wrong with rules; empty for some that can be kept.
pub fn check_rules(rules: &ParameterRules) -> Vec<RuleProblem> {
    let mut problems = Vec::new();
    let mut add = |place: String, message: String| problems.push(RuleProblem { place, message });
    if rules.parameters.len() > MOST_PARAMETERS || rules.expressions.len() > MOST_EXPRESSIONS {
        let message =
            format!("give at most {MOST_PARAMETERS} limits and {MOST_EXPRESSIONS} expressions");
        add("constraints".to_owned(), message);
        return problems;
    }
    for (name, limit) in &rules.parameters {
        let place = format!("constraints.parameters.{name}");
        if *limit == ParameterLimit::default() {
            add(place.clone(), "give min, max or allowed".to_owned());
        }
        if let (Some(min), Some(max)) = (limit.min, limit.max)
            && min > max
        {
            add(
                place.clone(),
                "min is larger than max: nothing is allowed".to_owned(),
            );
        }
        if limit.allowed.as_ref().is_some_and(Vec::is_empty) {
            add(
                place,
                "an empty list allows nothing; deny the component instead".to_owned(),
            );
        }
    }
    if let Some(schema) = &rules.schema {
        for problem in schema_problems("constraints.schema", schema) {
            add(problem.place, problem.message);
        }
    }
    for (number, rule) in rules.expressions.iter().enumerate() {
        if let Err(problem) = Expression::new(&rule.expression, VARIABLES) {
            add(
                format!("constraints.expressions[{number}]"),
                problem.to_string(),
            );
        }
    }
    problems
}

/// What parameters violate. `unknown` are those that have a value only later; `facts` are the other variables of
/// expressions.
pub fn violations(
    rules: &ParameterRules,
    params: &Map<String, Value>,
    unknown: &BTreeSet<String>,
    facts: &Map<String, Value>,
) -> Vec<ParameterViolation> {
    let mut found = Vec::new();
    let known: Map<String, Value> = params
        .iter()
        .filter(|(name, _)| !unknown.contains(*name))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    for (name, limit) in &rules.parameters {
        if unknown.contains(name) {
            found.push(not_known(name));
        } else if let Some(value) = known.get(name) {
            found.extend(beyond(name, limit, value));
        }
    }
    if let Some(schema) = &rules.schema {
        let named: BTreeSet<&str> = properties(schema)
            .keys()
            .map(String::as_str)
            .chain(required(schema))
            .collect();
        found.extend(
            unknown
                .iter()
                .filter(|name| named.contains(name.as_str()))
                .map(|name| not_known(name)),
        );
        let value = Value::Object(known.clone());
        let problems = value_problems("params", schema, &value).into_iter();
        found.extend(problems.map(|problem| ParameterViolation {
            place: problem.place,
            message: problem.message,
        }));
    }
    for rule in &rules.expressions {
        found.extend(expression_violation(rule, &known, facts));
    }
    found
}

fn not_known(name: &str) -> ParameterViolation {
    ParameterViolation {
        place: format!("params.{name}"),
        message: "its value is known only while the run goes on, and the rule limits it".to_owned(),
    }
}

fn beyond(name: &str, limit: &ParameterLimit, value: &Value) -> Option<ParameterViolation> {
    let message = if let Some(allowed) = &limit.allowed
        && !allowed.iter().any(|one| same(one, value))
    {
        format!("allowed are {}", json!(allowed))
    } else if limit.min.is_some() || limit.max.is_some() {
        let (min, max) = (
            limit.min.unwrap_or(f64::NEG_INFINITY),
            limit.max.unwrap_or(f64::INFINITY),
        );
        match number(value) {
            Some(number) if (min..=max).contains(&number) => return None,
            Some(_) => span(limit),
            None => format!("{}, and this is no number", span(limit)),
        }
    } else {
        return None;
    };
    Some(ParameterViolation {
        place: format!("params.{name}"),
        message,
    })
}

fn span(limit: &ParameterLimit) -> String {
    match (limit.min, limit.max) {
        (Some(min), Some(max)) => format!("it is {min} at least and {max} at most"),
        (Some(min), None) => format!("it is {min} at least"),
        (None, Some(max)) => format!("it is {max} at most"),
        (None, None) => String::new(),
    }
}

/// A manifest may have written a number as text.
fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.trim().parse().ok().filter(|one: &f64| one.is_finite()),
        _ => None,
    }
}

fn same(one: &Value, other: &Value) -> bool {
    one == other || number(one).is_some() && number(one) == number(other)
}

fn expression_violation(
    rule: &CelRule,
    params: &Map<String, Value>,
    facts: &Map<String, Value>,
) -> Option<ParameterViolation> {
    let mut values = facts.clone();
    values.insert("params".to_owned(), Value::Object(params.clone()));
    let verdict = Expression::new(&rule.expression, VARIABLES)
        .and_then(|expression| expression.evaluate(&values));
    let why = match verdict {
        Ok(ExpressionVerdict::True) => return None,
        Ok(ExpressionVerdict::False) => String::new(),
        // A rule without an answer refuses.
        Ok(ExpressionVerdict::Error(message)) => format!(" ({message})"),
        Err(problem) => format!(" ({problem})"),
    };
    let said = if rule.message.is_empty() {
        "this has to hold"
    } else {
        rule.message.as_str()
    };
    Some(ParameterViolation {
        place: rule.expression.clone(),
        message: format!("{said}{why}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(value: Value) -> ParameterRules {
        serde_json::from_value(value).unwrap()
    }

    fn broken(rule: Value, params: Value, unknown: &[&str]) -> Vec<String> {
        let rule = rules(rule);
        assert_eq!(check_rules(&rule), []);
        let params = params.as_object().cloned().unwrap_or_default();
        let unknown = unknown.iter().map(|name| (*name).to_owned()).collect();
        let facts = json!({"environment": "dev", "component": "network", "rehearsal": true});
        let facts = facts.as_object().cloned().unwrap_or_default();
        let found = violations(&rule, &params, &unknown, &facts);
        found.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn limits_hold_at_their_edges() {
        let limit =
            json!({"parameters": {"size": {"min": 1, "max": 4}, "zone": {"allowed": ["a", "b"]}}});
        for fine in [
            json!({"size": 1, "zone": "a"}),
            json!({"size": "4"}),
            json!({}),
        ] {
            assert!(broken(limit.clone(), fine, &[]).is_empty());
        }
        for (bad, word) in [
            (json!({"size": 0}), "1 at least and 4 at most"),
            (json!({"size": 4.5}), "4 at most"),
            (json!({"size": "1e400"}), "no number"),
            (json!({"size": "many"}), "no number"),
            (json!({"zone": "c"}), "allowed are"),
        ] {
            let found = broken(limit.clone(), bad.clone(), &[]);
            assert!(
                found.len() == 1 && found[0].contains(word),
                "{bad}: {found:?}"
            );
        }
    }

    #[test]
    fn schemas_and_expressions_refuse_and_say_why() {
        let schema = json!({"schema": {"type": "object", "required": ["team"],
            "properties": {"nat": {"enum": ["none", "single"]}}}});
        assert_eq!(
            broken(schema.clone(), json!({"team": "x", "nat": "perZone"}), &[]).len(),
            1
        );
        assert_eq!(broken(schema, json!({"nat": "none"}), &[]).len(), 1);
        let rule = json!({"expressions": [
            {"expression": "environment != 'prod' || params.zones >= 3", "message": "prod has three zones"},
            {"expression": "params.zones <= 3"}]});
        assert!(broken(rule.clone(), json!({"zones": 2}), &[]).is_empty());
        let found = broken(rule.clone(), json!({"zones": 4}), &[]);
        assert_eq!(found, ["params.zones <= 3: this has to hold"]);
        let found = broken(rule, json!({}), &[]);
        assert!(found[0].contains("not there"), "{found:?}");
    }

    #[test]
    fn what_is_not_known_yet_is_refused_where_a_rule_limits_it() {
        let limit = json!({"parameters": {"size": {"max": 4}}});
        let found = broken(
            limit.clone(),
            json!({"size": "{{RUNTIME:other:size}}"}),
            &["size"],
        );
        assert!(found[0].contains("known only while"), "{found:?}");
        assert!(broken(limit, json!({"size": 1}), &["other"]).is_empty());
    }

    #[test]
    fn what_a_rule_says_of_others_can_be_held_before_resolvers_have_answered() {
        let all = rules(json!({
            "parameters": {"size": {"max": 4}, "name": {"allowed": ["a"]}},
            "schema": {"type": "object", "properties": {"name": {"pattern": "^a"}}},
            "expressions": [{"expression": "params.name != ''"}, {"expression": "params.size < 3"}]}));
        let bound = BTreeSet::from(["name".to_owned()]);
        let early = all.without(&bound);
        assert_eq!(early.parameters.keys().collect::<Vec<_>>(), ["size"]);
        assert_eq!(early.schema, None);
        assert_eq!(early.expressions, [all.expressions[1].clone()]);
        assert_eq!(all.without(&BTreeSet::new()), all);
    }

    #[test]
    fn rules_that_allow_nothing_or_are_not_understood_are_not_kept() {
        for bad in [
            json!({"parameters": {"size": {}}}),
            json!({"parameters": {"size": {"min": 5, "max": 4}}}),
            json!({"parameters": {"size": {"allowed": []}}}),
            json!({"schema": {"type": "objekt"}}),
            json!({"schema": {"$ref": "#"}}),
            json!({"expressions": [{"expression": "params.size >"}]}),
            json!({"expressions": [{"expression": "secrets.all(x, true)"}]}),
        ] {
            assert!(!check_rules(&rules(bad.clone())).is_empty(), "{bad}");
        }
        assert!(serde_json::from_value::<ParameterRules>(json!({"maximum": 1})).is_err());
    }
}
