//! What GitHub Actions shows beside the log: annotations, and the summary of a job.
//!
//! Annotations are lines on standard error, which the runner reads as it reads standard output, so
//! that `--json` stays one document. The summary is a file that is only ever appended to. Nothing
//! here changes how a command ends.

use std::env;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use nimbus_core::Error;

use crate::output::CommandOutput;

/// How loud an annotation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AnnotationLevel {
    Error,
    Warning,
}

/// The job that runs this command, if one does.
pub(crate) struct ActionsJob {
    output: CommandOutput,
    /// Where files of the repository are, as annotations name them.
    workspace: Option<PathBuf>,
    summary: Option<PathBuf>,
}

impl ActionsJob {
    pub(crate) fn current(output: CommandOutput) -> Option<Self> {
        if env::var_os("GITHUB_ACTIONS").is_none_or(|value| value != "true") {
            return None;
        }
        let path = |name: &str| {
            let value = env::var_os(name).filter(|value| !value.is_empty());
            value.map(PathBuf::from)
        };
        Some(Self {
            output,
            workspace: path("GITHUB_WORKSPACE"),
            summary: path("GITHUB_STEP_SUMMARY"),
        })
    }

    pub(crate) fn annotate(&self, level: AnnotationLevel, title: &str, message: &str) {
        let title = [("title", title.to_owned())];
        self.output.complain(&annotation(level, &title, message));
    }

    /// The error at the line of the file that it is about.
    pub(crate) fn annotate_error(&self, error: &Error) {
        let mut properties = Vec::new();
        if let Some(span) = error.spans().first() {
            let (line, column) = span.line_and_column();
            properties.push(("file", self.in_repository(&span.name)));
            properties.push(("line", line.to_string()));
            properties.push(("col", column.to_string()));
        }
        properties.push(("title", error.code().to_string()));
        let mut message = error.message().to_owned();
        if let Some(help) = error.help() {
            message.push('\n');
            message.push_str(help);
        }
        let line = annotation(AnnotationLevel::Error, &properties, &message);
        self.output.complain(&line);
    }

    /// Adds a part to the page of the job. A page that cannot be written is told and no failure.
    pub(crate) fn summarize(&self, markdown: &str) {
        let Some(path) = &self.summary else {
            return;
        };
        let text = nimbus_telemetry::redact(markdown);
        let written = OpenOptions::new()
            .create(true)
            .append(true)
            .open(path)
            .and_then(|mut file| file.write_all(format!("{text}\n").as_bytes()));
        if let Err(error) = written {
            let message = format!("the job has no summary, {}: {error}", path.display());
            self.annotate(AnnotationLevel::Warning, "Nimbus", &message);
        }
    }

    fn in_repository(&self, name: &str) -> String {
        let path = Path::new(name);
        let absolute = match env::current_dir() {
            Ok(directory) => directory.join(path),
            Err(_) => path.to_owned(),
        };
        let workspace = self.workspace.as_ref();
        let inside = workspace.and_then(|workspace| absolute.strip_prefix(workspace).ok());
        inside.unwrap_or(path).display().to_string()
    }
}

/// One workflow command. What is in it cannot begin another one.
fn annotation(level: AnnotationLevel, properties: &[(&str, String)], message: &str) -> String {
    let word = match level {
        AnnotationLevel::Error => "error",
        AnnotationLevel::Warning => "warning",
    };
    let data = |text: &str| {
        text.replace('%', "%25")
            .replace('\r', "%0D")
            .replace('\n', "%0A")
    };
    let property = |(name, value): &(&str, String)| {
        let value = data(value).replace(':', "%3A").replace(',', "%2C");
        format!("{name}={value}")
    };
    let properties: Vec<String> = properties.iter().map(property).collect();
    format!("::{word} {}::{}\n", properties.join(","), data(message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_annotation_is_one_line_and_one_command() {
        let line = annotation(
            AnnotationLevel::Error,
            &[("file", "a,b:c.yaml".to_owned()), ("title", "x".to_owned())],
            "100 %\n::set-env name=A::b",
        );
        assert_eq!(
            line,
            "::error file=a%2Cb%3Ac.yaml,title=x::100 %25%0A::set-env name=A::b\n"
        );
    }
}
