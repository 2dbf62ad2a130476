//! An error is told once.
//!
//! The engine tells of an error when it happens, the unit ends with it, and the run's end lists it: that is where people look, so
//! there it stays. What the engine said is kept until the unit has ended, and told then only if the unit's own words do not have
//! it, as with the lines that a compiler prints.

use std::collections::BTreeMap;

use nimbus_core::ComponentName;
use nimbus_orchestrator::{DiagnosticLevel, RunEvent};

#[derive(Default)]
pub(super) struct HeldErrors {
    units: BTreeMap<ComponentName, Vec<RunEvent>>,
}

impl HeldErrors {
    /// What is to be shown now that this happened.
    pub(super) fn pass(&mut self, event: &RunEvent) -> Vec<RunEvent> {
        match event {
            RunEvent::Diagnostic {
                unit: Some(unit),
                level: DiagnosticLevel::Error,
                ..
            } => {
                let held = self.units.entry(unit.clone()).or_default();
                held.push(event.clone());
                Vec::new()
            }
            RunEvent::Unit {
                unit,
                status,
                message,
                ..
            } if status != "running" => {
                let held = self.units.remove(unit).unwrap_or_default();
                let message = message.as_deref().map(words).unwrap_or_default();
                let mut shown: Vec<_> = held
                    .into_iter()
                    .filter(|held| !is_said(held, &message))
                    .collect();
                shown.push(event.clone());
                shown
            }
            RunEvent::Unit { .. }
            | RunEvent::Diagnostic { .. }
            | RunEvent::Run { .. }
            | RunEvent::Plan { .. }
            | RunEvent::Resource { .. }
            | RunEvent::Check { .. } => vec![event.clone()],
        }
    }

    /// What is left of units that did not end.
    pub(super) fn rest(&mut self) -> Vec<RunEvent> {
        let units = std::mem::take(&mut self.units);
        units.into_values().flatten().collect()
    }
}

/// Without line breaks and indents: a unit's message is one line. What SDKs advise about a value that is missing is for a stack's
/// own file, and the unit's message says what to do in a deployment.
fn words(text: &str) -> String {
    let lines = text
        .lines()
        .filter(|line| !line.trim_start().starts_with(ADVICE));
    let words = lines.flat_map(str::split_whitespace);
    words.collect::<Vec<_>>().join(" ")
}

const ADVICE: &str = "please set a value using the command `pulumi config set";

fn is_said(event: &RunEvent, message: &str) -> bool {
    match event {
        RunEvent::Diagnostic { message: text, .. } => message.contains(&words(text)),
        RunEvent::Unit { .. }
        | RunEvent::Run { .. }
        | RunEvent::Plan { .. }
        | RunEvent::Resource { .. }
        | RunEvent::Check { .. } => false,
    }
}

#[cfg(test)]
mod tests {
    use nimbus_orchestrator::UnitState;

    use super::*;

    fn said(unit: &str, level: DiagnosticLevel, message: &str) -> RunEvent {
        RunEvent::Diagnostic {
            at: "t".to_owned(),
            unit: Some(unit.parse().unwrap()),
            level,
            message: message.to_owned(),
        }
    }

    fn failed(unit: &str, message: &str) -> RunEvent {
        let state = UnitState::Failed {
            message: message.to_owned(),
        };
        RunEvent::unit("t".to_owned(), &unit.parse().unwrap(), &state)
    }

    #[test]
    fn what_a_units_end_says_too_is_not_shown_before_it() {
        let mut held = HeldErrors::default();
        let no_room = said("b", DiagnosticLevel::Error, "no\n  room");
        let types = said("b", DiagnosticLevel::Error, "index.ts(3,1): error TS2304");
        assert_eq!(held.pass(&no_room), []);
        assert_eq!(held.pass(&types), []);
        let end = failed("b", "update of b-first failed: no room");
        assert_eq!(held.pass(&end), [types, end.clone()]);
        let advice =
            "Missing x\n\tplease set a value using the command `pulumi config set x <value>`";
        held.pass(&said("c", DiagnosticLevel::Error, advice));
        let end = failed(
            "c",
            "the program failed: Missing x (put it into the manifest)",
        );
        assert_eq!(held.pass(&end), std::slice::from_ref(&end));
        assert_eq!(held.rest(), []);
    }

    #[test]
    fn warnings_are_shown_at_once_and_errors_of_units_that_never_end_at_last() {
        let mut held = HeldErrors::default();
        let warning = said("a", DiagnosticLevel::Warning, "old");
        assert_eq!(held.pass(&warning), std::slice::from_ref(&warning));
        let error = said("a", DiagnosticLevel::Error, "no room");
        assert_eq!(held.pass(&error), []);
        let other = failed("b", "no room");
        assert_eq!(held.pass(&other), std::slice::from_ref(&other));
        assert_eq!(held.rest(), [error]);
    }
}
