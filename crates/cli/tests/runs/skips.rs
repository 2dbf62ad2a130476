//! What voids a skip: state that is not what the last run left, and drift.

use std::fs;

use serde_json::Value;

use crate::support::{DeployOutput, ID, Site, node_sdk};

fn why(site: &Site, stack: &str) -> String {
    site.rehearse("why", &[stack]).ok().stdout
}

fn deploy(site: &Site) -> DeployOutput {
    site.rehearse("deploy", &["--json"]).ok()
}

fn state_of(site: &Site, stack: &str) -> Value {
    let status = site.run(&["status", ID, "--rehearse", "--json"]).ok();
    let status = status.summary();
    let stacks = status["environments"][0]["stacks"].as_array().unwrap();
    let found = stacks.iter().find(|one| one["name"] == stack);
    found.unwrap()["state"].clone()
}

#[test]
fn a_state_that_somebody_else_changed_or_took_away_is_no_reason_to_skip() {
    let test = "a_state_that_somebody_else_changed_or_took_away_is_no_reason_to_skip";
    let Some(sdk) = node_sdk(test) else {
        return;
    };
    let site = Site::new(&sdk, &[("a", &[]), ("b", &["a"])]);
    deploy(&site);
    let second = deploy(&site);
    assert_eq!(
        (second.status("a"), second.status("b")),
        ("skipped".into(), "skipped".into())
    );
    assert!(why(&site, "b").contains("would be skipped"));
    // What it needs would run: the plan waits for its outputs, and so does the answer.
    site.set_size("a", "2");
    let waits = "b would run if outputs of a change\n";
    assert_eq!(why(&site, "b"), waits);
    let told = site.rehearse("why", &["b", "--json"]).ok().summary();
    assert_eq!(
        (&told["runs"], &told["depends_on"]),
        (&false.into(), &"a".into())
    );
    site.set_size("a", "1");

    // Changed by others: the text is another, whatever it says.
    let path = site.rehearsal(".pulumi/stacks/p/D1RUNS-b-dev.json");
    let text = fs::read_to_string(&path).unwrap();
    let mut state: Value = serde_json::from_str(&text).unwrap();
    let resources = state["checkpoint"]["latest"]["resources"].as_array_mut();
    resources
        .unwrap()
        .retain(|one| !one["urn"].as_str().unwrap().ends_with("b-second"));
    fs::write(&path, state.to_string()).unwrap();
    assert!(
        why(&site, "b").contains("recorded state"),
        "{}",
        why(&site, "b")
    );
    let third = deploy(&site);
    assert_eq!(
        (third.status("a"), third.status("b")),
        ("skipped".into(), "succeeded".into())
    );
    assert_eq!(deploy(&site).status("b"), "skipped");

    // Taken away.
    fs::remove_file(site.rehearsal(".pulumi/stacks/p/D1RUNS-a-dev.json")).unwrap();
    assert!(
        why(&site, "a").contains("recorded state"),
        "{}",
        why(&site, "a")
    );
    assert_eq!(deploy(&site).status("a"), "succeeded");
}

#[test]
fn another_backend_is_no_reason_to_skip() {
    let Some(sdk) = node_sdk("another_backend_is_no_reason_to_skip") else {
        return;
    };
    let site = Site::new(&sdk, &[("a", &[])]);
    // A component alone, so that no provider is needed.
    site.write(
        "cloud/stacks/a/src/index.js",
        "const pulumi = require('@pulumi/pulumi');\n\
         class Box extends pulumi.ComponentResource {\n\
         \x20 constructor(name) { super('demo:index:Box', name, {}, {}); this.registerOutputs({}); }\n\
         }\n\
         new Box('a');\nexports.first = 'x';\nexports.ids = [];\n",
    );
    let real = |more: &[&str]| {
        let usual = ["deploy", ID, "--environment", "dev", "--yes", "--json"];
        site.run(&[&usual, more].concat()).ok()
    };
    assert_eq!(real(&[]).status("a"), "succeeded");
    assert_eq!(real(&[]).status("a"), "skipped");
    fs::create_dir(site.path("elsewhere")).unwrap();
    let elsewhere = format!("file://{}", site.path("elsewhere").display());
    assert_eq!(real(&["--backend", &elsewhere]).status("a"), "succeeded");
    assert_eq!(real(&["--backend", &elsewhere]).status("a"), "skipped");
}

#[test]
fn drift_that_a_refresh_finds_runs_a_stack_again() {
    let Some(sdk) = node_sdk("drift_that_a_refresh_finds_runs_a_stack_again") else {
        return;
    };
    let site = Site::new(&sdk, &[("a", &[]), ("b", &["a"])]);
    deploy(&site);
    let nothing = site.rehearse("refresh", &["--json"]).ok();
    assert_eq!(nothing.summary()["kind"], "refresh");
    assert_eq!(state_of(&site, "b"), "deployed");
    assert!(
        why(&site, "b").contains("skipped"),
        "a look that finds nothing changes nothing"
    );

    let orders = site.orders("orders: [{on: read, name: b-second, do: vanish}]\n");
    // Half of what there is would be a mistake more often than not, so somebody has to say it.
    let many = site.rehearse("refresh", &["--orders", &orders]).with(1);
    assert!(
        many.stdout.contains("--allow-mass-removal"),
        "{}",
        many.stdout
    );
    assert_eq!(state_of(&site, "b"), "deployed");
    site.rehearse("refresh", &["--orders", &orders, "--allow-mass-removal"])
        .ok();
    assert_eq!(state_of(&site, "b"), "drifted");
    assert_eq!(state_of(&site, "a"), "deployed");
    assert!(
        why(&site, "b").contains("it has drifted"),
        "{}",
        why(&site, "b")
    );
    let mended = deploy(&site);
    assert_eq!(
        (mended.status("a"), mended.status("b")),
        ("skipped".into(), "succeeded".into())
    );
    assert_eq!(state_of(&site, "b"), "deployed");

    // In one go: every stack is looked at, and what is gone is made again.
    let orders = site.orders("orders: [{on: read, name: a-second, do: vanish}]\n");
    let both = [
        "--json",
        "--refresh",
        "--allow-mass-removal",
        "--orders",
        &orders,
    ];
    let looked = site.rehearse("deploy", &both).ok();
    assert_eq!(
        (looked.status("a"), looked.status("b")),
        ("succeeded".into(), "succeeded".into())
    );
    let resources = site.resources().join("\n");
    assert!(resources.contains("a-second"), "{resources}");
}

#[test]
fn another_project_is_refused_while_there_are_states() {
    let Some(sdk) = node_sdk("another_project_is_refused_while_there_are_states") else {
        return;
    };
    let site = Site::new(&sdk, &[("a", &[])]);
    let manifest = site.deployment("Deployment_Manifest.yaml");
    let before = fs::read_to_string(&manifest).unwrap();
    let other = before.replace("project: p\n", "project: q\n");
    assert_ne!(before, other);
    deploy(&site);
    fs::write(&manifest, &other).unwrap();
    for verb in ["deploy", "preview", "destroy", "rollback", "refresh"] {
        let refused = site.rehearse(verb, &["--json"]);
        let error = refused.summary()["error"].clone();
        assert_eq!(error["code"], "NIM-0775", "{verb}: {}", refused.stdout);
        let message = error["message"].as_str().unwrap();
        assert!(message.contains("organization/p/D1RUNS-a-dev"), "{message}");
    }
    // Nor does one environment work on the state of another, whose people may be others.
    let names = "\n    a:\n      pulumi: {project: p, stacks: {stage: D1RUNS-a-dev}}\n";
    let taken = before.replacen("\n    a:\n", names, 1);
    assert_ne!(before, taken);
    fs::write(&manifest, taken).unwrap();
    for verb in ["deploy", "destroy"] {
        let stage = [verb, ID, "--environment", "stage", "--rehearse", "--json"];
        let refused = site.run(&stage);
        let error = refused.summary()["error"].clone();
        assert_eq!(error["code"], "NIM-0775", "{verb}: {}", refused.stdout);
        let message = error["message"].as_str().unwrap();
        assert!(message.contains("the state of a in dev"), "{message}");
    }
    fs::write(&manifest, &before).unwrap();
    site.rehearse("destroy", &[]).ok();
    fs::write(&manifest, &other).unwrap();
    deploy(&site);
}

#[test]
fn a_stack_that_others_need_stays_and_one_that_is_switched_off_can_go() {
    let test = "a_stack_that_others_need_stays_and_one_that_is_switched_off_can_go";
    let Some(sdk) = node_sdk(test) else {
        return;
    };
    let site = Site::new(&sdk, &[("a", &[]), ("b", &["a"])]);
    deploy(&site);
    let refused = site.rehearse("destroy-stack", &["a", "--json"]);
    let error = refused.summary()["error"].clone();
    assert_eq!(error["code"], "NIM-0776", "{}", refused.stdout);
    assert!(
        error["message"].as_str().unwrap().contains("needed by b"),
        "{error}"
    );

    // Switched off, it is still seen, and can be destroyed.
    let manifest = site.deployment("Deployment_Manifest.yaml");
    let text = fs::read_to_string(&manifest).unwrap();
    let at = text.find("\n    b:").unwrap();
    let (head, tail) = text.split_at(at);
    fs::write(
        &manifest,
        format!(
            "{head}{}",
            tail.replacen("enabled: true", "enabled: false", 1)
        ),
    )
    .unwrap();
    assert_eq!(state_of(&site, "b"), "deployed");
    assert!(
        why(&site, "b").contains("switched off"),
        "{}",
        why(&site, "b")
    );
    site.rehearse("destroy-stack", &["a"]).with(refused.code);
    site.rehearse("destroy-stack", &["b"]).ok();
    site.rehearse("destroy-stack", &["a"]).ok();
    assert_eq!(site.resources(), [""; 0]);

    // So can everything of an environment that is switched off.
    fs::write(&manifest, &text).unwrap();
    deploy(&site);
    site.run(&["disable-environment", ID, "dev"]).ok();
    assert_eq!(state_of(&site, "a"), "deployed");
    site.rehearse("deploy", &[]).with(6);
    site.rehearse("destroy", &[]).ok();
    assert_eq!(site.resources(), [""; 0]);
}

#[test]
fn what_a_program_cannot_read_does_not_run_it() {
    let Some(sdk) = node_sdk("what_a_program_cannot_read_does_not_run_it") else {
        return;
    };
    let site = Site::new(&sdk, &[("a", &[]), ("b", &["a"])]);
    deploy(&site);
    site.write("cloud/tools/templates/NOTES.md", "a note\n");
    site.write("cloud/tools/notes.ts", "export const note = 1;\n");
    site.write("cloud/stacks/c/src/index.js", "require('./other');\n");
    site.write("cloud/stacks/c/src/package-lock.json", "{}\n");
    let template = site.path("cloud/tools/templates/config/b.yaml");
    let text = fs::read_to_string(&template).unwrap();
    fs::write(&template, format!("{text}description: another\n")).unwrap();
    let second = deploy(&site);
    assert_eq!(
        (second.status("a"), second.status("b")),
        ("skipped".into(), "skipped".into())
    );

    // Its own files do.
    site.write("cloud/stacks/a/src/lib.js", "exports.note = 1;\n");
    let third = deploy(&site);
    assert_eq!(
        (third.status("a"), third.status("b")),
        ("succeeded".into(), "skipped".into())
    );
}

/// A lock file that members of a package workspace share counts for each with the packages that it reads.
#[test]
fn a_package_of_another_member_in_a_shared_lock_file_runs_nothing() {
    let test = "a_package_of_another_member_in_a_shared_lock_file_runs_nothing";
    let Some(sdk) = node_sdk(test) else {
        return;
    };
    let site = Site::new(&sdk, &[("a", &[]), ("b", &["a"])]);
    let lock = |version: u32, left: &str, deep: &str| {
        let text = serde_json::json!({"lockfileVersion": version, "packages": {
            "": {"workspaces": ["*/src"]},
            "a/src": {"dependencies": {"@pulumi/pulumi": "*"}},
            "b/src": {"dependencies": {"left": "*"}},
            "node_modules/@pulumi/pulumi": {"version": "3.0.0", "dependencies": {"deep": "*"}},
            "node_modules/deep": {"version": deep},
            "node_modules/left": {"version": left},
        }});
        site.write("cloud/stacks/package-lock.json", &text.to_string());
    };
    let package = r#"{"main": "index.js", "dependencies": {"left": "*"}}"#;
    site.write("cloud/stacks/b/src/package.json", package);
    lock(3, "1.0.0", "1.0.0");
    deploy(&site);
    let statuses = || {
        let ran = deploy(&site);
        [ran.status("a"), ran.status("b")]
    };
    assert_eq!(statuses(), ["skipped", "skipped"]);

    lock(3, "2.0.0", "1.0.0");
    assert!(why(&site, "a").contains("skipped"), "{}", why(&site, "a"));
    let told = why(&site, "b");
    assert!(told.contains("../../package-lock.json"), "{told}");
    assert!(!told.contains("whole"), "{told}");
    assert_eq!(statuses(), ["skipped", "succeeded"]);
    // What both need, however deep, is both's.
    lock(3, "2.0.0", "2.0.0");
    assert_eq!(statuses(), ["succeeded", "succeeded"]);
    // One that is not understood is everybody's, and says so.
    lock(1, "2.0.0", "2.0.0");
    let told = why(&site, "a");
    let reason = "package-lock.json (whole: it is not of version 2 or 3)";
    assert!(told.contains(reason), "{told}");
    assert_eq!(statuses(), ["succeeded", "succeeded"]);
    assert_eq!(statuses(), ["skipped", "skipped"]);
}
