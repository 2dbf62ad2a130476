//! `nimbus sandbox audit`: an operator looks before trusting.

use std::os::unix::fs::symlink;

use crate::sandbox::{STRICT, isolates, said};
use crate::support::Site;

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
    assert_eq!(report["processes"], 2);
    let variables = report["variables"].to_string();
    assert!(!variables.contains("PASSPHRASE"), "{variables}");
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
