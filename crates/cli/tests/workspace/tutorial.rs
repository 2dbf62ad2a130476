//! The tutorial, command by command, as a newcomer runs it.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use std::path::{Path, PathBuf};

use nimbus_test_tools::{Tool, tool_or_skip};

use crate::support::WorkspaceSite;

fn tutorial() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/tutorial.md");
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
    let npm = bin.join("npm");
    std::fs::write(&npm, script).unwrap();
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(&npm, std::fs::Permissions::from_mode(0o755)).unwrap();
    let nimbus = assert_cmd::cargo::cargo_bin("nimbus");
    std::os::unix::fs::symlink(nimbus, bin.join("nimbus")).unwrap();
    bin
}

#[test]
fn every_command_of_the_tutorial_works() {
    let library = tool_or_skip!(Tool::Library);
    let place = WorkspaceSite::empty();
    let bin = without_network(&place, &library);
    let commands = commands(&tutorial());
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
        .args(["-c", &script]);
    let ran = place.finish(command);
    assert_eq!(ran.code, 0, "{}\n{}", ran.stdout, ran.stderr);
}
