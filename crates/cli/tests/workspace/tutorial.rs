//! The tutorials, command by command, as a newcomer runs them.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use std::path::{Path, PathBuf};

use nimbus_test_tools::{Tool, tool_or_skip};

use crate::support::WorkspaceSite;

fn page(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../docs")
        .join(name);
    std::fs::read_to_string(path).unwrap()
}

/// Lines of the blocks marked `sh`, in order.
fn commands(text: &str) -> Vec<String> {
    let mut inside = false;
    let mut found = Vec::new();
    for line in text.lines() {
        match line {
            "```sh" => inside = true,
            "```" => inside = false,
            command if inside => found.push(command.to_owned()),
            _ => {}
        }
    }
    found
}

/// Everything that a shell would install from the network is there already.
fn without_network(place: &WorkspaceSite, library: &Path) -> PathBuf {
    let bin = place.path("bin");
    std::fs::create_dir_all(&bin).unwrap();
    let modules = library.join("node_modules");
    let script = format!("#!/bin/sh\nln -sfn '{}' node_modules\n", modules.display());
    executable(&bin.join("npm"), &script);
    let nimbus = assert_cmd::cargo::cargo_bin("nimbus");
    std::os::unix::fs::symlink(nimbus, bin.join("nimbus")).unwrap();
    bin
}

fn executable(path: &Path, script: &str) {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::write(path, script).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// Runs every command of a page in one shell, as a newcomer would type them.
fn follow(name: &str, place: &WorkspaceSite, bin: &Path, variables: &[(&str, &str)]) {
    let commands = commands(&page(name));
    assert!(commands.len() >= 12, "{commands:?}");
    let path = format!(
        "{}:{}",
        bin.display(),
        std::env::var("PATH").unwrap_or_default()
    );
    let script = format!(
        "set -e\n{}\n",
        commands
            .iter()
            .map(|c| format!("echo '$ {}'\n{c}", c.replace('\'', "'\\''")))
            .collect::<Vec<_>>()
            .join("\n")
    );
    let mut command = assert_cmd::Command::new("sh");
    command
        .current_dir(place.root())
        .env_clear()
        .env("PATH", path)
        .env("HOME", place.root())
        .env(
            "XDG_CACHE_HOME",
            nimbus_test_tools::compile_cache(Path::new(env!("CARGO_BIN_EXE_nimbus"))),
        )
        .envs(variables.iter().copied())
        .args(["-c", &script]);
    let ran = place.finish(command);
    assert_eq!(ran.code, 0, "{}\n{}", ran.stdout, ran.stderr);
}

#[test]
fn every_command_of_the_tutorial_works() {
    let library = tool_or_skip!(Tool::Library);
    let place = WorkspaceSite::empty();
    let bin = without_network(&place, &library);
    follow("tutorial.md", &place, &bin, &[]);
}

/// Making a virtual environment is linking one that has the SDK already.
fn with_virtual_environments(bin: &Path, python: &Path) {
    let environment = python.parent().unwrap().parent().unwrap();
    let script = format!("#!/bin/sh\nln -sfn '{}' \"$3\"\n", environment.display());
    executable(&bin.join("python3"), &script);
}

#[test]
fn every_command_of_the_page_about_adoption_works() {
    let sdk = tool_or_skip!(Tool::NodeSdk);
    let python = tool_or_skip!(Tool::Python);
    let place = WorkspaceSite::empty();
    let bin = without_network(&place, &sdk);
    with_virtual_environments(&bin, &python);
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let examples = examples.to_str().unwrap();
    follow("adopt.md", &place, &bin, &[("EXAMPLES", examples)]);
    // Whatever the page did with them, the passwords are nowhere in clear.
    let mut open = vec![
        place.path("cloud"),
        place.path("orders"),
        place.path("states"),
    ];
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            let kind = entry.file_type().unwrap();
            if kind.is_dir() {
                open.push(entry.path());
            } else if kind.is_file() {
                let content = std::fs::read(entry.path()).unwrap();
                let text = String::from_utf8_lossy(&content);
                assert!(!text.contains("hunter2"), "{}", entry.path().display());
            }
        }
    }
}
