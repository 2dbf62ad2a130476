//! The event log while it grows.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// Reads whole lines as they appear.
pub(super) struct LineReader {
    path: PathBuf,
    file: Option<File>,
    /// The beginning of a line whose end has not been written yet.
    rest: Vec<u8>,
}

impl LineReader {
    pub(super) fn new(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            file: None,
            rest: Vec::new(),
        }
    }

    /// The lines that were completed since the last time.
    pub(super) fn lines(&mut self) -> Vec<String> {
        if self.file.is_none() {
            self.file = File::open(&self.path).ok();
        }
        if let Some(file) = &mut self.file {
            // What cannot be read now is read the next time, or is lost with the file.
            let _ = file.read_to_end(&mut self.rest);
        }
        let mut lines = Vec::new();
        while let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.rest.drain(..=end).collect();
            let text = String::from_utf8_lossy(&line);
            lines.push(text.trim_end().to_owned());
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn lines_are_whole_and_come_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("log");
        let mut follower = LineReader::new(&path);
        assert_eq!(follower.lines(), [""; 0]);
        let mut file = File::create(&path).expect("a file");
        file.write_all(b"one\ntw").expect("written");
        assert_eq!(follower.lines(), ["one"]);
        file.write_all(b"o\nthree\n").expect("written");
        assert_eq!(follower.lines(), ["two", "three"]);
        assert_eq!(follower.lines(), [""; 0]);
    }
}
