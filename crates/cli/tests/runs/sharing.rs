//! Units of a deployment that use the same provider.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::time::{Duration, Instant};

use nimbus_test_tools::{Tool, tool_or_skip};

use crate::support::{DeployOutput, ID, LIMIT, Site};

/// A provider that a machine has installed. It leaves a line per process.
const PLUGIN: &str =
    "#!/bin/sh\necho $$ >> \"$HOME/processes\"\nexec node \"${0%/*}/provider.js\" \"$@\"\n";

const PROVIDER: &str = r#"
const { main } = require("@pulumi/pulumi/provider");
class Provider {
    constructor() { this.version = "1.0.0"; }
    async check(urn, olds, news) { return { inputs: news, failures: [] }; }
    async create(urn, inputs) { return { id: urn.split("::").pop(), outs: inputs }; }
    async delete() {}
}
main(new Provider(), process.argv.slice(2));
"#;

const UNITS: [&str; 4] = ["a", "b", "c", "d"];

fn site(sdk: &Path) -> Site {
    let site = Site::new(sdk, &UNITS.map(|name| (name, &[] as &[&str])));
    let folder = ".pulumi/plugins/resource-thing-v1.0.0";
    let plugin = format!("{folder}/pulumi-resource-thing");
    site.write(&plugin, PLUGIN);
    fs::set_permissions(site.path(&plugin), fs::Permissions::from_mode(0o755)).unwrap();
    site.write(&format!("{folder}/provider.js"), PROVIDER);
    let modules = site.path(&format!("{folder}/node_modules"));
    symlink(sdk.join("node_modules"), modules).unwrap();
    for name in UNITS {
        let program = format!(
            "const pulumi = require('@pulumi/pulumi');\n\
             const thing = new pulumi.CustomResource('thing:index:Thing', '{name}', {{}}, {{ version: '1.0.0' }});\n\
             exports.first = thing.id;\nexports.ids = [];\n"
        );
        site.write(&format!("cloud/stacks/{name}/src/index.js"), &program);
    }
    site
}

fn deploy(site: &Site, sharing: &str) -> DeployOutput {
    let arguments = [
        "deploy",
        ID,
        "--environment",
        "dev",
        "--yes",
        "--json",
        "--force",
    ];
    let mut command = site.command(&arguments);
    command.env("NIMBUS_ENGINE_SHARED_PROVIDERS", sharing);
    let output = command.output().unwrap();
    DeployOutput {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// The processes since the last look. All of them must be gone.
fn processes(site: &Site) -> usize {
    let list = site.path("processes");
    let pids = fs::read_to_string(&list).unwrap();
    let deadline = Instant::now() + LIMIT;
    for pid in pids.lines() {
        while is_running(pid) {
            assert!(Instant::now() < deadline, "{pid} was left behind");
            // tidy-allow(sleep): nothing tells us when another process has gone
            std::thread::sleep(Duration::from_millis(5));
        }
    }
    fs::remove_file(list).unwrap();
    pids.lines().count()
}

fn is_running(pid: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit(") ").next().unwrap_or_default();
    !state.is_empty() && !state.starts_with('Z')
}

#[test]
fn units_in_different_folders_share_a_provider_as_far_as_the_setting_says() {
    let sdk = tool_or_skip!(Tool::NodeSdk);
    let site = site(&sdk);
    let made = deploy(&site, "random,thing").ok();
    for unit in UNITS {
        assert_eq!(made.status(unit), "succeeded", "{}", made.stdout);
    }
    assert_eq!(processes(&site), 1);
    deploy(&site, "none").ok();
    assert_eq!(processes(&site), UNITS.len());
}
