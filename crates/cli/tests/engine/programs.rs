//! Unmodified programs from their first preview to the end.

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::json;

use crate::support::{Site, node_sdk, python};

#[test]
fn a_typescript_program_from_preview_to_destroy() {
    let Some(sdk) = node_sdk("a_typescript_program_from_preview_to_destroy") else {
        return;
    };
    let site = Site::notes(&sdk);
    site.config(&["set", "password", "hunter2", "--secret"])
        .ok();

    let preview = site.program(&["preview"]).ok();
    assert!(
        preview.stdout.contains("+ 5 to create"),
        "{}",
        preview.stdout
    );
    assert!(!site.path("backend").exists(), "a preview writes nothing");
    site.program(&["preview", "--expect-no-changes"]).failed(6);

    let up = site.up().ok();
    assert!(up.stdout.contains("+ 5 created"), "{}", up.stdout);
    assert_eq!(site.cloud(), ["first.note", "password.note", "second.note"]);
    assert_eq!(site.read("cloud/password.note"), "hunter2");

    let again = site.up().ok();
    assert!(again.stdout.contains("5 unchanged"), "{}", again.stdout);
    site.program(&["preview", "--expect-no-changes"]).ok();

    let outputs = site.program(&["outputs", "--json"]).ok().json();
    assert_eq!(
        outputs["outputs"],
        json!({"greeting": "hello", "secret": "[secret]", "total": 16})
    );
    assert_eq!(outputs["secret"], json!(["secret"]));
    let one = site.program(&["outputs", "secret", "--show-secrets"]).ok();
    assert_eq!(one.stdout, "hunter2\n");
    site.program(&["outputs", "nothing"]).failed(3);

    site.config(&["set", "greeting", "good morning"]).ok();
    let diff = site.program(&["preview", "--diff"]).ok();
    assert!(
        diff.stdout
            .contains("~ text: \"hello\" => \"good morning\""),
        "{}",
        diff.stdout
    );
    site.up().ok();
    assert_eq!(site.read("cloud/first.note"), "good morning");

    site.write("cloud/first.note", "tampered");
    let refresh = site.program(&["refresh", "--yes", "--skip-preview"]).ok();
    assert!(refresh.stdout.contains("~ 1 updated"), "{}", refresh.stdout);
    site.up().ok();
    assert_eq!(site.read("cloud/first.note"), "good morning");

    // Nobody is there to say yes.
    let refused = site.program(&["destroy"]).failed(6);
    assert!(refused.stderr.contains("NIM-0010"), "{}", refused.stderr);
    assert_eq!(site.cloud().len(), 3);
    let destroy = site
        .program(&["destroy", "--yes", "--message", "the end"])
        .ok();
    assert!(destroy.stdout.contains("- 5 deleted"), "{}", destroy.stdout);
    assert!(site.cloud().is_empty());

    let history = site.state(&["history", "--json"]).ok().json();
    let kinds: Vec<&str> = history["operations"]
        .as_array()
        .unwrap()
        .iter()
        .map(|operation| operation["kind"].as_str().unwrap())
        .collect();
    assert_eq!(
        kinds,
        ["update", "update", "update", "refresh", "update", "destroy"]
    );
    assert_eq!(history["operations"][5]["message"], "the end");
}

#[test]
fn a_preview_names_the_value_that_a_program_lacks() {
    let Some(sdk) = node_sdk("a_preview_names_the_value_that_a_program_lacks") else {
        return;
    };
    let site = Site::typescript(
        &sdk,
        "import * as pulumi from '@pulumi/pulumi';\n\
         export const greeting = new pulumi.Config().require('greeting');\n",
    );
    let lacks = site.program(&["preview"]).failed(1);
    let said = format!("{}{}", lacks.stdout, lacks.stderr);
    for part in ["Missing required configuration variable", "notes:greeting"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    site.config(&["set", "greeting", "hi"]).ok();
    site.program(&["preview"]).ok();
}

#[test]
fn a_failed_step_keeps_the_others_and_the_next_run_goes_on() {
    let Some(sdk) = node_sdk("a_failed_step_keeps_the_others_and_the_next_run_goes_on") else {
        return;
    };
    let site = Site::notes(&sdk);
    site.up().ok();
    site.config(&["set", "broken", "true"]).ok();
    let failed = site.up().failed(1);
    assert!(
        failed.stdout.contains("the pen is empty"),
        "{}",
        failed.stdout
    );
    assert!(failed.stderr.contains("NIM-0500"), "{}", failed.stderr);
    assert_eq!(
        site.cloud(),
        ["first.note", "second.note"],
        "nothing was deleted"
    );
    site.config(&["rm", "broken"]).ok();
    let again = site.up().ok();
    assert!(again.stdout.contains("4 unchanged"), "{}", again.stdout);
}

#[test]
fn events_end_with_the_summary_and_hold_no_secret() {
    let Some(sdk) = node_sdk("events_end_with_the_summary_and_hold_no_secret") else {
        return;
    };
    let site = Site::notes(&sdk);
    site.config(&["set", "password", "hunter2", "--secret"])
        .ok();
    let up = site.program(&["up", "--yes", "--json"]).ok();
    assert!(!up.stdout.contains("hunter2"), "{}", up.stdout);
    assert_eq!(up.stderr, "");
    let events = up.events();
    for (sequence, event) in events.iter().enumerate() {
        assert_eq!(event["sequence"], sequence);
    }
    assert_eq!(
        events[0]["preludeEvent"]["config"]["notes:password"],
        "[secret]"
    );
    let summary = &events.last().unwrap()["summaryEvent"];
    assert_eq!(summary["resourceChanges"], json!({"create": 5}));
    assert_eq!(summary["result"], "succeeded");
    assert_eq!(summary["isPreview"], false);

    site.config(&["set", "broken", "true"]).ok();
    let failed = site.program(&["up", "--yes", "--json"]).failed(1);
    let events = failed.events();
    assert_eq!(events.last().unwrap()["summaryEvent"]["result"], "failed");
    assert!(
        events
            .iter()
            .any(|event| event.get("resOpFailedEvent").is_some())
    );
}

#[test]
fn a_saved_plan_is_carried_out_once() {
    let Some(sdk) = node_sdk("a_saved_plan_is_carried_out_once") else {
        return;
    };
    let site = Site::notes(&sdk);
    site.up().ok();
    site.config(&["set", "greeting", "hi"]).ok();
    let plan = site.path("plan.json").display().to_string();
    site.program(&["preview", "--save-plan", &plan]).ok();
    let arguments = ["up", "--yes", "--skip-preview", "--plan", &plan];
    site.program(&arguments).ok();
    assert_eq!(site.read("cloud/first.note"), "hi");
    let stale = site.program(&arguments).failed(6);
    assert!(stale.stderr.contains("NIM-0601"), "{}", stale.stderr);
    assert!(
        stale.stderr.contains("state has changed"),
        "{}",
        stale.stderr
    );
}

#[test]
fn targets_and_replacements_touch_only_what_they_name() {
    let Some(sdk) = node_sdk("targets_and_replacements_touch_only_what_they_name") else {
        return;
    };
    let site = Site::notes(&sdk);
    site.up().ok();
    site.config(&["set", "greeting", "hi"]).ok();
    let urn = |name: &str| {
        format!(
            "urn:pulumi:dev::notes::notes:index:Notebook$pulumi-nodejs:dynamic:Resource::{name}"
        )
    };
    let target = urn("book-0");
    site.program(&["up", "--yes", "--skip-preview", "--target", &target])
        .ok();
    assert_eq!(site.read("cloud/first.note"), "hi");
    assert_eq!(site.read("cloud/second.note"), "hello again");
    let exclude = urn("book-1");
    site.program(&["up", "--yes", "--skip-preview", "--exclude", &exclude])
        .ok();
    assert_eq!(site.read("cloud/second.note"), "hello again");
    let replaced = site
        .program(&["up", "--yes", "--skip-preview", "--replace", &target])
        .ok();
    assert!(
        replaced.stdout.contains("+-1 replaced"),
        "{}",
        replaced.stdout
    );
    let unknown = site
        .program(&["destroy", "--yes", "--target", &urn("nobody")])
        .failed(3);
    assert!(unknown.stderr.contains("NIM-0510"), "{}", unknown.stderr);
    assert_eq!(site.read("cloud/second.note"), "hi again");
}

#[test]
fn a_stack_reads_another_one() {
    let Some(sdk) = node_sdk("a_stack_reads_another_one") else {
        return;
    };
    let site = Site::notes(&sdk);
    site.up().ok();
    site.write(
        "reader/Pulumi.yaml",
        "name: reader\nruntime: {name: nodejs, options: {typescript: false}}\n",
    );
    site.write(
        "reader/index.js",
        r#"
        const pulumi = require("@pulumi/pulumi");
        const notes = new pulumi.StackReference("organization/notes/dev");
        exports.twice = notes.getOutput("total").apply((total) => total * 2);
        "#,
    );
    symlink(sdk.join("node_modules"), site.path("reader/node_modules")).unwrap();
    let dir = site.path("reader").display().to_string();
    site.program(&["up", "--yes", "--skip-preview", "--dir", &dir])
        .ok();
    let twice = site.program(&["outputs", "twice", "--dir", &dir]).ok();
    assert_eq!(twice.stdout, "32\n");
}

#[test]
fn a_python_program_with_a_dynamic_provider() {
    let Some(interpreter) = python("a_python_program_with_a_dynamic_provider") else {
        return;
    };
    let site = Site::new();
    let virtualenv = interpreter.parent().unwrap().parent().unwrap();
    site.write(
        "program/Pulumi.yaml",
        &format!(
            "name: notes\nruntime:\n  name: python\n  options:\n    virtualenv: {}\n",
            virtualenv.display()
        ),
    );
    let fixture = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/fixtures/notes-py/__main__.py"
    );
    fs::copy(fixture, site.path("program/__main__.py")).unwrap();
    let cloud = site.path("cloud").display().to_string();
    site.config(&["set", "folder", &cloud]).ok();
    site.config(&["set", "password", "hunter2", "--secret"])
        .ok();
    let up = site.up().ok();
    assert!(up.stdout.contains("+ 3 created"), "{}", up.stdout);
    assert_eq!(site.read("cloud/password.note"), "hunter2");
    let outputs = site.program(&["outputs", "--json"]).ok().json();
    assert_eq!(
        outputs["outputs"],
        json!({"length": 7, "secret": "[secret]"})
    );
    let again = site.up().ok();
    assert!(again.stdout.contains("3 unchanged"), "{}", again.stdout);
    site.program(&["destroy", "--yes", "--skip-preview"]).ok();
    assert!(site.cloud().is_empty());
}

#[test]
fn a_forbidden_default_provider_is_said_without_a_trace_of_the_sdk() {
    let test = "a_forbidden_default_provider_is_said_without_a_trace_of_the_sdk";
    let Some(sdk) = node_sdk(test) else {
        return;
    };
    // Several, so that some are turned away when the first has ended everything.
    let site = Site::typescript(
        &sdk,
        "import * as pulumi from '@pulumi/pulumi';\n\
         class Bucket extends pulumi.CustomResource {}\n\
         for (const name of ['a', 'b', 'c', 'd']) {\n\
             new Bucket('aws:s3/bucket:Bucket', name, {});\n\
         }\n",
    );
    let forbid = ["set", "pulumi:disable-default-providers", r#"["*"]"#];
    site.config(&forbid).ok();
    for verb in [&["preview"][..], &["up", "--yes", "--skip-preview"]] {
        let refused = site.program(verb).failed(1);
        let said = format!("{}{}", refused.stdout, refused.stderr);
        assert!(said.contains("disable-default-providers"), "{said}");
        for trace in ["UNAVAILABLE", "failed to deliver", "    at ", "grpc"] {
            assert!(!said.contains(trace), "{trace}: {said}");
        }
    }
}

#[test]
fn what_is_missing_is_said_before_anything_happens() {
    let site = Site::new();
    fs::remove_file(site.path("program/Pulumi.yaml")).unwrap();
    let missing = site.program(&["preview"]).failed(3);
    assert!(missing.stderr.contains("NIM-0230"), "{}", missing.stderr);
    site.write("program/Pulumi.yaml", "name: notes\nruntime: cobol\n");
    let runtime = site.program(&["preview"]).failed(2);
    assert!(runtime.stderr.contains("NIM-0400"), "{}", runtime.stderr);
    let bucket = site
        .program(&["preview", "--backend", "gs://bucket"])
        .failed(2);
    assert!(bucket.stderr.contains("NIM-0201"), "{}", bucket.stderr);
    let nobody = site.program(&["cancel", "--json"]).failed(3);
    assert_eq!(nobody.json()["error"]["code"], "NIM-0605");
    assert!(!site.path("backend").exists());
}
