//! What is the operator's and `--sandbox strict`: a stranger's project makes no use of plugins, credentials,
//! variables and files that the operator did not give it.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::PathBuf;
use std::process::Command;

use crate::sandbox::{STRICT, isolates, python_site, said, sites, up};
use crate::support::{ProgramRunOutput, Site, finish, node_sdk, python};

const TYPESCRIPT: &str = "import '@pulumi/pulumi'; export const x = 1;";
const PYTHON: &str = "import pulumi\npulumi.export('x', 1)\n";

fn executable(site: &Site, name: &str, text: &str) {
    site.write(name, text);
    let mode = fs::Permissions::from_mode(0o755);
    fs::set_permissions(site.path(name), mode).unwrap();
}

fn strict_up(site: &Site, change: impl FnOnce(&mut Command)) -> ProgramRunOutput {
    let arguments = [&["program", "up", "--yes", "--skip-preview"], &STRICT[..]].concat();
    let mut command = site.command(&arguments);
    change(&mut command);
    finish(command.output().unwrap())
}

/// A resource of a package, in both languages.
fn of_package(test: &str, package: &str) -> Vec<Site> {
    let typescript = format!(
        "import * as pulumi from '@pulumi/pulumi';\n\
         class T extends pulumi.CustomResource {{ constructor() {{ super('{package}:index:T', 't', {{}}); }} }}\nnew T();"
    );
    let python = format!("import pulumi\npulumi.CustomResource('{package}:index:T', 't', {{}})\n");
    sites(test, &typescript, &python)
}

/// Modules and settings of the project that interpreters load from the folder that they run in.
fn traps(site: &Site) {
    let mark = site.path("mark").display().to_string();
    for module in [
        "pulumi/__init__",
        "json",
        "runpy",
        "importlib/__init__",
        "grpc",
    ] {
        let text = format!("open({mark:?}, 'a').write('python')\n");
        site.write(&format!("program/{module}.py"), &text);
    }
    let hook = format!("require('fs').appendFileSync({mark:?}, 'node');\n");
    site.write("program/hook.js", &hook);
    site.write("program/.noderc", "--require ./hook.js\n");
    let settings = r#"{"ts-node": {"require": ["./hook.js"]}, "compilerOptions": {}}"#;
    site.write("program/tsconfig.json", settings);
}

/// The operator's plugins in source run with credentials, and not where the project's files are.
#[test]
fn an_operators_plugin_loads_nothing_of_the_project() {
    let test = "an operator's plugin";
    let folder = "home/.pulumi/plugins/resource-thing-v1.0.0";
    for mut language in ["nodejs", "python"].map(str::to_owned) {
        for site in of_package(test, "thing") {
            let manifest = format!("{folder}/PulumiPlugin.yaml");
            site.write(&manifest, &format!("runtime: {language}\n"));
            match language.as_str() {
                "nodejs" => {
                    let Some(sdk) = node_sdk(test) else { continue };
                    site.write(&format!("{folder}/index.ts"), "process.exit(3);\n");
                    site.write(&format!("{folder}/package.json"), r#"{"name": "thing"}"#);
                    let modules = site.path(&format!("{folder}/node_modules"));
                    symlink(sdk.join("node_modules"), modules).unwrap();
                }
                _ => {
                    let Some(real) = python(test) else { continue };
                    site.write(
                        &format!("{folder}/pyproject.toml"),
                        "[project]\nname = \"thing\"\n",
                    );
                    let environment = real.parent().unwrap().parent().unwrap();
                    symlink(environment, site.path(&format!("{folder}/venv"))).unwrap();
                }
            }
            let is_python = site.path("program/__main__.py").exists();
            traps(&site);
            if is_python {
                // The program itself may load what it likes, in its sandbox.
                fs::remove_dir_all(site.path("program/pulumi")).unwrap();
                site.write("program/sub/__main__.py", &site.read("program/__main__.py"));
            }
            let ran = strict_up(&site, |_| {});
            assert_ne!(ran.code, 0, "the plugin is none: {}", said(&ran));
            assert!(!site.path("mark").exists(), "{language}: {}", said(&ran));
            // Without a sandbox the project is one's own, and the same trap works.
            if !is_python {
                site.up();
                assert!(
                    site.path("mark").exists(),
                    "{language} loads nothing at all"
                );
            }
        }
        language.clear();
    }
}

/// Parameters make some plugins fetch and run whatever they name; others run commands by themselves.
#[test]
fn a_plugin_that_hands_out_the_machine_has_to_be_named() {
    for package in ["command", "docker", "kubernetes", "terraform-provider"] {
        for site in of_package("plugins that hand out the machine", package) {
            let mark = site.path("mark").display().to_string();
            // On the search path, where the version that a package wants does not matter.
            let plugin = format!("bin/pulumi-resource-{package}");
            executable(&site, &plugin, &format!("#!/bin/sh\nenv > {mark}\n"));
            let ran = up(&site, &STRICT);
            assert_ne!(ran.code, 0);
            assert!(
                said(&ran).contains("engine.sandbox_providers"),
                "{}",
                said(&ran)
            );
            assert!(!site.path("mark").exists(), "{package} was started");
            // The operator's word lets it start.
            strict_up(&site, |command| {
                let path = std::env::var_os("PATH").unwrap_or_default();
                let path = std::iter::once(site.path("bin")).chain(std::env::split_paths(&path));
                command
                    .env("PATH", std::env::join_paths(path).unwrap())
                    .env("NIMBUS_ENGINE_SANDBOX_PROVIDERS", package);
            });
            assert!(site.path("mark").exists(), "{package} was not started");
        }
    }
}

#[test]
fn a_plugin_is_given_no_parameters_by_a_stranger() {
    let test = "parameters";
    let (true, Some(sdk)) = (isolates(test), node_sdk(test)) else {
        return;
    };
    let source = "import * as pulumi from '@pulumi/pulumi';\n\
        (pulumi.runtime as any).registerPackage;\n\
        class T extends pulumi.CustomResource { constructor() { super('evil:index:T', 't', {}, {}, false, pkg()); } }\n\
        function pkg(): any {\n\
          const { RegisterPackageRequest, Parameterization } = require('@pulumi/pulumi/proto/resource_pb');\n\
          const request = new RegisterPackageRequest(); request.setName('thing'); request.setVersion('1.0.0');\n\
          const p = new Parameterization(); p.setName('evil'); p.setVersion('1.0.0'); p.setValue(Buffer.from('x').toString('base64'));\n\
          request.setParameterization(p);\n\
          const monitor: any = pulumi.runtime.getMonitor();\n\
          return new Promise((ok, no) => monitor.registerPackage(request, (e: any, r: any) => e ? no(e) : ok(r.getRef())));\n\
        }\nnew T();";
    let site = Site::typescript(&sdk, source);
    let mark = site.path("mark").display().to_string();
    let plugin = "home/.pulumi/plugins/resource-thing-v1.0.0/pulumi-resource-thing";
    executable(&site, plugin, &format!("#!/bin/sh\nenv > {mark}\n"));
    let ran = up(&site, &[&STRICT[..], &["--no-typecheck"]].concat());
    assert_ne!(ran.code, 0, "{}", said(&ran));
    assert!(
        said(&ran).contains("engine.sandbox_providers"),
        "{}",
        said(&ran)
    );
    assert!(!site.path("mark").exists(), "it was started");
    strict_up(&site, |command| {
        command
            .arg("--no-typecheck")
            .env("NIMBUS_ENGINE_SANDBOX_PROVIDERS", "thing");
    });
    assert!(
        site.path("mark").exists(),
        "the operator's word lets it start"
    );
}

/// `name: path` of a state is no more trusted than a program.
#[test]
fn a_state_file_starts_no_plugin_of_a_strangers() {
    for site in sites("hostile states", TYPESCRIPT, PYTHON) {
        up(&site, &STRICT).ok();
        let mark = site.path("mark").display().to_string();
        executable(
            &site,
            "evil/pulumi-resource-evil",
            &format!("#!/bin/sh\nenv > {mark}\n"),
        );
        executable(
            &site,
            "program/pulumi-resource-evil",
            &format!("#!/bin/sh\nenv > {mark}\n"),
        );
        let state = site.state(&["export"]).ok().stdout;
        let mut state: serde_json::Value = serde_json::from_str(&state).unwrap();
        let provider = serde_json::json!({
            "urn": "urn:pulumi:dev::notes::pulumi:providers:evil::default",
            "custom": true, "id": "1", "type": "pulumi:providers:evil",
            "inputs": {"version": "1.0.0", "pluginDownloadURL": format!("file://{}", site.path("evil").display())},
            "outputs": {"version": "1.0.0"},
        });
        let thing = serde_json::json!({
            "urn": "urn:pulumi:dev::notes::evil:index:T::t", "custom": true, "id": "t", "type": "evil:index:T",
            "inputs": {}, "outputs": {},
            "provider": "urn:pulumi:dev::notes::pulumi:providers:evil::default::1",
        });
        let resources = state["deployment"]["resources"].as_array_mut().unwrap();
        resources.extend([provider, thing]);
        site.write("state.json", &state.to_string());
        let file = site.path("state.json").display().to_string();
        site.state(&["import", "--file", &file, "--yes"]);
        for operation in ["refresh", "destroy"] {
            let ran =
                site.program(&[&[operation, "--yes", "--skip-preview"], &STRICT[..]].concat());
            assert!(!site.path("mark").exists(), "{operation}: {}", said(&ran));
        }
    }
}

/// A policy pack names its virtual environment, and a link is one too.
#[test]
fn a_policy_packs_interpreter_is_its_own() {
    let test = "interpreters of policy packs";
    let (true, Some(real)) = (isolates(test), python(test)) else {
        return;
    };
    let elsewhere = |site: &Site| -> PathBuf {
        site.write("elsewhere/secret", "secret of somebody else");
        executable(site, "elsewhere/bin/python", "#!/bin/sh\nexit 3\n");
        site.path("elsewhere")
    };
    let named =
        |place: &str| format!("runtime:\n  name: python\n  options:\n    virtualenv: {place}\n");
    let attacks: [&dyn Fn(&Site); 3] = [
        &|site| {
            let place = elsewhere(site).display().to_string();
            site.write("pack/PulumiPolicy.yaml", &named(&place));
        },
        &|site| {
            elsewhere(site);
            site.write("pack/PulumiPolicy.yaml", &named("../elsewhere"));
        },
        &|site| {
            let place = elsewhere(site);
            site.write("pack/PulumiPolicy.yaml", "runtime: python\n");
            symlink(place, site.path("pack/venv")).unwrap();
        },
    ];
    for attack in attacks {
        let site = python_site(&real, PYTHON);
        site.write("pack/__main__.py", "");
        attack(&site);
        let pack = site.path("pack").display().to_string();
        let ran = up(&site, &[&STRICT[..], &["--policy-pack", &pack]].concat());
        assert_ne!(ran.code, 0, "{}", said(&ran));
        assert!(
            said(&ran).contains("engine.sandbox_roots"),
            "{}",
            said(&ran)
        );
    }
}

/// What a pack in Python, and a pack with a network to reach, can do.
#[test]
fn a_python_policy_pack_runs_in_the_sandbox_without_a_network() {
    let test = "a Python policy pack";
    let (true, Some(real)) = (isolates(test), python(test)) else {
        return;
    };
    let service = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = service.local_addr().unwrap().port().to_string();
    let site = python_site(&real, PYTHON);
    site.write("outside/secret", "secret of somebody else");
    let virtualenv = real
        .parent()
        .unwrap()
        .parent()
        .unwrap()
        .display()
        .to_string();
    let manifest = format!(
        "runtime:\n  name: python\n  options:\n    virtualenv: {virtualenv}\nversion: 1.0.0\n"
    );
    site.write("pack/PulumiPolicy.yaml", &manifest);
    let pack = r#"
import os, socket, sys
def attempt(what):
    try:
        return f"GOT {what()}"
    except Exception:
        return "refused"
found = ",".join([
    attempt(lambda: open("OUTSIDE").read()),
    attempt(lambda: open("MARK", "w").write("x")),
    attempt(lambda: socket.create_connection(("127.0.0.1", PORT), 2)),
    os.environ.get("AWS_SECRET_ACCESS_KEY", "refused"),
    os.environ.get("PULUMI_CONFIG_PASSPHRASE", "refused"),
])
print("found " + found, file=sys.stderr, flush=True)
sys.exit(3)
"#;
    let pack = pack
        .replace(
            "OUTSIDE",
            &site.path("outside/secret").display().to_string(),
        )
        .replace("MARK", &site.path("mark").display().to_string())
        .replace("PORT", &port);
    site.write("pack/__main__.py", &pack);
    let place = site.path("pack").display().to_string();
    let run = |sandbox: &[&str]| {
        let arguments = [
            "program",
            "up",
            "--yes",
            "--skip-preview",
            "--policy-pack",
            &place,
        ];
        let mut command = site.command(&[&arguments[..], sandbox].concat());
        command.env("AWS_SECRET_ACCESS_KEY", "credential of the operator");
        said(&finish(command.output().unwrap()))
    };
    let inside = run(&STRICT);
    assert!(
        inside.contains("found refused,refused,refused,refused,refused"),
        "{inside}"
    );
    assert!(!site.path("mark").exists());
    // The same calls succeed where nothing stands around them.
    let outside = run(&[]);
    assert!(
        outside.contains("found GOT secret of somebody else,GOT"),
        "{outside}"
    );
    assert!(site.path("mark").exists());
}

/// `config set` and `--config` write the file of a stack, which the project may have made a link.
#[test]
fn settings_are_not_written_through_a_link() {
    for site in sites("settings that are links", TYPESCRIPT, PYTHON) {
        site.write("outside/victim.yaml", "config: {}\n");
        let ways: [&dyn Fn(); 2] = [
            &|| {
                symlink(
                    "../outside/victim.yaml",
                    site.path("program/Pulumi.dev.yaml"),
                )
                .unwrap();
            },
            &|| {
                let project = site.read("program/Pulumi.yaml");
                site.write(
                    "program/Pulumi.yaml",
                    &format!("{project}stackConfigDir: ../outside\n"),
                );
            },
        ];
        for way in ways {
            way();
            let set = ["stack-config", "set", "stolen", "value"];
            let mut command = site.command(&set);
            let ran = finish(
                command
                    .env("NIMBUS_ENGINE_SANDBOX", "strict")
                    .output()
                    .unwrap(),
            );
            assert_ne!(ran.code, 0, "{}", said(&ran));
            assert!(said(&ran).contains("NIM-0407"), "{}", said(&ran));
            let ran = up(
                &site,
                &[&STRICT[..], &["--config", "stolen=value"]].concat(),
            );
            assert!(said(&ran).contains("NIM-0407"), "{}", said(&ran));
            assert_eq!(site.read("outside/victim.yaml"), "config: {}\n");
            assert!(!site.path("outside/Pulumi.dev.yaml").exists());
            let _ = fs::remove_file(site.path("program/Pulumi.dev.yaml"));
        }
    }
}

/// Stacks of other projects of the same backend are others'.
#[test]
fn a_stack_reference_stays_in_its_project() {
    let victim = "import '@pulumi/pulumi'; export const secret = 'secret of somebody else';";
    let victim_python = "import pulumi\npulumi.export('secret', 'secret of somebody else')\n";
    for site in sites("references to other projects", victim, victim_python) {
        let project = site.read("program/Pulumi.yaml");
        site.write(
            "program/Pulumi.yaml",
            &project.replace("name: notes", "name: victim"),
        );
        let name = "organization/victim/dev";
        up(&site, &["--sandbox", "strict", "--stack", name]).ok();
        site.write("program/Pulumi.yaml", &project);
        match site.path("program/__main__.py").exists() {
            true => site.write(
                "program/__main__.py",
                &format!("import pulumi\nr = pulumi.StackReference('r', stack_name={name:?})\npulumi.export('got', r.get_output('secret'))\n"),
            ),
            false => site.write(
                "program/index.ts",
                &format!("import * as pulumi from '@pulumi/pulumi';\nexport const got = new pulumi.StackReference('r', {{ name: {name:?} }}).getOutput('secret');"),
            ),
        }
        let ran = up(&site, &STRICT);
        assert_ne!(ran.code, 0, "{}", said(&ran));
        assert!(
            said(&ran).contains("engine.sandbox_references"),
            "{}",
            said(&ran)
        );
        let ran = strict_up(&site, |command| {
            command.env("NIMBUS_ENGINE_SANDBOX_REFERENCES", "victim");
        });
        assert!(said(&ran.ok()).contains("secret of somebody else"));
    }
}

/// A package may say that its plugin is anywhere, and a plugin runs outside of the sandbox.
#[test]
fn plugins_are_not_installed_from_where_a_stranger_says() {
    let test = "places of plugins";
    let (true, Some(sdk)) = (isolates(test), node_sdk(test)) else {
        return;
    };
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let host = listener.local_addr().unwrap();
    for server in [format!("http://{host}/x"), format!("github://{host}/me")] {
        let site = Site::typescript(&sdk, TYPESCRIPT);
        fs::remove_file(site.path("program/node_modules")).unwrap();
        let manifest = format!(
            r#"{{"name": "evil", "version": "1.0.0", "pulumi": {{"resource": true, "name": "evil", "version": "1.0.0", "server": "{server}"}}}}"#
        );
        site.write("program/node_modules/evil/package.json", &manifest);
        site.write(
            "program/package.json",
            r#"{"name": "notes", "dependencies": {"evil": "1.0.0"}}"#,
        );
        let mut command = site.command(&["plugin", "install"]);
        command
            .env("NIMBUS_ENGINE_SANDBOX", "strict")
            .env("GITHUB_TOKEN", "credential of the operator");
        let ran = finish(command.output().unwrap());
        assert_ne!(ran.code, 0, "{}", said(&ran));
        assert!(said(&ran).contains("NIM-0313"), "{}", said(&ran));
        assert!(listener.accept().is_err(), "{server} was asked");
    }
}
