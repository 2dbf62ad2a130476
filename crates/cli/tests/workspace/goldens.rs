//! What commands say, word for word: to people and with `--json`.

use crate::support::{MANIFEST, WorkspaceSite, without_trace};

macro_rules! golden {
    ($name:literal, $place:expr, $arguments:expr) => {
        let ran = $place.run($arguments);
        insta::assert_snapshot!($name, ran.shown());
    };
}

macro_rules! golden_json {
    ($name:literal, $place:expr, $arguments:expr) => {
        let document = without_trace($place.json($arguments));
        insta::assert_json_snapshot!($name, document);
    };
}

#[test]
fn registration() {
    let place = WorkspaceSite::new();
    golden!(
        "register",
        place,
        &["register-stack", "queue", "--dependencies", "network"]
    );
    golden!("register_again", place, &["register-stack", "queue"]);
    golden_json!("register_again_json", place, &["register-stack", "queue"]);
    golden!(
        "register_without_program",
        place,
        &["register-stack", "quque"]
    );
    golden!("register_bad_name", place, &["register-stack", "../queue"]);
    golden!(
        "update",
        place,
        &["update-stack", "queue", "--priority", "5"]
    );
    golden!(
        "update_to_a_cycle",
        place,
        &["update-stack", "network", "--dependencies", "web"]
    );
    golden!("update_nothing", place, &["update-stack", "queue"]);
    golden!("list_stacks", place, &["list-stacks"]);
    golden!("discover", place, &["discover"]);
    golden!("unregister_used", place, &["unregister-stack", "network"]);
    golden_json!("unregister_json", place, &["unregister-stack", "queue"]);
    golden!(
        "register_all",
        place,
        &["register-all-stacks", "--from-discovery"]
    );
}

#[test]
fn templates() {
    let place = WorkspaceSite::with_deployment();
    golden!(
        "create_template",
        place,
        &["create-template", "ours", "--from-deployment", "D1BRV40"]
    );
    golden!(
        "create_template_again",
        place,
        &["create-template", "ours", "--from-deployment", "D1BRV40"]
    );
    golden!("show_template", place, &["show-template", "ours"]);
    golden!("list_templates", place, &["list-templates"]);
    golden_json!(
        "update_template_json",
        place,
        &["update-template", "ours", "--disable-stack", "web"]
    );
    golden!(
        "update_template_broken",
        place,
        &["update-template", "small", "--disable-stack", "network"]
    );
    golden!(
        "update_template_unknown",
        place,
        &["update-template", "our", "--enable-stack", "web"]
    );
    golden!("validate_template", place, &["validate-template", "small"]);
}

#[test]
fn validation() {
    let place = WorkspaceSite::with_deployment();
    golden!(
        "valid",
        place,
        &["validate", "D1BRV40", "--environment", "dev"]
    );
    let bad = place
        .read(MANIFEST)
        .replace("network:vpcId", "network:vpcIdd")
        .replace("size: 1", "size: '{{RUNTIME:aws:weather:today}}'");
    place.write(MANIFEST, &bad);
    place.write(
        "cloud/stacks/web/src/Pulumi.yaml",
        "name: web\nruntime: nodejs\nmain: x.ts\n",
    );
    golden!(
        "invalid",
        place,
        &["validate", "D1BRV40", "--environment", "dev"]
    );
    golden_json!(
        "invalid_json",
        place,
        &["validate", "D1BRV40", "--environment", "dev"]
    );
    golden!("dependencies", place, &["validate-dependencies", "D1BRV40"]);
    golden!(
        "unknown_stack",
        place,
        &["validate-stack", "D1BRV40", "wep", "--environment", "dev"]
    );
    golden!("tabs", place, &{
        place.write(MANIFEST, "spec:\n\tstacks: {}\n");
        ["validate", "D1BRV40"]
    });
    golden!(
        "no_credentials",
        place,
        &["validate-aws", "--region", "eu-west-1"]
    );
    golden_json!(
        "no_credentials_json",
        place,
        &["validate-aws", "--region", "eu-west-1"]
    );
    golden!("no_region", place, &["validate-aws"]);
}

#[test]
fn migration() {
    let place = WorkspaceSite::with_deployment();
    golden!("nothing_to_migrate", place, &["migrate"]);
    golden!("nothing_to_undo", place, &["migrate-undo"]);
    golden!(
        "odd_format",
        place,
        &["migrate-stack-naming", "--from-format", "x"]
    );
    golden!(
        "nothing_to_rename",
        place,
        &[
            "migrate-environment-names",
            "--from",
            "staging",
            "--to",
            "stage"
        ]
    );
    golden_json!(
        "rename_to_nothing_json",
        place,
        &[
            "migrate-environment-names",
            "--from",
            "staging",
            "--to",
            "test"
        ]
    );
    place.write("cloud/stacks/web/src/index.2.2.ts", "");
    let scripts = [
        "migrate-stack-scripts",
        "--from",
        "index.2.2.ts",
        "--to",
        "index.ts",
    ];
    golden!("script_in_the_way", place, &scripts);
    golden_json!(
        "scripts_dry_run_json",
        place,
        &[&scripts[..], &["--dry-run"]].concat()
    );
}

#[test]
fn resources_of_nothing() {
    let place = WorkspaceSite::with_deployment();
    golden!("no_resources", place, &["discover-resources"]);
    golden_json!(
        "no_resources_json",
        place,
        &["discover-resources", "D1BRV40"]
    );
    golden!(
        "rotate_nothing",
        place,
        &["rotate", "D1BRV40", "web", "--environment", "dev"]
    );
}
