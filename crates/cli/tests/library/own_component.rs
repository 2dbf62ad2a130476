//! A component of one's own beside the sixteen, by the steps that docs/library.md tells.

use std::collections::BTreeSet;
use std::fs;

use nimbus_test_tools::{Tool, tool_or_skip};

use crate::place::{LibrarySite, QUICK};
use crate::steps::Statuses;

const NEW: &str = "D2LIB";

#[test]
fn a_table_a_cache_and_pages_become_part_of_a_deployment() {
    let library = tool_or_skip!(Tool::Library);
    let place = LibrarySite::new(&library, "minimal");
    let words = "Table, cache and pages of the shop";
    place.ok(&["new-stack", "shop-data", "--description", words]);
    for (from, to) in [
        ("index.ts", "stacks/shop-data/src/index.ts"),
        ("template.yaml", "tools/templates/config/shop-data.yaml"),
    ] {
        let example = place.path("cloud/stacks/shared/example").join(from);
        fs::copy(example, place.path("cloud").join(to)).unwrap();
    }
    for unused in ["component-example.ts", "config.ts", "outputs.ts"] {
        fs::remove_file(place.path("cloud/stacks/shop-data/src").join(unused)).unwrap();
    }
    place.ok(&["update-template", "minimal", "--enable-stack", "shop-data"]);
    let init = [
        "init",
        NEW,
        "--template",
        "minimal",
        "--org",
        "Example",
        "--project",
        "shop",
        "--domain",
        "shop.example.com",
        "--account-dev",
        "111111111111",
    ];
    place.ok(&init);
    place.ok(&["validate", NEW]);
    let run = |command: &str, more: &[&str]| {
        let usual = [command, NEW, "--environment", "dev", "--rehearse", "--json"];
        Statuses::read(&place.ok(&[&usual[..], more].concat()))
    };
    let held = [QUICK, &["--policy-pack", "cloud/policies/baseline"]].concat();
    let all = BTreeSet::from(["dns", "network", "security", "shop-data"]);
    assert_eq!(run("deploy", &held).with("succeeded"), all);
    assert_eq!(run("destroy", &["--yes"]).with("succeeded"), all);
}
