//! Asking before something changes.

use std::io::{self, BufRead, IsTerminal as _, Write};

use nimbus_core::{Error, ErrorCode, Result};
use tokio::signal::unix::{SignalKind, signal};

use crate::context::CommandContext;

/// What somebody answered who did not refuse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConfirmAnswer {
    Yes,
    /// Show more, then ask again.
    Details,
}

/// Asks, and takes nothing but a clear yes for one. Without anybody to ask it is an error.
pub(crate) async fn confirm(context: &CommandContext, question: &str) -> Result<()> {
    demand_somebody(context, question, "give --yes to do it without being asked")?;
    match answered(question.to_owned(), Offer::YesOrNo).await? {
        Some(_) => Ok(()),
        None => Err(refused()),
    }
}

/// The same with a third answer: `details`.
pub(crate) async fn confirm_or_details(
    context: &CommandContext,
    question: &str,
) -> Result<ConfirmAnswer> {
    demand_somebody(context, question, "look at the preview, then give --yes")?;
    let answer = answered(question.to_owned(), Offer::Details).await?;
    answer.ok_or_else(refused)
}

/// Whether somebody can be asked.
pub(crate) fn is_attended(context: &CommandContext) -> bool {
    let interactive = io::stdin().is_terminal() && context.output.stderr_terminal().interactive;
    interactive && !context.output.is_json()
}

fn demand_somebody(context: &CommandContext, question: &str, help: &str) -> Result<()> {
    if is_attended(context) {
        return Ok(());
    }
    let message = format!("{question} Nobody is there to answer");
    Err(Error::new(ErrorCode::CONFIRMATION_NEEDED, message).with_help(help))
}

fn refused() -> Error {
    Error::new(ErrorCode::CANCELLED, "nothing was changed")
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Offer {
    YesOrNo,
    Details,
}

/// Waits on a thread of its own, which may be left behind, so that Ctrl-C is an answer too: an
/// operation before this may have taken over what the signal does. Listening begins before the
/// question is seen, since an answer may come at once.
async fn answered(question: String, offer: Offer) -> Result<Option<ConfirmAnswer>> {
    let mut interrupted = signal(SignalKind::interrupt()).map_err(|error| {
        Error::new(ErrorCode::INTERNAL, "signals cannot be listened to").with_source(error)
    })?;
    let (sender, answer) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || {
        let answer = ask(&mut io::stdin().lock(), &mut io::stderr(), &question, offer);
        // Whoever pressed Ctrl-C has stopped waiting.
        let _ = sender.send(answer);
    });
    Ok(tokio::select! {
        answer = answer => answer.unwrap_or(None),
        _ = interrupted.recv() => None,
    })
}

fn ask(
    answers: &mut impl BufRead,
    out: &mut impl Write,
    question: &str,
    offer: Offer,
) -> Option<ConfirmAnswer> {
    let choice = match offer {
        Offer::YesOrNo => "[y/N]",
        Offer::Details => "[y/N/details]",
    };
    loop {
        // A terminal that cannot be written to has nobody in front of it.
        write!(out, "{question} {choice} ")
            .and_then(|()| out.flush())
            .ok()?;
        let mut answer = String::new();
        match answers.read_line(&mut answer) {
            Ok(0) | Err(_) => return None,
            Ok(_) => {}
        }
        match answer.trim().to_ascii_lowercase().as_str() {
            "y" | "yes" => return Some(ConfirmAnswer::Yes),
            "d" | "details" if offer == Offer::Details => return Some(ConfirmAnswer::Details),
            "" | "n" | "no" => return None,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_clear_yes_counts() {
        let answer =
            |text: &str, offer| ask(&mut text.as_bytes(), &mut Vec::new(), "Really?", offer);
        for yes in ["y\n", "YES\n", "what\nyes\n", "details\ny\n"] {
            assert_eq!(answer(yes, Offer::YesOrNo), Some(ConfirmAnswer::Yes));
        }
        for no in ["\n", "n\n", "", "yep\n"] {
            assert_eq!(answer(no, Offer::YesOrNo), None);
            assert_eq!(answer(no, Offer::Details), None);
        }
        let details = answer("details\n", Offer::Details);
        assert_eq!(details, Some(ConfirmAnswer::Details));
    }
}
