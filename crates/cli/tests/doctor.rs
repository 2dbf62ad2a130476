//! `nimbus doctor` on machines that are complete, incomplete and broken.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use std::collections::BTreeMap;
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use assert_cmd::Command;
use serde_json::Value;
use tempfile::TempDir;

/// A machine whose `PATH` holds only what a test puts there.
struct Machine {
    root: TempDir,
    variables: BTreeMap<String, String>,
}

impl Machine {
    fn new() -> Self {
        let root = TempDir::new().unwrap();
        for folder in ["bin", "home", "tmp", "work"] {
            fs::create_dir(root.path().join(folder)).unwrap();
        }
        Self {
            root,
            variables: BTreeMap::new(),
        }
    }

    fn path(&self, name: &str) -> String {
        self.root.path().join(name).display().to_string()
    }

    /// A program that answers every question with one line.
    fn program(self, name: &str, answer: &str) -> Self {
        let path = self.root.path().join("bin").join(name);
        fs::write(&path, format!("#!/bin/sh\necho '{answer}'\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        self
    }

    fn variable(mut self, name: &str, value: &str) -> Self {
        self.variables.insert(name.into(), value.into());
        self
    }

    fn settings(self, text: &str) -> Self {
        let folder = self.root.path().join("work/config");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("nimbus.yaml"), text).unwrap();
        self
    }

    fn doctor(&self, arguments: &[&str]) -> (i32, String) {
        let mut command = Command::cargo_bin("nimbus").unwrap();
        command
            .env_clear()
            .arg("doctor")
            .args(arguments)
            .current_dir(self.path("work"));
        command
            .env("PATH", self.path("bin"))
            .env("HOME", self.path("home"));
        command
            .env("TMPDIR", self.path("tmp"))
            .envs(&self.variables);
        let output = command.output().unwrap();
        assert!(
            output.stderr.is_empty(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        (
            output.status.code().unwrap(),
            String::from_utf8(output.stdout).unwrap(),
        )
    }

    /// Exit code, and the checks by name.
    fn checks(&self) -> (i32, BTreeMap<String, Value>) {
        let (code, stdout) = self.doctor(&["--json"]);
        let document: Value = serde_json::from_str(&stdout).unwrap();
        valid(&document);
        assert_eq!(document["ok"], code == 0);
        let checks = document["checks"].as_array().unwrap().iter();
        (
            code,
            checks
                .map(|check| (check["id"].as_str().unwrap().to_owned(), check.clone()))
                .collect(),
        )
    }
}

fn valid(document: &Value) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../docs/reference/json/doctor-v1.schema.json");
    let schema: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    assert!(jsonschema::is_valid(&schema, document), "{document}");
}

#[test]
fn a_variable_that_nothing_reads_is_said_to_be_without_effect() {
    assert!(!Machine::new().checks().1.contains_key("unused"));
    let machine = Machine::new()
        .variable("NIMBUS_ENV", "development")
        .variable("NIMBUS_S3_BUCKET", "states");
    let checks = machine.checks().1;
    let unused = &checks["unused"];
    assert_eq!(unused["state"], "warning", "{unused}");
    let detail = unused["detail"].as_str().unwrap();
    assert_eq!(detail, "not used: NIMBUS_ENV, NIMBUS_S3_BUCKET");
    assert!(
        !checks.contains_key("variables"),
        "its name is not misspelled: {checks:?}"
    );
}

#[test]
fn a_bare_machine_lists_everything_that_is_missing_with_a_fix() {
    let (code, checks) = Machine::new().checks();
    assert_eq!(code, 0, "nothing that every command needs is missing");
    for id in ["node", "npm", "python", "pulumi", "temporal"] {
        assert_eq!(checks[id]["state"], "missing", "{id}");
        assert!(!checks[id]["fix"].as_str().unwrap().is_empty(), "{id}");
    }
    for id in [
        "postgres",
        "initdb",
        "settings",
        "s3",
        "working_directory",
        "temporary_directory",
    ] {
        assert!(checks.contains_key(id), "{id}");
    }
    #[cfg(target_os = "linux")]
    for id in [
        "user_namespaces",
        "landlock",
        "seccomp",
        "no_new_privs",
        "cgroup_v2",
    ] {
        assert!(checks.contains_key(id), "{id}");
    }
}

#[test]
fn versions_are_read_and_old_ones_refused() {
    let machine = Machine::new()
        .program("node", "v20.19.0")
        .program("npm", "10.2.3");
    let (_, checks) = machine.checks();
    assert_eq!(checks["node"]["state"], "failed");
    assert!(
        checks["node"]["detail"]
            .as_str()
            .unwrap()
            .contains("older than 22.0")
    );
    assert_eq!(checks["npm"]["state"], "ok");
    assert!(
        checks["npm"]["detail"]
            .as_str()
            .unwrap()
            .starts_with("10.2.3 at ")
    );
    assert_eq!(checks["npm"]["fix"], Value::Null);
}

#[test]
fn the_fix_names_the_package_manager_of_the_machine() {
    let (_, checks) = Machine::new().program("dnf", "").checks();
    assert_eq!(checks["node"]["fix"], "sudo dnf install -y nodejs");
}

#[test]
fn broken_settings_are_a_finding_and_fail_the_command() {
    let (code, checks) = Machine::new().settings("loging: {}\n").checks();
    assert_eq!(code, 7);
    assert_eq!(checks["settings"]["state"], "failed");
    assert_eq!(checks["settings"]["fix"], "did you mean `logging`?");
    assert!(
        checks["settings"]["detail"]
            .as_str()
            .unwrap()
            .contains("config/nimbus.yaml:1:1")
    );
}

#[test]
fn secrets_in_a_file_that_others_can_read_are_told() {
    let machine = Machine::new().settings("db: {password: hunter2}\n");
    let file = machine.root.path().join("work/config/nimbus.yaml");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    let (_, checks) = machine.checks();
    assert_eq!(checks["secrets_file"]["state"], "warning");
    assert_eq!(
        checks["secrets_file"]["fix"],
        "chmod 600 config/nimbus.yaml"
    );
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(machine.checks().1["secrets_file"]["state"], "ok");
}

#[test]
fn an_object_store_is_asked_only_when_it_is_set_up() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let s3 = |machine: Machine| machine.checks().1["s3"]["state"].clone();
    let machine = || Machine::new().variable("NIMBUS_S3_ENDPOINT", &endpoint);
    assert_eq!(s3(Machine::new()), "not_used");
    assert_eq!(s3(machine()), "warning", "it answers, but there is no key");
    let keys = machine()
        .variable("NIMBUS_S3_ACCESS_KEY", "a")
        .variable("NIMBUS_S3_SECRET_KEY", "b");
    assert_eq!(s3(keys), "ok");
    drop(listener);
    assert_eq!(s3(machine()), "failed");
}

#[test]
fn a_home_that_is_no_directory_fails_the_command() {
    let machine = Machine::new();
    fs::write(machine.root.path().join("home/.pulumi"), "in the way").unwrap();
    let (code, checks) = machine.checks();
    assert_eq!(code, 7);
    assert_eq!(checks["pulumi_home"]["state"], "failed");
}

#[test]
fn a_program_that_hangs_up_or_says_nothing_is_told() {
    let machine = Machine::new().program("node", "no version here");
    assert_eq!(machine.checks().1["node"]["state"], "warning");
}

#[test]
fn the_text_form_has_headings_states_and_fixes() {
    let (_, text) = Machine::new().program("node", "v22.1.0").doctor(&[]);
    assert!(text.starts_with("Programs\n  ok       Node.js "), "{text}");
    for heading in [
        "\nSettings and services\n",
        "\nSandbox for programs\n",
        "\nDisk and permissions\n",
    ] {
        assert!(text.contains(heading), "{text}");
    }
    assert!(!text.contains('\x1b'), "no colours into a pipe");
}
