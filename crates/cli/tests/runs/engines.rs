//! Units on the official command line, and back.

use std::fs;
use std::path::{Path, PathBuf};

use nimbus_test_tools::{Tool, tool_or_skip};
use serde_json::Value;

use crate::support::{ID, Ran, Site};

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

fn run(site: &Site, pulumi: &Path, verb: &str, more: &[&str]) -> Ran {
    let usual = [verb, ID, "--environment", "dev", "--json"];
    let programs = pulumi.parent().map(PathBuf::from).unwrap_or_default();
    let path = std::env::var("PATH").unwrap_or_default();
    let output = site
        .command(&[&usual, more].concat())
        .env("PATH", format!("{}:{path}", programs.display()))
        .output()
        .unwrap();
    Ran {
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
