//! `nimbus explain CODE`: the page of an error, from inside the binary.

use nimbus_core::{Error, ErrorCode, Result};
use nimbus_document::did_you_mean;
use schemars::JsonSchema;
use serde::Serialize;

use crate::context::CommandContext;
use crate::exit::{CommandOutcome, kind_word};
use crate::output::Report;
use crate::style::{Terminal, TextStyle};

/// Code and Markdown of every page in `docs/errors`.
const PAGES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/error_pages.rs"));

#[derive(clap::Args, Debug)]
#[command(
    after_help = "Examples:\n  nimbus explain NIM-0008\n  nimbus explain 8\n  nimbus explain --list"
)]
pub(crate) struct ExplainArgs {
    /// The code, such as NIM-0001
    #[arg(required_unless_present = "list")]
    code: Option<String>,

    /// List all codes
    #[arg(long, conflicts_with = "code")]
    list: bool,
}

pub(crate) async fn run(args: ExplainArgs, context: &CommandContext) -> Result<CommandOutcome> {
    match args.code {
        Some(code) => context.output.result(&explain(&code)?)?,
        None => context.output.result(&list())?,
    }
    Ok(CommandOutcome::Done)
}

fn explain(text: &str) -> Result<ExplainReport> {
    let code = ErrorCode::parse(text).ok_or_else(|| {
        let known: Vec<String> = ErrorCode::all().map(|code| code.to_string()).collect();
        let near = did_you_mean(text, known.iter().map(String::as_str));
        let near = near.filter(|near| near.starts_with("did you mean"));
        let help = near.unwrap_or_else(|| "`nimbus explain --list` prints every code".to_owned());
        Error::new(
            ErrorCode::UNKNOWN_ERROR_CODE,
            format!("there is no error code `{text}`"),
        )
        .with_help(help)
    })?;
    let name = code.to_string();
    let page = PAGES
        .iter()
        .find(|(page, _)| *page == name)
        .map_or("", |(_, page)| page);
    Ok(ExplainReport {
        summary: CodeSummary::new(code),
        page: page.to_owned(),
    })
}

fn list() -> ErrorCodesReport {
    ErrorCodesReport {
        codes: ErrorCode::all().map(CodeSummary::new).collect(),
    }
}

#[derive(JsonSchema, Serialize)]
pub(crate) struct ExplainReport {
    #[serde(flatten)]
    summary: CodeSummary,
    /// The page as Markdown.
    page: String,
}

#[derive(JsonSchema, Serialize)]
pub(crate) struct ErrorCodesReport {
    codes: Vec<CodeSummary>,
}

#[derive(JsonSchema, Serialize)]
struct CodeSummary {
    code: String,
    title: &'static str,
    /// Sort of failure; decides the exit code.
    kind: &'static str,
    /// Whether the same command may succeed later without any change.
    retryable: bool,
}

impl CodeSummary {
    fn new(code: ErrorCode) -> Self {
        Self {
            code: code.to_string(),
            title: code.title(),
            kind: kind_word(code.kind()),
            retryable: code.retryable(),
        }
    }
}

impl Report for ExplainReport {
    const SCHEMA: &'static str = "nimbus/explain/1";

    /// The page as it is, headings brought out on a terminal.
    fn text(&self, terminal: Terminal) -> String {
        self.page.lines().fold(String::new(), |text, line| {
            let shown = match line.trim_start_matches('#') {
                heading if heading.len() < line.len() && terminal.color => {
                    terminal.paint(TextStyle::Heading, heading.trim_start())
                }
                _ => line.to_owned(),
            };
            text + &shown + "\n"
        })
    }
}

impl Report for ErrorCodesReport {
    const SCHEMA: &'static str = "nimbus/explain-list/1";

    fn text(&self, _: Terminal) -> String {
        self.codes
            .iter()
            .map(|code| format!("{}  {}\n", code.code, code.title))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_a_page_that_says_what_why_and_what_to_do() {
        for code in ErrorCode::all() {
            let report = explain(&code.to_string()).unwrap();
            let heading = format!("# {code}: {}\n", code.title());
            assert!(
                report.page.starts_with(&heading),
                "docs/errors/{code}.md must begin with `{}`",
                heading.trim_end()
            );
            for section in ["\n## Why\n", "\n## What to do\n"] {
                assert!(
                    report.page.contains(section),
                    "docs/errors/{code}.md lacks {section:?}"
                );
            }
        }
    }

    #[test]
    fn every_page_has_a_code() {
        for (name, _) in PAGES {
            assert!(
                ErrorCode::parse(name).is_some(),
                "docs/errors/{name}.md explains no code"
            );
        }
    }
}
