//! Configuration that a project declares: types, defaults, secrecy.

use nimbus_core::{Error, ErrorCode, Result};
use nimbus_document::{NodeKind, Number, View};
use nimbus_engine_model::{PathSegment, PropertyPath};
use serde_json::Value;

use super::file::invalid;
use super::key::ConfigKey;

#[derive(Clone, Debug, PartialEq)]
pub struct Declaration {
    /// The key that holds the value.
    pub key: ConfigKey,
    /// Where below that key the value is; empty for the whole.
    pub path: Vec<PathSegment>,
    pub type_: Option<ConfigType>,
    pub given: DeclaredDefault,
    pub secret: bool,
    pub description: Option<String>,
}

/// What a stack gets that says nothing.
#[derive(Clone, Debug, PartialEq)]
pub enum DeclaredDefault {
    /// The stack must say something.
    Nothing,
    /// A default of the project's own configuration, or a value for somebody else's.
    Value(Value),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConfigType {
    String,
    Integer,
    Boolean,
    Object,
    Array(Box<ConfigType>),
}

impl ConfigType {
    pub fn name(&self) -> String {
        match self {
            Self::String => "string".to_owned(),
            Self::Integer => "integer".to_owned(),
            Self::Boolean => "boolean".to_owned(),
            Self::Object => "object".to_owned(),
            Self::Array(items) => format!("array<{}>", items.name()),
        }
    }

    /// Texts that spell a whole number or a truth value count as one: at the top of a stack's
    /// configuration everything plain is text.
    pub fn accepts(&self, value: &Value) -> bool {
        match self {
            Self::String => value.is_string(),
            Self::Integer => match value {
                Value::Number(number) => number.as_f64().is_some_and(|f| f.fract() == 0.0),
                Value::String(text) => text.parse::<i64>().is_ok(),
                _ => false,
            },
            Self::Boolean => match value {
                Value::Bool(_) => true,
                Value::String(text) => text == "true" || text == "false",
                _ => false,
            },
            Self::Object => value.is_object(),
            Self::Array(items) => value
                .as_array()
                .is_some_and(|values| values.iter().all(|value| items.accepts(value))),
        }
    }
}

/// Reads what stands behind `key` in the project's `config`.
pub(super) fn read(project: &str, key: &str, view: &View<'_>) -> Result<Declaration> {
    let own = !key.contains(':') || key.starts_with(&format!("{project}:"));
    let (config_key, path) = place(project, key, view)?;
    let mut declaration = Declaration {
        key: config_key,
        path,
        type_: None,
        given: DeclaredDefault::Nothing,
        secret: false,
        description: None,
    };
    if let Some(short) = shorthand(view)? {
        declaration.given = DeclaredDefault::Value(short);
        return Ok(declaration);
    }
    view.only_keys(&["type", "items", "description", "secret", "default", "value"])?;
    declaration.type_ = declared_type(key, view)?;
    declaration.secret = match view.optional("secret")? {
        Some(secret) => secret.bool()?,
        None => false,
    };
    if let Some(description) = view.optional("description")? {
        declaration.description = Some(description.str()?.to_owned());
    }
    declaration.given = given(key, own, declaration.type_.as_ref(), view)?;
    Ok(declaration)
}

fn given(
    key: &str,
    own: bool,
    type_: Option<&ConfigType>,
    view: &View<'_>,
) -> Result<DeclaredDefault> {
    let json = |view: &View<'_>| view.document().to_json(view.node());
    match (view.optional("default")?, view.optional("value")?) {
        (Some(_), Some(value)) => {
            let message = format!("`{key}` has both a default and a value");
            Err(invalid(&value, message))
        }
        (Some(default), None) if !own => {
            let message = format!("`{key}` belongs to another namespace and cannot have a default");
            Err(invalid(&default, message).with_help("write `value` instead of `default`"))
        }
        (Some(default), None) => {
            let value = json(&default)?;
            if let Some(type_) = type_.filter(|type_| !type_.accepts(&value)) {
                let message = format!("the default of `{key}` is not of type {}", type_.name());
                return Err(invalid(&default, message));
            }
            Ok(DeclaredDefault::Value(value))
        }
        (None, Some(value)) if own || type_.is_none() => json(&value).map(DeclaredDefault::Value),
        (None, None) if own => Ok(DeclaredDefault::Nothing),
        (None, _) if type_.is_some() => {
            let message = format!("`{key}` belongs to another namespace and cannot have a type");
            Err(invalid(view, message))
        }
        (None, _) => {
            let message = format!("`{key}` belongs to another namespace and needs a value");
            Err(invalid(view, message))
        }
    }
}

/// A value alone, without a declaration around it.
fn shorthand(view: &View<'_>) -> Result<Option<Value>> {
    match &view.node().kind {
        NodeKind::Mapping(_) => Ok(None),
        NodeKind::String(_)
        | NodeKind::Bool(_)
        | NodeKind::Sequence(_)
        | NodeKind::Number(Number::Int(_) | Number::UInt(_)) => {
            view.document().to_json(view.node()).map(Some)
        }
        NodeKind::Null | NodeKind::Number(Number::Float(_)) => Err(view.error(
            format!(
                "{} must be a text, a whole number, true or false, a list or a declaration",
                view.path()
            ),
            "none of these",
        )),
    }
}

fn declared_type(key: &str, view: &View<'_>) -> Result<Option<ConfigType>> {
    let Some(type_) = view.optional("type")? else {
        return Ok(None);
    };
    let items = view.optional("items")?;
    type_of(key, &type_, items.as_ref()).map(Some)
}

fn type_of(key: &str, type_: &View<'_>, items: Option<&View<'_>>) -> Result<ConfigType> {
    match type_.str()? {
        "string" => Ok(ConfigType::String),
        "integer" => Ok(ConfigType::Integer),
        "boolean" => Ok(ConfigType::Boolean),
        "object" => Ok(ConfigType::Object),
        "array" => {
            let Some(items) = items else {
                let message = format!("`{key}` is a list and does not say of what");
                return Err(invalid(type_, message).with_help("add `items` with a `type`"));
            };
            let inner = items.optional("items")?;
            let item = type_of(key, &items.required("type")?, inner.as_ref())?;
            Ok(ConfigType::Array(Box::new(item)))
        }
        other => {
            let message = format!("`{other}` is not a type of configuration");
            let help = "the types are string, integer, boolean, object and array";
            Err(invalid(type_, message).with_help(help))
        }
    }
}

/// The key that holds the value, and the path below it.
fn place(project: &str, text: &str, view: &View<'_>) -> Result<(ConfigKey, Vec<PathSegment>)> {
    let wrong = |message: String| key_error(view, message);
    let key = ConfigKey::parse_in(text, project).map_err(|error| wrong(error.to_string()))?;
    split_path(&key).map_err(wrong)
}

/// Splits `shop:a.b[0]` into the key `shop:a` and the rest of the path.
pub(super) fn split_path(key: &ConfigKey) -> Result<(ConfigKey, Vec<PathSegment>), String> {
    let path = PropertyPath::parse(key.name()).map_err(|error| error.to_string())?;
    match path.segments() {
        [PathSegment::Key(first), rest @ ..] if !first.is_empty() => {
            let holder = ConfigKey::new(key.namespace(), first)
                .ok_or_else(|| format!("`{key}` has a colon in its path"))?;
            Ok((holder, rest.to_vec()))
        }
        _ => Err(format!("the path in `{key}` does not start with a name")),
    }
}

fn key_error(view: &View<'_>, message: String) -> Error {
    let document = view.document();
    document.error(
        ErrorCode::CONFIG_KEY,
        view.span(),
        message,
        "the value of this key",
    )
}

#[cfg(test)]
mod tests {
    use nimbus_document::Document;
    use serde_json::json;

    use super::*;

    fn declare(text: &str) -> Result<Declaration> {
        let document = Document::parse("Pulumi.yaml", text)?;
        let root = document.view();
        let (key, value) = root.entries()?.next().unwrap();
        read("shop", key, &value)
    }

    #[test]
    fn a_value_alone_is_a_default_or_a_value() {
        for (text, expected) in [
            ("size: t3.micro", json!("t3.micro")),
            ("shop:count: 3", json!(3)),
            ("aws:region: eu-west-1", json!("eu-west-1")),
            ("zones: [a, b]", json!(["a", "b"])),
        ] {
            let declaration = declare(text).unwrap();
            assert_eq!(
                declaration.given,
                DeclaredDefault::Value(expected),
                "{text}"
            );
            assert_eq!(declaration.type_, None);
        }
    }

    #[test]
    fn declarations_carry_types_secrecy_and_paths() {
        let text = "network.cidrs: {type: array, items: {type: array, items: {type: string}}, secret: true}";
        let declaration = declare(text).unwrap();
        assert_eq!(declaration.key.to_string(), "shop:network");
        assert_eq!(declaration.path, [PathSegment::from("cidrs")]);
        assert_eq!(declaration.type_.unwrap().name(), "array<array<string>>");
        assert!(declaration.secret);
        assert_eq!(declaration.given, DeclaredDefault::Nothing);
    }

    #[test]
    fn contradictions_are_refused() {
        for (text, part) in [
            ("a: {default: 1, value: 2}", "both"),
            ("a: {type: array}", "of what"),
            ("a: {type: integer, default: x}", "integer"),
            ("a: {type: int}", "int"),
            ("aws:region: {type: string}", "type"),
            ("aws:region: {default: x}", "default"),
            ("aws:region: {description: x}", "needs a value"),
            ("a: {typ: string}", "typ"),
            ("a: 1.5", "whole number"),
            ("a:b:c: 1", "key"),
            ("'[0]': 1", "start with a name"),
        ] {
            let error = declare(text).unwrap_err();
            assert!(
                error.message().contains(part),
                "{text}: {}",
                error.message()
            );
        }
    }

    #[test]
    fn types_accept_what_spells_them() {
        let accepts = |type_: ConfigType, value: Value| type_.accepts(&value);
        assert!(accepts(ConfigType::Integer, json!("3")));
        assert!(accepts(ConfigType::Integer, json!(3.0)));
        assert!(!accepts(ConfigType::Integer, json!(3.5)));
        assert!(accepts(ConfigType::Boolean, json!("true")));
        assert!(!accepts(ConfigType::Boolean, json!("yes")));
        assert!(!accepts(ConfigType::String, json!(3)));
        let list = ConfigType::Array(Box::new(ConfigType::Boolean));
        assert!(accepts(list.clone(), json!([true, "false"])));
        assert!(!accepts(list, json!([1])));
    }
}
