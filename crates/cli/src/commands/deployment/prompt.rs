//! Questions to a person at a terminal.

use std::io::{self, BufRead as _, Write as _};

use nimbus_core::{Error, ErrorCode, Result};

/// Asks on standard error and reads a line; an empty answer takes the default.
pub(crate) fn ask(question: &str, default: Option<&str>) -> Result<String> {
    let shown = match default {
        Some(default) if !default.is_empty() => format!("{question} [{default}]: "),
        _ => format!("{question}: "),
    };
    let unanswered = |error: io::Error| {
        Error::new(
            ErrorCode::CONFIRMATION_NEEDED,
            format!("nobody answers: {question}"),
        )
        .with_help("give the values as options, or with --from-file")
        .with_source(error)
    };
    let mut stderr = io::stderr();
    stderr
        .write_all(shown.as_bytes())
        .and_then(|()| stderr.flush())
        .map_err(unanswered)?;
    let mut line = String::new();
    let read = io::stdin()
        .lock()
        .read_line(&mut line)
        .map_err(unanswered)?;
    if read == 0 {
        return Err(unanswered(io::ErrorKind::UnexpectedEof.into()));
    }
    let answer = line.trim();
    Ok(if answer.is_empty() {
        default.unwrap_or_default()
    } else {
        answer
    }
    .to_owned())
}

/// Asks until there is an answer.
pub(crate) fn ask_required(question: &str, default: Option<&str>) -> Result<String> {
    loop {
        let answer = ask(question, default)?;
        if !answer.is_empty() {
            return Ok(answer);
        }
    }
}
