//! The operator's roots and `--sandbox strict`: of a root a program sees what its project leads to, and
//! an audit says the same.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use serde_json::Value;

use crate::sandbox::{STRICT, isolates, python_site, said};
use crate::support::{ProgramRunOutput, Site, finish, node_sdk, python};

/// A root of which the project uses `team`; the rest is somebody else's.
fn share(site: &Site) {
    site.write("shared/secret", "secret of somebody else");
    site.write("shared/team/secret", "secret of the team");
    site.write("shared/other/node_modules/x/index.js", "");
}

/// Runs with the shared folder as one more root.
fn run(site: &Site, arguments: &[&str]) -> ProgramRunOutput {
    let mut command = site.command(arguments);
    let roots = command
        .get_envs()
        .find(|(name, _)| *name == "NIMBUS_ENGINE_SANDBOX_ROOTS")
        .and_then(|(_, value)| value.map(ToOwned::to_owned))
        .unwrap();
    let roots = std::env::split_paths(&roots).chain([site.path("shared")]);
    let roots = std::env::join_paths(roots).unwrap();
    command.env("NIMBUS_ENGINE_SANDBOX_ROOTS", roots);
    finish(command.output().unwrap())
}

fn up(site: &Site) {
    let arguments = ["program", "up", "--yes", "--skip-preview"];
    run(site, &[&arguments[..], &STRICT].concat()).ok();
}

fn outputs(site: &Site) -> Value {
    let report = site.program(&["outputs", "--json"]).ok().json();
    report["outputs"].clone()
}

/// The places below the shared folder that an audit lists.
fn audited(site: &Site, interpreter: &str) -> Vec<String> {
    let arguments = [
        "sandbox",
        "audit",
        "--sandbox",
        "strict",
        "--json",
        "--",
        interpreter,
    ];
    let report = run(site, &arguments).ok().json();
    let shared = site.path("shared").canonicalize().unwrap();
    let places = report["sees"].as_array().unwrap().iter();
    let places = places.map(|place| place["path"].as_str().unwrap().to_owned());
    let below = places.filter_map(|place| {
        let rest = Path::new(&place).strip_prefix(&shared).ok()?;
        Some(rest.display().to_string())
    });
    below.collect()
}

#[test]
fn a_node_program_sees_the_packages_of_a_root_and_nothing_beside_them() {
    let test = "packages in a root";
    let (true, Some(sdk)) = (isolates(test), node_sdk(test)) else {
        return;
    };
    let program = r#"
        import "@pulumi/pulumi";
        import * as fs from "fs";
        export const team = fs.readdirSync("SHARED/team").join();
        export const shared = fs.readdirSync("SHARED").sort().join();
        export const secrets = ["secret", "team/secret", "other"].filter((n) => fs.existsSync("SHARED/" + n)).join();
        export const base = fs.readdirSync("SHARED/settings").join();
    "#;
    for name in ["index.ts", "index.js"] {
        let site = Site::typescript(&sdk, "");
        share(&site);
        let shared = site.path("shared").canonicalize().unwrap();
        let program = program.replace("SHARED", &shared.display().to_string());
        let program = match name {
            "index.ts" => program,
            _ => program
                .replace("import \"@pulumi/pulumi\"", "require(\"@pulumi/pulumi\")")
                .replace("import * as fs from \"fs\"", "const fs = require(\"fs\")")
                .replace("export const ", "exports."),
        };
        fs::remove_file(site.path("program/index.ts")).unwrap();
        site.write(&format!("program/{name}"), &program);
        // Packages of the team, each where the operator installed it.
        fs::create_dir_all(site.path("shared/team/node_modules")).unwrap();
        for entry in fs::read_dir(sdk.join("node_modules")).unwrap() {
            let entry = entry.unwrap();
            let link = site
                .path("shared/team/node_modules")
                .join(entry.file_name());
            symlink(entry.path(), link).unwrap();
        }
        fs::remove_file(site.path("program/node_modules")).unwrap();
        symlink(
            site.path("shared/team/node_modules"),
            site.path("program/node_modules"),
        )
        .unwrap();
        site.write("shared/settings/base.json", r#"{"compilerOptions": {"target": "es2020", "module": "commonjs", "skipLibCheck": true}}"#);
        site.write("shared/settings/other.json", "{}");
        let settings = r#"{"extends": "../shared/settings/base.json"}"#;
        site.write("program/tsconfig.json", settings);

        up(&site);
        let outputs = outputs(&site);
        assert_eq!(outputs["team"], "node_modules", "{name}");
        assert_eq!(outputs["shared"], "settings,team", "{name}");
        assert_eq!(outputs["secrets"], "", "{name}");
        assert_eq!(outputs["base"], "base.json", "{name}");
        let mut listed = audited(&site, "node");
        listed.sort();
        assert_eq!(
            listed,
            ["settings/base.json", "team/node_modules"],
            "{name}"
        );
    }
}

#[test]
fn a_python_program_sees_the_code_of_its_environment_and_nothing_beside_it() {
    let test = "an environment in a root";
    let (true, Some(real)) = (isolates(test), python(test)) else {
        return;
    };
    let site = python_site(&real, "");
    share(&site);
    site.write("shared/team/src/teamwork.py", "WORD = 'hello'\n");
    let shared = site.path("shared").canonicalize().unwrap();
    // An environment of the project that leads to the SDK and to the team's code.
    let environment = real.parent().unwrap().parent().unwrap();
    let versions = fs::read_dir(environment.join("lib")).unwrap();
    let mut versions = versions.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let version = versions.find(|name| name.starts_with("python3")).unwrap();
    let packages = format!("lib/{version}/site-packages");
    let lines = format!(
        "{}\n{}\n",
        environment.join(&packages).display(),
        shared.join("team/src").display()
    );
    site.write(&format!("program/venv/{packages}/shared.pth"), &lines);
    let settings = fs::read_to_string(environment.join("pyvenv.cfg")).unwrap();
    site.write("program/venv/pyvenv.cfg", &settings);
    fs::create_dir_all(site.path("program/venv/bin")).unwrap();
    symlink(
        real.canonicalize().unwrap(),
        site.path("program/venv/bin/python"),
    )
    .unwrap();
    site.write(
        "program/Pulumi.yaml",
        "name: notes\nruntime:\n  name: python\n  options:\n    virtualenv: venv\n",
    );
    let program = r#"
import os
import pulumi
import teamwork

pulumi.export("word", teamwork.WORD)
pulumi.export("team", ",".join(os.listdir("SHARED/team")))
pulumi.export("shared", ",".join(os.listdir("SHARED")))
pulumi.export("secrets", ",".join(n for n in ["secret", "team/secret", "other"] if os.path.exists("SHARED/" + n)))
"#;
    let program = program.replace("SHARED", &shared.display().to_string());
    site.write("program/__main__.py", &program);
    up(&site);
    let outputs = outputs(&site);
    assert_eq!(outputs["word"], "hello");
    assert_eq!(outputs["team"], "src");
    assert_eq!(outputs["shared"], "team");
    assert_eq!(outputs["secrets"], "");
    assert_eq!(audited(&site, "venv/bin/python"), ["team/src"]);
}

/// A folder of a root that a project names by no link stays unseen, also where nothing else is used.
#[test]
fn a_root_that_a_project_does_not_lead_into_is_not_there() {
    let test = "a root that is not used";
    let (true, Some(sdk)) = (isolates(test), node_sdk(test)) else {
        return;
    };
    let site = Site::typescript(&sdk, "");
    share(&site);
    let shared = site.path("shared").canonicalize().unwrap();
    let program = format!(
        "import '@pulumi/pulumi'; import * as fs from 'fs'; export const there = fs.existsSync({shared:?});"
    );
    site.write("program/index.ts", &program);
    up(&site);
    assert_eq!(outputs(&site)["there"], false);
    assert_eq!(audited(&site, "node"), Vec::<String>::new());
    site.write(
        "program/index.ts",
        "import * as fs from 'fs'; fs.readFileSync('../shared/secret');",
    );
    let arguments = ["program", "up", "--yes", "--skip-preview"];
    let ran = run(&site, &[&arguments[..], &STRICT].concat());
    assert_ne!(ran.code, 0);
    assert!(
        !said(&ran).contains("secret of somebody else"),
        "{}",
        said(&ran)
    );
}
