//! Expressions of rules: CEL inside limits.
//!
//! What an expression is counted for before it is parsed is in `tokens`. It is then parsed and evaluated on a thread
//! with a stack of its own, which nobody waits for longer than a moment; a panic of the library is its refusal.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::thread;
use std::time::Duration;

use cel::objects::{Key, Map as CelMap};
use cel::{Context, Program};
use serde_json::{Map, Value};

use crate::tokens;

/// Deep enough for what the counts let through.
const STACK_BYTES: usize = 8 * 1024 * 1024;
/// Nobody waits longer. What the counts let through takes microseconds.
const PATIENCE: Duration = Duration::from_millis(500);
/// Items of one list that an expression sees.
const MOST_ITEMS: usize = 1000;
/// All that an expression sees, as text.
const MOST_INPUT_BYTES: usize = 256 * 1024;

/// Why an expression cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExpressionProblem {
    #[error("it is empty")]
    Empty,
    #[error("it has more than {} bytes", tokens::MOST_BYTES)]
    TooLong,
    #[error("it has more than {} parts", tokens::MOST_TOKENS)]
    TooManyTokens,
    #[error("its brackets are more than {} deep", tokens::DEEPEST)]
    TooDeep,
    #[error("it has a loop inside of a loop")]
    NestedLoop,
    #[error("it uses `{0}`; use `all` and `exists`")]
    Maker(String),
    #[error("{0}")]
    Text(&'static str),
    #[error("it is not understood: {0}")]
    Syntax(String),
    #[error("there is no `{name}`; there are {known}")]
    UnknownName { name: String, known: String },
    #[error("it could not be evaluated in time")]
    Unanswered,
    #[error("what it is asked about is too large")]
    InputTooLarge,
}

/// What an expression says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExpressionVerdict {
    True,
    False,
    /// It has no answer: a key that is not there, a type that does not fit.
    Error(String),
}

/// An expression that was found fit to be evaluated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expression {
    source: String,
}

impl Expression {
    /// Checks an expression over these variables.
    pub fn new(source: &str, variables: &[&str]) -> Result<Self, ExpressionProblem> {
        let named = tokens::check(source)?;
        let owned = source.to_owned();
        on_own_stack(move || match Program::compile(&owned) {
            Ok(_) => Ok(()),
            Err(error) => Err(first_line(&error.to_string())),
        })?
        .map_err(ExpressionProblem::Syntax)?;
        if let Some(name) = named.iter().find(|name| !variables.contains(name)) {
            return Err(ExpressionProblem::UnknownName {
                name: (*name).to_owned(),
                known: variables.join(", "),
            });
        }
        Ok(Self {
            source: source.to_owned(),
        })
    }

    pub fn source(&self) -> &str {
        &self.source
    }

    /// What it says of these values, one for each variable.
    pub fn evaluate(
        &self,
        values: &Map<String, Value>,
    ) -> Result<ExpressionVerdict, ExpressionProblem> {
        let large = values.values().any(|value| !is_small(value))
            || Value::Object(values.clone()).to_string().len() > MOST_INPUT_BYTES;
        if large {
            return Err(ExpressionProblem::InputTooLarge);
        }
        let (source, values) = (self.source.clone(), values.clone());
        on_own_stack(move || {
            let program = match Program::compile(&source) {
                Ok(program) => program,
                Err(error) => return ExpressionVerdict::Error(first_line(&error.to_string())),
            };
            let mut context = Context::default();
            for (name, value) in &values {
                context.add_variable_from_value(name.as_str(), to_cel(value));
            }
            match program.execute(&context) {
                Ok(cel::Value::Bool(true)) => ExpressionVerdict::True,
                Ok(cel::Value::Bool(false)) => ExpressionVerdict::False,
                Ok(_) => ExpressionVerdict::Error("it says neither yes nor no".to_owned()),
                // The library's own words repeat values.
                Err(error) => ExpressionVerdict::Error(kind_of(&error).to_owned()),
            }
        })
    }
}

fn kind_of(error: &cel::ExecutionError) -> &'static str {
    use cel::ExecutionError as E;
    match error {
        E::NoSuchKey(_) => "it asks for something that is not there",
        E::UndeclaredReference(_) => "it uses a name that there is not",
        E::DivisionByZero(_) | E::RemainderByZero(_) => "it divides by zero",
        E::Overflow(..) => "a number in it becomes too large",
        E::IndexOutOfBounds(_) => "it asks for an item that is not there",
        _ => "types in it do not fit",
    }
}

fn first_line(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    line.chars().take(200).collect()
}

/// Lists of a length that a loop gets through in time.
fn is_small(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.len() <= MOST_ITEMS && items.iter().all(is_small),
        Value::Object(entries) => entries.len() <= MOST_ITEMS && entries.values().all(is_small),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
    }
}

/// Whole numbers are of one type, whatever their sign: `params.size * 2` works.
fn to_cel(value: &Value) -> cel::Value {
    match value {
        Value::Null => cel::Value::Null,
        Value::Bool(flag) => cel::Value::Bool(*flag),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(whole), _) => cel::Value::Int(whole),
            (None, Some(float)) => cel::Value::Float(float),
            (None, None) => cel::Value::Null,
        },
        Value::String(text) => cel::Value::String(Arc::new(text.clone())),
        Value::Array(items) => cel::Value::List(Arc::new(items.iter().map(to_cel).collect())),
        Value::Object(entries) => {
            let map: HashMap<Key, cel::Value> = entries
                .iter()
                .map(|(key, value)| (Key::String(Arc::new(key.clone())), to_cel(value)))
                .collect();
            cel::Value::Map(CelMap { map: Arc::new(map) })
        }
    }
}

/// Runs work that may panic, on a stack of its own. It cannot be stopped, so it is bounded before; what takes long all
/// the same is left alone and not waited for.
fn on_own_stack<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ExpressionProblem> {
    let (sender, receiver) = sync_channel(1);
    thread::Builder::new()
        .name("expression".to_owned())
        .stack_size(STACK_BYTES)
        .spawn(move || {
            if let Ok(done) = catch_unwind(AssertUnwindSafe(work)) {
                // An error is somebody who has gone.
                let _ = sender.send(done);
            }
        })
        .map_err(|_| ExpressionProblem::Unanswered)?;
    receiver
        .recv_timeout(PATIENCE)
        .map_err(|_| ExpressionProblem::Unanswered)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn evaluate(source: &str, params: Value) -> ExpressionVerdict {
        let expression = Expression::new(source, &["params", "environment"]).unwrap();
        let Value::Object(values) = json!({"params": params, "environment": "dev"}) else {
            unreachable!()
        };
        expression.evaluate(&values).unwrap()
    }

    #[test]
    fn expressions_say_yes_or_no() {
        use ExpressionVerdict::{False, True};
        for (source, params, expected) in [
            ("params.size <= 4", json!({"size": 4}), True),
            ("params.size <= 4", json!({"size": 5}), False),
            ("params.size * 2 == 8", json!({"size": 4}), True),
            ("params.size < 0", json!({"size": -1}), True),
            ("environment == 'dev'", json!({}), True),
            (
                "params.name.matches('^[a-z]+$')",
                json!({"name": "x1"}),
                False,
            ),
            (
                "params.zones.all(z, z in ['a', 'b'])",
                json!({"zones": ["a", "c"]}),
                False,
            ),
            ("!has(params.tag) || params.tag == 'x'", json!({}), True),
            (
                "params.big == 9007199254740993",
                json!({"big": 9_007_199_254_740_993_i64}),
                True,
            ),
        ] {
            assert_eq!(
                evaluate(source, params.clone()),
                expected,
                "{source} {params}"
            );
        }
    }

    #[test]
    fn what_has_no_answer_is_an_error_without_the_values() {
        for (source, params) in [
            ("params.size > 1", json!({})),
            ("params.secret > 1", json!({"secret": "hunter2"})),
            ("params.size", json!({"size": 1})),
            ("params.size / 0 == 1", json!({"size": 1})),
        ] {
            let ExpressionVerdict::Error(message) = evaluate(source, params) else {
                panic!("{source}");
            };
            assert!(!message.contains("hunter2"), "{message}");
        }
    }

    #[test]
    fn what_is_not_an_expression_is_refused() {
        for (bad, word) in [
            ("params.size >", "not understood"),
            ("now() > params.size && clock", "no `clock`"),
            ("a.all(x, a.all(y, true))", "loop"),
        ] {
            let problem = Expression::new(bad, &["params"]).unwrap_err();
            assert!(problem.to_string().contains(word), "{bad}: {problem}");
        }
    }

    #[test]
    fn lists_that_are_too_long_are_refused() {
        let expression = Expression::new("params.all(x, x > 0)", &["params"]).unwrap();
        let Value::Object(values) = json!({"params": vec![1; 1001]}) else {
            unreachable!()
        };
        assert_eq!(
            expression.evaluate(&values),
            Err(ExpressionProblem::InputTooLarge)
        );
    }

    #[test]
    fn the_known_bombs_end_as_errors_and_soon() {
        let chain = format!("{} == 1", vec!["1"; 1500].join("+"));
        let bomb = "[[[[[[[[[[1]]]]]]]]]].all(x, x.all(y, y.all(z, z.all(w, true))))";
        let long = format!("params == '{}'", "x".repeat(200_000));
        for bad in [chain.as_str(), bomb, &long, "((((((((((((((((((", "\u{0}"] {
            assert!(Expression::new(bad, &["params"]).is_err());
        }
    }
}
