//! A command on a terminal of its own, for the tests that look over somebody's shoulder.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests fail like tests"
)]

use std::io::{Read as _, Write as _};
use std::process::Command;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use portable_pty::{CommandBuilder, PtySize, native_pty_system};

/// Longer than anything here takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

pub(crate) struct Session {
    child: Box<dyn portable_pty::Child + Send + Sync>,
    keyboard: Box<dyn std::io::Write + Send>,
    screen: Receiver<Vec<u8>>,
    pub(crate) seen: String,
}

impl Session {
    /// Starts what `plain` describes: its program, arguments, folder and the variables set on it.
    pub(crate) fn start(plain: &Command) -> Self {
        Self::start_wide(plain, 100)
    }

    /// The same on a terminal with so many columns.
    pub(crate) fn start_wide(plain: &Command, cols: u16) -> Self {
        let size = PtySize {
            rows: 30,
            cols,
            pixel_width: 0,
            pixel_height: 0,
        };
        let pair = native_pty_system().openpty(size).unwrap();
        let mut command = CommandBuilder::new(plain.get_program());
        command.args(plain.get_args());
        command.env_clear();
        command.env("TERM", "xterm");
        for (name, value) in plain.get_envs() {
            command.env(name, value.unwrap_or_default());
        }
        command.cwd(plain.get_current_dir().unwrap());
        let child = pair.slave.spawn_command(command).unwrap();
        let mut reader = pair.master.try_clone_reader().unwrap();
        let keyboard = pair.master.take_writer().unwrap();
        let (sender, screen) = channel();
        std::thread::spawn(move || {
            let _master = pair.master;
            let mut buffer = [0; 4096];
            while let Ok(count) = reader.read(&mut buffer) {
                if count == 0 || sender.send(buffer[..count].to_vec()).is_err() {
                    break;
                }
            }
        });
        Self {
            child,
            keyboard,
            screen,
            seen: String::new(),
        }
    }

    pub(crate) fn wait_for(&mut self, text: &str) {
        while !self.seen.contains(text) {
            match self.screen.recv_timeout(PATIENCE) {
                Ok(bytes) => self.seen.push_str(&String::from_utf8_lossy(&bytes)),
                Err(reason) => panic!("{text:?} never came, {reason}: {}", self.seen),
            }
        }
    }

    pub(crate) fn answer(&mut self, text: &str) {
        self.keyboard.write_all(text.as_bytes()).unwrap();
        self.keyboard.flush().unwrap();
    }

    /// The exit code, and everything that was ever on the screen.
    pub(crate) fn end(mut self) -> (u32, String) {
        let code = self.child.wait().unwrap().exit_code();
        // The terminal ends with the last process on it, and the channel with the terminal.
        while let Ok(bytes) = self.screen.recv_timeout(PATIENCE) {
            self.seen.push_str(&String::from_utf8_lossy(&bytes));
        }
        (code, self.seen)
    }
}
