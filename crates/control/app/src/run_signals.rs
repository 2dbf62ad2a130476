//! What somebody wants of a run that is there: cancelled, paused, gone on with.

use nimbus_control_audit::{Actor, AuditRecord};
use nimbus_control_auth::operation::{self, Operation};
use nimbus_control_store::{RunEnd, StoredRun};
use nimbus_core::{ErrorCode, TenantId};
use nimbus_orchestrator::RunAction;
use serde_json::json;
use uuid::Uuid;

use crate::app::{App, Permit};
use crate::call::Call;
use crate::failure::{Failure, Result};
use crate::runs::{QueuedRun, REPAIR_STATE};

/// What somebody wants of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunSignal {
    Cancel,
    Pause,
    Resume {
        /// Somebody has looked for creates of unknown outcome, in vain.
        forget_creates: bool,
    },
}

impl RunSignal {
    fn operation(self) -> Operation {
        match self {
            Self::Cancel => operation::CANCEL_RUN,
            Self::Pause => operation::PAUSE_RUN,
            Self::Resume { .. } => operation::RESUME_RUN,
        }
    }
}

impl App {
    /// Cancels, pauses or goes on with a run.
    pub async fn run_signal(
        &self,
        call: &Call,
        tenant: TenantId,
        run: Uuid,
        signal: RunSignal,
    ) -> Result<QueuedRun> {
        let permit = self.permit(call, signal.operation(), tenant).await?;
        let changed = self
            .inner
            .store
            .tenant_tx(tenant, async |tx| {
                let found = tx.run_lock(run).await?;
                self.ensure_may_change(call, &permit, &found)?;
                match decide(&found, signal)? {
                    Wanted::Wish(wish) => tx.run_wish(run, wish).await?,
                    Wanted::Row(end) => {
                        tx.run_set(run, &end).await?;
                        if let Some(approval) = found.approval
                            && end.status == "ended"
                        {
                            self.approval_withdraw(tx, call, approval).await?;
                        }
                    }
                    Wanted::Nothing => {}
                }
                let run = tx.run_find(run).await?;
                let position = self.position(tx, &run).await?;
                let record = permit
                    .record()
                    .on(run.id)
                    .before(json!({"status": found.status}))
                    .after(json!({"status": run.status, "wish": run.wish}));
                self.audit(tx, &call.context, record).await?;
                Ok::<_, Failure>(QueuedRun { run, position })
            })
            .await?;
        self.inner.wakeup.notify_one();
        self.flow_hears(tenant, changed.run.id);
        Ok(changed)
    }

    /// Asks a run to end because its workflow was cancelled where workflows run. One that has ended, or is gone, stays.
    pub(crate) async fn run_stopped_with_flow(&self, tenant: TenantId, run: Uuid) -> Result<()> {
        let stopped = self.inner.store.tenant_tx(tenant, async |tx| {
            let found = tx.run_lock(run).await?;
            let wanted = match decide(&found, RunSignal::Cancel) {
                Ok(wanted) => wanted,
                // It is over.
                Err(_) => return Ok(()),
            };
            match wanted {
                Wanted::Wish(wish) => tx.run_wish(run, wish).await?,
                Wanted::Row(end) => tx.run_set(run, &end).await?,
                Wanted::Nothing => {}
            }
            let record = AuditRecord::new(Actor::system(), "runs.cancel", "runs")
                .on(run)
                .before(json!({"status": found.status}))
                .after(json!({"reason": "its workflow was cancelled"}));
            let now = jiff::Timestamp::now();
            tx.audit_append(&self.inner.keys.audit, now, record).await?;
            Ok::<_, Failure>(())
        });
        match stopped.await {
            Err(failure) if failure.error.code() == ErrorCode::RESOURCE_NOT_FOUND => Ok(()),
            ended => ended,
        }
    }

    /// Whoever stops a run or lets it go on could have asked for it.
    fn ensure_may_change(&self, call: &Call, permit: &Permit, run: &StoredRun) -> Result<()> {
        let key = match stored_action(run)? {
            RunAction::Destroy => "stack:instance:destroy",
            RunAction::Preview => "component:preview",
            RunAction::Deploy | RunAction::Refresh | RunAction::Rollback => "stack:instance:deploy",
        };
        self.ensure_key_in(call, permit, key, &run.environment)?;
        if takes_much_out(run) {
            self.ensure_key_in(call, permit, REPAIR_STATE, &run.environment)?;
        }
        Ok(())
    }
}

enum Wanted {
    Wish(&'static str),
    Row(RunEnd),
    Nothing,
}

/// What a signal does to a run, as it is now.
fn decide(run: &StoredRun, signal: RunSignal) -> Result<Wanted> {
    let row = |status, wish, result: Option<&str>| {
        Wanted::Row(RunEnd {
            status,
            wish,
            result: result.map(str::to_owned),
            problem: None,
        })
    };
    let goes_on = run.began_at.map(|_| match signal {
        RunSignal::Resume {
            forget_creates: true,
        } => "forget_creates",
        RunSignal::Resume { .. } | RunSignal::Cancel | RunSignal::Pause => "resume",
    });
    let resumable = matches!(run.result.as_deref(), Some("interrupted" | "failed"));
    Ok(match (signal, run.status.as_str()) {
        (RunSignal::Cancel, "queued" | "paused") => row("ended", None, Some("cancelled")),
        (RunSignal::Cancel, "running") => Wanted::Wish("cancel"),
        (RunSignal::Pause, "queued") => row("paused", None, None),
        (RunSignal::Pause, "running") => Wanted::Wish("pause"),
        (RunSignal::Pause, "paused") => Wanted::Nothing,
        (RunSignal::Resume { .. }, "paused") => row("queued", goes_on, None),
        (RunSignal::Resume { .. }, "ended") if resumable && goes_on.is_some() => {
            row("queued", goes_on, None)
        }
        (_, status) => {
            let result = run.result.as_deref().unwrap_or_default();
            let message = format!("the run is {status} {result}");
            return Err(Failure::new(ErrorCode::RUN_NOT_OPEN, message.trim_end()));
        }
    })
}

/// What a run does, as its row says. A row of a newer server is refused rather than taken for a deploy.
fn stored_action(run: &StoredRun) -> Result<RunAction> {
    run.action.parse().map_err(|()| {
        let message = format!("this server does not know what a {} is", run.action);
        Failure::new(ErrorCode::INTERNAL, message)
    })
}

/// Whether a run may take more out of a state than a look usually finds gone.
pub(crate) fn takes_much_out(run: &StoredRun) -> bool {
    run.request["options"]["allow_mass_removal"] == true
}
