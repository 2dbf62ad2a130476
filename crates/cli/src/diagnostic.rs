//! How errors look: for people with the marked line of their file, for programs as one object.

use std::fmt;
use std::sync::Arc;

use miette::{Diagnostic, GraphicalReportHandler, GraphicalTheme, LabeledSpan, NamedSource};
use nimbus_core::{Error, InputSpan, TraceId, is_deceptive};
use schemars::JsonSchema;
use serde::Serialize;

use crate::exit::{exit_code, kind_word};
use crate::style::Terminal;

/// The error as lines for a terminal.
pub(crate) fn render(error: &Error, program: &str, terminal: Terminal) -> String {
    let theme = match (terminal.interactive, terminal.color) {
        (_, true) => GraphicalTheme::unicode(),
        (true, false) => GraphicalTheme::unicode_nocolor(),
        (false, false) => GraphicalTheme::none(),
    };
    let handler = GraphicalReportHandler::new_themed(theme)
        .with_links(false)
        .with_break_words(false)
        // Names, versions and addresses stay whole.
        .with_word_separator(textwrap::WordSeparator::AsciiSpace)
        .with_word_splitter(textwrap::WordSplitter::NoHyphenation)
        // What is read by a program, or searched in a log, is not broken at all.
        .with_wrap_lines(terminal.interactive)
        .with_width(if terminal.interactive {
            Terminal::width()
        } else {
            200
        })
        .with_footer(format!("{program} explain {} tells more", error.code()));
    let mut text = String::new();
    match handler.render_report(&mut text, &RenderedDiagnostic::new(error)) {
        Ok(()) => text,
        // Only a failing writer could cause this, and a string does not fail.
        Err(fmt::Error) => format!("error {}: {}\n", error.code(), error.message()),
    }
}

/// One diagnostic: the error itself, or a further file that it points at.
struct RenderedDiagnostic {
    code: Option<String>,
    message: String,
    help: Option<String>,
    source: Option<NamedSource<String>>,
    labels: Vec<LabeledSpan>,
    related: Vec<RenderedDiagnostic>,
}

impl RenderedDiagnostic {
    fn new(error: &Error) -> Self {
        // A diagnostic marks places in one text; places in other files follow as related ones.
        let mut files: Vec<Vec<&InputSpan>> = Vec::new();
        for span in error.spans() {
            let same = |file: &&mut Vec<&InputSpan>| {
                file.first()
                    .is_some_and(|first| Arc::ptr_eq(&first.text, &span.text))
            };
            match files.iter_mut().find(same) {
                Some(file) => file.push(span),
                None => files.push(vec![span]),
            }
        }
        let mut files = files.into_iter();
        let first = files.next().unwrap_or_default();
        Self {
            code: Some(error.code().to_string()),
            message: visible(error.message()),
            help: error.help().map(visible),
            source: source(&first),
            labels: labels(&first),
            related: files.map(|file| Self::related_file(&file)).collect(),
        }
    }

    fn related_file(spans: &[&InputSpan]) -> Self {
        Self {
            code: None,
            message: "see also".into(),
            help: None,
            source: source(spans),
            labels: labels(spans),
            related: Vec::new(),
        }
    }
}

fn source(spans: &[&InputSpan]) -> Option<NamedSource<String>> {
    let first = spans.first()?;
    Some(NamedSource::new(
        visible(&first.name),
        same_length_visible(&first.text),
    ))
}

fn labels(spans: &[&InputSpan]) -> Vec<LabeledSpan> {
    let label =
        |span: &&InputSpan| LabeledSpan::new(Some(visible(&span.label)), span.offset, span.length);
    spans.iter().map(label).collect()
}

/// Control characters are shown, not sent to the terminal, and so are those that turn a line around.
fn visible(text: &str) -> String {
    text.chars()
        .fold(String::with_capacity(text.len()), |mut shown, c| {
            if (c.is_control() && c != '\n') || is_deceptive(c) {
                shown.extend(c.escape_default());
            } else {
                shown.push(c);
            }
            shown
        })
}

/// The same for the text of a file, whose offsets must stay right.
fn same_length_visible(text: &str) -> String {
    let replace = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
    if !text.contains(replace) {
        return text.to_owned();
    }
    text.chars()
        .fold(String::with_capacity(text.len()), |mut shown, c| {
            match c {
                '\r' => shown.push(' '),
                c if replace(c) => (0..c.len_utf8()).for_each(|_| shown.push('?')),
                c => shown.push(c),
            }
            shown
        })
}

impl fmt::Display for RenderedDiagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl fmt::Debug for RenderedDiagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for RenderedDiagnostic {}

impl Diagnostic for RenderedDiagnostic {
    fn code<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.code
            .as_ref()
            .map(|code| Box::new(code) as Box<dyn fmt::Display>)
    }

    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.help
            .as_ref()
            .map(|help| Box::new(help) as Box<dyn fmt::Display>)
    }

    fn source_code(&self) -> Option<&dyn miette::SourceCode> {
        self.source
            .as_ref()
            .map(|source| source as &dyn miette::SourceCode)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        Some(Box::new(self.labels.iter().cloned()))
    }

    fn related<'a>(&'a self) -> Option<Box<dyn Iterator<Item = &'a dyn Diagnostic> + 'a>> {
        let related = self.related.iter().map(|shown| shown as &dyn Diagnostic);
        (!self.related.is_empty()).then(|| Box::new(related) as Box<_>)
    }
}

/// What standard output carries instead of a result when a command with `--json` fails.
#[derive(JsonSchema, Serialize)]
pub(crate) struct ErrorDocument {
    pub(crate) error: ErrorObject,
}

#[derive(JsonSchema, Serialize)]
pub(crate) struct ErrorObject {
    /// Stable code; `nimbus explain` has a page on it.
    code: String,
    /// Sort of failure; decides the exit code.
    kind: &'static str,
    exit_code: u8,
    /// What is wrong, in one sentence.
    message: String,
    /// What to do next.
    help: Option<String>,
    /// Whether the same command may succeed later without any change.
    retryable: bool,
    /// Where in which file, when it is about one.
    places: Vec<DiagnosticLocation>,
    /// Joins this error with the log lines of the same command.
    trace_id: String,
}

#[derive(JsonSchema, Serialize)]
struct DiagnosticLocation {
    file: String,
    /// From 1.
    line: usize,
    /// In characters, from 1.
    column: usize,
    label: String,
}

impl ErrorDocument {
    pub(crate) fn new(error: &Error, trace_id: TraceId) -> Self {
        let clean = |text: &str| nimbus_telemetry::redact(text).into_owned();
        let place = |span: &InputSpan| {
            let (line, column) = span.line_and_column();
            DiagnosticLocation {
                file: span.name.clone(),
                line,
                column,
                label: span.label.clone(),
            }
        };
        Self {
            error: ErrorObject {
                code: error.code().to_string(),
                kind: kind_word(error.kind()),
                exit_code: exit_code(error.kind()),
                message: clean(error.message()),
                help: error.help().map(clean),
                retryable: error.retryable(),
                places: error.spans().iter().map(place).collect(),
                trace_id: trace_id.to_string(),
            },
        }
    }
}
