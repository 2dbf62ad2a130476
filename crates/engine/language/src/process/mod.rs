//! The program's process: a child that never outlives us and never lingers.

mod output;
mod spawn;

use std::io;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use nimbus_engine_ports::EventSink;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tokio::process::{Child, Command};
use tokio::time::timeout;

use output::Output;

/// How long output may still come in after everything that could write it was killed.
const DRAIN: Duration = Duration::from_secs(2);

/// A running program with everything it started.
pub(crate) struct ProgramProcess {
    child: Child,
    group: Pid,
    output: Output,
}

/// How a process ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    Code(i32),
    Signal(i32),
}

impl ProgramProcess {
    /// Starts the command; what it prints becomes diagnostics.
    pub(crate) async fn start(
        mut command: Command,
        events: &Arc<dyn EventSink>,
    ) -> io::Result<Self> {
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = spawn::spawn(command).await?;
        let group = child.id().and_then(|id| i32::try_from(id).ok());
        let group = group.ok_or_else(|| io::Error::other("the process has no id"))?;
        let output = Output::forward(child.stdout.take(), child.stderr.take(), events);
        Ok(Self {
            child,
            group: Pid::from_raw(group),
            output,
        })
    }

    /// Waits for the end and makes sure that nothing the program started is left. May be dropped
    /// and called again.
    pub(crate) async fn wait(&mut self) -> Exit {
        let status = self.child.wait().await;
        // While any member is alive the group keeps its number; if none is, this reaches nobody.
        self.signal(Signal::SIGKILL);
        self.output.drain(DRAIN).await;
        match status {
            Ok(status) => Exit::from(status),
            Err(_) => Exit::Code(-1),
        }
    }

    /// Asks the program to end and makes it end when it does not.
    pub(crate) async fn end(&mut self, grace: Duration) -> Exit {
        self.signal(Signal::SIGINT);
        if let Ok(exit) = timeout(grace, self.wait()).await {
            return exit;
        }
        self.signal(Signal::SIGKILL);
        self.wait().await
    }

    /// The last lines that were written to standard error.
    pub(crate) fn last_errors(&self) -> Vec<String> {
        self.output.last_errors()
    }

    fn signal(&self, signal: Signal) {
        // Nobody left to signal is what is wanted.
        let _ = killpg(self.group, signal);
    }
}

impl Drop for ProgramProcess {
    fn drop(&mut self) {
        // The child itself is reaped by the runtime.
        if self.child.id().is_some() {
            self.signal(Signal::SIGKILL);
        }
    }
}

impl From<ExitStatus> for Exit {
    fn from(status: ExitStatus) -> Self {
        use std::os::unix::process::ExitStatusExt as _;
        match (status.code(), status.signal()) {
            (Some(code), _) => Self::Code(code),
            (None, Some(signal)) => Self::Signal(signal),
            (None, None) => Self::Code(-1),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use nimbus_engine_monitor::testing::RecordingSink;
    use nimbus_engine_ports::Severity;
    use tokio::io::AsyncReadExt as _;
    use tokio::net::unix::pipe;

    use super::*;

    const LIMIT: Duration = Duration::from_secs(60);

    fn shell(script: &str, directory: &Path) -> Command {
        let mut command = Command::new("sh");
        command.arg("-c").arg(script).current_dir(directory);
        command
    }

    /// A pipe that scripts hold open as `alive`; it ends when the last holder does.
    fn life_line(directory: &Path) -> pipe::Receiver {
        let path = directory.join("alive");
        nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
        pipe::OpenOptions::new()
            .open_receiver(path)
            .expect("our side of the pipe")
    }

    async fn hear(line: &mut pipe::Receiver, word: &[u8]) {
        let mut heard = vec![0; word.len()];
        line.readable().await.expect("our side of the pipe");
        line.read_exact(&mut heard).await.expect("a word");
        assert_eq!(heard, word);
    }

    async fn silence(mut line: pipe::Receiver) {
        let mut rest = Vec::new();
        let read = timeout(LIMIT, line.read_to_end(&mut rest)).await;
        read.expect("nothing may be left behind")
            .expect("our side of the pipe");
    }

    fn audience() -> (Arc<RecordingSink>, Arc<dyn EventSink>) {
        let sink = Arc::new(RecordingSink::default());
        (sink.clone(), sink)
    }

    #[tokio::test]
    async fn what_a_program_started_ends_with_it() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let mut line = life_line(directory.path());
        let script = "exec 3>alive; echo up >&3; sleep 1000 & echo bye; echo oops >&2; exit 5";
        let (sink, events) = audience();
        let command = shell(script, directory.path());
        let mut process = ProgramProcess::start(command, &events)
            .await
            .expect("a shell");
        hear(&mut line, b"up\n").await;
        let exit = timeout(LIMIT, process.wait()).await.expect("it ends");
        assert_eq!(exit, Exit::Code(5));
        silence(line).await;
        let mut printed = sink.messages(Severity::Info);
        printed.sort();
        assert_eq!(printed, ["bye", "oops"]);
        assert_eq!(process.last_errors(), ["oops"]);
        let streams: Vec<_> = sink.diagnostics().iter().map(|d| d.stream_id).collect();
        assert_ne!(streams[0], streams[1]);
    }

    #[tokio::test]
    async fn a_program_that_does_not_listen_is_made_to_end() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let mut line = life_line(directory.path());
        let script = "trap '' INT; exec 3>alive; echo up >&3; while :; do sleep 1000; done";
        let (_sink, events) = audience();
        let command = shell(script, directory.path());
        let mut process = ProgramProcess::start(command, &events)
            .await
            .expect("a shell");
        hear(&mut line, b"up\n").await;
        let exit = process.end(Duration::from_millis(50)).await;
        assert_eq!(exit, Exit::Signal(9));
        silence(line).await;
    }

    #[tokio::test]
    async fn a_program_that_listens_ends_as_it_likes() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let mut line = life_line(directory.path());
        let script = "trap 'exit 3' INT; exec 3>alive; echo up >&3; while :; do sleep 0.01; done";
        let (_sink, events) = audience();
        let command = shell(script, directory.path());
        let mut process = ProgramProcess::start(command, &events)
            .await
            .expect("a shell");
        hear(&mut line, b"up\n").await;
        assert_eq!(process.end(LIMIT).await, Exit::Code(3));
    }

    #[tokio::test]
    async fn a_program_listens_even_if_we_were_started_deaf() {
        // The shell makes this test again with the request to end ignored, as `nohup` and scripts
        // do to what they put in the background.
        let listens = "process::tests::a_program_that_listens_ends_as_it_likes";
        let script = format!("trap '' INT; exec \"$0\" --exact {listens}");
        let mut command = Command::new("sh");
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

    const HELPER: &str = "NIMBUS_TEST_DYING_PARENT";

    /// Not a test of its own: the parent that the next test kills.
    #[tokio::test]
    async fn a_parent_that_waits_to_be_killed() {
        let Some(directory) = std::env::var_os(HELPER) else {
            return;
        };
        let (_sink, events) = audience();
        let command = shell(
            "exec 3>alive; echo up >&3; exec sleep 1000",
            Path::new(&directory),
        );
        let mut process = ProgramProcess::start(command, &events)
            .await
            .expect("a shell");
        process.wait().await;
    }

    #[tokio::test]
    async fn a_program_dies_when_we_are_killed() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let mut line = life_line(directory.path());
        let mut parent = Command::new(std::env::current_exe().expect("this test"))
            .args([
                "--exact",
                "process::tests::a_parent_that_waits_to_be_killed",
            ])
            .env(HELPER, directory.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .expect("this test again");
        hear(&mut line, b"up\n").await;
        parent.kill().await.expect("it was running");
        silence(line).await;
    }
}
