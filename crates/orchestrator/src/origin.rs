//! Where each value of a unit's configuration is written.

use nimbus_core::{ComponentName, EnvironmentName};
use nimbus_document::{Document, Position, Span};
use serde_json::Value;

use crate::config_files::{ConfigOverrides, REGION, namespaced};
use crate::manifest::Manifest;
use crate::spot::ManifestSpot;

/// Which of the places that give a unit values has given this one, nearest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueLayer {
    /// `config/<stack>.<environment>.yaml`.
    ConfigFile,
    /// `config` of the stack in the manifest.
    Stack,
    /// `defaults` of the stack.
    StackDefaults,
    /// `defaults` of the environment.
    EnvironmentDefaults,
    /// `defaults` of all stacks.
    SharedDefaults,
    /// `region` of the environment.
    Environment,
}

impl ValueLayer {
    /// In a word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ConfigFile => "config_file",
            Self::Stack => "stack",
            Self::StackDefaults => "stack_defaults",
            Self::EnvironmentDefaults => "environment_defaults",
            Self::SharedDefaults => "defaults",
            Self::Environment => "environment",
        }
    }
}

/// A value of a unit's configuration, as it is written, and where.
#[derive(Clone, Debug, PartialEq)]
pub struct PlacedValue {
    /// With its namespace, as the program has it.
    pub key: String,
    pub value: Value,
    pub layer: ValueLayer,
    pub file: String,
    pub position: Position,
}

/// The configuration of a unit, by key. `manifest` has what the files say.
pub fn placed_values(
    manifest: &Manifest,
    document: &Document,
    overrides: &ConfigOverrides,
    component: &ComponentName,
    environment: EnvironmentName,
) -> Vec<PlacedValue> {
    let entry = manifest.stacks.get(component);
    let config = entry.and_then(|entry| entry.config.get(&environment));
    let mut values = Vec::new();
    for (key, value) in config.into_iter().flatten() {
        let own = overrides.place(component, environment, key);
        let (layer, (file, span)) = match own {
            Some(place) => (ValueLayer::ConfigFile, place),
            None => {
                let (layer, span) = in_manifest(document, component, environment, key);
                (layer, (document, span))
            }
        };
        values.push(PlacedValue {
            key: namespaced(manifest, component, key),
            value: value.clone(),
            layer,
            file: file.name().to_owned(),
            position: file.position(span),
        });
    }
    let target = manifest.environments.get(&environment);
    if let Some(target) = target.filter(|target| !target.region.is_empty())
        && !values.iter().any(|value| value.key == REGION)
    {
        let spot = ManifestSpot::of(&["spec", "environments", &environment, "region"]);
        values.push(PlacedValue {
            key: REGION.to_owned(),
            value: target.region.clone().into(),
            layer: ValueLayer::Environment,
            file: document.name().to_owned(),
            position: spot.position(document),
        });
    }
    values.sort_by(|one, other| one.key.cmp(&other.key));
    values
}

fn in_manifest(
    document: &Document,
    component: &ComponentName,
    environment: EnvironmentName,
    key: &str,
) -> (ValueLayer, Span) {
    let places: [(ValueLayer, &[&str]); 4] = [
        (
            ValueLayer::Stack,
            &["spec", "stacks", component, "config", &environment, key],
        ),
        (
            ValueLayer::StackDefaults,
            &["spec", "stacks", component, "defaults", key],
        ),
        (
            ValueLayer::EnvironmentDefaults,
            &["spec", "environments", &environment, "defaults", key],
        ),
        (ValueLayer::SharedDefaults, &["spec", "defaults", key]),
    ];
    let is_there = |path: &[&str]| {
        let root = Some(document.root());
        let found = path.iter().fold(root, |node, key| node?.get(key));
        found.is_some()
    };
    let found = places.iter().find(|(_, path)| is_there(path));
    let (layer, path) = found.copied().unwrap_or(places[0]);
    (layer, ManifestSpot::of(path).span(document))
}
