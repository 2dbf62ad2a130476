//! The stack's configuration, as providers get it.

use nimbus_engine_model::{PropertyMap, PropertyValue};
use nimbus_engine_ports::DeploymentContext;

use crate::error::MonitorError;

/// Packages whose providers run the program's own code and therefore get its whole configuration.
const DYNAMIC: [&str; 2] = ["pulumi-nodejs", "pulumi-python"];

/// Configuration for the default provider of a package. Values are text, as they are in the
/// configuration; structured ones are JSON.
pub fn package_config(context: &DeploymentContext, package: &str) -> PropertyMap {
    let keep_namespace = DYNAMIC.contains(&package);
    let entries = context.config.iter().filter_map(|(key, value)| {
        let (namespace, name) = key.split_once(':')?;
        let name = match (keep_namespace, namespace == package) {
            (true, _) => key.as_str(),
            (false, true) => name,
            (false, false) => return None,
        };
        let value = PropertyValue::from(value.as_str());
        let secret = context.config_secret_keys.contains(key);
        let value = if secret {
            PropertyValue::secret(value)
        } else {
            value
        };
        Some((name.to_owned(), value))
    });
    entries.collect()
}

/// Whether the configuration forbids a default provider for the package.
pub(crate) fn denies_default_provider(
    context: &DeploymentContext,
    package: &str,
) -> Result<bool, MonitorError> {
    // Without the built-in package no program could run.
    if package == "pulumi" {
        return Ok(false);
    }
    let Some(text) = context.config.get("pulumi:disable-default-providers") else {
        return Ok(false);
    };
    if text.is_empty() {
        return Ok(false);
    }
    let names: Vec<String> =
        serde_json::from_str(text).map_err(|_| MonitorError::BadDisableDefaultProviders)?;
    let names = names.iter().map(|name| name.trim());
    Ok(names.into_iter().any(|name| name == "*" || name == package))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn context(config: &[(&str, &str)], secret: &[&str]) -> DeploymentContext {
        let own = |text: &&str| (*text).to_owned();
        DeploymentContext {
            config: config.iter().map(|(k, v)| (own(k), own(v))).collect(),
            config_secret_keys: secret.iter().map(own).collect(),
            ..DeploymentContext::default()
        }
    }

    #[test]
    fn a_package_gets_its_own_keys_as_text() {
        let context = context(
            &[
                ("aws:region", "eu-west-1"),
                ("aws:defaultTags", r#"{"tags":{"a":"b"}}"#),
                ("aws:token", "t"),
                ("shop:size", "3"),
            ],
            &["aws:token"],
        );
        let config = package_config(&context, "aws");
        assert_eq!(config.len(), 3);
        assert_eq!(config["region"], "eu-west-1".into());
        assert_eq!(config["defaultTags"], r#"{"tags":{"a":"b"}}"#.into());
        assert_eq!(config["token"], PropertyValue::secret("t".into()));
    }

    #[test]
    fn dynamic_providers_get_everything_under_full_keys() {
        let context = context(&[("aws:region", "eu"), ("shop:size", "3")], &[]);
        let config = package_config(&context, "pulumi-nodejs");
        assert_eq!(config["aws:region"], "eu".into());
        assert_eq!(config["shop:size"], "3".into());
    }

    #[test]
    fn default_providers_are_denied_by_name_or_all_at_once() {
        let denied = |value: &str, package: &str| {
            let context = context(&[("pulumi:disable-default-providers", value)], &[]);
            denies_default_provider(&context, package)
        };
        assert_eq!(denied(r#"["aws", " gcp "]"#, "aws"), Ok(true));
        assert_eq!(denied(r#"["aws", " gcp "]"#, "gcp"), Ok(true));
        assert_eq!(denied(r#"["aws"]"#, "azure"), Ok(false));
        assert_eq!(denied(r#"["*"]"#, "azure"), Ok(true));
        assert_eq!(denied(r#"["*"]"#, "pulumi"), Ok(false));
        assert_eq!(denied("", "aws"), Ok(false));
        for bad in ["aws", r#"{"aws":1}"#, "[1]"] {
            assert_eq!(
                denied(bad, "aws"),
                Err(MonitorError::BadDisableDefaultProviders),
                "{bad}"
            );
        }
    }
}
