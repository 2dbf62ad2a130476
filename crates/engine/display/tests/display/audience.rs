//! Viewers on threads of their own.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use nimbus_engine_display::{
    DisplaySubject, DisplayThread, JsonViewer, LineStyle, LineViewer, LiveViewer, Paint, Screen,
    TerminalSize,
};
use nimbus_engine_model::StepOp;
use nimbus_engine_ports::{EngineEvent, EventSink as _, Severity};

use crate::support::{diagnostic, map, outputs, pre, state, step, summary};

/// What was written, for looking at it afterwards.
#[derive(Clone, Default)]
struct Paper(Arc<Mutex<Vec<u8>>>);

impl Paper {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().expect("nobody panicked").clone()).expect("text")
    }
}

impl Write for Paper {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0
            .lock()
            .expect("nobody panicked")
            .extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A pipe whose reader went away.
struct Closed;

impl Write for Closed {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(io::ErrorKind::BrokenPipe.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[derive(Clone)]
struct FakeScreen(Paper);

impl Screen for FakeScreen {
    fn size(&self) -> TerminalSize {
        TerminalSize {
            width: 80,
            height: 24,
        }
    }

    fn write(&mut self, text: &str) {
        self.0
            .write_all(text.as_bytes())
            .expect("paper takes everything");
    }
}

fn subject() -> DisplaySubject {
    DisplaySubject {
        title: "Updating".into(),
        stack: "dev".into(),
        project: "shop".into(),
    }
}

fn events() -> Vec<EngineEvent> {
    let create = step(StepOp::Create, None, Some(state("a:b:C", "one", map([]))));
    let mut events = vec![pre(&create)];
    events.extend((0..200).map(|n| diagnostic(Severity::Info, None, &format!("message {n}"))));
    events.extend([outputs(&create), summary(false, [(StepOp::Create, 1)])]);
    events
}

fn show(audience: DisplayThread) {
    for event in events() {
        audience.emit(event);
    }
    drop(audience);
}

#[test]
fn everything_is_shown_in_order_before_the_audience_is_gone() {
    let paper = Paper::default();
    show(DisplayThread::open(JsonViewer::new(paper.clone())));
    let text = paper.text();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), events().len());
    for (sequence, line) in lines.iter().enumerate() {
        assert!(
            line.starts_with(&format!("{{\"sequence\":{sequence},")),
            "{line}"
        );
    }
    assert!(lines[lines.len() - 1].contains("summaryEvent"));
}

#[test]
fn an_audience_that_left_does_not_stop_the_operation() {
    show(DisplayThread::open(JsonViewer::new(Closed)));
    let viewer = LineViewer::new(subject(), LineStyle::Progress, Paint::Plain, Closed);
    show(DisplayThread::open(viewer));
}

#[test]
fn lines_tell_messages_once_and_a_quiet_display_only_the_end() {
    let paper = Paper::default();
    let viewer = LineViewer::new(subject(), LineStyle::Progress, Paint::Plain, paper.clone());
    show(DisplayThread::open(viewer));
    let text = paper.text();
    assert!(
        text.starts_with("Updating (dev)\n +  a:b:C one creating\n"),
        "{text}"
    );
    assert_eq!(text.matches("message 7\n").count(), 1, "{text}");
    assert!(text.contains("+ 1 created"), "{text}");

    let paper = Paper::default();
    let viewer = LineViewer::new(subject(), LineStyle::EndOnly, Paint::Plain, paper.clone());
    show(DisplayThread::open(viewer));
    let text = paper.text();
    assert!(text.starts_with("\nDiagnostics:\n"), "{text}");
    assert!(
        !text.contains("creating") && text.contains("+ 1 created"),
        "{text}"
    );
}

#[test]
fn the_live_tree_ends_with_the_whole_picture() {
    let paper = Paper::default();
    let screen = FakeScreen(paper.clone());
    show(DisplayThread::open(LiveViewer::new(
        subject(),
        Paint::Plain,
        screen,
    )));
    let text = paper.text();
    let last = text.rsplit("A\r").next().unwrap_or_default();
    assert!(last.contains("a:b:C") && last.contains("created"), "{last}");
    assert!(
        last.contains("message 199") && last.contains("+ 1 created"),
        "{last}"
    );
}

#[test]
fn an_operation_that_never_started_shows_nothing() {
    let paper = Paper::default();
    let viewer = LineViewer::new(subject(), LineStyle::Progress, Paint::Plain, paper.clone());
    drop(DisplayThread::open(viewer));
    drop(DisplayThread::open(LiveViewer::new(
        subject(),
        Paint::Plain,
        FakeScreen(paper.clone()),
    )));
    assert_eq!(paper.text(), "");
}
