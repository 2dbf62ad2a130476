//! A hostile project and `--sandbox strict`: nothing that it ships runs outside of the sandbox, and
//! nothing outside of its folder is shown or read because it says so.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use crate::sandbox::{STRICT, isolates, python_site, said, sites, up};
use crate::support::{ProgramRunOutput, Site, node_sdk, python};

/// Makes a project lead to a folder outside of it.
type Attack<'a> = &'a dyn Fn(&Site, &Path);

const TYPESCRIPT: &str = "import '@pulumi/pulumi'; export const x = 1;";
const PYTHON: &str = "import pulumi\npulumi.export('x', 1)\n";

fn executable(site: &Site, name: &str, text: &str) {
    site.write(name, text);
    let mode = fs::Permissions::from_mode(0o755);
    fs::set_permissions(site.path(name), mode).unwrap();
}

/// A script that leaves a mark with what it knows, outside of the project.
fn marking(site: &Site, then: &str) -> String {
    let mark = site.path("mark").display().to_string();
    format!("#!/bin/sh\nenv >> {mark}\n{then}\n")
}

#[track_caller]
fn assert_refused(ran: &ProgramRunOutput, code: &str) {
    assert_ne!(ran.code, 0, "{}", said(ran));
    assert!(said(ran).contains(code), "{}", said(ran));
}

/// Every operation that looks at a project, previews first.
const OPERATIONS: [&[&str]; 4] = [
    &["preview"],
    &["up", "--yes", "--skip-preview"],
    &["refresh", "--yes", "--skip-preview"],
    &["destroy", "--yes", "--skip-preview"],
];

#[test]
fn a_projects_interpreter_is_asked_nothing_outside_of_the_sandbox() {
    let test = "a project's interpreter";
    let (true, Some(real)) = (isolates(test), python(test)) else {
        return;
    };
    for toolchain in ["pip", "uv", "poetry"] {
        let site = Site::new();
        let project = format!(
            "name: notes\nruntime:\n  name: python\n  options:\n    virtualenv: .venv\n    toolchain: {toolchain}\n"
        );
        site.write("program/Pulumi.yaml", &project);
        site.write("program/__main__.py", PYTHON);
        site.write("program/pyproject.toml", "[project]\nname = \"x\"\n");
        site.write("program/uv.lock", "");
        let interpreter = marking(&site, &format!("exec {} \"$@\"", real.display()));
        executable(&site, "program/.venv/bin/python", &interpreter);
        for operation in OPERATIONS {
            let ran = site.program(&[operation, &STRICT].concat());
            assert!(
                !site.path("mark").exists(),
                "{toolchain} {operation:?}: {}",
                said(&ran)
            );
        }
        // The same project is its user's own without a sandbox, and everything works.
        site.up().ok();
        assert!(site.path("mark").exists());
    }
}

/// What lies in the program's folder is what an interpreter loads first.
#[test]
fn the_operators_interpreter_is_not_asked_where_a_project_could_answer() {
    let test = "the operator's interpreter";
    if !isolates(test) || python(test).is_none() {
        return;
    }
    let site = Site::new();
    site.write("program/Pulumi.yaml", "name: notes\nruntime: python\n");
    site.write("program/__main__.py", PYTHON);
    let mark = site.path("mark").display().to_string();
    for module in ["json", "importlib", "encodings"] {
        site.write(
            &format!("program/{module}.py"),
            &format!("open({mark:?}, 'a')\n"),
        );
    }
    for operation in OPERATIONS {
        let ran = site.program(&[operation, &STRICT].concat());
        assert!(!site.path("mark").exists(), "{operation:?}: {}", said(&ran));
    }
}

#[test]
fn poetry_is_not_run_for_a_stranger() {
    let test = "poetry";
    let (true, Some(_)) = (isolates(test), python(test)) else {
        return;
    };
    let site = Site::new();
    let project = "name: notes\nruntime:\n  name: python\n  options:\n    toolchain: poetry\n";
    site.write("program/Pulumi.yaml", project);
    site.write("program/__main__.py", PYTHON);
    site.write("program/pyproject.toml", "");
    executable(&site, "bin/poetry", &marking(&site, "echo /nowhere"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path =
        std::env::join_paths(std::iter::once(site.path("bin")).chain(std::env::split_paths(&path)));
    let mut command = site.command(&[&["program", "preview"], &STRICT[..]].concat());
    let ran = crate::support::finish(command.env("PATH", path.unwrap()).output().unwrap());
    assert_refused(&ran, "virtualenvs.in-project");
    assert!(!site.path("mark").exists());
}

/// Links and settings by which a project could point at somebody else's folder.
#[test]
fn nothing_outside_is_shown_because_a_project_says_so() {
    let test = "projects that point elsewhere";
    if !isolates(test) {
        return;
    }
    let lines = |name: &str, more: &str| format!("name: notes\nruntime:\n  name: {name}\n{more}");
    let secret = |site: &Site| {
        site.write("outside/index.ts", TYPESCRIPT);
        site.write("outside/__main__.py", PYTHON);
        site.write("outside/bin/python", "");
        site.path("outside")
    };
    if let Some(sdk) = node_sdk(test) {
        let links: [Attack<'_>; 3] = [
            // A package that is a link.
            &|site, outside| {
                fs::remove_file(site.path("program/node_modules")).unwrap();
                fs::create_dir_all(site.path("program/node_modules/@pulumi")).unwrap();
                let own = sdk.join("node_modules/@pulumi/pulumi");
                symlink(own, site.path("program/node_modules/@pulumi/pulumi")).unwrap();
                symlink(outside, site.path("program/node_modules/x")).unwrap();
            },
            // All packages.
            &|site, outside| {
                fs::remove_file(site.path("program/node_modules")).unwrap();
                symlink(outside, site.path("program/node_modules")).unwrap();
            },
            // The program itself.
            &|site, outside| {
                let main = format!("main: {}\n", outside.display());
                site.write("program/Pulumi.yaml", &lines("nodejs", &main));
            },
        ];
        for change in links {
            let site = Site::typescript(&sdk, TYPESCRIPT);
            let outside = secret(&site);
            change(&site, &outside);
            for operation in &OPERATIONS[..2] {
                let ran = site.program(&[operation, &STRICT[..]].concat());
                assert_refused(&ran, "engine.sandbox_roots");
            }
        }
    }
    let Some(interpreter) = python(test) else {
        return;
    };
    let links: [Attack<'_>; 4] = [
        &|site, outside| {
            let options = format!("  options:\n    virtualenv: {}\n", outside.display());
            site.write("program/Pulumi.yaml", &lines("python", &options));
        },
        &|site, _| {
            let options = "  options:\n    virtualenv: ../outside\n";
            site.write("program/Pulumi.yaml", &lines("python", options));
        },
        // An interpreter that is a chain of links.
        &|site, outside| {
            let options = "  options:\n    virtualenv: venv\n";
            site.write("program/Pulumi.yaml", &lines("python", options));
            fs::create_dir_all(site.path("program/venv/bin")).unwrap();
            fs::create_dir_all(site.path("program/venv/lib/python3/site-packages/pulumi")).unwrap();
            site.write(
                "program/venv/lib/python3/site-packages/pulumi/__init__.py",
                "",
            );
            symlink("one", site.path("program/venv/bin/python")).unwrap();
            symlink(
                outside.join("bin/python"),
                site.path("program/venv/bin/one"),
            )
            .unwrap();
        },
        &|site, outside| {
            let main = format!("main: {}\n", outside.join("__main__.py").display());
            site.write("program/Pulumi.yaml", &lines("python", &main));
        },
    ];
    for change in links {
        let site = python_site(&interpreter, PYTHON);
        let outside = secret(&site);
        change(&site, &outside);
        for operation in &OPERATIONS[..2] {
            let ran = site.program(&[operation, &STRICT[..]].concat());
            assert_refused(&ran, "engine.sandbox_roots");
        }
    }
}

/// By every road that an asset offers, also with a hash that saves the engine from looking.
#[test]
fn the_engine_reads_nothing_outside_as_an_asset() {
    let hash = "0".repeat(64);
    let assets = [
        ("new a.FileAsset('link')", "a.FileAsset('link')"),
        (
            "new a.FileAsset('../outside/secret')",
            "a.FileAsset('../outside/secret')",
        ),
        (
            "new a.FileAsset('/proc/self/environ')",
            "a.FileAsset('/proc/self/environ')",
        ),
        ("new a.FileArchive('folder')", "a.FileArchive('folder')"),
        ("new a.FileArchive('deep')", "a.FileArchive('deep')"),
        (
            "new a.AssetArchive({x: new a.FileAsset('link')})",
            "a.AssetArchive({'x': a.FileAsset('link')})",
        ),
        (
            "new a.RemoteAsset('file:///etc/passwd')",
            "a.RemoteAsset('file:///etc/passwd')",
        ),
        (
            "new a.RemoteAsset('http://169.254.169.254/x')",
            "a.RemoteAsset('http://169.254.169.254/x')",
        ),
        (
            "({'4dabf18193072939515e22adb298388d': 'c44067f5952c0a294b673a41bacd8c17', path: '../outside/secret', hash: 'HASH'} as any)",
            "{'4dabf18193072939515e22adb298388d': 'c44067f5952c0a294b673a41bacd8c17', 'path': '../outside/secret', 'hash': 'HASH'}",
        ),
        (
            "({'4dabf18193072939515e22adb298388d': 'c44067f5952c0a294b673a41bacd8c17', uri: 'http://169.254.169.254/x', hash: 'HASH'} as any)",
            "{'4dabf18193072939515e22adb298388d': 'c44067f5952c0a294b673a41bacd8c17', 'uri': 'http://169.254.169.254/x', 'hash': 'HASH'}",
        ),
    ];
    for (typescript, python_source) in assets {
        let typescript = format!(
            "import * as pulumi from '@pulumi/pulumi';\nconst a = pulumi.asset;\n\
             class T extends pulumi.CustomResource {{ constructor() {{ super('random:index:T', 't', {{ f: {typescript} }}); }} }}\n\
             new T();\nexport const used = a;"
        );
        let python_source = format!(
            "import pulumi\nimport pulumi as a\npulumi.CustomResource('random:index:T', 't', {{'f': {python_source}}})\n"
        );
        let (typescript, python_source) = (
            typescript.replace("HASH", &hash),
            python_source.replace("HASH", &hash),
        );
        for site in sites("assets", &typescript, &python_source) {
            site.write("outside/secret", "secret of somebody else");
            symlink("../outside/secret", site.path("program/link")).unwrap();
            fs::create_dir_all(site.path("program/folder")).unwrap();
            symlink("../../outside", site.path("program/folder/way")).unwrap();
            fs::create_dir_all(site.path("program/deep/er")).unwrap();
            symlink(
                site.path("outside/secret"),
                site.path("program/deep/er/link"),
            )
            .unwrap();
            let ran = up(&site, &[&STRICT[..], &["--no-typecheck"]].concat());
            assert_ne!(ran.code, 0);
            let said = said(&ran);
            let refused = said.contains("only files of its own folder")
                || said.contains("network addresses cannot be read");
            assert!(refused, "{typescript}: {said}");
            assert!(!said.contains("secret of somebody else"), "{said}");
        }
    }
}

#[test]
fn files_of_settings_are_the_projects_own() {
    let test = "files of settings";
    for site in sites(test, TYPESCRIPT, PYTHON) {
        let outside = "config:\n  notes:stolen: secret of somebody else\n";
        site.write("outside/Pulumi.dev.yaml", outside);
        symlink(
            "../outside/Pulumi.dev.yaml",
            site.path("program/Pulumi.dev.yaml"),
        )
        .unwrap();
        let ran = up(&site, &STRICT);
        assert_refused(&ran, "NIM-0407");
        assert!(!said(&ran).contains("secret of somebody else"));
        fs::remove_file(site.path("program/Pulumi.dev.yaml")).unwrap();
        let project = site.read("program/Pulumi.yaml");
        site.write(
            "program/Pulumi.yaml",
            &format!("{project}stackConfigDir: ../outside\n"),
        );
        assert_refused(&up(&site, &STRICT), "NIM-0407");
        site.write("outside/Pulumi.yaml", &project);
        fs::remove_file(site.path("program/Pulumi.yaml")).unwrap();
        symlink("../outside/Pulumi.yaml", site.path("program/Pulumi.yaml")).unwrap();
        assert_refused(&up(&site, &STRICT), "NIM-0407");
    }
}

#[test]
fn a_project_does_not_decide_where_its_state_is() {
    for site in sites("backends", TYPESCRIPT, PYTHON) {
        let other = site.path("other-tenant");
        fs::create_dir(&other).unwrap();
        let project = site.read("program/Pulumi.yaml");
        let project = format!("{project}backend:\n  url: file://{}\n", other.display());
        site.write("program/Pulumi.yaml", &project);
        let arguments = [&["program", "up", "--yes", "--skip-preview"], &STRICT[..]].concat();
        let mut command = site.command(&arguments);
        command.env_remove("PULUMI_BACKEND_URL");
        assert_refused(
            &crate::support::finish(command.output().unwrap()),
            "NIM-0409",
        );
        // The operator's word goes over the project's.
        up(&site, &STRICT).ok();
        assert_eq!(fs::read_dir(&other).unwrap().count(), 0);
        assert!(site.path("backend").exists());
    }
}

/// Each tenant has a backend, and no name of a stack leads out of it.
#[test]
fn a_stack_reference_stays_in_its_backend() {
    let victim = "import '@pulumi/pulumi'; export const secret = 'secret of somebody else';";
    let victim_python = "import pulumi\npulumi.export('secret', 'secret of somebody else')\n";
    let names = [
        "organization/victim/prod",
        "victim",
        "organization/../../../victim-backend/.pulumi/stacks/victim/prod",
        "../victim-backend/.pulumi/stacks/victim/prod",
        "organization/notes/../../../../victim-backend/.pulumi/stacks/notes/dev",
        "other/notes/dev",
    ];
    for site in sites("victim", victim, victim_python) {
        let mut command =
            site.command(&[&["program", "up", "--yes", "--skip-preview"], &STRICT[..]].concat());
        let backend = format!("file://{}", site.path("victim-backend").display());
        fs::create_dir(site.path("victim-backend")).unwrap();
        assert!(
            command
                .env("PULUMI_BACKEND_URL", backend)
                .output()
                .unwrap()
                .status
                .success()
        );
        let python_program = site.path("program/__main__.py").exists();
        for name in names {
            match python_program {
                true => site.write(
                    "program/__main__.py",
                    &format!("import pulumi\nr = pulumi.StackReference('r', stack_name={name:?})\npulumi.export('got', r.outputs)\n"),
                ),
                false => site.write(
                    "program/index.ts",
                    &format!("import * as pulumi from '@pulumi/pulumi';\nexport const got = new pulumi.StackReference('r', {{ name: {name:?} }}).outputs;"),
                ),
            }
            let ran = up(&site, &STRICT);
            assert_ne!(ran.code, 0, "{name}: {}", said(&ran));
            assert!(
                !said(&ran).contains("secret of somebody else"),
                "{name}: {}",
                said(&ran)
            );
        }
    }
}
