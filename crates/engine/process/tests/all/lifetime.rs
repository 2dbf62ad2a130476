//! Who ends with whom.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use nimbus_engine_process::{ChildProcess, CodeOrigin, Exit, OutputLines, Signal, Tail};
use tempfile::TempDir;
use tokio::time::timeout;

use crate::support::*;

fn folder() -> TempDir {
    TempDir::new().expect("a temporary directory")
}

#[tokio::test]
async fn what_a_process_started_ends_with_it() {
    let directory = folder();
    let mut line = life_line(directory.path());
    let script = "exec 3>alive; echo up >&3; sleep 1000 & echo bye; echo oops >&2; exit 5";
    let started = start(script, directory.path()).await;
    let tail = Arc::new(Tail::default());
    let keep = |tail: Arc<Tail>| move |line| tail.push(line);
    let mut stdout = OutputLines::start(started.stdout, keep(tail.clone()));
    let mut stderr = OutputLines::start(started.stderr, keep(tail.clone()));
    hear(&mut line, b"up\n").await;
    let exit = timeout(LIMIT, started.process.ended()).await;
    assert_eq!(exit.expect("it ends"), Exit::Code(5));
    assert_eq!(started.process.exit(), Some(Exit::Code(5)));
    silence(line).await;
    stdout.drain(LIMIT).await;
    stderr.drain(LIMIT).await;
    let mut printed = tail.last(10);
    printed.sort();
    assert_eq!(printed, ["bye", "oops"]);
}

#[tokio::test]
async fn a_process_that_does_not_listen_is_made_to_end() {
    let directory = folder();
    let mut line = life_line(directory.path());
    let script = "trap '' INT; exec 3>alive; echo up >&3; while :; do sleep 1000; done";
    let started = start(script, directory.path()).await;
    hear(&mut line, b"up\n").await;
    let exit = started
        .process
        .end(Signal::SIGINT, Duration::from_millis(50))
        .await;
    assert_eq!(exit, Exit::Signal(9));
    silence(line).await;
}

#[tokio::test]
async fn a_process_that_listens_ends_as_it_likes() {
    for request in [Signal::SIGINT, Signal::SIGTERM] {
        let directory = folder();
        let mut line = life_line(directory.path());
        let script =
            "trap 'exit 3' INT TERM; exec 3>alive; echo up >&3; while :; do sleep 0.01; done";
        let started = start(script, directory.path()).await;
        hear(&mut line, b"up\n").await;
        assert_eq!(started.process.end(request, LIMIT).await, Exit::Code(3));
    }
}

#[tokio::test]
async fn a_process_listens_even_if_we_were_started_deaf() {
    // The shell makes another test again with requests and the end of children ignored, as
    // `nohup`, scripts and careless supervisors do to what they start.
    let listens = "lifetime::a_process_that_listens_ends_as_it_likes";
    let script = format!("trap '' INT TERM CHLD; exec \"$0\" --exact {listens}");
    let mut command = tokio::process::Command::new("sh");
    command
        .arg("-c")
        .arg(script)
        .arg(std::env::current_exe().expect("this test"))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true);
    let status = timeout(LIMIT / 2, command.status()).await;
    let status = status
        .expect("the request is heard at once")
        .expect("a shell");
    assert!(status.success());
}

#[tokio::test]
async fn a_process_that_nobody_wants_any_more_is_killed() {
    let directory = folder();
    let mut line = life_line(directory.path());
    let script = "trap '' INT TERM; exec 3>alive; echo up >&3; sleep 1000; sleep 1000";
    let started = start(script, directory.path()).await;
    hear(&mut line, b"up\n").await;
    drop(started);
    silence(line).await;
}

#[tokio::test]
async fn a_command_that_cannot_be_run_says_why() {
    let started =
        ChildProcess::start(Command::new("/no/such/program"), CodeOrigin::Operators).await;
    let Err(error) = started else {
        panic!("it cannot run");
    };
    assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
}

#[tokio::test]
async fn a_process_outlives_the_thread_and_the_runtime_that_asked_for_it() {
    let directory = folder();
    let mut line = life_line(directory.path());
    let go = directory.path().join("go");
    nix::unistd::mkfifo(&go, nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
    let script = "exec 3>alive; echo up >&3; read word <go; echo \"$word\" >&3";
    let command = shell(script, directory.path());
    let short_lived = move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        let started = runtime.block_on(ChildProcess::start(command, CodeOrigin::Operators));
        started.expect("a shell").process
    };
    let process = std::thread::spawn(short_lived).join().expect("it ends");
    hear(&mut line, b"up\n").await;

    tokio::fs::write(&go, "alive\n")
        .await
        .expect("it still reads");
    hear(&mut line, b"alive\n").await;
    let exit = timeout(LIMIT, process.ended()).await;
    assert_eq!(exit.expect("it ends"), Exit::Code(0));
}

const PARENT: &str = "NIMBUS_TEST_DYING_PARENT";

/// Not a test of its own: the parent that the next test kills.
#[tokio::test]
async fn a_parent_that_waits_to_be_killed() {
    let Some(directory) = std::env::var_os(PARENT) else {
        return;
    };
    let script = "exec 3>alive; echo up >&3; exec sleep 1000";
    let started = start(script, Path::new(&directory)).await;
    started.process.ended().await;
}

#[tokio::test]
async fn a_process_dies_when_we_are_killed() {
    let directory = folder();
    let mut line = life_line(directory.path());
    let mut parent = tokio::process::Command::new(std::env::current_exe().expect("this test"))
        .args(["--exact", "lifetime::a_parent_that_waits_to_be_killed"])
        .env(PARENT, directory.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .expect("this test again");
    hear(&mut line, b"up\n").await;
    parent.kill().await.expect("it was running");
    silence(line).await;
}
