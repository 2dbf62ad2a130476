//! The whole picture, for a moment and for the end.

use std::time::Duration;

use crate::line::{StyledLine, Tone};
use crate::state::{DisplayState, RowPhase};
use crate::summary::{MessagesTold, closing_lines};
use crate::text::duration;
use crate::tree::tree_lines;

const SPINNER: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
const SPINNER_STEP: Duration = Duration::from_millis(100);

/// Size of the terminal, in columns and rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TerminalSize {
    pub width: usize,
    pub height: usize,
}

impl DisplayState {
    /// `Updating (dev)` and what it is about, on one line.
    pub fn title(&self) -> StyledLine {
        StyledLine::of(Tone::Heading, self.subject.title.clone())
            .with(Tone::Heading, format!(" ({})", self.subject.stack))
    }

    /// The picture while the operation runs: the tree as far as it fits, and a line of progress.
    pub fn live(&self, size: TerminalSize, now: Duration) -> Vec<StyledLine> {
        let room = size.height.saturating_sub(3);
        let mut lines = tree_lines(self, size.width, Some(room), now);
        lines.push(StyledLine::new());
        lines.push(self.progress(now).truncated(size.width));
        lines
    }

    /// The picture when the operation has ended: the whole tree, messages, outputs and counts.
    pub fn closing(&self, width: usize, now: Duration) -> Vec<StyledLine> {
        let mut lines = tree_lines(self, width, None, now);
        lines.extend(closing_lines(self, MessagesTold::NotYet));
        lines
    }

    /// The end without the tree: messages, outputs and counts.
    pub fn closing_without_tree(&self) -> Vec<StyledLine> {
        closing_lines(self, MessagesTold::NotYet)
    }

    /// The end of a display that told everything else line by line.
    pub fn closing_of_lines(&self) -> Vec<StyledLine> {
        closing_lines(self, MessagesTold::Already)
    }

    fn progress(&self, now: Duration) -> StyledLine {
        let step = now.as_millis() / SPINNER_STEP.as_millis();
        let spinner = SPINNER[usize::try_from(step).unwrap_or(0) % SPINNER.len()];
        let count = |wanted: fn(&RowPhase) -> bool| {
            self.rows
                .values()
                .filter(|row| !row.default_provider && wanted(&row.phase))
                .count()
        };
        let done = count(|phase| matches!(phase, RowPhase::Done { .. }));
        let running = count(|phase| matches!(phase, RowPhase::Running { .. }));
        let failed = count(|phase| matches!(phase, RowPhase::Failed { .. }));
        let mut line = StyledLine::of(Tone::Info, spinner)
            .with(Tone::Plain, format!(" {}", self.subject.title))
            .with(Tone::Dim, format!(" · {done} done · {running} running"));
        if failed > 0 {
            line.push(Tone::Error, format!(" · {failed} failed"));
        }
        line.push(Tone::Dim, format!(" · {}", duration(now)));
        if self.cancelling {
            line.push(Tone::Warning, " · stopping; Ctrl-C again to kill");
        }
        line
    }
}
