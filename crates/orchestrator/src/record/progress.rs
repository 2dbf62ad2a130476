//! What a record says about where a run stands.

use std::collections::BTreeMap;

use nimbus_core::ComponentName;

use super::{CheckStatus, RunEvent, RunStatus};
use crate::run::{EarlierAttempt, RunResult, UnitState};

/// A run as far as its record goes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunProgress {
    pub earlier: EarlierAttempt,
    /// `None` while it runs, or when it was killed before it could say.
    pub result: Option<RunResult>,
    pub message: Option<String>,
    /// How often it was started or gone on with.
    pub attempts: u32,
    pub ended_at: Option<String>,
    /// How the checks of its last attempt ended.
    pub checks: BTreeMap<String, CheckStatus>,
}

/// Reads a record in order. Whatever is not about the run or its units is left out.
pub fn progress_of<'a>(events: impl IntoIterator<Item = &'a RunEvent>) -> RunProgress {
    let mut progress = RunProgress::default();
    let mut last: BTreeMap<ComponentName, (usize, UnitState)> = BTreeMap::new();
    // Only a unit's last state counts, but in the order in which the states were reached: undoing
    // begins with whoever changed last.
    for (place, event) in events.into_iter().enumerate() {
        match event {
            RunEvent::Run {
                at,
                status,
                result,
                message,
                trigger,
                ..
            } => match status {
                // Whether it was undoing stays: no attempt turns back to deploying from there.
                RunStatus::Started | RunStatus::Resumed => {
                    progress.attempts += 1;
                    progress.result = None;
                    progress.ended_at = None;
                    // An attempt that goes on with undoing checks nothing again: what failed then is why.
                    if !progress.earlier.undoing {
                        progress.checks.clear();
                    }
                }
                RunStatus::Late => progress.earlier.trigger = trigger.or(progress.earlier.trigger),
                RunStatus::Undoing => {
                    progress.earlier.undoing = true;
                    // An attempt that only goes on with the undo may not know what began it.
                    progress.earlier.trigger = trigger.or(progress.earlier.trigger);
                    progress.message.clone_from(message);
                }
                RunStatus::Ended => {
                    progress.result = *result;
                    progress.ended_at = Some(at.clone());
                    if message.is_some() {
                        progress.message.clone_from(message);
                    }
                }
            },
            RunEvent::Unit {
                unit,
                status,
                message,
                attention,
                ..
            } => {
                let message = message.clone().unwrap_or_default();
                if let Some(state) = state_of(status, message, *attention) {
                    last.insert(unit.clone(), (place, state));
                }
            }
            RunEvent::Check { check, status, .. } => {
                if *status != CheckStatus::Output {
                    progress.checks.insert(check.clone(), *status);
                }
            }
            RunEvent::Plan { .. } | RunEvent::Resource { .. } | RunEvent::Diagnostic { .. } => {}
        }
    }
    let mut units: Vec<_> = last.into_iter().collect();
    units.sort_by_key(|(_, (place, _))| *place);
    progress.earlier.units = units
        .into_iter()
        .map(|(name, (_, state))| (name, state))
        .collect();
    progress
}

fn state_of(word: &str, message: String, attention: bool) -> Option<UnitState> {
    Some(match word {
        "waiting" => UnitState::Waiting,
        "running" => UnitState::Running,
        "succeeded" => UnitState::Succeeded,
        "skipped" => UnitState::Skipped,
        "failed" if attention => UnitState::Stuck { message },
        "failed" => UnitState::Failed { message },
        "not_started" => UnitState::NotStarted { because: message },
        "rolling_back" => UnitState::RollingBack,
        "rolled_back" => UnitState::RolledBack,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::RunId;
    use crate::run::RollbackTrigger;

    fn run(status: RunStatus, result: Option<RunResult>) -> RunEvent {
        RunEvent::Run {
            at: "t".to_owned(),
            run: RunId(1),
            status,
            result,
            message: None,
            trigger: None,
            version: None,
            warnings: Vec::new(),
        }
    }

    fn unit(name: &str, state: UnitState) -> RunEvent {
        RunEvent::unit("t".to_owned(), &name.parse().unwrap(), &state)
    }

    #[test]
    fn a_record_that_stops_in_the_middle_says_who_was_under_way() {
        let events = [
            run(RunStatus::Started, None),
            unit("a", UnitState::Running),
            unit("x", UnitState::Running),
            unit("a", UnitState::Succeeded),
        ];
        let progress = progress_of(&events);
        assert_eq!(progress.result, None);
        assert_eq!(
            progress.earlier.units,
            [
                ("x".parse().unwrap(), UnitState::Running),
                ("a".parse().unwrap(), UnitState::Succeeded)
            ]
        );
        assert!(!progress.earlier.undoing);
    }

    #[test]
    fn a_second_attempt_opens_the_run_again() {
        let events = [
            run(RunStatus::Started, None),
            run(RunStatus::Ended, Some(RunResult::Interrupted)),
            run(RunStatus::Resumed, None),
        ];
        assert_eq!(
            progress_of(&events[..2]).result,
            Some(RunResult::Interrupted)
        );
        assert_eq!(progress_of(&events).result, None);
        assert_eq!(progress_of(&events).attempts, 2);
    }

    #[test]
    fn every_state_survives_the_record() {
        let text = |text: &str| text.to_owned();
        for state in [
            UnitState::Running,
            UnitState::Succeeded,
            UnitState::Skipped,
            UnitState::Failed { message: text("m") },
            UnitState::NotStarted { because: text("b") },
            UnitState::RollingBack,
            UnitState::RolledBack,
            UnitState::Stuck { message: text("s") },
        ] {
            let line = serde_json::to_string(&unit("a", state.clone())).unwrap();
            let event: RunEvent = serde_json::from_str(&line).unwrap();
            assert_eq!(
                progress_of([&event]).earlier.units,
                [("a".parse().unwrap(), state)]
            );
        }
    }

    #[test]
    fn what_made_a_run_undo_its_work_is_in_its_record() {
        let undoing = |trigger| RunEvent::Run {
            at: "t".to_owned(),
            run: RunId(1),
            status: RunStatus::Undoing,
            result: None,
            message: None,
            trigger,
            version: None,
            warnings: Vec::new(),
        };
        let events = [
            run(RunStatus::Started, None),
            undoing(Some(RollbackTrigger::Overtime)),
            run(RunStatus::Ended, Some(RunResult::Interrupted)),
            run(RunStatus::Resumed, None),
            undoing(None),
        ];
        for known in 2..=events.len() {
            let earlier = progress_of(&events[..known]).earlier;
            assert!(earlier.undoing);
            assert_eq!(earlier.trigger, Some(RollbackTrigger::Overtime), "{known}");
        }
    }
}
