//! What the steps of the suite do to the world: lines in a file, which every process can write and the
//! test can read, and gates, which are files that a step waits for.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A folder with a log and gates.
#[derive(Clone, Debug)]
pub struct Effects {
    folder: PathBuf,
}

impl Effects {
    pub fn at(folder: &Path) -> Self {
        Self {
            folder: folder.to_owned(),
        }
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// One write of one short line, so that processes do not mix their lines.
    pub(crate) fn log(&self, line: &str) {
        let file = File::options()
            .append(true)
            .create(true)
            .open(self.folder.join("log"));
        let written = file.and_then(|mut file| file.write_all(format!("{line}\n").as_bytes()));
        assert!(written.is_ok(), "{written:?}");
    }

    /// Everything that happened, in order.
    pub fn lines(&self) -> Vec<String> {
        let text = fs::read_to_string(self.folder.join("log")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// The lines that begin so, without that beginning.
    pub fn of(&self, beginning: &str) -> Vec<String> {
        let lines = self.lines();
        let found = lines.iter().filter_map(|line| line.strip_prefix(beginning));
        found.map(|rest| rest.trim_start().to_owned()).collect()
    }

    pub fn count(&self, line: &str) -> usize {
        self.lines().iter().filter(|found| *found == line).count()
    }

    /// Lets the steps through that wait at a gate.
    pub fn open(&self, gate: &str) {
        let opened = File::create(self.folder.join(format!("gate-{gate}")));
        assert!(opened.is_ok(), "{opened:?}");
    }

    pub(crate) async fn pass(&self, gate: &str) {
        let gate = self.folder.join(format!("gate-{gate}"));
        while !gate.exists() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}
