//! Files with one value of a wrong kind: what the official reader refuses, Nimbus refuses to write.
//!
//! Before a state replaces the last one, `check_checkpoint` decodes it as the official command line
//! would. Here both judge the same files. What passes and cannot be loaded by the other engine is the
//! worst that could be written. It may refuse more, as long as Nimbus never writes that.

use std::collections::BTreeMap;
use std::fs;

use nimbus_engine_model::format::check_checkpoint;
use nimbus_test_tools::{Tool, short_or_long};
use serde_json::{Value, json};

use crate::case::{typescript, up};
use crate::engine::Engine;
use crate::plan::{Draws, seed};
use crate::side::Side;
use crate::states::deployment;
use crate::tools::Tools;

#[test]
fn what_the_official_reader_refuses_is_refused_before_it_is_written() {
    if Tool::PulumiCli.find_or_record_skip("damaged states").is_none() {
        return;
    }
    let case = typescript("basics", vec![up(1)]);
    let folder = tempfile::TempDir::with_prefix("parity-damaged-").unwrap();
    let root = folder.path().canonicalize().unwrap();
    let Some(tools) = Tools::find(&case, &root) else {
        return;
    };
    let side = Side::create(root.join("side"), &case, &tools);
    let draws = &mut Draws::new(seed(5));
    let mut differences = Vec::new();
    for _ in 0..short_or_long(1, 5) {
        let state = root.join("state.json");
        fs::write(&state, deployment(draws, 12).to_string()).unwrap();
        Engine::Embedded.import_state(&state, &side, &tools);
        let good: Value = serde_json::from_slice(&side.state_file("dev")).unwrap();
        let places = places(&good);
        for _ in 0..short_or_long(12, 120) {
            let (place, damaged) = damage(draws, &good, &places);
            let bytes = damaged.to_string().into_bytes();
            fs::write(side.state_path("dev"), &bytes).unwrap();
            if let Some(refusal) = Engine::official_refusal(&side, &tools)
                && check_checkpoint(&bytes).is_ok()
            {
                let found = damaged.pointer(&place).unwrap_or(&Value::Null);
                differences.push(format!("{place} as {found}: {refusal}"));
            }
        }
        fs::write(side.state_path("dev"), good.to_string()).unwrap();
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

/// Where there are values, by the kind of place: every field is as likely as any other, however
/// often it occurs.
fn places(file: &Value) -> Vec<Vec<String>> {
    let mut kinds: BTreeMap<String, Vec<String>> = BTreeMap::new();
    collect(file, "", "", &mut kinds);
    kinds.into_values().collect()
}

fn collect(value: &Value, pointer: &str, kind: &str, kinds: &mut BTreeMap<String, Vec<String>>) {
    let mut below = |key: &str, shown: &str, value: &Value| {
        let key = key.replace('~', "~0").replace('/', "~1");
        let (pointer, kind) = (format!("{pointer}/{key}"), format!("{kind}/{shown}"));
        let known = kinds.entry(kind.clone()).or_default();
        known.push(pointer.clone());
        collect(value, &pointer, &kind, kinds);
    };
    match value {
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                below(&index.to_string(), "#", item);
            }
        }
        Value::Object(entries) => {
            // Properties have names of their own, and one is like the other.
            let is_free = ["/inputs", "/outputs"]
                .iter()
                .any(|part| kind.contains(part));
            for (key, value) in entries {
                let is_sign = entries.contains_key("4dabf18193072939515e22adb298388d");
                below(key, if is_free && !is_sign { "*" } else { key }, value);
            }
        }
        _ => {}
    }
}

/// The file with another value in one place, and which.
fn damage(draws: &mut Draws, good: &Value, places: &[Vec<String>]) -> (String, Value) {
    let alike = draws.pick(places);
    let place = draws.pick(alike).clone();
    let instead = [
        Value::Null,
        json!(true),
        json!(7),
        json!("a b["),
        json!(""),
        json!([]),
        json!(["a"]),
        json!([["a"]]),
        json!([{}]),
        json!({}),
        json!({"a": "b"}),
        json!({"a": 1}),
    ];
    // Whether something can be decrypted is not a question of its form.
    let is_closed = |value: &Value| value.is_string() && place.ends_with("/ciphertext");
    let fitting: Vec<_> = instead.iter().filter(|value| !is_closed(value)).collect();
    let mut file = good.clone();
    let at = file.pointer_mut(&place).expect("it was found there");
    *at = (*draws.pick(&fitting)).clone();
    (place, file)
}
