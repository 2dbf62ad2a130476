//! Types of programs in the sandbox: checked beside the program, in a sandbox of its own, because
//! the compiler is one of the program's packages. Hostile compilers reach nothing and deceive nobody
//! but their own program.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::sandbox::{STRICT, isolates, said, up};
use crate::support::{ProgramRunOutput, Site, end_of, node_sdk, wait_until};

/// A program that says how it was compiled, with a size of our choice.
fn program(size: &str) -> String {
    format!(
        r#"import * as pulumi from "@pulumi/pulumi";

class Thing extends pulumi.ComponentResource {{
    constructor(name: string) {{
        super("test:index:Thing", name);
        this.registerOutputs({{}});
    }}
}}

new Thing("one");
const size: number = {size};
export const answer = size;
export const bySdk = Object.keys(require.cache).some((name) => name.includes("ts-node"));
"#
    )
}

fn site(sdk: &Path, size: &str) -> Site {
    Site::typescript(sdk, &program(size))
}

/// The same with packages of its own, so that one can be another than the rest.
fn site_with_packages(sdk: &Path, size: &str) -> Site {
    let site = site(sdk, size);
    let modules = site.path("program/node_modules");
    fs::remove_file(&modules).unwrap();
    fs::create_dir_all(modules.join("@pulumi")).unwrap();
    for entry in fs::read_dir(sdk.join("node_modules")).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name();
        if name != "@pulumi" && name != "typescript" {
            symlink(entry.path(), modules.join(name)).unwrap();
        }
    }
    // Modules are known by their real path, and look for others from there.
    let copied = Command::new("cp")
        .arg("-r")
        .arg(sdk.join("node_modules/@pulumi/pulumi"))
        .arg(modules.join("@pulumi/pulumi"))
        .status();
    assert!(copied.unwrap().success());
    site
}

/// Gives the program a compiler that says what `diagnose` returns, a list of messages.
fn bring_compiler(site: &Site, diagnose: &str) {
    let compiler = site.path("program/node_modules/typescript");
    let _ = fs::remove_file(&compiler);
    fs::create_dir_all(&compiler).unwrap();
    let manifest = r#"{"name":"typescript","version":"5.4.5","main":"index.js"}"#;
    fs::write(compiler.join("package.json"), manifest).unwrap();
    let source = format!(
        r#"
const fs = require("fs"), net = require("net"), path = require("path");
const {{ execFileSync, spawn }} = require("child_process");
const attempt = (name, what) => {{
    try {{ what(); return name + ": ALLOWED"; }} catch (e) {{ return name + ": refused"; }}
}};
const diagnose = () => {{ {diagnose} }};
module.exports = {{
    version: "5.4.5",
    sys: {{ fileExists: () => false, readFile: () => undefined }},
    DiagnosticCategory: {{ Error: 1 }},
    parseJsonConfigFileContent: () => ({{ options: {{}} }}),
    createCompilerHost: () => ({{ getSourceFile: () => undefined }}),
    flattenDiagnosticMessageText: (text) => text,
    createProgram: () => ({{
        getSourceFiles: () => [],
        getGlobalDiagnostics: () => [],
        getOptionsDiagnostics: () =>
            diagnose().map((messageText) => ({{ category: 1, code: 9999, messageText }})),
    }}),
}};
"#
    );
    fs::write(compiler.join("index.js"), source).unwrap();
}

fn sdk(test: &str) -> Option<PathBuf> {
    node_sdk(test).filter(|_| isolates(test))
}

fn has_steps(ran: &ProgramRunOutput) -> bool {
    let mut events = ran.events().into_iter();
    events.any(|event| event.get("resourcePreEvent").is_some())
}

#[test]
fn a_type_error_in_the_sandbox_fails_the_run_before_its_first_change() {
    let Some(sdk) = sdk("a_type_error_in_the_sandbox_fails_the_run_before_its_first_change") else {
        return;
    };
    let site = site(&sdk, r#""three""#);
    // The second verdict is one that was kept.
    for _ in 0..2 {
        let failed = up(&site, &[&STRICT[..], &["--json"]].concat()).failed(1);
        assert!(!has_steps(&failed), "{}", said(&failed));
        let place = format!(
            "{}:11:7 - error TS2322",
            site.path("program/index.ts").display()
        );
        assert!(said(&failed).contains(&place), "{}", said(&failed));
    }
    site.write("program/index.ts", &program("3"));
    let right = up(&site, &[&STRICT[..], &["--json"]].concat()).ok();
    assert!(has_steps(&right));
    let outputs = site.program(&["outputs", "--json"]).ok().json();
    assert_eq!(outputs["outputs"]["answer"], 3);
    assert_eq!(
        outputs["outputs"]["bySdk"], false,
        "translated, not compiled"
    );
}

#[test]
fn a_hostile_compiler_reaches_nothing() {
    let Some(sdk) = sdk("a_hostile_compiler_reaches_nothing") else {
        return;
    };
    let site = site_with_packages(&sdk, "3");
    site.write("secret", "secret");
    let service = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = service.local_addr().unwrap().port();
    let diagnose = r#"
        // Our own script is the only thing of ours that can be seen here.
        const script = require.main.filename;
        const kept = path.dirname(path.dirname(path.dirname(script)));
        const variables = Object.keys(process.env).filter((n) => !["HOME", "PATH", "TMPDIR"].includes(n));
        const connect = `require("net").connect(PORT, "127.0.0.1")
            .on("connect", () => process.exit(0)).on("error", () => process.exit(1))`;
        return [
            attempt("secret", () => fs.readFileSync("SECRET")),
            attempt("own program", () => fs.writeFileSync("PROGRAM/index.ts", "x")),
            attempt("own package", () => fs.writeFileSync(__filename, "x")),
            attempt("script", () => fs.writeFileSync(script, "x")),
            attempt("cache", () => fs.writeFileSync(path.join(kept, "mine"), "x")),
            attempt("others in the cache", () => {
                if (fs.readdirSync(kept).some((name) => name !== "files")) return;
                throw new Error("nothing there");
            }),
            attempt("variables", () => { if (variables.length === 0) throw new Error("none"); }),
            attempt("engine", () => {
                const found = fs.readdirSync("/proc").filter((name) => /^\d+$/.test(name));
                if (found.length <= 2) throw new Error("alone");
            }),
            attempt("service", () => execFileSync(process.execPath, ["-e", connect], { stdio: "ignore" })),
        ];
    "#
    .replace("SECRET", &site.path("secret").display().to_string())
    .replace("PROGRAM", &site.path("program").display().to_string())
    .replace("PORT", &port.to_string());
    bring_compiler(&site, &diagnose);
    // A network that the program has is none of its compiler's.
    let full = ["--network", "full", "--allow-weak-isolation"];
    for flags in [STRICT.to_vec(), [&STRICT[..], &full].concat()] {
        let failed = up(&site, &flags).failed(1);
        let said = said(&failed);
        for attempt in [
            "secret",
            "own program",
            "own package",
            "script",
            "cache",
            "others in the cache",
            "variables",
            "engine",
            "service",
        ] {
            assert!(said.contains(&format!("{attempt}: refused")), "{said}");
        }
        assert!(!said.contains("ALLOWED"), "{said}");
    }
    assert_eq!(site.read("program/index.ts"), program("3"));
}

/// What a compiler says is believed about the files that it read, itself among them.
#[test]
fn a_lying_compiler_lets_through_its_own_program_and_no_other() {
    let Some(sdk) = sdk("a_lying_compiler_lets_through_its_own_program_and_no_other") else {
        return;
    };
    // The same folder, the same program, the same list of packages: as alike as two can be.
    let site = site_with_packages(
        &sdk,
        r#""three" as any as number; const wrong: number = "x""#,
    );
    let lock = r#"{"name":"notes","lockfileVersion":3,"packages":{}}"#;
    site.write("program/package-lock.json", lock);
    bring_compiler(&site, "return [];");
    up(&site, &STRICT).ok();
    let compiler = site.path("program/node_modules/typescript");
    fs::remove_dir_all(&compiler).unwrap();
    symlink(sdk.join("node_modules/typescript"), &compiler).unwrap();
    let failed = up(&site, &STRICT).failed(1);
    assert!(said(&failed).contains("error TS2322"), "{}", said(&failed));
    // And back: what the honest one found does not stand for the other either.
    fs::remove_file(&compiler).unwrap();
    bring_compiler(&site, r#"return ["made up"];"#);
    let failed = up(&site, &STRICT).failed(1);
    assert!(said(&failed).contains("made up"), "{}", said(&failed));
}

/// Processes that run our check for this program.
fn checks(site: &Site) -> Vec<i32> {
    let own = site.path("program").display().to_string();
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    pids.filter(|pid| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line);
        line.contains("check.cjs") && line.contains(&own)
    })
    .collect()
}

#[test]
fn a_compiler_that_never_ends_is_ended_with_the_run() {
    let Some(sdk) = sdk("a_compiler_that_never_ends_is_ended_with_the_run") else {
        return;
    };
    let site = site_with_packages(&sdk, "3");
    let stays = r#"
        // With an argument that tells it from everybody else's.
        spawn(process.execPath, ["-e", "setInterval(() => {}, 1000)", "check.cjs PROGRAM detached"],
            { detached: true, stdio: "ignore" });
        for (;;) {}
    "#;
    let own = site.path("program").display().to_string();
    bring_compiler(&site, &stays.replace("PROGRAM", &own));
    let running = site
        .command(&[
            "program",
            "up",
            "--yes",
            "--skip-preview",
            "--sandbox",
            "strict",
            "--stack",
            "organization/notes/dev",
        ])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The helper, the first process inside, the compiler, and what it has detached.
    wait_until("the compiler and its daemon run", || {
        checks(&site).len() >= 4
    });
    let pid = Pid::from_raw(i32::try_from(running.id()).unwrap());
    kill(pid, Signal::SIGINT).unwrap();
    let ran = end_of(running);
    assert_ne!(ran.code, 0, "{}", said(&ran));
    wait_until("nothing of it is left", || checks(&site).is_empty());
}

#[test]
fn a_compiler_that_floods_or_dies_leaves_its_program_to_the_sdk() {
    let Some(sdk) = sdk("a_compiler_that_floods_or_dies_leaves_its_program_to_the_sdk") else {
        return;
    };
    let site = site_with_packages(&sdk, "3");
    for end in [
        r#"for (;;) fs.writeSync(1, "x".repeat(1 << 16));"#,
        "process.exit(3);",
    ] {
        bring_compiler(&site, end);
        // The SDK's loader cannot use such a compiler either.
        let failed = up(&site, &STRICT).failed(1);
        assert!(!said(&failed).contains("xxxxxxxx"), "{}", said(&failed));
    }
}
