//! The only place that writes to standard output, and the notes on standard error.
//!
//! Results go to standard output, everything else to standard error. With `--json` standard output
//! carries exactly one JSON document: the result, or the error. A reader that went away (`| head`)
//! ends the command quietly, as it does for every other tool.

use std::io::{self, Write as _};

use nimbus_core::{Error, ErrorCode, Result, printable_page};
use serde::Serialize;

use crate::report_page::continued;
use crate::style::{Terminal, TextStyle};

/// A result that can be shown to people and to programs.
pub(crate) trait Report: Serialize {
    /// Name and version of the JSON form, such as `nimbus/doctor/1`. Fields may be added to a
    /// version; nothing else may change.
    const SCHEMA: &'static str;

    /// The text form, ending with a line break unless empty.
    fn text(&self, terminal: Terminal) -> String;

    /// Whether the text form is one value and nothing else. Programs read it as it is; people see it like any other
    /// text.
    fn is_bare_value(&self) -> bool {
        false
    }
}

/// Where a command writes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CommandOutput {
    json: bool,
    quiet: bool,
    stdout: Terminal,
    stderr: Terminal,
}

impl CommandOutput {
    pub(crate) fn new(json: bool, quiet: bool, no_color: bool) -> Self {
        Self {
            json,
            quiet,
            stdout: Terminal::stdout(no_color),
            stderr: Terminal::stderr(no_color),
        }
    }

    /// Whether programs are reading.
    pub(crate) fn is_json(&self) -> bool {
        self.json
    }

    /// Whether only results and errors are wanted.
    pub(crate) fn is_quiet(&self) -> bool {
        self.quiet
    }

    pub(crate) fn stdout_terminal(&self) -> Terminal {
        self.stdout
    }

    pub(crate) fn stderr_terminal(&self) -> Terminal {
        self.stderr
    }

    /// The result of the command, in the form that was asked for.
    pub(crate) fn result<R: Report>(&self, report: &R) -> Result<()> {
        if self.json {
            let document = ReportDocument {
                schema: R::SCHEMA,
                report,
            };
            return self.write(&to_line(&document)?);
        }
        let text = report.text(self.stdout);
        if report.is_bare_value() && !self.stdout.interactive {
            return self.write(&text);
        }
        let shown = printable_page(&text, self.stdout.color).into_owned();
        self.write(&self.stdout.fitted(shown))
    }

    /// Text that is the result itself, such as a completion script, in either mode. Files and programs get it as it
    /// is.
    pub(crate) fn raw(&self, text: &str) -> Result<()> {
        match self.stdout.interactive {
            true => self.write(&printable_page(text, self.stdout.color)),
            false => self.write(text),
        }
    }

    /// One line of a `--json` stream: an event, or the error that ends it.
    pub(crate) fn json_line(&self, document: &impl Serialize) -> Result<()> {
        self.write(&to_line(document)?)
    }

    /// A remark for people: what happens, what to do next. Silent with `--quiet` and `--json`.
    pub(crate) fn note(&self, text: &str) {
        if !self.quiet && !self.json {
            let shown = printable_page(text, false);
            let shown = continued(&shown);
            self.complain(&format!(
                "{}\n",
                self.stderr.paint(TextStyle::Faint, &shown)
            ));
        }
    }

    /// A line of progress, already formatted. Silent with `--quiet` and `--json`.
    pub(crate) fn progress(&self, line: &str) {
        if !self.quiet && !self.json {
            self.complain(&format!("{}\n", printable_page(line, self.stderr.color)));
        }
    }

    /// Text for standard error, already formatted. Known secrets are removed.
    pub(crate) fn complain(&self, text: &str) {
        let text = self
            .stderr
            .fitted(nimbus_telemetry::redact(text).into_owned());
        // There is nowhere left to report that standard error is closed.
        let _ = io::stderr().write_all(text.as_bytes());
    }

    fn write(&self, text: &str) -> Result<()> {
        let mut stdout = io::stdout().lock();
        match stdout
            .write_all(text.as_bytes())
            .and_then(|()| stdout.flush())
        {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                let message = format!("cannot write to standard output: {error}");
                Err(Error::new(ErrorCode::FILE_UNWRITABLE, message).with_source(error))
            }
            _ => Ok(()),
        }
    }
}

#[derive(Serialize)]
struct ReportDocument<'a, R> {
    schema: &'static str,
    #[serde(flatten)]
    report: &'a R,
}

fn to_line(document: &impl Serialize) -> Result<String> {
    let text = serde_json::to_string(document).map_err(|error| {
        Error::new(ErrorCode::INTERNAL, "a result has no JSON form").with_source(error)
    })?;
    Ok(text + "\n")
}
