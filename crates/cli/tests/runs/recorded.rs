//! What a run was asked for is recorded, and holds for whoever goes on with it: its rules, whether types are
//! checked, and what programs are kept from. Nothing of it is given again.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use serde_json::Value;

use crate::network::isolates;
use crate::support::{DeployOutput, ID, Site, node_sdk};

const STACKS: &[(&str, &[&str])] = &[("a", &[]), ("b", &["a"])];

/// `b` fails once it is created, and the run is left there.
fn held(site: &Site, more: &[&str], variables: &[(&str, &Path)]) -> DeployOutput {
    let orders = site.orders("orders: [{on: create, name: b-first, do: fail, message: no}]\n");
    let usual = ["deploy", ID, "--environment", "dev", "--rehearse", "--json"];
    let hold = ["--on-failure", "hold", "--orders", &orders];
    let output = site
        .command(&[&usual, hold.as_slice(), more].concat())
        .envs(variables.iter().copied())
        .output()
        .unwrap();
    let failed = DeployOutput {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    };
    let failed = failed.with(1);
    assert_eq!(failed.status("a"), "succeeded", "{}", failed.stdout);
    assert_eq!(failed.status("b"), "failed", "{}", failed.stdout);
    failed
}

fn choices(site: &Site) -> Value {
    let record = fs::read_to_string(site.rehearsal(".nimbus/runs/R0001/run.json")).unwrap();
    let record: Value = serde_json::from_str(&record).unwrap();
    record["options"].clone()
}

/// A pack that writes down which resources it was asked about.
fn witness_pack(site: &Site, sdk: &Path) -> String {
    site.write("rules/PulumiPolicy.yaml", "runtime: nodejs\n");
    site.write(
        "rules/package.json",
        r#"{"name": "witness", "version": "1.0.0", "main": "index.js"}"#,
    );
    let source = format!(
        "const {{ PolicyPack }} = require('@pulumi/policy');\n\
         new PolicyPack('witness', {{ policies: [{{\n\
         \x20 name: 'writes-down', description: 'Says what it sees.', enforcementLevel: 'advisory',\n\
         \x20 validateResource: (args) => require('fs').appendFileSync('{}', args.name + '\\n'),\n\
         }}] }});\n",
        site.path("witness").display()
    );
    site.write("rules/index.js", &source);
    symlink(sdk.join("node_modules"), site.path("rules/node_modules")).unwrap();
    site.path("rules").display().to_string()
}

#[test]
fn a_run_that_goes_on_is_held_to_the_packs_it_began_with() {
    let Some(sdk) = node_sdk("a_run_that_goes_on_is_held_to_the_packs_it_began_with") else {
        return;
    };
    let site = Site::new(&sdk, STACKS);
    let pack = witness_pack(&site, &sdk);
    held(&site, &["--policy-pack", &pack], &[]);
    assert_eq!(choices(&site)["policy_packs"][0]["folder"], pack.as_str());
    let asked = fs::read_to_string(site.path("witness")).unwrap();
    assert!(asked.contains("a-first"), "{asked}");

    let source = site.path("rules/index.js");
    let rules = fs::read_to_string(&source).unwrap();
    fs::write(&source, rules.replace("advisory", "disabled")).unwrap();
    let moved = site.run(&["resume", "R0001", "--json"]);
    let error = &moved.summary()["error"];
    assert_eq!(error["code"], "NIM-0601", "{}", moved.stdout);
    let message = error["message"].to_string();
    assert!(message.contains("policy pack"), "{message}");

    fs::write(&source, rules).unwrap();
    fs::remove_file(site.path("witness")).unwrap();
    let ran = site.run(&["resume", "R0001", "--json"]).ok();
    assert_eq!(ran.summary()["result"], "succeeded");
    let asked = fs::read_to_string(site.path("witness")).unwrap();
    assert!(asked.contains("b-first"), "{asked}");
    assert!(!asked.contains("a-first"), "a was done: {asked}");
}

/// The types of this program are wrong, and its work is right.
const WRONG_TYPES: &str = r#"import * as pulumi from "@pulumi/pulumi";

class Thing extends pulumi.CustomResource {
    constructor(name: string, args: pulumi.Inputs) {
        super("demo:index:Thing", name, args);
    }
}

const size: number = new pulumi.Config("b").require("size");
export const first = new Thing("b-first", { size }).id;
export const ids = [first];
"#;

#[test]
fn types_that_nobody_wanted_checked_are_not_checked_later() {
    let Some(sdk) = node_sdk("types_that_nobody_wanted_checked_are_not_checked_later") else {
        return;
    };
    let site = Site::new(&sdk, STACKS);
    fs::remove_file(site.path("cloud/stacks/b/src/index.js")).unwrap();
    site.write("cloud/stacks/b/src/index.ts", WRONG_TYPES);
    site.write(
        "cloud/stacks/b/src/package.json",
        "{\"main\":\"index.ts\"}\n",
    );
    held(&site, &["--no-typecheck"], &[]);
    assert_eq!(choices(&site)["typecheck"], false);
    let ran = site.run(&["resume", "R0001", "--json"]).ok();
    assert_eq!(ran.status("b"), "succeeded", "{}", ran.stdout);
    // It is the run that goes without, not the program.
    let checked = site.rehearse("deploy", &["--json", "--force"]);
    assert_ne!(checked.code, 0, "{}", checked.stdout);
    let said = format!("{}{}", checked.stdout, checked.stderr);
    assert!(said.contains("TS2322"), "{said}");
}

#[test]
fn a_program_stays_in_the_sandbox_that_its_run_began_with() {
    let test = "a_program_stays_in_the_sandbox_that_its_run_began_with";
    let Some(sdk) = node_sdk(test).filter(|_| isolates(test)) else {
        return;
    };
    let site = Site::new(&sdk, STACKS);
    site.write("outside/secret", "of somebody else");
    let source = "cloud/stacks/b/src/index.js";
    let program = fs::read_to_string(site.path(source)).unwrap();
    let looks = format!(
        "{program}try {{ console.log('saw ' + require('fs').readFileSync('{}')); }}\n\
         catch (error) {{ console.log('saw nothing'); }}\n",
        site.path("outside/secret").display()
    );
    site.write(source, &looks);
    for stack in ["a", "b"] {
        let own = site.path(&format!("cloud/stacks/{stack}/src/node_modules"));
        symlink(sdk.join("node_modules"), own).unwrap();
    }
    let strict = [
        ("NIMBUS_ENGINE_SANDBOX", Path::new("strict")),
        ("NIMBUS_ENGINE_SANDBOX_ROOTS", sdk.as_path()),
    ];
    held(&site, &[], &strict);
    assert_eq!(choices(&site)["sandbox"]["mode"], "strict");
    // This command's own settings say nothing of a sandbox.
    let ran = site.run(&["resume", "R0001", "--json"]).ok();
    assert_eq!(ran.status("b"), "succeeded", "{}", ran.stdout);
    assert!(ran.stdout.contains("saw nothing"), "{}", ran.stdout);
    assert!(!ran.stdout.contains("of somebody else"), "{}", ran.stdout);
}
