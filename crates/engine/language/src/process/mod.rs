//! The program's process and what it prints.

mod output;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use nimbus_engine_ports::EventSink;
use nimbus_engine_process::{Exit, Process, Signal};
use tokio::process::Command;

use output::Output;

/// How long output may still come in after everything that could write it was killed.
const DRAIN: Duration = Duration::from_secs(2);

/// A running program with everything it started. Dropped, all of it is killed.
pub(crate) struct ProgramProcess {
    process: Process,
    output: Output,
}

impl ProgramProcess {
    /// Starts the command; what it prints becomes diagnostics.
    pub(crate) async fn start(command: Command, events: &Arc<dyn EventSink>) -> io::Result<Self> {
        let started = Process::start(command.into_std()).await?;
        Ok(Self {
            process: started.process,
            output: Output::forward(started.stdout, started.stderr, events),
        })
    }

    /// Waits until nothing of the program is left and all of its output was passed on. May be
    /// dropped and called again.
    pub(crate) async fn wait(&mut self) -> Exit {
        let exit = self.process.ended().await;
        self.output.drain(DRAIN).await;
        exit
    }

    /// Asks the program to end and makes it end when it does not.
    pub(crate) async fn end(&mut self, grace: Duration) -> Exit {
        self.process.end(Signal::SIGINT, grace).await;
        self.wait().await
    }

    /// The last lines that were written to standard error.
    pub(crate) fn last_errors(&self) -> Vec<String> {
        self.output.last_errors()
    }
}

#[cfg(test)]
mod tests {
    use nimbus_engine_monitor::testing::RecordingSink;
    use nimbus_engine_ports::Severity;

    use super::*;

    #[tokio::test]
    async fn what_a_program_prints_becomes_information() {
        let sink = Arc::new(RecordingSink::default());
        let events: Arc<dyn EventSink> = sink.clone();
        let mut command = Command::new("sh");
        command.args(["-c", "echo bye; echo oops >&2; exit 5"]);
        let process = ProgramProcess::start(command, &events).await;
        let mut process = process.expect("a shell");
        assert_eq!(process.wait().await, Exit::Code(5));
        let mut printed = sink.messages(Severity::Info);
        printed.sort();
        assert_eq!(printed, ["bye", "oops"]);
        assert_eq!(process.last_errors(), ["oops"]);
        let streams: Vec<_> = sink.diagnostics().iter().map(|d| d.stream_id).collect();
        assert_ne!(streams[0], streams[1]);
    }
}
