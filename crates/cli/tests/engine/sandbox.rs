//! Programs in the sandbox, through the real binary: what works, what is refused, what is said.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::support::{ProgramRunOutput, Site, node_sdk, python};

/// Whether `nimbus doctor` finds everything that a strict sandbox needs; if not, says so loudly.
pub(crate) fn isolates(test: &str) -> bool {
    let doctor = Command::new(env!("CARGO_BIN_EXE_nimbus"))
        .args(["doctor", "--json"])
        .output()
        .unwrap();
    let report: Value = serde_json::from_slice(&doctor.stdout).unwrap();
    let checks = report["checks"].as_array().unwrap();
    let isolation = checks.iter().find(|check| check["id"] == "isolation");
    let isolation = isolation.unwrap();
    if isolation["state"] == "ok" {
        return true;
    }
    let reason = isolation["detail"].as_str().unwrap_or_default();
    nimbus_test_tools::record_skip(reason, test);
    false
}

pub(crate) fn python_site(interpreter: &Path, source: &str) -> Site {
    let site = Site::new();
    let virtualenv = interpreter.parent().unwrap().parent().unwrap();
    let project = format!(
        "name: notes\nruntime:\n  name: python\n  options:\n    virtualenv: {}\n",
        virtualenv.display()
    );
    site.write("program/Pulumi.yaml", &project);
    site.write("program/__main__.py", source);
    site
}

/// The program in both languages, for as many as are here.
pub(crate) fn sites(test: &str, typescript: &str, python_source: &str) -> Vec<Site> {
    if !isolates(test) {
        return Vec::new();
    }
    let node = node_sdk(test).map(|sdk| Site::typescript(&sdk, typescript));
    let python = python(test).map(|interpreter| python_site(&interpreter, python_source));
    node.into_iter().chain(python).collect()
}

pub(crate) fn up(site: &Site, flags: &[&str]) -> ProgramRunOutput {
    site.program(&[&["up", "--yes", "--skip-preview"], flags].concat())
}

pub(crate) fn said(ran: &ProgramRunOutput) -> String {
    format!("{}\n{}", ran.stdout, ran.stderr)
}

/// Whose stacks a stranger's project works on is the operator's to say.
pub(crate) const STRICT: [&str; 4] = ["--sandbox", "strict", "--stack", "organization/notes/dev"];

#[test]
fn a_program_deploys_from_a_strict_sandbox_and_knows_no_secret_of_the_engine() {
    let typescript = r#"
        import * as pulumi from "@pulumi/pulumi";
        import * as fs from "fs";
        // The engine calls back into the program, which is alone in its network.
        pulumi.runtime.registerStackTransform(() => undefined);
        class Thing extends pulumi.ComponentResource {
            constructor(name: string) {
                super("test:index:Thing", name);
                this.registerOutputs({});
            }
        }
        new Thing("one");
        export const passphrase = process.env.PULUMI_CONFIG_PASSPHRASE ?? "none";
        export const greeting = new pulumi.Config().require("greeting");
        export const shadow = fs.existsSync("/etc/shadow");
        export const processes = fs.readdirSync("/proc").filter((n) => /^\d+$/.test(n)).length;
    "#;
    let python_source = r#"
import os
import pulumi

# The engine calls back into the program, which is alone in its network.
pulumi.runtime.register_resource_transform(lambda args: None)
component = pulumi.ComponentResource("test:index:Thing", "one")
component.register_outputs({})
pulumi.export("passphrase", os.environ.get("PULUMI_CONFIG_PASSPHRASE", "none"))
pulumi.export("greeting", pulumi.Config().require("greeting"))
pulumi.export("shadow", os.path.exists("/etc/shadow"))
pulumi.export("processes", len([n for n in os.listdir("/proc") if n.isdigit()]))
"#;
    for site in sites("strict deploy", typescript, python_source) {
        site.config(&["set", "greeting", "hello"]).ok();
        up(&site, &STRICT).ok();
        let outputs = site.program(&["outputs", "--json"]).ok().json();
        let outputs = &outputs["outputs"];
        assert_eq!(outputs["passphrase"], "none");
        assert_eq!(outputs["greeting"], "hello");
        assert_eq!(outputs["shadow"], false);
        assert_eq!(outputs["processes"], 1);
        up(&site, &STRICT).ok();
        site.program(&["destroy", "--yes", "--skip-preview"]).ok();
    }
}

/// In every usual way: by name and by number, far away and on this machine.
#[test]
fn a_program_that_misses_its_network_is_told_which_setting_it_is() {
    let attempts = [
        (
            r#"new Promise<string>((resolve, reject) => {
                http.get("http://example.com/", () => resolve("reached")).on("error", reject);
            })"#,
            "urllib.request.urlopen('http://example.com/', timeout=5)",
        ),
        (
            r#"fetch("https://example.com/").then((answer: any) => answer.status)"#,
            "socket.create_connection(('1.1.1.1', 443), timeout=5)",
        ),
        (
            r#"dns.promises.resolve4("example.com")"#,
            "socket.getaddrinfo('example.com', 443)",
        ),
        (
            r#"new Promise<void>((resolve, reject) => {
                net.connect(5432, "127.0.0.1", () => resolve()).on("error", reject);
            })"#,
            "socket.create_connection(('127.0.0.1', 5432), timeout=5)",
        ),
    ];
    for (typescript, python_source) in attempts {
        let typescript = format!(
            "import '@pulumi/pulumi';\nimport * as dns from 'dns';\nimport * as http from 'http';\n\
             import * as net from 'net';\ndeclare const fetch: any;\n\
             export const used = [dns, http, net].length;\nexport const answer = {typescript};"
        );
        let python_source = format!("import socket, urllib.request\n{python_source}\n");
        for site in sites("missing network", &typescript, &python_source) {
            let ran = up(&site, &[&STRICT[..], &["--no-typecheck"]].concat());
            assert_ne!(ran.code, 0, "{}", said(&ran));
            let said = said(&ran);
            assert!(said.contains("engine.sandbox_network"), "{said}");
            assert!(said.contains("network: none"), "{said}");
        }
    }
}

#[test]
fn strict_refuses_the_network_of_the_machine_unless_weakness_is_allowed() {
    let typescript = "import '@pulumi/pulumi'; export const x = 1;";
    let python_source = "import pulumi\npulumi.export('x', 1)\n";
    for site in sites("shared network", typescript, python_source) {
        let full = [&STRICT[..], &["--network", "full"]].concat();
        let ran = up(&site, &full);
        assert_ne!(ran.code, 0);
        assert!(said(&ran).contains("NIM-0450"), "{}", said(&ran));
        let allowed = [&full[..], &["--allow-weak-isolation"]].concat();
        let ran = up(&site, &allowed).ok();
        assert!(said(&ran).contains("WEAK ISOLATION"), "{}", said(&ran));
    }
}

#[test]
fn the_engine_reads_no_strangers_file_for_a_program() {
    let typescript = r#"
        import * as pulumi from "@pulumi/pulumi";
        class Thing extends pulumi.CustomResource {
            constructor(name: string) {
                super("random:index:Thing", name, { file: new pulumi.asset.FileAsset("../secret") });
            }
        }
        new Thing("thief");
    "#;
    let python_source = r#"
import pulumi
pulumi.CustomResource("random:index:Thing", "thief", {"file": pulumi.FileAsset("../secret")})
"#;
    for site in sites("strangers' files", typescript, python_source) {
        site.write("secret", "secret");
        let ran = up(&site, &STRICT);
        assert_ne!(ran.code, 0);
        let said = said(&ran);
        assert!(said.contains("only files of its own folder"), "{said}");
    }
}

#[test]
fn settings_choose_the_sandbox_too() {
    let typescript = r#"
        import "@pulumi/pulumi";
        export const shadow = require("fs").existsSync("/etc/shadow");
    "#;
    let python_source =
        "import os, pulumi\npulumi.export('shadow', os.path.exists('/etc/shadow'))\n";
    for site in sites("settings", typescript, python_source) {
        let arguments = ["program", "up", "--yes", "--skip-preview"];
        let mut command = site.command(&[&arguments, &STRICT[2..]].concat());
        command.env("NIMBUS_ENGINE_SANDBOX", "strict");
        assert!(command.status().unwrap().success());
        let outputs = site.program(&["outputs", "--json"]).ok().json();
        assert_eq!(outputs["outputs"]["shadow"], false);
    }
}

#[test]
fn a_translated_program_sees_its_translation_and_can_change_nothing_of_it() {
    let test = "a_translated_program_sees_its_translation_and_can_change_nothing_of_it";
    let Some(sdk) = node_sdk(test).filter(|_| isolates(test)) else {
        return;
    };
    let typescript = r#"
        import "@pulumi/pulumi";
        import * as fs from "fs";
        import * as path from "path";
        const loaded = Object.keys(require.cache);
        // Loaded first of all, from the folder that translations are kept in.
        const script = loaded.find((name) => name.endsWith("start.cjs"))!;
        const kept = path.dirname(path.dirname(script));
        const attempt = (what: () => void) => {
            try {
                what();
                return "done";
            } catch (error: any) {
                return "refused";
            }
        };
        export const bySdk = loaded.some((name) => name.includes("ts-node"));
        export const overwritten = attempt(() => fs.writeFileSync(script, "process.exit(0)"));
        export const added = attempt(() => fs.writeFileSync(path.join(kept, "mine"), "x"));
        export const removed = attempt(() => fs.unlinkSync(script));
        export const listed = attempt(() => fs.readdirSync(kept).length > 2 || fs.readdirSync("/nowhere"));
    "#;
    let site = Site::typescript(&sdk, typescript);
    up(&site, &[&STRICT[..], &["--no-typecheck"]].concat()).ok();
    let outputs = site.program(&["outputs", "--json"]).ok().json();
    let outputs = &outputs["outputs"];
    assert_eq!(outputs["bySdk"], false, "{outputs}");
    // What others have there is not seen, where folders can be listed at all.
    for act in ["overwritten", "added", "removed", "listed"] {
        assert_eq!(outputs[act], "refused", "{outputs}");
    }
}

#[test]
fn translating_a_strangers_program_shows_it_nothing_and_brings_nobody_down() {
    let test = "translating_a_strangers_program_shows_it_nothing_and_brings_nobody_down";
    let Some(sdk) = node_sdk(test).filter(|_| isolates(test)) else {
        return;
    };
    let flags = [&STRICT[..], &["--no-typecheck"]].concat();
    let site = Site::typescript(
        &sdk,
        r#"import "@pulumi/pulumi"; import { name } from "../neighbour/secret"; export { name };"#,
    );
    site.write(
        "neighbour/secret.ts",
        "export const name = 'the other tenant';",
    );
    let failed = up(&site, &flags).failed(1);
    assert!(
        !said(&failed).contains("the other tenant"),
        "{}",
        said(&failed)
    );
    assert!(
        said(&failed).contains("neighbour/secret"),
        "{}",
        said(&failed)
    );

    let bomb = format!("export const bomb = {}1;", "!".repeat(100_000));
    let site = Site::typescript(&sdk, &bomb);
    // A code of its own: it was not a signal that ended it.
    up(&site, &flags).failed(1);
}
