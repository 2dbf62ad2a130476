//! The end of a deployment: refused while something is left, then one archive and nothing else.

use std::fs;
use std::path::{Path, PathBuf};

use nimbus_test_tools::{Tool, tool_or_skip};

use crate::support::{ID, Site};

const DECOMMISSION: &[&str] = &["decommission", ID, "--yes", "--json"];

/// A unit with a resource that no provider is needed for.
fn boxed(site: &Site, stack: &str) {
    let program = format!(
        "const pulumi = require('@pulumi/pulumi');\n\
         class Box extends pulumi.ComponentResource {{\n\
         \x20 constructor(name) {{ super('demo:index:Box', name, {{}}, {{}}); this.registerOutputs({{}}); }}\n\
         }}\n\
         new Box('{stack}');\nexports.first = 'x';\nexports.ids = [];\n"
    );
    site.write(&format!("cloud/stacks/{stack}/src/index.js"), &program);
}

fn real(site: &Site, verb: &str, environment: &str, more: &[&str]) {
    let usual = [verb, ID, "--environment", environment, "--yes", "--json"];
    // The last environment of several is meant, and alone.
    let gate = ["--confirm", "--skip-gate", "tried alone"];
    let gate = if verb == "deploy" {
        &gate[..]
    } else {
        &gate[..1]
    };
    site.run(&[&usual, gate, more].concat()).ok();
}

fn archives(site: &Site) -> Vec<PathBuf> {
    let entries = fs::read_dir(site.path("cloud/archive"))
        .into_iter()
        .flatten();
    entries.map(|entry| entry.unwrap().path()).collect()
}

fn refused(site: &Site, arguments: &[&str], code: &str) -> String {
    let ran = site.run(arguments);
    assert_ne!(ran.code, 0, "{}", ran.stdout);
    let summary = ran.summary();
    assert_eq!(summary["error"]["code"], code, "{summary}");
    assert!(site.deployment("Deployment_Manifest.yaml").exists());
    assert_eq!(archives(site), [""; 0].map(PathBuf::from));
    summary["error"]["message"].to_string()
}

fn exists(folder: &Path, name: &str) -> bool {
    folder.join(name).exists()
}

#[test]
fn a_deployment_with_resources_stays_and_without_becomes_an_archive() {
    let sdk = tool_or_skip!(Tool::NodeSdk);
    let site = Site::new(&sdk, &[("a", &[])]);
    boxed(&site, "a");
    real(&site, "deploy", "dev", &[]);
    real(&site, "deploy", "stage", &[]);
    let message = refused(&site, DECOMMISSION, "NIM-0762");
    assert!(message.contains("2 in dev, 2 in stage"), "{message}");
    real(&site, "destroy", "dev", &[]);
    let message = refused(&site, DECOMMISSION, "NIM-0762");
    assert!(
        message.contains("2 in stage") && !message.contains("dev"),
        "{message}"
    );
    real(&site, "destroy", "stage", &[]);
    // Nobody is there to say yes.
    refused(&site, &["decommission", ID, "--json"], "NIM-0010");

    let report = site.run(DECOMMISSION).ok().summary();
    assert_eq!(report["deployment"], ID);
    assert!(!site.deployment("").exists());
    assert!(!site.run(&["list"]).ok().stdout.contains(ID));
    let found = archives(&site);
    assert_eq!(found.len(), 1, "the archive and nothing else: {found:?}");
    assert_eq!(report["archive"], found[0].display().to_string());

    let file = found[0].display().to_string();
    site.run(&["workspace", "restore", &file, "--into", "looked-at"])
        .ok();
    let copy = site.path("looked-at");
    for name in [
        "Deployment_Manifest.yaml",
        "config",
        "logs/init.log",
        ".nimbus/runs",
        ".nimbus/state/.pulumi/history",
    ] {
        assert!(exists(&copy, name), "{name}");
    }
    let logs = fs::read_dir(copy.join("logs")).unwrap().count();
    assert!(logs > 1, "logs of runs are in it too");
    // Its id is free again.
    let init = [
        "init",
        ID,
        "--org",
        "o",
        "--project",
        "p",
        "--template",
        "graph",
    ];
    site.run(&init).ok();
}

#[test]
fn state_that_is_kept_elsewhere_counts_and_goes_too() {
    let sdk = tool_or_skip!(Tool::NodeSdk);
    let site = Site::new(&sdk, &[("a", &[])]);
    boxed(&site, "a");
    fs::create_dir(site.path("shared")).unwrap();
    let backend = format!("file://{}", site.path("shared").display());
    let there = ["--backend", backend.as_str()];
    real(&site, "deploy", "dev", &there);
    let message = refused(&site, DECOMMISSION, "NIM-0762");
    assert!(message.contains("2 in dev"), "{message}");
    real(&site, "destroy", "dev", &there);
    let state = format!("shared/.pulumi/stacks/p/{ID}-a-dev.json");
    assert!(site.path(&state).exists());

    let report = site.run(DECOMMISSION).ok().summary();
    assert_eq!(report["states"][0], format!("organization/p/{ID}-a-dev"));
    assert!(!site.path(&state).exists());
    let file = report["archive"].as_str().unwrap();
    site.run(&["workspace", "restore", file, "--into", "looked-at"])
        .ok();
    let history = site.path(&format!("looked-at/.nimbus/history/{ID}-a-dev"));
    assert!(fs::read_dir(history).unwrap().count() >= 2);
}
