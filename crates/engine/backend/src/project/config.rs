//! A stack's configuration: the map as written, and what a program gets of it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use nimbus_core::{Error, ErrorCode, Result};
use nimbus_engine_model::secrets::CryptError;
use nimbus_engine_model::{PathSegment, PropertyMap, PropertyPath, PropertyValue};
use serde_json::Value;

use super::declaration::{Declaration, DeclaredDefault, split_path};
use super::file::Project;
use super::key::ConfigKey;
use super::value::{ConfigValue, PlaceError, coerced, json_text};
use crate::secrets::StackSecrets;

/// Values by key, secrets encrypted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ConfigMap(BTreeMap<ConfigKey, ConfigValue>);

impl ConfigMap {
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&ConfigKey, &ConfigValue)> {
        self.0.iter()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn has_secrets(&self) -> bool {
        self.0.values().any(ConfigValue::is_secure)
    }

    pub fn get(&self, key: &ConfigKey, path: &[PathSegment]) -> Option<&ConfigValue> {
        self.0.get(key)?.get(path)
    }

    pub fn set(
        &mut self,
        key: &ConfigKey,
        path: &[PathSegment],
        new: ConfigValue,
    ) -> Result<(), PlaceError> {
        if path.is_empty() {
            self.0.insert(key.clone(), new.at_top());
            return Ok(());
        }
        let mut value = self.0.get(key).cloned().unwrap_or(ConfigValue::Null);
        let place = PropertyPath::new([PathSegment::from(key.name())]);
        value.set(&place, path, new)?;
        self.0.insert(key.clone(), value);
        Ok(())
    }

    pub fn remove(&mut self, key: &ConfigKey, path: &[PathSegment]) -> Result<(), PlaceError> {
        if path.is_empty() {
            self.0.remove(key);
            return Ok(());
        }
        self.0
            .get_mut(key)
            .map_or(Ok(()), |value| value.remove(path))
    }

    /// Every value with its kind, secrets opened and marked as such.
    pub fn decrypted(&self, secrets: &StackSecrets) -> Result<BTreeMap<ConfigKey, PropertyValue>> {
        decrypt(self, secrets)
    }

    /// As it is written to a stack's history.
    pub fn to_json(&self) -> Value {
        let entries = self.0.iter();
        Value::Object(
            entries
                .map(|(key, value)| (key.to_string(), value.to_json()))
                .collect(),
        )
    }
}

/// What a program gets.
#[derive(Clone, PartialEq)]
pub struct ResolvedConfig {
    /// With the project's defaults, secrets still encrypted.
    pub encrypted: ConfigMap,
    /// Texts by `namespace:name`; what is not a text is JSON.
    pub values: BTreeMap<String, String>,
    /// Keys whose values are secret, wholly or in part.
    pub secret_keys: BTreeSet<String>,
    /// The same values with their kinds.
    pub properties: PropertyMap,
}

/// Shows which keys there are and nothing of their values.
impl fmt::Debug for ResolvedConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.values.keys()).finish()
    }
}

/// Completes a stack's configuration with what the project declares, checks it and decrypts it.
pub fn resolve(
    project: &Project,
    stack: &str,
    config: &ConfigMap,
    secrets: &StackSecrets,
) -> Result<ResolvedConfig> {
    let mut encrypted = config.clone();
    let mut missing = Vec::new();
    for (written, declaration) in &project.config {
        let Declaration {
            key, path, given, ..
        } = declaration;
        if encrypted.get(key, path).is_some() {
            continue;
        }
        match given {
            DeclaredDefault::Value(value) => {
                let value = ConfigValue::from_json(value);
                let misplaced = |error: PlaceError| misplaced(key, &error);
                encrypted.set(key, path, value).map_err(misplaced)?;
            }
            DeclaredDefault::Nothing if key.namespace() == project.name => {
                missing.push(written.clone());
            }
            DeclaredDefault::Nothing => {}
        }
    }
    if !missing.is_empty() {
        let message = format!("{stack} lacks the configuration {}", missing.join(", "));
        return Err(Error::new(ErrorCode::CONFIG_MISSING, message)
            .with_help(format!("set it in {}", project.stack_file(stack).display())));
    }
    let plain = decrypt(&encrypted, secrets)?;
    for (written, declaration) in &project.config {
        check(stack, written, declaration, &encrypted, &plain)?;
    }
    Ok(resolved(encrypted, &plain))
}

impl ResolvedConfig {
    /// The same with the project's defaults for what is not given. A value that the project declares
    /// without a default has to be there.
    pub fn completed(&self, project: &Project, stack: &str) -> Result<Self> {
        let mut defaults = ConfigMap::default();
        let mut missing = Vec::new();
        for (written, declaration) in &project.config {
            let key = &declaration.key;
            if self.values.contains_key(&key.to_string()) {
                continue;
            }
            match &declaration.given {
                DeclaredDefault::Value(value) => {
                    let value = ConfigValue::from_json(value);
                    let misplaced = |error: PlaceError| misplaced(key, &error);
                    let set = defaults.set(key, &declaration.path, value);
                    set.map_err(misplaced)?;
                }
                DeclaredDefault::Nothing if key.namespace() == project.name => {
                    missing.push(written.clone());
                }
                DeclaredDefault::Nothing => {}
            }
        }
        if !missing.is_empty() {
            let message = format!("{stack} lacks the configuration {}", missing.join(", "));
            return Err(Error::new(ErrorCode::CONFIG_MISSING, message)
                .with_help("set it in the manifest of the deployment"));
        }
        let mut plain = Plain::new();
        for (key, value) in defaults.iter() {
            plain.insert(key.clone(), opened(value, &|_| Err(no_salt(key)))?);
        }
        let declared = resolved(ConfigMap::default(), &plain);
        let mut completed = self.clone();
        for (key, text) in declared.values {
            completed.values.entry(key).or_insert(text);
        }
        for (key, value) in declared.properties {
            completed.properties.entry(key).or_insert(value);
        }
        Ok(completed)
    }
}

/// Reads a key that a person gave: `name`, `namespace:name`, or, `with_path`, `name.inner[0]`.
pub fn parse_key(
    text: &str,
    project: &str,
    with_path: bool,
) -> Result<(ConfigKey, Vec<PathSegment>)> {
    let wrong = |message: String| Error::new(ErrorCode::CONFIG_KEY, message);
    let key = ConfigKey::parse_in(text, project)
        .map_err(|error| wrong(error.to_string()).with_help("write `name` or `namespace:name`"))?;
    if with_path {
        split_path(&key).map_err(wrong)
    } else {
        Ok((key, Vec::new()))
    }
}

/// Decrypted, with secrets marked.
type Plain = BTreeMap<ConfigKey, PropertyValue>;

fn decrypt(config: &ConfigMap, secrets: &StackSecrets) -> Result<Plain> {
    let crypter = if config.has_secrets() && secrets.provider().is_some() {
        Some(secrets.crypter()?)
    } else {
        None
    };
    let mut plain = Plain::new();
    for (key, value) in config.iter() {
        let open = |ciphertext: &str| {
            let crypter = crypter.as_ref().ok_or_else(|| no_salt(key))?;
            let text = crypter
                .decrypt(ciphertext)
                .map_err(|error| undecryptable(key, &error))?;
            Ok(PropertyValue::secret(text.as_str().into()))
        };
        plain.insert(key.clone(), opened(value, &open)?);
    }
    Ok(plain)
}

fn opened(
    value: &ConfigValue,
    open: &dyn Fn(&str) -> Result<PropertyValue>,
) -> Result<PropertyValue> {
    Ok(match value {
        ConfigValue::Null => PropertyValue::Null,
        ConfigValue::Bool(value) => PropertyValue::Bool(*value),
        ConfigValue::Int(value) => PropertyValue::Number(*value as f64),
        ConfigValue::UInt(value) => PropertyValue::Number(*value as f64),
        ConfigValue::Float(value) => PropertyValue::Number(*value),
        ConfigValue::Text(text) => text.as_str().into(),
        ConfigValue::Secure(ciphertext) => open(ciphertext)?,
        ConfigValue::List(items) => {
            let items = items.iter().map(|item| opened(item, open));
            items.collect::<Result<Vec<_>>>()?.into()
        }
        ConfigValue::Map(map) => {
            let entries = map.iter().map(|(k, v)| Ok((k.clone(), opened(v, open)?)));
            entries.collect::<Result<PropertyMap>>()?.into()
        }
    })
}

fn check(
    stack: &str,
    written: &str,
    declaration: &Declaration,
    encrypted: &ConfigMap,
    plain: &Plain,
) -> Result<()> {
    let Some(value) = encrypted.get(&declaration.key, &declaration.path) else {
        return Ok(());
    };
    let Some(type_) = &declaration.type_ else {
        return Ok(());
    };
    if declaration.secret && !value.is_secure() {
        let message = format!("`{written}` of {stack} must be a secret");
        return Err(
            Error::new(ErrorCode::CONFIG_NOT_SECRET, message).with_help("set it again as a secret")
        );
    }
    let found = plain
        .get(&declaration.key)
        .and_then(|value| at(value, &declaration.path))
        .map_or(Value::Null, exposed);
    if type_.accepts(&found) {
        return Ok(());
    }
    // The value stays out of the message: it may be a secret.
    let message = format!("`{written}` of {stack} must be of type {}", type_.name());
    Err(Error::new(ErrorCode::CONFIG_TYPE, message))
}

fn resolved(encrypted: ConfigMap, plain: &Plain) -> ResolvedConfig {
    let mut resolved = ResolvedConfig {
        values: BTreeMap::new(),
        secret_keys: BTreeSet::new(),
        properties: PropertyMap::new(),
        encrypted,
    };
    for (key, value) in plain {
        let name = key.to_string();
        let text = match exposed(value) {
            Value::String(text) => text,
            other => json_text(&other),
        };
        let property = match value {
            PropertyValue::String(text) => plain_property(text),
            other => other.clone(),
        };
        if value.contains_secrets() {
            resolved.secret_keys.insert(name.clone());
        }
        resolved.values.insert(name.clone(), text);
        resolved.properties.insert(name, property);
    }
    resolved
}

fn plain_property(text: &str) -> PropertyValue {
    match coerced(text) {
        ConfigValue::Bool(value) => PropertyValue::Bool(value),
        ConfigValue::Int(value) => PropertyValue::Number(value as f64),
        ConfigValue::UInt(value) => PropertyValue::Number(value as f64),
        _ => text.into(),
    }
}

fn at<'v>(value: &'v PropertyValue, path: &[PathSegment]) -> Option<&'v PropertyValue> {
    PropertyPath::new(path.iter().cloned()).get(value)
}

/// JSON with secrets in clear text, for the program that they are meant for.
fn exposed(value: &PropertyValue) -> Value {
    match value {
        PropertyValue::Bool(value) => Value::Bool(*value),
        PropertyValue::Number(value) => ConfigValue::Float(*value).to_json(),
        PropertyValue::String(text) => Value::String(text.clone()),
        PropertyValue::Secret(inner) => exposed(inner),
        PropertyValue::Array(items) => items.iter().map(exposed).collect(),
        PropertyValue::Object(map) => {
            Value::Object(map.iter().map(|(k, v)| (k.clone(), exposed(v))).collect())
        }
        // Configuration has no other kinds.
        _ => Value::Null,
    }
}

fn misplaced(key: &ConfigKey, error: &PlaceError) -> Error {
    Error::new(
        ErrorCode::CONFIG_KEY,
        format!("`{key}` cannot be set: {error}"),
    )
}

fn no_salt(key: &ConfigKey) -> Error {
    let message = format!("`{key}` is encrypted, and the stack's settings have no encryptionsalt");
    Error::new(ErrorCode::SECRETS_UNREADABLE, message)
        .with_help("restore the `encryptionsalt` line, or set the value again as a secret")
}

fn undecryptable(key: &ConfigKey, error: &CryptError) -> Error {
    let message = format!("`{key}` cannot be decrypted: {error}");
    Error::new(ErrorCode::SECRETS_UNREADABLE, message).with_help("set the value again as a secret")
}
