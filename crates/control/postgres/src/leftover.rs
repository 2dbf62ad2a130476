//! What an earlier run left: a server that is still ending, or the file of one that is gone.

use std::fs;
use std::path::Path;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tracing::{info, warn};

use crate::PostgresError;

const STEP: Duration = Duration::from_millis(20);
/// How long a server may take to end after each signal.
const PATIENCE: [(Signal, Duration); 3] = [
    (Signal::SIGINT, Duration::from_secs(20)),
    (Signal::SIGQUIT, Duration::from_secs(5)),
    (Signal::SIGKILL, Duration::from_secs(5)),
];

/// Ends a server that still runs on the data. The caller holds the claim on the data directory, so
/// whoever started it is gone.
pub(crate) async fn clear(data: &Path) -> Result<(), PostgresError> {
    let file = data.join("postmaster.pid");
    let Ok(text) = fs::read_to_string(&file) else {
        return Ok(());
    };
    let first = text
        .lines()
        .next()
        .and_then(|line| line.trim().parse().ok());
    if let Some(pid) = first.map(Pid::from_raw).filter(|&pid| serves(pid, data)) {
        info!(%pid, "ending a PostgreSQL that an earlier run left");
        end(pid, data).await;
    }
    // The number may belong to another process by now, and PostgreSQL would then refuse to start.
    match fs::remove_file(&file) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(PostgresError::folder(&file, "it cannot be removed")(error)),
    }
}

async fn end(pid: Pid, data: &Path) {
    for (signal, patience) in PATIENCE {
        let _ = kill(pid, signal);
        let mut waited = Duration::ZERO;
        while waited < patience {
            if !serves(pid, data) {
                return;
            }
            tokio::time::sleep(STEP).await;
            waited += STEP;
        }
        warn!(%pid, %signal, "PostgreSQL did not end");
    }
}

/// Whether the process is a PostgreSQL on this data. A zombie is not.
fn serves(pid: Pid, data: &Path) -> bool {
    let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let words: Vec<_> = command.split(|&byte| byte == 0).collect();
    let is_server = words
        .first()
        .is_some_and(|program| program.ends_with(b"postgres"));
    is_server && words.contains(&data.as_os_str().as_encoded_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_file_that_names_somebody_else_is_removed_and_they_live() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("postmaster.pid");
        fs::write(
            &file,
            format!("{}\n{}\n", std::process::id(), folder.path().display()),
        )
        .unwrap();
        clear(folder.path()).await.unwrap();
        assert!(!file.exists());
    }

    #[tokio::test]
    async fn a_file_without_a_number_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("postmaster.pid");
        fs::write(&file, "garbage").unwrap();
        clear(folder.path()).await.unwrap();
        assert!(!file.exists());
    }
}
