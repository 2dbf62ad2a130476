//! Events as lines of text, in the order in which they happen.

use std::io::Write;
use std::time::Duration;

use nimbus_engine_ports::EngineEvent;

use super::{Moment, Viewer};
use crate::line::{Paint, StyledLine};
use crate::plain::{LineStyle, event_lines};
use crate::state::{DisplayState, DisplaySubject};

pub struct LineViewer<W> {
    state: DisplayState,
    style: LineStyle,
    paint: Paint,
    out: Option<W>,
    begun: bool,
}

impl<W: Write> LineViewer<W> {
    pub fn new(subject: DisplaySubject, style: LineStyle, paint: Paint, out: W) -> Self {
        Self {
            state: DisplayState::new(subject),
            style,
            paint,
            out: Some(out),
            begun: false,
        }
    }

    /// The title comes with the first event: an operation that never starts shows nothing.
    fn begin(&mut self) {
        if !std::mem::replace(&mut self.begun, true) && self.style != LineStyle::EndOnly {
            let title = self.state.title();
            self.write(&[title]);
        }
    }

    fn write(&mut self, lines: &[StyledLine]) {
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
        self.begin();
        self.state.apply(event, moment.elapsed);
        let lines = event_lines(event, &self.state, self.style, moment.elapsed);
        if !lines.is_empty() {
            self.write(&lines);
        }
    }

    fn end(&mut self, _elapsed: Duration) {
        if !self.begun {
            return;
        }
        let lines = match self.style {
            LineStyle::EndOnly => self.state.closing_without_tree(),
            LineStyle::Progress | LineStyle::Diff(_) => self.state.closing_of_lines(),
        };
        self.write(&lines);
    }
}
