//! A writer whose text can be read afterwards, by whoever has a copy of it.

use std::io::{self, Write};
use std::sync::Arc;

use parking_lot::Mutex;

/// What was written, from any thread.
#[derive(Clone, Default)]
pub(crate) struct TextPage(Arc<Mutex<Vec<u8>>>);

impl TextPage {
    /// Without line breaks at its end.
    pub(crate) fn text(&self) -> String {
        let bytes = self.0.lock();
        String::from_utf8_lossy(&bytes).trim_end().to_owned()
    }
}

impl Write for TextPage {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
