//! Output values on their way through the monitor.
//!
//! Transforms and remote components see outputs: values that know what they depend on. The rest of
//! the engine knows secrets and unknown values only, and keeps dependencies beside the properties.
//! These functions go from one form to the other.

use std::collections::{BTreeMap, HashSet};

use nimbus_engine_model::{OutputValue, PropertyMap, PropertyValue, ResourceReference, Urn};

/// Resources by property.
pub(crate) type PropertyDependencies = BTreeMap<String, Vec<Urn>>;

/// Secrets and unknown values become outputs.
pub(crate) fn upgrade(properties: PropertyMap) -> PropertyMap {
    properties
        .into_iter()
        .map(|(key, value)| (key, upgrade_value(value)))
        .collect()
}

fn upgrade_value(value: PropertyValue) -> PropertyValue {
    match value {
        PropertyValue::Computed => output(OutputValue::default()),
        PropertyValue::Secret(inner) => output(as_secret(upgrade_value(*inner))),
        PropertyValue::Array(items) => {
            PropertyValue::Array(items.into_iter().map(upgrade_value).collect())
        }
        PropertyValue::Object(map) => PropertyValue::Object(upgrade(map)),
        PropertyValue::Output(inner) => output(OutputValue {
            value: inner.value.map(upgrade_value),
            ..*inner
        }),
        other => other,
    }
}

fn as_secret(value: PropertyValue) -> OutputValue {
    match value {
        PropertyValue::Output(inner) => OutputValue {
            secret: true,
            ..*inner
        },
        other => OutputValue {
            value: Some(other),
            secret: true,
            dependencies: Vec::new(),
        },
    }
}

fn output(value: OutputValue) -> PropertyValue {
    PropertyValue::Output(Box::new(value))
}

/// Outputs become their values, secret or unknown as they were. Dependencies are lost.
pub(crate) fn flatten(properties: PropertyMap) -> PropertyMap {
    properties
        .into_iter()
        .map(|(key, value)| (key, flatten_value(value)))
        .collect()
}

pub(crate) fn flatten_value(value: PropertyValue) -> PropertyValue {
    match value {
        PropertyValue::Output(inner) => {
            let value = inner.value.map_or(PropertyValue::Computed, flatten_value);
            if inner.secret {
                PropertyValue::secret(value)
            } else {
                value
            }
        }
        PropertyValue::Secret(inner) => PropertyValue::secret(flatten_value(*inner)),
        PropertyValue::Array(items) => {
            PropertyValue::Array(items.into_iter().map(flatten_value).collect())
        }
        PropertyValue::Object(map) => PropertyValue::Object(flatten(map)),
        PropertyValue::ResourceReference(reference) => {
            PropertyValue::ResourceReference(ResourceReference {
                id: reference.id.map(|id| Box::new(flatten_value(*id))),
                ..reference
            })
        }
        other => other,
    }
}

/// Puts dependencies that were told beside the properties into the properties.
pub(crate) fn attach(properties: PropertyMap, dependencies: &PropertyDependencies) -> PropertyMap {
    properties
        .into_iter()
        .map(|(key, value)| {
            let value = match dependencies.get(&key) {
                Some(urns) => attach_value(value, urns),
                None => value,
            };
            (key, value)
        })
        .collect()
}

fn attach_value(value: PropertyValue, urns: &[Urn]) -> PropertyValue {
    let mut present = Vec::new();
    collect(&value, &mut present);
    let present: HashSet<Urn> = present.into_iter().collect();
    if urns.iter().all(|urn| present.contains(urn)) {
        return value;
    }
    let mut whole = match value {
        PropertyValue::Output(inner) => *inner,
        other => OutputValue {
            value: Some(other),
            secret: false,
            dependencies: Vec::new(),
        },
    };
    extend(&mut whole.dependencies, urns.iter().cloned());
    output(whole)
}

/// Adds every resource that outputs inside the value depend on.
pub(crate) fn collect(value: &PropertyValue, urns: &mut Vec<Urn>) {
    let mut found = Vec::new();
    gather(value, &mut found);
    if !found.is_empty() {
        extend(urns, found.into_iter().cloned());
    }
}

fn gather<'a>(value: &'a PropertyValue, found: &mut Vec<&'a Urn>) {
    value.parts().for_each(|part| gather(part, found));
    if let PropertyValue::Output(output) = value {
        found.extend(&output.dependencies);
    }
}

/// Extends `dependencies` by what the properties' outputs depend on; every property gets an entry.
pub(crate) fn collect_by_property(
    properties: &PropertyMap,
    dependencies: &mut PropertyDependencies,
) {
    for (key, value) in properties {
        collect(value, dependencies.entry(key.clone()).or_default());
    }
}

/// Appends what is not there yet; the order of first mention is kept, so that states are stable.
pub(crate) fn extend(urns: &mut Vec<Urn>, more: impl IntoIterator<Item = Urn>) {
    let mut known: HashSet<Urn> = urns.iter().cloned().collect();
    for urn in more {
        if known.insert(urn.clone()) {
            urns.push(urn);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn urn(name: &str) -> Urn {
        Urn::new("dev", "shop", None, "a:b:C", name)
    }

    fn props(entries: &[(&str, PropertyValue)]) -> PropertyMap {
        entries
            .iter()
            .map(|(key, value)| ((*key).to_owned(), value.clone()))
            .collect()
    }

    fn plain_output(value: Option<PropertyValue>, secret: bool, deps: &[Urn]) -> PropertyValue {
        output(OutputValue {
            value,
            secret,
            dependencies: deps.to_vec(),
        })
    }

    #[test]
    fn upgrading_and_flattening_again_changes_nothing() {
        let before = props(&[
            ("secret", PropertyValue::secret("s".into())),
            ("unknown", PropertyValue::Computed),
            (
                "secret unknown",
                PropertyValue::secret(PropertyValue::Computed),
            ),
            (
                "nested",
                PropertyValue::Array(vec![PropertyValue::Object(props(&[(
                    "inner",
                    PropertyValue::secret(1.0.into()),
                )]))]),
            ),
            ("plain", true.into()),
        ]);
        let upgraded = upgrade(before.clone());
        assert_eq!(
            upgraded["secret"],
            plain_output(Some("s".into()), true, &[])
        );
        assert_eq!(upgraded["unknown"], plain_output(None, false, &[]));
        assert_eq!(upgraded["secret unknown"], plain_output(None, true, &[]));
        assert_eq!(flatten(upgraded), before);
    }

    #[test]
    fn dependencies_are_attached_once() {
        let dependencies = BTreeMap::from([("a".to_owned(), vec![urn("x"), urn("y")])]);
        let attached = attach(
            props(&[("a", "v".into()), ("b", "w".into())]),
            &dependencies,
        );
        assert_eq!(
            attached["a"],
            plain_output(Some("v".into()), false, &[urn("x"), urn("y")])
        );
        assert_eq!(attached["b"], "w".into());
        assert_eq!(attach(attached.clone(), &dependencies), attached);
    }

    #[test]
    fn dependencies_are_found_at_any_depth_and_listed_once() {
        let deep = PropertyValue::Object(props(&[(
            "list",
            PropertyValue::Array(vec![
                plain_output(Some("v".into()), true, &[urn("x")]),
                PropertyValue::secret(plain_output(None, false, &[urn("y"), urn("x")])),
            ]),
        )]));
        let mut found = BTreeMap::new();
        collect_by_property(&props(&[("deep", deep), ("plain", 1.0.into())]), &mut found);
        assert_eq!(
            found,
            BTreeMap::from([
                ("deep".to_owned(), vec![urn("x"), urn("y")]),
                ("plain".to_owned(), vec![]),
            ])
        );
    }
}
