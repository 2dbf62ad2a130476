//! A run that goes on: what an earlier attempt left becomes the state that this one starts from.
//!
//! Each state of a unit is taken over in one of three ways: as done, as to be done again, or as to be
//! undone. Which it is depends only on what was recorded, never on how the attempt ended, because one that
//! was killed could not say.

use nimbus_core::ComponentName;

use super::{EarlierAttempt, OnFailure, RollbackTrigger, Run, RunPhase, UnitState};

impl Run {
    /// Goes on where an earlier attempt was interrupted. What was done stays done; what was under
    /// way or failed is started again, unless the attempt was already undoing things: then that is
    /// what goes on.
    pub fn after(mut self, earlier: EarlierAttempt) -> Self {
        let late = !earlier.undoing && earlier.trigger == Some(RollbackTrigger::Overtime);
        let stops = late && !matches!(self.on_failure, OnFailure::Hold | OnFailure::Continue);
        for (name, state) in earlier.units {
            if !self.units.contains_key(&name) {
                continue;
            }
            let kept = match state {
                // It counts as changed, so that this attempt undoes it when it fails: to the user it
                // is one run.
                UnitState::Succeeded => {
                    self.changed.push(name.clone());
                    UnitState::Succeeded
                }
                UnitState::Skipped => UnitState::Skipped,
                // It stays failed: a run that is late tries nothing again. Part of its work may be done.
                UnitState::Failed { .. } if stops => {
                    self.changed.push(name.clone());
                    state
                }
                // Whether a unit that was under way or failed works is found out by running it. It may
                // turn out to be done: the earlier attempt died before it could say so.
                UnitState::Running | UnitState::Failed { .. } if !earlier.undoing => {
                    self.touched.insert(name.clone());
                    UnitState::Waiting
                }
                _ if !earlier.undoing => UnitState::Waiting,
                // It may have done part of its work.
                UnitState::Running | UnitState::RollingBack | UnitState::Failed { .. } => {
                    self.changed.push(name.clone());
                    UnitState::Failed {
                        message: "the run was interrupted".to_owned(),
                    }
                }
                UnitState::Waiting => UnitState::NotStarted {
                    because: "the run stopped".to_owned(),
                },
                // Otherwise the undo would go on and take away what the stuck unit still uses.
                UnitState::Stuck { .. } => {
                    self.block_needs_of(&name);
                    state
                }
                other => other,
            };
            self.units.insert(name, kept);
        }
        if earlier.undoing {
            self.phase = RunPhase::Undoing;
            self.trigger = earlier.trigger;
            // The attempt may have died before it had said of all of them that they never start.
            let waiting = |(name, state): (&ComponentName, &UnitState)| {
                (*state == UnitState::Waiting).then(|| name.clone())
            };
            let left: Vec<ComponentName> = self.units.iter().filter_map(waiting).collect();
            for name in left {
                let because = "the run stopped".to_owned();
                self.set(&name, UnitState::NotStarted { because });
            }
        }
        self.count_open();
        if late {
            self.trigger = earlier.trigger;
        }
        if stops {
            // What had begun is let finish, as it would have been without the interruption.
            self.phase = RunPhase::Draining;
            let touched = &self.touched;
            let begun = self.ready.iter().copied();
            let begun = begun.filter(|&place| touched.contains(self.graph.name_at(place)));
            self.begun = begun.collect();
        }
        self
    }
}
