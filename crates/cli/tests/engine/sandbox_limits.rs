//! Programs that use up what there is, and programs that do not end, through the real binary: the
//! run ends, nothing is left, and what is said names the limit and its setting.

use std::fs;
use std::process::Stdio;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::sandbox::{STRICT, isolates, python_site, said, sites, up};
use crate::support::{ProgramRunOutput, Site, end_of, finish, python, wait_until};

/// Runs a greedy program with one limit and sees that it is stopped for it.
fn assert_stopped(setting: &str, limit: &str, typescript: &str, python: &str, says: &str) {
    let typescript = format!(
        "import * as pulumi from '@pulumi/pulumi';\nimport * as fs from 'fs';\n\
         import {{ spawn }} from 'child_process';\n{typescript}\nexport const x = pulumi.getStack();"
    );
    let python = format!("import os, sys\nimport pulumi\n{python}\n");
    for site in sites(setting, &typescript, &python) {
        let variable = setting.to_uppercase();
        let output = site
            .command(&["program", "up", "--yes", "--skip-preview", "--no-typecheck"])
            .args(STRICT)
            .env(format!("NIMBUS_ENGINE_SANDBOX_{variable}"), limit)
            .output();
        let ran = finish(output.unwrap());
        assert_ne!(ran.code, 0, "{}", said(&ran));
        let said = said(&ran);
        assert!(said.contains("the program was stopped: "), "{said}");
        assert!(said.contains(says), "{said}");
        assert!(
            said.contains(&format!("engine.sandbox_{setting}")),
            "{said}"
        );
    }
}

#[test]
fn endless_output_names_its_setting() {
    let typescript = "for (;;) fs.writeSync(1, 'y'.repeat(100) + '\\n');";
    let python = "while True:\n    os.write(1, b'y' * 100 + b'\\n')";
    assert_stopped(
        "output_mib",
        "1",
        typescript,
        python,
        "printed more than 1 MiB",
    );
}

#[test]
fn endless_memory_names_its_setting() {
    let typescript = "const kept: Buffer[] = [];
        const more = () => { kept.push(Buffer.alloc(8 << 20, 1)); setImmediate(more); };
        more();";
    let python = "kept = []\nwhile True:\n    kept.append(bytearray(os.urandom(1 << 20)) * 8)";
    assert_stopped(
        "memory_mib",
        "600",
        typescript,
        python,
        "more than 600 MiB of memory",
    );
}

/// What processes share with the one that forked them is one memory, however many of them there are.
#[test]
fn forked_processes_share_the_memory_that_they_were_forked_with() {
    let test = "forked_processes_share_the_memory_that_they_were_forked_with";
    let source = "
import os, threading
import pulumi
kept = bytearray(os.urandom(1 << 20)) * 150
read, write = os.pipe()
children = []
for _ in range(10):
    child = os.fork()
    if child == 0:
        os.close(write)
        os.read(read, 1)
        os._exit(0)
    children.append(child)
# Long enough to be looked at several times.
threading.Event().wait(1)
os.close(write)
for child in children:
    os.waitpid(child, 0)
pulumi.export('kept', len(kept) >> 20)
";
    if !isolates(test) {
        return;
    }
    let Some(interpreter) = python(test) else {
        return;
    };
    let site = python_site(&interpreter, source);
    let output = site
        .command(&["program", "up", "--yes", "--skip-preview"])
        .args(STRICT)
        .env("NIMBUS_ENGINE_SANDBOX_MEMORY_MIB", "800")
        .output();
    let ran: ProgramRunOutput = finish(output.unwrap());
    assert_eq!(ran.code, 0, "{}", said(&ran));
    assert!(said(&ran).contains("150"), "{}", said(&ran));
}

#[test]
fn endless_processes_name_their_setting() {
    let typescript = "const more = () => {
            spawn('sleep', ['1000']).on('error', () => {});
            setImmediate(more);
        };
        more();";
    let python = "
while True:
    try:
        os.fork()
    except OSError:
        pass";
    assert_stopped(
        "processes",
        "100",
        typescript,
        python,
        "100 processes and threads",
    );
}

#[test]
fn endless_open_files_name_their_setting() {
    let typescript = "const kept: number[] = [];
        const more = () => { try { kept.push(fs.openSync('/dev/null')); } catch {} setImmediate(more); };
        more();";
    let python = "
kept = []
while True:
    try:
        kept.append(open('/dev/null'))
    except OSError:
        pass";
    assert_stopped("open_files", "200", typescript, python, "200 files open");
}

#[test]
fn a_full_disk_names_its_setting() {
    let typescript = "const file = fs.openSync(process.env.TMPDIR + '/big', 'w');
        const more = () => {
            try { fs.writeSync(file, Buffer.alloc(1 << 20)); } catch {}
            setImmediate(more);
        };
        more();";
    let python = "
file = open(os.environ['TMPDIR'] + '/big', 'wb', buffering=0)
while True:
    try:
        file.write(bytes(1 << 20))
    except OSError:
        pass";
    let says = "temporary directory of 16 MiB";
    assert_stopped("temporary_mib", "16", typescript, python, says);
}

#[test]
fn a_tree_of_files_names_its_setting() {
    let typescript = "for (let n = 0; ; n++) {
            try { fs.writeFileSync(process.env.TMPDIR + '/' + n, ''); } catch {}
        }";
    let python = "
n = 0
while True:
    n += 1
    try:
        open(f\"{os.environ['TMPDIR']}/{n}\", 'w').close()
    except OSError:
        pass";
    let says = "1000 temporary files";
    assert_stopped("temporary_files", "1000", typescript, python, says);
}

/// A program that asks for everything at once is refused rather than stopped.
#[test]
fn a_hundred_gigabytes_at_once_name_their_setting() {
    let typescript = r#"
        import "@pulumi/pulumi";
        export const kept = Array.from({ length: 100 }, () => new ArrayBuffer(1024 ** 3)).length;
    "#;
    let python = "import pulumi\npulumi.export('kept', len(bytearray(100 << 30)))\n";
    for site in sites("a hundred gigabytes", typescript, python) {
        let ran = up(&site, &[&STRICT[..], &["--no-typecheck"]].concat());
        assert_ne!(ran.code, 0, "{}", said(&ran));
        let said = said(&ran);
        assert!(said.contains("engine.sandbox_memory_mib"), "{said}");
    }
}

/// Processes whose command line names this site's mark.
fn left(mark: &str) -> Vec<i32> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    pids.filter(|pid| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains(mark)
    })
    .collect()
}

/// F15: asked to end, then made to, with everything that it started.
#[test]
fn a_program_that_does_not_want_to_end_is_ended_with_its_daemons() {
    let typescript = r#"
        import "@pulumi/pulumi";
        import { spawn } from "child_process";
        process.on("SIGINT", () => {});
        process.on("SIGTERM", () => {});
        const daemon = "trap '' INT TERM; while :; do sleep 1; done";
        const mark = process.cwd() + "/daemon";
        spawn("setsid", ["sh", "-c", daemon, mark], { detached: true, stdio: "ignore" });
        for (;;) {}
    "#;
    let python = r#"
import os, signal, subprocess, pulumi
signal.signal(signal.SIGINT, signal.SIG_IGN)
signal.signal(signal.SIGTERM, signal.SIG_IGN)
daemon = "trap '' INT TERM; while :; do sleep 1; done"
mark = os.getcwd() + "/daemon"
subprocess.Popen(["setsid", "sh", "-c", daemon, mark], start_new_session=True)
while True:
    pass
"#;
    for site in sites("does not want to end", typescript, python) {
        let mark = site.path("program/daemon").display().to_string();
        let running = site
            .command(&["program", "up", "--yes", "--skip-preview", "--no-typecheck"])
            .args(STRICT)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        wait_until("the daemon runs", || !left(&mark).is_empty());
        let pid = Pid::from_raw(i32::try_from(running.id()).unwrap());
        kill(pid, Signal::SIGINT).unwrap();
        let ended: ProgramRunOutput = end_of(running).failed(130);
        assert!(ended.stderr.contains("NIM-0012"), "{}", said(&ended));
        wait_until("nothing is left", || left(&mark).is_empty());
        assert_no_lock(&site);
    }
}

/// What was ended stands in nobody's way.
fn assert_no_lock(site: &Site) {
    let listed = site.state(&["ls", "--stack", "dev"]).ok();
    assert!(!said(&listed).contains("NIM-"), "{}", said(&listed));
}
