use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::test_support::{any_map, map, value};

fn path(text: &str) -> PropertyPath {
    PropertyPath::parse(text).unwrap()
}

fn key(text: &str) -> PathSegment {
    PathSegment::Key(text.to_owned())
}

#[test]
fn every_way_to_write_a_path_is_read_and_shown_in_one_way() {
    let at = PathSegment::Index;
    let cases: &[(&str, &[PathSegment], &str)] = &[
        ("", &[], ""),
        ("a", &[key("a")], "a"),
        ("a.b", &[key("a"), key("b")], "a.b"),
        (r#"a["b"]"#, &[key("a"), key("b")], "a.b"),
        (
            "a[0][12].b",
            &[key("a"), at(0), at(12), key("b")],
            "a[0][12].b",
        ),
        ("[3]", &[at(3)], "[3]"),
        ("a[-1]", &[key("a"), at(-1)], "a[-1]"),
        (
            r#"["x \"y\" z"].w"#,
            &[key(r#"x "y" z"#), key("w")],
            r#"["x \"y\" z"].w"#,
        ),
        (r#"a["b.c"]"#, &[key("a"), key("b.c")], r#"a["b.c"]"#),
        (r#"["]"]"#, &[key("]")], r#"["]"]"#),
        ("a-b:c/d é", &[key("a-b:c/d é")], r#"["a-b:c/d é"]"#),
        ("a.[1]", &[key("a"), at(1)], "a[1]"),
        (r#"a.["b c"]"#, &[key("a"), key("b c")], r#"a["b c"]"#),
        ("a..b", &[key("a"), key("b")], "a.b"),
        ("a.*", &[key("a"), key("*")], r#"a["*"]"#),
        ("a[*].b", &[key("a"), key("*"), key("b")], r#"a["*"].b"#),
        (r#"a["*"]"#, &[key("a"), key("*")], r#"a["*"]"#),
    ];
    for (text, segments, shown) in cases {
        let parsed = path(text);
        assert_eq!(parsed.segments(), *segments, "{text}");
        assert_eq!(parsed.to_string(), *shown, "{text}");
    }
}

#[test]
fn a_malformed_path_is_refused_with_its_cause() {
    let owned = |path: &str| path.to_owned();
    let refused = |text: &str| PropertyPath::parse(text).unwrap_err();
    assert_eq!(refused(".a"), PathError::LeadingDot { path: owned(".a") });
    assert_eq!(refused("a."), PathError::TrailingDot { path: owned("a.") });
    assert_eq!(
        refused("a["),
        PathError::OpenBracket {
            path: owned("a["),
            offset: 1
        }
    );
    assert_eq!(
        refused(r#"a["b]"#),
        PathError::OpenQuote {
            path: owned(r#"a["b]"#),
            offset: 2
        }
    );
    assert_eq!(
        refused(r#"a["b"x]"#),
        PathError::OpenBracket {
            path: owned(r#"a["b"x]"#),
            offset: 1
        }
    );
    assert_eq!(
        refused("a[b]"),
        PathError::BadIndex {
            path: owned("a[b]"),
            index: owned("b")
        }
    );
    assert_eq!(
        refused("a[99999999999999999999]"),
        PathError::BadIndex {
            path: owned("a[99999999999999999999]"),
            index: owned("99999999999999999999")
        }
    );
}

#[test]
fn the_json_form_is_the_text() {
    let json = serde_json::to_string(&path(r#"a[1]["*"]"#)).unwrap();
    assert_eq!(json, r#""a[1][\"*\"]""#);
    assert_eq!(
        serde_json::from_str::<PropertyPath>(&json).unwrap(),
        path(r#"a[1]["*"]"#)
    );
    assert!(serde_json::from_str::<PropertyPath>(r#""a[""#).is_err());
}

#[test]
fn get_follows_objects_and_arrays_and_nothing_else() {
    let root = value(json!({"a": {"b": [null, {"c": true}]}, "*": 1, "s": {"$secret": {"x": 1}}}));
    assert_eq!(path("a.b[1].c").get(&root), Some(&true.into()));
    assert_eq!(path("a.b[0]").get(&root), Some(&PropertyValue::Null));
    assert_eq!(path("").get(&root), Some(&root));
    assert_eq!(path("*").get(&root), Some(&1.0.into()), "no wildcard here");
    for absent in [
        "b",
        "a.c",
        "a[0]",
        "a.b.c",
        "a.b[2]",
        "a.b[-1]",
        "a.b[1].c.d",
        "s.x",
        "[0]",
    ] {
        assert_eq!(path(absent).get(&root), None, "{absent}");
        assert_eq!(
            path(absent).get_in(root.as_object().unwrap()),
            None,
            "{absent}"
        );
    }
    assert_eq!(
        path("a.b[1].c").get_in(root.as_object().unwrap()),
        Some(&true.into())
    );
}

#[test]
fn set_creates_the_last_key_only() {
    let mut root = value(json!({"a": [1, 2], "b": {}}));
    assert!(path("b.new").set(&mut root, "x".into()));
    assert!(path("a[1]").set(&mut root, "y".into()));
    assert_eq!(root, value(json!({"a": [1, "y"], "b": {"new": "x"}})));
    let before = root.clone();
    for refused in ["", "a[2]", "a[-1]", "a.k", "b.c.d", "b[0]", "c.d"] {
        assert!(!path(refused).set(&mut root, "z".into()), "{refused}");
    }
    assert_eq!(root, before);
}

#[test]
fn delete_removes_keys_and_blanks_elements() {
    let mut root = value(json!({"a": [1, 2], "b": {"c": 1}}));
    assert!(path("a[0]").delete(&mut root));
    assert!(path("b.c").delete(&mut root));
    assert!(path("b.c").delete(&mut root), "absent already is fine");
    assert_eq!(root, value(json!({"a": [null, 2], "b": {}})));
    for refused in ["", "a[2]", "a.k", "c.d", "b[0]"] {
        assert!(!path(refused).delete(&mut root), "{refused}");
    }
}

#[test]
fn a_path_contains_what_lies_below_it() {
    let contains = |outer: &str, inner: &str| path(outer).contains(&path(inner));
    for (outer, inner) in [
        ("", ""),
        ("", "a"),
        ("a", "a"),
        ("a", "a.b"),
        ("a", "a[1]"),
        ("a[1]", "a[1].b"),
        ("a.*.c", "a.b.c.d"),
        ("a.*.c", "a[1].c"),
        ("*", "a[1].b"),
    ] {
        assert!(contains(outer, inner), "{outer} ⊇ {inner}");
    }
    for (outer, inner) in [
        ("a", ""),
        ("a.b", "a"),
        ("a.b", "a.c"),
        ("a[1]", "a[2]"),
        ("a[1]", r#"a["1"]"#),
        ("a", "*"),
    ] {
        assert!(!contains(outer, inner), "{outer} ⊉ {inner}");
    }
}

/// `expected` is `None` when the path does not fit and nothing may change.
#[track_caller]
fn check_reset(
    text: &str,
    old: serde_json::Value,
    new: serde_json::Value,
    expected: Option<serde_json::Value>,
) {
    let (old, before) = (map(old), map(new));
    let mut new = before.clone();
    let done = path(text).reset(&old, &mut new);
    match expected {
        Some(expected) => {
            assert!(done, "{text}");
            assert_eq!(new, map(expected), "{text}");
        }
        None => {
            assert!(!done, "{text}");
            assert_eq!(new, before, "{text}");
        }
    }
}

#[test]
fn reset_puts_back_one_key() {
    check_reset(
        "r",
        json!({"r": 1}),
        json!({"r": 2, "s": 3}),
        Some(json!({"r": 1, "s": 3})),
    );
    check_reset("r", json!({"r": 1}), json!({}), Some(json!({"r": 1})));
    check_reset("r", json!({}), json!({"r": 2}), Some(json!({})));
    check_reset(
        "r.n",
        json!({"r": {"n": 1}}),
        json!({"r": {"n": 2}}),
        Some(json!({"r": {"n": 1}})),
    );
    check_reset(
        "r.n",
        json!({"r": {}}),
        json!({"r": {"n": 2}}),
        Some(json!({"r": {}})),
    );
    check_reset(
        "r.n",
        json!({"r": {"n": 1}}),
        json!({"r": {}}),
        Some(json!({"r": {"n": 1}})),
    );
    check_reset(
        "r.n",
        json!({}),
        json!({"r": {"n": 2}}),
        Some(json!({"r": {}})),
    );
    check_reset(
        "r.n",
        json!({"r": 1}),
        json!({"r": {"n": 2}}),
        Some(json!({"r": {}})),
    );
}

#[test]
fn reset_of_a_place_that_neither_side_has_does_nothing() {
    check_reset("m", json!({"r": 1}), json!({"r": 2}), Some(json!({"r": 2})));
    check_reset(
        "m.p",
        json!({"r": 1}),
        json!({"r": 2}),
        Some(json!({"r": 2})),
    );
    check_reset(
        "r.m",
        json!({"r": 1}),
        json!({"r": 2}),
        Some(json!({"r": 2})),
    );
    check_reset(
        "r.m.p",
        json!({"r": 1}),
        json!({"r": 2}),
        Some(json!({"r": 2})),
    );
    check_reset(
        "r[0]",
        json!({"r": 1}),
        json!({"r": 2}),
        Some(json!({"r": 2})),
    );
    check_reset(
        "r[0].m",
        json!({"r": 1}),
        json!({"r": 2}),
        Some(json!({"r": 2})),
    );
    check_reset(
        "a[1]",
        json!({"a": [1]}),
        json!({"a": [2]}),
        Some(json!({"a": [2]})),
    );
    check_reset(
        "[0]",
        json!({"a": 1}),
        json!({"a": 2}),
        Some(json!({"a": 2})),
    );
}

#[test]
fn reset_refuses_a_place_that_only_one_side_can_have() {
    check_reset("", json!({"a": 1}), json!({"a": 2}), None);
    check_reset("r.n", json!({"r": {"n": 1}}), json!({"r": 2}), None);
    check_reset("r.n", json!({"r": {"n": 1}}), json!({}), None);
    check_reset(
        "r.n.m",
        json!({"r": {"n": {"m": 1}}}),
        json!({"r": 2}),
        None,
    );
    check_reset(
        "r.n.m",
        json!({"r": 2}),
        json!({"r": {"n": {"m": 1}}}),
        None,
    );
    check_reset("r[0]", json!({"r": [1]}), json!({"r": 2}), None);
    check_reset("r[0]", json!({"r": 1}), json!({"r": [2]}), None);
    check_reset("a[0]", json!({"a": []}), json!({"a": [2]}), None);
    check_reset("a[0]", json!({"a": [1]}), json!({"a": []}), None);
    check_reset("a[1].n", json!({"a": [{}]}), json!({"a": [{}, {}]}), None);
    check_reset("a[1].n", json!({"a": [{}]}), json!({"a": [{}]}), None);
    check_reset("a[-1]", json!({"a": [1]}), json!({"a": [1]}), None);
    check_reset("[-1]", json!({"a": [1]}), json!({"a": [1]}), None);
}

#[test]
fn reset_of_elements_keeps_the_length() {
    check_reset(
        "a[0]",
        json!({"a": [1, 2]}),
        json!({"a": [3, 4]}),
        Some(json!({"a": [1, 4]})),
    );
    check_reset(
        "a[0].i",
        json!({"a": [{"i": 1}]}),
        json!({"a": [{"i": 2, "j": 3}, 4]}),
        Some(json!({"a": [{"i": 1, "j": 3}, 4]})),
    );
}

#[test]
fn reset_with_a_wildcard_at_the_end_copies_everything() {
    check_reset(
        "*",
        json!({"r": 1}),
        json!({"r": 2, "x": 3}),
        Some(json!({"r": 1})),
    );
    check_reset(
        "r.*",
        json!({"r": {"n": 1}}),
        json!({"r": {"m": 2}}),
        Some(json!({"r": {"n": 1}})),
    );
    check_reset(
        "r[*]",
        json!({"r": [1, 2]}),
        json!({"r": [3, 4]}),
        Some(json!({"r": [1, 2]})),
    );
    check_reset(
        "r.*",
        json!({"r": [1]}),
        json!({"r": {"n": 2}}),
        Some(json!({"r": {"n": 2}})),
    );
    check_reset(
        "r.*",
        json!({"r": {"n": 2}}),
        json!({"r": [1]}),
        Some(json!({"r": [1]})),
    );
    check_reset("r.*", json!({"r": {"n": 2}}), json!({"r": 1}), None);
    check_reset("r.*", json!({"r": [1]}), json!({"r": []}), None);
}

#[test]
fn reset_with_a_wildcard_resets_what_both_arrays_have_even_when_lengths_differ() {
    let mut new = map(json!({"r": [3, 4, 5]}));
    assert!(!path("r[*]").reset(&map(json!({"r": [1, 2]})), &mut new));
    assert_eq!(new, map(json!({"r": [1, 2, 5]})));
}

#[test]
fn reset_with_a_wildcard_on_the_way_visits_every_child() {
    check_reset(
        "*.n",
        json!({"r": {"n": 1}, "s": {"n": 2}}),
        json!({"r": {"n": 3}, "s": {}}),
        Some(json!({"r": {"n": 1}, "s": {"n": 2}})),
    );
    check_reset(
        "r[*].n",
        json!({"r": [{"n": 1}, {"n": 2}]}),
        json!({"r": [{"n": 3}, {"n": 4}]}),
        Some(json!({"r": [{"n": 1}, {"n": 2}]})),
    );
    check_reset("r.*.n", json!({"r": 1}), json!({"r": {"n": 2}}), None);
    check_reset("r.*.n", json!({"r": {"n": 1}}), json!({"r": 2}), None);
    check_reset(
        "r.*.n",
        json!({"r": {"x": {"n": 1}}}),
        json!({"r": {}}),
        None,
    );
    check_reset(
        "r.*[0]",
        json!({"r": {"x": [1]}}),
        json!({"r": {"x": []}}),
        None,
    );
    check_reset("r.*[0]", json!({"r": [1, 2]}), json!({"r": [3]}), None);
}

#[test]
fn reset_never_makes_a_secret_public() {
    check_reset(
        "r.s",
        json!({"r": {"$secret": {"s": 1}}}),
        json!({"r": {"s": 2}}),
        Some(json!({"r": {"s": {"$secret": 1}}})),
    );
    check_reset(
        "r.s",
        json!({"r": {"s": 1}}),
        json!({"r": {"$secret": {"s": 2}}}),
        Some(json!({"r": {"$secret": {"s": 1}}})),
    );
    check_reset(
        "r[0]",
        json!({"r": {"$secret": [1, 2]}}),
        json!({"r": [3, 4]}),
        Some(json!({"r": [{"$secret": 1}, 4]})),
    );
    check_reset(
        "r.*",
        json!({"r": {"$secret": {"s": 1}}}),
        json!({"r": {"t": 1}}),
        Some(json!({"r": {"s": {"$secret": 1}}})),
    );
    check_reset(
        "r.s",
        json!({"r": {"$secret": {"s": 1}}}),
        json!({"r": {"$secret": {"s": 2}}}),
        Some(json!({"r": {"$secret": {"s": 1}}})),
    );
}

fn any_segment() -> impl Strategy<Value = PathSegment> {
    prop_oneof![
        // A key that ends with a backslash has no quoted form in this grammar.
        any::<String>()
            .prop_filter("no quoted form", |key| !key.ends_with('\\'))
            .prop_map(PathSegment::Key),
        "[a-c*]".prop_map(PathSegment::Key),
        (-2..5_i64).prop_map(PathSegment::Index),
    ]
}

proptest! {
    #[test]
    fn reading_any_text_is_total(text in any::<String>()) {
        let _ = PropertyPath::parse(&text);
    }

    #[test]
    fn reading_text_made_of_the_grammars_own_characters_is_total(text in r#"[ab.\[\]"\\*0-9-]{0,12}"#) {
        if let Ok(path) = PropertyPath::parse(&text) {
            let _ = path.to_string();
        }
    }

    #[test]
    fn what_is_shown_reads_back(segments in prop::collection::vec(any_segment(), 0..5)) {
        let path = PropertyPath::new(segments);
        prop_assert_eq!(PropertyPath::parse(&path.to_string()), Ok(path));
    }

    #[test]
    fn reset_is_total_and_idempotent(
        segments in prop::collection::vec(any_segment(), 0..4),
        old in any_map(),
        mut new in any_map(),
    ) {
        let path = PropertyPath::new(segments);
        let first = path.reset(&old, &mut new);
        let once = new.clone();
        prop_assert_eq!(path.reset(&old, &mut new), first);
        // Compared as text: a value that is not a number differs from itself.
        prop_assert_eq!(format!("{:?}", new), format!("{:?}", once));
    }
}
