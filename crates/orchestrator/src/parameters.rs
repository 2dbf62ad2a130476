//! A unit's parameters by their one name.
//!
//! A program that asks for `size` is given `size`, `net:size` and the older `net:config:size` alike, where `net` is its
//! own namespace. Whoever holds parameters to something (a rule, a contract, a wire) has to see all of these as `size`,
//! or another spelling is a way around it. This is the one place that knows the spellings.

use std::collections::BTreeMap;

use nimbus_core::{ComponentName, EnvironmentName};
use serde_json::{Map, Value};

use crate::manifest::Manifest;

/// A parameter that is written in two spellings, so that nobody can say which one counts.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{first}` and `{second}` are the same parameter; keep one of them")]
pub struct RepeatedParameter {
    pub first: String,
    pub second: String,
}

/// The parameter that a configuration key is, for a program of this namespace; none for another's key, such as a
/// provider's.
pub fn own_parameter<'a>(namespace: &str, key: &'a str) -> Option<&'a str> {
    let Some((owner, name)) = key.split_once(':') else {
        return Some(key);
    };
    let name = name.strip_prefix("config:").unwrap_or(name);
    (owner == namespace).then_some(name)
}

/// A key in the one spelling that programs are given: with its namespace.
pub fn whole_key(namespace: &str, key: &str) -> String {
    match own_parameter(namespace, key) {
        Some(name) => format!("{namespace}:{name}"),
        None => key.to_owned(),
    }
}

impl Manifest {
    /// What a unit is given, inherited values too: its component's own parameters by their names, and other keys as
    /// they are written.
    pub fn parameters_of(
        &self,
        component: &ComponentName,
        environment: EnvironmentName,
    ) -> Result<Map<String, Value>, RepeatedParameter> {
        let entry = self.stacks.get(component);
        let config = entry.and_then(|entry| entry.config.get(&environment));
        let namespace = self.namespace(component);
        let mut written: BTreeMap<&str, &str> = BTreeMap::new();
        let mut named = Map::new();
        for (key, value) in config.into_iter().flatten() {
            let name = own_parameter(namespace, key).unwrap_or(key);
            if let Some(first) = written.insert(name, key) {
                return Err(RepeatedParameter {
                    first: first.to_owned(),
                    second: key.clone(),
                });
            }
            named.insert(name.to_owned(), value.clone());
        }
        Ok(named)
    }
}

#[cfg(test)]
mod tests {
    use nimbus_document::Document;
    use serde_json::json;

    use super::*;

    fn parameters(spec: &str) -> Result<Map<String, Value>, RepeatedParameter> {
        let text = format!(
            "apiVersion: nimbus/v1\nkind: DeploymentManifest\nmetadata: {{deploymentId: D1, organization: o, \
             project: p, template: t}}\nspec:\n  environments:\n    dev: {{enabled: true}}\n{spec}"
        );
        let manifest = Manifest::read(&Document::parse("m.yaml", &text).unwrap()).unwrap();
        manifest.parameters_of(&"net".parse().unwrap(), EnvironmentName::DEV)
    }

    fn of_unit(config: &str) -> Result<Map<String, Value>, RepeatedParameter> {
        parameters(&format!(
            "  stacks:\n    net: {{enabled: true, config: {{dev: {{{config}}}}}}}\n"
        ))
    }

    #[test]
    fn every_spelling_of_a_parameter_is_that_parameter() {
        for spelling in ["size", "'net:size'", "'net:config:size'"] {
            let found = of_unit(&format!("{spelling}: 9, 'aws:region': r")).unwrap();
            assert_eq!(
                Value::Object(found),
                json!({"size": 9, "aws:region": "r"}),
                "{spelling}"
            );
        }
        assert_eq!(whole_key("net", "net:config:size"), "net:size");
        assert_eq!(whole_key("net", "size"), "net:size");
        assert_eq!(whole_key("net", "aws:config:region"), "aws:config:region");
    }

    #[test]
    fn two_spellings_of_one_parameter_are_refused() {
        for both in [
            "size: 1, 'net:size': 9",
            "'net:size': 1, 'net:config:size': 9",
            "size: 1, 'net:config:size': 9",
        ] {
            assert!(of_unit(both).is_err(), "{both}");
        }
    }
}
