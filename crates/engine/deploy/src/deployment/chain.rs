//! Steps that belong together, one after the other.

use std::collections::HashSet;

use nimbus_engine_model::Urn;

use super::Deployment;
use crate::executor::Done;
use crate::steps::Step;

/// What came of a chain.
#[derive(Debug)]
pub(crate) enum ChainEnd {
    /// Every step with what came of it.
    Done(Vec<(Step, Done)>),
    Failed,
    /// Left out because something that it depends on failed.
    Skipped,
    /// Not begun, or not finished, because the operation ends.
    Stopped,
}

impl Deployment {
    /// Carries the steps out in order; the first failure ends the chain, for each step relies on
    /// those before it. A chain keeps its place among those that run at once, so that what it began
    /// with a delete does not wait half way for others.
    pub(crate) async fn run_chain(&self, steps: Vec<Step>) -> ChainEnd {
        let (steps, skipped) = self.without_failed_dependencies(steps);
        let permit = tokio::select! {
            biased;
            () = self.failures.stopped() => return ChainEnd::Stopped,
            permit = self.steps.acquire() => permit,
        };
        let mut ended = Vec::new();
        for step in steps {
            if self.failures.is_stopped() {
                return ChainEnd::Stopped;
            }
            match self.executor.execute(&step).await {
                Ok(done) => ended.push((step, done)),
                Err(error) => {
                    self.failures.step_failed(&step, &error);
                    return ChainEnd::Failed;
                }
            }
            self.judge_late_failures();
        }
        drop(permit);
        if skipped {
            ChainEnd::Skipped
        } else {
            ChainEnd::Done(ended)
        }
    }

    /// Hooks that failed after their step end the operation, unless it is told to go on.
    pub(super) fn judge_late_failures(&self) {
        for error in self.executor.take_late_failures() {
            if self.failures.continues_on_error() {
                self.failures.note(error);
            } else {
                self.failures.stop(error);
            }
        }
    }

    /// Leaves out what depends on a failure; records that are only carried over stay.
    fn without_failed_dependencies(&self, steps: Vec<Step>) -> (Vec<Step>, bool) {
        let failed = self.failures.failed();
        if failed.is_empty() {
            return (steps, false);
        }
        let (kept, left_out): (Vec<_>, Vec<_>) = steps
            .into_iter()
            .partition(|step| !depends_on(step, &failed));
        for step in &left_out {
            self.failures.leave_out(step);
        }
        // What is to be replaced stays: its object would go, and nothing would come instead.
        let unreplaced: HashSet<&Urn> = left_out.iter().map(Step::urn).collect();
        let kept = kept
            .into_iter()
            .filter(|step| !(matches!(step, Step::Delete(_)) && unreplaced.contains(step.urn())))
            .collect();
        (kept, !left_out.is_empty())
    }
}

fn depends_on(step: &Step, failed: &HashSet<Urn>) -> bool {
    match step {
        Step::Same(same) if same.is_untargeted() => false,
        Step::Delete(_) | Step::RemovePendingReplace(_) => false,
        step => step
            .subject()
            .all_dependencies()
            .any(|urn| failed.contains(&urn)),
    }
}
