//! What a run came to, told by its events alone.
//!
//! Whoever watches a run from elsewhere has nothing but its events, in order; this makes of them what the end of a run
//! is shown from. Events that come before the last start or resumption count for where units stand, not for what was
//! done: that was told at the end of the attempt before.

use std::collections::BTreeMap;

use nimbus_core::ComponentName;

use super::{CheckStatus, RunEvent, RunId, RunStatus};
use crate::run::{RollbackTrigger, RunResult};

/// A run as far as its events were heard.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunTally {
    pub run: Option<RunId>,
    /// `None` until it has ended.
    pub result: Option<RunResult>,
    /// What its end says besides.
    pub message: Option<String>,
    /// What made it undo its work.
    pub trigger: Option<RollbackTrigger>,
    /// The version of the environment that it left.
    pub version: Option<u32>,
    pub warnings: Vec<String>,
    pub units: BTreeMap<ComponentName, TalliedUnit>,
    /// In the order in which they began.
    pub checks: Vec<TalliedCheck>,
    /// When its last attempt began and ended.
    pub began_at: Option<String>,
    pub ended_at: Option<String>,
}

/// A unit as far as its events were heard.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TalliedUnit {
    pub status: String,
    pub message: Option<String>,
    pub reason: Option<String>,
    pub changes: BTreeMap<String, u64>,
    pub attention: bool,
    pub open_creates: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TalliedCheck {
    pub name: String,
    pub status: CheckStatus,
    pub message: Option<String>,
    pub seconds: u64,
}

impl RunTally {
    pub fn hear(&mut self, event: &RunEvent) {
        match event {
            RunEvent::Run {
                at,
                run,
                status,
                result,
                message,
                trigger,
                version,
                warnings,
            } => {
                self.run = Some(*run);
                match status {
                    RunStatus::Started | RunStatus::Resumed => self.begin(at),
                    RunStatus::Late | RunStatus::Undoing => {
                        self.trigger = trigger.or(self.trigger);
                    }
                    RunStatus::Ended => {
                        self.result = *result;
                        self.message.clone_from(message);
                        self.trigger = *trigger;
                        self.version = *version;
                        self.warnings.clone_from(warnings);
                        self.ended_at = Some(at.clone());
                    }
                }
            }
            RunEvent::Unit {
                unit,
                status,
                message,
                reason,
                changes,
                attention,
                open_creates,
                ..
            } => {
                let heard = self.units.entry(unit.clone()).or_default();
                heard.status.clone_from(status);
                heard.message.clone_from(message);
                heard.attention = *attention;
                heard.open_creates = *open_creates;
                // A rollback does not take back what was done before it.
                if reason.is_some() {
                    heard.reason.clone_from(reason);
                }
                if !changes.is_empty() {
                    heard.changes.clone_from(changes);
                }
            }
            RunEvent::Check {
                check,
                status,
                message,
                seconds,
                ..
            } => self.check(check, *status, message.clone(), seconds.unwrap_or_default()),
            RunEvent::Plan { .. } | RunEvent::Resource { .. } | RunEvent::Diagnostic { .. } => {}
        }
    }

    /// Whether some unit waits for a person to look for what it may have created.
    pub fn leaves_creates_open(&self) -> bool {
        self.units.values().any(|unit| unit.open_creates)
    }

    fn begin(&mut self, at: &str) {
        let units = std::mem::take(&mut self.units);
        let stand = |(name, unit): (ComponentName, TalliedUnit)| {
            let kept = TalliedUnit {
                reason: None,
                changes: BTreeMap::new(),
                ..unit
            };
            (name, kept)
        };
        *self = Self {
            run: self.run,
            units: units.into_iter().map(stand).collect(),
            began_at: Some(at.to_owned()),
            ..Self::default()
        };
    }

    fn check(&mut self, name: &str, status: CheckStatus, message: Option<String>, seconds: u64) {
        if status == CheckStatus::Output {
            return;
        }
        let heard = TalliedCheck {
            name: name.to_owned(),
            status,
            message,
            seconds,
        };
        match self.checks.iter_mut().find(|check| check.name == name) {
            Some(check) => *check = heard,
            None => self.checks.push(heard),
        }
    }

    /// Units that could not be returned to where they were, and why.
    pub fn attention(&self) -> Vec<String> {
        let stuck = self.units.iter().filter(|(_, unit)| unit.attention);
        stuck
            .map(|(name, unit)| format!("{name}: {}", unit.message.as_deref().unwrap_or_default()))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::UnitState;

    fn run(status: RunStatus, result: Option<RunResult>, version: Option<u32>) -> RunEvent {
        let mut event = RunEvent::run("t".to_owned(), RunId(3), status);
        if let RunEvent::Run {
            result: told,
            version: left,
            ..
        } = &mut event
        {
            (*told, *left) = (result, version);
        }
        event
    }

    fn unit(name: &str, state: &UnitState, created: u64) -> RunEvent {
        let mut event = RunEvent::unit("t".to_owned(), &name.parse().unwrap(), state);
        if let RunEvent::Unit { changes, .. } = &mut event
            && created > 0
        {
            changes.insert("create".to_owned(), created);
        }
        event
    }

    fn heard(events: &[RunEvent]) -> RunTally {
        let mut tally = RunTally::default();
        events.iter().for_each(|event| tally.hear(event));
        tally
    }

    #[test]
    fn the_end_of_a_run_is_told_by_its_events() {
        let tally = heard(&[
            run(RunStatus::Started, None, None),
            unit("a", &UnitState::Running, 0),
            unit("a", &UnitState::Succeeded, 2),
            unit("b", &UnitState::Skipped, 0),
            run(RunStatus::Ended, Some(RunResult::Succeeded), Some(4)),
        ]);
        assert_eq!(tally.result, Some(RunResult::Succeeded));
        assert_eq!((tally.run, tally.version), (Some(RunId(3)), Some(4)));
        assert_eq!(tally.units["a"].status, "succeeded");
        assert_eq!(tally.units["a"].changes["create"], 2);
        assert_eq!(tally.units["b"].status, "skipped");
    }

    #[test]
    fn what_an_earlier_attempt_did_is_not_told_again() {
        let tally = heard(&[
            run(RunStatus::Started, None, None),
            unit("a", &UnitState::Succeeded, 2),
            run(RunStatus::Ended, Some(RunResult::Interrupted), None),
            run(RunStatus::Resumed, None, None),
            unit("b", &UnitState::Succeeded, 1),
        ]);
        assert_eq!(tally.result, None);
        assert_eq!(tally.units["a"].status, "succeeded");
        assert!(tally.units["a"].changes.is_empty());
        assert_eq!(tally.units["b"].changes["create"], 1);
    }

    /// A program may print the name of an option; what is to be done next is not decided by that.
    #[test]
    fn creates_are_open_where_the_unit_says_so_and_not_where_its_words_do() {
        let failed = UnitState::Failed {
            message: "usage: tool --forget-creates".to_owned(),
        };
        let mut event = unit("a", &failed, 0);
        assert!(!heard(std::slice::from_ref(&event)).leaves_creates_open());
        if let RunEvent::Unit { open_creates, .. } = &mut event {
            *open_creates = true;
        }
        assert!(heard(std::slice::from_ref(&event)).leaves_creates_open());
        let line = serde_json::to_string(&event).unwrap();
        let read: RunEvent = serde_json::from_str(&line).unwrap();
        let done = unit("a", &UnitState::Succeeded, 1);
        assert!(!heard(&[read, done]).leaves_creates_open());
    }

    #[test]
    fn whoever_must_be_looked_at_is_named() {
        let stuck = UnitState::Stuck {
            message: "no way back".to_owned(),
        };
        assert_eq!(
            heard(&[unit("a", &stuck, 0)]).attention(),
            ["a: no way back"]
        );
    }
}
