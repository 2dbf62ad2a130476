//! Values for tests, written as JSON, and strategies for random ones.

use proptest::prelude::*;
use serde_json::Value;

use crate::urn::Urn;
use crate::value::{Archive, Asset, OutputValue, PropertyMap, PropertyValue, ResourceReference};

/// `{"$secret": x}` is a secret and `{"$unknown": true}` is not known; the rest is itself.
pub(crate) fn value(json: Value) -> PropertyValue {
    match json {
        Value::Null => PropertyValue::Null,
        Value::Bool(value) => value.into(),
        Value::Number(number) => number.as_f64().expect("a finite number").into(),
        Value::String(text) => text.into(),
        Value::Array(items) => PropertyValue::Array(items.into_iter().map(value).collect()),
        Value::Object(mut map) => {
            if let Some(inner) = map.remove("$secret") {
                PropertyValue::Secret(Box::new(value(inner)))
            } else if map.contains_key("$unknown") {
                PropertyValue::Computed
            } else {
                PropertyValue::Object(map.into_iter().map(|(k, v)| (k, value(v))).collect())
            }
        }
    }
}

pub(crate) fn map(json: Value) -> PropertyMap {
    match value(json) {
        PropertyValue::Object(map) => map,
        other => panic!("{other:?} is not an object"),
    }
}

pub(crate) fn urn(name: &str) -> Urn {
    Urn::new("dev", "shop", None, "pkg:mod:Res", name)
}

pub(crate) fn any_urn() -> impl Strategy<Value = Urn> {
    "[a-z]{1,3}".prop_map(|name| urn(&name))
}

fn any_key() -> impl Strategy<Value = String> {
    prop_oneof![3 => "[a-c]", 1 => "[a-zA-Z_.$ \"\\[]{0,5}", 1 => "__[a-z]{1,3}"]
}

fn any_text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-c]{0,2}",
        any::<String>(),
        Just("<&>\u{2028}\u{0}\u{8}".to_owned())
    ]
}

fn any_asset() -> impl Strategy<Value = PropertyValue> {
    let hash = prop_oneof![Just(String::new()), "[0-9a-f]{8}"];
    (hash, "[a-z/]{1,6}", 0..7_u8).prop_map(|(hash, text, kind)| match kind {
        0 => PropertyValue::Asset(Asset::Text { hash, text }),
        1 => PropertyValue::Asset(Asset::Path { hash, path: text }),
        2 => PropertyValue::Asset(Asset::Uri { hash, uri: text }),
        3 => PropertyValue::Archive(Archive::Path { hash, path: text }),
        4 => PropertyValue::Archive(Archive::Uri { hash, uri: text }),
        5 => PropertyValue::Asset(Asset::HashOnly {
            hash: "0123".to_owned(),
        }),
        _ => PropertyValue::Archive(Archive::Assets {
            hash: hash.clone(),
            assets: [(
                text.clone(),
                PropertyValue::Asset(Asset::Text { hash, text }),
            )]
            .into(),
        }),
    })
}

fn any_reference() -> impl Strategy<Value = PropertyValue> {
    let id = prop_oneof![
        Just(None),
        Just(Some(Box::new(PropertyValue::Computed))),
        "[a-z]{1,4}".prop_map(|id| Some(Box::new(PropertyValue::from(id))))
    ];
    (any_urn(), id, "[0-9.]{0,3}").prop_map(|(urn, id, package_version)| {
        PropertyValue::ResourceReference(ResourceReference {
            urn,
            id,
            package_version,
        })
    })
}

/// Values as a state file can hold them: no outputs, and no `Bytes` that would be valid text.
pub(crate) fn any_stored_value() -> impl Strategy<Value = PropertyValue> {
    let leaf = prop_oneof![
        Just(PropertyValue::Null),
        any::<bool>().prop_map(PropertyValue::from),
        any::<f64>().prop_map(PropertyValue::from),
        any::<i32>().prop_map(|n| PropertyValue::from(f64::from(n))),
        any_text().prop_map(PropertyValue::from),
        any::<Vec<u8>>().prop_map(|mut bytes| {
            bytes.push(0xff);
            PropertyValue::Bytes(bytes)
        }),
        any_asset(),
        any_reference(),
        Just(PropertyValue::Computed),
    ];
    leaf.prop_recursive(4, 32, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(PropertyValue::Array),
            prop::collection::btree_map(any_key(), inner.clone(), 0..4)
                .prop_map(PropertyValue::Object),
            inner.prop_map(|value| PropertyValue::Secret(Box::new(value))),
        ]
    })
}

/// Any value at all.
pub(crate) fn any_value() -> impl Strategy<Value = PropertyValue> {
    let output = (
        prop::option::of(any_stored_value()),
        any::<bool>(),
        prop::collection::vec(any_urn(), 0..3),
    )
        .prop_map(|(value, secret, dependencies)| {
            PropertyValue::Output(Box::new(OutputValue {
                value,
                secret,
                dependencies,
            }))
        });
    prop_oneof![4 => any_stored_value(), 1 => output]
}

pub(crate) fn any_map() -> impl Strategy<Value = PropertyMap> {
    prop::collection::btree_map(any_key(), any_value(), 0..5)
}

pub(crate) fn any_stored_map() -> impl Strategy<Value = PropertyMap> {
    prop::collection::btree_map(any_key(), any_stored_value(), 0..5)
}
