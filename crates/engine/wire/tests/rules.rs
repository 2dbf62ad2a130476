//! Rule by rule: what each kind of value becomes for each kind of peer, and what is refused.

use nimbus_engine_model::{
    Archive, Asset, OutputValue, PropertyMap, PropertyValue, ResourceReference, Urn,
};
use nimbus_engine_proto::{Kind, ListValue, Struct, Value};
use nimbus_engine_wire::{
    Accept, AcceptedValues, Outputs, UnknownEncoding, decode, decode_value, encode, encode_value,
};

const SIG: &str = "4dabf18193072939515e22adb298388d";
const SECRET: &str = "1b47061264138c4ac30d75fd1eb44270";
const REFERENCE: &str = "5cf8f73096256a8f31e491e813e4eb8e";
const OUTPUT: &str = "d0e6a833031e9bbcd3f4e8bde6ca49a4";
const ASSET: &str = "c44067f5952c0a294b673a41bacd8c17";
const ARCHIVE: &str = "0def7320c3a5731c473e5ecbe6d01bc7";
const BYTES: &str = "803fd3297a5875dc03ca845dda5d2a98";
const UNKNOWN: &str = "04da6b54-80e4-46f7-96ec-b56ff0331ba9";
const URN: &str = "urn:pulumi:dev::shop::aws:s3/bucket:Bucket::logs";

/// A peer that understands everything.
const ALL: Accept = Accept {
    unknowns: UnknownEncoding::Keep,
    secrets: true,
    resources: true,
    outputs: true,
    byte_strings: true,
    hashes_only: false,
    skip_internal: false,
};
/// A peer that understands unknown values only.
const PLAIN: Accept = Accept {
    unknowns: UnknownEncoding::Keep,
    secrets: false,
    resources: false,
    outputs: false,
    byte_strings: false,
    hashes_only: false,
    skip_internal: false,
};
const KEEP: AcceptedValues = AcceptedValues {
    unknowns: UnknownEncoding::Keep,
    outputs: Outputs::Keep,
};
const FLATTEN: AcceptedValues = AcceptedValues {
    unknowns: UnknownEncoding::Keep,
    outputs: Outputs::Flatten,
};
const UPGRADE: AcceptedValues = AcceptedValues {
    unknowns: UnknownEncoding::Keep,
    outputs: Outputs::Upgrade,
};
const DROP: AcceptedValues = AcceptedValues {
    unknowns: UnknownEncoding::Drop,
    outputs: Outputs::Flatten,
};
const REJECT: AcceptedValues = AcceptedValues {
    unknowns: UnknownEncoding::Reject,
    outputs: Outputs::Keep,
};

fn s(text: &str) -> Value {
    Kind::StringValue(text.to_owned()).into()
}

fn b(value: bool) -> Value {
    Kind::BoolValue(value).into()
}

fn list<const N: usize>(values: [Value; N]) -> Value {
    Kind::ListValue(ListValue {
        values: values.into(),
    })
    .into()
}

fn object<const N: usize>(fields: [(&str, Value); N]) -> Value {
    let fields = fields
        .into_iter()
        .map(|(key, value)| (key.to_owned(), value))
        .collect();
    Kind::StructValue(Struct { fields }).into()
}

fn map<const N: usize>(entries: [(&str, PropertyValue); N]) -> PropertyMap {
    entries
        .into_iter()
        .map(|(key, value)| (key.to_owned(), value))
        .collect()
}

fn urn() -> Urn {
    Urn::parse(URN).expect("a URN")
}

fn secret(value: impl Into<PropertyValue>) -> PropertyValue {
    PropertyValue::secret(value.into())
}

fn output(value: Option<PropertyValue>, secret: bool, dependencies: Vec<Urn>) -> PropertyValue {
    PropertyValue::Output(Box::new(OutputValue {
        value,
        secret,
        dependencies,
    }))
}

fn reference(id: Option<PropertyValue>) -> PropertyValue {
    PropertyValue::ResourceReference(ResourceReference {
        urn: urn(),
        id: id.map(Box::new),
        package_version: "7.48.0".into(),
    })
}

fn asset(hash: &str, text: &str) -> PropertyValue {
    PropertyValue::Asset(Asset::Text {
        hash: hash.into(),
        text: text.into(),
    })
}

#[track_caller]
fn sent(value: PropertyValue, accept: Accept) -> Option<Value> {
    encode_value(&value, accept).expect("can be sent")
}

#[track_caller]
fn read(value: Value, expect: AcceptedValues) -> Option<PropertyValue> {
    decode_value(value, expect).expect("can be read")
}

#[track_caller]
fn refused(value: Value, expect: AcceptedValues, reason: &str) {
    let nested = object([("a", object([("b c", list([b(true), value]))]))]);
    let Some(Kind::StructValue(properties)) = nested.kind else {
        unreachable!("built above")
    };
    let error = decode(Some(properties), expect)
        .expect_err("must be refused")
        .to_string();
    assert!(error.starts_with("property a[\"b c\"][1]"), "{error}");
    assert!(error.contains(reason), "{error:?} does not say {reason:?}");
}

#[test]
fn secrets_are_marked_for_those_who_accept_them_and_plain_for_others() {
    let marked = object([(SIG, s(SECRET)), ("value", s("hunter2"))]);
    assert_eq!(sent(secret("hunter2"), ALL), Some(marked.clone()));
    assert_eq!(sent(secret("hunter2"), PLAIN), Some(s("hunter2")));
    assert_eq!(read(marked.clone(), FLATTEN), Some(secret("hunter2")));
    assert_eq!(
        read(marked, UPGRADE),
        Some(output(Some("hunter2".into()), true, vec![]))
    );
}

#[test]
fn unknown_values_are_kept_dropped_or_refused() {
    let computed = map([("a", PropertyValue::Computed), ("b", "x".into())]);
    let kept = encode(&computed, PLAIN).expect("kept");
    assert_eq!(kept.fields["a"], s(UNKNOWN));
    let dropped = encode(
        &computed,
        Accept {
            unknowns: UnknownEncoding::Drop,
            ..ALL
        },
    )
    .expect("dropped");
    assert_eq!(dropped.fields.keys().collect::<Vec<_>>(), ["b"]);
    let error = encode(
        &computed,
        Accept {
            unknowns: UnknownEncoding::Reject,
            ..ALL
        },
    );
    assert_eq!(error.expect_err("refused").path(), "a");
}

#[test]
fn a_secret_that_is_not_known_is_dropped_as_a_whole() {
    let drop = Accept {
        unknowns: UnknownEncoding::Drop,
        ..ALL
    };
    assert_eq!(sent(secret(PropertyValue::Computed), drop), None);
    let marked = object([(SIG, s(SECRET)), ("value", s(UNKNOWN))]);
    assert_eq!(
        sent(secret(PropertyValue::Computed), ALL),
        Some(marked.clone())
    );
    assert_eq!(read(marked.clone(), DROP), None);
    assert_eq!(read(marked, KEEP), Some(secret(PropertyValue::Computed)));
}

#[test]
fn a_text_made_of_an_unknown_one_is_unknown() {
    for text in [
        format!("{UNKNOWN}:1.0.0"),
        format!("arn:aws:s3:::{UNKNOWN}/*"),
        format!(r#"{{"Resource":"{UNKNOWN}"}}"#),
    ] {
        assert_eq!(read(s(&text), KEEP), Some(PropertyValue::Computed));
        assert_eq!(
            read(s(&text), DROP),
            Some(PropertyValue::from(text.as_str()))
        );
    }
}

#[test]
fn every_sentinel_is_an_unknown_value() {
    for sentinel in [
        UNKNOWN,
        "1c4a061d-8072-4f0a-a4cb-0ff528b18fe7",
        "3eeb2bf0-c639-47a8-9e75-3b44932eb421",
        "6a19a0b0-7e62-4c92-b797-7f8e31da9cc2",
        "030794c1-ac77-496b-92df-f27374a8bd58",
        "e48ece36-62e2-4504-bad9-02848725956a",
        "dd056dcd-154b-4c76-9bd3-c8f88648b5ff",
    ] {
        assert_eq!(read(s(sentinel), KEEP), Some(PropertyValue::Computed));
        assert_eq!(
            read(s(sentinel), UPGRADE),
            Some(output(None, false, vec![]))
        );
        assert_eq!(read(s(sentinel), DROP), None);
        refused(s(sentinel), REJECT, "not known yet");
    }
}

#[test]
fn a_dropped_element_leaves_the_places_of_the_others() {
    let wire = list([b(true), s(UNKNOWN), b(false)]);
    let expected = vec![true.into(), PropertyValue::Null, false.into()];
    assert_eq!(read(wire, DROP), Some(PropertyValue::Array(expected)));
}

#[test]
fn outputs_carry_value_secrecy_and_dependencies() {
    let full = output(Some("v".into()), true, vec![urn()]);
    let wire = object([
        (SIG, s(OUTPUT)),
        ("value", s("v")),
        ("secret", b(true)),
        ("dependencies", list([s(URN)])),
    ]);
    assert_eq!(sent(full.clone(), ALL), Some(wire.clone()));
    assert_eq!(read(wire.clone(), KEEP), Some(full.clone()));
    assert_eq!(read(wire, FLATTEN), Some(secret("v")));

    let to_secrets = Accept {
        outputs: false,
        ..ALL
    };
    assert_eq!(sent(full.clone(), to_secrets), sent(secret("v"), ALL));
    assert_eq!(sent(full, PLAIN), Some(s("v")));
}

#[test]
fn an_output_without_value_is_not_known() {
    let unknown = output(None, true, vec![]);
    let wire = object([(SIG, s(OUTPUT)), ("secret", b(true))]);
    assert_eq!(sent(unknown.clone(), ALL), Some(wire.clone()));
    assert_eq!(read(wire.clone(), KEEP), Some(unknown.clone()));
    assert_eq!(
        read(wire.clone(), FLATTEN),
        Some(secret(PropertyValue::Computed))
    );
    assert_eq!(read(wire.clone(), DROP), None);
    refused(wire, REJECT, "not known yet");
    assert_eq!(sent(unknown, PLAIN), Some(s(UNKNOWN)));

    let sentinel_inside = object([(SIG, s(OUTPUT)), ("value", s(UNKNOWN))]);
    assert_eq!(
        read(sentinel_inside, KEEP),
        Some(output(None, false, vec![]))
    );
}

#[test]
fn references_say_whether_they_have_an_id_and_whether_it_is_known() {
    let wire = |id: Option<&str>| {
        let mut value = object([
            (SIG, s(REFERENCE)),
            ("urn", s(URN)),
            ("name", s("logs")),
            ("type", s("aws:s3/bucket:Bucket")),
            ("packageVersion", s("7.48.0")),
        ]);
        if let (Some(id), Some(Kind::StructValue(object))) = (id, &mut value.kind) {
            object.fields.insert("id".into(), s(id));
        }
        value
    };
    for (value, on_wire) in [
        (reference(None), wire(None)),
        (reference(Some("i-1".into())), wire(Some("i-1"))),
        (reference(Some(PropertyValue::Computed)), wire(Some(""))),
    ] {
        assert_eq!(sent(value.clone(), ALL), Some(on_wire.clone()));
        assert_eq!(read(on_wire, FLATTEN), Some(value));
    }
    assert_eq!(
        read(wire(Some(UNKNOWN)), KEEP),
        Some(reference(Some(PropertyValue::Computed)))
    );
    assert_eq!(
        read(wire(Some(UNKNOWN)), DROP),
        Some(reference(Some(PropertyValue::Computed)))
    );
    refused(wire(Some("")), REJECT, "not known yet");
}

#[test]
fn references_become_id_or_urn_for_peers_that_do_not_know_them() {
    assert_eq!(sent(reference(Some("i-1".into())), PLAIN), Some(s("i-1")));
    assert_eq!(sent(reference(None), PLAIN), Some(s(URN)));
    assert_eq!(
        sent(reference(Some(PropertyValue::Computed)), PLAIN),
        Some(s(UNKNOWN))
    );
    let drop = Accept {
        unknowns: UnknownEncoding::Drop,
        ..PLAIN
    };
    assert_eq!(sent(reference(Some(PropertyValue::Computed)), drop), None);
}

#[test]
fn bytes_that_are_not_text_go_only_to_those_who_take_them() {
    let bytes = PropertyValue::Bytes(vec![0xff, 0x00]);
    let wire = object([(SIG, s(BYTES)), ("value", s("/wA="))]);
    assert_eq!(sent(bytes.clone(), ALL), Some(wire.clone()));
    assert_eq!(read(wire, KEEP), Some(bytes.clone()));
    let error = encode(&map([("k", bytes)]), PLAIN)
        .expect_err("refused")
        .to_string();
    assert_eq!(
        error,
        "property k: it holds bytes that are not UTF-8, and the receiver does not take those"
    );
    let text = object([(SIG, s(BYTES)), ("value", s("aGk="))]);
    assert_eq!(
        read(text, KEEP),
        Some("hi".into()),
        "valid UTF-8 is plain text"
    );
}

#[test]
fn assets_and_archives_travel_with_content_or_with_their_hash_alone() {
    let archive = PropertyValue::Archive(Archive::Assets {
        hash: "h2".into(),
        assets: map([
            ("a.txt", asset("h1", "hi")),
            (
                "more",
                PropertyValue::Archive(Archive::Path {
                    hash: String::new(),
                    path: "./d".into(),
                }),
            ),
        ]),
    });
    let wire = object([
        (SIG, s(ARCHIVE)),
        ("hash", s("h2")),
        (
            "assets",
            object([
                (
                    "a.txt",
                    object([(SIG, s(ASSET)), ("hash", s("h1")), ("text", s("hi"))]),
                ),
                ("more", object([(SIG, s(ARCHIVE)), ("path", s("./d"))])),
            ]),
        ),
    ]);
    assert_eq!(sent(archive.clone(), ALL), Some(wire.clone()));
    assert_eq!(read(wire, REJECT), Some(archive.clone()));

    let hashes = Accept {
        hashes_only: true,
        ..ALL
    };
    let hash_only = object([(SIG, s(ARCHIVE)), ("hash", s("h2"))]);
    assert_eq!(sent(archive, hashes), Some(hash_only.clone()));
    let expected = Archive::HashOnly { hash: "h2".into() };
    assert_eq!(
        read(hash_only, KEEP),
        Some(PropertyValue::Archive(expected))
    );
    let hash_only = object([(SIG, s(ASSET)), ("hash", s("h1"))]);
    assert_eq!(sent(asset("h1", "hi"), hashes), Some(hash_only.clone()));
    let expected = Asset::HashOnly { hash: "h1".into() };
    assert_eq!(read(hash_only, KEEP), Some(PropertyValue::Asset(expected)));
}

#[test]
fn marker_keys_that_sdks_add_to_assets_are_dropped() {
    let wire = object([
        (SIG, s(ASSET)),
        ("__pulumiAsset", b(true)),
        ("uri", s("https://x/y")),
    ]);
    let expected = Asset::Uri {
        hash: String::new(),
        uri: "https://x/y".into(),
    };
    assert_eq!(read(wire, KEEP), Some(PropertyValue::Asset(expected)));
}

#[test]
fn an_asset_without_content_is_the_empty_text_unless_a_hash_says_otherwise() {
    let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    assert_eq!(read(object([(SIG, s(ASSET))]), KEEP), Some(asset("", "")));
    let hashed = object([(SIG, s(ASSET)), ("hash", s(empty))]);
    assert_eq!(read(hashed, KEEP), Some(asset(empty, "")));
    let archive = Archive::Assets {
        hash: String::new(),
        assets: PropertyMap::new(),
    };
    assert_eq!(
        read(object([(SIG, s(ARCHIVE))]), KEEP),
        Some(PropertyValue::Archive(archive))
    );
}

#[test]
fn internal_keys_are_skipped_at_the_top_only_and_on_request() {
    let properties = map([
        ("__defaults", PropertyValue::Null),
        (
            "kept",
            PropertyValue::Object(map([("__inner", PropertyValue::Null)])),
        ),
    ]);
    let skipped = encode(
        &properties,
        Accept {
            skip_internal: true,
            ..ALL
        },
    )
    .expect("can be sent");
    assert_eq!(skipped.fields.keys().collect::<Vec<_>>(), ["kept"]);
    assert_eq!(
        skipped.fields["kept"],
        object([("__inner", Kind::NullValue(0).into())])
    );
    assert_eq!(
        encode(&properties, ALL).expect("can be sent").fields.len(),
        2
    );
}

#[test]
fn a_value_without_kind_is_null_and_an_absent_struct_is_empty() {
    assert_eq!(read(Value { kind: None }, KEEP), Some(PropertyValue::Null));
    assert_eq!(decode(None, KEEP), Ok(PropertyMap::new()));
}

#[test]
fn malformed_objects_are_refused_with_their_place() {
    refused(
        object([(SIG, s("nonsense"))]),
        KEEP,
        "unrecognised signature",
    );
    refused(object([(SIG, b(true))]), KEEP, "unrecognised signature");
    refused(object([(SIG, s(SECRET))]), KEEP, "secret: it has no value");
    refused(
        object([(SIG, s(OUTPUT)), ("secret", s("yes"))]),
        KEEP,
        "not a boolean",
    );
    refused(
        object([(SIG, s(OUTPUT)), ("dependencies", b(true))]),
        KEEP,
        "not a list",
    );
    refused(
        object([(SIG, s(OUTPUT)), ("dependencies", list([b(true)]))]),
        KEEP,
        "not a string",
    );
    refused(
        object([(SIG, s(OUTPUT)), ("dependencies", list([s("x")]))]),
        KEEP,
        "not a URN",
    );
    refused(object([(SIG, s(REFERENCE))]), KEEP, "it has no urn");
    refused(
        object([(SIG, s(REFERENCE)), ("urn", s("x"))]),
        KEEP,
        "not a URN",
    );
    refused(
        object([(SIG, s(REFERENCE)), ("urn", b(true))]),
        KEEP,
        "must be a string",
    );
    refused(
        object([(SIG, s(REFERENCE)), ("urn", s(URN)), ("id", b(true))]),
        KEEP,
        "id is not",
    );
    refused(
        object([(SIG, s(ASSET)), ("path", b(true))]),
        KEEP,
        "must be a string",
    );
    refused(
        object([(SIG, s(ARCHIVE)), ("assets", b(true))]),
        KEEP,
        "not an object",
    );
    refused(
        object([(SIG, s(ARCHIVE)), ("assets", object([("m", b(true))]))]),
        KEEP,
        "member",
    );
    refused(
        object([(SIG, s(BYTES))]),
        KEEP,
        "byte string: it has no value",
    );
    refused(object([(SIG, s(BYTES)), ("value", s("?"))]), KEEP, "base64");
}

#[test]
fn errors_never_show_the_value() {
    let properties = map([(
        "password",
        secret(PropertyValue::Bytes(b"hunter2\xff".to_vec())),
    )]);
    let error = encode(&properties, PLAIN).expect_err("cannot be sent");
    assert!(!format!("{error} {error:?}").contains("hunter2"));
}
