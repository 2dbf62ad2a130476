//! What the official command line started and left behind.
//!
//! It gives its plugins process groups of their own, so ending its group does not end them. They
//! inherit a mark in their environment instead, by which they are found when it has gone.

use std::fs;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// The variable that carries the mark.
pub(super) const MARK: &str = "NIMBUS_OFFICIAL_RUN";

/// Kills every process that has the mark. On systems without `/proc` there is nothing to look at,
/// and plugins end by themselves when nobody speaks to them.
pub(super) fn kill_marked(mark: &str) {
    let wanted = format!("{MARK}={mark}");
    let Ok(processes) = fs::read_dir("/proc") else {
        return;
    };
    for process in processes.flatten() {
        let number = process
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok());
        let Some(number) = number.filter(|number: &i32| *number > 1) else {
            continue;
        };
        // Looked up right before the signal: the number is still its own.
        if has(number, &wanted) {
            let _ = kill(Pid::from_raw(number), Signal::SIGKILL);
        }
    }
}

fn has(number: i32, wanted: &str) -> bool {
    let environment = fs::read(format!("/proc/{number}/environ"));
    environment.is_ok_and(|variables| {
        let mut variables = variables.split(|byte| *byte == 0);
        variables.any(|variable| variable == wanted.as_bytes())
    })
}
