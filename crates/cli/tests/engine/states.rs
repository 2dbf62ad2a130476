//! `nimbus state`, on states that were never deployed: no program is needed for any of it.

use std::fs;

use serde_json::{Value, json};

use crate::support::Site;

const PROVIDER: &str = "urn:pulumi:dev::notes::pulumi:providers:pkg::default";

fn urn(name: &str) -> String {
    format!("urn:pulumi:dev::notes::pkg:index:Note::{name}")
}

fn note(name: &str, text: &str) -> Value {
    json!({
        "urn": urn(name),
        "custom": true,
        "id": format!("{name}-1"),
        "type": "pkg:index:Note",
        "inputs": {"text": text},
        "outputs": {"text": text, "length": text.len()},
        "provider": format!("{PROVIDER}::p-1"),
    })
}

/// A state in the official export form.
fn state(resources: &[Value]) -> String {
    let mut all = vec![json!({
        "urn": PROVIDER, "custom": true, "id": "p-1", "type": "pulumi:providers:pkg",
    })];
    all.extend_from_slice(resources);
    json!({
        "version": 3,
        "deployment": {
            "manifest": {
                "time": "2026-01-01T00:00:00Z",
                "magic": "",
                "version": "",
            },
            "resources": all,
        },
    })
    .to_string()
}

/// Imports a state whatever is wrong with it.
fn given(resources: &[Value]) -> Site {
    let site = Site::new();
    site.write("state.json", &state(resources));
    site.state(&["import", "--file", "../state.json", "--yes", "--force"])
        .ok();
    site
}

#[test]
fn resources_are_listed_and_shown_without_a_passphrase() {
    let site = given(&[note("a", "one"), note("b", "two")]);
    let stacks = site.state(&["ls", "--json"]).ok().json();
    assert_eq!(stacks["stacks"], json!(["organization/notes/dev"]));
    let listed = site.state(&["ls", "--stack", "dev"]).ok();
    assert!(
        listed.stdout.contains(&format!("{}  a-1", urn("a"))),
        "{}",
        listed.stdout
    );
    let shown = site.state(&["show", "a", "--json"]).ok().json();
    assert_eq!(shown["id"], "a-1");
    assert_eq!(shown["outputs"], json!({"length": 3, "text": "one"}));
    let text = site.state(&["show", &urn("b")]).ok();
    assert!(text.stdout.contains("\"text\": \"two\""), "{}", text.stdout);
    let missing = site.state(&["show", "nobody"]).failed(3);
    assert!(missing.stderr.contains("NIM-0609"), "{}", missing.stderr);
}

#[test]
fn an_export_comes_back_as_the_same_state() {
    let site = given(&[note("a", "one")]);
    let first = site.state(&["export"]).ok().stdout;
    site.write("first.json", &first);
    site.state(&["import", "--file", "../first.json", "--yes"])
        .ok();
    let second = site.state(&["export"]).ok().stdout;
    assert_eq!(first, second);
    site.state(&["export", "--file", "../copy.json"]).ok();
    assert_eq!(site.read("copy.json"), first);

    // Nobody is there to agree to a change, and nonsense is refused.
    site.write("other.json", &state(&[note("b", "two")]));
    let asked = site.state(&["import", "--file", "../other.json"]).failed(6);
    assert!(
        asked.stdout.contains(&format!("- {}", urn("a"))),
        "{}",
        asked.stdout
    );
    assert!(
        asked.stdout.contains(&format!("+ {}", urn("b"))),
        "{}",
        asked.stdout
    );
    site.write("nonsense.json", "{\"version\":");
    site.state(&["import", "--file", "../nonsense.json", "--yes"])
        .failed(2);
    assert_eq!(site.state(&["export"]).ok().stdout, first);
}

#[test]
fn versions_can_be_listed_compared_and_exported() {
    let site = given(&[note("a", "one")]);
    site.write(
        "next.json",
        &state(&[note("a", "changed"), note("b", "two")]),
    );
    site.state(&["import", "--file", "../next.json", "--yes", "--force"])
        .ok();
    let history = site.state(&["history", "--json"]).ok().json();
    assert_eq!(history["operations"].as_array().unwrap().len(), 2);
    let diff = site.state(&["diff"]).ok();
    assert!(
        diff.stdout.contains("~ text: \"one\" => \"changed\""),
        "{}",
        diff.stdout
    );
    assert!(
        diff.stdout.contains(&format!("+ {}", urn("b"))),
        "{}",
        diff.stdout
    );
    let same = site.state(&["diff", "2", "current"]).ok();
    assert_eq!(same.stdout, "Versions 2 and current record the same\n");
    let first = site.state(&["export", "--version", "1"]).ok().json();
    assert_eq!(
        first["deployment"]["resources"].as_array().unwrap().len(),
        2
    );
    let missing = site.state(&["diff", "7"]).failed(3);
    assert!(missing.stderr.contains("NIM-0610"), "{}", missing.stderr);
}

#[test]
fn a_broken_state_is_refused_shown_and_mended_on_a_copy() {
    let mut dependant = note("b", "two");
    dependant["dependencies"] = json!([urn("a")]);
    // Dependants before what they depend on.
    let site = given(&[dependant, note("a", "one")]);
    let listed = site.state(&["ls", "--stack", "dev"]).ok();
    assert!(listed.stdout.contains("broken: "), "{}", listed.stdout);
    site.program(&["refresh", "--yes"]).failed(6);

    let before = fs::read(site.path("backend/.pulumi/stacks/notes/dev.json")).unwrap();
    let shown = site.state(&["repair"]).failed(6);
    assert!(
        shown.stdout.contains("was moved before"),
        "{}",
        shown.stdout
    );
    assert!(shown.stdout.contains("--write accepts"), "{}", shown.stdout);
    let after = fs::read(site.path("backend/.pulumi/stacks/notes/dev.json")).unwrap();
    assert_eq!(before, after, "the state itself was not touched");

    site.state(&["repair", "--write"]).failed(6);
    let written = site
        .state(&["repair", "--write", "--yes", "--json"])
        .ok()
        .json();
    assert_eq!(written["written"], true);
    let sound = site.state(&["repair"]).ok();
    assert_eq!(sound.stdout, "The state is sound\n");
}

#[test]
fn a_free_stack_is_unlocked_without_harm() {
    let site = given(&[note("a", "one")]);
    let unlock = site.state(&["unlock", "--yes"]).ok();
    assert!(
        unlock.stdout.contains("was free already"),
        "{}",
        unlock.stdout
    );
    site.state(&["unlock"]).failed(6);
    let lock = "backend/.pulumi/locks/organization/notes/dev/7c.json";
    site.write(
        lock,
        r#"{"pid":1,"username":"u","hostname":"h","timestamp":"2026-01-01T00:00:00Z"}"#,
    );
    let locked = site
        .program(&["refresh", "--yes", "--skip-preview"])
        .failed(4);
    assert!(locked.stderr.contains("NIM-0209"), "{}", locked.stderr);
    let unlock = site.state(&["unlock", "--yes", "--json"]).ok().json();
    assert_eq!(unlock["locks_removed"], 1);
    assert!(!site.path(lock).exists());
}

#[test]
fn a_stack_of_another_project_needs_its_full_name_and_no_program() {
    let site = given(&[note("a", "one")]);
    let dir = site.path("home").display().to_string();
    let refused = site
        .state(&["ls", "--dir", &dir, "--stack", "dev"])
        .failed(3);
    assert!(refused.stderr.contains("NIM-0230"), "{}", refused.stderr);
    let listed = site
        .state(&["ls", "--dir", &dir, "--stack", "organization/notes/dev"])
        .ok();
    assert!(listed.stdout.contains(&urn("a")), "{}", listed.stdout);
}
