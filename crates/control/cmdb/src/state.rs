//! A unit's state as items and what they have to do with each other.
//!
//! Every resource is an item but two kinds: providers, whose properties are credentials, and what was replaced already and
//! waits for its deletion. The root is the unit itself, and its attributes are the unit's outputs.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use crate::attributes::{kept_attributes, line};
use crate::item::{ItemContent, UNIT_CLASS};

const ROOT: &str = "pulumi:pulumi:Stack";
const PROVIDERS: &str = "pulumi:providers:";
const LONGEST_URN: usize = 4000;
const LONGEST_ID: usize = 1000;
const LONGEST_NAME: usize = 200;

/// A resource of a state.
#[derive(Clone, Debug, PartialEq)]
pub struct StateItem {
    pub urn: String,
    pub content: ItemContent,
}

/// One resource has to do with another, by their URNs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StateEdge {
    pub source: String,
    pub target: String,
    /// `contains` or `depends_on`.
    pub relationship: &'static str,
}

/// The items of a unit, by URN, and their relationships.
pub fn items_of(unit: &str, checkpoint: &Value) -> (Vec<StateItem>, Vec<StateEdge>) {
    let recorded = checkpoint["checkpoint"]["latest"]["resources"].as_array();
    let mut items = BTreeMap::new();
    let mut edges = BTreeSet::new();
    for resource in recorded.into_iter().flatten() {
        let (Some(urn), Some(class)) = (resource["urn"].as_str(), resource["type"].as_str()) else {
            continue;
        };
        if class.starts_with(PROVIDERS) || resource["delete"] == true {
            continue;
        }
        let urn = line(urn, LONGEST_URN);
        // A state that somebody damaged keeps no other resource from being an item.
        if urn.is_empty() || line(class, LONGEST_NAME).is_empty() {
            continue;
        }
        let edge = |source: &str, target: &str, relationship| StateEdge {
            source: source.to_owned(),
            target: target.to_owned(),
            relationship,
        };
        if let Some(parent) = resource["parent"].as_str() {
            edges.insert(edge(&line(parent, LONGEST_URN), &urn, "contains"));
        }
        let needs = resource["dependencies"].as_array().into_iter().flatten();
        for needed in needs.filter_map(Value::as_str) {
            edges.insert(edge(&urn, &line(needed, LONGEST_URN), "depends_on"));
        }
        items.insert(urn.clone(), item(unit, urn, class, resource));
    }
    // What refers to something that is no item says nothing.
    edges.retain(|edge| {
        edge.source != edge.target
            && items.contains_key(&edge.source)
            && items.contains_key(&edge.target)
    });
    (items.into_values().collect(), edges.into_iter().collect())
}

fn item(unit: &str, urn: String, class: &str, resource: &Value) -> StateItem {
    let root = class == ROOT;
    let name = match urn.rsplit_once("::") {
        _ if root => unit,
        Some((_, name)) if !name.trim().is_empty() => name,
        _ => urn.as_str(),
    };
    let nothing = Map::new();
    let outputs = resource["outputs"].as_object().unwrap_or(&nothing);
    let id = resource["id"].as_str().filter(|id| !id.is_empty());
    let content = ItemContent {
        class: if root {
            UNIT_CLASS.to_owned()
        } else {
            line(class, LONGEST_NAME)
        },
        name: line(name, LONGEST_NAME),
        cloud_resource_id: id.map(|id| line(id, LONGEST_ID)),
        attributes: kept_attributes(outputs),
        external: resource["external"] == true,
    };
    StateItem { urn, content }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_state_is_items_without_providers_and_without_what_is_on_its_way_out() {
        let urn = |rest: &str| format!("urn:pulumi:D1-net-dev::shop::{rest}");
        let (root, vpc) = (
            urn("pulumi:pulumi:Stack::shop-D1"),
            urn("aws:ec2/vpc:Vpc::main"),
        );
        let (subnet, provider) = (
            urn("aws:ec2/subnet:Subnet::a"),
            urn("pulumi:providers:aws::p"),
        );
        let checkpoint = json!({"version": 3, "checkpoint": {"latest": {"resources": [
            {"urn": root, "type": ROOT, "outputs": {"vpcId": "vpc-1"}},
            {"urn": provider, "type": "pulumi:providers:aws", "custom": true, "id": "p",
             "outputs": {"accessKey": "AKIA", "plain": "credential"}, "parent": root},
            {"urn": vpc, "type": "aws:ec2/vpc:Vpc", "custom": true, "id": "vpc-1", "parent": root,
             "outputs": {"cidrBlock": "10.0.0.0/16"}, "dependencies": []},
            {"urn": vpc, "type": "aws:ec2/vpc:Vpc", "custom": true, "id": "vpc-0", "delete": true,
             "parent": root, "outputs": {"cidrBlock": "10.9.0.0/16"}},
            {"urn": subnet, "type": "aws:ec2/subnet:Subnet", "custom": true, "id": "sub-1", "parent": vpc,
             "dependencies": [vpc, provider, subnet]},
        ]}}});
        let (items, edges) = items_of("net", &checkpoint);
        let told: Vec<_> = items
            .iter()
            .map(|one| (one.content.class.as_str(), one.content.name.as_str()))
            .collect();
        assert_eq!(
            told,
            [
                ("aws:ec2/subnet:Subnet", "a"),
                ("aws:ec2/vpc:Vpc", "main"),
                (UNIT_CLASS, "net"),
            ]
        );
        assert_eq!(items[1].content.cloud_resource_id.as_deref(), Some("vpc-1"));
        assert_eq!(items[2].content.attributes.values["vpcId"], "vpc-1");
        let edges: Vec<_> = edges
            .iter()
            .map(|edge| {
                (
                    edge.source.as_str(),
                    edge.relationship,
                    edge.target.as_str(),
                )
            })
            .collect();
        let (root, vpc, subnet) = (root.as_str(), vpc.as_str(), subnet.as_str());
        assert_eq!(
            edges,
            [
                (subnet, "depends_on", vpc),
                (vpc, "contains", subnet),
                (root, "contains", vpc),
            ]
        );
    }

    #[test]
    fn a_state_without_resources_has_no_items() {
        let damaged = json!({"checkpoint": {"latest": {"resources": [
            {"urn": "\u{1b}", "type": "a:b:C"}, {"urn": "urn:x", "type": ""}, {"type": "a:b:C"}, 7]}}});
        for state in [json!({}), json!({"checkpoint": {"latest": null}}), damaged] {
            assert_eq!(items_of("net", &state), (Vec::new(), Vec::new()));
        }
    }
}
