//! What well-formed files mean.

use nimbus_document::{Document, DocumentFormat, DocumentLimits, NodeKind, Span};
use proptest::prelude::*;
use serde_json::{Value, json};

#[track_caller]
fn yaml(text: &str) -> Value {
    let document = Document::parse("t.yaml", text).expect("valid YAML");
    document.to_json(document.root()).expect("finite numbers")
}

#[test]
fn collections_scalars_and_quotes() {
    assert_eq!(yaml(""), Value::Null);
    assert_eq!(yaml("# only a comment\n"), Value::Null);
    assert_eq!(yaml("---\n...\n"), Value::Null);
    assert_eq!(yaml("\u{feff}a: 1\n"), json!({"a": 1}));
    assert_eq!(yaml("a: 1\r\nb: 2\r\n"), json!({"a": 1, "b": 2}));
    assert_eq!(
        yaml("a: yes\nb: '1'\nc: \"x\\ty\"\nd: !!str 5\ne: !Ref x\nf: 1.5\ng: ~\n"),
        json!({"a": "yes", "b": "1", "c": "x\ty", "d": "5", "e": "x", "f": 1.5, "g": null})
    );
    assert_eq!(
        yaml("a: |\n  one\n  two\nb: >-\n  one\n  two\n"),
        json!({"a": "one\ntwo\n", "b": "one two"})
    );
    assert_eq!(
        yaml("- a\n- - b\n  - {c: [d]}\n"),
        json!(["a", ["b", {"c": ["d"]}]])
    );
    assert_eq!(
        yaml("1: a\ntrue: b\naws:region: c\n"),
        json!({"1": "a", "true": "b", "aws:region": "c"})
    );
}

#[test]
fn tags_decide_where_they_can() {
    assert_eq!(
        yaml("a: ! 5\nb: !foo 5\nc: !!str\nd: !!int \"5\"\n"),
        json!({"a": 5, "b": "5", "c": "", "d": 5})
    );
    assert_eq!(
        yaml("a: !!float 5\nb: !!map {x: 1}\nc: !x [1]\n"),
        json!({"a": 5.0, "b": {"x": 1}, "c": [1]})
    );
}

#[test]
fn aliases_are_copies_and_merges_do_not_override() {
    assert_eq!(
        yaml("base: &b {x: 1, y: 2}\nuse:\n  <<: *b\n  y: 3\n"),
        json!({"base": {"x": 1, "y": 2}, "use": {"x": 1, "y": 3}})
    );
    assert_eq!(
        yaml("a: &a {x: 1}\nb: &b {x: 2, y: 2}\nc: {<<: [*a, *b]}\n")["c"],
        json!({"x": 1, "y": 2}),
        "the first of several wins"
    );
    assert_eq!(
        yaml("k: &k name\n*k : v\n"),
        json!({"k": "name", "name": "v"})
    );
    assert_eq!(yaml("\"<<\": text\n"), json!({"<<": "text"}));
    assert_eq!(
        yaml("a: &x 1\nb: &x 2\nc: *x\n")["c"],
        json!(2),
        "the nearest anchor counts"
    );
}

#[test]
fn every_value_knows_its_place_and_spelling() {
    let text = "name: \"web\"\ndeep:\n  port: 0x50\n  list: [a, bé, c]\nend: x\n";
    let document = Document::parse("t.yaml", text).unwrap();
    let root = document.root();
    let spelled = |span: Span| document.source(span);
    assert_eq!(spelled(root.get("name").unwrap().span), "\"web\"");
    let deep = root.get("deep").unwrap();
    assert_eq!(spelled(deep.get("port").unwrap().span), "0x50");
    assert_eq!(deep.get("port").unwrap().as_u64(), Some(80));
    assert_eq!(spelled(deep.get("list").unwrap().span), "[a, bé, c]");
    assert_eq!(spelled(deep.span), "port: 0x50\n  list: [a, bé, c]");
    assert_eq!(spelled(root.get("end").unwrap().span), "x");
    let position = document.position(root.get("end").unwrap().span);
    assert_eq!((position.line, position.column), (5, 6));
    let key = root.as_mapping().unwrap().entry("deep").unwrap().key_span;
    assert_eq!(spelled(key), "deep");
    assert_eq!(
        document
            .view()
            .required("deep")
            .unwrap()
            .required("port")
            .unwrap()
            .scalar_text()
            .unwrap(),
        "0x50"
    );
}

#[test]
fn a_byte_order_mark_does_not_shift_places() {
    let document = Document::parse("t.yaml", "\u{feff}a: b\n").unwrap();
    assert_eq!(document.source(document.root().get("a").unwrap().span), "b");
    let document = Document::parse("t.json", "\u{feff}{\"a\": 7}").unwrap();
    assert_eq!(document.source(document.root().get("a").unwrap().span), "7");
}

#[test]
fn keys_keep_their_order() {
    for (name, text) in [
        ("t.yaml", "z: 1\na: 2\nm: 3\n"),
        ("t.json", r#"{"z":1,"a":2,"m":3}"#),
    ] {
        let document = Document::parse(name, text).unwrap();
        let keys: Vec<_> = document.root().as_mapping().unwrap().keys().collect();
        assert_eq!(keys, ["z", "a", "m"], "{name}");
    }
}

#[test]
fn infinity_is_a_number_but_not_json() {
    let document = Document::parse("t.yaml", "a: .inf\n").unwrap();
    assert_eq!(
        document.root().get("a").unwrap().as_f64(),
        Some(f64::INFINITY)
    );
    assert!(document.to_json(document.root()).is_err());
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        proptest::num::f64::NORMAL.prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
        "(yes|no|null|~|1_0|0x1|: |- |#|\\*a|&a|!t|<<|'|\"|\n|\t| )*".prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 64, 8, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..8).prop_map(Value::from),
            prop::collection::btree_map(".{0,8}", inner, 0..8)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// Every place must be inside its parent and on character borders.
fn check_spans(document: &Document, node: &nimbus_document::Node, outer: Span) {
    let Span { start, end } = node.span;
    assert!(
        outer.start <= start && start <= end && end <= outer.end,
        "{node:?} in {outer:?}"
    );
    match &node.kind {
        NodeKind::Sequence(items) => {
            items
                .iter()
                .for_each(|item| check_spans(document, item, node.span));
        }
        NodeKind::Mapping(mapping) => mapping.iter().for_each(|(_, entry)| {
            check_spans(document, &entry.value, node.span);
            assert!(!document.source(entry.key_span).is_empty());
        }),
        _ => assert!(start == end || !document.source(node.span).is_empty()),
    }
}

proptest! {
    #[test]
    fn json_reads_like_serde_json(value in any_json()) {
        for text in [value.to_string(), serde_json::to_string_pretty(&value).unwrap()] {
            let document = Document::parse("t.json", &text);
            // DEL is legal JSON but refused here; serde_json does not escape it.
            if text.contains('\u{7f}') {
                prop_assert!(document.is_err());
                continue;
            }
            let document = document.unwrap();
            prop_assert_eq!(document.to_json(document.root()).unwrap(), value.clone());
            check_spans(&document, document.root(), Span::new(0, text.len()));
        }
    }

    #[test]
    fn any_text_gives_a_value_or_an_error_with_a_place(text in "[ -~\n\té\u{2028}]{0,60}") {
        for format in [DocumentFormat::Yaml, DocumentFormat::Json] {
            match Document::parse_with("t", &text, format, &DocumentLimits::default()) {
                Ok(document) => {
                    let _ = document.to_json(document.root());
                }
                Err(error) => {
                    let span = &error.spans()[0];
                    prop_assert!(text.get(span.offset..span.offset + span.length).is_some());
                }
            }
        }
    }

    #[test]
    fn yaml_like_text_never_breaks_the_reader(
        text in "(a|b|: |:|- |\n|  |\\[|\\]|\\{|\\}|,|&a |\\*a|<<: |\"|'|\\||>|#|!!int |---|\\.\\.\\.|\\?|1|~|%|@|\t){0,40}"
    ) {
        match Document::parse("t.yaml", &text) {
            Ok(document) => {
                let _ = document.to_json(document.root());
            }
            Err(error) => prop_assert!(!error.message().is_empty()),
        }
    }
}
