//! The tree that redraws itself in place.

use std::fmt::Write as _;
use std::time::Duration;

use console::Term;
use nimbus_engine_ports::EngineEvent;

use super::{Moment, Viewer};
use crate::line::{Paint, StyledLine};
use crate::render::TerminalSize;
use crate::state::{DisplayState, DisplaySubject};

/// Fast enough to look alive, slow enough for a remote terminal.
const TICK: Duration = Duration::from_millis(100);

/// What the tree is drawn on.
pub trait Screen: Send + 'static {
    fn size(&self) -> TerminalSize;
    fn write(&mut self, text: &str);
}

pub struct TerminalScreen(Term);

impl TerminalScreen {
    pub fn stdout() -> Self {
        Self(Term::stdout())
    }

    pub fn stderr() -> Self {
        Self(Term::stderr())
    }
}

impl Screen for TerminalScreen {
    fn size(&self) -> TerminalSize {
        let (height, width) = self.0.size();
        TerminalSize {
            width: width.into(),
            height: height.into(),
        }
    }

    fn write(&mut self, text: &str) {
        // A terminal that is gone cannot be told so.
        let _ = self.0.write_str(text);
        let _ = self.0.flush();
    }
}

pub struct LiveViewer<S> {
    state: DisplayState,
    paint: Paint,
    screen: S,
    /// Widths of the lines on the screen, top to bottom.
    drawn: Vec<usize>,
    last_drawn: Option<Duration>,
}

impl<S: Screen> LiveViewer<S> {
    pub fn new(subject: DisplaySubject, paint: Paint, screen: S) -> Self {
        Self {
            state: DisplayState::new(subject),
            paint,
            screen,
            drawn: Vec::new(),
            last_drawn: None,
        }
    }

    /// The title comes with the first event: an operation that never starts shows nothing.
    fn begin(&mut self) {
        let title = self.paint.line(&self.state.title());
        self.screen.write(&format!("{title}\n\n"));
    }

    fn draw(&mut self, lines: &[StyledLine]) {
        let width = self.screen.size().width;
        let text = redraw(&self.drawn, width, lines, self.paint);
        self.screen.write(&text);
        self.drawn = lines.iter().map(StyledLine::width).collect();
    }

    fn draw_live(&mut self, now: Duration) {
        let lines = self.state.live(self.screen.size(), now);
        self.draw(&lines);
        self.last_drawn = Some(now);
    }
}

impl<S: Screen> Viewer for LiveViewer<S> {
    fn event(&mut self, event: &EngineEvent, moment: Moment) {
        if self.last_drawn.is_none() {
            self.begin();
        }
        self.state.apply(event, moment.elapsed);
        // A flood of events is drawn at the pace of the tick.
        let due = self
            .last_drawn
            .is_none_or(|last| moment.elapsed.saturating_sub(last) >= TICK);
        if due {
            self.draw_live(moment.elapsed);
        }
    }

    fn tick_every(&self) -> Option<Duration> {
        Some(TICK)
    }

    fn tick(&mut self, elapsed: Duration) {
        if self.last_drawn.is_some() {
            self.draw_live(elapsed);
        }
    }

    fn end(&mut self, elapsed: Duration) {
        if self.last_drawn.is_none() {
            return;
        }
        let lines = self.state.closing(self.screen.size().width, elapsed);
        self.draw(&lines);
    }
}

/// Text that replaces the drawn lines with new ones. The terminal may have become narrower since,
/// so that old lines wrap and take more rows than they did.
fn redraw(drawn: &[usize], width: usize, lines: &[StyledLine], paint: Paint) -> String {
    let width = width.max(1);
    let rows: usize = drawn.iter().map(|own| own.div_ceil(width).max(1)).sum();
    let mut text = String::new();
    if rows > 0 {
        // Writing to a string cannot fail.
        let _ = write!(text, "\u{1b}[{rows}A\r");
    }
    for line in lines {
        text.push_str(&paint.line(line));
        text.push_str("\u{1b}[K\n");
    }
    text.push_str("\u{1b}[J");
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::line::Tone;

    #[test]
    fn redrawing_goes_up_by_the_rows_that_old_lines_take_now() {
        let lines = [StyledLine::of(Tone::Plain, "new")];
        assert_eq!(
            redraw(&[], 80, &lines, Paint::Plain),
            "new\u{1b}[K\n\u{1b}[J"
        );
        // 100 columns on a terminal that is now 40 wide: three rows; an empty line: one.
        assert_eq!(
            redraw(&[100, 0], 40, &lines, Paint::Plain),
            "\u{1b}[4A\rnew\u{1b}[K\n\u{1b}[J"
        );
    }
}
