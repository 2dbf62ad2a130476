//! What somebody in front of a terminal sees and is asked.

use std::io::{Read as _, Write as _};
use std::sync::mpsc::{Receiver, channel};

use portable_pty::{CommandBuilder, PtySize, native_pty_system};

use crate::support::{DIAMOND, ID, LIMIT, Site, node_sdk};

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
            match self.screen.recv_timeout(LIMIT) {
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
        while let Ok(bytes) = self
            .screen
            .recv_timeout(std::time::Duration::from_millis(500))
        {
            self.seen.push_str(&String::from_utf8_lossy(&bytes));
        }
        (code, self.seen)
    }
}

#[test]
fn a_person_sees_the_plan_then_all_stacks_on_one_screen() {
    let Some(sdk) = node_sdk("a_person_sees_the_plan_then_all_stacks_on_one_screen") else {
        return;
    };
    let site = Site::new(&sdk, DIAMOND);
    let arguments = ["deploy", ID, "--environment", "dev", "--rehearse"];
    let mut session = Session::start(&site, &arguments);
    session.wait_for("Total Stacks: 4 enabled");
    session.wait_for("REHEARSAL Deploying D1RUNS dev");
    session.wait_for("waiting for b, c");
    let (code, seen) = session.end();
    assert_eq!(code, 0, "{seen}");
    assert!(seen.contains("\u{1b}["), "the picture is redrawn in place");
    assert!(seen.contains("4 done"), "{seen}");
}

#[test]
fn a_person_is_asked_before_something_real_changes() {
    let Some(sdk) = node_sdk("a_person_is_asked_before_something_real_changes") else {
        return;
    };
    let site = Site::new(&sdk, &[("a", &[])]);
    let deploy = ["deploy", ID, "--environment", "dev"];
    for (answer, code) in [("n\n", 130), ("\u{3}", 130)] {
        let mut session = Session::start(&site, &deploy);
        session.wait_for("Deploy 1 stack to dev? [y/N]");
        session.answer(answer);
        let (ended, seen) = session.end();
        assert_eq!(ended, code, "{seen}");
    }
    assert!(
        !site.deployment(".nimbus/runs").exists(),
        "nothing was begun"
    );
    let destroy = ["destroy", ID, "--environment", "dev"];
    let mut session = Session::start(&site, &destroy);
    session.wait_for("Delete everything of D1RUNS in dev? [y/N]");
    session.answer("no\n");
    assert_eq!(session.end().0, 130);
}
