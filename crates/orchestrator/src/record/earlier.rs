//! What a record says about where a run stands.

use std::collections::BTreeMap;

use super::{CheckStatus, RunEvent, RunStatus};
use crate::graph::Name;
use crate::run::{Earlier, RunResult, UnitState};

/// A run as far as its record goes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    pub earlier: Earlier,
    /// `None` while it runs, or when it was killed before it could say.
    pub result: Option<RunResult>,
    pub message: Option<String>,
    /// How often it was started or gone on with.
    pub attempts: u32,
    pub ended_at: Option<String>,
    /// How the checks of its last attempt ended.
    pub checks: BTreeMap<Name, CheckStatus>,
}

/// Reads a record in order. Whatever is not about the run or its units is left out.
pub fn standing<'a>(events: impl IntoIterator<Item = &'a RunEvent>) -> Standing {
    let mut standing = Standing::default();
    let mut last: BTreeMap<Name, (usize, UnitState)> = BTreeMap::new();
    for (place, event) in events.into_iter().enumerate() {
        match event {
            RunEvent::Run {
                at,
                status,
                result,
                message,
                ..
            } => match status {
                RunStatus::Started | RunStatus::Resumed => {
                    standing.attempts += 1;
                    standing.result = None;
                    standing.ended_at = None;
                    standing.checks.clear();
                }
                RunStatus::Undoing => {
                    standing.earlier.undoing = true;
                    standing.message.clone_from(message);
                }
                RunStatus::Ended => {
                    standing.result = *result;
                    standing.ended_at = Some(at.clone());
                    if message.is_some() {
                        standing.message.clone_from(message);
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
                    standing.checks.insert(check.clone(), *status);
                }
            }
            RunEvent::Plan { .. } | RunEvent::Resource { .. } | RunEvent::Diagnostic { .. } => {}
        }
    }
    let mut units: Vec<_> = last.into_iter().collect();
    units.sort_by_key(|(_, (place, _))| *place);
    standing.earlier.units = units
        .into_iter()
        .map(|(name, (_, state))| (name, state))
        .collect();
    standing
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

    fn run(status: RunStatus, result: Option<RunResult>) -> RunEvent {
        RunEvent::Run {
            at: "t".to_owned(),
            run: RunId(1),
            status,
            result,
            message: None,
        }
    }

    fn unit(name: &str, state: UnitState) -> RunEvent {
        RunEvent::unit("t".to_owned(), name, &state)
    }

    #[test]
    fn a_record_that_stops_in_the_middle_says_who_was_under_way() {
        let events = [
            run(RunStatus::Started, None),
            unit("a", UnitState::Running),
            unit("x", UnitState::Running),
            unit("a", UnitState::Succeeded),
        ];
        let standing = standing(&events);
        assert_eq!(standing.result, None);
        assert_eq!(
            standing.earlier.units,
            [
                ("x".to_owned(), UnitState::Running),
                ("a".to_owned(), UnitState::Succeeded)
            ]
        );
        assert!(!standing.earlier.undoing);
    }

    #[test]
    fn a_second_attempt_opens_the_run_again() {
        let events = [
            run(RunStatus::Started, None),
            run(RunStatus::Ended, Some(RunResult::Interrupted)),
            run(RunStatus::Resumed, None),
        ];
        assert_eq!(standing(&events[..2]).result, Some(RunResult::Interrupted));
        assert_eq!(standing(&events).result, None);
        assert_eq!(standing(&events).attempts, 2);
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
            assert_eq!(standing([&event]).earlier.units, [(text("a"), state)]);
        }
    }
}
