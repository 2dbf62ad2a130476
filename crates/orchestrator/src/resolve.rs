//! Filling in what is known only at run time.
//!
//! Placeholders are resolved from the inside out, through one port. What was asked and what came
//! back is recorded, because both are part of a unit's fingerprint. In a preview some answers do
//! not exist yet; those stay unknown, and everything made of them is unknown too. Nothing is ever
//! mocked.

use std::collections::BTreeMap;

use async_trait::async_trait;
use serde_json::{Map, Value};

use crate::environment::Environment;
use crate::placeholder::{Part, Placeholder, PlaceholderError, Source, Template};
use crate::spot::Spot;

/// What a lookup found.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    Known {
        value: Value,
        secret: bool,
    },
    /// It will exist, but not before something else was deployed.
    Unknown,
    /// It does not exist.
    Absent,
}

impl Answer {
    pub fn open(value: impl Into<Value>) -> Self {
        Self::Known {
            value: value.into(),
            secret: false,
        }
    }
}

/// Where values come from. Parameters are resolved already.
#[async_trait]
pub trait Lookup: Send + Sync {
    async fn output(&self, stack: &str, output: &str) -> Result<Answer, LookupError>;
    async fn aws(&self, query: &str, parameters: &[String]) -> Result<Answer, LookupError>;
    async fn calculate(&self, function: &str, parameters: &[String])
    -> Result<Answer, LookupError>;
    async fn env(&self, variable: &str) -> Result<Answer, LookupError>;
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct LookupError {
    pub message: String,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ResolveError {
    #[error("{key}: {error}")]
    Malformed {
        key: String,
        error: PlaceholderError,
    },
    #[error("{key}: {placeholder} does not exist and has no default")]
    Absent { key: String, placeholder: String },
    #[error("{key}: {placeholder}: {message}")]
    Failed {
        key: String,
        placeholder: String,
        message: String,
    },
    #[error("{key}: {placeholder} is a list or a mapping and cannot stand inside a text")]
    NotText { key: String, placeholder: String },
}

impl ResolveError {
    /// Where the value is in the manifest. The key may go on into lists and mappings.
    pub fn spot(&self, stack: &str, environment: Environment) -> Spot {
        let (key, text) = match self {
            Self::Malformed { key, .. } => (key, None),
            Self::Absent { key, placeholder }
            | Self::Failed {
                key, placeholder, ..
            }
            | Self::NotText { key, placeholder } => (key, Some(placeholder)),
        };
        let top = key.split(['.', '[']).next().unwrap_or_default();
        let spot = Spot::config(stack, environment, top);
        match text {
            Some(text) => spot.with_text(text),
            None => spot,
        }
    }
}

/// A configuration value, ready for a program.
#[derive(Clone, Debug, PartialEq)]
pub enum Resolved {
    Known { value: Value, secret: bool },
    Unknown,
}

/// Resolved configuration, and everything that was looked up for it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Resolution {
    pub config: BTreeMap<String, Resolved>,
    /// By the placeholder as written: equal texts have equal answers, and no inner value, which may
    /// be secret, is in the name.
    pub lookups: BTreeMap<String, Answer>,
}

/// Resolves every value of a configuration.
pub async fn resolve(
    config: &Map<String, Value>,
    lookup: &dyn Lookup,
) -> Result<Resolution, ResolveError> {
    let mut resolver = Resolver {
        lookup,
        lookups: BTreeMap::new(),
    };
    let mut resolved = BTreeMap::new();
    for (key, value) in config {
        resolved.insert(key.clone(), resolver.value(key, value).await?);
    }
    Ok(Resolution {
        config: resolved,
        lookups: resolver.lookups,
    })
}

struct Resolver<'a> {
    lookup: &'a dyn Lookup,
    lookups: BTreeMap<String, Answer>,
}

impl Resolver<'_> {
    async fn value(&mut self, key: &str, value: &Value) -> Result<Resolved, ResolveError> {
        match value {
            Value::String(text) => {
                let template = Template::parse(text).map_err(|error| ResolveError::Malformed {
                    key: key.to_owned(),
                    error,
                })?;
                self.template(key, &template).await
            }
            Value::Array(items) => {
                let mut list = Vec::with_capacity(items.len());
                let mut secret = false;
                for (at, item) in items.iter().enumerate() {
                    match Box::pin(self.value(&format!("{key}[{at}]"), item)).await? {
                        Resolved::Unknown => return Ok(Resolved::Unknown),
                        Resolved::Known {
                            value,
                            secret: inner,
                        } => {
                            list.push(value);
                            secret |= inner;
                        }
                    }
                }
                Ok(Resolved::Known {
                    value: Value::Array(list),
                    secret,
                })
            }
            Value::Object(map) => {
                let mut object = Map::new();
                let mut secret = false;
                for (name, item) in map {
                    match Box::pin(self.value(&format!("{key}.{name}"), item)).await? {
                        Resolved::Unknown => return Ok(Resolved::Unknown),
                        Resolved::Known {
                            value,
                            secret: inner,
                        } => {
                            object.insert(name.clone(), value);
                            secret |= inner;
                        }
                    }
                }
                Ok(Resolved::Known {
                    value: Value::Object(object),
                    secret,
                })
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => Ok(Resolved::Known {
                value: value.clone(),
                secret: false,
            }),
        }
    }

    async fn template(&mut self, key: &str, template: &Template) -> Result<Resolved, ResolveError> {
        if let Some(placeholder) = template.single() {
            return Box::pin(self.placeholder(key, placeholder)).await;
        }
        let mut text = String::new();
        let mut secret = false;
        for part in &template.parts {
            match part {
                Part::Text(literal) => text.push_str(literal),
                Part::Placeholder(placeholder) => {
                    match Box::pin(self.placeholder(key, placeholder)).await? {
                        Resolved::Unknown => return Ok(Resolved::Unknown),
                        Resolved::Known {
                            value,
                            secret: inner,
                        } => {
                            secret |= inner;
                            text.push_str(&scalar(&value).ok_or_else(|| {
                                ResolveError::NotText {
                                    key: key.to_owned(),
                                    placeholder: placeholder.to_string(),
                                }
                            })?);
                        }
                    }
                }
            }
        }
        Ok(Resolved::Known {
            value: Value::String(text),
            secret,
        })
    }

    async fn placeholder(
        &mut self,
        key: &str,
        placeholder: &Placeholder,
    ) -> Result<Resolved, ResolveError> {
        let Some(question) = self.question(key, placeholder).await? else {
            return Ok(Resolved::Unknown);
        };
        let name = placeholder.to_string();
        let answer = match self.lookups.get(&name) {
            Some(known) => known.clone(),
            None => {
                let failed = |error: LookupError| ResolveError::Failed {
                    key: key.to_owned(),
                    placeholder: name.clone(),
                    message: error.message,
                };
                let answer = question.ask(self.lookup).await.map_err(failed)?;
                self.lookups.insert(name, answer.clone());
                answer
            }
        };
        match (answer, &placeholder.default) {
            (Answer::Known { value, secret }, _) => Ok(Resolved::Known {
                value,
                secret: secret || question.secret,
            }),
            (Answer::Unknown, _) => Ok(Resolved::Unknown),
            (Answer::Absent, Some(default)) => self.template(key, default).await,
            (Answer::Absent, None) => Err(ResolveError::Absent {
                key: key.to_owned(),
                placeholder: placeholder.to_string(),
            }),
        }
    }

    /// The lookup with its parameters filled in; `None` while one of them is unknown.
    async fn question(
        &mut self,
        key: &str,
        placeholder: &Placeholder,
    ) -> Result<Option<Question>, ResolveError> {
        let (kind, name, templates) = match &placeholder.source {
            Source::Stack { stack, output } => {
                (Kind::Output, stack.clone(), std::slice::from_ref(output))
            }
            Source::Env { variable } => {
                (Kind::Env, "env".to_owned(), std::slice::from_ref(variable))
            }
            Source::Aws { query, parameters } => (Kind::Aws, query.clone(), parameters.as_slice()),
            Source::Calculate {
                function,
                parameters,
            } => (Kind::Calculate, function.clone(), parameters.as_slice()),
        };
        let mut parameters = Vec::with_capacity(templates.len());
        let mut secret = false;
        for template in templates {
            match Box::pin(self.template(key, template)).await? {
                Resolved::Unknown => return Ok(None),
                Resolved::Known {
                    value,
                    secret: inner,
                } => {
                    secret |= inner;
                    parameters.push(scalar(&value).ok_or_else(|| ResolveError::NotText {
                        key: key.to_owned(),
                        placeholder: placeholder.to_string(),
                    })?);
                }
            }
        }
        Ok(Some(Question {
            kind,
            target: name,
            parameters,
            secret,
        }))
    }
}

#[derive(Clone, Copy)]
enum Kind {
    Output,
    Aws,
    Calculate,
    Env,
}

struct Question {
    kind: Kind,
    target: String,
    parameters: Vec<String>,
    /// A parameter was secret, so the answer is.
    secret: bool,
}

impl Question {
    async fn ask(&self, lookup: &dyn Lookup) -> Result<Answer, LookupError> {
        let first = self.parameters.first().map_or("", String::as_str);
        match self.kind {
            Kind::Output => lookup.output(&self.target, first).await,
            Kind::Env => lookup.env(first).await,
            Kind::Aws => lookup.aws(&self.target, &self.parameters).await,
            Kind::Calculate => lookup.calculate(&self.target, &self.parameters).await,
        }
    }
}

fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Bool(_) | Value::Number(_) => Some(value.to_string()),
        Value::Null => Some(String::new()),
        Value::Array(_) | Value::Object(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    struct Fake;

    #[async_trait]
    impl Lookup for Fake {
        async fn output(&self, stack: &str, output: &str) -> Result<Answer, LookupError> {
            Ok(match (stack, output) {
                ("network", "vpcId") => Answer::open("vpc-1"),
                ("network", "subnetIds") => Answer::open(json!(["subnet-1", "subnet-2"])),
                ("network", "cidr") => Answer::open("10.0.0.0/16"),
                ("database", "password") => Answer::Known {
                    value: json!("hush"),
                    secret: true,
                },
                ("later", _) => Answer::Unknown,
                _ => Answer::Absent,
            })
        }

        async fn aws(&self, query: &str, _: &[String]) -> Result<Answer, LookupError> {
            Err(LookupError {
                message: format!("no credentials for {query}"),
            })
        }

        async fn calculate(&self, function: &str, p: &[String]) -> Result<Answer, LookupError> {
            Ok(Answer::open(format!("{function}({})", p.join(","))))
        }

        async fn env(&self, variable: &str) -> Result<Answer, LookupError> {
            Ok(if variable == "HOME" {
                Answer::open("/home")
            } else {
                Answer::Absent
            })
        }
    }

    async fn one(value: Value) -> Result<Resolved, ResolveError> {
        let config = Map::from_iter([("k".to_owned(), value)]);
        resolve(&config, &Fake)
            .await
            .map(|mut resolution| resolution.config.remove("k").unwrap())
    }

    fn known(value: Value) -> Resolved {
        Resolved::Known {
            value,
            secret: false,
        }
    }

    #[tokio::test]
    async fn values_keep_their_types_alone_and_become_text_inside() {
        let list = one(json!("{{RUNTIME:network:subnetIds}}")).await.unwrap();
        assert_eq!(list, known(json!(["subnet-1", "subnet-2"])));
        let text = one(json!("id={{RUNTIME:network:vpcId}}!")).await.unwrap();
        assert_eq!(text, known(json!("id=vpc-1!")));
        let deep = one(json!({"a": ["{{RUNTIME:env:HOME}}", 1]}))
            .await
            .unwrap();
        assert_eq!(deep, known(json!({"a": ["/home", 1]})));
        assert!(matches!(
            one(json!("x{{RUNTIME:network:subnetIds}}")).await,
            Err(ResolveError::NotText { .. })
        ));
    }

    #[tokio::test]
    async fn inner_placeholders_come_first() {
        let nested = json!("{{RUNTIME:calculate:subnets:{{RUNTIME:network:cidr}}:24:3}}");
        assert_eq!(
            one(nested).await.unwrap(),
            known(json!("subnets(10.0.0.0/16,24,3)"))
        );
    }

    #[tokio::test]
    async fn defaults_stand_in_for_what_is_absent_only() {
        let with = json!("{{RUNTIME:env:NOPE|{{RUNTIME:network:vpcId}}}}");
        assert_eq!(one(with).await.unwrap(), known(json!("vpc-1")));
        let without = one(json!("{{RUNTIME:network:nope}}")).await.unwrap_err();
        assert_eq!(
            without.to_string(),
            "k: {{RUNTIME:network:nope}} does not exist and has no default"
        );
        let failed = one(json!("{{RUNTIME:aws:ami:x|y}}")).await.unwrap_err();
        assert!(
            failed.to_string().contains("no credentials"),
            "an error is not an absence"
        );
    }

    #[tokio::test]
    async fn secrets_and_unknowns_spread() {
        let secret = one(json!(["a", "p={{RUNTIME:database:password}}"]))
            .await
            .unwrap();
        assert_eq!(
            secret,
            Resolved::Known {
                value: json!(["a", "p=hush"]),
                secret: true
            }
        );
        let unknown = one(json!({"x": "a-{{RUNTIME:later:thing}}"}))
            .await
            .unwrap();
        assert_eq!(unknown, Resolved::Unknown);
        let derived = json!("{{RUNTIME:calculate:f:{{RUNTIME:later:thing}}}}");
        assert_eq!(one(derived).await.unwrap(), Resolved::Unknown);
    }

    #[tokio::test]
    async fn lookups_are_recorded_without_the_values_of_inner_ones() {
        let config = Map::from_iter([
            ("a".to_owned(), json!("{{RUNTIME:network:vpcId}}")),
            (
                "b".to_owned(),
                json!("{{RUNTIME:calculate:f:{{RUNTIME:database:password}}}}"),
            ),
        ]);
        let resolution = resolve(&config, &Fake).await.unwrap();
        let names: Vec<_> = resolution.lookups.keys().map(String::as_str).collect();
        assert_eq!(
            names,
            [
                "{{RUNTIME:calculate:f:{{RUNTIME:database:password}}}}",
                "{{RUNTIME:database:password}}",
                "{{RUNTIME:network:vpcId}}",
            ]
        );
        assert!(matches!(
            resolution.config["b"],
            Resolved::Known { secret: true, .. }
        ));
    }
}
