//! What a stack's program reaches from its sandbox is the stack's own choice.

use std::fs;
use std::net::TcpListener;
use std::process::Command;

use serde_json::Value;

use crate::support::{DeployOutput, ID, Site, node_sdk};

/// A program that connects somewhere before it registers anything.
fn connects(host: &str, port: u16) -> String {
    format!(
        "const pulumi = require('@pulumi/pulumi');\n\
         const net = require('net');\n\
         exports.first = new Promise((resolve, reject) => {{\n\
         \x20 const socket = net.connect({{ host: '{host}', port: {port} }});\n\
         \x20 socket.on('connect', () => {{ socket.destroy(); resolve('reached'); }});\n\
         \x20 socket.on('error', reject);\n\
         }});\n\
         exports.ids = [];\n"
    )
}

/// Whether a program can be kept from the network here; says so if not.
pub(crate) fn isolates(test: &str) -> bool {
    let doctor = Command::new(env!("CARGO_BIN_EXE_nimbus"))
        .args(["doctor", "--json"])
        .output()
        .unwrap();
    let report: Value = serde_json::from_slice(&doctor.stdout).unwrap();
    let mut checks = report["checks"].as_array().unwrap().iter();
    let isolation = checks.find(|check| check["id"] == "isolation").unwrap();
    let reason = isolation["detail"].as_str().unwrap_or_default();
    if isolation["state"] != "ok" {
        nimbus_test_tools::record_skip(reason, test);
    }
    isolation["state"] == "ok"
}

fn deploy(site: &Site) -> DeployOutput {
    let words = ["deploy", ID, "--environment", "dev", "--rehearse"];
    let output = site
        .command(&words)
        .env("NIMBUS_ENGINE_SANDBOX", "best-effort")
        .output()
        .unwrap();
    DeployOutput {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

#[test]
fn a_stack_has_a_network_if_the_manifest_says_so_and_is_told_where_if_not() {
    let test = "a_stack_has_a_network_if_the_manifest_says_so_and_is_told_where_if_not";
    let Some(sdk) = node_sdk(test).filter(|_| isolates(test)) else {
        return;
    };
    let site = Site::new(&sdk, &[("a", &[])]);
    let source = "cloud/stacks/a/src/index.js";
    // An address that leads nowhere, from anywhere.
    site.write(source, &connects("192.0.2.1", 9));
    let failed = deploy(&site);
    assert_ne!(failed.code, 0, "{}", failed.stdout);
    let said = format!("{}{}", failed.stdout, failed.stderr);
    assert!(said.contains("network: full for its stack"), "{said}");

    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    site.write(source, &connects("127.0.0.1", port));
    let manifest = site.deployment("Deployment_Manifest.yaml");
    let text = fs::read_to_string(&manifest).unwrap();
    let text = text.replacen("\n    a:\n", "\n    a:\n      network: full\n", 1);
    assert!(text.contains("network: full"), "{text}");
    fs::write(&manifest, text).unwrap();
    let done = deploy(&site);
    assert_eq!(done.code, 0, "{}\n{}", done.stdout, done.stderr);

    let wrong = fs::read_to_string(&manifest)
        .unwrap()
        .replace("network: full", "network: some");
    fs::write(&manifest, wrong).unwrap();
    let refused = deploy(&site);
    assert_ne!(refused.code, 0);
    assert!(
        refused.stderr.contains("one of none, full"),
        "{}",
        refused.stderr
    );
}
