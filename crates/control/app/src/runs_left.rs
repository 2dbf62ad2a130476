//! Whether the runs of an environment left anything that somebody would have to take away.

use std::collections::BTreeSet;

use nimbus_control_store::StoredRun;
use nimbus_orchestrator::{RunAction, RunResult};

/// Whether something may still be there after these runs of one environment, newest first. What a run did to single
/// stacks says nothing of the others: only a destroy of everything ends the question, and which stacks there were when
/// everything was deployed is not known any more.
pub(crate) fn leave_something(runs: &[StoredRun]) -> bool {
    let mut gone = BTreeSet::new();
    for run in runs {
        let chosen = chosen(run);
        let succeeded = run.result.as_deref() == Some(RunResult::Succeeded.word());
        match (run.action.parse::<RunAction>(), chosen) {
            (Ok(RunAction::Preview | RunAction::Refresh), _) => {}
            (Ok(RunAction::Destroy), None) if succeeded => return false,
            (Ok(RunAction::Destroy), Some(stacks)) if succeeded => gone.extend(stacks),
            // What nobody here knows may have left something, too.
            (
                Ok(RunAction::Destroy | RunAction::Deploy | RunAction::Rollback) | Err(()),
                chosen,
            ) => {
                let left = chosen.is_none_or(|stacks| stacks.iter().any(|one| !gone.contains(one)));
                if left {
                    return true;
                }
            }
        }
    }
    false
}

/// The stacks that a run was about; `None` for all of them.
fn chosen(run: &StoredRun) -> Option<Vec<String>> {
    let stacks = run.request["options"]["stacks"].as_array()?;
    let names = stacks.iter().filter_map(|name| name.as_str());
    Some(names.map(str::to_owned).collect())
}
