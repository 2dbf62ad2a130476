//! Whatever the engine can hold survives a peer that understands everything, and what a lesser
//! peer gets holds nothing that it cannot read.

use nimbus_engine_model::{
    Archive, Asset, OutputValue, PropertyMap, PropertyValue, ResourceReference, Urn,
};
use nimbus_engine_proto::{Kind, ListValue, Message, Struct, Value};
use nimbus_engine_wire::{
    Accept, AcceptedValues, Outputs, UnknownEncoding, decode, decode_value, encode,
};
use proptest::prelude::*;

const ALL: Accept = Accept {
    unknowns: UnknownEncoding::Keep,
    secrets: true,
    resources: true,
    outputs: true,
    byte_strings: true,
    hashes_only: false,
    skip_internal: false,
};
const KEEP: AcceptedValues = AcceptedValues {
    unknowns: UnknownEncoding::Keep,
    outputs: Outputs::Keep,
};

fn urn() -> impl Strategy<Value = Urn> {
    ("[a-z]{1,4}", "[a-zA-Z: ]{1,6}").prop_map(|(project, name)| {
        Urn::new("dev", &project, Some("a:b:Parent"), "c:d:Child", &name)
    })
}

fn asset() -> impl Strategy<Value = PropertyValue> {
    prop_oneof![
        ("[0-9a-f]{0,4}", ".{0,6}").prop_map(|(hash, text)| Asset::Text { hash, text }),
        ("[0-9a-f]{0,4}", ".{1,6}").prop_map(|(hash, path)| Asset::Path { hash, path }),
        ("[0-9a-f]{0,4}", ".{1,6}").prop_map(|(hash, uri)| Asset::Uri { hash, uri }),
        "[0-9a-f]{1,4}".prop_map(|hash| Asset::HashOnly { hash }),
    ]
    .prop_map(PropertyValue::Asset)
}

fn archive() -> impl Strategy<Value = PropertyValue> {
    let leaf = prop_oneof![
        ("[0-9a-f]{0,4}", ".{1,6}").prop_map(|(hash, path)| Archive::Path { hash, path }),
        ("[0-9a-f]{0,4}", ".{1,6}").prop_map(|(hash, uri)| Archive::Uri { hash, uri }),
        "[0-9a-f]{1,4}".prop_map(|hash| Archive::HashOnly { hash }),
    ]
    .prop_map(PropertyValue::Archive);
    leaf.prop_recursive(2, 8, 3, |inner| {
        let members = prop::collection::btree_map(".{0,4}", prop_oneof![inner, asset()], 0..3);
        ("[0-9a-f]{0,4}", members)
            .prop_map(|(hash, assets)| PropertyValue::Archive(Archive::Assets { hash, assets }))
    })
}

fn reference() -> impl Strategy<Value = PropertyValue> {
    let id = prop_oneof![
        Just(None),
        Just(Some(Box::new(PropertyValue::Computed))),
        "[a-z]{1,4}".prop_map(|id| Some(Box::new(id.into()))),
    ];
    (urn(), id, "[0-9.]{0,5}").prop_map(|(urn, id, package_version)| {
        PropertyValue::ResourceReference(ResourceReference {
            urn,
            id,
            package_version,
        })
    })
}

fn property() -> impl Strategy<Value = PropertyValue> {
    let leaf = prop_oneof![
        Just(PropertyValue::Null),
        Just(PropertyValue::Computed),
        any::<bool>().prop_map(PropertyValue::Bool),
        any::<f64>()
            .prop_filter("NaN is not equal to itself", |n| !n.is_nan())
            .prop_map(PropertyValue::Number),
        ".{0,8}".prop_map(PropertyValue::String),
        prop::collection::vec(any::<u8>(), 1..6)
            .prop_filter("text is text", |bytes| std::str::from_utf8(bytes).is_err())
            .prop_map(PropertyValue::Bytes),
        asset(),
        archive(),
        reference(),
    ];
    leaf.prop_recursive(4, 40, 4, |inner| {
        let known = inner
            .clone()
            .prop_filter("unknown is None", |v| *v != PropertyValue::Computed);
        let output = (
            prop::option::of(known),
            any::<bool>(),
            prop::collection::vec(urn(), 0..3),
        );
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(PropertyValue::Array),
            prop::collection::btree_map("[a-z_]{0,4}", inner.clone(), 0..4)
                .prop_map(PropertyValue::Object),
            inner.prop_map(PropertyValue::secret),
            output.prop_map(|(value, secret, dependencies)| {
                PropertyValue::Output(Box::new(OutputValue {
                    value,
                    secret,
                    dependencies,
                }))
            }),
        ]
    })
}

fn properties() -> impl Strategy<Value = PropertyMap> {
    prop::collection::btree_map("[a-z_]{1,6}", property(), 0..5)
}

/// Anything a peer could send, signatures included.
fn wire_value() -> impl Strategy<Value = Value> {
    let text = prop_oneof![
        ".{0,5}",
        Just("4dabf18193072939515e22adb298388d".to_owned()),
        Just("1b47061264138c4ac30d75fd1eb44270".to_owned()),
        Just("d0e6a833031e9bbcd3f4e8bde6ca49a4".to_owned()),
        Just("5cf8f73096256a8f31e491e813e4eb8e".to_owned()),
        Just("c44067f5952c0a294b673a41bacd8c17".to_owned()),
        Just("0def7320c3a5731c473e5ecbe6d01bc7".to_owned()),
        Just("04da6b54-80e4-46f7-96ec-b56ff0331ba9".to_owned()),
    ];
    let key = prop_oneof![
        Just("4dabf18193072939515e22adb298388d".to_owned()),
        Just("value".to_owned()),
        Just("urn".to_owned()),
        Just("assets".to_owned()),
        "[a-z]{0,3}",
    ];
    let leaf = prop_oneof![
        Just(Value { kind: None }),
        Just(Kind::NullValue(0).into()),
        any::<f64>().prop_map(|n| Kind::NumberValue(n).into()),
        any::<bool>().prop_map(|b| Kind::BoolValue(b).into()),
        text.prop_map(|s| Kind::StringValue(s).into()),
    ];
    leaf.prop_recursive(4, 40, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4)
                .prop_map(|values| Kind::ListValue(ListValue { values }).into()),
            prop::collection::btree_map(key.clone(), inner, 0..4)
                .prop_map(|fields| Kind::StructValue(Struct { fields }).into()),
        ]
    })
}

/// Whether any object in the message has a signature.
fn has_signature(value: &Value) -> bool {
    match &value.kind {
        Some(Kind::ListValue(list)) => list.values.iter().any(has_signature),
        Some(Kind::StructValue(object)) => {
            object
                .fields
                .contains_key("4dabf18193072939515e22adb298388d")
                || object.fields.values().any(has_signature)
        }
        _ => false,
    }
}

fn holds_files_or_bytes(value: &PropertyValue) -> bool {
    match value {
        PropertyValue::Asset(_) | PropertyValue::Archive(_) | PropertyValue::Bytes(_) => true,
        PropertyValue::Array(items) => items.iter().any(holds_files_or_bytes),
        PropertyValue::Object(map) => map.values().any(holds_files_or_bytes),
        PropertyValue::Secret(inner) => holds_files_or_bytes(inner),
        PropertyValue::Output(output) => output.value.as_ref().is_some_and(holds_files_or_bytes),
        _ => false,
    }
}

proptest! {
    #[test]
    fn everything_survives_a_peer_that_understands_everything(properties in properties()) {
        let bytes = encode(&properties, ALL).expect("nothing is refused").encode_to_vec();
        let wire = Struct::decode(bytes.as_slice()).expect("own bytes");
        prop_assert_eq!(decode(Some(wire), KEEP).expect("own encoding"), properties);
    }

    #[test]
    fn a_simple_peer_gets_no_object_with_a_signature(properties in properties()) {
        prop_assume!(!properties.values().any(holds_files_or_bytes));
        let plain = Accept { unknowns: UnknownEncoding::Keep, ..Accept::default() };
        let wire = encode(&properties, plain).expect("only bytes are refused");
        prop_assert!(!has_signature(&Kind::StructValue(wire).into()));
    }

    #[test]
    fn dropping_unknowns_leaves_none(properties in properties()) {
        prop_assume!(!properties.values().any(holds_files_or_bytes));
        let wire = encode(&properties, Accept::default()).expect("only bytes are refused");
        let read = decode(Some(wire), KEEP).expect("own encoding");
        prop_assert!(!read.values().any(PropertyValue::contains_unknowns));
    }

    #[test]
    fn whatever_a_peer_sends_is_read_or_refused(value in wire_value()) {
        for outputs in [Outputs::Keep, Outputs::Flatten, Outputs::Upgrade] {
            for unknowns in [UnknownEncoding::Keep, UnknownEncoding::Drop, UnknownEncoding::Reject] {
                let read = decode_value(value.clone(), AcceptedValues { unknowns, outputs });
                if let (Ok(Some(read)), UnknownEncoding::Reject) = (read, unknowns) {
                    prop_assert!(!read.contains_unknowns());
                }
            }
        }
    }
}
