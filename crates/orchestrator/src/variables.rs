//! Template variables: `{{NAME}}`, filled in once, when a deployment is initialised.
//!
//! A text that is one variable and nothing else takes the variable's value with its type, so that
//! a count stays a number. Run-time placeholders are not variables and stay as they are.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// Variables every template has, with the defaults of those that have one.
pub(crate) const GLOBAL: &[(&str, Option<&str>)] = &[
    ("DEPLOYMENT_ID", None),
    ("TIMESTAMP", None),
    ("USER_EMAIL", None),
    ("ORGANIZATION", None),
    ("PROJECT_NAME", None),
    ("DOMAIN", None),
    ("PULUMI_ORG", None),
    ("PRIMARY_REGION", Some("us-east-1")),
    ("SECONDARY_REGION", Some("us-west-2")),
    ("AWS_ACCOUNT_DEV", None),
    ("AWS_ACCOUNT_STAGE", None),
    ("AWS_ACCOUNT_PROD", None),
    ("TEAM", Some("infrastructure")),
    ("COST_CENTER", Some("engineering")),
    ("DESCRIPTION", None),
];

#[derive(Clone, Debug, Default, PartialEq)]
pub struct TemplateVariables {
    values: BTreeMap<String, Value>,
}

/// A variable that nothing gives a value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path} uses {{{{{name}}}}}, and nothing gives it a value")]
pub struct UnknownVariable {
    pub name: String,
    /// Where it is used, such as `spec.environments.dev.account`.
    pub path: String,
}

impl TemplateVariables {
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.values.get(name)
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.values.keys().map(String::as_str)
    }

    /// Gives a variable a value unless it has one.
    pub fn set_default(&mut self, name: &str, value: Value) {
        self.values.entry(name.to_owned()).or_insert(value);
    }

    /// Gives a variable a value.
    pub fn set(&mut self, name: &str, value: Value) {
        self.values.insert(name.to_owned(), value);
    }

    /// Gives a variable the value that a person typed; it takes the type of the default it
    /// replaces, so that `--set AZ_COUNT_DEV=3` is a number.
    pub fn set_text(&mut self, name: &str, text: &str) {
        let typed = match self.values.get(name) {
            Some(Value::Number(_)) => text.parse::<i64>().ok().map(Value::from),
            Some(Value::Bool(_)) => text.parse::<bool>().ok().map(Value::from),
            _ => None,
        };
        self.values
            .insert(name.to_owned(), typed.unwrap_or_else(|| Value::from(text)));
    }

    /// The value with every variable in it replaced.
    pub fn render(&self, value: &Value) -> Result<Value, UnknownVariable> {
        self.render_at(value, "")
    }

    pub fn render_map(
        &self,
        map: &Map<String, Value>,
    ) -> Result<Map<String, Value>, UnknownVariable> {
        map.iter()
            .map(|(key, value)| Ok((key.clone(), self.render_at(value, key)?)))
            .collect()
    }

    fn render_at(&self, value: &Value, path: &str) -> Result<Value, UnknownVariable> {
        Ok(match value {
            Value::String(text) => self.render_text(text, path)?,
            Value::Array(items) => items
                .iter()
                .enumerate()
                .map(|(at, item)| self.render_at(item, &format!("{path}[{at}]")))
                .collect::<Result<_, _>>()?,
            Value::Object(map) => Value::Object(
                map.iter()
                    .map(|(key, value)| {
                        let path = if path.is_empty() {
                            key.clone()
                        } else {
                            format!("{path}.{key}")
                        };
                        Ok((key.clone(), self.render_at(value, &path)?))
                    })
                    .collect::<Result<_, UnknownVariable>>()?,
            ),
            Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
        })
    }

    fn render_text(&self, text: &str, path: &str) -> Result<Value, UnknownVariable> {
        let look_up = |name: &str| {
            let unknown = || UnknownVariable {
                name: name.to_owned(),
                path: path.to_owned(),
            };
            self.values.get(name).ok_or_else(unknown)
        };
        let uses = variables_in(text);
        if let [(range, name)] = uses.as_slice()
            && *range == (0..text.len())
        {
            return look_up(name).cloned();
        }
        let mut rendered = String::with_capacity(text.len());
        let mut rest = 0;
        for (range, name) in uses {
            rendered.push_str(&text[rest..range.start]);
            match look_up(name)? {
                Value::String(value) => rendered.push_str(value),
                other => rendered.push_str(&other.to_string()),
            }
            rest = range.end;
        }
        rendered.push_str(&text[rest..]);
        Ok(Value::String(rendered))
    }
}

/// Every `{{NAME}}` in a text, where NAME is upper case letters, digits and underscores.
pub fn variables_in(text: &str) -> Vec<(std::ops::Range<usize>, &str)> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(open) = text[at..].find("{{").map(|offset| at + offset) {
        let name_at = open + 2;
        let length = text[name_at..]
            .bytes()
            .take_while(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || *b == b'_')
            .count();
        let end = name_at + length;
        if length > 0 && text[end..].starts_with("}}") {
            found.push((open..end + 2, &text[name_at..end]));
            at = end + 2;
        } else {
            at = open + 1;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn variables() -> TemplateVariables {
        let mut variables = TemplateVariables::default();
        variables.set("ORG", json!("acme"));
        variables.set("COUNT", json!(2));
        variables
    }

    #[test]
    fn variables_are_replaced_anywhere_and_keep_their_type_alone() {
        let rendered = variables().render(&json!({
            "alone": "{{COUNT}}",
            "inside": "{{ORG}}-{{COUNT}}x",
            "list": ["{{ORG}}", 1, null],
            "later": "{{RUNTIME:network:vpcId}} {{ORG}}",
        }));
        assert_eq!(
            rendered.unwrap(),
            json!({
                "alone": 2,
                "inside": "acme-2x",
                "list": ["acme", 1, null],
                "later": "{{RUNTIME:network:vpcId}} acme",
            })
        );
    }

    #[test]
    fn an_unknown_variable_is_named_with_its_place() {
        let error = variables()
            .render(&json!({"a": {"b": ["x {{NOPE}}"]}}))
            .unwrap_err();
        assert_eq!(
            error.to_string(),
            "a.b[0] uses {{NOPE}}, and nothing gives it a value"
        );
    }

    #[test]
    fn a_typed_text_takes_the_type_of_its_default() {
        let mut variables = variables();
        variables.set_text("COUNT", "3");
        variables.set_text("ORG", "3");
        assert_eq!(variables.get("COUNT"), Some(&json!(3)));
        assert_eq!(variables.get("ORG"), Some(&json!("3")));
    }

    #[test]
    fn braces_that_are_no_variable_are_text() {
        for text in [
            "{{",
            "{{}}",
            "{{lower}}",
            "{{A",
            "{{{A}}}",
            "{{RUNTIME:a:b}}",
        ] {
            let uses = variables_in(text);
            assert!(
                uses.len() <= usize::from(text == "{{{A}}}"),
                "{text}: {uses:?}"
            );
        }
    }
}
