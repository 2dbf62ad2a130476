//! Promises about runs that need a test of their own.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::support::{DIAMOND, ID, Site, node_sdk};

fn state(site: &Site, file: &str) -> Value {
    let path = site.rehearsal(".pulumi/stacks/p").join(file);
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
    serde_json::from_str(&text).unwrap()
}

fn resources(state: &Value) -> &Vec<Value> {
    state["checkpoint"]["latest"]["resources"]
        .as_array()
        .unwrap()
}

fn outputs(state: &Value) -> &Value {
    let is_stack = |one: &&Value| one["type"] == "pulumi:pulumi:Stack";
    &resources(state).iter().find(is_stack).unwrap()["outputs"]
}

/// Everything below a folder as one text.
fn everything(folder: &Path) -> String {
    let mut text = String::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            text.push_str(&everything(&path));
        } else {
            text.push_str(&String::from_utf8_lossy(&fs::read(&path).unwrap()));
            text.push('\n');
        }
    }
    text
}

#[test]
fn placeholders_become_values_when_a_unit_runs_and_files_keep_them() {
    let Some(sdk) = node_sdk("placeholders_become_values_when_a_unit_runs_and_files_keep_them")
    else {
        return;
    };
    let site = Site::new(&sdk, &[("a", &[]), ("b", &["a"])]);
    let config = site.deployment("config/b.dev.yaml");
    let before = fs::read_to_string(&config).unwrap();
    assert!(before.contains("{{RUNTIME:a:first}}"), "{before}");
    site.rehearse("deploy", &["--json"]).ok();
    // What b was given is what a gave in this very run, as its stack's output says.
    let given = outputs(&state(&site, "D1RUNS-a-dev.json"))["first"].clone();
    let b = state(&site, "D1RUNS-b-dev.json");
    let first = resources(&b).iter().find(|one| {
        one["urn"]
            .as_str()
            .is_some_and(|urn| urn.ends_with("b-first"))
    });
    assert_eq!(first.unwrap()["inputs"]["from_a"], given);
    assert!(given.as_str().is_some_and(|id| !id.is_empty()));
    assert!(
        !b.to_string().contains("{{RUNTIME"),
        "a program sees values only"
    );
    assert_eq!(fs::read_to_string(&config).unwrap(), before);
}

/// What a program that is called `b` is given, as its state has it.
const SOURCES: &[(&str, &str)] = &[
    ("name", "{{RUNTIME:env:OUR_NAME}}"),
    ("ids", "{{RUNTIME:a:ids}}"),
    ("both", "{{RUNTIME:a:first}} of {{RUNTIME:env:OUR_NAME}}"),
    ("nets", "{{RUNTIME:calculate:subnets:10.4.0.0/16:24:2}}"),
    ("uuid", "{{RUNTIME:calculate:uuid}}"),
    ("at", "{{RUNTIME:calculate:timestamp}}"),
];

#[test]
fn every_source_of_a_placeholder_gives_the_value_that_it_has() {
    let Some(sdk) = node_sdk("every_source_of_a_placeholder_gives_the_value_that_it_has") else {
        return;
    };
    let site = Site::new(&sdk, &[("a", &[]), ("b", &["a"])]);
    site.set_size("b", "to be replaced");
    let path = site.deployment("Deployment_Manifest.yaml");
    let text = fs::read_to_string(&path).unwrap();
    let is_replaced = |line: &&str| line.contains("to be replaced");
    let line = text.lines().find(is_replaced).unwrap();
    let indent = &line[..line.len() - line.trim_start().len()];
    let lines = SOURCES.iter();
    let lines: String = lines
        .map(|(key, value)| format!("{indent}{key}: \"{value}\"\n"))
        .collect();
    fs::write(&path, text.replace(&format!("{line}\n"), &lines)).unwrap();
    site.write(
        "cloud/stacks/b/src/index.js",
        "const pulumi = require('@pulumi/pulumi');\n\
         const config = new pulumi.Config('b');\n\
         class Thing extends pulumi.CustomResource {\n\
         \x20 constructor(name, args) { super('demo:index:Thing', name, args); }\n\
         }\n\
         const [name, both, uuid, at] = ['name', 'both', 'uuid', 'at'].map(key => config.require(key));\n\
         const [ids, nets] = ['ids', 'nets'].map(key => config.requireObject(key));\n\
         exports.first = new Thing('b-values', { name, both, uuid, at, ids, nets }).id;\nexports.ids = [];\n",
    );
    let given = |more: &[&str]| {
        let usual = ["deploy", ID, "--environment", "dev", "--rehearse"];
        let mut command = site.command(&[&usual, more].concat());
        let ran = command.env("OUR_NAME", "Ada").output().unwrap();
        assert!(ran.status.success(), "{ran:?}");
        let b = state(&site, "D1RUNS-b-dev.json");
        let is_ours = |one: &&Value| one["urn"].to_string().contains("b-values");
        resources(&b).iter().find(is_ours).unwrap()["inputs"].clone()
    };
    let b = given(&[]);
    let a = state(&site, "D1RUNS-a-dev.json");
    let a = outputs(&a);
    assert_eq!(b["name"], "Ada", "{b}");
    assert_eq!(b["ids"], a["ids"], "a list stays one: {b}");
    assert_eq!(b["ids"].as_array().unwrap().len(), 2, "{b}");
    let both = format!("{} of Ada", a["first"].as_str().unwrap());
    assert_eq!(b["both"], both.as_str(), "{b}");
    assert_eq!(
        b["nets"],
        serde_json::json!(["10.4.0.0/24", "10.4.1.0/24"]),
        "{b}"
    );
    let uuid = b["uuid"].as_str().unwrap();
    let form = regex::Regex::new("^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$").unwrap();
    assert!(form.is_match(uuid), "{b}");
    let at: jiff::Timestamp = b["at"].as_str().unwrap().parse().unwrap();
    let old = jiff::Timestamp::now().duration_since(at);
    assert!(old.as_secs() < 3600, "{b}");
    // What was made up stays what it is, although the program runs again.
    assert_eq!(given(&["--force"]), b);
}

#[test]
fn environments_have_states_of_their_own_and_a_rollback_touches_one() {
    let Some(sdk) = node_sdk("environments_have_states_of_their_own_and_a_rollback_touches_one")
    else {
        return;
    };
    let site = Site::new(&sdk, &[("a", &[])]);
    let stage = |verb: &str, more: &[&str]| {
        site.run(
            &[
                &[verb, ID, "--environment", "stage", "--rehearse", "--json"],
                more,
            ]
            .concat(),
        )
    };
    site.rehearse("deploy", &[]).ok();
    let alone = ["--skip-gate", "tried alone"];
    let warned = stage("deploy", &alone).ok().summary()["warnings"].to_string();
    assert!(
        warned.contains("open in the gate of dev: smoke-tests"),
        "{warned}"
    );
    assert!(warned.contains("monitoring (0 of 24 hours)"), "{warned}");
    let untouched = state(&site, "D1RUNS-a-stage.json");
    site.set_size("a", "2");
    site.rehearse("deploy", &[]).ok();
    site.rehearse("rollback", &["--to-version", "1"]).ok();
    assert_eq!(state(&site, "D1RUNS-a-stage.json"), untouched);
    site.rehearse("destroy", &[]).ok();
    assert_eq!(state(&site, "D1RUNS-a-stage.json"), untouched);
    let gates = site
        .run(&["gate", ID, "--rehearse", "--environment", "stage", "--json"])
        .ok();
    assert_eq!(
        gates.summary()["gates"][0]["items"][2]["done"],
        true,
        "{}",
        gates.stdout
    );
}

#[test]
fn a_rollback_is_told_in_the_words_that_users_know() {
    let Some(sdk) = node_sdk("a_rollback_is_told_in_the_words_that_users_know") else {
        return;
    };
    let site = Site::new(&sdk, &[("a", &[]), ("b", &["a"])]);
    let orders =
        site.orders("orders: [{on: create, name: b-second, do: fail, message: no room}]\n");
    let ran = site.rehearse("deploy", &["--orders", &orders]).with(1);
    let text = format!("{}{}", ran.stderr, ran.stdout);
    let mut from = 0;
    for part in [
        "Error: b:",
        "1 stacks deployed successfully: a",
        "Initiating automatic rollback...",
        "Rolling back: b... ✓",
        "Rolling back: a... ✓",
        "✓ Rollback completed. Infrastructure returned to previous state.",
    ] {
        let found = text[from..].find(part);
        from += found.unwrap_or_else(|| panic!("{part:?} is not there, or too early:\n{text}"));
    }
}

#[test]
fn every_critical_failure_stops_what_depends_on_it() {
    let Some(sdk) = node_sdk("every_critical_failure_stops_what_depends_on_it") else {
        return;
    };
    let site = Site::new(&sdk, &[("a", &[]), ("b", &["a"])]);
    for message in [
        "InternalError: the resource cannot be made",
        "timeout while waiting for state to become available",
        "VpcLimitExceeded: the maximum number of VPCs has been reached",
        "AccessDenied: not authorized to perform this operation",
        "ConflictException: the resource is being changed by somebody else",
    ] {
        let rule =
            format!("orders: [{{on: create, name: a-first, do: fail, message: '{message}'}}]\n");
        let orders = site.orders(&rule);
        let held = ["--json", "--orders", &orders, "--on-failure", "hold"];
        let ran = site.rehearse("deploy", &held).with(1);
        assert_eq!(ran.status("a"), "failed", "{message}");
        assert_eq!(ran.status("b"), "not_started", "{message}");
        let word = message.split(':').next().unwrap();
        assert!(ran.stdout.contains(word), "{}", ran.stdout);
    }
}

#[test]
fn force_runs_every_stack_and_prod_needs_its_confirmation() {
    let Some(sdk) = node_sdk("force_runs_every_stack_and_prod_needs_its_confirmation") else {
        return;
    };
    let site = Site::new(&sdk, &[("a", &[]), ("b", &["a"])]);
    site.rehearse("deploy", &[]).ok();
    let forced = site.rehearse("deploy", &["--force", "--json"]).ok();
    assert_eq!(
        (forced.status("a"), forced.status("b")),
        ("succeeded".into(), "succeeded".into())
    );

    let prod = ["deploy", ID, "--environment", "prod", "--json"];
    let asked = site.run(&prod).with(6);
    assert_eq!(
        asked.summary()["error"]["code"],
        "NIM-0010",
        "{}",
        asked.stdout
    );
    let yes = site.run(&[&prod[..], &["--yes"]].concat()).with(6);
    assert_eq!(
        yes.summary()["error"]["code"],
        asked.summary()["error"]["code"]
    );
    // So does whichever environment is the last, and the first does not.
    let of = |environment: &'static str| {
        [
            "deploy",
            ID,
            "--environment",
            environment,
            "--yes",
            "--json",
        ]
    };
    let last = site.run(&of("stage")).with(6);
    assert_eq!(
        last.summary()["error"]["code"],
        "NIM-0010",
        "{}",
        last.stdout
    );
    let closed = site
        .run(&[&of("stage")[..], &["--confirm"]].concat())
        .with(6);
    assert_eq!(
        closed.summary()["error"]["code"],
        "NIM-0757",
        "{}",
        closed.stdout
    );
    // Confirmed, the next question is whether there is such an environment.
    let confirmed = site.run(&[&prod[..], &["--confirm"]].concat()).with(3);
    assert!(
        confirmed.stdout.contains("no environment prod"),
        "{}",
        confirmed.stdout
    );
    assert!(
        !site.deployment(".nimbus/runs").exists(),
        "nothing was begun"
    );
}

#[test]
fn only_enabled_environments_and_sound_graphs_are_deployed() {
    let Some(sdk) = node_sdk("only_enabled_environments_and_sound_graphs_are_deployed") else {
        return;
    };
    let site = Site::new(&sdk, DIAMOND);
    let stage = [
        "deploy",
        ID,
        "--environment",
        "stage",
        "--rehearse",
        "--json",
    ];
    site.run(&["disable-environment", ID, "stage"]).ok();
    let refused = site.run(&stage).with(6);
    assert!(refused.stdout.contains("not enabled"), "{}", refused.stdout);
    // The graph is worked out anew from the manifest as it is now.
    let manifest = site.deployment("Deployment_Manifest.yaml");
    let text = fs::read_to_string(&manifest).unwrap();
    let circular = text.replacen("size: \"1\"", "size: '{{RUNTIME:d:first}}'", 1);
    assert_ne!(circular, text);
    fs::write(&manifest, circular).unwrap();
    let refused = site.rehearse("deploy", &["--json"]);
    assert_ne!(refused.code, 0);
    assert!(
        refused.stdout.contains("Circular dependency detected"),
        "{}",
        refused.stdout
    );
    assert!(
        !site.rehearsal(".nimbus/runs").exists(),
        "nothing was begun"
    );
    // An error in the manifest is told once, with its place.
    let wrong = text.replacen("size: \"1\"", "size: '{{RUNTIME:a'", 1);
    fs::write(&manifest, wrong).unwrap();
    let told = site.rehearse("deploy", &[]);
    assert_ne!(told.code, 0);
    let place = "Deployment_Manifest.yaml:";
    assert_eq!(told.stderr.matches(place).count(), 1, "{}", told.stderr);
    assert_eq!(
        told.stderr.matches("explain NIM-").count(),
        1,
        "{}",
        told.stderr
    );
    assert_eq!(told.stdout, "");
    // And at init.
    site.write(
        "cloud/tools/templates/config/a.yaml",
        "name: a\ndependencies: [d]\noutputs: {first: }\n",
    );
    let init = [
        "init",
        "D2X",
        "--org",
        "o",
        "--project",
        "p",
        "--template",
        "graph",
        "--json",
    ];
    let refused = site.run(&init);
    assert_ne!(refused.code, 0);
    assert!(
        refused.stdout.contains("Circular dependency detected"),
        "{}",
        refused.stdout
    );
    assert!(!site.path("cloud/deploy/D2X-o-p").exists());
}

#[test]
fn secrets_are_in_no_file_of_a_deployment_and_in_no_output() {
    let Some(sdk) = node_sdk("secrets_are_in_no_file_of_a_deployment_and_in_no_output") else {
        return;
    };
    let site = Site::new(&sdk, &[("a", &[])]);
    site.set_size("a", "{{RUNTIME:calculate:password:24}}");
    let seen = site.path("seen");
    let program = site.path("cloud/stacks/a/src/index.js");
    let text = fs::read_to_string(&program).unwrap();
    let spy = format!(
        "size.apply((text) => require('fs').writeFileSync({:?}, text));\n",
        seen.display().to_string()
    );
    let text = text
        .replace("config.require('size')", "config.requireSecret('size')")
        .replace("const first", &format!("{spy}const first"));
    fs::write(&program, text).unwrap();
    let ran = site.rehearse("deploy", &["--json"]).ok();
    let secret = fs::read_to_string(&seen).unwrap();
    assert_eq!(secret.chars().count(), 24, "the program has the value");
    assert!(!ran.stdout.contains(&secret) && !ran.stderr.contains(&secret));
    let files = everything(&site.deployment(""));
    assert!(files.contains("a-first"), "this looks at the right place");
    // The simulated cloud has what a real one would have: the value itself.
    let kept = files.lines().filter(|line| line.contains(&secret));
    let elsewhere: Vec<_> = kept.filter(|line| !line.starts_with("{\"put\":")).collect();
    assert!(elsewhere.is_empty(), "{elsewhere:#?}");
}

/// A unit that needs no cloud, for runs that are no rehearsal.
const CLOUDLESS: &str = "const pulumi = require('@pulumi/pulumi');\n\
    const config = new pulumi.Config('a');\n\
    exports.first = pulumi.secret(config.require('size'));\nexports.ids = [];\n";

#[test]
fn a_wrong_passphrase_is_refused_before_a_real_run_begins() {
    let Some(sdk) = node_sdk("a_wrong_passphrase_is_refused_before_a_real_run_begins") else {
        return;
    };
    let site = Site::new(&sdk, &[("a", &[]), ("b", &[])]);
    for stack in ["a", "b"] {
        let program = CLOUDLESS.replace("'a'", &format!("'{stack}'"));
        site.write(&format!("cloud/stacks/{stack}/src/index.js"), &program);
    }
    let deploy = ["deploy", ID, "--environment", "dev", "--yes", "--json"];
    site.run(&deploy).ok();
    let before = everything(&site.deployment(".nimbus"));
    site.set_size("b", "2");
    for passphrase in ["wrong", ""] {
        let mut command = site.command(&deploy);
        command.env("PULUMI_CONFIG_PASSPHRASE", passphrase);
        let output = command.output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(!output.status.success(), "{text}");
        assert!(text.contains("passphrase"), "{text}");
        assert!(
            !text.contains("\"event\":\"unit\""),
            "no unit was begun: {text}"
        );
    }
    assert_eq!(
        everything(&site.deployment(".nimbus")),
        before,
        "nothing was recorded"
    );
    assert_eq!(site.run(&deploy).ok().status("b"), "succeeded");
}

#[test]
fn a_clock_that_jumps_confuses_neither_order_nor_locks() {
    let Some(sdk) = node_sdk("a_clock_that_jumps_confuses_neither_order_nor_locks") else {
        return;
    };
    let site = Site::new(&sdk, &[("a", &[])]);
    site.rehearse("deploy", &[]).ok();
    // The clock was in another century during the first run.
    for file in ["run.json", "events.jsonl"] {
        let path = site.rehearsal(".nimbus/runs/R0001").join(file);
        let text = fs::read_to_string(&path).unwrap();
        let year = &text[text.find("\"20").unwrap() + 1..][..4];
        fs::write(&path, text.replace(&format!("\"{year}-"), "\"2199-")).unwrap();
    }
    let gate = site
        .run(&["gate", ID, "--rehearse", "--environment", "dev", "--json"])
        .ok();
    assert!(gate.stdout.contains("0 of 24 hours"), "{}", gate.stdout);
    site.set_size("a", "2");
    let second = site.rehearse("deploy", &["--json"]).ok().summary();
    assert_eq!(
        (&second["run"], &second["version"]),
        (&"R0002".into(), &2.into())
    );
    let status = site
        .run(&["status", ID, "--rehearse", "--json"])
        .ok()
        .summary();
    assert_eq!(
        status["environments"][0]["last_run"]["run"], "R0002",
        "{status}"
    );
}
