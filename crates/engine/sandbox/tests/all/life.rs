//! X3 and F15: nothing of a program is left when it ends, however it ends.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use nimbus_engine_sandbox::{Sandbox, SandboxSettings};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use crate::support::*;

const LIMIT: Duration = Duration::from_secs(40);

/// A daemon as they are made by hand: two forks, a session of its own, no parent.
const NODE_DAEMON: &str = r#"
const marker = process.argv[2];
const daemon = child_process.spawn("sh", ["-c", "setsid sleep 3131 & setsid setsid sleep 3131 &"],
    { detached: true, stdio: "ignore" });
daemon.on("exit", () => { report("daemon", "started"); if (marker) setInterval(() => {}, 1000); });
"#;

const PYTHON_DAEMON: &str = r#"
marker = sys.argv[1:]
child = os.fork()
if child == 0:
    os.setsid()
    if os.fork() == 0:
        os.setsid()
        os.close(1)
        os.close(2)
        os.execvp("sleep", ["sleep", "3131"])
    os._exit(0)
os.waitpid(child, 0)
report("daemon", "started")
while marker:
    import time
    time.sleep(1)
"#;

/// Processes of this machine that belong to this test: their parent chain does not matter, their
/// room's name does, because everything inside has it as part of its root's mounts.
fn daemons(since: &[i32]) -> Vec<i32> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    pids.filter(|pid| !since.contains(pid))
        .filter(|pid| {
            let line = fs::read(Path::new("/proc").join(pid.to_string()).join("cmdline"));
            line.is_ok_and(|line| line == b"sleep\x003131\x00")
        })
        .collect()
}

fn wait_until_gone(before: &[i32]) {
    let deadline = Instant::now() + LIMIT;
    while !daemons(before).is_empty() {
        assert!(Instant::now() < deadline, "left: {:?}", daemons(before));
        std::thread::yield_now();
    }
}

// The tests below look at the whole machine's processes, so they take turns.
static TURN: std::sync::Mutex<()> = std::sync::Mutex::new(());

fn each(test: &str, body: impl Fn(Language, std::path::PathBuf)) {
    let _turn = TURN
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    in_each_language(test, body);
}

#[test]
fn a_daemon_ends_with_the_program_that_made_it() {
    each("daemon", |language, interpreter| {
        let before = daemons(&[]);
        let program = source(language, NODE_DAEMON, PYTHON_DAEMON);
        let program = Hostile::new(language, interpreter, &program);
        let outcome = program.run(strict());
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
        assert_eq!(outcome.attempts()["daemon"], "started", "{outcome:?}");
        // The helper ends after everything inside has.
        assert_eq!(daemons(&before), Vec::<i32>::new());
    });
}

/// Without namespaces the helper adopts what is left and ends it.
#[test]
fn a_daemon_ends_without_namespaces_too() {
    each("daemon without namespaces", |language, interpreter| {
        let before = daemons(&[]);
        let program = source(language, NODE_DAEMON, PYTHON_DAEMON);
        let program = Hostile::new(language, interpreter, &program);
        let settings = SandboxSettings {
            mode: nimbus_engine_sandbox::IsolationMode::BestEffort,
            ..strict()
        };
        let sandbox = Sandbox::new(helper(), &without_namespaces(), settings).unwrap();
        let outcome = program.run_in(&sandbox);
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
        wait_until_gone(&before);
    });
}

#[test]
fn killing_the_helper_ends_everything_inside() {
    each("killed helper", |language, interpreter| {
        let before = daemons(&[]);
        let program = source(language, NODE_DAEMON, PYTHON_DAEMON);
        let program = Hostile::new(language, interpreter, &program).argument("stay");
        let sandbox = Sandbox::new(helper(), probe(), strict()).unwrap();
        let mut room = sandbox.open().unwrap();
        let mut child = program.start(&mut room);
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert_eq!(lines.next().unwrap().unwrap(), "daemon: started");
        child.kill().unwrap();
        child.wait().unwrap();
        wait_until_gone(&before);
    });
}

/// F15: a request to end reaches the program, which may take its time; the helper stays for it.
#[test]
fn a_program_hears_the_request_to_end_and_answers() {
    each("request to end", |language, interpreter| {
        let node = r#"
            process.on("SIGINT", () => { report("heard", "yes"); process.exit(7); });
            setInterval(() => {}, 1000);
            report("ready", "yes");
        "#;
        let python = r#"
import signal, time

def heard(*_):
    os.write(1, b"heard: yes\n")
    os._exit(7)

signal.signal(signal.SIGINT, heard)
report("ready", "yes")
while True:
    time.sleep(0.05)
"#;
        let program = Hostile::new(language, interpreter, &source(language, node, python));
        let sandbox = Sandbox::new(helper(), probe(), strict()).unwrap();
        let mut room = sandbox.open().unwrap();
        let own = program.directory.path();
        let read_only = readable(own, &program.interpreter);
        let mut command = room.enclose(&program.command(), &read_only, &[]).unwrap();
        command
            .process_group(0)
            .stdout(std::process::Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert_eq!(lines.next().unwrap().unwrap(), "ready: yes");
        let group = Pid::from_raw(i32::try_from(child.id()).unwrap());
        killpg(group, Signal::SIGINT).unwrap();
        assert_eq!(lines.next().unwrap().unwrap(), "heard: yes");
        assert_eq!(child.wait().unwrap().code(), Some(7));
    });
}

#[test]
fn a_program_ends_for_the_engine_as_it_ended() {
    each("ends", |language, interpreter| {
        for (node, python, code, signal) in [
            ("process.exit(3)", "sys.exit(3)", Some(3), None),
            ("process.exit(137)", "sys.exit(137)", Some(137), None),
            (
                "process.kill(process.pid, 'SIGTERM'); setInterval(() => {}, 1000)",
                "os.kill(os.getpid(), 15)",
                None,
                Some(15),
            ),
            (
                "process.kill(process.pid, 'SIGKILL'); setInterval(() => {}, 1000)",
                "os.kill(os.getpid(), 9)",
                None,
                Some(9),
            ),
        ] {
            let program = source(language, node, python);
            let program = Hostile::new(language, interpreter.clone(), &program);
            let outcome = program.run(strict());
            assert_eq!(
                (outcome.code, outcome.signal),
                (code, signal),
                "{outcome:?}"
            );
            assert_eq!(outcome.intervention, None);
            assert_eq!(outcome.stderr, "");
        }
    });
}

/// The engine can call functions of a program that is alone in its network.
#[test]
fn the_engine_reaches_what_the_program_serves() {
    each("dial", |language, interpreter| {
        let node = r#"
            const server = net.createServer((socket) => socket.end("hello")).listen(0, "127.0.0.1",
                () => report("port", server.address().port));
        "#;
        let python = r#"
server = socket.create_server(("127.0.0.1", 0))
report("port", server.getsockname()[1])
while True:
    connection, _ = server.accept()
    connection.sendall(b"hello")
    connection.close()
"#;
        let program = Hostile::new(language, interpreter, &source(language, node, python));
        let sandbox = Sandbox::new(helper(), probe(), strict()).unwrap();
        let mut room = sandbox.open().unwrap();
        let mut child = program.start(&mut room);
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let line = lines.next().unwrap().unwrap();
        let port: u16 = line.strip_prefix("port: ").unwrap().parse().unwrap();
        // Nobody else can.
        assert!(std::net::TcpStream::connect(("127.0.0.1", port)).is_err());
        let dialer = room.dialer().unwrap();
        for _ in 0..3 {
            let connection = dialer.connect(port).unwrap();
            let answer = std::io::read_to_string(connection).unwrap();
            assert_eq!(answer, "hello");
        }
        assert!(dialer.connect(1).is_err());
        child.kill().unwrap();
        child.wait().unwrap();
    });
}
