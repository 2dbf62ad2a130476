//! The program's process and what it prints.

mod echo;
mod output;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use nimbus_engine_ports::EventSink;
use nimbus_engine_process::{ChildProcess, CodeOrigin, Exit, Signal, Started};
use tokio::process::Command;

use crate::warm::{Spare, StartPipe};
use output::ProgramOutput;

/// How long output may still come in after everything that could write it was killed.
const DRAIN: Duration = Duration::from_secs(2);

/// A running program with everything it started. Dropped, all of it is killed.
pub(crate) struct ProgramProcess {
    process: ChildProcess,
    output: ProgramOutput,
    /// What a process that was started ahead is told through.
    _orders: Option<StartPipe>,
}

impl ProgramProcess {
    /// Starts the command; what it prints becomes diagnostics, as far as it may print so much.
    pub(crate) async fn start(
        command: Command,
        origin: CodeOrigin,
        events: &Arc<dyn EventSink>,
        most_output: u64,
    ) -> io::Result<Self> {
        let started = ChildProcess::start(command.into_std(), origin).await?;
        Ok(Self::of(started, None, events, most_output))
    }

    /// Takes on a process that was started before.
    pub(crate) fn adopt(spare: Spare, events: &Arc<dyn EventSink>, most_output: u64) -> Self {
        Self::of(spare.started, Some(spare.orders), events, most_output)
    }

    fn of(
        started: Started,
        orders: Option<StartPipe>,
        events: &Arc<dyn EventSink>,
        most_output: u64,
    ) -> Self {
        let (stdout, stderr) = (started.stdout, started.stderr);
        Self {
            process: started.process,
            output: ProgramOutput::forward(stdout, stderr, events, most_output),
            _orders: orders,
        }
    }

    /// Waits until nothing of the program is left and all of its output was passed on. May be
    /// dropped and called again.
    pub(crate) async fn wait(&mut self) -> Exit {
        let exit = tokio::select! {
            exit = self.process.ended() => exit,
            () = self.output.flooded().cancelled() => {
                self.process.signal(Signal::SIGKILL);
                self.process.ended().await
            }
        };
        self.output.drain(DRAIN).await;
        exit
    }

    /// Asks the program to end and makes it end when it does not.
    pub(crate) async fn end(&mut self, grace: Duration) -> Exit {
        self.process.end(Signal::SIGINT, grace).await;
        self.wait().await
    }

    /// Whether it was made to end because it printed too much.
    pub(crate) fn flooded(&self) -> bool {
        self.output.flooded().is_cancelled()
    }

    /// The last lines that were written to standard error.
    pub(crate) fn last_errors(&self) -> Vec<String> {
        self.output.last_errors()
    }
}

#[cfg(test)]
mod tests {
    use nimbus_engine_ports::Severity;
    use nimbus_engine_testing::RecordingSink;

    use super::*;

    #[tokio::test]
    async fn what_a_program_prints_becomes_information() {
        let sink = Arc::new(RecordingSink::default());
        let events: Arc<dyn EventSink> = sink.clone();
        let mut command = Command::new("sh");
        command.args(["-c", "echo bye; echo oops >&2; exit 5"]);
        let process = ProgramProcess::start(command, CodeOrigin::Ours, &events, u64::MAX).await;
        let mut process = process.expect("a shell");
        assert_eq!(process.wait().await, Exit::Code(5));
        let mut printed = sink.messages(Severity::Info);
        printed.sort();
        assert_eq!(printed, ["bye", "oops"]);
        assert_eq!(process.last_errors(), ["oops"]);
        let streams: Vec<_> = sink.diagnostics().iter().map(|d| d.stream_id).collect();
        assert_ne!(streams[0], streams[1]);
    }

    #[tokio::test]
    async fn a_program_that_prints_without_end_is_ended() {
        const MOST: u64 = 10_000;
        let sink = Arc::new(RecordingSink::default());
        let events: Arc<dyn EventSink> = sink.clone();
        let mut command = Command::new("sh");
        command.args(["-c", "while :; do echo flood; echo flood >&2; done"]);
        let process = ProgramProcess::start(command, CodeOrigin::Ours, &events, MOST).await;
        let mut process = process.expect("a shell");
        assert_eq!(process.wait().await, Exit::Signal(9));
        assert!(process.flooded());
        let printed = sink.messages(Severity::Info);
        let bytes: usize = printed.iter().map(|line| line.len() + 1).sum();
        assert!(bytes as u64 <= MOST, "{bytes}");
        assert!(bytes > 5_000, "what it may print is passed on: {bytes}");
    }
}
