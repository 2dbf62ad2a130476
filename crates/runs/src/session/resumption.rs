//! How an earlier attempt goes on.

use nimbus_core::{Error, ErrorCode, Result};
use nimbus_orchestrator::{EarlierAttempt, RunAction};

use super::{PlannedRun, RunSession, deploy_work};
use crate::record::RunRecord;
use crate::rollback::plan_rollback;
use crate::unit::Recovery;
use crate::worker::RunWork;
use crate::{planning, readiness};

impl RunSession {
    /// Decides how an earlier attempt goes on. What was asked for then holds still.
    pub(crate) async fn plan_resumption(
        self,
        record: RunRecord,
        earlier: EarlierAttempt,
        recovery: Recovery,
    ) -> Result<PlannedRun> {
        let taken = self.context.taken_leases();
        let planned = self.decide_resumption(record, earlier, recovery).await;
        if planned.is_err() {
            taken.give_back().await;
        }
        planned
    }

    async fn decide_resumption(
        self,
        record: RunRecord,
        earlier: EarlierAttempt,
        recovery: Recovery,
    ) -> Result<PlannedRun> {
        let request = &self.request;
        let context = &self.context;
        // Whoever goes on is often somebody else, at another machine, with other credentials. A deploy asks before
        // anything is looked up with them; the others are about what there is, and that is known below.
        if request.action == RunAction::Deploy && !request.rehearsal {
            readiness::account(context, request.choices.components.as_deref()).await?;
        }
        let mut plan = None;
        let (work, graph) = match request.action {
            RunAction::Deploy => {
                // The gate was passed, or skipped with a reason, when the run began.
                planning::check(context, request.choices.components.as_deref()).await?;
                let (work, graph) = deploy_work(context, request, Some(&earlier)).await?;
                plan = Some(planning::plan(context, &graph, request).await?);
                (work, graph)
            }
            RunAction::Destroy => {
                let chosen = request.choices.components.as_deref();
                let graph = planning::existing(context, chosen).await?;
                (RunWork::Destroy, graph)
            }
            RunAction::Rollback => {
                let to_version = request.choices.to_version;
                let plan = plan_rollback(context, to_version, Some(record.run)).await?;
                (RunWork::Restore(plan.targets), plan.graph)
            }
            RunAction::Refresh => {
                let chosen = request.choices.components.as_deref();
                let graph = planning::existing(context, chosen).await?;
                (RunWork::Refresh, graph)
            }
            RunAction::Preview => {
                let message = format!("run {} cannot be gone on with", record.run);
                return Err(Error::new(ErrorCode::RUN_OVER, message));
            }
        };
        if request.action != RunAction::Deploy && !request.rehearsal {
            let names: Vec<_> = graph.names().cloned().collect();
            readiness::account(context, Some(&names)).await?;
        }
        Ok(PlannedRun {
            ports: self.ports,
            guard: self.guard,
            context: self.context,
            request: self.request,
            graph,
            work,
            plan,
            warnings: Vec::new(),
            earlier: Some((record, earlier)),
            recovery,
            interrupted: None,
        })
    }
}
