//! X5 and X6 through the real binary: who gets which variables, and that nothing is installed on
//! behalf of a program in a sandbox.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use crate::sandbox::{STRICT, isolates, python_site, said, sites};
use crate::support::{Site, finish, node_sdk, python};

const SECRETS: [&str; 6] = [
    "AWS_SECRET_ACCESS_KEY",
    "CLOUDFLARE_API_TOKEN",
    "GITHUB_TOKEN",
    "NIMBUS_JWT_SECRET",
    "PULUMI_ACCESS_TOKEN",
    "TENANT_B_TOKEN",
];

/// A command of somebody who has every credential there is.
fn rich(site: &Site, arguments: &[&str]) -> Command {
    let mut command = site.command(arguments);
    command.envs(SECRETS.map(|name| (name, "canary-5eed")));
    command
}

#[test]
fn previews_and_updates_run_programs_that_have_no_credentials() {
    let typescript = r#"
        import "@pulumi/pulumi";
        import * as fs from "fs";
        const rest = Object.entries(process.env).filter(([name, value]) =>
            value === "canary-5eed" || /TOKEN|SECRET_|PASSPHRASE$|_KEY$/.test(name) && name !== "PULUMI_CONFIG_SECRET_KEYS");
        if (rest.length > 0) throw new Error("variables: " + rest.map(([name]) => name).join());
        // Its own and those of the only other process that it can see.
        for (const who of ["self", "1"]) {
            let seen = "";
            try { seen = fs.readFileSync(`/proc/${who}/environ`, "utf8"); } catch {}
            if (seen.includes("canary")) throw new Error(`the environment of ${who}`);
        }
        export const clean = true;
    "#;
    let python_source = r#"
import os, re
import pulumi

rest = [
    name for name, value in os.environ.items()
    if value == "canary-5eed"
    or (re.search("TOKEN|SECRET_|PASSPHRASE$|_KEY$", name) and name != "PULUMI_CONFIG_SECRET_KEYS")
]
if rest:
    raise Exception("variables: " + ",".join(rest))
for who in ["self", "1"]:
    try:
        seen = open(f"/proc/{who}/environ", "rb").read()
    except OSError:
        seen = b""
    if b"canary" in seen:
        raise Exception(f"the environment of {who}")
pulumi.export("clean", True)
"#;
    for site in sites("no credentials", typescript, python_source) {
        for arguments in [
            &["program", "preview"][..],
            &["program", "up", "--yes", "--skip-preview"],
        ] {
            let mut command = rich(&site, arguments);
            finish(command.args(STRICT).output().unwrap()).ok();
        }
    }
}

/// Two providers, each of which writes down what it was given and serves nothing.
#[test]
fn a_provider_gets_its_own_credentials_and_those_of_no_other() {
    let typescript = r#"
        import * as pulumi from "@pulumi/pulumi";
        const provider = new pulumi.Config().require("provider");
        new pulumi.CustomResource(`${provider}:index:Thing`, "one", {}, { version: "1.0.0" });
    "#;
    let python_source = r#"
import pulumi
provider = pulumi.Config().require("provider")
options = pulumi.ResourceOptions(version="1.0.0")
pulumi.CustomResource(f"{provider}:index:Thing", "one", {}, options)
"#;
    for site in sites("credentials of providers", typescript, python_source) {
        for (package, own) in [
            ("cloudflare", "CLOUDFLARE_API_TOKEN"),
            ("aws", "AWS_SECRET_ACCESS_KEY"),
        ] {
            install_recorder(&site, package);
            site.config(&["set", "provider", package]).ok();
            let arguments = ["program", "up", "--yes", "--skip-preview", "--no-typecheck"];
            let ran = finish(rich(&site, &arguments).args(STRICT).output().unwrap());
            assert_ne!(ran.code, 0, "{}", said(&ran));
            let given = site.read(package);
            let names: Vec<&str> = given
                .lines()
                .filter_map(|line| line.strip_suffix("=canary-5eed"))
                .collect();
            assert_eq!(names, [own], "{package}: {given}");
            assert!(!given.contains("correct horse"), "{package}: {given}");
        }
    }
}

/// Installs a plugin that writes its variables into a file of the package's name.
fn install_recorder(site: &Site, package: &str) {
    let folder = format!("home/.pulumi/plugins/resource-{package}-v1.0.0");
    let record = site.path(package).display().to_string();
    let script = format!("#!/bin/sh\nenv > {record}.new\nmv {record}.new {record}\n");
    let plugin = format!("{folder}/pulumi-resource-{package}");
    site.write(&plugin, &script);
    let mode = fs::Permissions::from_mode(0o755);
    fs::set_permissions(site.path(&plugin), mode).unwrap();
}

/// X5: what packages run when they are installed is not run for a program in a sandbox.
#[test]
fn nothing_is_installed_for_a_program_in_a_sandbox() {
    let test = "nothing_is_installed_for_a_program_in_a_sandbox";
    if !isolates(test) {
        return;
    }
    if node_sdk(test).is_some() {
        let site = Site::new();
        let mark = site.path("installed").display().to_string();
        let manifest = format!(
            r#"{{"name":"notes","version":"1.0.0","scripts":{{"postinstall":"touch {mark}"}}}}"#
        );
        site.write("program/package.json", &manifest);
        let lock = r#"{"name":"notes","version":"1.0.0","lockfileVersion":3,"packages":{"":{"name":"notes","version":"1.0.0"}}}"#;
        site.write("program/package-lock.json", lock);
        site.write("program/index.ts", "export const x = 1;");
        let mut command = site.command(&["program", "up", "--yes", "--skip-preview"]);
        let ran = finish(command.args(STRICT).output().unwrap());
        assert_ne!(ran.code, 0);
        assert!(
            said(&ran).contains("@pulumi/pulumi is not installed"),
            "{}",
            said(&ran)
        );
        assert!(!site.path("installed").exists());
    }
    if let Some(interpreter) = python(test) {
        let site = python_site(&interpreter, "import pulumi\n");
        let project = "name: notes\nruntime:\n  name: python\n  options:\n    virtualenv: venv\n";
        site.write("program/Pulumi.yaml", project);
        site.write("program/requirements.txt", "./evil\n");
        let mark = site.path("installed").display().to_string();
        let setup = format!("open({mark:?}, 'w').close()\nfrom setuptools import setup\nsetup()\n");
        site.write("program/evil/setup.py", &setup);
        let mut command = site.command(&["program", "up", "--yes", "--skip-preview"]);
        let ran = finish(command.args(STRICT).output().unwrap());
        assert_ne!(ran.code, 0);
        assert!(
            said(&ran).contains("not a Python virtual environment"),
            "{}",
            said(&ran)
        );
        assert!(!site.path("installed").exists());
    }
}
