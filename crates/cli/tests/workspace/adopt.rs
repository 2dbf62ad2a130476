//! Existing Pulumi projects become components of a deployment.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use nimbus_test_tools::{AwsServer, Tool, tool_or_skip};
use serde_json::{Value, json};

use crate::support::{WorkspaceOutput, WorkspaceSite};

const MANIFEST: &str = "cloud/deploy/D1ACME-organization-acme/Deployment_Manifest.yaml";
const MAPS: &[&str] = &["--map", "dev=test", "--map", "prod=live"];
const PORTAL_MAPS: &[&str] = &[
    "--map",
    "base-dev=portal-base@test",
    "--map",
    "site-dev=portal-site@test",
];

/// The examples, with the packages that they need.
fn examples(sdk: &Path) -> WorkspaceSite {
    let place = WorkspaceSite::empty();
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/adopt");
    copy(&from, place.root());
    for project in ["network", "portal"] {
        let modules = place.path(project).join("node_modules");
        symlink(sdk.join("node_modules"), modules).unwrap();
    }
    fs::create_dir(place.path("states")).unwrap();
    place
}

pub(crate) fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().flatten() {
        let target = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &target),
            false => drop(fs::copy(entry.path(), target).unwrap()),
        }
    }
}

/// Every file below a folder, with its content; links are left out.
pub(crate) fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut open = vec![folder.to_owned()];
    while let Some(next) = open.pop() {
        for entry in fs::read_dir(next).unwrap().flatten() {
            let kind = entry.file_type().unwrap();
            if kind.is_dir() {
                open.push(entry.path());
            } else if kind.is_file() {
                found.insert(entry.path(), fs::read(entry.path()).unwrap());
            }
        }
    }
    found
}

pub(crate) fn ok(ran: WorkspaceOutput) -> WorkspaceOutput {
    assert_eq!(ran.code, 0, "{}\n{}", ran.stdout, ran.stderr);
    ran
}

fn state_url(place: &WorkspaceSite) -> String {
    format!("file://{}", place.path("states").display())
}

/// Runs a program as whoever had it before did.
fn up(place: &WorkspaceSite, project: &str, stack: &str) {
    let mut command =
        place.command(&["program", "up", "--stack", stack, "--yes", "--no-typecheck"]);
    command.current_dir(place.path(project));
    command.env("PULUMI_BACKEND_URL", state_url(place));
    ok(place.finish(command));
}

fn adopt(place: &WorkspaceSite, more: &[&str]) -> WorkspaceOutput {
    let usual = [
        "adopt",
        "--id",
        "D1ACME",
        "--project",
        "acme",
        "--no-typecheck",
    ];
    place.run(&[&usual, more].concat())
}

pub(crate) fn json_of(ran: &WorkspaceOutput) -> Value {
    let last = ran.stdout.lines().last().unwrap_or_default();
    let read = serde_json::from_str(last);
    assert!(read.is_ok(), "{}\n{}", ran.stdout, ran.stderr);
    read.unwrap()
}

fn urns(state: &Value) -> Vec<&str> {
    let resources = state["deployment"]["resources"].as_array().unwrap();
    resources
        .iter()
        .map(|one| one["urn"].as_str().unwrap())
        .collect()
}

#[test]
fn states_come_along_with_their_urns_and_a_preview_plans_nothing() {
    let sdk = tool_or_skip!(Tool::NodeSdk);
    let place = examples(&sdk);
    up(&place, "network", "dev");
    let before = files(&place.path("network"));
    let states = files(&place.path("states"));
    let url = state_url(&place);
    let ran = adopt(
        &place,
        &[&["network", "--state", &url, "--json"], MAPS].concat(),
    );
    let report = json_of(&ok(ran));
    assert_eq!(report["verified"], json!(["test"]), "{report}");
    assert_eq!(report["states"][0]["resources"], json!(4), "{report}");
    assert_eq!(
        report["components"][0]["stacks"],
        json!({"test": "dev", "live": "prod"})
    );
    assert_eq!(
        files(&place.path("network")),
        before,
        "the project is only read"
    );
    assert_eq!(files(&place.path("states")), states, "so are the states");
    // What was taken over is there, before any run; and the log has what was done, and when.
    let status = place.json(&["status", "D1ACME"]);
    let stack = |at: usize| {
        let one = &status["environments"][at]["stacks"][0];
        (one["state"].clone(), one["resources"].clone())
    };
    assert_eq!(stack(0), (json!("adopted"), json!(3)), "{status}");
    assert_eq!(stack(1), (json!("not_deployed"), json!(0)), "{status}");
    let log = place.read("cloud/deploy/D1ACME-organization-acme/logs/init.log");
    let lines: Vec<&str> = log.lines().map(|line| &line[22..]).collect();
    let copied = format!("[INFO] [adopt] Copied the state of organization/network/dev from {url}");
    assert_eq!(lines, ["[INFO] [adopt] Adopted network", &copied], "{log}");

    let exported = place.path("exported.json");
    let output = exported.to_str().unwrap();
    ok(place.run(&[
        "export-state",
        "D1ACME",
        "--environment",
        "test",
        "--output",
        output,
    ]));
    let exported: Value = serde_json::from_slice(&fs::read(exported).unwrap()).unwrap();
    let found = urns(&exported["stacks"]["network"]);
    assert!(
        found[0].starts_with("urn:pulumi:dev::network::pulumi:pulumi:Stack::"),
        "{found:?}"
    );
    assert_eq!(found.len(), 4);

    let deploy = [
        "deploy",
        "D1ACME",
        "--environment",
        "test",
        "--yes",
        "--no-typecheck",
        "--json",
    ];
    let summary = json_of(&ok(place.run(&deploy)));
    assert_eq!(summary["units"][0]["status"], "succeeded", "{summary}");
    let changes = summary["units"][0]["changes"].as_object().unwrap();
    assert_eq!(changes.keys().collect::<Vec<_>>(), ["same"], "{summary}");
    let again = json_of(&ok(place.run(&deploy)));
    assert_eq!(again["units"][0]["status"], "skipped", "{again}");
    let undone = place.run(&["adopt", "--undo", "D1ACME"]);
    assert!(undone.stderr.contains("NIM-0772"), "{undone:?}");
    leaves(&place);
    assert!(place.path(MANIFEST).exists());
}

/// Whoever leaves takes a state along in Pulumi's own form, to the project's stack of the same name.
fn leaves(place: &WorkspaceSite) {
    let export = ["export-state", "D1ACME", "--environment", "test"];
    let alone = ["--stack", "network", "--output", "network.json"];
    ok(place.run(&[&export[..], &alone].concat()));
    fs::create_dir(place.path("left")).unwrap();
    let left = |arguments: &[&str]| {
        let mut command = place.command(arguments);
        let url = format!("file://{}", place.path("left").display());
        command.current_dir(place.path("network"));
        command.env("PULUMI_BACKEND_URL", url);
        ok(place.finish(command));
    };
    let file = ["--stack", "dev", "--file", "../network.json", "--yes"];
    left(&[&["state", "import"], &file[..]].concat());
    let same = ["--stack", "dev", "--expect-no-changes", "--no-typecheck"];
    left(&[&["program", "preview"], &same[..]].concat());
}

/// The promise that nothing of a project is changed holds for its packages, too; and what was not compared is not called
/// compared.
#[test]
fn without_packages_nothing_is_installed_and_nothing_is_called_compared() {
    let sdk = tool_or_skip!(Tool::NodeSdk);
    let place = examples(&sdk);
    up(&place, "network", "dev");
    fs::remove_file(place.path("network/node_modules")).unwrap();
    place.write(
        "network/package-lock.json",
        "{\"lockfileVersion\": 3, \"packages\": {}}\n",
    );
    let url = state_url(&place);
    let asked = [&["network", "--state", &url], MAPS].concat();
    let ran = adopt(&place, &asked);
    assert_ne!(ran.code, 0, "{ran:?}");
    assert!(ran.stderr.contains("NIM-0779"), "{ran:?}");
    assert!(ran.stderr.contains("--expect-no-changes"), "{ran:?}");
    assert!(
        ran.stdout.contains("! Not compared: network in test"),
        "{ran:?}"
    );
    assert!(!ran.stdout.contains('✓'), "{ran:?}");
    assert!(!place.path("network/node_modules").exists());

    // The name that is taken now is the project's own, and the command says so.
    let words = "--name network=network-2";
    let given = place.run(
        &[
            &["adopt", "--id", "D2ACME", "--project", "acme"],
            &asked[..],
        ]
        .concat(),
    );
    assert!(given.stderr.contains("NIM-0734"), "{given:?}");
    assert!(given.stderr.contains(words), "{given:?}");
}

#[test]
fn an_adoption_is_shown_first_and_can_be_taken_back() {
    let sdk = tool_or_skip!(Tool::NodeSdk);
    let place = examples(&sdk);
    let before = files(place.root());
    let arguments = [&["network", "orders", "--no-state"], MAPS].concat();
    let shown = ok(adopt(&place, &[&arguments[..], &["--dry-run"]].concat()));
    for part in [
        "Would adopt as D1ACME: test → live",
        "acme-orders needs network: __main__.py:28 names network",
        "test: stack acme-orders/dev, 1 value, no state yet",
    ] {
        assert!(shown.stdout.contains(part), "{part}: {}", shown.stdout);
    }
    assert_eq!(files(place.root()), before, "a dry run makes nothing");
    ok(adopt(&place, &arguments));
    let manifest = place.read(MANIFEST);
    assert!(
        manifest.contains("\"acme-orders:size\": \"1\""),
        "{manifest}"
    );
    assert!(
        !manifest.contains("account") && !manifest.contains("region"),
        "{manifest}"
    );
    ok(place.run(&["validate", "D1ACME"]));
    let graph = place.json(&["graph", "D1ACME"]);
    let second = &graph["layers"][1][0];
    assert_eq!(second["name"], "acme-orders", "{graph}");
    assert_eq!(second["needs"], json!(["network"]), "{graph}");
    // Once more: the deployment is there, and can be taken back.
    let taken = adopt(&place, &arguments);
    assert!(taken.stderr.contains("NIM-0705"), "{taken:?}");
    let undo = ["adopt", "--undo", "D1ACME"];
    assert!(taken.stderr.contains(&undo.join(" ")), "{taken:?}");
    ok(place.run(&undo));
    assert_eq!(files(place.root()), before);
}

#[test]
fn a_language_that_is_not_run_is_named_before_anything_is_made() {
    let place = WorkspaceSite::empty();
    place.write("dice/Pulumi.yaml", "name: dice\nruntime: yaml\n");
    place.write("coin/Pulumi.yaml", "name: coin\nruntime: python\n");
    let asked = ["dice", "coin", "--no-state", "-e", "test"];
    let shown = ok(adopt(&place, &[&asked[..], &["--dry-run"]].concat()));
    assert!(
        shown.stdout.contains("! dice (yaml) is in a language"),
        "{shown:?}"
    );
    assert!(shown.stdout.contains("--engine pulumi"), "{shown:?}");
    let report = json_of(&ok(adopt(&place, &[&asked[..], &["--json"]].concat())));
    assert_eq!(report["foreign"], json!(["dice (yaml)"]), "{report}");
}

#[test]
fn an_exported_state_is_taken_over_only_by_the_stack_that_it_is_of() {
    let sdk = tool_or_skip!(Tool::NodeSdk);
    let place = examples(&sdk);
    up(&place, "network", "dev");
    let mut export = place.command(&["state", "export", "--stack", "dev", "--file", "../dev.json"]);
    export.current_dir(place.path("network"));
    export.env("PULUMI_BACKEND_URL", state_url(&place));
    ok(place.finish(export));
    let with = |stack: &str| {
        let choice = format!("{stack}=dev.json");
        adopt(
            &place,
            &[&["network", "--state-file", &choice, "--json"], MAPS].concat(),
        )
    };
    let wrong = with("prod");
    assert!(
        wrong.stderr.contains("cannot be taken over")
            || wrong.stdout.contains("cannot be taken over"),
        "{wrong:?}"
    );
    assert!(!place.path("cloud").exists(), "nothing is left of it");
    let report = json_of(&ok(with("dev")));
    assert_eq!(report["verified"], json!(["test"]), "{report}");
    assert_eq!(
        report["states"][0]["from"],
        json!("HOME/dev.json"),
        "{report}"
    );
}

#[test]
fn references_between_stacks_see_planned_outputs_and_count_for_the_skip() {
    let sdk = tool_or_skip!(Tool::NodeSdk);
    let place = examples(&sdk);
    // Written for a service, where stacks belong to organisations.
    let program = place.read("portal/index.js");
    place.write(
        "portal/index.js",
        &program.replace("${pulumi.getOrganization()}", "acme-corp"),
    );
    // Both would be the stack `live`, which nobody could tell apart.
    let environments = ["portal", "--no-state", "-e", "test", "-e", "live"];
    let refused = adopt(&place, &[&environments, PORTAL_MAPS].concat());
    assert!(refused.stderr.contains("NIM-0770"), "{refused:?}");
    assert!(!place.path("cloud").exists());
    let needs = ["portal", "--no-state", "--needs", "portal-site=portal-base"];
    ok(adopt(&place, &[&needs, PORTAL_MAPS].concat()));
    let run = |verb: &str| {
        place.run(&[
            verb,
            "D1ACME",
            "--environment",
            "test",
            "--no-typecheck",
            "--json",
        ])
    };
    // Nothing is deployed: the site finds what the base would have.
    let previewed = run("preview");
    assert_eq!(previewed.code, 8, "{previewed:?}");
    let deploy = || {
        place.run(&[
            "deploy",
            "D1ACME",
            "--environment",
            "test",
            "--yes",
            "--no-typecheck",
            "--json",
        ])
    };
    ok(deploy());
    // What a program only reads is there like everything else, whether or not it was read this time.
    let counted = || {
        let status = place.json(&["status", "D1ACME", "--environment", "test"]);
        status["environments"][0]["stacks"][1]["resources"].clone()
    };
    let first = counted();
    let statuses = |ran: WorkspaceOutput| {
        let summary = json_of(&ok(ran));
        let units = summary["units"].as_array().unwrap().iter();
        units
            .map(|unit| unit["status"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(statuses(deploy()), ["skipped", "skipped"]);
    let changed = place.read(MANIFEST).replace("light", "bright");
    place.write(MANIFEST, &changed);
    assert_eq!(statuses(deploy()), ["succeeded", "succeeded"]);
    assert_eq!(counted(), first);
    let output = place.path("states.json");
    ok(place.run(&[
        "export-state",
        "D1ACME",
        "--environment",
        "test",
        "--output",
        output.to_str().unwrap(),
    ]));
    let states = fs::read_to_string(output).unwrap();
    assert!(states.contains("class=\\\"bright\\\""), "{states}");
}

const FORGETFUL: &str = r#"
const pulumi = require("@pulumi/pulumi");
const config = new pulumi.Config();
// Neither is read as a secret.
const password = config.require("password");
const token = config.require("token");
const provider = {
    async create(inputs) {
        return { id: "vault", outs: inputs };
    },
};
class Vault extends pulumi.dynamic.Resource {
    constructor(name, args) {
        super(provider, name, args);
    }
}
new Vault("vault", { url: `https://u:${password}@vault`, open: "open", token });
console.log(`the password is ${password}`);
exports.encoded = Buffer.from(password).toString("base64");
exports.token = token;
exports.open = "open";
"#;

#[test]
fn a_secret_that_a_program_forgets_to_mark_is_in_no_file_and_no_output() {
    let sdk = tool_or_skip!(Tool::NodeSdk);
    let place = WorkspaceSite::empty();
    place.write("vault/Pulumi.yaml", "name: vault\nruntime: nodejs\n");
    place.write(
        "vault/package.json",
        r#"{"name": "vault", "main": "index.js"}"#,
    );
    place.write("vault/index.js", FORGETFUL);
    place.write(
        "vault/Pulumi.test.yaml",
        "config:\n  vault:password: later\n  vault:token: later\n",
    );
    symlink(sdk.join("node_modules"), place.path("vault/node_modules")).unwrap();
    ok(adopt(&place, &["vault", "--no-state"]));
    let manifest = place.read(MANIFEST);
    let manifest = manifest
        .replace(
            "\"vault:password\": later",
            "\"vault:password\": {secret: vault/password}",
        )
        .replace(
            "\"vault:token\": later",
            "\"vault:token\": \"{{RUNTIME:env:VAULT_TOKEN|secret}}\"",
        );
    place.write(MANIFEST, &manifest);
    let preview = [
        "preview",
        "D1ACME",
        "--environment",
        "test",
        "--no-typecheck",
    ];
    let missing = place.run(&preview);
    assert!(missing.stderr.contains("nimbus secret set"), "{missing:?}");

    let mut set = place.command(&["secret", "set", "D1ACME", "vault/password"]);
    set.write_stdin("hunter2-forgotten\n");
    ok(place.finish(set));
    let list = place.json(&["secret", "list", "D1ACME"]);
    assert_eq!(list["secrets"], json!({"vault/password": ["*"]}), "{list}");

    let with_token = |arguments: &[&str]| {
        let mut command = place.command(arguments);
        command.env("VAULT_TOKEN", "token-forgotten");
        place.finish(command)
    };
    let plan = [&preview[..], &["--save", "plan.json", "--diff"]].concat();
    let previewed = with_token(&plan);
    assert_eq!(previewed.code, 8, "{previewed:?}");
    let deploy = [
        "deploy",
        "D1ACME",
        "--environment",
        "test",
        "--yes",
        "--no-typecheck",
    ];
    let deployed = ok(with_token(&deploy));
    let output = place.path("states.json");
    ok(place.run(&[
        "export-state",
        "D1ACME",
        "--environment",
        "test",
        "--output",
        output.to_str().unwrap(),
    ]));
    let encoded = "aHVudGVyMi1mb3Jnb3R0ZW4=";
    let tells = ["hunter2-forgotten", "token-forgotten", encoded];
    for shown in [&previewed, &deployed] {
        for tell in tells {
            assert!(
                !shown.stdout.contains(tell) && !shown.stderr.contains(tell),
                "{tell}: {shown:?}"
            );
        }
    }
    let mut seen = false;
    for (path, content) in files(place.root()) {
        let text = String::from_utf8_lossy(&content);
        for tell in tells {
            assert!(!text.contains(tell), "{tell} is in {}", path.display());
        }
        seen |= path.ends_with("states.json") && text.contains("\"open\": \"open\"");
    }
    assert!(seen, "what is no secret stays readable");

    ok(place.run(&["secret", "rm", "D1ACME", "vault/password"]));
    let gone = place.run(&["secret", "rm", "D1ACME", "vault/password"]);
    assert!(gone.stderr.contains("NIM-0773"), "{gone:?}");
}

#[test]
fn secrets_of_stacks_are_encrypted_again_under_the_deployments_key() {
    let sdk = tool_or_skip!(Tool::NodeSdk);
    let place = examples(&sdk);
    let mut set = place.command(&[
        "stack-config",
        "set",
        "nested.password",
        "--path",
        "--secret",
        "--stack",
        "dev",
    ]);
    set.current_dir(place.path("network"));
    set.write_stdin("hunter2-nested\n");
    ok(place.finish(set));
    let mut wrong = place.command(&[
        "adopt",
        "network",
        "--id",
        "D1ACME",
        "--project",
        "acme",
        "--no-state",
    ]);
    wrong.env("PULUMI_CONFIG_PASSPHRASE", "another");
    let refused = place.finish(wrong);
    assert_ne!(refused.code, 0, "{refused:?}");
    assert!(
        !place.path("cloud").exists(),
        "who cannot open them takes nothing over"
    );
    ok(adopt(&place, &[&["network", "--no-state"], MAPS].concat()));
    let manifest = place.read(MANIFEST);
    let reference = "\"network:nested\":\n            password:\n              secret: network.nested.password\n";
    assert!(manifest.contains(reference), "{manifest}");
    let original = place.read("network/Pulumi.dev.yaml");
    let ciphertext = original
        .split("secure: ")
        .nth(1)
        .unwrap()
        .lines()
        .next()
        .unwrap()
        .trim();
    let kept = place.read("cloud/deploy/D1ACME-organization-acme/secrets.yaml");
    assert!(
        kept.contains("network.nested.password") && !kept.contains(ciphertext),
        "{kept}"
    );
    for (path, content) in files(&place.path("cloud")) {
        let text = String::from_utf8_lossy(&content);
        assert!(!text.contains("hunter2-nested"), "{}", path.display());
    }
}

#[test]
fn states_come_from_a_bucket_too() {
    let sdk = tool_or_skip!(Tool::NodeSdk);
    let server = tool_or_skip!(Tool::S3Server);
    let place = examples(&sdk);
    let moto = AwsServer::start(&server);
    moto.make_bucket("states");
    let endpoint = moto.address();
    let url = format!("s3://states?region=eu-west-1&endpoint={endpoint}&s3ForcePathStyle=true");
    let run = |folder: &str, arguments: &[&str]| {
        let mut command = place.command(arguments);
        command
            .current_dir(place.path(folder))
            .env("AWS_ENDPOINT_URL", &endpoint)
            .env("AWS_ACCESS_KEY_ID", "key")
            .env("AWS_SECRET_ACCESS_KEY", "secret");
        ok(place.finish(command))
    };
    let up = [
        "program",
        "up",
        "--stack",
        "base-dev",
        "--yes",
        "--backend",
        &url,
    ];
    run("portal", &up);
    let adopt = [
        "adopt",
        "portal",
        "--id",
        "D1ACME",
        "--map",
        "base-dev=test",
        "--state",
        &url,
        "--json",
    ];
    let report = json_of(&run(".", &adopt));
    assert_eq!(report["verified"], json!(["test"]), "{report}");
    assert_eq!(report["states"][0]["resources"], json!(1), "{report}");
    let left = ["portal/base-prod", "portal/site-dev", "portal/site-prod"];
    assert_eq!(report["left_out"], json!(left), "{report}");
}

#[test]
fn a_state_that_has_a_secret_in_clear_is_named() {
    let sdk = tool_or_skip!(Tool::NodeSdk);
    let place = WorkspaceSite::empty();
    place.write("vault/Pulumi.yaml", "name: vault\nruntime: nodejs\n");
    place.write(
        "vault/package.json",
        r#"{"name": "vault", "main": "index.js"}"#,
    );
    let program = "const { Config } = require('@pulumi/pulumi');\n\
                   exports.password = new Config().require('password');\n";
    place.write("vault/index.js", program);
    symlink(sdk.join("node_modules"), place.path("vault/node_modules")).unwrap();
    fs::create_dir(place.path("states")).unwrap();
    let mut set = place.command(&[
        "stack-config",
        "set",
        "password",
        "--secret",
        "--stack",
        "test",
    ]);
    set.current_dir(place.path("vault"));
    set.write_stdin("hunter2-exposed\n");
    ok(place.finish(set));
    up(&place, "vault", "test");
    let url = state_url(&place);
    let report = json_of(&ok(adopt(&place, &["vault", "--state", &url, "--json"])));
    let warning = "organization/vault/test has vault.password in clear";
    assert_eq!(report["warnings"], json!([warning]), "{report}");
    assert!(!report.to_string().contains("hunter2"), "{report}");
}

/// The deployment's provider can be a key management service: without it nothing runs, with it the value arrives.
#[test]
fn secrets_of_a_manifest_are_kept_under_a_key_of_kms() {
    let sdk = tool_or_skip!(Tool::NodeSdk);
    let moto = AwsServer::start(&tool_or_skip!(Tool::S3Server));
    let ask = |operation: &str, body: &Value| {
        let scope = "Credential=k/20260101/eu-west-1/kms/aws4_request";
        let headers = [
            ("X-Amz-Target", &*format!("TrentService.{operation}")),
            ("Authorization", &*format!("AWS4-HMAC-SHA256 {scope}")),
            ("Content-Type", "application/x-amz-json-1.1"),
        ];
        moto.ask("POST /", &headers, &body.to_string())
    };
    let made: Value = serde_json::from_str(&ask("CreateKey", &json!({}))).unwrap();
    let id = &made["KeyMetadata"]["KeyId"];
    ask(
        "CreateAlias",
        &json!({"AliasName": "alias/state", "TargetKeyId": id}),
    );

    let place = WorkspaceSite::empty();
    place.write("vault/Pulumi.yaml", "name: vault\nruntime: nodejs\n");
    place.write(
        "vault/package.json",
        r#"{"name": "vault", "main": "index.js"}"#,
    );
    // Put together, so that it is in no file of the project either.
    let program = "const password = new (require('@pulumi/pulumi').Config)().require('password');\n\
                   if (password !== ['hunter2', 'of', 'kms'].join('-')) throw new Error('another one');\n\
                   exports.password = password;\n";
    place.write("vault/index.js", program);
    place.write(
        "vault/Pulumi.test.yaml",
        "config:\n  vault:password: later\n",
    );
    symlink(sdk.join("node_modules"), place.path("vault/node_modules")).unwrap();
    ok(adopt(&place, &["vault", "--no-state"]));
    let (before, after) = (
        "\"vault:password\": later",
        "\"vault:password\": {secret: vault/password}",
    );
    let manifest = place.read(MANIFEST);
    assert!(manifest.contains(before), "{manifest}");
    place.write(MANIFEST, &manifest.replace(before, after));

    let with_keys = |arguments: &[&str]| {
        let mut command = place.command(arguments);
        command
            .env("AWS_ENDPOINT_URL", moto.address())
            .env("AWS_ACCESS_KEY_ID", "key")
            .env("AWS_SECRET_ACCESS_KEY", "secret");
        command
    };
    let url = "awskms://alias/state?region=eu-west-1";
    let mut set = with_keys(&[
        "secret",
        "set",
        "D1ACME",
        "vault/password",
        "--provider",
        url,
    ]);
    set.write_stdin("hunter2-of-kms\n");
    ok(place.finish(set));
    let kept = place.read("cloud/deploy/D1ACME-organization-acme/secrets.yaml");
    assert!(
        kept.contains("encryptedkey: ") && kept.contains(url),
        "{kept}"
    );

    let deploy = [
        "deploy",
        "D1ACME",
        "--environment",
        "test",
        "--yes",
        "--no-typecheck",
        "--json",
    ];
    // The passphrase is there, and opens nothing that is under the key.
    let refused = json_of(&place.run(&deploy));
    let message = refused["units"][0]["message"].as_str().unwrap_or_default();
    assert!(message.contains("cannot be had"), "{refused}");
    let deployed = ok(place.finish(with_keys(&deploy)));
    assert_eq!(json_of(&deployed)["result"], "succeeded");
    for (path, content) in files(place.root()) {
        let text = String::from_utf8_lossy(&content);
        assert!(!text.contains("hunter2-of-kms"), "{}", path.display());
    }
}
