//! Who watches an operation: a person at a terminal, a log, or a program that reads JSON.

use std::io;
use std::sync::Arc;

use nimbus_engine_display::{
    DisplaySubject, DisplayThread, JsonViewer, LineStyle, LineViewer, LiveViewer, Paint,
    StepDetail, TerminalScreen,
};
use nimbus_engine_operations::BroadcastSink;
use nimbus_engine_ports::{EngineEvent, EventSink, Severity};
use parking_lot::Mutex;

use super::args::ShowArgs;
use crate::context::CommandContext;
use crate::text_page::TextPage;

/// A page on which an operation is written down beside or instead of what is shown.
#[derive(Clone)]
pub(super) enum OperationPage {
    None,
    /// For the summary of a job.
    Beside(TextPage),
    /// The result itself.
    Instead(TextPage),
}

/// The viewers of one operation. Dropping it waits until they have shown everything.
pub(super) struct OperationSinks {
    audience: Arc<DisplayThread>,
    page: Option<Arc<DisplayThread>>,
    for_people: bool,
}

impl OperationSinks {
    pub(super) fn open(
        context: &CommandContext,
        subject: DisplaySubject,
        show: ShowArgs,
        page: &OperationPage,
    ) -> Self {
        let output = &context.output;
        let terminal = output.stdout_terminal();
        let paint = if terminal.color {
            Paint::Colour
        } else {
            Paint::Plain
        };
        let detail = if show.full {
            StepDetail::Full
        } else {
            StepDetail::Short
        };
        let lines = |style| {
            let viewer = LineViewer::new(subject.clone(), style, paint, io::stdout());
            DisplayThread::open(viewer)
        };
        let written = |page: &TextPage| {
            let style = LineStyle::Diff(detail);
            let viewer = LineViewer::new(subject.clone(), style, Paint::Plain, page.clone());
            DisplayThread::open(viewer)
        };
        let beside = match page {
            OperationPage::Beside(page) => Some(Arc::new(written(page))),
            OperationPage::None | OperationPage::Instead(_) => None,
        };
        let audience = if let OperationPage::Instead(page) = page {
            written(page)
        } else if output.is_json() {
            DisplayThread::open(JsonViewer::new(io::stdout()))
        } else if output.is_quiet() {
            lines(LineStyle::EndOnly)
        } else if show.diff {
            lines(LineStyle::Diff(detail))
        } else if terminal.interactive {
            DisplayThread::open(LiveViewer::new(subject, paint, TerminalScreen::stdout()))
        } else {
            lines(LineStyle::Progress)
        };
        Self {
            audience: Arc::new(audience),
            page: beside,
            for_people: !output.is_json(),
        }
    }

    pub(super) fn sink(&self) -> Arc<dyn EventSink> {
        let audience = Arc::clone(&self.audience) as Arc<dyn EventSink>;
        match &self.page {
            Some(page) => Arc::new(BroadcastSink::new(vec![audience, Arc::clone(page) as _])),
            None => audience,
        }
    }

    /// Tells people at once that the operation was asked to stop. Programs learn it when it has:
    /// many of them take the event for the last one.
    pub(super) fn stopping(&self) {
        if self.for_people {
            self.audience.emit(EngineEvent::Cancelled);
        }
    }
}

/// Error messages of one operation, for whoever can do something about them.
#[derive(Clone, Default)]
pub(super) struct Complaints(Arc<Mutex<Vec<String>>>);

impl Complaints {
    /// Hears what an audience hears.
    pub(super) fn heard_by(&self, audience: Arc<dyn EventSink>) -> Arc<dyn EventSink> {
        Arc::new(BroadcastSink::new(vec![audience, Arc::new(self.clone())]))
    }

    pub(super) fn list(&self) -> Vec<String> {
        self.0.lock().clone()
    }
}

impl EventSink for Complaints {
    fn emit(&self, event: EngineEvent) {
        if let EngineEvent::Diagnostic(diagnostic) = event
            && diagnostic.severity == Severity::Error
        {
            self.0.lock().push(diagnostic.message);
        }
    }
}
