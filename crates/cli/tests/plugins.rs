//! `nimbus plugin …` as people and programs use it. What downloads survive is proved in the crate
//! that does them.
#![allow(clippy::panic, reason = "helpers of tests fail like tests")]

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};
use tempfile::TempDir;

struct Machine {
    home: TempDir,
}

impl Machine {
    fn new() -> Self {
        let home = tempfile::tempdir().expect("a folder");
        Self { home }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_nimbus"));
        command
            .args(arguments)
            .env_clear()
            .env("HOME", self.home.path())
            .current_dir(self.home.path());
        command
    }

    fn nimbus(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().expect("nimbus starts")
    }

    /// Two unpacked plugins, as somebody copied them from another machine.
    fn carried(&self) -> PathBuf {
        let folder = self.path("carried");
        for plugin in ["resource-one-v1.0.0", "analyzer-rules-v2.0.0"] {
            let (kind, rest) = plugin.split_once('-').expect("a kind");
            let (name, _) = rest.split_once('-').expect("a name");
            let place = folder.join(plugin);
            fs::create_dir_all(&place).expect("a folder");
            let program = place.join(format!("pulumi-{kind}-{name}"));
            fs::write(&program, "#!/bin/sh\n").expect("a file");
            fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("a mode");
        }
        folder
    }

    fn installed(&self, name: &str) -> bool {
        self.path(".pulumi/plugins").join(name).is_dir()
    }
}

fn document(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stdout)))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn plugins_of_a_folder_are_installed_listed_and_removed() {
    let machine = Machine::new();
    let carried = machine.carried();
    let from = carried.to_str().expect("a path");
    let output = machine.nimbus(&["plugin", "install", "--from", from, "--json"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let report = document(&output);
    assert_eq!(report["schema"], "nimbus/plugin-install/1");
    assert_eq!(report["plugins"].as_array().map(Vec::len), Some(2));
    assert_eq!(report["plugins"][1]["installed"], json!(true));
    assert_eq!(report["plugins"][1]["checksum"], "none");
    assert!(machine.installed("resource-one-v1.0.0") && machine.installed("analyzer-rules-v2.0.0"));

    let again = machine.nimbus(&["plugin", "install", "one", "--from", from]);
    assert!(
        text(&again.stdout).contains("was there already"),
        "{}",
        text(&again.stdout)
    );

    let listed = document(&machine.nimbus(&["plugin", "ls", "--json"]));
    assert_eq!(listed["plugins"][0]["kind"], "resource");
    assert_eq!(listed["plugins"][1]["name"], "rules");

    let refused = machine.nimbus(&["plugin", "rm", "one"]);
    assert!(!refused.status.success(), "nobody confirmed it");
    assert!(machine.installed("resource-one-v1.0.0"));
    let removed = machine.nimbus(&["plugin", "rm", "one", "1.0.0", "--yes"]);
    assert!(removed.status.success(), "{}", text(&removed.stderr));
    assert!(!machine.installed("resource-one-v1.0.0"));
    let unknown = machine.nimbus(&["plugin", "rm", "one", "--yes", "--json"]);
    assert_eq!(document(&unknown)["error"]["code"], "NIM-0300");
}

#[test]
fn plugins_go_to_the_home_that_is_configured() {
    let machine = Machine::new();
    let carried = machine.carried();
    let home = machine.path("elsewhere");
    let output = machine
        .command(&["plugin", "install", "one", "1.0.0", "--from"])
        .arg(&carried)
        .env("PULUMI_HOME", &home)
        .output()
        .expect("nimbus starts");
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(home.join("plugins/resource-one-v1.0.0").is_dir());
    assert!(!machine.installed("resource-one-v1.0.0"));
}

/// Answers every request with "not found" and tells what was asked for.
fn empty_mirror() -> (String, std::sync::mpsc::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = format!(
        "http://{}/mirror",
        listener.local_addr().expect("an address")
    );
    let (sender, asked) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut stream = BufReader::new(stream);
            let mut first = String::new();
            let read = stream.read_line(&mut first);
            let mut line = String::new();
            while stream
                .read_line(&mut line)
                .is_ok_and(|_| !line.trim().is_empty())
            {
                line.clear();
            }
            let answer = b"HTTP/1.1 404 X\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
            let written = stream.get_mut().write_all(answer);
            if read.is_err() || written.is_err() || sender.send(first).is_err() {
                return;
            }
        }
    });
    (address, asked)
}

#[test]
fn the_mirror_is_asked_and_a_plugin_that_it_lacks_is_an_error_with_a_next_step() {
    let machine = Machine::new();
    let (mirror, asked) = empty_mirror();
    let output = machine
        .command(&["plugin", "install", "one", "1.0.0", "--json"])
        .env("NIMBUS_ENGINE_PLUGIN_MIRROR_URL", mirror)
        .output()
        .expect("nimbus starts");
    let error = &document(&output)["error"];
    assert_eq!(error["code"], "NIM-0305");
    assert!(
        error["help"]
            .as_str()
            .is_some_and(|help| help.contains("--from DIR"))
    );
    let first = asked.recv().expect("somebody asked");
    assert!(
        first.starts_with("GET /mirror/pulumi-resource-one-v1.0.0-"),
        "{first}"
    );
}

#[test]
fn bad_names_never_become_paths() {
    let machine = Machine::new();
    for (name, version) in [
        ("../../escape", "1.0.0"),
        ("one", "1.0.0/../../x"),
        ("a/b", "1.0.0"),
    ] {
        let output = machine.nimbus(&["plugin", "install", name, version, "--json"]);
        assert_eq!(
            document(&output)["error"]["code"],
            "NIM-0304",
            "{name} {version}"
        );
    }
    assert!(!Path::exists(&machine.path(".pulumi")));
}
