//! Previews of whole environments, and plans that are sealed.

use std::fs;

use serde_json::Value;

use crate::support::{DIAMOND, Site, node_sdk};

#[test]
fn a_preview_hands_planned_outputs_on_changes_nothing_and_says_whether_there_are_changes() {
    let Some(sdk) = node_sdk(
        "a_preview_hands_planned_outputs_on_changes_nothing_and_says_whether_there_are_changes",
    ) else {
        return;
    };
    let site = Site::new(&sdk, DIAMOND);
    let first = site.rehearse("preview", &["--json"]).with(8);
    let summary = first.summary();
    assert_eq!(summary["result"], "succeeded", "{summary}");
    assert_eq!(summary["changes"], true);
    let planned = |e: &Value| e["event"] == "resource" && e["status"] == "planned";
    assert!(first.events().iter().any(planned));
    assert!(site.resources().is_empty());
    assert!(
        !site.rehearsal(".nimbus/runs").exists(),
        "a preview is no run"
    );

    site.rehearse("deploy", &[]).ok();
    let second = site.rehearse("preview", &["--json"]).ok();
    assert_eq!(second.summary()["changes"], false);
    site.set_size("b", "7");
    let diff = site.rehearse("preview", &["--diff"]).with(8).stdout;
    assert!(diff.contains("b-first"), "{diff}");
    assert!(diff.contains("REHEARSAL"), "{diff}");
}

#[test]
fn a_sealed_plan_is_done_as_it_was_seen_or_refused_with_what_moved() {
    let Some(sdk) = node_sdk("a_sealed_plan_is_done_as_it_was_seen_or_refused_with_what_moved")
    else {
        return;
    };
    let site = Site::new(&sdk, &[("a", &[]), ("b", &["a"])]);
    let plan = site.path("plan.json").display().to_string();
    site.rehearse("preview", &["--save", &plan]).with(8);

    // Code moved.
    let index = "cloud/stacks/b/src/index.js";
    let code = fs::read_to_string(site.path(index)).unwrap();
    site.write(index, &format!("{code}// other\n"));
    let refused = site
        .rehearse("deploy", &["--plan", &plan, "--json"])
        .with(6);
    let message = refused.summary()["error"]["message"].to_string();
    assert!(message.contains("other code (index.js) of b"), "{message}");
    site.write(index, &code);

    // Configuration moved.
    site.set_size("a", "3");
    let refused = site
        .rehearse("deploy", &["--plan", &plan, "--json"])
        .with(6);
    let message = refused.summary()["error"]["message"].to_string();
    assert!(message.contains("configuration (a:size) of a"), "{message}");
    site.set_size("a", "1");

    // Another engine.
    let other = ["--plan", &plan, "--engine", "pulumi", "--json"];
    let refused = site.rehearse("deploy", &other).with(6);
    let error = refused.summary()["error"].clone();
    assert_eq!(error["code"], "NIM-0601", "{error}");
    assert!(
        error["message"].to_string().contains("the embedded engine"),
        "{error}"
    );
    assert!(site.resources().is_empty(), "nothing was done");

    // As it was seen: what was unknown then is known now.
    site.rehearse("deploy", &["--plan", &plan, "--json"]).ok();
    let after = site.rehearse("preview", &["--json"]).ok();
    assert_eq!(
        after.summary()["changes"],
        false,
        "b was given what a left, not the word for what nobody knows"
    );

    // The start state moved: the plan was for nothing at all.
    let refused = site
        .rehearse("deploy", &["--plan", &plan, "--json"])
        .with(6);
    let message = refused.summary()["error"]["message"].to_string();
    assert!(message.contains("other start state of a"), "{message}");
    site.write("plan.json", "{}");
    let broken = site.rehearse("deploy", &["--plan", &plan, "--json"]);
    assert_eq!(broken.with(2).events().len(), 1);
}

#[test]
fn a_first_deploy_has_the_password_that_its_plan_made_up() {
    let Some(sdk) = node_sdk("a_first_deploy_has_the_password_that_its_plan_made_up") else {
        return;
    };
    let site = Site::new(&sdk, &[("a", &[])]);
    site.set_size("a", "{{RUNTIME:calculate:password:24:tok}}");
    let seen = site.path("seen");
    let program = site.path("cloud/stacks/a/src/index.js");
    let spy = format!(
        "size.apply((text) => require('fs').writeFileSync({:?}, text));\n",
        seen.display().to_string()
    );
    let text = fs::read_to_string(&program)
        .unwrap()
        .replace("config.require('size')", "config.requireSecret('size')")
        .replace("const first", &format!("{spy}const first"));
    fs::write(&program, text).unwrap();
    let plan = site.path("plan.json");
    let saved = plan.display().to_string();
    site.rehearse("preview", &["--save", &saved]).with(8);
    let shown = fs::read_to_string(&seen).unwrap();
    assert_eq!(shown.chars().count(), 24);
    let text = fs::read_to_string(&plan).unwrap();
    assert!(!text.contains(&shown), "a plan gives no secret away");

    fs::remove_file(&seen).unwrap();
    site.rehearse("deploy", &["--plan", &saved, "--json"]).ok();
    assert_eq!(fs::read_to_string(&seen).unwrap(), shown);
    let after = site.rehearse("preview", &["--json"]).ok();
    assert_eq!(after.summary()["changes"], false, "it is kept");
}
