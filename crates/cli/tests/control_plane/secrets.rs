//! A secret that goes in is found nowhere in clear: not on disk, not in logs, not in a process.

use std::fs;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use nimbus_test_tools::{Tool, tool_or_skip};

use crate::support::{PASSWORD, Site};

const TOKEN_SECRET: &str = "canary-of-the-tokens \"quoted\" and long enough";
const NEW_PASSWORD: &str = "canary umbrella lamp 93";

/// The forms in which a secret could show.
fn forms(secret: &str) -> Vec<Vec<u8>> {
    let escaped = serde_json::to_string(secret).unwrap();
    vec![
        secret.as_bytes().to_vec(),
        escaped.trim_matches('"').as_bytes().to_vec(),
        STANDARD
            .encode(secret)
            .trim_end_matches('=')
            .as_bytes()
            .to_vec(),
    ]
}

pub(crate) fn contains(bytes: &[u8], secret: &str) -> bool {
    forms(secret).iter().any(|form| {
        bytes
            .windows(form.len())
            .any(|window| window == form.as_slice())
    })
}

pub(crate) fn search(folder: &Path, secret: &str, found: &mut Vec<String>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            search(&path, secret, found);
        } else if kind.is_file() && contains(&fs::read(&path).unwrap_or_default(), secret) {
            found.push(path.display().to_string());
        }
    }
}

#[test]
fn canaries_are_in_no_file_no_log_no_answer_and_no_other_process() {
    let key = STANDARD.encode("canary-key-of-stored-secrets-32b");
    let site = Site::new(&tool_or_skip!(Tool::Postgres))
        .with("NIMBUS_JWT_SECRET", TOKEN_SECRET)
        .with("NIMBUS_SECRET_KEY", &key)
        .with("NIMBUS_LOGGING_LEVEL", "DEBUG");
    let server = site.up();
    site.set_up(&server);
    let create = [
        "user",
        "create",
        "jane@acme.example",
        "--password-stdin",
        "--json",
    ];
    let mut said = site.run_with(&create, &format!("{NEW_PASSWORD}\n"));
    let mut answers = said.stdout.clone() + &said.stderr;
    for arguments in [
        ["config", "show"].as_slice(),
        &["audit", "export"],
        &["audit", "list"],
        &["user", "list"],
    ] {
        said = site.run_with(arguments, "");
        answers.push_str(&(said.stdout + &said.stderr));
    }
    assert!(
        answers.contains("jane@acme.example"),
        "the search finds what is there"
    );
    let database = site.postmaster().unwrap();
    let mut environments = fs::read(format!("/proc/{database}/environ")).unwrap_or_default();
    let children = format!("/proc/{database}/task/{database}/children");
    for child in fs::read_to_string(children).unwrap().split_whitespace() {
        environments.extend(fs::read(format!("/proc/{child}/environ")).unwrap_or_default());
        environments.extend(fs::read(format!("/proc/{child}/cmdline")).unwrap_or_default());
    }
    assert_eq!(server.stop(), 0);
    for secret in [
        TOKEN_SECRET,
        NEW_PASSWORD,
        PASSWORD,
        "canary-key-of-stored-secrets-32b",
        &key,
    ] {
        let mut files = Vec::new();
        search(site.folder.path(), secret, &mut files);
        assert!(files.is_empty(), "{secret} is in {files:?}");
        assert!(!contains(answers.as_bytes(), secret), "{secret} was said");
        assert!(!contains(&environments, secret), "{secret} is in a process");
    }
}
