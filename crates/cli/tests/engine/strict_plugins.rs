//! Plugins and `--sandbox strict`: those that run outside are the operator's, and a project's own code
//! that serves as one runs in a sandbox.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use crate::sandbox::{STRICT, isolates, said, sites, up};
use crate::support::{Site, node_sdk};

/// A resource of a package, in both languages.
fn of_package(test: &str, package: &str) -> Vec<Site> {
    let typescript = format!(
        "import * as pulumi from '@pulumi/pulumi';\n\
         class T extends pulumi.CustomResource {{ constructor() {{ super('{package}:index:T', 't', {{}}); }} }}\nnew T();"
    );
    let python = format!("import pulumi\npulumi.CustomResource('{package}:index:T', 't', {{}})\n");
    sites(test, &typescript, &python)
}

fn evil(site: &Site, name: &str) {
    let mark = site.path("mark").display().to_string();
    site.write(name, &format!("#!/bin/sh\nenv > {mark}\n"));
    let mode = fs::Permissions::from_mode(0o755);
    fs::set_permissions(site.path(name), mode).unwrap();
}

#[test]
fn a_project_cannot_name_its_own_plugin() {
    for place in ["../evil", "./evil", "/EVIL"] {
        for site in of_package("plugins by path", "evil") {
            evil(&site, "evil/pulumi-resource-evil");
            evil(&site, "program/evil/pulumi-resource-evil");
            let place = place.replace("/EVIL", &site.path("evil").display().to_string());
            let project = site.read("program/Pulumi.yaml");
            let plugins =
                format!("plugins:\n  providers:\n    - name: evil\n      path: {place}\n");
            site.write("program/Pulumi.yaml", &format!("{project}{plugins}"));
            let ran = up(&site, &STRICT);
            assert_ne!(ran.code, 0);
            assert!(said(&ran).contains("not the operator's"), "{}", said(&ran));
            assert!(!site.path("mark").exists(), "{place} was started");
        }
    }
}

#[test]
fn the_name_of_a_package_leads_nowhere() {
    for package in ["x/../../evil", "../evil", "x/../evil"] {
        for site in of_package("names of packages", package) {
            evil(&site, "evil");
            evil(&site, "program/evil");
            fs::create_dir_all(site.path("program/pulumi-resource-x")).unwrap();
            evil(&site, "program/pulumi-resource-x/evil");
            let ran = up(&site, &STRICT);
            assert_ne!(ran.code, 0, "{}", said(&ran));
            assert!(!site.path("mark").exists(), "{package} was started");
        }
    }
}

#[test]
fn a_plugin_that_everybody_can_write_to_is_not_the_operators() {
    for site in of_package("writable plugins", "evil") {
        let folder = "home/.pulumi/plugins/resource-evil-v1.0.0";
        evil(&site, &format!("{folder}/pulumi-resource-evil"));
        let mode = fs::Permissions::from_mode(0o777);
        fs::set_permissions(site.path(&format!("{folder}/pulumi-resource-evil")), mode).unwrap();
        let ran = up(&site, &STRICT);
        assert!(said(&ran).contains("everybody can write"), "{}", said(&ran));
        assert!(!site.path("mark").exists());
    }
}

/// What dynamic providers try, and that they work.
#[test]
fn a_dynamic_provider_runs_in_the_sandbox() {
    let typescript = r#"
        import * as pulumi from "@pulumi/pulumi";
        const provider: pulumi.dynamic.ResourceProvider = {
            async create() {
                const fs = require("fs"), net = require("net");
                const attempt = (what: () => any) => {
                    try { return "GOT " + what(); } catch (error: any) { return "refused"; }
                };
                const reached = await new Promise<string>((resolve) => {
                    const socket = net.connect(PORT, "127.0.0.1", () => resolve("GOT it"));
                    socket.on("error", () => resolve("refused"));
                });
                return { id: "1", outs: {
                    file: attempt(() => fs.readFileSync("OUTSIDE")),
                    written: attempt(() => fs.writeFileSync("MARK", "x")),
                    environment: JSON.stringify(process.env),
                    greeting: new pulumi.Config("notes").get("greeting") ?? "none",
                    reached,
                } };
            },
        };
        class Thing extends pulumi.dynamic.Resource {
            readonly file!: pulumi.Output<string>;
            readonly written!: pulumi.Output<string>;
            readonly environment!: pulumi.Output<string>;
            readonly reached!: pulumi.Output<string>;
            constructor(name: string) {
                super(provider, name, { file: undefined, written: undefined, environment: undefined, reached: undefined });
            }
        }
        const thing = new Thing("one");
        export const file = thing.file;
        export const written = thing.written;
        export const environment = thing.environment;
        export const reached = thing.reached;
    "#;
    let python = r#"
import pulumi
from pulumi.dynamic import CreateResult, Resource, ResourceProvider

class Provider(ResourceProvider):
    def create(self, props):
        import json, os, socket
        def attempt(what):
            try:
                return f"GOT {what()}"
            except Exception as error:
                return "refused"
        return CreateResult("1", {
            "file": attempt(lambda: open("OUTSIDE").read()),
            "written": attempt(lambda: open("MARK", "w").write("x")),
            "environment": json.dumps(dict(os.environ)),
            "reached": attempt(lambda: socket.create_connection(("127.0.0.1", PORT), 2)),
        })

class Thing(Resource):
    file: pulumi.Output[str]
    written: pulumi.Output[str]
    environment: pulumi.Output[str]
    reached: pulumi.Output[str]
    def __init__(self, name):
        super().__init__(Provider(), name, {"file": None, "written": None, "environment": None, "reached": None})

thing = Thing("one")
for name in ["file", "written", "environment", "reached"]:
    pulumi.export(name, getattr(thing, name))
"#;
    let service = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = service.local_addr().unwrap().port().to_string();
    for site in sites("dynamic providers", typescript, python) {
        site.write("outside/secret", "secret of somebody else");
        let fill = |text: &str| {
            text.replace(
                "OUTSIDE",
                &site.path("outside/secret").display().to_string(),
            )
            .replace("MARK", &site.path("mark").display().to_string())
            .replace("PORT", &port)
        };
        match site.path("program/__main__.py").exists() {
            true => site.write("program/__main__.py", &fill(python)),
            false => site.write("program/index.ts", &fill(typescript)),
        }
        let mut command =
            site.command(&[&["program", "up", "--yes", "--skip-preview"], &STRICT[..]].concat());
        command.env("AWS_SECRET_ACCESS_KEY", "credential of the operator");
        crate::support::finish(command.output().unwrap()).ok();
        let outputs = site
            .program(&["outputs", "--json", "--show-secrets"])
            .ok()
            .json();
        let outputs = &outputs["outputs"];
        for tried in ["file", "written", "reached"] {
            assert_eq!(outputs[tried], "refused", "{tried}: {outputs}");
        }
        let environment = outputs["environment"].as_str().unwrap();
        for secret in [
            "credential of the operator",
            "correct horse",
            "PULUMI_CONFIG_PASSPHRASE",
        ] {
            assert!(!environment.contains(secret), "{environment}");
        }
        assert!(!site.path("mark").exists());
        // It is started again to delete what it made.
        site.program(&[&["destroy", "--yes", "--skip-preview"], &STRICT[..]].concat())
            .ok();
    }
}

#[test]
fn a_policy_pack_runs_in_the_sandbox() {
    let test = "policy packs";
    let (true, Some(sdk)) = (isolates(test), node_sdk(test)) else {
        return;
    };
    let site = Site::typescript(&sdk, "import '@pulumi/pulumi'; export const x = 1;");
    site.write("outside/secret", "secret of somebody else");
    site.write(
        "pack/PulumiPolicy.yaml",
        "runtime: nodejs\nversion: 1.0.0\n",
    );
    site.write(
        "pack/package.json",
        r#"{"name": "evil", "version": "1.0.0", "main": "index.js"}"#,
    );
    let pack = r#"
        const fs = require("fs");
        const { PolicyPack } = require("@pulumi/policy");
        const attempt = (what) => { try { return "GOT " + what(); } catch { return "refused"; } };
        const found = [
            attempt(() => fs.readFileSync("OUTSIDE")),
            attempt(() => fs.writeFileSync("MARK", "x")),
            attempt(() => {
                const connect = "require('net').connect(PORT, '127.0.0.1', () => process.exit(7)).on('error', () => process.exit(3))";
                const ran = require("child_process").spawnSync(process.execPath, ["-e", connect]);
                if (ran.status !== 7) throw new Error("nobody there");
            }),
            process.env.AWS_SECRET_ACCESS_KEY || "refused",
        ].join(",");
        new PolicyPack("evil", { policies: [{
            name: "tells", description: "tells", enforcementLevel: "advisory",
            validateStack: (args, report) => report("found " + found),
        }] });
    "#;
    let service = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = service.local_addr().unwrap().port().to_string();
    let pack = pack
        .replace(
            "OUTSIDE",
            &site.path("outside/secret").display().to_string(),
        )
        .replace("MARK", &site.path("mark").display().to_string())
        .replace("PORT", &port);
    site.write("pack/index.js", &pack);
    symlink(sdk.join("node_modules"), site.path("pack/node_modules")).unwrap();
    let place = site.path("pack").display().to_string();
    let arguments = [
        &[
            "program",
            "up",
            "--yes",
            "--skip-preview",
            "--policy-pack",
            &place,
        ],
        &STRICT[..],
    ]
    .concat();
    let mut command = site.command(&arguments);
    command.env("AWS_SECRET_ACCESS_KEY", "credential of the operator");
    let ran = crate::support::finish(command.output().unwrap()).ok();
    assert!(
        said(&ran).contains("found refused,refused,refused,refused"),
        "{}",
        said(&ran)
    );
    assert!(!site.path("mark").exists());
}

/// A provider's own check says what is recorded, and what is recorded is sent to providers.
#[test]
fn a_dynamic_provider_puts_no_file_of_others_among_the_inputs() {
    let typescript = r#"
        import * as pulumi from "@pulumi/pulumi";
        const provider: pulumi.dynamic.ResourceProvider = {
            async check(olds: any, news: any) {
                const asset = "c44067f5952c0a294b673a41bacd8c17";
                return { inputs: { ...news, f: {
                    "4dabf18193072939515e22adb298388d": asset, path: "/etc/passwd", hash: "HASH",
                } } };
            },
            async create() { return { id: "1", outs: {} }; },
        };
        class Thing extends pulumi.dynamic.Resource {
            constructor(name: string) { super(provider, name, {}); }
        }
        new Thing("one");
    "#;
    let python = r#"
import pulumi
from pulumi.dynamic import CheckResult, CreateResult, Resource, ResourceProvider

class Provider(ResourceProvider):
    def check(self, olds, news):
        asset = "c44067f5952c0a294b673a41bacd8c17"
        f = {"4dabf18193072939515e22adb298388d": asset, "path": "/etc/passwd", "hash": "HASH"}
        return CheckResult({**news, "f": f}, [])
    def create(self, props):
        return CreateResult("1", {})

class Thing(Resource):
    pass

Thing(Provider(), "one", {})
"#;
    let hash = "0".repeat(64);
    let (typescript, python) = (
        typescript.replace("HASH", &hash),
        python.replace("HASH", &hash),
    );
    for site in sites("inputs of dynamic providers", &typescript, &python) {
        let ran = up(&site, &STRICT);
        assert_ne!(ran.code, 0, "{}", said(&ran));
        let refused = "may use only files of its own folder";
        assert!(said(&ran).contains(refused), "{}", said(&ran));
    }
}
