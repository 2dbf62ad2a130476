use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::test_support::{any_map, any_value, map, urn, value};
use crate::value::{Asset, OutputValue, ResourceReference};

const STRICT: DiffOptions<'static> = DiffOptions {
    ignore_internal: false,
    ignore_paths: &[],
    unknowns: UnknownComparison::Differ,
};
const LENIENT: DiffOptions<'static> = DiffOptions {
    ignore_internal: false,
    ignore_paths: &[],
    unknowns: UnknownComparison::MatchAnything,
};

/// The paths that differ, as `+a -b[0] ~c.d`.
fn paths(old: serde_json::Value, new: serde_json::Value, options: &DiffOptions<'_>) -> String {
    let (old, new) = (map(old), map(new));
    let Some(diff) = diff(&old, &new, options) else {
        return String::new();
    };
    let shown = diff.to_paths().into_iter().map(|(path, change)| {
        let sign = match change {
            PathChange::Add => '+',
            PathChange::Delete => '-',
            PathChange::Update => '~',
        };
        format!("{sign}{path}")
    });
    shown.collect::<Vec<_>>().join(" ")
}

#[test]
fn keys_are_added_deleted_updated_or_the_same() {
    let (old, new) = (
        map(json!({"a": 1, "b": 2, "c": 3})),
        map(json!({"b": 2, "c": 4, "d": 5})),
    );
    let diff = diff(&old, &new, &STRICT).unwrap();
    assert_eq!(diff.adds, [("d", &new["d"])].into());
    assert_eq!(diff.deletes, [("a", &old["a"])].into());
    assert_eq!(diff.sames, [("b", &old["b"])].into());
    assert_eq!(
        diff.updates,
        [(
            "c",
            ValueDiff {
                old: &old["c"],
                new: &new["c"],
                inner: None
            }
        )]
        .into()
    );
    assert_eq!(diff.changed_keys(), ["a", "c", "d"]);
    assert!(diff.changed("a") && !diff.changed("b") && !diff.changed("z"));
}

#[test]
fn a_null_is_as_good_as_absent() {
    assert_eq!(paths(json!({"a": null}), json!({}), &STRICT), "");
    assert_eq!(paths(json!({}), json!({"a": null}), &STRICT), "");
    assert_eq!(paths(json!({"a": null}), json!({"a": 1}), &STRICT), "+a");
    assert_eq!(paths(json!({"a": 1}), json!({"a": null}), &STRICT), "-a");
    assert_eq!(
        paths(json!({"a": [null]}), json!({"a": [1]}), &STRICT),
        "+a[0]"
    );
    assert_eq!(
        paths(json!({"a": [1]}), json!({"a": [null]}), &STRICT),
        "-a[0]"
    );
}

#[test]
fn the_innermost_places_are_named() {
    assert_eq!(
        paths(
            json!({"a": {"b": 1, "c": [1, {"d": 2}, 3]}, "x": 1}),
            json!({"a": {"b": 2, "c": [1, {"d": 3, "e": 4}]}, "x": [1]}),
            &STRICT
        ),
        "~a.b ~a.c[1].d +a.c[1].e -a.c[2] ~x"
    );
}

#[test]
fn secrets_compare_by_their_content_and_differ_from_plain_values() {
    let secret = |inner: serde_json::Value| json!({"a": {"$secret": inner}});
    assert_eq!(paths(secret(json!([1])), secret(json!([1])), &STRICT), "");
    assert_eq!(
        paths(secret(json!([1])), secret(json!([2])), &STRICT),
        "~a",
        "not looked into"
    );
    assert_eq!(paths(secret(json!(1)), json!({"a": 1}), &STRICT), "~a");
    assert_eq!(paths(json!({"a": 1}), secret(json!(1)), &STRICT), "~a");
}

#[test]
fn unknowns_differ_or_match_anything() {
    let unknown = json!({"a": {"$unknown": true}});
    assert_eq!(paths(unknown.clone(), unknown.clone(), &STRICT), "");
    assert_eq!(paths(unknown.clone(), json!({"a": 1}), &STRICT), "~a");
    assert_eq!(paths(unknown.clone(), json!({}), &STRICT), "-a");
    assert_eq!(paths(unknown.clone(), json!({"a": 1}), &LENIENT), "");
    assert_eq!(paths(json!({"a": [1]}), unknown.clone(), &LENIENT), "");
    assert_eq!(paths(unknown.clone(), json!({}), &LENIENT), "");
    assert_eq!(paths(json!({}), unknown.clone(), &LENIENT), "+a");
    assert_eq!(
        paths(
            json!({"s": {"$secret": {"$unknown": 1}}}),
            json!({"s": {"$secret": 1}}),
            &LENIENT
        ),
        ""
    );
    let (old, new) = (map(unknown), map(json!({"a": 1, "b": 2})));
    let diff = diff(&old, &new, &LENIENT).unwrap();
    assert_eq!(diff.sames["a"], &new["a"], "the value that is known now");
}

#[test]
fn internal_keys_are_ignored_at_every_depth_on_request() {
    let old = json!({"__defaults": 1, "a": {"__x": 1}});
    let new = json!({"__defaults": 2, "__new": 1, "a": {"__x": 2}});
    let options = DiffOptions {
        ignore_internal: true,
        ..STRICT
    };
    assert_eq!(paths(old.clone(), new.clone(), &options), "");
    assert_eq!(paths(old, new, &STRICT), "~__defaults +__new ~a.__x");
}

#[test]
fn ignored_paths_hide_what_lies_below_them() {
    let ignored = ["a.b", "c[*].d"].map(|text| PropertyPath::parse(text).unwrap());
    let options = DiffOptions {
        ignore_paths: &ignored,
        ..STRICT
    };
    assert_eq!(
        paths(
            json!({"a": {"b": {"x": 1}, "z": 1}, "c": [{"d": 1, "e": 1}]}),
            json!({"a": {"b": {"x": 2}, "z": 2}, "c": [{"d": 2, "e": 2}]}),
            &options
        ),
        "~a.z ~c[0].e"
    );
}

#[test]
fn assets_are_their_content() {
    let text = |text: &str| {
        PropertyValue::Asset(Asset::Text {
            hash: String::new(),
            text: text.into(),
        })
    };
    let hashed = |hash: &str| PropertyValue::Asset(Asset::HashOnly { hash: hash.into() });
    let file = |hash: &str| {
        PropertyValue::Asset(Asset::Path {
            hash: hash.into(),
            path: "p".into(),
        })
    };
    let sha_of_a = "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb";
    assert!(
        deep_equals(&text("a"), &hashed(sha_of_a)),
        "wherever it comes from"
    );
    assert!(deep_equals(&file("1"), &hashed("1")));
    assert!(
        !deep_equals(&file("1"), &file("2")),
        "the same path with other content"
    );
    assert!(
        !deep_equals(&file(""), &file("")),
        "nobody knows the content"
    );
}

#[test]
fn references_ignore_the_package_version() {
    let reference = |id: Option<PropertyValue>, version: &str| {
        PropertyValue::ResourceReference(ResourceReference {
            urn: urn("r"),
            id: id.map(Box::new),
            package_version: version.into(),
        })
    };
    assert!(deep_equals(&reference(None, "1"), &reference(None, "2")));
    assert!(deep_equals(
        &reference(Some("i".into()), ""),
        &reference(Some("i".into()), "")
    ));
    assert!(!deep_equals(
        &reference(Some("i".into()), ""),
        &reference(Some("j".into()), "")
    ));
    assert!(!deep_equals(
        &reference(Some("i".into()), ""),
        &reference(None, "")
    ));
    let unknown = || reference(Some(PropertyValue::Computed), "");
    assert!(deep_equals(&unknown(), &unknown()));
    assert!(!deep_equals(&unknown(), &reference(Some("i".into()), "")));
}

#[test]
fn outputs_compare_with_their_provenance() {
    let output = |value: Option<PropertyValue>, secret, dependency: &str| {
        PropertyValue::Output(Box::new(OutputValue {
            value,
            secret,
            dependencies: vec![urn(dependency)],
        }))
    };
    let base = output(Some(1.0.into()), false, "a");
    assert!(deep_equals(&base, &output(Some(1.0.into()), false, "a")));
    assert!(!deep_equals(&base, &output(Some(1.0.into()), true, "a")));
    assert!(!deep_equals(&base, &output(Some(1.0.into()), false, "b")));
    assert!(!deep_equals(&base, &output(None, false, "a")));
    assert!(!deep_equals(&base, &1.0.into()));
}

#[test]
fn numbers_compare_as_floats_and_strings_by_bytes() {
    assert!(deep_equals(&0.0.into(), &(-0.0).into()));
    assert!(!deep_equals(&f64::NAN.into(), &f64::NAN.into()));
    assert!(deep_equals(
        &"a".into(),
        &PropertyValue::Bytes(b"a".to_vec())
    ));
    assert!(!deep_equals(&value(json!("1")), &value(json!(1))));
}

proptest! {
    #[test]
    fn no_difference_means_equal_and_the_other_way_round(left in any_map(), right in any_map()) {
        prop_assert_eq!(diff(&left, &right, &STRICT).is_none(), maps_equal(&left, &right));
    }

    #[test]
    fn equality_is_symmetric(left in any_value(), right in any_value()) {
        prop_assert_eq!(deep_equals(&left, &right), deep_equals(&right, &left));
    }

    #[test]
    fn every_changed_key_has_a_path_and_every_path_a_changed_key(left in any_map(), right in any_map()) {
        if let Some(diff) = diff(&left, &right, &STRICT) {
            let mut heads: Vec<String> = diff
                .to_paths()
                .into_keys()
                .map(|path| match &path.segments()[0] {
                    crate::path::PathSegment::Key(key) => key.clone(),
                    crate::path::PathSegment::Index(_) => unreachable!("maps have keys"),
                })
                .collect();
            heads.dedup();
            prop_assert_eq!(heads, diff.changed_keys());
        }
    }

    #[test]
    fn matching_anything_never_finds_more(left in any_map(), right in any_map()) {
        let strict = diff(&left, &right, &STRICT);
        if diff(&left, &right, &LENIENT).is_some() {
            prop_assert!(strict.is_some());
        }
    }
}
