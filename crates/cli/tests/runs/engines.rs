//! Units on the official command line, and back.

use std::fs;
use std::path::{Path, PathBuf};

use nimbus_test_tools::{Tool, tool_or_skip};
use serde_json::Value;

use crate::support::{DeployOutput, ID, Site};

/// Programs that need no provider: they pass on what they were given.
fn plain_programs(site: &Site) {
    for (name, upstream) in [("a", ""), ("b", " + config.require('from-a')")] {
        let program = format!(
            "const pulumi = require('@pulumi/pulumi');\n\
             const config = new pulumi.Config('{name}');\n\
             class Box extends pulumi.ComponentResource {{\n\
             \x20 constructor(name) {{ super('demo:index:Box', name, {{}}, {{}}); this.registerOutputs({{}}); }}\n\
             }}\n\
             new Box('{name}-' + config.require('size'));\n\
             exports.first = '{name}' + config.require('size'){upstream};\n\
             exports.ids = [];\n"
        );
        site.write(&format!("cloud/stacks/{name}/src/index.js"), &program);
    }
}

fn run(site: &Site, pulumi: &Path, verb: &str, more: &[&str]) -> DeployOutput {
    let yes: &[&str] = if verb == "deploy" { &["--yes"] } else { &[] };
    let usual = [verb, ID, "--environment", "dev", "--json"];
    let programs = pulumi.parent().map(PathBuf::from).unwrap_or_default();
    let path = std::env::var("PATH").unwrap_or_default();
    let output = site
        .command(&[&usual, yes, more].concat())
        .env("PATH", format!("{}:{path}", programs.display()))
        .output()
        .unwrap();
    DeployOutput {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// Names of the resources that a unit's state has.
fn recorded(site: &Site, unit: &str) -> Vec<String> {
    let file = site.deployment(&format!(
        ".nimbus/state/.pulumi/stacks/p/{ID}-{unit}-dev.json"
    ));
    let text = fs::read_to_string(&file).unwrap_or_else(|_| panic!("no {}", file.display()));
    let state: Value = serde_json::from_str(&text).unwrap();
    let resources = state["checkpoint"]["latest"]["resources"]
        .as_array()
        .cloned();
    let urns = resources.unwrap_or_default();
    let name = |resource: &Value| {
        let urn = resource["urn"].as_str().unwrap_or_default();
        urn.rsplit("::").next().unwrap_or_default().to_owned()
    };
    urns.iter().map(name).collect()
}

#[test]
fn units_move_between_the_engines_from_run_to_run() {
    let pulumi = tool_or_skip!(Tool::PulumiCli);
    let sdk = tool_or_skip!(Tool::NodeSdk);
    let site = Site::new(&sdk, &[("a", &[]), ("b", &["a"])]);
    plain_programs(&site);

    let first = run(&site, &pulumi, "deploy", &["--engine", "pulumi"]).ok();
    assert_eq!(
        (first.status("a"), first.status("b")),
        ("succeeded".into(), "succeeded".into())
    );
    assert_eq!(
        recorded(&site, "b"),
        [format!("p-{ID}-b-dev"), "b-1".to_owned()]
    );

    // The same on the embedded engine: nothing changed, and the state says so.
    let second = run(&site, &pulumi, "deploy", &[]).ok();
    assert_eq!(second.status("a"), "skipped", "{}", second.stdout);

    site.set_size("a", "2");
    let third = run(&site, &pulumi, "deploy", &[]).ok();
    assert_eq!(third.status("a"), "succeeded");
    assert!(recorded(&site, "a").contains(&"a-2".to_owned()));

    let gone = run(&site, &pulumi, "destroy", &["--engine", "pulumi", "--yes"]).ok();
    assert_eq!(gone.status("b"), "succeeded");
    assert_eq!(recorded(&site, "a"), [""; 0]);
}

/// Units of a rehearsal that have other steps than "same".
fn changed(ran: &DeployOutput) -> Vec<String> {
    let summary = ran.summary();
    let units = summary["units"].as_array().cloned().unwrap_or_default();
    let differs = |unit: &&Value| {
        let changes = unit["changes"].as_object().cloned().unwrap_or_default();
        changes.keys().any(|step| step != "same")
    };
    let names = units
        .iter()
        .filter(differs)
        .map(|unit| unit["name"].to_string());
    names.collect()
}

#[test]
fn a_rehearsal_moves_between_the_engines_and_keeps_to_itself() {
    let pulumi = tool_or_skip!(Tool::PulumiCli);
    let sdk = tool_or_skip!(Tool::NodeSdk);
    let site = Site::new(&sdk, &[("a", &[]), ("b", &["a"])]);
    let rehearse =
        |verb: &str, more: &[&str]| run(&site, &pulumi, verb, &[&["--rehearse"], more].concat());

    let first = rehearse("deploy", &["--engine", "pulumi"]).ok();
    assert_eq!(first.status("b"), "succeeded", "{}", first.stdout);
    let made = site.resources();
    assert!(made.iter().any(|one| one.contains("b-second")), "{made:#?}");
    let real = site.deployment(".nimbus/state");
    assert!(!real.exists(), "real state was touched");

    for more in [&["--force"][..], &["--force", "--engine", "pulumi"]] {
        let again = rehearse("deploy", more).ok();
        assert_eq!(again.status("a"), "succeeded", "{}", again.stdout);
        assert_eq!(changed(&again), [""; 0], "{more:?}: {}", again.stdout);
        assert_eq!(site.resources(), made, "{more:?}");
    }

    site.set_size("a", "2");
    let third = rehearse("deploy", &["--engine", "pulumi"]).ok();
    assert!(!changed(&third).is_empty(), "{}", third.stdout);
    rehearse("destroy", &["--engine", "pulumi"]).ok();
    assert_eq!(site.resources(), [""; 0]);
}

#[test]
fn orders_reach_the_official_engine_and_every_screen_says_rehearsal() {
    let pulumi = tool_or_skip!(Tool::PulumiCli);
    let sdk = tool_or_skip!(Tool::NodeSdk);
    let site = Site::new(&sdk, &[("a", &[])]);
    let order = "on: create, name: a-second, do: fail, message: the cloud is full";
    let path = std::env::var("PATH").unwrap();
    let folder = pulumi.parent().unwrap().display();
    let output = site
        .command(&["deploy", ID, "--environment", "dev", "--rehearse"])
        .args([
            "--engine",
            "pulumi",
            "--order",
            order,
            "--on-failure",
            "hold",
        ])
        .env("PATH", format!("{folder}:{path}"))
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let shown = text(&output.stdout) + &text(&output.stderr);
    assert!(!output.status.success(), "{shown}");
    assert!(shown.contains("the cloud is full"), "{shown}");
    assert!(shown.contains("REHEARSAL"), "{shown}");
    // The one that was made is recorded, and nothing is left open.
    let made = site.resources();
    assert!(made.iter().any(|one| one.contains("a-first")), "{made:#?}");
    assert!(
        !made.iter().any(|one| one.starts_with("pending")),
        "{made:#?}"
    );
}

const PROGRAM: &str = "const pulumi = require('@pulumi/pulumi');\n\
    const config = new pulumi.Config();\n\
    class Thing extends pulumi.CustomResource {\n\
    \x20 constructor(name, args) { super('shop:index:Thing', name, args); }\n\
    }\n\
    new Thing('one', { password: config.requireSecret('password'), list: config.requireObject('list') });\n";

#[test]
fn one_program_rehearses_on_the_official_engine_with_its_secrets_kept() {
    let pulumi = tool_or_skip!(Tool::PulumiCli);
    let sdk = tool_or_skip!(Tool::NodeSdk);
    let site = Site::new(&sdk, &[("a", &[])]);
    site.write("program/Pulumi.yaml", "name: notes\nruntime: nodejs\n");
    site.write("program/package.json", "{\"main\":\"index.js\"}\n");
    site.write("program/index.js", PROGRAM);
    let modules = site.path("program/node_modules");
    std::os::unix::fs::symlink(sdk.join("node_modules"), modules).unwrap();
    let path = std::env::var("PATH").unwrap();
    let folder = pulumi.parent().unwrap().display().to_string();
    let program = |arguments: &[&str]| {
        let output = site
            .command(arguments)
            .args(["--dir", "program", "--stack", "dev"])
            .env("PATH", format!("{folder}:{path}"))
            .output()
            .unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
        DeployOutput {
            code: output.status.code().unwrap_or(-1),
            stdout,
            stderr,
        }
    };
    program(&["stack-config", "set", "--secret", "password", "hunter2"]).ok();
    program(&["stack-config", "set", "--path", "list[0]", "x"]).ok();
    let settings = fs::read_to_string(site.path("program/Pulumi.dev.yaml")).unwrap();

    let up = ["program", "up", "--rehearse", "--yes"];
    let half = "on: create, do: half, message: not ready yet";
    let official = ["--engine", "pulumi"];
    let failed = program(&[&up[..], &official, &["--order", half]].concat());
    assert_ne!(failed.code, 0, "{}", failed.stdout);
    assert!(
        failed.stdout.contains("REHEARSAL Updating"),
        "{}",
        failed.stdout
    );
    let file = site.path("program/.nimbus/rehearsal/.pulumi/stacks/notes/dev.json");
    let state = fs::read_to_string(&file).unwrap();
    assert!(
        state.contains("not ready yet"),
        "a half-made object is kept: {state}"
    );
    assert!(!state.contains("hunter2"), "{state}");

    let done = program(&[&up[..], &official].concat()).ok();
    assert!(
        done.stdout.contains("REHEARSAL Updating"),
        "{}",
        done.stdout
    );
    let state = fs::read_to_string(&file).unwrap();
    assert!(!state.contains("not ready yet"), "{state}");
    let same = program(&up).ok();
    assert!(same.stdout.contains("2 unchanged"), "{}", same.stdout);
    let now = fs::read_to_string(site.path("program/Pulumi.dev.yaml")).unwrap();
    assert_eq!(now, settings, "the stack's settings were written to");
    program(&[
        "program",
        "destroy",
        "--rehearse",
        "--yes",
        "--engine",
        "pulumi",
    ])
    .ok();
}

#[test]
fn a_package_that_is_not_simulated_fails_instead_of_being_used() {
    let pulumi = tool_or_skip!(Tool::PulumiCli);
    let sdk = tool_or_skip!(Tool::NodeSdk);
    let site = Site::new(&sdk, &[("a", &[])]);
    let program = "const pulumi = require('@pulumi/pulumi');\n\
        const name = ['re', 'al'].join('');\n\
        new pulumi.CustomResource(name + ':index:Thing', 'thing', {});\n\
        exports.first = 'x';\nexports.ids = [];\n";
    site.write("cloud/stacks/a/src/index.js", program);
    let plugin = site.path("bin/pulumi-resource-real");
    let touched = site.path("touched");
    let script = format!("#!/bin/sh\ntouch {}\nexit 1\n", touched.display());
    site.write("bin/pulumi-resource-real", &script);
    let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(&plugin, executable).unwrap();
    let path = std::env::var("PATH").unwrap();
    let folder = pulumi.parent().unwrap().display();
    let output = site
        .command(&["deploy", ID, "--environment", "dev", "--rehearse"])
        .args(["--engine", "pulumi", "--on-failure", "hold"])
        .env(
            "PATH",
            format!("{}:{folder}:{path}", site.path("bin").display()),
        )
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let shown = text(&output.stdout) + &text(&output.stderr);
    assert!(!output.status.success(), "{shown}");
    assert!(shown.contains("pulumi-resource-real"), "{shown}");
    assert!(!touched.exists(), "a real plugin was started");
}
