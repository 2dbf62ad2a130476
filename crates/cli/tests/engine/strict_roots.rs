//! The operator's roots and `--sandbox strict`: of a root a program sees what its project leads to, and
//! an audit says the same.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use serde_json::Value;

use crate::sandbox::{STRICT, isolates, python_site, said, sites};
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
    command.env("NIMBUS_ENGINE_SANDBOX", "strict");
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
    // Neither of these can be imported.
    site.write("shared/team/src/notes.txt", "secret of the team");
    site.write("shared/team/src/.env", "secret of the team");
    let shared = site.path("shared").canonicalize().unwrap();
    // An environment of the project that leads to the SDK and to the team's code.
    let environment = real.parent().unwrap().parent().unwrap();
    let versions = fs::read_dir(environment.join("lib")).unwrap();
    let mut versions = versions.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let version = versions.find(|name| name.starts_with("python3")).unwrap();
    let packages = format!("lib/{version}/site-packages");
    let lines = format!(
        "{}\n{}\n{}\n",
        environment.join(&packages).display(),
        shared.join("team/src").display(),
        shared.display()
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
pulumi.export("source", ",".join(os.listdir("SHARED/team/src")))
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
    assert_eq!(outputs["source"], "teamwork.py");
    assert_eq!(audited(&site, "venv/bin/python"), ["team/src/teamwork.py"]);
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

/// Where links of a hostile project lead in a root: to all of it, to a folder that is no package, to a file,
/// to the root of a workspace.
#[test]
fn a_hostile_link_into_a_root_is_refused_unless_it_is_a_package() {
    let test = "hostile links into a root";
    let (true, Some(sdk)) = (isolates(test), node_sdk(test)) else {
        return;
    };
    let program = "import '@pulumi/pulumi'; export const there = true;";
    let arguments = ["program", "up", "--yes", "--skip-preview"];
    let arguments = [&arguments[..], &STRICT].concat();
    let site = Site::typescript(&sdk, program);
    share(&site);
    site.write("shared/lib/package.json", r#"{"name": "lib"}"#);
    site.write(
        "shared/all/package.json",
        r#"{"name": "all", "workspaces": ["*"]}"#,
    );
    site.write("shared/all/tenant/secret", "secret of a tenant");
    fs::remove_file(site.path("program/node_modules")).unwrap();
    fs::create_dir_all(site.path("program/node_modules/@pulumi")).unwrap();
    for package in ["@pulumi/pulumi", "typescript"] {
        let real = sdk.join("node_modules").join(package);
        if real.exists() {
            symlink(real, site.path("program/node_modules").join(package)).unwrap();
        }
    }
    let link = site.path("program/node_modules/x");
    for target in ["shared", "shared/team", "shared/secret", "shared/all"] {
        symlink(site.path(target), &link).unwrap();
        let ran = run(&site, &arguments);
        assert_ne!(ran.code, 0, "{target}: {}", said(&ran));
        assert!(said(&ran).contains("NIM-0407"), "{target}: {}", said(&ran));
        assert!(!said(&ran).contains("secret of"), "{}", said(&ran));
        fs::remove_file(&link).unwrap();
    }
    symlink(site.path("shared/lib"), &link).unwrap();
    up(&site);
    assert!(audited(&site, "node").contains(&"lib".to_owned()));
    // All packages at once, under another name.
    fs::remove_dir_all(site.path("program/node_modules")).unwrap();
    symlink(site.path("shared/team"), site.path("program/node_modules")).unwrap();
    let ran = run(&site, &arguments);
    assert!(said(&ran).contains("NIM-0407"), "{}", said(&ran));
}

const TYPESCRIPT_ASSET: &str = r#"
    import * as pulumi from "@pulumi/pulumi";
    class Thing extends pulumi.CustomResource {
        constructor(name: string) {
            super("random:index:Thing", name, { file: new pulumi.asset.FileAsset("./link") });
        }
    }
    new Thing("thief");
"#;

const PYTHON_ASSET: &str = r#"
import pulumi
pulumi.CustomResource("random:index:Thing", "thief", {"file": pulumi.FileAsset("./link")})
"#;

/// What the program is not shown of a root, the engine does not read for it, and no file of the project's settings lies
/// there: others share it, and settings are written.
#[test]
fn nothing_in_a_root_is_read_because_a_project_names_it() {
    let arguments = ["program", "up", "--yes", "--skip-preview"];
    let arguments = [&arguments[..], &STRICT].concat();
    for site in sites("files in a root", TYPESCRIPT_ASSET, PYTHON_ASSET) {
        share(&site);
        symlink(site.path("shared/secret"), site.path("program/link")).unwrap();
        let ran = run(&site, &arguments);
        assert_ne!(ran.code, 0, "{}", said(&ran));
        let refused = said(&ran);
        assert!(
            refused.contains("only files of its own folder"),
            "{refused}"
        );
        assert!(!refused.contains("secret of"), "{refused}");

        site.write(
            "shared/settings.yaml",
            "config:\n  notes:stolen: secret of somebody else\n",
        );
        let settings = site.path("program/Pulumi.dev.yaml");
        symlink(site.path("shared/settings.yaml"), &settings).unwrap();
        let set = ["stack-config", "set", "mine", "x"];
        let set = [&set[..], &["--stack", "organization/notes/dev"]].concat();
        for command in [&arguments, &set] {
            let ran = run(&site, command);
            assert_ne!(ran.code, 0, "{}", said(&ran));
            assert!(said(&ran).contains("NIM-0407"), "{}", said(&ran));
            assert!(!said(&ran).contains("secret of"), "{}", said(&ran));
        }
        let kept = site.read("shared/settings.yaml");
        assert!(!kept.contains("mine"), "{kept}");
        fs::remove_file(settings).unwrap();

        // Nor is the program itself anywhere but in its project.
        let project = site.read("program/Pulumi.yaml");
        site.write(
            "program/Pulumi.yaml",
            &format!("{project}main: ../shared/team\n"),
        );
        site.write("shared/team/index.ts", "");
        site.write("shared/team/__main__.py", "");
        let ran = run(&site, &arguments);
        assert!(said(&ran).contains("NIM-0407"), "{}", said(&ran));
    }
}

/// A refusal has the words of the project. Where a link of the operator leads is not told.
#[test]
fn a_refusal_does_not_say_where_links_of_the_operator_lead() {
    let arguments = ["program", "up", "--yes", "--skip-preview"];
    let arguments = [&arguments[..], &STRICT].concat();
    for site in sites("links of the operator", TYPESCRIPT_ASSET, PYTHON_ASSET) {
        share(&site);
        site.write("vault-of-the-operator/key", "secret of the operator");
        let vault = site.path("vault-of-the-operator");
        symlink(&vault, site.path("shared/way")).unwrap();
        symlink(site.path("shared/way/key"), site.path("program/link")).unwrap();
        let ran = run(&site, &arguments);
        assert_ne!(ran.code, 0);
        assert!(
            !said(&ran).contains("vault-of-the-operator"),
            "{}",
            said(&ran)
        );
        fs::remove_file(site.path("program/link")).unwrap();
        symlink(
            site.path("shared/way/key"),
            site.path("program/Pulumi.dev.yaml"),
        )
        .unwrap();
        let ran = run(&site, &arguments);
        assert!(said(&ran).contains("NIM-0407"), "{}", said(&ran));
        assert!(said(&ran).contains("shared/way/key"), "{}", said(&ran));
        assert!(
            !said(&ran).contains("vault-of-the-operator"),
            "{}",
            said(&ran)
        );
    }
}
