//! `nimbus stack-config`.

use std::io::Write as _;
use std::process::Stdio;

use serde_json::json;

use crate::support::{Site, node_sdk};

#[test]
fn values_are_set_read_listed_and_removed_without_touching_the_rest() {
    let site = Site::new();
    site.write(
        "program/Pulumi.dev.yaml",
        "# settings of dev\nconfig:\n  notes:size: 3 # keep\n",
    );
    site.config(&["set", "greeting", "hello world"]).ok();
    site.config(&["set", "--path", "servers[0].name", "a"]).ok();
    site.config(&["set", "--path", "servers[0].port", "80"])
        .ok();
    site.config(&["set", "aws:region", "eu-west-1"]).ok();
    let file = site.read("program/Pulumi.dev.yaml");
    assert!(
        file.starts_with("# settings of dev\nconfig:\n  notes:size: 3 # keep\n"),
        "{file}"
    );
    assert_eq!(
        site.config(&["get", "greeting"]).ok().stdout,
        "hello world\n"
    );
    assert_eq!(
        site.config(&["get", "--path", "servers[0].port"])
            .ok()
            .stdout,
        "80\n"
    );
    let listed = site.config(&["ls", "--json"]).ok().json();
    let keys: Vec<&str> = listed["entries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| entry["key"].as_str().unwrap())
        .collect();
    assert_eq!(
        keys,
        [
            "aws:region",
            "notes:greeting",
            "notes:servers",
            "notes:size"
        ]
    );
    assert_eq!(
        listed["entries"][2]["value"],
        json!([{"name": "a", "port": 80}])
    );
    site.config(&["rm", "greeting"]).ok();
    let missing = site.config(&["get", "greeting"]).failed(3);
    assert!(missing.stderr.contains("NIM-0611"), "{}", missing.stderr);
    site.config(&["rm", "greeting"]).failed(3);
    site.config(&["set", "a:b:c:d", "x"]).failed(2);
}

#[test]
fn secrets_are_encrypted_in_the_file_and_shown_on_request_only() {
    let site = Site::new();
    let mut command = site.command(&["stack-config", "set", "token", "--secret"]);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"sesame\n").unwrap();
    assert!(child.wait().unwrap().success());
    let file = site.read("program/Pulumi.dev.yaml");
    assert!(
        file.contains("secure: v1:") && file.contains("encryptionsalt: v1:"),
        "{file}"
    );
    assert!(!file.contains("sesame"), "{file}");
    site.config(&["set", "plain", "text"]).ok();

    let listed = site.config(&["ls"]).ok();
    assert!(
        listed.stdout.contains("notes:token  [secret]"),
        "{}",
        listed.stdout
    );
    let shown = site.config(&["ls", "--show-secrets"]).ok();
    assert!(
        shown.stdout.contains("notes:token  sesame"),
        "{}",
        shown.stdout
    );
    assert_eq!(site.config(&["get", "token"]).ok().stdout, "sesame\n");

    // Only what is secret needs the passphrase, and a wrong one opens nothing.
    let with_passphrase = |passphrase: Option<&str>, key: &str| {
        let mut command = site.command(&["stack-config", "get", key]);
        command.env_remove("PULUMI_CONFIG_PASSPHRASE");
        passphrase.map(|text| command.env("PULUMI_CONFIG_PASSPHRASE", text));
        let output = command.output().unwrap();
        (
            output.status.code().unwrap(),
            String::from_utf8(output.stderr).unwrap(),
        )
    };
    assert_eq!(with_passphrase(None, "plain").0, 0);
    let (code, stderr) = with_passphrase(None, "token");
    assert!(code == 2 && stderr.contains("NIM-0237"), "{stderr}");
    let (code, stderr) = with_passphrase(Some("wrong"), "token");
    assert!(code == 2 && stderr.contains("NIM-0238"), "{stderr}");
}

#[test]
fn values_given_to_an_update_are_saved_first_and_no_other_command_takes_them() {
    let test = "values_given_to_an_update_are_saved_first_and_no_other_command_takes_them";
    let Some(sdk) = node_sdk(test) else {
        return;
    };
    let site = Site::notes(&sdk);
    let given = [
        "--config",
        "greeting=good day",
        "--config",
        "aws:region=eu-west-1",
    ];
    site.program(&[&["up", "--yes", "--skip-preview"], &given[..]].concat())
        .ok();
    assert_eq!(site.read("cloud/first.note"), "good day");
    let file = site.read("program/Pulumi.dev.yaml");
    assert!(file.contains("aws:region: eu-west-1"), "{file}");
    let preview = site.program(&["preview", "--config", "greeting=hi"]).ok();
    assert!(preview.stdout.contains("update"), "{}", preview.stdout);
    assert_eq!(site.config(&["get", "greeting"]).ok().stdout, "hi\n");

    let refused = site
        .program(&["refresh", "--yes", "--config", "greeting=x"])
        .failed(2);
    assert!(
        refused.stderr.contains("stack-config set"),
        "{}",
        refused.stderr
    );
    site.program(&["outputs", "--config", "a.yaml", "--config", "b.yaml"])
        .failed(2);
}
