//! Returning a unit to an earlier state, and what is remembered of it then.

use std::collections::BTreeMap;

use nimbus_core::{ComponentName, Result};
use nimbus_orchestrator::{LastOutcome, RememberedRun};

use super::RunContext;
use crate::rollback::RestoreTarget;
use crate::unit::{RestorePoint, UnitFailure, UnitOperation, UnitReport};

impl RunContext {
    /// Returns a unit to an earlier state. From then on it is remembered as what it was made from
    /// in that state, so that its next deploy says what it would apply again.
    pub async fn restore(
        &self,
        component: &ComponentName,
        target: RestoreTarget,
    ) -> Result<UnitReport, UnitFailure> {
        let mut memory = self.distrust(component).await?;
        let operation = UnitOperation::Restore(target.point);
        let job = self.job(component, operation, BTreeMap::new());
        let report = self.ports.engine.run(&job).await?;
        memory.last_run = self.restored(memory.last_run, target, report.resources);
        if let Some(last) = memory
            .last_run
            .as_mut()
            .filter(|last| last.outcome.is_whole())
        {
            last.state = self.left_state(component).await;
            // What is recorded of it names things that are gone, so it is not what a deploy would make.
            last.drifted |= !report.stale.is_empty();
        }
        self.remember(component, &memory).await?;
        Ok(report)
    }

    /// Whether this run returned a unit to a state whose values no longer hold.
    pub(crate) async fn is_stale(&self, component: &ComponentName) -> Result<bool> {
        let last = self.memory(component).await?.last_run;
        Ok(last.is_some_and(|last| {
            last.outcome == LastOutcome::RolledBack && last.drifted && last.run == self.run
        }))
    }

    /// From now on the next deploy runs a unit that there is something of.
    pub(crate) async fn mark_drifted(&self, component: &ComponentName) -> Result<()> {
        let mut memory = self.memory(component).await?;
        let marked = |last: &&mut RememberedRun| last.outcome.is_whole() && !last.drifted;
        if let Some(last) = memory.last_run.as_mut().filter(marked) {
            last.drifted = true;
            self.remember(component, &memory).await?;
        }
        Ok(())
    }

    /// What is remembered of a unit that was returned to an earlier state.
    fn restored(
        &self,
        last: Option<RememberedRun>,
        target: RestoreTarget,
        resources: u64,
    ) -> Option<RememberedRun> {
        let rolled_back = |last: Option<RememberedRun>, made_from| RememberedRun {
            outcome: LastOutcome::RolledBack,
            drifted: false,
            seconds: last.as_ref().map_or(0, |last| last.seconds),
            resources,
            fingerprint: made_from,
            state: None,
            stack: last.as_ref().and_then(|last| last.stack.clone()),
            run: self.run,
            // Kept: an attempt that dies here restores again, and must come to the same end.
            before: last.and_then(|last| last.before),
        };
        match target.point {
            RestorePoint::Nothing => None,
            RestorePoint::Version(_) => Some(rolled_back(last, target.made_from)),
            RestorePoint::BeforeRun(run) => {
                let last = last?;
                if last.run > Some(run) {
                    // A later run touched it too, and what it was made from before the earlier one
                    // is not remembered. The next deploy runs it.
                    return None;
                }
                if last.run != Some(run) {
                    // Not touched by that run, or remembered before runs were named: not trusted.
                    return Some(last);
                }
                let before = last.before.as_deref()?;
                if before.outcome.is_whole() {
                    let made_from = before.fingerprint.clone();
                    Some(rolled_back(Some(last), made_from))
                } else {
                    // Back to what was half done before the run began.
                    Some(before.clone())
                }
            }
        }
    }
}
