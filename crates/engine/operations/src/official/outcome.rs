//! What an end of the official command line means.
//!
//! Its exit codes have had meanings since 2026; before that everything that went wrong was one
//! code. So what its events said goes first, then its codes, then what it wrote.

use nimbus_core::{Error, ErrorCode};
use nimbus_engine_ports::{EnforcementLevel, EngineEvent, Severity};
use nimbus_engine_process::Exit;

/// What was seen of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ObservedOperation {
    pub(super) failed_steps: usize,
    pub(super) errors: Vec<String>,
    pub(super) forbidden: bool,
}

impl ObservedOperation {
    pub(super) fn note(&mut self, event: &EngineEvent) {
        match event {
            EngineEvent::ResourceFailed { .. } => self.failed_steps += 1,
            EngineEvent::Diagnostic(diagnostic) if diagnostic.severity == Severity::Error => {
                self.errors.push(diagnostic.message.trim().to_owned());
            }
            EngineEvent::PolicyViolation(violation) => {
                self.forbidden |= violation.enforcement == EnforcementLevel::Mandatory;
            }
            _ => {}
        }
    }
}

/// Words of the official command line by which a cause is known.
const WORDS: &[(&str, ErrorCode)] = &[
    ("the stack is currently locked", ErrorCode::STACK_LOCKED),
    ("incorrect passphrase", ErrorCode::PASSPHRASE_WRONG),
    ("passphrase must be set", ErrorCode::PASSPHRASE_MISSING),
    ("no resource plugin", ErrorCode::PLUGIN_NOT_FOUND),
    ("no stack named", ErrorCode::STACK_NOT_FOUND),
];

/// `stopped` says that we asked it to stop; `written` is the end of what it wrote.
pub(super) fn outcome(
    exit: Exit,
    seen: &ObservedOperation,
    written: &str,
    stopped: bool,
) -> Result<(), Error> {
    if exit == Exit::Code(0) {
        return Ok(());
    }
    let text = || {
        let all = seen
            .errors
            .iter()
            .map(String::as_str)
            .chain([written.trim()]);
        all.filter(|text| !text.is_empty())
            .collect::<Vec<_>>()
            .join("\n")
    };
    if stopped || exit == Exit::Code(8) {
        let message = "stopped; the official command line ended its steps";
        return Err(Error::new(ErrorCode::CANCELLED, message));
    }
    if seen.forbidden || exit == Exit::Code(5) {
        let message = "a mandatory policy was violated";
        return Err(Error::new(ErrorCode::POLICY_VIOLATED, message));
    }
    let known = WORDS.iter().find(|(words, _)| text().contains(words));
    if let Some((_, code)) = known {
        return Err(Error::new(*code, text()));
    }
    if seen.failed_steps > 0 {
        let message = match seen.failed_steps {
            1 => "a step failed".to_owned(),
            count => format!("{count} steps failed"),
        };
        return Err(Error::new(ErrorCode::STEPS_FAILED, message));
    }
    match exit {
        Exit::Code(6) => Err(Error::new(ErrorCode::STACK_NOT_FOUND, text())),
        _ if !seen.errors.is_empty() => {
            let message = "the program, or what it needs, ended with an error";
            Err(Error::new(ErrorCode::PROGRAM_ENDED_IN_ERROR, message))
        }
        _ => {
            let message = format!("the official command line failed ({exit}): {}", text());
            Err(Error::new(ErrorCode::OFFICIAL_CLI_FAILED, message))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(exit: Exit, seen: &ObservedOperation, written: &str) -> Option<ErrorCode> {
        outcome(exit, seen, written, false)
            .err()
            .map(|error| error.code())
    }

    #[test]
    fn events_codes_and_words_become_our_errors() {
        let nothing = ObservedOperation::default();
        assert_eq!(code(Exit::Code(0), &nothing, "warning: x"), None);
        let failed = ObservedOperation {
            failed_steps: 2,
            ..ObservedOperation::default()
        };
        for number in [1, 4, 255] {
            assert_eq!(
                code(Exit::Code(number), &failed, ""),
                Some(ErrorCode::STEPS_FAILED)
            );
        }
        let wrong = ObservedOperation {
            errors: vec!["TypeError".to_owned()],
            ..ObservedOperation::default()
        };
        assert_eq!(
            code(Exit::Code(1), &wrong, ""),
            Some(ErrorCode::PROGRAM_ENDED_IN_ERROR)
        );
        let forbidden = ObservedOperation {
            forbidden: true,
            ..ObservedOperation::default()
        };
        assert_eq!(
            code(Exit::Code(255), &forbidden, ""),
            Some(ErrorCode::POLICY_VIOLATED)
        );
        for (number, written, expected) in [
            (5, "", ErrorCode::POLICY_VIOLATED),
            (6, "error: x", ErrorCode::STACK_NOT_FOUND),
            (8, "", ErrorCode::CANCELLED),
            (
                255,
                "error: the stack is currently locked by 1 lock(s)",
                ErrorCode::STACK_LOCKED,
            ),
            (
                255,
                "error: incorrect passphrase",
                ErrorCode::PASSPHRASE_WRONG,
            ),
            (
                2,
                "error: unknown flag: --x",
                ErrorCode::OFFICIAL_CLI_FAILED,
            ),
            (3, "", ErrorCode::OFFICIAL_CLI_FAILED),
        ] {
            assert_eq!(
                code(Exit::Code(number), &nothing, written),
                Some(expected),
                "{number}"
            );
        }
        assert_eq!(
            code(Exit::Signal(9), &nothing, ""),
            Some(ErrorCode::OFFICIAL_CLI_FAILED)
        );
    }

    #[test]
    fn a_run_that_was_stopped_is_cancelled_whatever_its_code() {
        let error = outcome(
            Exit::Code(255),
            &ObservedOperation::default(),
            "error: x",
            true,
        )
        .expect_err("stopped");
        assert_eq!(error.code(), ErrorCode::CANCELLED);
        assert!(
            outcome(Exit::Code(0), &ObservedOperation::default(), "", true).is_ok(),
            "it was done already"
        );
    }
}
