//! Real processes: how they announce themselves, die, and are ended.
//!
//! Simple plugins are shell scripts that announce the port of a server in this process. Where the
//! process itself must serve, the script runs this very test program again, in the role that an
//! environment variable names (see [`acts_as_another_program`]).

use std::fs;
use std::io::Write;
use std::num::NonZeroU16;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use nimbus_engine_plugin::{HostOptions, PluginHost, PluginKind, ProjectPlugin};
use nimbus_engine_ports::{
    CreateRequest, LoadError, Provider, ProviderError, ProviderHost, ReadRequest, Severity,
};
use tempfile::TempDir;

use crate::support::*;

pub(crate) const ROLE: &str = "NIMBUS_TEST_ROLE";
pub(crate) const FOLDER: &str = "NIMBUS_TEST_FOLDER";

/// A plugin for package `fake` that is this script.
pub(crate) fn script(audience: &Arc<Audience>, text: &str) -> (TempDir, HostOptions) {
    let folder = TempDir::new().unwrap();
    write_script(folder.path(), text);
    let mut options = options(audience, folder.path());
    options.search.project = vec![ProjectPlugin {
        kind: PluginKind::Resource,
        name: "fake".into(),
        version: None,
        folder: folder.path().to_owned(),
    }];
    options
        .environment
        .insert(FOLDER.into(), folder.path().into());
    (folder, options)
}

fn write_script(folder: &Path, text: &str) {
    let path = folder.join("pulumi-resource-fake");
    fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// A script that turns into this test program in the given role. The test harness writes to
/// standard output, so the port goes through another door.
pub(crate) fn role(name: &str) -> String {
    let program = std::env::current_exe().unwrap();
    let program = program.display();
    format!(
        "{ROLE}={name} exec '{program}' --exact process::acts_as_another_program 3>&1 >/dev/null"
    )
}

async fn load(options: HostOptions) -> Result<Arc<dyn Provider>, LoadError> {
    PluginHost::new(options).load(&package("fake")).await
}

async fn reason(text: &str) -> String {
    let audience = Arc::new(Audience::default());
    let (_folder, mut options) = script(&audience, text);
    options.limits.start = Duration::from_secs(2);
    match load(options).await {
        Err(LoadError::NotStarted { package, reason }) => {
            assert_eq!(package, "fake");
            reason
        }
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("it must not load"),
    }
}

pub(crate) fn is_running(pid: i32) -> bool {
    // A process that is dead but not yet waited for does not run.
    fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| {
        !stat
            .rsplit(") ")
            .next()
            .unwrap_or_default()
            .starts_with('Z')
    })
}

/// Waits for something that another process does.
pub(crate) async fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "waited too long for {what}");
        // tidy-allow(sleep): nothing tells us when another process has done it
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn pid_in(file: PathBuf) -> i32 {
    eventually("a process id", || {
        fs::read_to_string(&file).ok()?.trim().parse().ok()
    })
    .await
}

#[tokio::test]
async fn a_plugin_that_ends_at_once_is_reported_with_its_status_and_last_words() {
    let reason = reason("echo 'no licence' >&2; exit 3").await;
    assert!(
        reason.starts_with("it ended (exit code 3) before it said"),
        "{reason}"
    );
    assert!(reason.contains("no licence"), "{reason}");
}

#[tokio::test]
async fn a_plugin_that_ends_in_the_middle_of_its_first_line_is_reported_with_it() {
    let reason = reason("printf 12").await;
    assert!(
        reason.contains("exit code 0") && reason.ends_with("12"),
        "{reason}"
    );
}

#[tokio::test]
async fn a_first_line_that_is_no_port_is_shown() {
    let reason = reason("echo 'Welcome!'; exec sleep 600").await;
    assert_eq!(
        reason,
        "its first line of output should be a port, and is \"Welcome!\""
    );
}

#[tokio::test]
async fn endless_output_without_a_line_end_is_cut_off() {
    let reason = reason("exec yes | tr -d '\\n'").await;
    assert!(
        reason.starts_with("its first line of output should be a port"),
        "{reason}"
    );
    assert!(reason.len() < 300);
}

#[tokio::test]
async fn a_silent_plugin_is_given_up_and_killed() {
    let audience = Arc::new(Audience::default());
    let (folder, mut options) = script(&audience, "echo $$ > pid; echo hm >&2; exec sleep 600");
    options.limits.start = Duration::from_millis(700);
    let error = load(options).await.err().unwrap().to_string();
    assert!(
        error.contains("did not say within 700ms") && error.contains("hm"),
        "{error}"
    );
    let pid = pid_in(folder.path().join("pid")).await;
    eventually("its death", || (!is_running(pid)).then_some(())).await;
}

#[tokio::test]
async fn a_plugin_that_ends_by_itself_takes_its_children_with_it() {
    let audience = Arc::new(Audience::default());
    let (folder, options) = script(&audience, "sleep 600 & echo $! > child; exit 4");
    let error = load(options).await.err().unwrap().to_string();
    assert!(error.contains("exit code 4"), "{error}");
    let child = pid_in(folder.path().join("child")).await;
    eventually("the end of the child", || {
        (!is_running(child)).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_program_that_cannot_be_run_says_why() {
    let audience = Arc::new(Audience::default());
    let (folder, options) = script(&audience, "");
    let path = folder.path().join("pulumi-resource-fake");
    fs::set_permissions(path, fs::Permissions::from_mode(0o644)).unwrap();
    let error = load(options).await.err().unwrap().to_string();
    assert!(error.contains("cannot be run"), "{error}");
}

#[tokio::test]
async fn a_port_behind_terminal_decoration_is_found_and_output_is_passed_on() {
    let running = Running::start(simple()).await;
    let audience = Arc::new(Audience::default());
    let text = format!(
        "printf '\\033]9;4;3;\\033\\\\{}\\n'; echo \"for $1\"; echo oops >&2; exec sleep 600",
        running.port
    );
    let (_folder, options) = script(&audience, &text);
    let provider = load(options).await.unwrap();
    eventually("its output", || {
        let told = audience.told(Severity::Debug);
        (told.contains(&"for 127.0.0.1:1".to_owned()) && told.contains(&"oops".to_owned()))
            .then_some(())
    })
    .await;
    provider.close().await;
    assert!(
        audience.told(Severity::Error).is_empty(),
        "an end that was asked for is no news"
    );
}

#[tokio::test]
async fn a_plugin_sees_its_own_environment_and_no_other() {
    let running = Running::start(simple()).await;
    let audience = Arc::new(Audience::default());
    let text = format!("env > environment; echo {}; exec sleep 600", running.port);
    let (folder, mut options) = script(&audience, &text);
    let path = options.environment[std::ffi::OsStr::new("PATH")].clone();
    options.environment = [("PATH".into(), path), ("KEY".into(), "value".into())].into();
    options.runtime_options = [("virtualenv".to_owned(), "venv".to_owned())].into();
    options.config_json = Some("{\"shop:token\":\"t\"}".into());
    load(options).await.unwrap();
    let environment = fs::read_to_string(folder.path().join("environment")).unwrap();
    let has = |line: &str| environment.lines().any(|found| found == line);
    assert!(
        has("KEY=value") && has("PULUMI_PROJECT=shop"),
        "{environment}"
    );
    assert!(has("PULUMI_RUNTIME_VIRTUALENV=venv"), "{environment}");
    assert!(
        !environment.contains("PULUMI_CONFIG"),
        "only dynamic providers get the secrets"
    );
    assert!(!environment.contains("HOME="), "{environment}");
}

#[tokio::test]
async fn a_plugin_sees_variables_under_the_names_that_its_provider_gives_them() {
    let running = Running::start(simple()).await;
    let audience = Arc::new(Audience::default());
    let text = format!("env > environment; echo {}; exec sleep 600", running.port);
    let (folder, mut options) = script(&audience, &text);
    options
        .environment
        .insert("STAGING_KEY".into(), "key".into());
    let names = [("STAGING_KEY", "KEY"), ("NOT_SET", "REGION")];
    let mut fake = package("fake");
    fake.environment = names
        .map(|(ours, theirs)| (ours.to_owned(), theirs.to_owned()))
        .into();
    PluginHost::new(options).load(&fake).await.unwrap();
    let environment = fs::read_to_string(folder.path().join("environment")).unwrap();
    let has = |line: &str| environment.lines().any(|found| found == line);
    assert!(has("KEY=key") && has("STAGING_KEY=key"), "{environment}");
    assert!(!environment.contains("REGION="), "{environment}");
}

#[tokio::test]
async fn a_plugin_that_dies_during_a_call_leaves_the_outcome_unknown() {
    let audience = Arc::new(Audience::default());
    let (_folder, options) = script(&audience, &role("dies"));
    let provider = load(options).await.unwrap();
    provider.configure(configuration([])).await.unwrap();
    let created = provider.create(CreateRequest::default()).await;
    let Err(ProviderError::Unknown { message }) = created else {
        panic!("{created:?}")
    };
    assert_eq!(message, "the plugin fake ended (exit code 7) during Create");
    eventually("the news", || {
        let told = audience.told(Severity::Error);
        told.iter()
            .any(|m| m.contains("ended by itself") && m.contains("last words"))
            .then_some(())
    })
    .await;

    let read = provider
        .read(ReadRequest {
            id: "i".into(),
            ..Default::default()
        })
        .await;
    let Err(ProviderError::Failed { message, .. }) = read else {
        panic!("{read:?}")
    };
    assert!(
        message.contains("has ended"),
        "nothing was asked of a dead plugin: {message}"
    );
}

#[tokio::test]
async fn closing_ends_the_plugin_and_everything_it_started() {
    let running = Running::start(simple()).await;
    let audience = Arc::new(Audience::default());
    let text = format!(
        "sleep 600 & echo $! > child; echo $$ > pid; echo {}; wait",
        running.port
    );
    let (folder, options) = script(&audience, &text);
    let provider = load(options).await.unwrap();
    let (pid, child) = (
        pid_in(folder.path().join("pid")).await,
        pid_in(folder.path().join("child")).await,
    );
    assert!(is_running(pid) && is_running(child));
    provider.close().await;
    assert!(!is_running(pid));
    eventually("the end of the child", || {
        (!is_running(child)).then_some(())
    })
    .await;
    assert_eq!(running.calls(), ["cancel"], "it was asked first");
}

#[tokio::test]
async fn a_plugin_that_ignores_the_request_to_end_is_killed() {
    let running = Running::start(simple()).await;
    let audience = Arc::new(Audience::default());
    let text = format!(
        "trap '' TERM; echo $$ > pid; echo {}; while :; do sleep 1; done",
        running.port
    );
    let (folder, mut options) = script(&audience, &text);
    options.limits.shutdown = Duration::from_millis(200);
    let host = PluginHost::new(options);
    let _provider = host.load(&package("fake")).await.unwrap();
    let pid = pid_in(folder.path().join("pid")).await;
    host.shutdown().await;
    assert!(!is_running(pid));
    let error = host.load(&package("fake")).await.err().unwrap().to_string();
    assert!(error.contains("the run is ending"), "{error}");
}

#[tokio::test]
async fn dropping_everything_leaves_no_process_behind() {
    let running = Running::start(simple()).await;
    let audience = Arc::new(Audience::default());
    let text = format!(
        "sleep 600 & echo $! > child; echo $$ > pid; echo {}; wait",
        running.port
    );
    let (folder, options) = script(&audience, &text);
    drop(load(options).await.unwrap());
    for file in ["pid", "child"] {
        let pid = pid_in(folder.path().join(file)).await;
        eventually("its death", || (!is_running(pid)).then_some(())).await;
    }
}

#[tokio::test]
async fn a_plugin_does_not_outlive_an_engine_that_is_killed() {
    let folder = TempDir::new().unwrap();
    let running = Running::start(simple()).await;
    write_script(
        folder.path(),
        &format!("echo $$ > pid; echo {}; exec sleep 600", running.port),
    );
    let mut engine = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "process::acts_as_another_program"])
        .env(ROLE, "engine")
        .env(FOLDER, folder.path())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let plugin = pid_in(folder.path().join("pid")).await;
    eventually("the plugin to be loaded", || {
        folder.path().join("loaded").exists().then_some(())
    })
    .await;
    assert!(is_running(plugin));
    engine.kill().unwrap();
    engine.wait().unwrap();
    eventually("the end of the plugin", || {
        (!is_running(plugin)).then_some(())
    })
    .await;
}

/// Not a test of its own: the part that this program plays when another test starts it again.
#[tokio::test]
async fn acts_as_another_program() {
    match std::env::var(ROLE).as_deref() {
        Ok("dies") => {
            let running = Running::start(Fake {
                create: Some(Box::new(|_| {
                    // Not `eprintln!`, which the test harness catches.
                    writeln!(std::io::stderr(), "last words").unwrap();
                    die()
                })),
                read: hang(),
                ..simple()
            })
            .await;
            announce(running.port);
            std::future::pending::<()>().await;
        }
        Ok("engine") => {
            let folder = PathBuf::from(std::env::var_os(FOLDER).unwrap());
            let audience = Arc::new(Audience::default());
            let (_other, mut options) = script(&audience, "");
            options.search.project[0].folder = folder.clone();
            options.directory = folder.clone();
            let _provider = load(options).await.unwrap();
            fs::write(folder.join("loaded"), "").unwrap();
            std::future::pending::<()>().await;
        }
        Ok("warm engine") => {
            let folder = PathBuf::from(std::env::var_os(FOLDER).unwrap());
            crate::sharing::keep_warm_for_ever(&folder).await;
        }
        _ => {}
    }
}

#[allow(
    clippy::disallowed_methods,
    reason = "a provider that dies does not clean up"
)]
fn die() -> ! {
    std::process::exit(7)
}

fn announce(port: NonZeroU16) {
    let mut door = fs::File::options().write(true).open("/dev/fd/3").unwrap();
    writeln!(door, "{port}").unwrap();
}
