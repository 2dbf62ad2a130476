//! Everything that a stranger's project says in its files, and `--sandbox strict`: what it says has no
//! effect outside of the sandbox. `docs/sandbox.md` lists every key, and which test tries it.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::sandbox::{STRICT, isolates, python_site, said, sites, up};
use crate::support::{ProgramRunOutput, Site, finish, node_sdk, python, wait_until};

const TYPESCRIPT: &str = "import '@pulumi/pulumi'; export const x = 1;";
const PYTHON: &str = "import pulumi\npulumi.export('x', 1)\n";

#[track_caller]
fn assert_refused(ran: &ProgramRunOutput, words: &str) {
    assert_ne!(ran.code, 0, "{}", said(ran));
    assert!(said(ran).contains(words), "{words}: {}", said(ran));
}

/// A script that leaves a mark outside of the project.
fn marking(site: &Site, name: &str) {
    let mark = site.path("mark").display().to_string();
    site.write(name, &format!("#!/bin/sh\nenv >> {mark}\n"));
    let mode = fs::Permissions::from_mode(0o755);
    fs::set_permissions(site.path(name), mode).unwrap();
}

/// A service that opens keys is asked with the operator's credentials.
#[test]
fn a_project_chooses_no_service_for_its_secrets() {
    for site in sites("services for secrets", TYPESCRIPT, PYTHON) {
        let service = TcpListener::bind("127.0.0.1:0").unwrap();
        service.set_nonblocking(true).unwrap();
        let endpoint = format!("http://{}", service.local_addr().unwrap());
        let url = "awskms://alias/victim?region=eu-west-1&profile=admin";
        let secret = "config:\n  notes:x:\n    secure: AAAA:BBBB\n";
        for key in ["", "encryptedkey: AAAA\n"] {
            let settings = format!("secretsprovider: {url}\n{key}{secret}");
            site.write("program/Pulumi.dev.yaml", &settings);
            let run = |arguments: &[&str], named: bool| {
                let mut command = site.command(arguments);
                command
                    .env("NIMBUS_ENGINE_SANDBOX", "strict")
                    .env("PULUMI_STACK", STRICT[3])
                    .env("AWS_ENDPOINT_URL", &endpoint)
                    .env("AWS_ACCESS_KEY_ID", "operator")
                    .env("AWS_SECRET_ACCESS_KEY", "credential of the operator")
                    .env("AWS_MAX_ATTEMPTS", "1");
                if named {
                    let plain = url.replace("&profile=admin", "");
                    let settings = settings.replace(url, &plain);
                    site.write("program/Pulumi.dev.yaml", &settings);
                    command.env("NIMBUS_ENGINE_SANDBOX_SECRETS", plain);
                }
                finish(command.output().unwrap())
            };
            let commands: [&[&str]; 5] = [
                &["program", "preview"],
                &["program", "up", "--yes", "--skip-preview"],
                &["program", "destroy", "--yes", "--skip-preview"],
                &["stack-config", "get", "x", "--show-secrets"],
                &["stack-config", "set", "y", "z", "--secret"],
            ];
            for command in commands {
                let ran = run(command, false);
                if !said(&ran).contains("NIM-0410") {
                    // Options that one of these does not have are no refusal.
                    assert!(said(&ran).contains("unexpected argument"), "{}", said(&ran));
                }
                assert!(service.accept().is_err(), "{command:?} asked the service");
            }
            if key.is_empty() {
                continue;
            }
            // The operator's word lets it be asked.
            std::thread::scope(|scope| {
                let asked = scope.spawn(|| {
                    wait_until("the service is asked", || service.accept().is_ok());
                });
                assert_ne!(run(&["program", "preview"], true).code, 0, "nobody answers");
                asked.join().unwrap();
            });
        }
    }
}

/// The name of a project is in a stranger's file.
#[test]
fn a_project_does_not_say_whose_stacks_it_works_on() {
    let victim = "import '@pulumi/pulumi'; export const secret = 'secret of somebody else';";
    let victim_python = "import pulumi\npulumi.export('secret', 'secret of somebody else')\n";
    for site in sites("names of projects", victim, victim_python) {
        let whole = ["--sandbox", "strict", "--stack", "organization/victim/dev"];
        up(&site, &whole).ok();
        let project = site.read("program/Pulumi.yaml");
        let hostile = project.replace("name: notes", "name: victim");
        site.write("program/Pulumi.yaml", &hostile);
        for operation in ["preview", "up", "refresh", "destroy"] {
            let consent: &[&str] = match operation {
                "preview" => &[],
                _ => &["--yes", "--skip-preview"],
            };
            let short = ["--sandbox", "strict", "--stack", "dev"];
            let ran = site.program(&[&[operation], consent, &short[..]].concat());
            assert_refused(&ran, "NIM-0411");
            assert!(!said(&ran).contains("secret of somebody else"));
        }
        // The operator's word counts, whatever the project calls itself.
        up(&site, &STRICT).ok();
        let stacks = site.path("backend/.pulumi/stacks");
        assert!(stacks.join("notes/dev.json").exists());
        let victims = fs::read_to_string(stacks.join("victim/dev.json")).unwrap();
        assert!(victims.contains("secret of somebody else"));
    }
}

/// Names that would lead out of the backend, from the project and from the operator.
#[test]
fn a_name_leads_out_of_no_backend() {
    let names = ["../victim", "a/../../b", "..", ".", "a\\b", "a\u{0}b"];
    for site in sites("names that lead elsewhere", TYPESCRIPT, PYTHON) {
        let project = site.read("program/Pulumi.yaml");
        for name in names {
            let quoted = serde_json::to_string(name).unwrap();
            let hostile = project.replace("name: notes", &format!("name: {quoted}"));
            site.write("program/Pulumi.yaml", &hostile);
            let ran = up(&site, &STRICT);
            assert_ne!(ran.code, 0, "{name}: {}", said(&ran));
        }
        assert!(!site.path("backend/.pulumi/stacks/notes").exists());
    }
}

/// Programs of the project under every name that one of the keys could start.
#[test]
fn no_key_of_a_project_starts_anything() {
    for site in sites("keys of projects", TYPESCRIPT, PYTHON) {
        let names = [
            "pulumi-language-nodejs",
            "pulumi-language-python",
            "pulumi-language-evil",
            "pulumi-analyzer-evil",
            "pulumi-analyzer-policy-nodejs",
            "pulumi-resource-evil",
            "pulumi-resource-pulumi-nodejs",
            "pulumi-resource-pulumi-python",
            "node",
            "npm",
            "python",
            "python3",
            "uv",
            "poetry",
            "git",
        ];
        for name in names {
            marking(&site, &format!("program/{name}"));
            marking(&site, &format!("program/bin/{name}"));
        }
        let own = site.read("program/Pulumi.yaml");
        let keys = "plugins:\n  languages:\n    - {name: nodejs, path: .}\n    - {name: python, path: .}\n  \
                    analyzers:\n    - {name: evil, path: .}\n    - {name: policy-nodejs, path: .}\n  \
                    providers:\n    - {name: evil, path: .}\n    - {name: pulumi-nodejs, path: .}\n    \
                    - {name: pulumi-python, path: .}\n\
                    packages:\n  evil: ./\n  other: git@127.0.0.1:evil/evil@1.0.0\n  \
                    third: {source: ./bin, parameters: [a]}\n\
                    requiredPulumiVersion: '>=1.0.0'\nstackConfigDir: bin\n\
                    options: {refresh: always}\n";
        site.write("program/Pulumi.yaml", &format!("{own}{keys}"));
        for operation in [&["preview"][..], &["up", "--yes", "--skip-preview"]] {
            let ran = site.program(&[operation, &STRICT[..]].concat());
            assert!(!site.path("mark").exists(), "{}", said(&ran));
        }
        for runtime in ["../evil", "evil", "./bin/evil", "/bin/sh", "yaml", "go"] {
            let hostile = format!("name: notes\nruntime:\n  name: {runtime}\n");
            site.write("program/Pulumi.yaml", &hostile);
            let ran = up(&site, &STRICT);
            assert_refused(&ran, "NIM-0400");
            assert!(!site.path("mark").exists(), "{runtime}: {}", said(&ran));
        }
    }
}

/// Files that tools and interpreters load by themselves where they find them.
#[test]
fn files_that_tools_load_by_themselves_reach_nothing() {
    for site in sites("files of tools", TYPESCRIPT, PYTHON) {
        let mark = site.path("mark").display().to_string();
        let hook = format!("try {{ require('fs').appendFileSync({mark:?}, 'x'); }} catch {{}}\n");
        site.write("program/hook.js", &hook);
        let module = format!("try:\n    open({mark:?}, 'a')\nexcept OSError:\n    pass\n");
        for name in ["sitecustomize.py", "usercustomize.py", "conftest.py"] {
            site.write(&format!("program/{name}"), &module);
        }
        let line = format!("import os; os.system('touch {mark}')\n");
        site.write("program/evil.pth", &line);
        marking(&site, "program/shell");
        let settings = [
            (
                ".npmrc",
                "registry=http://127.0.0.1:9/\nscript-shell=./shell\nnode-options=--require ./hook.js\nproxy=http://127.0.0.1:9\n//127.0.0.1:9/:_authToken=${AWS_SECRET_ACCESS_KEY}\n",
            ),
            (
                ".yarnrc",
                "registry \"http://127.0.0.1:9\"\nyarn-path ./hook.js\n",
            ),
            (".yarnrc.yml", "yarnPath: ./hook.js\n"),
            (".pnpmfile.cjs", "require('./hook.js');\n"),
            (".noderc", "--require ./hook.js\n"),
            (".nvmrc", "../../evil\n"),
            (".node-version", "../../evil\n"),
            (".python-version", "../../evil\n"),
            (
                ".env",
                "NODE_OPTIONS=--require ./hook.js\nPYTHONSTARTUP=sitecustomize.py\n",
            ),
            (".envrc", "./shell\n"),
            ("pip.conf", "[global]\nindex-url = http://127.0.0.1:9\n"),
            ("uv.toml", "index-url = \"http://127.0.0.1:9\"\n"),
            ("poetry.toml", "[virtualenvs]\nin-project = true\n"),
            (
                "requirements.txt",
                "--index-url http://127.0.0.1:9\n-e ./evil\n",
            ),
            (
                "pyproject.toml",
                "[build-system]\nrequires = []\nbuild-backend = \"sitecustomize\"\nbackend-path = [\".\"]\n",
            ),
            ("setup.py", "import sitecustomize\n"),
            (
                "PulumiPlugin.yaml",
                "runtime: {name: nodejs, options: {nodeargs: --require ./hook.js}}\n",
            ),
            ("PulumiPolicy.yaml", "runtime: nodejs\nmain: hook.js\n"),
            (
                ".pulumi/plugins/resource-random-v1.0.0/pulumi-resource-random",
                "#!/bin/sh\n",
            ),
            (
                ".gitmodules",
                "[submodule \"x\"]\n\tpath = x\n\turl = ext::./shell\n",
            ),
        ];
        for (name, text) in settings {
            site.write(&format!("program/{name}"), text);
        }
        if site.path("program/package.json").exists() {
            let package = r#"{"name": "notes", "scripts": {"preinstall": "./shell", "postinstall": "./shell", "prepare": "./shell"},
                "packageManager": "evil@1.0.0", "engines": {"node": ">=99"}, "bin": {"node": "./shell"}, "pulumi": {"resource": true, "name": "evil", "server": "http://127.0.0.1:9"}}"#;
            site.write("program/package.json", package);
        }
        for operation in [
            &["preview"][..],
            &["up", "--yes", "--skip-preview"],
            &["destroy", "--yes", "--skip-preview"],
        ] {
            let mut command = site.command(&[&["program"], operation, &STRICT[..]].concat());
            command.env("AWS_SECRET_ACCESS_KEY", "credential of the operator");
            let ran = finish(command.output().unwrap());
            assert!(!site.path("mark").exists(), "{operation:?}: {}", said(&ran));
            assert!(!said(&ran).contains("credential of the operator"));
        }
    }
}

/// Lists, settings and entries that are links out, and what cannot be read to its end.
/// Puts something hostile in the place of a file.
type Attack<'a> = &'a dyn Fn(&Site, &str);

#[test]
fn files_that_the_engine_reads_are_the_projects_and_have_an_end() {
    let test = "files that the engine reads";
    if !isolates(test) {
        return;
    }
    let holes = |site: &Site, name: &str| {
        let holes = fs::File::create(site.path(name)).unwrap();
        holes.set_len(1 << 42).unwrap();
    };
    let link = |site: &Site, name: &str| {
        site.write("outside/secret", "secret of somebody else");
        symlink(site.path("outside/secret"), site.path(name)).unwrap();
    };
    let attacks: [(Attack<'_>, bool); 2] = [(&link, true), (&holes, false)];
    // What interpreters and compilers read they read in the sandbox, and its limits end that.
    let read_inside = ["tsconfig.json", "index.ts", "__main__.py"];
    let of_node = [
        "package.json",
        "package-lock.json",
        "tsconfig.json",
        "index.ts",
    ];
    let of_python = [
        "requirements.txt",
        "pyproject.toml",
        "uv.lock",
        "__main__.py",
    ];
    let node = node_sdk(test).map(|sdk| (Site::typescript(&sdk, TYPESCRIPT), of_node));
    let python = python(test).map(|real| (python_site(&real, PYTHON), of_python));
    for (site, names) in node.into_iter().chain(python) {
        for name in names.into_iter().chain(["Pulumi.dev.yaml"]) {
            for (attack, everywhere) in attacks {
                if !everywhere && read_inside.contains(&name) {
                    continue;
                }
                let file = format!("program/{name}");
                let kept = fs::read(site.path(&file)).ok();
                let _ = fs::remove_file(site.path(&file));
                attack(&site, &file);
                let ran = site.program(&[&["preview"], &STRICT[..]].concat());
                let told = said(&ran);
                assert!(!told.contains("secret of somebody else"), "{name}: {told}");
                fs::remove_file(site.path(&file)).unwrap();
                if let Some(kept) = kept {
                    fs::write(site.path(&file), kept).unwrap();
                }
            }
        }
    }
}

/// A pipe that nobody writes to: whoever ends the run does not wait for it.
#[test]
fn a_pipe_in_place_of_a_file_does_not_keep_a_run() {
    for site in sites("pipes", TYPESCRIPT, PYTHON) {
        for name in ["package.json", "Pulumi.dev.yaml", "tsconfig.json"] {
            let path = site.path(&format!("program/{name}"));
            let _ = fs::remove_file(&path);
            nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
        }
        let mut command = site.command(&[&["program", "preview"], &STRICT[..]].concat());
        let output = Stdio::null;
        let mut running = command.stdout(output()).stderr(output()).spawn().unwrap();
        let started = Instant::now();
        let soon = Duration::from_secs(5);
        wait_until("it ends or waits", || {
            running.try_wait().unwrap().is_some() || started.elapsed() > soon
        });
        let pid = nix::unistd::Pid::from_raw(running.id().cast_signed());
        // It may have ended by itself.
        let _ = nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM);
        wait_until("it ends", || running.try_wait().unwrap().is_some());
        assert!(
            started.elapsed() < Duration::from_secs(60),
            "{:?}",
            started.elapsed()
        );
    }
}

/// Each alone, wherever it is: the run ends by itself and says which file it is.
#[test]
fn a_pipe_in_a_project_is_refused_by_its_name() {
    for site in sites("pipes by name", TYPESCRIPT, PYTHON) {
        for name in ["package.json", "tsconfig.json", "lib/pyvenv.cfg", "data"] {
            let path = site.path(&format!("program/{name}"));
            let before = fs::read(&path).ok();
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            let _ = fs::remove_file(&path);
            nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
            let arguments = [&["program", "preview"], &STRICT[..]].concat();
            let mut running = site
                .command(&arguments)
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap();
            wait_until("it ends by itself", || {
                running.try_wait().unwrap().is_some()
            });
            let ran = finish(running.wait_with_output().unwrap());
            assert_refused(&ran, path.file_name().unwrap().to_str().unwrap());
            fs::remove_file(&path).unwrap();
            if let Some(before) = before {
                fs::write(&path, before).unwrap();
            }
        }
    }
}

/// Asks without end, each language in its own way.
#[test]
fn a_program_cannot_have_the_engine_hold_without_end() {
    let resources = (
        "import * as pulumi from '@pulumi/pulumi';\n\
         class C extends pulumi.ComponentResource { constructor(n: string) { super('test:index:C', n, { x: 'x'.repeat(1 << 16) }); this.registerOutputs({ x: 'x'.repeat(1 << 16) }); } }\n\
         for (let i = 0; i < 4000; i++) new C('c' + i);",
        "import pulumi\nfor i in range(4000):\n    pulumi.ComponentResource('test:index:C', f'c{i}', {'x': 'x' * (1 << 16)}).register_outputs({'x': 'x' * (1 << 16)})\n",
    );
    let logs = (
        "import * as pulumi from '@pulumi/pulumi';\n\
         (async () => { for (let i = 0; i < 20000; i++) await pulumi.log.info('x'.repeat(1 << 10)); })();",
        "import pulumi\nfor i in range(20000):\n    pulumi.log.info('x' * (1 << 10))\n",
    );
    for (typescript, python_source) in [resources, logs] {
        for site in sites("endless requests", typescript, python_source) {
            let arguments = [&["program", "up", "--yes", "--skip-preview"], &STRICT[..]].concat();
            let mut command = site.command(&arguments);
            command.env("NIMBUS_ENGINE_SANDBOX_REQUESTS_MIB", "32");
            let ran = finish(command.output().unwrap());
            assert_refused(&ran, "engine.sandbox_requests_mib");
        }
    }
}

/// Nothing but holes, and still terabytes to whoever reads it.
#[test]
fn an_asset_without_an_end_is_not_read() {
    let typescript = "import * as pulumi from '@pulumi/pulumi';\n\
        class T extends pulumi.CustomResource { constructor() { super('random:index:T', 't', { f: new pulumi.asset.FileAsset('holes') }); } }\nnew T();";
    let python_source = "import pulumi\npulumi.CustomResource('random:index:T', 't', {'f': pulumi.FileAsset('holes')})\n";
    for site in sites("assets without an end", typescript, python_source) {
        let holes = fs::File::create(site.path("program/holes")).unwrap();
        holes.set_len(1 << 42).unwrap();
        assert_refused(&up(&site, &STRICT), "more than 4 GiB");
    }
}
