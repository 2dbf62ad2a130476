//! The picture on a terminal, redrawn in place by a thread of its own.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nimbus_engine_display::{Screen as _, TerminalScreen};
use nimbus_orchestrator::{RunEvent, RunStatus, UnitGraph};

use super::RunTitle;
use super::held_errors::HeldErrors;
use super::lines::lines_of;
use super::unit_table::UnitTable;
use crate::style::Terminal;
use crate::wrapping::wrapped;

/// Fast enough to look alive, slow enough for a remote terminal.
const TICK: Duration = Duration::from_millis(150);

pub(crate) struct Live {
    sender: Option<Sender<RunEvent>>,
    thread: Option<JoinHandle<()>>,
}

impl Live {
    pub(super) fn open(subject: RunTitle, graph: &UnitGraph, terminal: Terminal) -> Self {
        let (sender, events) = channel();
        let picture = UnitTable::new(subject, graph);
        let thread = std::thread::spawn(move || watch(picture, &events, terminal));
        Self {
            sender: Some(sender),
            thread: Some(thread),
        }
    }

    pub(super) fn event(&self, event: &RunEvent) {
        if let Some(sender) = &self.sender {
            // A screen that is gone misses events.
            let _ = sender.send(event.clone());
        }
    }

    /// Draws the last picture and leaves it there.
    pub(super) fn end(&mut self) {
        drop(self.sender.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn watch(mut picture: UnitTable, events: &Receiver<RunEvent>, terminal: Terminal) {
    let started = Instant::now();
    let mut screen = TerminalScreen::stderr();
    let mut drawn = 0;
    let mut begun = false;
    let mut held = HeldErrors::default();
    loop {
        let next = events.recv_timeout(TICK);
        let mut above = Vec::new();
        let mut ended = false;
        match next {
            Ok(event) => {
                // A run that skips everything has nothing to show.
                begun |= matches!(&event, RunEvent::Unit { status, .. } if status != "skipped");
                picture.apply(&event, started.elapsed());
                above = above_lines(&held.pass(&event), terminal);
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                ended = true;
                above = above_lines(&held.rest(), terminal);
            }
        }
        begun |= !above.is_empty();
        if !begun {
            if ended {
                return;
            }
            continue;
        }
        let size = screen.size();
        let height = if ended { usize::MAX } else { size.height };
        let lines = picture.lines(size.width, height, started.elapsed(), terminal);
        let mut text = String::new();
        if drawn > 0 {
            text.push_str(&format!("\u{1b}[{drawn}A\r"));
        }
        let above = above.iter().map(|line| wrapped(line, size.width));
        let above: Vec<String> = above.collect();
        for line in above
            .iter()
            .flat_map(|text| text.lines())
            .chain(lines.iter().map(String::as_str))
        {
            text.push_str(line);
            text.push_str("\u{1b}[K\n");
        }
        text.push_str("\u{1b}[J");
        screen.write(&text);
        drawn = lines.len();
        if ended {
            return;
        }
    }
}

fn above_lines(events: &[RunEvent], terminal: Terminal) -> Vec<String> {
    let stay = events.iter().filter(|event| stays_above(event));
    stay.flat_map(|event| lines_of(event, "", terminal))
        .collect()
}

/// What must not scroll away with the next picture.
fn stays_above(event: &RunEvent) -> bool {
    matches!(
        event,
        RunEvent::Diagnostic { .. }
            | RunEvent::Check { .. }
            | RunEvent::Run {
                status: RunStatus::Undoing,
                ..
            }
    )
}
