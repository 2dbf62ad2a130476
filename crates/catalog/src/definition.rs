//! A component as it is written, and as the stack template that deployments read.
//!
//! The catalog keeps the contract apart from everything else that a template says; a deployment reads one
//! template. Both ways are here, so that nothing is said twice.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use nimbus_core::ComponentName;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::contract::{ComponentContract, ContractProblem, properties, types};
use crate::wiring::is_secret;

/// The language of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProgramLanguage {
    #[serde(rename = "typescript")]
    TypeScript,
    Python,
}

impl ProgramLanguage {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::TypeScript => "typescript",
            Self::Python => "python",
        }
    }
}

impl fmt::Display for ProgramLanguage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for ProgramLanguage {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "typescript" => Ok(Self::TypeScript),
            "python" => Ok(Self::Python),
            _ => Err("give typescript or python".to_owned()),
        }
    }
}

/// Everything that somebody writes of a component.
#[derive(Clone, Debug, PartialEq)]
pub struct ComponentDefinition {
    pub name: ComponentName,
    pub display_name: String,
    pub description: String,
    /// A cloud, by name.
    pub cloud: String,
    /// A semantic type, by name.
    pub semantic_type: String,
    pub language: ProgramLanguage,
    pub contract: ComponentContract,
    /// What else its stack template says: dependencies, defaults, estimates.
    pub settings: Map<String, Value>,
    /// Texts of its files, by path below its folder.
    pub files: BTreeMap<String, String>,
}

/// Keys of a stack template that are the contract or the name, and not settings.
const APART: &[&str] = &["name", "description", "parameters", "outputs", "source"];
/// Keys that settings may have.
const SETTINGS: &[&str] = &[
    "priority",
    "dependencies",
    "network",
    "variables",
    "config",
    "environments",
    "estimate",
];

/// Name, description, contract and settings of a stack template.
pub fn from_template(
    template: &Map<String, Value>,
) -> (String, String, ComponentContract, Map<String, Value>) {
    let text = |key: &str| {
        let value = template.get(key).and_then(Value::as_str);
        value.unwrap_or_default().to_owned()
    };
    let outputs = template.get("outputs").and_then(Value::as_object);
    let mut described = Map::new();
    for (name, output) in outputs.into_iter().flatten() {
        let mut schema = Map::new();
        for key in ["type", "description"] {
            if let Some(value) = output.get(key) {
                schema.insert(key.to_owned(), value.clone());
            }
        }
        if output.get("secret") == Some(&Value::Bool(true)) {
            schema.insert("x-secret".to_owned(), Value::Bool(true));
        }
        described.insert(name.clone(), Value::Object(schema));
    }
    let promised: std::collections::BTreeSet<&String> = described.keys().collect();
    let contract = ComponentContract {
        inputs: template
            .get("parameters")
            .cloned()
            .unwrap_or_else(|| json!({"type": "object"})),
        outputs: json!({"type": "object", "required": promised, "properties": described}),
        resolvers: BTreeMap::new(),
    };
    let settings = template
        .iter()
        .filter(|(key, _)| !APART.contains(&key.as_str()))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    (text("name"), text("description"), contract, settings)
}

/// The stack template of a component.
pub fn to_template(
    name: &ComponentName,
    description: &str,
    contract: &ComponentContract,
    settings: &Map<String, Value>,
) -> Map<String, Value> {
    let mut template = Map::new();
    template.insert("name".to_owned(), name.as_str().into());
    template.insert("description".to_owned(), description.into());
    for key in SETTINGS {
        if let Some(value) = settings.get(*key) {
            template.insert((*key).to_owned(), value.clone());
        }
    }
    let outputs: Map<String, Value> = properties(&contract.outputs)
        .iter()
        .map(|(name, schema)| {
            let mut output = Map::new();
            if let Some(one) = types(schema).first() {
                output.insert("type".to_owned(), one.as_str().into());
            }
            if let Some(text) = schema.get("description").and_then(Value::as_str) {
                output.insert("description".to_owned(), text.into());
            }
            if is_secret(schema) {
                output.insert("secret".to_owned(), true.into());
            }
            (name.clone(), Value::Object(output))
        })
        .collect();
    template.insert("outputs".to_owned(), Value::Object(outputs));
    template.insert("parameters".to_owned(), contract.given_inputs());
    template
}

impl ComponentDefinition {
    /// Settings that a stack template does not have.
    pub fn setting_problems(&self) -> Vec<ContractProblem> {
        self.settings
            .keys()
            .filter(|key| !SETTINGS.contains(&key.as_str()))
            .map(|key| ContractProblem {
                place: format!("settings.{key}"),
                message: format!("give one of {}", SETTINGS.join(", ")),
            })
            .collect()
    }

    /// The stack template that deployments read.
    pub fn template(&self) -> Map<String, Value> {
        to_template(
            &self.name,
            &self.description,
            &self.contract,
            &self.settings,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_becomes_a_contract_with_settings_and_back() {
        let template = json!({
            "name": "network",
            "description": "VPC",
            "priority": 20,
            "dependencies": [],
            "outputs": {"vpcId": {"type": "string", "description": "Id"}, "key": {"secret": true}},
            "parameters": {"type": "object", "properties": {"vpcCidr": {"type": "string"}}},
            "config": {"vpcCidr": "10.0.0.0/16"},
        });
        let Value::Object(template) = template else {
            unreachable!()
        };
        let (name, description, contract, settings) = from_template(&template);
        assert_eq!((name.as_str(), description.as_str()), ("network", "VPC"));
        assert_eq!(contract.problems(), []);
        assert_eq!(contract.output_names().count(), 2);
        assert_eq!(contract.outputs["required"], json!(["key", "vpcId"]));
        let name = name.parse().unwrap();
        let back = to_template(&name, &description, &contract, &settings);
        assert_eq!(Value::Object(back), Value::Object(template));
    }

    #[test]
    fn a_template_does_not_ask_for_what_a_resolver_answers() {
        let contract: ComponentContract = serde_json::from_value(json!({
            "inputs": {"type": "object", "required": ["name", "size"],
                "properties": {"name": {"type": "string"}, "size": {"type": "integer"}}},
            "resolvers": {"name": {"resolver": "naming", "output": "name", "inputs": {"resource_type": "vm"}}},
        }))
        .unwrap();
        let name = "vm".parse().unwrap();
        let template = to_template(&name, "", &contract, &Map::new());
        assert_eq!(template["parameters"]["required"], json!(["size"]));
        assert!(template["parameters"]["properties"]["name"].is_object());
    }

    #[test]
    fn languages_are_the_two_that_there_are() {
        for language in [ProgramLanguage::TypeScript, ProgramLanguage::Python] {
            assert_eq!(language.to_string().parse(), Ok(language));
        }
        assert!("cobol".parse::<ProgramLanguage>().is_err());
    }
}
