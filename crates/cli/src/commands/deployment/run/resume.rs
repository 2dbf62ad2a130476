//! `nimbus resume`: go on with a run that was interrupted, killed or stopped by a failure.
//!
//! What the record says was done stays done. What was under way is looked up before anything is
//! done again; the environment's lock and the units' leases keep two attempts apart.

use nimbus_core::{Error, ErrorCode, Result};
use nimbus_engine_operations::Cancellation;
use nimbus_local::{Recovery, RunStore, Versions};
use nimbus_orchestrator::record::{RunId, RunKind, RunRecord};
use nimbus_orchestrator::run::{Direction, RunResult};

use super::crew::Work;
use super::session::{Order, carry_out, lock};
use super::{HowArgs, planning, rehearsal_note, rollback};
use crate::commands::deployment::local::{Place, RunArgs, allow, open};
use crate::context::Context;
use crate::exit::Outcome;

#[derive(clap::Args, Debug)]
pub(crate) struct ResumeArgs {
    #[command(flatten)]
    run: RunArgs,
    #[command(flatten)]
    how: HowArgs,
    /// Run to go on with, such as R0012; the environment's last one when left out
    #[arg(long = "run", value_name = "RUN")]
    number: Option<RunId>,
    /// Creates of unknown outcome were looked for in the cloud, in vain: make those resources again
    #[arg(long)]
    forget_creates: bool,
}

pub(crate) async fn resume(args: ResumeArgs, context: &Context) -> Result<Outcome> {
    let mut run = args.run.clone();
    let place = Place::find(&run.id, run.rehearse, context)?;
    allow(&place.deployment, run.environment)?;
    // A run that is alive holds the environment.
    let held = lock(&place, &run, args.how.wait, "resume", context).await?;
    let store = RunStore::of_deployment(&place.directory);
    let found = store.pick(run.environment, args.number)?;
    let standing = found.standing()?;
    refuse_over(&found.record, standing.result)?;
    run.backend = run.backend.or_else(|| found.record.options.backend.clone());
    let board = open(&run, context, &Cancellation::default())?;
    rehearsal_note(&run, context);
    let choices = found.record.options.clone();
    let (work, direction, graph, plan) = match found.record.kind {
        RunKind::Deploy => {
            planning::check(&board.workspace, &board.manifest, board.environment)?;
            let graph = planning::graph(&board, choices.stacks.as_deref())?;
            let plan = planning::plan(&board, &graph, choices.force).await?;
            let work = Work::Deploy {
                force: choices.force,
                plan: None,
            };
            (work, Direction::Forward, graph, Some(plan))
        }
        RunKind::Destroy => {
            let graph = planning::graph(&board, choices.stacks.as_deref())?;
            (Work::Destroy, Direction::Reverse, graph, None)
        }
        RunKind::Rollback => {
            let versions = Versions::of_environment(&place.directory, run.environment);
            let target = versions.find(choices.to_version.unwrap_or_default())?;
            let (states, graph) = rollback::states(&target, versions.last()?.as_ref())?;
            (Work::Restore(states), Direction::Reverse, graph, None)
        }
    };
    let order = Order {
        kind: found.record.kind,
        work,
        direction,
        graph,
        choices,
        plan,
        warnings: Vec::new(),
        goes_on: Some((found, standing.earlier)),
        recovery: Recovery {
            look_up: true,
            forget_creates: args.forget_creates,
        },
    };
    carry_out(order, &run, place, held, context).await
}

fn refuse_over(record: &RunRecord, result: Option<RunResult>) -> Result<()> {
    match result {
        None | Some(RunResult::Interrupted | RunResult::Failed) => Ok(()),
        Some(result) => {
            let word = result.word().replace('_', " ");
            let message = format!("run {} is over: {word}", record.run);
            Err(Error::new(ErrorCode::RUN_OVER, message)
                .with_help("start a new one with `nimbus deploy`; what did not change is skipped"))
        }
    }
}
