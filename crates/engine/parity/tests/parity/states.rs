//! States drawn at random: what one engine wrote, the other reads, and reads the same.
//!
//! Programs cannot bring about every state, so these are made up: each option of a resource in every
//! form that the format has for it. An import reads, judges and writes; an export reads what the
//! other one wrote. Only the official reader knows what it refuses.

use std::fs;

use serde_json::{Map, Value, json};

use nimbus_test_tools::{Tool, short_or_long};

use crate::case::{Case, typescript, up};
use crate::engine::Engine;
use crate::plan::{Draws, seed};
use crate::side::Side;
use crate::tools::Tools;

const SIGNATURE: &str = "4dabf18193072939515e22adb298388d";
const SECRET: &str = "1b47061264138c4ac30d75fd1eb44270";
const ASSET: &str = "c44067f5952c0a294b673a41bacd8c17";
const ARCHIVE: &str = "0def7320c3a5731c473e5ecbe6d01bc7";
const REFERENCE: &str = "5cf8f73096256a8f31e491e813e4eb8e";
const BYTES: &str = "803fd3297a5875dc03ca845dda5d2a98";
const FLOAT: &str = "8ad145fe-0d11-4827-bfd7-1abcbf086f5c";
/// What belongs to the version that the manifest names.
const MAGIC: &str = "7dff0d166258e7f1d265e8e044021ea087795d58a0c6415ab6fe8b7c790e447f";
const TEXT_HASH: &str = "2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae";

#[test]
fn a_state_that_one_engine_wrote_is_read_by_the_other() {
    let live = "states drawn at random";
    if Tool::PulumiCli.find_or_record_skip(live).is_none() {
        return;
    }
    let case = typescript("basics", vec![up(1)]);
    let folder = tempfile::TempDir::with_prefix("parity-states-").unwrap();
    let root = folder.path().canonicalize().unwrap();
    let Some(tools) = Tools::find(&case, &root) else {
        return;
    };
    let draws = &mut Draws::new(seed(3));
    for round in 0..short_or_long(2, 40) {
        let state = deployment(draws, 60);
        for engine in [Engine::Official, Engine::Embedded] {
            compare(
                &case,
                &root.join(format!("{round}-{engine:?}")),
                &tools,
                engine,
                &state,
            );
        }
    }
}

/// One engine takes the state in; both must find the same in what it wrote.
fn compare(case: &Case, folder: &std::path::Path, tools: &Tools, writer: Engine, state: &Value) {
    let side = Side::create(folder.to_owned(), case, tools);
    let file = side.root.join("state.json");
    fs::write(&file, state.to_string()).unwrap();
    writer.import_state(&file, &side, tools);
    let [mut written, mut read] =
        [writer, writer.other()].map(|engine| engine.export("dev", &side, tools));
    for export in [&mut written, &mut read] {
        // Each says who it is and when it was asked.
        export["deployment"]["manifest"] = Value::Null;
    }
    let pretty = |value: &Value| serde_json::to_string_pretty(value).unwrap();
    let (written, read) = (pretty(&written), pretty(&read));
    let diff = similar::TextDiff::from_lines(&written, &read);
    let diff = diff.unified_diff().context_radius(4).to_string();
    assert!(
        written == read,
        "{writer:?} wrote a state that {:?} reads as another\n{diff}",
        writer.other()
    );
}

/// An export with every field of the format, of this many resources.
pub(crate) fn deployment(draws: &mut Draws, count: usize) -> Value {
    let mut resources = vec![
        json!({"urn": urn("pulumi:pulumi:Stack", "basics-dev"), "custom": false, "type": "pulumi:pulumi:Stack"}),
        json!({
            "urn": urn("pulumi:providers:parity", "p"), "custom": true, "id": "0e1b1f06", "type": "pulumi:providers:parity",
            "inputs": {"version": "1.0.0", "__internal": {}}, "outputs": {"version": "1.0.0"},
        }),
    ];
    let mut urns = vec![];
    for number in 0..count {
        let name = *draws.pick(&["plain", "a b", "ünï", "slash/colon:", "quote\"s"]);
        let type_ = *draws.pick(&[
            "parity:index:Thing",
            "parity:mod/nested:Plain",
            "parity:index:Blind",
        ]);
        let own = urn(type_, &format!("{name}-{number}"));
        resources.push(resource(draws, &own, type_, &urns));
        urns.push(own);
    }
    let pending = ["creating", "updating", "deleting", "reading", "importing"].map(|kind| {
        let own = urn("parity:index:Thing", &format!("pending-{kind}"));
        json!({"type": kind, "resource": resource(draws, &own, "parity:index:Thing", &urns)})
    });
    json!({
        "version": 3,
        "deployment": {
            "manifest": {"time": "2026-01-01T00:00:00Z", "magic": MAGIC, "version": "v3.260.0"},
            "secrets_providers": {"type": "passphrase", "state": {"salt": crate::side::SALT}},
            "resources": resources,
            "pending_operations": pending,
            "metadata": {},
        },
    })
}

fn urn(type_: &str, name: &str) -> String {
    format!("urn:pulumi:dev::basics::{type_}::{name}")
}

/// Every field of a resource, each with some chance.
fn resource(draws: &mut Draws, own: &str, type_: &str, earlier: &[String]) -> Value {
    let mut fields = Map::new();
    fields.insert("urn".to_owned(), json!(own));
    fields.insert("type".to_owned(), json!(type_));
    fields.insert("custom".to_owned(), json!(true));
    fields.insert(
        "id".to_owned(),
        json!(draws.pick(&["i-1", "with space", "a/b:c", "ü"])),
    );
    let provider = format!("{}::0e1b1f06", urn("pulumi:providers:parity", "p"));
    fields.insert("provider".to_owned(), json!(provider));
    let paths = [
        &["label"][..],
        &["a.b[0].c", "tags[\"b c\"]"],
        &["*", "list[*].x", "[\"odd.key\"][0]", "a[\"quote\\\"d\"]"],
    ];
    let someone = |draws: &mut Draws| match earlier {
        [] => own.to_owned(),
        _ => draws.pick(earlier).clone(),
    };
    let mut candidates = vec![
        ("inputs", properties(draws)),
        ("outputs", properties(draws)),
        ("protect", json!(true)),
        ("taint", json!(true)),
        ("initErrors", json!(["one <b>", "two & \u{2028}"])),
        ("additionalSecretOutputs", json!(["shout", "odd key"])),
        ("aliases", json!([urn(type_, "before"), urn(type_, "öld")])),
        ("importID", json!("i-0")),
        ("retainOnDelete", json!(true)),
        ("created", json!("2026-02-03T04:05:06.123456789Z")),
        ("modified", json!("2026-02-03T04:05:06Z")),
        ("sourcePosition", json!("project:///index.ts#12,3")),
        (
            "stackTrace",
            json!([{"sourcePosition": "project:///a.ts#1,2"}, {}]),
        ),
        ("ignoreChanges", json!(draws.pick(&paths))),
        ("hideDiff", json!(draws.pick(&paths))),
        ("replaceOnChanges", json!(draws.pick(&paths))),
        // No secret inside: the official engine, at 3.258, reads those as null in its own files too.
        ("replacementTrigger", value(draws, 0)),
        ("refreshBeforeUpdate", json!(true)),
        (
            "resourceHooks",
            json!({"BeforeCreate": ["a", "b"], "OnError": ["c"], "AfterDelete": []}),
        ),
        (
            "customTimeouts",
            draws
                .pick(&[
                    json!({"create": 300}),
                    json!({"update": 0.5, "delete": 3600, "read": 1e9}),
                    json!({}),
                ])
                .clone(),
        ),
    ];
    if !earlier.is_empty() {
        let known = [(); 5].map(|()| someone(draws));
        let [one, two, three, four, five] = known;
        candidates.extend([
            ("dependencies", json!([one, two])),
            (
                "propertyDependencies",
                json!({"label": [three], "none": [], "odd key": null}),
            ),
            ("deletedWith", json!(four)),
            ("replaceWith", json!([five])),
        ]);
    }
    for (key, value) in candidates {
        if draws.happens(40) {
            fields.insert(key.to_owned(), value);
        }
    }
    Value::Object(fields)
}

const KEYS: &[&str] = &[
    "label", "", "a b", "x.y", "__type", "ünï", "<html>&", "\u{2028}", "0", "quote\"d", "tab\t",
];

fn properties(draws: &mut Draws) -> Value {
    let count = draws.below(5);
    let entries = (0..count).map(|_| ((*draws.pick(KEYS)).to_owned(), value(draws, 3)));
    Value::Object(entries.collect())
}

fn value(draws: &mut Draws, depth: usize) -> Value {
    let leaves = if depth == 0 { 11 } else { 16 };
    match draws.below(leaves) {
        0 => Value::Null,
        1 => json!(draws.happens(50)),
        2 => json!(draws.pick(&[0, -1, 12, 9_007_199_254_740_991_i64, -9_007_199_254_740_991])),
        3 => json!(draws.pick(&[0.5, -2.17, 1e21, 1e-7, 123_456_789.125, 1.797e308])),
        4 => json!(draws.pick(&[
            "",
            "text",
            "<b>&</b>",
            "\u{2028}\u{2029}",
            "\u{0}\u{7f}",
            "😀",
            "line\nbreak"
        ])),
        5 => json!(draws.pick(&[
            "04da6b54-80e4-46f7-96ec-b56ff0331ba9",
            "null",
            "{}",
            "v1:abc"
        ])),
        6 => json!({SIGNATURE: ASSET, "hash": TEXT_HASH, "text": "foo"}),
        7 => json!({SIGNATURE: ASSET, "hash": TEXT_HASH, "path": "./some/file"}),
        8 => {
            json!({SIGNATURE: REFERENCE, "urn": urn("parity:index:Thing", "elsewhere"), "id": draws.pick(&["", "i-1"]), "packageVersion": "1.0.0"})
        }
        // Bytes that are no text, and numbers that JSON does not have.
        9 => json!({SIGNATURE: BYTES, "value": draws.pick(&["AGhlbGxvIID+/w==", "/w=="])}),
        10 => {
            let bits = draws.pick(&["7ff0000000000000", "fff0000000000000", "7ff8000000000001"]);
            json!({SIGNATURE: FLOAT, "value": bits})
        }
        11 => {
            let inside = value(draws, depth - 1);
            json!({SIGNATURE: SECRET, "plaintext": inside.to_string()})
        }
        12 => {
            let asset = json!({SIGNATURE: ASSET, "hash": TEXT_HASH, "text": "foo"});
            json!({SIGNATURE: ARCHIVE, "hash": TEXT_HASH, "assets": {"a.txt": asset}})
        }
        13 | 14 => Value::Array(
            (0..draws.below(4))
                .map(|_| value(draws, depth - 1))
                .collect(),
        ),
        _ => properties_below(draws, depth - 1),
    }
}

fn properties_below(draws: &mut Draws, depth: usize) -> Value {
    let count = draws.below(4);
    let entries = (0..count).map(|_| ((*draws.pick(KEYS)).to_owned(), value(draws, depth)));
    Value::Object(entries.collect())
}
