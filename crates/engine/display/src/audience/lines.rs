//! Events as lines of text, in the order in which they happen.

use std::io::Write;
use std::time::Duration;

use nimbus_engine_ports::EngineEvent;

use super::{Moment, Viewer};
use crate::line::{Line, Paint};
use crate::plain::{LineStyle, event_lines};
use crate::state::{DisplayState, Subject};

pub struct LineViewer<W> {
    state: DisplayState,
    style: LineStyle,
    paint: Paint,
    out: Option<W>,
}

impl<W: Write> LineViewer<W> {
    pub fn new(subject: Subject, style: LineStyle, paint: Paint, out: W) -> Self {
        let mut viewer = Self {
            state: DisplayState::new(subject),
            style,
            paint,
            out: Some(out),
        };
        let title = viewer.state.title();
        viewer.write(&[title]);
        viewer
    }

    fn write(&mut self, lines: &[Line]) {
        if let Some(out) = &mut self.out
            && write!(out, "{}", self.paint.lines(lines))
                .and_then(|()| out.flush())
                .is_err()
        {
            self.out = None;
        }
    }
}

impl<W: Write + Send + 'static> Viewer for LineViewer<W> {
    fn event(&mut self, event: &EngineEvent, moment: Moment) {
        self.state.apply(event, moment.elapsed);
        let lines = event_lines(event, &self.state, self.style, moment.elapsed);
        if !lines.is_empty() {
            self.write(&lines);
        }
    }

    fn end(&mut self, _elapsed: Duration) {
        let lines = self.state.closing_without_tree();
        self.write(&lines);
    }
}
