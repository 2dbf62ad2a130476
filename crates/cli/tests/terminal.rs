//! Colours on a terminal, and only there.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use std::io::Read as _;

use portable_pty::{CommandBuilder, PtySize, native_pty_system};

/// What somebody in front of a terminal sees.
fn on_a_terminal(arguments: &[&str], variables: &[(&str, &str)]) -> String {
    let size = PtySize {
        rows: 40,
        cols: 100,
        pixel_width: 0,
        pixel_height: 0,
    };
    let pair = native_pty_system().openpty(size).unwrap();
    let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_nimbus"));
    command.env_clear();
    command.env("TERM", "xterm");
    variables
        .iter()
        .for_each(|(name, value)| command.env(name, value));
    command.args(arguments);
    let mut child = pair.slave.spawn_command(command).unwrap();
    drop(pair.slave);
    let mut seen = Vec::new();
    // The end of a terminal is an error on Linux, not an end of file.
    let _ = pair
        .master
        .try_clone_reader()
        .unwrap()
        .read_to_end(&mut seen);
    child.wait().unwrap();
    String::from_utf8_lossy(&seen).into_owned()
}

#[test]
fn errors_and_pages_are_coloured_on_a_terminal() {
    for arguments in [
        &["explain", "NIM-9999"][..],
        &["explain", "NIM-0001"],
        &["--help"],
    ] {
        let seen = on_a_terminal(arguments, &[]);
        assert!(seen.contains('\x1b'), "{arguments:?}: {seen:?}");
    }
}

#[test]
fn whoever_wants_no_colours_gets_none() {
    for arguments in [
        &["explain", "NIM-9999"][..],
        &["explain", "NIM-0001"],
        &["--help"],
    ] {
        for variable in [("NO_COLOR", "1"), ("TERM", "dumb")] {
            let seen = on_a_terminal(arguments, &[variable]);
            assert!(
                !seen.contains('\x1b'),
                "{arguments:?} {variable:?}: {seen:?}"
            );
        }
        let with_flag = [&["--no-color"], arguments].concat();
        let seen = on_a_terminal(&with_flag, &[]);
        assert!(!seen.contains('\x1b'), "{with_flag:?}: {seen:?}");
    }
}
