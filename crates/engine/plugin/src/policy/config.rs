//! The configuration of a policy pack: what the pack brings, overlaid with what the user says.

use std::collections::BTreeMap;

use nimbus_engine_ports::EnforcementLevel;
use nimbus_engine_proto as proto;
use proto::{Kind, ListValue, Struct, Value};
use serde_json::Map;

/// The key that stands for every policy of the pack.
const ALL: &str = "all";
const LEVEL: &str = "enforcementLevel";

/// One policy's settings.
#[derive(Clone, Debug, PartialEq, Default)]
pub(super) struct PolicySettings {
    /// `None`: as it is already.
    level: Option<EnforcementLevel>,
    properties: Map<String, serde_json::Value>,
}

type Config = BTreeMap<String, PolicySettings>;

/// Reads a configuration as users write it: for each policy either a level, or an object with
/// properties and perhaps a level.
pub(super) fn parse(config: &Map<String, serde_json::Value>) -> Result<Config, String> {
    // References to remote environments are another service's.
    let policies = config.iter().filter(|(name, _)| *name != "environments");
    let parse_one = |(name, value): (&String, &serde_json::Value)| {
        let settings = match value {
            serde_json::Value::String(level) => PolicySettings {
                level: Some(parse_level(level)?),
                properties: Map::new(),
            },
            serde_json::Value::Object(properties) => {
                let mut properties = properties.clone();
                let level = match properties.remove(LEVEL) {
                    None => None,
                    Some(serde_json::Value::String(level)) => Some(parse_level(&level)?),
                    Some(_) => return Err(format!("{name}: {LEVEL} must be a text")),
                };
                PolicySettings { level, properties }
            }
            _ => return Err(format!("{name}: must be an enforcement level or an object")),
        };
        Ok((name.clone(), settings))
    };
    policies.map(parse_one).collect()
}

/// What to configure the pack with: its defaults, its own configuration, the user's.
pub(super) fn reconcile(info: &proto::AnalyzerInfo, user: Config) -> Result<Config, String> {
    let mut config = Config::new();
    for policy in &info.policies {
        let defaults = properties_of(policy)
            .into_iter()
            .filter_map(|(name, schema)| Some((name, schema.as_object()?.get("default")?.clone())));
        let level = Some(level(policy.enforcement_level)?);
        config.insert(
            policy.name.clone(),
            PolicySettings {
                level,
                properties: defaults.collect(),
            },
        );
    }
    let mut initial = Config::new();
    for (name, given) in &info.initial_config {
        let level = Some(level(given.enforcement_level)?);
        let properties = given.properties.clone().map(object).unwrap_or_default();
        initial.insert(name.clone(), PolicySettings { level, properties });
    }
    overlay(&mut config, initial);
    overlay(&mut config, user);
    validate(info, &config)?;
    Ok(config)
}

fn overlay(config: &mut Config, given: Config) {
    if let Some(level) = given.get(ALL).and_then(|all| all.level) {
        config
            .values_mut()
            .for_each(|settings| settings.level = Some(level));
    }
    for (name, given) in given {
        let settings = config.entry(name).or_default();
        settings.level = given.level.or(settings.level);
        settings.properties.extend(given.properties);
    }
}

fn validate(info: &proto::AnalyzerInfo, config: &Config) -> Result<(), String> {
    let mut problems = Vec::new();
    for policy in &info.policies {
        let Some(declared) = &policy.config_schema else {
            continue;
        };
        let schema = serde_json::json!({
            "type": "object",
            "properties": properties_of(policy),
            "required": declared.required,
        });
        let validator = jsonschema::validator_for(&schema)
            .map_err(|error| format!("{}: its schema is not valid: {error}", policy.name))?;
        let properties = config
            .get(&policy.name)
            .map(|settings| settings.properties.clone());
        let properties = serde_json::Value::Object(properties.unwrap_or_default());
        let errors = validator.iter_errors(&properties);
        problems.extend(errors.map(|error| format!("{}: {error}", policy.name)));
    }
    if problems.is_empty() {
        Ok(())
    } else {
        Err(problems.join("; "))
    }
}

fn properties_of(policy: &proto::PolicyInfo) -> Map<String, serde_json::Value> {
    let schema = policy.config_schema.as_ref();
    schema
        .and_then(|schema| schema.properties.clone())
        .map(object)
        .unwrap_or_default()
}

pub(super) fn to_message(config: Config) -> proto::ConfigureAnalyzerRequest {
    let convert = |(name, settings): (String, PolicySettings)| {
        let level = settings.level.unwrap_or(EnforcementLevel::Advisory);
        let properties = settings
            .properties
            .into_iter()
            .map(|(key, v)| (key, to_wire(v)));
        let config = proto::PolicyConfig {
            enforcement_level: i32::from(to_wire_level(level)),
            properties: Some(Struct {
                fields: properties.collect(),
            }),
        };
        (name, config)
    };
    proto::ConfigureAnalyzerRequest {
        policy_config: config.into_iter().map(convert).collect(),
    }
}

fn parse_level(text: &str) -> Result<EnforcementLevel, String> {
    match text {
        "advisory" => Ok(EnforcementLevel::Advisory),
        "mandatory" => Ok(EnforcementLevel::Mandatory),
        "disabled" => Ok(EnforcementLevel::Disabled),
        "remediate" => Ok(EnforcementLevel::Remediate),
        _ => Err(format!(
            "{text:?} is no enforcement level: use advisory, mandatory, remediate or disabled"
        )),
    }
}

pub(super) fn level(number: i32) -> Result<EnforcementLevel, String> {
    match proto::EnforcementLevel::try_from(number) {
        Ok(proto::EnforcementLevel::Advisory) => Ok(EnforcementLevel::Advisory),
        Ok(proto::EnforcementLevel::Mandatory) => Ok(EnforcementLevel::Mandatory),
        Ok(proto::EnforcementLevel::Disabled) => Ok(EnforcementLevel::Disabled),
        Ok(proto::EnforcementLevel::Remediate) => Ok(EnforcementLevel::Remediate),
        Err(_) => Err(format!("{number} is no enforcement level")),
    }
}

fn to_wire_level(level: EnforcementLevel) -> proto::EnforcementLevel {
    match level {
        EnforcementLevel::Advisory => proto::EnforcementLevel::Advisory,
        EnforcementLevel::Mandatory => proto::EnforcementLevel::Mandatory,
        EnforcementLevel::Disabled => proto::EnforcementLevel::Disabled,
        EnforcementLevel::Remediate => proto::EnforcementLevel::Remediate,
    }
}

fn object(object: Struct) -> Map<String, serde_json::Value> {
    object
        .fields
        .into_iter()
        .map(|(key, value)| (key, from_wire(value)))
        .collect()
}

fn from_wire(value: Value) -> serde_json::Value {
    match value.kind {
        None | Some(Kind::NullValue(_)) => serde_json::Value::Null,
        Some(Kind::BoolValue(value)) => serde_json::Value::Bool(value),
        Some(Kind::NumberValue(number)) => serde_json::Value::from(number),
        Some(Kind::StringValue(text)) => serde_json::Value::String(text),
        Some(Kind::ListValue(list)) => list.values.into_iter().map(from_wire).collect(),
        Some(Kind::StructValue(fields)) => serde_json::Value::Object(object(fields)),
    }
}

fn to_wire(value: serde_json::Value) -> Value {
    Value::from(match value {
        serde_json::Value::Null => Kind::NullValue(0),
        serde_json::Value::Bool(value) => Kind::BoolValue(value),
        serde_json::Value::Number(number) => Kind::NumberValue(number.as_f64().unwrap_or_default()),
        serde_json::Value::String(text) => Kind::StringValue(text),
        serde_json::Value::Array(items) => Kind::ListValue(ListValue {
            values: items.into_iter().map(to_wire).collect(),
        }),
        serde_json::Value::Object(map) => {
            let fields = map
                .into_iter()
                .map(|(key, value)| (key, to_wire(value)))
                .collect();
            Kind::StructValue(Struct { fields })
        }
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn policy(name: &str, schema: serde_json::Value) -> proto::PolicyInfo {
        let properties = match to_wire(schema).kind {
            Some(Kind::StructValue(object)) => Some(object),
            _ => None,
        };
        proto::PolicyInfo {
            name: name.to_owned(),
            enforcement_level: i32::from(proto::EnforcementLevel::Advisory),
            config_schema: Some(proto::PolicyConfigSchema {
                properties,
                required: vec![],
            }),
            ..proto::PolicyInfo::default()
        }
    }

    fn pack() -> proto::AnalyzerInfo {
        let sizes = json!({"max": {"type": "number", "default": 3}, "min": {"type": "number"}});
        proto::AnalyzerInfo {
            policies: vec![policy("sizes", sizes), policy("names", json!({}))],
            initial_config: [(
                "sizes".to_owned(),
                proto::PolicyConfig {
                    enforcement_level: i32::from(proto::EnforcementLevel::Mandatory),
                    properties: None,
                },
            )]
            .into(),
            ..proto::AnalyzerInfo::default()
        }
    }

    fn user(config: serde_json::Value) -> Result<Config, String> {
        parse(config.as_object().expect("an object"))
    }

    fn settled(
        config: serde_json::Value,
    ) -> Result<Vec<(String, EnforcementLevel, String)>, String> {
        let config = reconcile(&pack(), user(config)?)?;
        let show = |(name, settings): (String, PolicySettings)| {
            let properties = serde_json::Value::Object(settings.properties).to_string();
            (
                name,
                settings.level.expect("every policy has a level"),
                properties,
            )
        };
        Ok(config.into_iter().map(show).collect())
    }

    #[test]
    fn the_pack_brings_defaults_and_levels() {
        let expected = [
            (
                "names".to_owned(),
                EnforcementLevel::Advisory,
                "{}".to_owned(),
            ),
            (
                "sizes".to_owned(),
                EnforcementLevel::Mandatory,
                "{\"max\":3.0}".to_owned(),
            ),
        ];
        assert_eq!(settled(json!({})), Ok(expected.into()));
    }

    #[test]
    fn the_user_overrides_one_policy_or_all() {
        let config =
            json!({"all": "disabled", "sizes": {"enforcementLevel": "remediate", "min": 1}});
        let found = settled(config).expect("valid");
        let level = |name: &str| found.iter().find(|(n, ..)| n == name).expect("is there").1;
        assert_eq!(level("names"), EnforcementLevel::Disabled);
        assert_eq!(level("sizes"), EnforcementLevel::Remediate);
        assert!(
            found
                .iter()
                .any(|(_, _, properties)| properties == "{\"max\":3.0,\"min\":1}")
        );
    }

    #[test]
    fn what_does_not_fit_is_refused_with_its_place() {
        let error = settled(json!({"sizes": {"min": "small"}})).expect_err("not a number");
        assert!(error.starts_with("sizes: "), "{error}");
        let error =
            settled(json!({"sizes": {"enforcementLevel": "strict"}})).expect_err("no level");
        assert!(error.contains("strict"), "{error}");
        let error = settled(json!({"sizes": 3})).expect_err("neither level nor object");
        assert!(error.starts_with("sizes"), "{error}");
    }
}
