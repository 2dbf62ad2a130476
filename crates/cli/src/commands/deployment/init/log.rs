//! `logs/init.log`: what an init did, each line with the time at which it was done.

use std::io::Write as _;
use std::path::Path;

use nimbus_core::Result;
use nimbus_disk::append_beneath;

use super::now;

/// Lines that are not written yet: a deployment that could not be made has no log.
#[derive(Default)]
pub(super) struct InitLog(String);

impl InitLog {
    pub(super) fn say(&mut self, part: &str, message: &str) {
        self.line("INFO", part, message);
    }

    pub(super) fn warn(&mut self, part: &str, message: &str) {
        self.line("WARNING", part, message);
    }

    fn line(&mut self, level: &str, part: &str, message: &str) {
        let time = now().replace('T', " ");
        let time = time.trim_end_matches('Z');
        self.0
            .push_str(&format!("[{time}] [{level}] [{part}] {message}\n"));
    }

    pub(super) fn text(&self) -> &str {
        &self.0
    }

    pub(super) fn append(&self, path: &Path) -> Result<()> {
        let folder = path.parent().unwrap_or(path);
        let name = Path::new(path.file_name().unwrap_or_default());
        let file = append_beneath(folder, name);
        file.and_then(|mut file| file.write_all(self.0.as_bytes()))
            .map_err(|error| nimbus_disk::unwritable(path, error))
    }
}
