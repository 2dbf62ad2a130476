//! Which resolvers there are, and their typed inputs and outputs.
//!
//! A resolver has the interface of a component: inputs and outputs with types, as JSON Schemas in the
//! interfaces and as fields here. The table `resolvers` of the control plane is made from this list.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::error::ResolverError;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResolverKind {
    Ipam,
    Naming,
    ImageCatalog,
    Secret,
}

/// What a value may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldType {
    Text,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// A whole number from and to.
    Number(i64, i64),
    Flag,
}

/// One input or output.
#[derive(Clone, Copy, Debug)]
pub struct ResolverField {
    pub name: &'static str,
    pub kind: FieldType,
    pub required: bool,
    /// Nobody may see it; it goes to a program's configuration and nowhere else.
    pub secret: bool,
    pub description: &'static str,
}

/// A resolver as others see it.
#[derive(Clone, Copy, Debug)]
pub struct ResolverDefinition {
    pub kind: ResolverKind,
    pub display_name: &'static str,
    pub description: &'static str,
    pub inputs: &'static [ResolverField],
    pub outputs: &'static [ResolverField],
    /// Whether an answer takes something that must be given back.
    pub leases: bool,
    /// The code that answers, as the table of the founding documents names it.
    pub handler: &'static str,
}

/// Tells two questions of one unit apart that are otherwise the same; every resolver takes it.
pub const LABEL: &str = "label";

const fn input(
    name: &'static str,
    kind: FieldType,
    required: bool,
    description: &'static str,
) -> ResolverField {
    ResolverField {
        name,
        kind,
        required,
        secret: false,
        description,
    }
}

const fn output(name: &'static str, description: &'static str) -> ResolverField {
    input(name, FieldType::Text, true, description)
}

const LABEL_FIELD: ResolverField = input(
    LABEL,
    FieldType::Text,
    false,
    "tells two questions of one unit apart that are otherwise the same",
);

static DEFINITIONS: [ResolverDefinition; 4] = [
    ResolverDefinition {
        kind: ResolverKind::Ipam,
        display_name: "IP address management",
        description: "Allocates blocks and addresses from pools, without duplicates.",
        inputs: &[
            input(
                "allocation_type",
                FieldType::Choice(&["block", "address"]),
                false,
                "a block of addresses (default), or one address of a pool of hosts",
            ),
            input(
                "prefix_length",
                FieldType::Number(0, 128),
                false,
                "how large a block is; required for one",
            ),
            input(
                "parent_scope",
                FieldType::Text,
                false,
                "the pool to take it from, instead of the configured one",
            ),
            LABEL_FIELD,
        ],
        outputs: &[
            output(
                "cidr",
                "the block; of an address, with the prefix of its pool",
            ),
            output("address", "the address; of a block, its first one"),
            output("gateway", "the gateway of the block or of the pool"),
            output(
                "subnet_id",
                "the id of the lease or, of an address, of its pool",
            ),
            output("pool", "the pool that it was taken from"),
        ],
        leases: true,
        handler: "nimbus_resolvers::ipam",
    },
    ResolverDefinition {
        kind: ResolverKind::Naming,
        display_name: "Naming",
        description: "Makes unique names by pattern, held to the rules of their type.",
        inputs: &[
            input(
                "resource_type",
                FieldType::Text,
                true,
                "what is named, such as vm",
            ),
            input(
                "environment",
                FieldType::Text,
                false,
                "the environment in the name; that of the unit by default",
            ),
            input(
                "sequence",
                FieldType::Number(0, 999_999_999),
                false,
                "this very number; the lowest free one by default",
            ),
            LABEL_FIELD,
        ],
        outputs: &[
            output("name", "the name"),
            output("fqdn", "the name in the configured domain"),
        ],
        leases: true,
        handler: "nimbus_resolvers::naming",
    },
    ResolverDefinition {
        kind: ResolverKind::ImageCatalog,
        display_name: "Image catalog",
        description: "Finds a cloud's image for an operating system.",
        inputs: &[
            input(
                "os_family",
                FieldType::Text,
                true,
                "such as debian or windows",
            ),
            input(
                "os_version",
                FieldType::Text,
                false,
                "such as 12; the newest that is not deprecated by default",
            ),
            input(
                "architecture",
                FieldType::Choice(&["x86_64", "arm64"]),
                false,
                "x86_64 by default",
            ),
            input(
                "region",
                FieldType::Text,
                false,
                "that of the environment by default",
            ),
            LABEL_FIELD,
        ],
        outputs: &[
            output("image_id", "what the cloud's provider takes"),
            output("image_name", "the image in words"),
        ],
        leases: false,
        handler: "nimbus_resolvers::images",
    },
    ResolverDefinition {
        kind: ResolverKind::Secret,
        display_name: "Secret provisioner",
        description: "Makes secrets by rules and keeps them; only references are shown.",
        inputs: &[
            input(
                "name",
                FieldType::Text,
                true,
                "what it is for, such as db-admin",
            ),
            input(
                "length",
                FieldType::Number(8, 256),
                false,
                "how many characters it has",
            ),
            input(
                "symbols",
                FieldType::Flag,
                false,
                "whether it has signs besides letters and digits",
            ),
            LABEL_FIELD,
        ],
        outputs: &[
            output("reference", "what names the secret; not the secret"),
            ResolverField {
                name: "value",
                kind: FieldType::Text,
                required: true,
                secret: true,
                description: "the secret itself, for a program's configuration alone",
            },
        ],
        leases: true,
        handler: "nimbus_resolvers::secrets",
    },
];

impl ResolverKind {
    pub const ALL: [Self; 4] = [Self::Ipam, Self::Naming, Self::ImageCatalog, Self::Secret];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ipam => "ipam",
            Self::Naming => "naming",
            Self::ImageCatalog => "image_catalog",
            Self::Secret => "secret",
        }
    }

    pub fn definition(self) -> &'static ResolverDefinition {
        let [ipam, naming, images, secret] = &DEFINITIONS;
        match self {
            Self::Ipam => ipam,
            Self::Naming => naming,
            Self::ImageCatalog => images,
            Self::Secret => secret,
        }
    }
}

impl fmt::Display for ResolverKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for ResolverKind {
    type Err = ResolverError;

    fn from_str(text: &str) -> Result<Self, ResolverError> {
        let found = Self::ALL.into_iter().find(|kind| kind.as_str() == text);
        found.ok_or_else(|| ResolverError::UnknownResolver {
            name: text.to_owned(),
            known: Self::ALL.map(Self::as_str).join(", "),
        })
    }
}

impl ResolverDefinition {
    /// An output by its name.
    pub fn output(&self, name: &str) -> Result<&'static ResolverField, ResolverError> {
        let found = self.outputs.iter().find(|field| field.name == name);
        found.ok_or_else(|| ResolverError::UnknownOutput {
            resolver: self.kind.to_string(),
            output: name.to_owned(),
            known: names(self.outputs),
        })
    }

    /// Refuses inputs that are unknown, missing or of another type.
    pub fn check(&self, inputs: &Map<String, Value>) -> Result<(), ResolverError> {
        for (name, value) in inputs {
            let field = self.input(name)?;
            if let Some(problem) = field.kind.problem(value) {
                return Err(ResolverError::input(self.kind, name, problem));
            }
        }
        let missing = self
            .inputs
            .iter()
            .find(|field| field.required && !inputs.contains_key(field.name));
        match missing {
            None => Ok(()),
            Some(field) => Err(ResolverError::input(
                self.kind,
                field.name,
                format!("it is required: {}", field.description),
            )),
        }
    }

    /// An input from its text, as placeholders have it.
    pub fn read(&self, name: &str, text: &str) -> Result<Value, ResolverError> {
        let field = self.input(name)?;
        let value = match field.kind {
            FieldType::Text | FieldType::Choice(_) => Value::from(text),
            FieldType::Number(..) => {
                let number = text.parse::<i64>();
                number.map_or_else(|_| Value::from(text), Value::from)
            }
            FieldType::Flag => {
                let flag = text.parse::<bool>();
                flag.map_or_else(|_| Value::from(text), Value::from)
            }
        };
        match field.kind.problem(&value) {
            Some(problem) => Err(ResolverError::input(self.kind, name, problem)),
            None => Ok(value),
        }
    }

    fn input(&self, name: &str) -> Result<&'static ResolverField, ResolverError> {
        let found = self.inputs.iter().find(|field| field.name == name);
        found.ok_or_else(|| {
            let problem = format!("there is none; it takes {}", names(self.inputs));
            ResolverError::input(self.kind, name, problem)
        })
    }

    pub fn input_schema(&self) -> Value {
        schema(self.inputs)
    }

    pub fn output_schema(&self) -> Value {
        schema(self.outputs)
    }
}

fn names(fields: &[ResolverField]) -> String {
    let names: Vec<_> = fields.iter().map(|field| field.name).collect();
    names.join(", ")
}

impl FieldType {
    /// What is wrong with a value of this type.
    fn problem(self, value: &Value) -> Option<String> {
        match self {
            Self::Text => match value.as_str() {
                Some(text) if !text.is_empty() && text.len() <= 200 => None,
                Some(_) => Some("it is empty or longer than 200 bytes".to_owned()),
                None => Some("it has to be a text".to_owned()),
            },
            Self::Choice(words) => match value.as_str() {
                Some(word) if words.contains(&word) => None,
                _ => Some(format!("it has to be one of {}", words.join(", "))),
            },
            Self::Number(from, to) => match value.as_i64() {
                Some(number) if (from..=to).contains(&number) => None,
                _ => Some(format!("it has to be a whole number from {from} to {to}")),
            },
            Self::Flag => (!value.is_boolean()).then(|| "it has to be true or false".to_owned()),
        }
    }

    fn schema(self) -> Value {
        match self {
            Self::Text => json!({"type": "string", "minLength": 1, "maxLength": 200}),
            Self::Choice(words) => json!({"type": "string", "enum": words}),
            Self::Number(from, to) => {
                json!({"type": "integer", "minimum": from, "maximum": to})
            }
            Self::Flag => json!({"type": "boolean"}),
        }
    }
}

fn schema(fields: &[ResolverField]) -> Value {
    let mut properties = Map::new();
    for field in fields {
        let mut property = field.kind.schema();
        property["description"] = field.description.into();
        if field.secret {
            property["secret"] = true.into();
        }
        properties.insert(field.name.to_owned(), property);
    }
    let required = fields.iter().filter(|field| field.required);
    let required: Vec<_> = required.map(|field| field.name).collect();
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_resolver_has_its_own_definition_and_name() {
        for kind in ResolverKind::ALL {
            assert_eq!(kind.definition().kind, kind);
            assert_eq!(kind.as_str().parse::<ResolverKind>().unwrap(), kind);
            let word = serde_json::to_value(kind).unwrap();
            assert_eq!(word, kind.as_str());
        }
        let error = "dns".parse::<ResolverKind>().unwrap_err().to_string();
        assert!(
            error.contains("ipam, naming, image_catalog, secret"),
            "{error}"
        );
    }

    #[test]
    fn the_contracts_of_the_founding_documents_are_there() {
        let has = |kind: ResolverKind, inputs: &[&str], outputs: &[&str]| {
            let definition = kind.definition();
            for name in inputs {
                assert!(definition.input(name).is_ok(), "{kind} {name}");
            }
            for name in outputs {
                assert!(definition.output(name).is_ok(), "{kind} {name}");
            }
        };
        has(
            ResolverKind::Ipam,
            &["allocation_type", "prefix_length", "parent_scope"],
            &["cidr", "gateway", "subnet_id"],
        );
        has(
            ResolverKind::Naming,
            &["resource_type", "environment", "sequence"],
            &["name", "fqdn"],
        );
        has(
            ResolverKind::ImageCatalog,
            &["os_family", "os_version", "architecture"],
            &["image_id", "image_name"],
        );
    }

    #[test]
    fn inputs_of_another_type_are_refused_by_name() {
        let ipam = ResolverKind::Ipam.definition();
        for (inputs, says) in [
            (json!({"prefix_length": "24"}), "whole number"),
            (json!({"prefix_length": 24.5}), "whole number"),
            (json!({"prefix_length": 129}), "from 0 to 128"),
            (
                json!({"allocation_type": "subnet"}),
                "one of block, address",
            ),
            (json!({"parent_scope": ""}), "empty"),
            (json!({"parent_scope": null}), "text"),
            (json!({"color": "red"}), "there is none"),
        ] {
            let error = ipam.check(inputs.as_object().unwrap()).unwrap_err();
            assert!(error.to_string().contains(says), "{error}");
        }
        let naming = ResolverKind::Naming.definition();
        let error = naming.check(&Map::new()).unwrap_err().to_string();
        assert!(
            error.contains("`resource_type`") && error.contains("required"),
            "{error}"
        );
        assert_eq!(ipam.read("prefix_length", "24").unwrap(), json!(24));
        assert!(ipam.read("prefix_length", "many").is_err());
        let error = ipam.output("vlan").unwrap_err().to_string();
        assert!(error.contains("cidr, address, gateway"), "{error}");
    }

    #[test]
    fn secrets_are_marked_in_the_schema() {
        let schema = ResolverKind::Secret.definition().output_schema();
        assert_eq!(schema["properties"]["value"]["secret"], true);
        assert_eq!(schema["properties"]["reference"].get("secret"), None);
    }
}
