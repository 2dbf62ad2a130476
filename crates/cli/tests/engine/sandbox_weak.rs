//! X7 and F9 through the real binary, on a machine that truly lacks what a sandbox needs and whose
//! disk is as small as we like: the inside of a sandbox.

use std::path::Path;
use std::process::{Command, Stdio};

use nimbus_engine_sandbox::{
    Helper, IsolationMode, Probe, ProgramNetwork, Readable, ResourceLimits, Sandbox,
    SandboxSettings,
};
use serde_json::Value;

use crate::sandbox::{isolates, said};
use crate::support::{ProgramRunOutput, Site, finish, node_sdk};

const NIMBUS: &str = env!("CARGO_BIN_EXE_nimbus");

/// For a Nimbus that runs in a sandbox: there `/tmp` is its own.
const VARIABLES: [(&str, &str); 3] = [
    ("PULUMI_BACKEND_URL", "file:///tmp/backend"),
    ("PULUMI_CONFIG_PASSPHRASE", "correct horse"),
    ("PULUMI_STACK", "organization/notes/dev"),
];

/// What programs in there may lead into.
const ROOTS: &str = "NIMBUS_ENGINE_SANDBOX_ROOTS";

const GIB: u64 = 1 << 30;

/// Runs Nimbus where namespaces cannot be made and all disks together have so much room.
fn inside(site: &Site, room: u64, readable: &[&Path], arguments: &[&str]) -> ProgramRunOutput {
    let helper = Helper::at(NIMBUS);
    let settings = SandboxSettings {
        mode: IsolationMode::Strict { allow_weak: false },
        network: ProgramNetwork::None,
        limits: ResourceLimits {
            temporary_bytes: room,
            ..ResourceLimits::default()
        },
        environment: VARIABLES
            .iter()
            .map(|(name, _)| *name)
            .chain([ROOTS])
            .map(str::to_owned)
            .collect(),
        roots: Vec::new(),
        allowances: nimbus_engine_sandbox::Allowances::default(),
    };
    let sandbox = Sandbox::new(helper.clone(), &Probe::run(&helper), settings).unwrap();
    let mut room = sandbox.open().unwrap();
    let mut command = Command::new(NIMBUS);
    command
        .args(arguments)
        .current_dir(site.path("program"))
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .envs(VARIABLES);
    if !readable.is_empty() {
        command.env(ROOTS, std::env::join_paths(readable).unwrap());
    }
    let own = [Path::new(NIMBUS).to_owned(), site.path("program")];
    let more = readable.iter().map(|path| path.to_path_buf());
    let readable = Readable::default().and(own.into_iter().chain(more));
    let mut command = room.enclose(&command, &readable, &[]).unwrap();
    let output = command.stdin(Stdio::null()).output();
    finish(output.unwrap())
}

const NAMESPACES: [(&str, &str); 4] = [
    ("user_namespaces", "user namespaces"),
    ("mount_namespaces", "mount namespaces"),
    ("pid_namespaces", "process namespaces"),
    ("network_namespaces", "network namespaces"),
];

#[test]
fn doctor_says_what_is_missing_and_what_to_do() {
    let test = "doctor_says_what_is_missing_and_what_to_do";
    if !isolates(test) {
        return;
    }
    let ran = inside(&Site::new(), GIB, &[], &["doctor", "--json"]);
    let report: Value = serde_json::from_str(&ran.stdout).expect(&ran.stderr);
    let checks = report["checks"].as_array().unwrap();
    let by_id = |id: &str| checks.iter().find(|check| check["id"] == id).unwrap();
    assert_eq!(by_id("isolation")["state"], "warning", "{report}");
    let detail = by_id("isolation")["detail"].as_str().unwrap();
    for (id, title) in NAMESPACES {
        let check = by_id(id);
        assert_eq!(check["state"], "missing", "{check}");
        assert!(check["fix"].is_string(), "{check}");
        assert!(detail.contains(title), "{detail}");
    }
    for id in [
        "landlock",
        "seccomp",
        "no_new_privs",
        "cgroup_v2",
        "resource_limits",
    ] {
        assert!(by_id(id)["detail"].is_string(), "{report}");
    }
}

#[test]
fn strict_refuses_a_machine_that_lacks_something_unless_told_and_then_says_so() {
    let test = "strict_refuses_a_machine_that_lacks_something_unless_told_and_then_says_so";
    let Some(sdk) = node_sdk(test).filter(|_| isolates(test)) else {
        return;
    };
    let site = Site::typescript(&sdk, "import '@pulumi/pulumi'; export const x = 1;");
    let modules = sdk.join("node_modules");
    let run = |flags: &[&str]| {
        let arguments = [
            "program",
            "up",
            "--yes",
            "--skip-preview",
            "--sandbox",
            "strict",
        ];
        inside(&site, 4 * GIB, &[&modules], &[&arguments, flags].concat())
    };
    let refused = run(&[]);
    assert_ne!(refused.code, 0);
    let words = said(&refused);
    assert!(words.contains("NIM-0450"), "{words}");
    for (_, title) in NAMESPACES {
        assert!(words.contains(title), "{words}");
    }
    assert!(words.contains("--allow-weak-isolation"), "{words}");
    let accepted = said(&run(&["--allow-weak-isolation"]).ok());
    assert!(accepted.contains("WEAK ISOLATION"), "{accepted}");
    assert!(!accepted.contains("NIM-0450"), "{accepted}");
}

/// F9: what might not fit is not begun.
#[test]
fn a_disk_with_little_room_refuses_a_run_before_its_program_starts() {
    let test = "a_disk_with_little_room_refuses_a_run_before_its_program_starts";
    let Some(sdk) = node_sdk(test).filter(|_| isolates(test)) else {
        return;
    };
    let site = Site::typescript(&sdk, "import '@pulumi/pulumi'; console.log('it ran');");
    let modules = sdk.join("node_modules");
    let arguments = ["program", "up", "--yes", "--skip-preview", "--no-typecheck"];
    let refused = said(&inside(&site, GIB / 2, &[&modules], &arguments));
    assert!(refused.contains("NIM-0203"), "{refused}");
    assert!(refused.contains("1000 MB are needed"), "{refused}");
    assert!(!refused.contains("it ran"), "{refused}");
    let enough = inside(&site, 4 * GIB, &[&modules], &arguments).ok();
    assert!(said(&enough).contains("it ran"), "{}", said(&enough));
}
