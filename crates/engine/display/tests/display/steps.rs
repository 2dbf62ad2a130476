//! How single steps look in detail.

use crate::support::{array, detailed, map, marked, object, plain, secret, state, step, urn};
use insta::assert_snapshot;
use nimbus_engine_display::{Basis, StepDetail, step_lines};
use nimbus_engine_model::{
    Archive, Asset, PropertyValue, ResourceReference, ResourceState, StepOp,
};
use nimbus_engine_ports::{DiffKind, StepEvent};

fn short(step: &StepEvent) -> String {
    plain(&step_lines(step, 0, Basis::Program, StepDetail::Short))
}

fn bucket(inputs: nimbus_engine_model::PropertyMap) -> ResourceState {
    ResourceState {
        id: Some("bucket-1".into()),
        ..state("aws:s3/bucket:Bucket", "logs", inputs)
    }
}

fn text_asset(hash: &str, text: &str) -> PropertyValue {
    PropertyValue::Asset(Asset::Text {
        hash: hash.into(),
        text: text.into(),
    })
}

#[test]
fn a_create_shows_what_is_wanted() {
    let new = state(
        "aws:s3/bucket:Bucket",
        "logs",
        map([
            ("acl", "private".into()),
            ("__defaults", array([])),
            ("count", 3.0.into()),
            ("empty", object([])),
            ("nothing", PropertyValue::Null),
            ("password", secret("hunter2")),
            ("region", PropertyValue::Computed),
            (
                "tags",
                object([("env", "dev".into()), ("owner", "me".into())]),
            ),
            (
                "rules",
                array([object([("days", 7.0.into())]), true.into()]),
            ),
            ("policy", r#"{"Version":"2012","Statement":[1]}"#.into()),
            ("script", "#!/bin/sh\necho hi\n".into()),
            ("blob", PropertyValue::Bytes(vec![0xff, 0xfe])),
            (
                "file",
                PropertyValue::Asset(Asset::Path {
                    hash: "abcdef0123".into(),
                    path: "a.txt".into(),
                }),
            ),
            (
                "site",
                PropertyValue::Archive(Archive::Assets {
                    hash: "0123456789".into(),
                    assets: [("index.html".to_owned(), text_asset("feedbeef00", "x"))].into(),
                }),
            ),
            (
                "vpc",
                PropertyValue::ResourceReference(ResourceReference {
                    urn: urn("aws:ec2/vpc:Vpc", "main"),
                    id: Some(Box::new(PropertyValue::Computed)),
                    package_version: String::new(),
                }),
            ),
        ]),
    );
    assert_snapshot!(short(&step(StepOp::Create, None, Some(new))));
}

#[test]
fn an_update_shows_only_what_differs_at_every_depth() {
    let old = bucket(map([
        ("same", "x".into()),
        ("acl", "private".into()),
        ("gone", 1.0.into()),
        (
            "tags",
            object([("env", "dev".into()), ("kept", 1.0.into())]),
        ),
        (
            "rules",
            array([
                object([("days", 7.0.into()), ("kept", 1.0.into())]),
                "b".into(),
            ]),
        ),
        ("kind", "text".into()),
        ("password", secret("one")),
        ("token", "plain".into()),
    ]));
    let new = bucket(map([
        ("same", "x".into()),
        ("acl", "public-read".into()),
        ("added", object([("a", 1.0.into())])),
        (
            "tags",
            object([
                ("env", "prod".into()),
                ("kept", 1.0.into()),
                ("new", true.into()),
            ]),
        ),
        (
            "rules",
            array([
                object([("days", 9.0.into()), ("kept", 1.0.into())]),
                "b".into(),
                "c".into(),
            ]),
        ),
        ("kind", object([("nested", "text".into())])),
        ("password", secret("two")),
        ("token", secret("plain")),
    ]));
    assert_snapshot!(short(&step(StepOp::Update, Some(old), Some(new))));
}

#[test]
fn texts_are_compared_line_by_line_and_json_by_structure() {
    let long = |middle: &str| {
        let lines: Vec<String> = (1..=12)
            .map(|n| {
                if n == 6 {
                    middle.to_owned()
                } else {
                    format!("line {n}")
                }
            })
            .collect();
        PropertyValue::from(lines.join("\n"))
    };
    let old = bucket(map([
        ("json", r#"{"a":1,"b":{"c":[1,2]}}"#.into()),
        ("text", long("before")),
        ("asset", text_asset("1111111aaa", "one\ntwo\n")),
    ]));
    let new = bucket(map([
        ("json", r#"{"a":1,"b":{"c":[1,3]}}"#.into()),
        ("text", long("after")),
        ("asset", text_asset("2222222bbb", "one\nthree\n")),
    ]));
    assert_snapshot!(short(&step(StepOp::Update, Some(old), Some(new))));
}

#[test]
fn a_provider_s_paths_decide_what_is_shown_and_what_forces_replacement() {
    let old = bucket(map([
        ("name", "a".into()),
        ("zones", array(["x".into(), "y".into()])),
        (
            "options",
            object([("size", 1.0.into()), ("other", 1.0.into())]),
        ),
        ("login", secret(object([("user", "root".into())]))),
        ("noise", 1.0.into()),
    ]));
    let new = bucket(map([
        ("name", "b".into()),
        ("zones", array(["x".into()])),
        (
            "options",
            object([("size", PropertyValue::Computed), ("other", 2.0.into())]),
        ),
        ("login", secret(object([("user", "admin".into())]))),
        ("noise", 2.0.into()),
    ]));
    let mut event = step(StepOp::Replace, Some(old), Some(new));
    event.replace_keys = vec!["name".into()];
    event.detailed_diff = detailed([
        ("name", DiffKind::UpdateReplace),
        ("zones[1]", DiffKind::Delete),
        ("options.size", DiffKind::Update),
        ("login.user", DiffKind::Update),
    ]);
    let text = short(&event);
    assert!(!text.contains("root") && !text.contains("admin"), "{text}");
    assert_snapshot!(text);
}

#[test]
fn replace_keys_mark_the_properties_of_a_structural_diff() {
    let old = bucket(map([("name", "a".into()), ("size", 1.0.into())]));
    let new = bucket(map([("name", "b".into()), ("size", 2.0.into())]));
    let mut event = step(StepOp::Replace, Some(old), Some(new));
    event.replace_keys = vec!["name".into()];
    let lines = step_lines(&event, 1, Basis::Program, StepDetail::Short);
    assert_snapshot!(marked(&lines));
}

#[test]
fn long_texts_are_cut_unless_everything_is_asked_for() {
    let new = bucket(map([
        ("line", "x".repeat(400).into()),
        ("block", "row\n".repeat(40).into()),
    ]));
    let event = step(StepOp::Create, None, Some(new));
    assert_snapshot!(short(&event));
    let full = plain(&step_lines(&event, 0, Basis::Program, StepDetail::Full));
    assert!(full.contains(&"x".repeat(400)));
    assert_eq!(full.matches("row").count(), 40);
}

#[test]
fn a_delete_names_the_object_and_says_when_it_stays_behind() {
    let mut old = bucket(map([("acl", "private".into())]));
    old.retain_on_delete = true;
    old.protect = true;
    let event = step(StepOp::Delete, Some(old), None);
    assert_snapshot!(short(&event));
    let full = plain(&step_lines(&event, 0, Basis::Program, StepDetail::Full));
    assert!(full.contains("- acl: \"private\""), "{full}");
}

#[test]
fn a_changed_provider_is_named_and_a_default_one_is_not() {
    let provider = |name: &str, id: &str| format!("{}::{id}", urn("pulumi:providers:aws", name));
    let mut old = bucket(map([]));
    old.provider = provider("west", "1");
    let mut new = bucket(map([]));
    new.provider = provider("east", nimbus_engine_model::UNKNOWN_ID);
    assert_snapshot!(short(&step(StepOp::Update, Some(old), Some(new.clone()))));
    new.provider = provider("default_7_0_0", "1");
    let text = short(&step(StepOp::Create, None, Some(new)));
    assert!(!text.contains("provider"), "{text}");
}

#[test]
fn a_refresh_shows_what_was_found_in_the_outputs() {
    let mut old = bucket(map([("size", 1.0.into())]));
    old.outputs = map([("size", 1.0.into()), ("arn", "a".into())]);
    let mut new = old.clone();
    new.outputs = map([("size", 5.0.into()), ("arn", "a".into())]);
    let event = step(StepOp::Update, Some(old), Some(new));
    let lines = step_lines(&event, 0, Basis::Refresh, StepDetail::Short);
    assert_snapshot!(plain(&lines));
}

#[test]
fn escape_codes_in_values_stay_text() {
    let new = bucket(map([
        ("one", "\u{1b}[31mred".into()),
        ("two", "a\n\u{1b}]0;evil\u{7}b\n".into()),
        ("\u{1b}[1mkey", 1.0.into()),
    ]));
    let text = short(&step(StepOp::Create, None, Some(new)));
    assert!(
        !text.contains('\u{1b}') && !text.contains('\u{7}'),
        "{text:?}"
    );
}

#[test]
fn differences_that_the_program_hides_are_counted_only() {
    let old = bucket(map([("noise", 1.0.into()), ("size", 1.0.into())]));
    let mut new = bucket(map([("noise", 2.0.into()), ("size", 2.0.into())]));
    new.hide_diff = vec!["noise".parse().unwrap()];
    let text = short(&step(StepOp::Update, Some(old), Some(new)));
    assert!(
        text.contains("~ size: 1 => 2") && !text.contains("noise"),
        "{text}"
    );
    assert!(text.contains("(1 differences hidden)"), "{text}");
}
