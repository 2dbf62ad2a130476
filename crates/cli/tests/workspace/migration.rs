//! A tree of version 2.3 becomes a workspace, states and all.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use std::path::Path;

use nimbus_test_tools::{Tool, tool_or_skip};

use crate::support::WorkspaceSite;

const PROGRAM: &str = "\"use strict\";\n\
    const pulumi = require(\"@pulumi/pulumi\");\n\
    class Network extends pulumi.ComponentResource {\n  \
    constructor(name) { super(\"shop:index:Network\", name); this.registerOutputs({}); }\n}\n\
    new Network(\"main\");\n\
    exports.vpcId = new pulumi.Config(\"network\").get(\"vpcId\") || \"vpc-1\";\n";

fn old_tree() -> WorkspaceSite {
    let place = WorkspaceSite::empty();
    for (file, text) in [
        (
            "admin/v2/docs/Guide.md",
            "Programs are in ./aws/build/network/v2/src.\n",
        ),
        ("admin/v2/templates/custom/README.md", "Ours.\n"),
        (
            "aws/build/network/v2/resources/Pulumi.yaml",
            "name: network\nruntime: nodejs\nmain: index.2.2.js\ndescription: Networks\n",
        ),
        ("aws/build/network/v2/resources/index.2.2.js", PROGRAM),
        (
            "aws/build/network/v2/resources/package.json",
            "{\"name\": \"network\", \"main\": \"index.2.2.js\"}\n",
        ),
        (
            "aws/deploy/D1BRV40-Company-shop/src/Deployment_Manifest.yaml",
            "metadata: {deploymentId: D1BRV40, organization: Company, project: shop}\nspec:\n  environments:\n    \
             dev: {account: '111111111111', region: eu-west-1}\n    \
             staging: {account: '222222222222', region: eu-west-1}\n  stacks:\n    network: {priority: 20}\n",
        ),
    ] {
        place.write(file, text);
    }
    place
}

#[test]
fn a_tree_is_migrated_checked_and_brought_back() {
    let place = old_tree();
    let shown = place.run(&["migrate", "--dry-run"]);
    assert_eq!(shown.code, 0, "{shown:?}");
    assert!(
        shown
            .stdout
            .contains("back up aws/deploy/D1BRV40-Company-shop"),
        "{shown:?}"
    );
    assert!(!place.path("cloud").exists(), "a dry run does nothing");

    let ran = place.run(&["migrate"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let valid = place.run(&["validate", "D1BRV40"]);
    assert_eq!(valid.code, 0, "{valid:?}");
    assert!(
        place
            .path("aws/deploy/D1BRV40-Company-shop.v2.3.backup")
            .is_dir()
    );
    let again = place.run(&["migrate"]);
    assert!(again.stdout.contains("Nothing to do"), "{again:?}");

    let back = place.run(&["migrate-undo"]);
    assert_eq!(back.code, 0, "{back:?}");
    assert!(
        place
            .path("aws/build/network/v2/resources/index.2.2.js")
            .is_file()
    );
    assert!(
        place
            .read("aws/deploy/D1BRV40-Company-shop/src/Deployment_Manifest.yaml")
            .contains("staging")
    );
    assert_eq!(
        place.run(&["migrate-undo"]).code,
        3,
        "there is nothing more to undo"
    );
}

#[test]
fn single_steps_rename_environments_and_scripts() {
    let place = WorkspaceSite::with_deployment();
    let second = [
        "init",
        "D2TWO",
        "--org",
        "o",
        "--project",
        "p",
        "--template",
        "small",
    ];
    assert_eq!(place.run(&second).code, 0);
    let manifests = [
        crate::support::MANIFEST,
        "cloud/deploy/D2TWO-o-p/Deployment_Manifest.yaml",
    ];
    for file in manifests {
        let manifest = place.read(file);
        place.write(
            file,
            &manifest
                .replace("    prod:", "    staging:")
                .replace("        prod:", "        staging:")
                .replace("    - prod", "    - staging"),
        );
    }
    place.write("cloud/stacks/web/src/index.2.2.ts", "x\n");
    std::fs::remove_file(place.path("cloud/stacks/web/src/index.ts")).unwrap();
    assert_eq!(
        place.run(&["validate", "D1BRV40"]).code,
        0,
        "any name will do"
    );

    let usual = [
        "migrate-environment-names",
        "--from",
        "staging",
        "--to",
        "stage",
    ];
    let dry = place.run(&[&usual[..], &["--dry-run"]].concat());
    assert!(dry.stdout.contains("nothing was done"), "{dry:?}");
    assert_eq!(place.run(&usual).code, 0);
    for (id, file) in ["D1BRV40", "D2TWO"].into_iter().zip(manifests) {
        let environments = place.json(&["list-environments", id]);
        assert_eq!(environments["environments"][1]["name"], "stage");
        let text = place.read(file);
        assert!(!text.contains("staging"), "{text}");
    }

    let scripts = [
        "migrate-stack-scripts",
        "--from",
        "index.2.2.ts",
        "--to",
        "index.ts",
    ];
    assert_eq!(place.run(&scripts).code, 0);
    assert_eq!(place.read("cloud/stacks/web/src/index.ts"), "x\n");
    assert_eq!(place.run(&["migrate-undo"]).code, 0);
    assert!(place.path("cloud/stacks/web/src/index.2.2.ts").exists());
}

fn link_sdk(sdk: &Path, folder: &Path) {
    let modules = folder.join("node_modules");
    if !modules.exists() {
        std::os::unix::fs::symlink(sdk.join("node_modules"), modules).unwrap();
    }
}

/// Deployed by the old names, migrated, and then previewed: nothing would change.
#[test]
fn a_migrated_deployment_previews_as_unchanged() {
    let sdk = tool_or_skip!(Tool::NodeSdk);
    let place = old_tree();
    let old = "aws/build/network/v2/resources";
    link_sdk(&sdk, &place.path(old));
    let state = format!("file://{}", place.path("old-state").display());
    std::fs::create_dir(place.path("old-state")).unwrap();
    let up = place.run(&[
        "program",
        "up",
        "--yes",
        "--dir",
        old,
        "--backend",
        &state,
        "--stack",
        "dev",
    ]);
    assert_eq!(up.code, 0, "{up:?}");
    std::fs::remove_file(place.path(&format!("{old}/node_modules"))).unwrap();

    assert_eq!(place.run(&["migrate"]).code, 0);
    let scripts = [
        "migrate-stack-scripts",
        "--from",
        "index.2.2.js",
        "--to",
        "index.js",
    ];
    assert_eq!(place.run(&scripts).code, 0);
    let naming = [
        "migrate-stack-naming",
        "--from-format",
        "org/stack/env",
        "--to-format",
        "deployment-id-env",
        "--backend",
        &state,
    ];
    let old_state = place.path("old-state/.pulumi/stacks/network/dev.json");
    let before = std::fs::read(&old_state).unwrap();
    let dry = place.run(&[&naming[..], &["--dry-run"]].concat());
    assert!(
        dry.stdout
            .contains("copy state network/dev → shop/D1BRV40-network-dev"),
        "{dry:?}"
    );
    let named = place.run(&naming);
    assert_eq!(named.code, 0, "{named:?}");
    assert_eq!(
        std::fs::read(&old_state).unwrap(),
        before,
        "it stays as it is"
    );
    assert_ne!(
        place.run(&naming).code,
        0,
        "a second copy would hide the first"
    );

    link_sdk(&sdk, &place.path("cloud/stacks/network/src"));
    let preview = place.run(&["preview", "D1BRV40", "--environment", "dev", "--json"]);
    assert_eq!(preview.code, 0, "{preview:?}");
    for change in ["\"create\"", "\"update\"", "\"delete\"", "\"replace\""] {
        assert!(
            !preview.stdout.contains(change),
            "{change}: {}",
            preview.stdout
        );
    }
    let undone = place.run(&["migrate-undo"]);
    assert_eq!(undone.code, 0, "{undone:?}");
    let left = place.json(&["discover-resources", "D1BRV40"]);
    assert_eq!(left["resources"], serde_json::json!([]));
}
