//! An item as it should be, whoever says so.

use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use crate::attributes::ItemAttributes;
use crate::state::{StateEdge, StateItem};

/// The class of a unit itself; its attributes are the outputs.
pub const UNIT_CLASS: &str = "nimbus:unit";

/// SHA-256 over everything that an item says.
pub type ItemDigest = [u8; 32];

/// What an item says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ItemContent {
    /// The type of a resource, such as `aws:ec2/vpc:Vpc`, or a class that somebody made.
    pub class: String,
    pub name: String,
    pub cloud_resource_id: Option<String>,
    pub attributes: ItemAttributes,
    /// It is read by a program and managed by somebody else.
    pub external: bool,
}

impl ItemContent {
    pub fn digest(&self) -> ItemDigest {
        let whole = json!([
            self.class,
            self.name,
            self.cloud_resource_id,
            self.attributes.values,
            self.attributes.left_out,
            self.external,
        ]);
        Sha256::digest(nimbus_control_audit::canonical_json(&whole)).into()
    }

    /// By field, for whoever compares two.
    pub(crate) fn fields(&self) -> Map<String, Value> {
        Map::from_iter([
            ("class".to_owned(), json!(self.class)),
            ("name".to_owned(), json!(self.name)),
            (
                "cloud_resource_id".to_owned(),
                json!(self.cloud_resource_id),
            ),
            ("external".to_owned(), json!(self.external)),
            ("left_out".to_owned(), json!(self.attributes.left_out)),
        ])
    }
}

/// A unit as its state was when a run ended.
#[derive(Clone, Debug, Default)]
pub struct UnitSnapshot {
    /// The component that the unit is of.
    pub unit: String,
    /// Which write of the state this is; none when there is no state any more.
    pub tag: Option<Uuid>,
    /// SHA-256 of the state, as other answers about states have it.
    pub state_version: String,
    pub items: Vec<StateItem>,
    pub edges: Vec<StateEdge>,
}

/// The cloud or package that a type of resources is of.
pub fn provider_of(class: &str) -> Option<&str> {
    let (provider, rest) = class.split_once(':')?;
    (!provider.is_empty() && !rest.is_empty() && provider != "nimbus").then_some(provider)
}
