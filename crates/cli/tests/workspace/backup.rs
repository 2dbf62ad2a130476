//! A whole workspace as one file, and back.

use std::fs;

use crate::support::{MANIFEST, WorkspaceSite};

#[test]
fn a_workspace_is_backed_up_and_comes_back() {
    let place = WorkspaceSite::with_deployment();
    let before = place.read(MANIFEST);
    let ran = place.run(&["workspace", "backup", "--output", "all.tgz"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.stdout.contains("files to HOME/all.tgz"), "{ran:?}");
    place.write(MANIFEST, "broken");

    let refused = place.json(&["workspace", "restore", "all.tgz"]);
    assert_eq!(refused["error"]["code"], "NIM-0759", "{refused}");
    assert_eq!(place.read(MANIFEST), "broken");

    let restored = place.json(&["workspace", "restore", "all.tgz", "--force"]);
    let aside = restored["aside"].as_str().unwrap();
    assert_eq!(place.read(MANIFEST), before);
    let aside = aside.strip_prefix("HOME/").unwrap();
    let kept = place
        .path(aside)
        .join(MANIFEST.strip_prefix("cloud/").unwrap());
    assert_eq!(fs::read_to_string(kept).unwrap(), "broken");
    assert_eq!(place.run(&["validate", "D1BRV40"]).code, 0);
}

#[test]
fn a_damaged_or_foreign_file_changes_nothing() {
    let place = WorkspaceSite::with_deployment();
    place.run(&["workspace", "backup", "--output", "all.tgz"]);
    let whole = fs::read(place.path("all.tgz")).unwrap();
    fs::write(place.path("cut.tgz"), &whole[..whole.len() / 2]).unwrap();
    place.write("text.tgz", "this is none");
    for file in ["cut.tgz", "text.tgz", "absent.tgz"] {
        let refused = place.json(&["workspace", "restore", file, "--force"]);
        assert_eq!(refused["error"]["code"], "NIM-0759", "{refused}");
        assert_eq!(place.run(&["validate", "D1BRV40"]).code, 0, "{file}");
        let into = place.json(&["workspace", "restore", file, "--into", "other"]);
        assert_eq!(into["error"]["code"], "NIM-0759", "{into}");
        assert!(!place.path("other").exists());
    }
}

/// Everything that users of the platform know, by name.
const COMMANDS: &[(&str, &[&str])] = &[
    (
        "init",
        &[
            "--org",
            "--project",
            "--domain",
            "--template",
            "--region",
            "--account-dev",
            "--account-stage",
            "--account-prod",
            "--interactive",
            "--from-file",
            "--vpc-cidr",
        ],
    ),
    ("deploy", &["--environment", "--force", "--confirm"]),
    ("deploy-stack", &["--environment", "--force", "--preview"]),
    ("destroy", &["--environment"]),
    ("destroy-stack", &["--environment"]),
    ("rollback", &["--environment", "--to-version"]),
    ("enable-environment", &[]),
    ("disable-environment", &[]),
    ("list-environments", &[]),
    (
        "register-stack",
        &["--description", "--defaults-file", "--dependencies"],
    ),
    ("update-stack", &[]),
    ("unregister-stack", &[]),
    ("list-stacks", &[]),
    (
        "register-all-stacks",
        &["--from-discovery", "--include-dependencies"],
    ),
    ("list-templates", &[]),
    ("show-template", &[]),
    ("validate-template", &[]),
    ("create-template", &["--from-deployment", "--description"]),
    ("update-template", &["--enable-stack", "--disable-stack"]),
    ("validate", &["--environment"]),
    ("validate-stack", &["--environment"]),
    ("validate-dependencies", &[]),
    ("validate-aws", &["--region"]),
    ("validate-pulumi", &[]),
    ("status", &["--environment", "--all-environments"]),
    ("list", &[]),
    ("logs", &["--environment", "--follow"]),
    ("discover", &[]),
    ("discover-resources", &[]),
    ("export-state", &["--environment", "--output"]),
    ("migrate-environment-names", &["--from", "--to"]),
    ("migrate-stack-naming", &["--from-format", "--to-format"]),
    ("migrate-stack-scripts", &["--from", "--to"]),
];

#[test]
fn help_names_every_command_and_every_flag() {
    let place = WorkspaceSite::empty();
    let overview = place.run(&["--help"]).stdout;
    assert_eq!(COMMANDS.len(), 33);
    for (command, flags) in COMMANDS {
        assert!(
            overview.contains(&format!("  {command} ")),
            "{command}:\n{overview}"
        );
        let help = place.run(&[command, "--help"]);
        assert_eq!(help.code, 0, "{command}");
        for flag in *flags {
            assert!(
                help.stdout.contains(flag),
                "{command} {flag}:\n{}",
                help.stdout
            );
        }
    }
}

#[test]
fn a_new_workspace_has_documents_shared_code_and_one_package_workspace() {
    let place = WorkspaceSite::empty();
    assert_eq!(place.run(&["new"]).code, 0);
    for name in [
        "cloud/tools/docs",
        "cloud/tools/templates",
        "cloud/stacks/shared/index.ts",
        "cloud/stacks/shared/state.ts",
        "cloud/stacks/shared/types.ts",
        "cloud/stacks/shared/utils.ts",
    ] {
        assert!(place.path(name).exists(), "{name}");
    }
    let package: serde_json::Value =
        serde_json::from_str(&place.read("cloud/stacks/package.json")).unwrap();
    assert_eq!(
        package["workspaces"],
        serde_json::json!(["shared", "*/src"])
    );
    let index = place.read("cloud/stacks/shared/index.ts");
    for module in ["state", "types", "utils"] {
        assert!(index.contains(&format!("./{module}")), "{index}");
    }
}
