//! A plugin that dies after it made an object and before it told anybody: the object is found again by the
//! token that it was made with. The official engine leaves that to people, so nothing is compared here.

use std::fs;

use crate::case::{Case, Step, destroy, refresh, typescript, up, world};
use crate::engine::{Engine, Told};
use crate::side::Side;
use crate::tools::Tools;

#[test]
fn an_object_of_a_plugin_that_died_is_found_by_its_token() {
    let case: Case = typescript("plugin-ledger", vec![up(1)]).needs_plugin("tally", "0.1.0");
    let folder = tempfile::TempDir::with_prefix("parity-lookup-").unwrap();
    let root = folder.path().canonicalize().unwrap();
    let Some(tools) = Tools::find(&case, &root) else {
        return;
    };
    let side = Side::create(root.join("side"), &case, &tools);
    side.set_version(1);
    let run = |step: Step| -> Told {
        step.before.iter().for_each(|change| side.disturb(change));
        Engine::Embedded.run(&step, &side, &tools)
    };
    let ledgers = || -> Vec<_> {
        let found = fs::read_dir(side.world().join("ledgers"))
            .into_iter()
            .flatten();
        found.map(|entry| entry.unwrap().file_name()).collect()
    };

    let died = run(up(1).after(world("dies", "once")));
    assert!(!died.succeeded, "{}", died.output);
    let made = ledgers();
    assert_eq!(made.len(), 1, "{}", died.output);
    let refused = run(up(1));
    assert!(!refused.succeeded, "{}", refused.output);
    assert!(refused.output.contains("NIM-0602"), "{}", refused.output);

    let looked = run(refresh(1));
    assert!(looked.succeeded, "{}", looked.output);
    assert!(
        looked.output.contains("found as ledger-"),
        "{}",
        looked.output
    );
    let again = run(up(1));
    assert!(again.succeeded, "{}", again.output);
    assert_eq!(ledgers(), made, "it was not made twice");
    let gone = run(destroy(1));
    assert!(gone.succeeded, "{}", gone.output);
    assert!(ledgers().is_empty());
}
