//! What somebody in front of a terminal sees and is asked.

use std::io::{Read as _, Write as _};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use portable_pty::{CommandBuilder, PtySize, native_pty_system};

use crate::support::{Site, node_sdk};

/// A command on a terminal of its own.
struct Session {
    child: Box<dyn portable_pty::Child + Send + Sync>,
    keyboard: Box<dyn std::io::Write + Send>,
    screen: Receiver<Vec<u8>>,
    seen: String,
}

impl Session {
    fn start(site: &Site, arguments: &[&str]) -> Self {
        let size = PtySize {
            rows: 30,
            cols: 100,
            pixel_width: 0,
            pixel_height: 0,
        };
        let pair = native_pty_system().openpty(size).unwrap();
        let plain = site.command(arguments);
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

    fn wait_for(&mut self, text: &str) {
        while !self.seen.contains(text) {
            match self.screen.recv_timeout(Duration::from_secs(120)) {
                Ok(bytes) => self.seen.push_str(&String::from_utf8_lossy(&bytes)),
                Err(reason) => panic!("{text:?} never came, {reason}: {}", self.seen),
            }
        }
    }

    fn answer(&mut self, text: &str) {
        self.keyboard.write_all(text.as_bytes()).unwrap();
        self.keyboard.flush().unwrap();
    }

    fn end(mut self) -> (u32, String) {
        let code = self.child.wait().unwrap().exit_code();
        while let Ok(bytes) = self.screen.recv_timeout(Duration::from_millis(500)) {
            self.seen.push_str(&String::from_utf8_lossy(&bytes));
        }
        (code, self.seen)
    }
}

#[test]
fn a_person_sees_a_tree_is_asked_and_decides() {
    let Some(sdk) = node_sdk("a_person_sees_a_tree_is_asked_and_decides") else {
        return;
    };
    let site = Site::notes(&sdk);
    let mut session = Session::start(&site, &["program", "up"]);
    session.wait_for("Update dev? [y/N]");
    assert!(session.seen.contains("└─"), "{}", session.seen);
    session.answer("n\n");
    let (code, seen) = session.end();
    assert_eq!(code, 130, "{seen}");
    assert!(seen.contains("nothing was changed"), "{seen}");

    // Ctrl-C is an answer too.
    let mut session = Session::start(&site, &["program", "up"]);
    session.wait_for("Update dev? [y/N]");
    session.answer("\u{3}");
    let (code, seen) = session.end();
    assert_eq!(code, 130, "{seen}");
    assert!(site.cloud().is_empty());

    let mut session = Session::start(&site, &["program", "up"]);
    session.wait_for("Update dev? [y/N]");
    session.answer("y\n");
    let (code, seen) = session.end();
    assert_eq!(code, 0, "{seen}");
    assert!(seen.contains("\u{1b}["), "the tree is redrawn in place");
    assert!(seen.contains("4 created"), "{seen}");
    assert_eq!(site.cloud().len(), 2);
}
