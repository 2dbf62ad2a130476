//! `nimbus sandbox audit`: an operator looks before trusting.

use std::os::unix::fs::symlink;
use std::process::Command;

use crate::sandbox::{STRICT, isolates, said};
use crate::support::{Site, finish};

#[test]
fn an_operator_sees_what_a_program_could_do_without_running_it() {
    if !isolates("sandbox audit") {
        return;
    }
    let site = Site::new();
    site.write(
        "program/index.js",
        "require('fs').writeFileSync('/tmp/ran', '')",
    );
    let arguments = [&["sandbox", "audit"], &STRICT[..2]].concat();
    let json = [&arguments[..], &["--json", "--", "sh", "index.js"]].concat();
    let report = site.run(&json).ok().json();
    let paths = |list: &str| -> Vec<String> {
        let list = report[list].as_array().unwrap().iter();
        list.map(|place| place["path"].as_str().unwrap().to_owned())
            .collect()
    };
    let project = site
        .path("program")
        .canonicalize()
        .unwrap()
        .display()
        .to_string();
    assert!(paths("sees").contains(&project), "{report}");
    assert!(
        !paths("sees")
            .iter()
            // tidy-allow(path): the homes that a sandbox must not show
            .any(|path| path.starts_with("/root/.") || path == "/home")
    );
    let mut writes = paths("writes");
    writes.retain(|path| !path.starts_with("/dev/") || path == "/dev/shm");
    assert_eq!(writes, ["/dev/shm", "/tmp"], "{report}");
    assert_eq!(report["privileges"], serde_json::json!([]), "{report}");
    assert_eq!(report["interfaces"], serde_json::json!(["lo"]), "{report}");
    assert_eq!(report["no_new_privileges"], true);
    assert_eq!(report["system_calls_filtered"], true);
    assert_eq!(report["processes"], 1);
    let variables = report["variables"].to_string();
    assert!(!variables.contains("PASSPHRASE"), "{variables}");
    // What a program has beside its search path, and whose word the sandbox is.
    assert!(variables.contains("PULUMI_CONFIG"), "{variables}");
    assert!(paths("sees").contains(&"/proc".to_owned()), "{report}");
    let chosen = report["chosen"].to_string();
    for origin in ["--sandbox", "NIMBUS_ENGINE_SANDBOX_ROOTS"] {
        assert!(chosen.contains(origin), "{chosen}");
    }
    assert_eq!(report["limits"].as_array().unwrap().len(), 7);

    let text = site
        .run(&[&arguments[..], &["--", "sh"]].concat())
        .ok()
        .stdout;
    for words in [
        "Sees, read-only",
        "Can write",
        "Can start",
        "Can use up",
        "no privileges",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    symlink("/etc", site.path("program/node_modules")).unwrap();
    let refused = site.run(&[&arguments[..], &["--", "sh"]].concat());
    assert!(said(&refused).contains("NIM-0407"), "{}", said(&refused));
    let off = site
        .run(&["sandbox", "audit", "--sandbox", "off", "--", "sh"])
        .failed(2);
    assert!(off.stderr.contains("--sandbox strict"), "{}", off.stderr);
}

/// Whoever computes last already has nothing to give up, and could not go back.
#[test]
fn a_sandbox_is_closed_by_whoever_is_nice_already() {
    if !isolates("sandbox of a nice process") {
        return;
    }
    let site = Site::new();
    let usual = site.command(&["sandbox", "audit", "--sandbox", "strict", "--", "sh"]);
    for nice in ["5", "12", "19"] {
        let mut command = Command::new("nice");
        command
            .args(["-n", nice])
            .arg(usual.get_program())
            .args(usual.get_args())
            .env_clear()
            .current_dir(site.path("program"));
        for (name, value) in usual.get_envs() {
            command.env(name, value.unwrap_or_default());
        }
        finish(command.output().unwrap()).ok();
    }
}
