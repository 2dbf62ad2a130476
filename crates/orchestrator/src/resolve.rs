//! Filling in what is known only at run time.
//!
//! Placeholders are resolved from the inside out, through one port. What was asked and what came
//! back is recorded, because both are part of a unit's fingerprint. In a preview some answers do
//! not exist yet; those stay unknown, and everything made of them is unknown too. Nothing is ever
//! mocked.

mod query;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use async_trait::async_trait;
use nimbus_core::{ComponentName, EnvironmentName};
use nimbus_resolvers::ResolverKind;
use serde_json::{Map, Value};

use self::query::{PlaceholderQuery, QueryTarget};
use crate::placeholder::{
    Placeholder, PlaceholderError, PlaceholderSource, TemplateText, TextPart,
};
use crate::schema::ordered;
use crate::spot::ManifestSpot;

/// What a lookup found.
#[derive(Clone, Debug, PartialEq)]
pub enum LookupValue {
    Known {
        value: Value,
        secret: bool,
    },
    /// It will exist, but not before something else was deployed.
    Unknown,
    /// It does not exist.
    Absent,
}

impl LookupValue {
    pub fn open(value: impl Into<Value>) -> Self {
        Self::Known {
            value: value.into(),
            secret: false,
        }
    }

    /// What a fingerprint digests of it; `None` for what is not known yet, which equals nothing.
    ///
    /// Keys are in order and the kind comes first, so that equal values give equal texts in every
    /// build, and no value can be written that reads like an absence. It holds the value itself: only
    /// a keyed digest may see it.
    pub fn fingerprint_text(&self) -> Option<String> {
        match self {
            Self::Known { value, secret } => Some(known_text(value, *secret)),
            Self::Absent => Some("absent".to_owned()),
            Self::Unknown => None,
        }
    }
}

/// That a value became secret, or is secret no more, is a change too: the program gets it otherwise.
fn known_text(value: &Value, secret: bool) -> String {
    let kind = if secret { "secret" } else { "open" };
    format!("{kind} {}", ordered(value.clone()))
}

/// Where values come from. Parameters are resolved already.
#[async_trait]
pub trait ValueLookup: Send + Sync {
    async fn output(
        &self,
        component: &ComponentName,
        output: &str,
    ) -> Result<LookupValue, ValueLookupError>;
    async fn aws(
        &self,
        query: &str,
        parameters: &[String],
    ) -> Result<LookupValue, ValueLookupError>;
    /// `hidden` says that the placeholder makes a secret of it, whatever the function gives.
    async fn calculate(
        &self,
        function: &str,
        parameters: &[String],
        hidden: bool,
    ) -> Result<LookupValue, ValueLookupError>;
    async fn env(&self, variable: &str) -> Result<LookupValue, ValueLookupError>;
    /// A secret of the deployment, by its name.
    async fn secret(&self, name: &str) -> Result<LookupValue, ValueLookupError>;
    /// An output of a resolver, asked with `name=value` each.
    async fn resolver(
        &self,
        resolver: ResolverKind,
        output: &str,
        parameters: &[String],
    ) -> Result<LookupValue, ValueLookupError>;
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ValueLookupError {
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
    #[error("{key}: there is no secret `{name}`; set it with `nimbus secret set`")]
    NoSecret { key: String, name: String },
}

impl ResolveError {
    /// Where the value is in the manifest. The key may go on into lists and mappings.
    pub fn spot(&self, component: &ComponentName, environment: EnvironmentName) -> ManifestSpot {
        let (key, text) = match self {
            Self::Malformed { key, .. } | Self::NoSecret { key, .. } => (key, None),
            Self::Absent { key, placeholder }
            | Self::Failed {
                key, placeholder, ..
            }
            | Self::NotText { key, placeholder } => (key, Some(placeholder)),
        };
        let top = key.split(['.', '[']).next().unwrap_or_default();
        let spot = ManifestSpot::config(component, environment, top);
        match text {
            Some(text) => spot.with_text(text),
            None => spot,
        }
    }
}

/// A configuration value, ready for a program.
#[derive(Clone, Debug, PartialEq)]
pub enum UnitConfigValue {
    Known { value: Value, secret: bool },
    Unknown,
}

impl UnitConfigValue {
    /// The same, and nobody may see it.
    fn hidden(self) -> Self {
        match self {
            Self::Known { value, .. } => Self::Known {
                value,
                secret: true,
            },
            Self::Unknown => Self::Unknown,
        }
    }

    /// As [`LookupValue::fingerprint_text`].
    pub fn fingerprint_text(&self) -> Option<String> {
        match self {
            Self::Known { value, secret } => Some(known_text(value, *secret)),
            Self::Unknown => None,
        }
    }
}

/// Resolved configuration, and everything that was looked up for it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ResolvedUnitConfig {
    pub config: BTreeMap<String, UnitConfigValue>,
    /// By the placeholder as written: equal texts have equal answers, and no inner value, which may
    /// be secret, is in the name.
    pub lookups: BTreeMap<String, LookupValue>,
}

/// Resolves every value of a configuration.
pub async fn resolve(
    config: &Map<String, Value>,
    lookup: &dyn ValueLookup,
) -> Result<ResolvedUnitConfig, ResolveError> {
    let mut resolver = PlaceholderResolver {
        lookup,
        lookups: BTreeMap::new(),
    };
    let mut resolved = BTreeMap::new();
    for (key, value) in config {
        resolved.insert(key.clone(), resolver.value(key, value).await?);
    }
    Ok(ResolvedUnitConfig {
        config: resolved,
        lookups: resolver.lookups,
    })
}

struct PlaceholderResolver<'a> {
    lookup: &'a dyn ValueLookup,
    lookups: BTreeMap<String, LookupValue>,
}

impl PlaceholderResolver<'_> {
    async fn value(&mut self, key: &str, value: &Value) -> Result<UnitConfigValue, ResolveError> {
        match value {
            Value::String(text) => {
                let template =
                    TemplateText::parse(text).map_err(|error| ResolveError::Malformed {
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
                        UnitConfigValue::Unknown => return Ok(UnitConfigValue::Unknown),
                        UnitConfigValue::Known {
                            value,
                            secret: inner,
                        } => {
                            list.push(value);
                            secret |= inner;
                        }
                    }
                }
                Ok(UnitConfigValue::Known {
                    value: Value::Array(list),
                    secret,
                })
            }
            Value::Object(map) => {
                if let Some(name) = secret_name(map) {
                    return self.named_secret(key, name).await;
                }
                let mut object = Map::new();
                let mut secret = false;
                for (name, item) in map {
                    match Box::pin(self.value(&format!("{key}.{name}"), item)).await? {
                        UnitConfigValue::Unknown => return Ok(UnitConfigValue::Unknown),
                        UnitConfigValue::Known {
                            value,
                            secret: inner,
                        } => {
                            object.insert(name.clone(), value);
                            secret |= inner;
                        }
                    }
                }
                Ok(UnitConfigValue::Known {
                    value: Value::Object(object),
                    secret,
                })
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => Ok(UnitConfigValue::Known {
                value: value.clone(),
                secret: false,
            }),
        }
    }

    async fn named_secret(
        &mut self,
        key: &str,
        name: &str,
    ) -> Result<UnitConfigValue, ResolveError> {
        let shown = format!("{{secret: {name}}}");
        let failed = |error: ValueLookupError| ResolveError::Failed {
            key: key.to_owned(),
            placeholder: shown.clone(),
            message: error.message,
        };
        let answer = match self.lookups.get(&shown) {
            Some(known) => known.clone(),
            None => self.lookup.secret(name).await.map_err(failed)?,
        };
        self.lookups.insert(shown.clone(), answer.clone());
        match answer {
            LookupValue::Known { value, .. } => Ok(UnitConfigValue::Known {
                value,
                secret: true,
            }),
            LookupValue::Unknown => Ok(UnitConfigValue::Unknown),
            LookupValue::Absent => Err(ResolveError::NoSecret {
                key: key.to_owned(),
                name: name.to_owned(),
            }),
        }
    }

    async fn template(
        &mut self,
        key: &str,
        template: &TemplateText,
    ) -> Result<UnitConfigValue, ResolveError> {
        if let Some(placeholder) = template.single() {
            return Box::pin(self.placeholder(key, placeholder)).await;
        }
        let mut text = String::new();
        let mut secret = false;
        for part in &template.parts {
            match part {
                TextPart::Text(literal) => text.push_str(literal),
                TextPart::Placeholder(placeholder) => {
                    match Box::pin(self.placeholder(key, placeholder)).await? {
                        UnitConfigValue::Unknown => return Ok(UnitConfigValue::Unknown),
                        UnitConfigValue::Known {
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
        Ok(UnitConfigValue::Known {
            value: Value::String(text),
            secret,
        })
    }

    async fn placeholder(
        &mut self,
        key: &str,
        placeholder: &Placeholder,
    ) -> Result<UnitConfigValue, ResolveError> {
        let Some(question) = self.question(key, placeholder).await? else {
            return Ok(UnitConfigValue::Unknown);
        };
        let name = placeholder.to_string();
        let answer = match self.lookups.get(&name) {
            Some(known) => known.clone(),
            None => {
                let failed = |error: ValueLookupError| ResolveError::Failed {
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
            (LookupValue::Known { value, secret }, _) => Ok(UnitConfigValue::Known {
                value,
                secret: secret || question.secret || placeholder.secret,
            }),
            (LookupValue::Unknown, _) => Ok(UnitConfigValue::Unknown),
            (LookupValue::Absent, Some(default)) => {
                let value = self.template(key, default).await?;
                Ok(if placeholder.secret {
                    value.hidden()
                } else {
                    value
                })
            }
            (LookupValue::Absent, None) => Err(ResolveError::Absent {
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
    ) -> Result<Option<PlaceholderQuery>, ResolveError> {
        let (target, templates) = match &placeholder.source {
            PlaceholderSource::Component { component, output } => (
                QueryTarget::Output(component.clone()),
                std::slice::from_ref(output),
            ),
            PlaceholderSource::Env { variable } => {
                (QueryTarget::Env, std::slice::from_ref(variable))
            }
            PlaceholderSource::Aws { query, parameters } => {
                (QueryTarget::Aws(query.clone()), parameters.as_slice())
            }
            PlaceholderSource::Calculate {
                function,
                parameters,
            } => (
                QueryTarget::Calculate(function.clone()),
                parameters.as_slice(),
            ),
            PlaceholderSource::Resolver {
                resolver,
                output,
                parameters,
            } => (
                QueryTarget::Resolver {
                    resolver: *resolver,
                    output: output.clone(),
                },
                parameters.as_slice(),
            ),
        };
        let mut parameters = Vec::with_capacity(templates.len());
        let mut secret = false;
        for template in templates {
            match Box::pin(self.template(key, template)).await? {
                UnitConfigValue::Unknown => return Ok(None),
                UnitConfigValue::Known {
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
        Ok(Some(PlaceholderQuery {
            target,
            parameters,
            secret,
            hidden: placeholder.secret,
        }))
    }
}

/// The name in `{secret: NAME}`, which stands for a secret of the deployment.
pub fn secret_name(map: &Map<String, Value>) -> Option<&str> {
    match map.get("secret") {
        Some(Value::String(name)) if map.len() == 1 => Some(name),
        _ => None,
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
