//! Events as JSON lines, to a pipe or a file.

use std::io::Write;
use std::time::Duration;

use nimbus_engine_ports::EngineEvent;

use super::{Moment, Viewer};
use crate::events::EventLog;

pub struct JsonViewer<W> {
    log: EventLog,
    out: Option<W>,
}

impl<W: Write> JsonViewer<W> {
    pub fn new(out: W) -> Self {
        Self {
            log: EventLog::new(),
            out: Some(out),
        }
    }
}

impl<W: Write + Send + 'static> Viewer for JsonViewer<W> {
    fn event(&mut self, event: &EngineEvent, moment: Moment) {
        let Some(line) = self.log.line(event, moment.at) else {
            return;
        };
        if let Some(out) = &mut self.out
            && writeln!(out, "{line}").and_then(|()| out.flush()).is_err()
        {
            self.out = None;
        }
    }

    fn end(&mut self, _elapsed: Duration) {}
}
