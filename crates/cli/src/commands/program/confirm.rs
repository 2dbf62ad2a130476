//! Asking before something changes.

use std::io::{self, BufRead, IsTerminal as _, Write};

use nimbus_core::{Error, ErrorCode, Result};
use tokio::signal::unix::{SignalKind, signal};

use crate::context::CommandContext;

/// Asks, and takes nothing but a clear yes for one. Without anybody to ask it is an error.
pub(crate) async fn confirm(context: &CommandContext, question: &str) -> Result<()> {
    let interactive = io::stdin().is_terminal() && context.output.stderr_terminal().interactive;
    if context.output.is_json() || !interactive {
        let message = format!("{question} Nobody is there to answer");
        return Err(Error::new(ErrorCode::CONFIRMATION_NEEDED, message)
            .with_help("look at the preview, then give --yes"));
    }
    if answered(question.to_owned()).await? {
        Ok(())
    } else {
        Err(Error::new(ErrorCode::CANCELLED, "nothing was changed"))
    }
}

/// Waits on a thread of its own, which may be left behind, so that Ctrl-C is an answer too: an
/// operation before this may have taken over what the signal does. Listening begins before the
/// question is seen, since an answer may come at once.
async fn answered(question: String) -> Result<bool> {
    let mut interrupted = signal(SignalKind::interrupt()).map_err(|error| {
        Error::new(ErrorCode::INTERNAL, "signals cannot be listened to").with_source(error)
    })?;
    let (sender, answer) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || {
        let answer = ask(&mut io::stdin().lock(), &mut io::stderr(), &question);
        // Whoever pressed Ctrl-C has stopped waiting.
        let _ = sender.send(answer);
    });
    Ok(tokio::select! {
        answer = answer => answer.unwrap_or(false),
        _ = interrupted.recv() => false,
    })
}

fn ask(answers: &mut impl BufRead, out: &mut impl Write, question: &str) -> bool {
    loop {
        // A terminal that cannot be written to has nobody in front of it.
        if write!(out, "{question} [y/N] ")
            .and_then(|()| out.flush())
            .is_err()
        {
            return false;
        }
        let mut answer = String::new();
        match answers.read_line(&mut answer) {
            Ok(0) | Err(_) => return false,
            Ok(_) => {}
        }
        match answer.trim().to_ascii_lowercase().as_str() {
            "y" | "yes" => return true,
            "" | "n" | "no" => return false,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_clear_yes_counts() {
        let answer = |text: &str| ask(&mut text.as_bytes(), &mut Vec::new(), "Really?");
        assert!(answer("y\n") && answer("YES\n") && answer("what\nyes\n"));
        assert!(!answer("\n") && !answer("n\n") && !answer("") && !answer("yep\n"));
    }
}
