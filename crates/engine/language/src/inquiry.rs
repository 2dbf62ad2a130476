//! A question to a process, and its answer.

use std::process::Command;
use std::time::Duration;

use nimbus_engine_process::{ChildProcess, CodeOrigin, Started};
use tokio::io::AsyncReadExt as _;
use tokio::time::timeout;

/// What a process prints, as far as it may print so much, in the time that it may take. It is gone
/// afterwards with everything that it started.
pub(crate) async fn answer(
    command: Command,
    origin: CodeOrigin,
    most_bytes: u64,
    patience: Duration,
) -> Result<Vec<u8>, Unanswered> {
    let failed = |error: std::io::Error| Unanswered::Failed(error.to_string());
    let started = ChildProcess::start(command, origin).await.map_err(failed)?;
    let Started {
        process,
        stdout,
        mut stderr,
    } = started;
    let mut text = Vec::new();
    let mut stdout = stdout.take(most_bytes);
    let mut nowhere = tokio::io::sink();
    let said = async {
        tokio::select! {
            read = stdout.read_to_end(&mut text) => read.map(|_| ()),
            // It may have closed the one and still write to the other.
            error = async {
                let _ = tokio::io::copy(&mut stderr, &mut nowhere).await;
                std::future::pending().await
            } => error,
        }
    };
    let said = timeout(patience, said).await;
    drop(process);
    said.map_err(|_| Unanswered::TooLate)?.map_err(failed)?;
    Ok(text)
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Unanswered {
    TooLate,
    Failed(String),
}
