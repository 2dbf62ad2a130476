//! One run from its taking to its end, through the run core.

use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;
use nimbus_control_store::StoredRun;
use nimbus_core::{Error, Result, TenantId};
use nimbus_engine_operations::Cancellation;
use nimbus_orchestrator::{RunAction, RunEvent, RunId, RunResult, RunStatus, progress_of};
use nimbus_runs::ports::{RunPorts, RunStore as _};
use nimbus_runs::{
    EventBus, PreviewRequest, ResumeRequest, RunObserver, RunSession, preview, resume, timestamp,
};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::tables::DeploymentTables;
use crate::tenant_run::{TenantRun, TenantRuns};

/// What became of a run that was carried out.
#[derive(Debug)]
pub enum RunVerdict {
    /// As its record says.
    Ended(RunResult),
    /// It could not begin, or its record could not be written.
    Refused(Error),
}

/// Carries runs out. The driver decides which and when; a durable workflow can stand in its place.
#[async_trait]
pub trait RunCarrier: Send + Sync {
    /// Carries a run out that this server has taken. When it is cancelled, what runs finishes and nothing
    /// more starts.
    async fn carry(
        &self,
        tenant: TenantId,
        run: &StoredRun,
        cancellation: &Cancellation,
    ) -> RunVerdict;

    /// Why a run could not go on, as its row keeps it.
    fn problem(&self, error: &Error) -> Value {
        problem(error)
    }
}

#[async_trait]
impl RunCarrier for TenantRuns {
    async fn carry(
        &self,
        tenant: TenantId,
        run: &StoredRun,
        cancellation: &Cancellation,
    ) -> RunVerdict {
        let tenant_run = match self.enter(tenant, run).await {
            Ok(tenant_run) => tenant_run,
            Err(error) => return RunVerdict::Refused(error),
        };
        match tenant_run.carry(run, cancellation).await {
            Ok(result) => RunVerdict::Ended(result),
            Err(error) => {
                // The record says how it ended, for whoever watches.
                let told = tenant_run.tables.append_events(&[ended(run, &error)]).await;
                RunVerdict::Refused(told.err().unwrap_or(error))
            }
        }
    }

    fn problem(&self, error: &Error) -> Value {
        let mut problem = problem(error);
        self.texts().record(&mut problem);
        problem
    }
}

impl TenantRun {
    async fn carry(&self, run: &StoredRun, cancellation: &Cancellation) -> Result<RunResult> {
        let bus = Arc::new(EventBus::default());
        let ports = Arc::new(self.ports(&bus, cancellation).await?);
        let stop = cancellation.stop_token().clone();
        if self.request.action == RunAction::Preview {
            return self.preview(run, ports, bus, cancellation).await;
        }
        let command = format!("run {} on the server", RunId(run.number.unsigned_abs()));
        let planned = if run.began_at.is_some() {
            let id = RunId(run.number.unsigned_abs());
            let progress = progress_of(&self.tables.go_on(id).await?);
            // Its worker died between the last word of its record and giving it back.
            match progress.result {
                Some(result) if run.wish.as_deref() != Some("resume") => return Ok(result),
                Some(_) | None => {}
            }
            // Before the core looks at any unit: it would be refused by leases of the dead, which a
            // server does not wait out.
            self.end_leases(self.request.environment).await?;
            let resumption = ResumeRequest {
                run: id,
                forget_creates: false,
            };
            resume(ports, resumption, &command, None).await?
        } else {
            let session = RunSession::open(ports, self.request.clone(), &command, None).await?;
            session.plan().await?
        };
        Ok(planned.carry_out(bus, stop).await?.result)
    }

    /// A preview is recorded like any run, and changes nothing.
    async fn preview(
        &self,
        run: &StoredRun,
        ports: Arc<RunPorts>,
        bus: Arc<EventBus>,
        cancellation: &Cancellation,
    ) -> Result<RunResult> {
        self.tables.begin(self.request.clone()).await?;
        let (sender, receiver) = mpsc::unbounded_channel();
        bus.observe(Arc::new(Recording(sender)));
        let writer = tokio::spawn(write(self.tables.clone(), receiver));
        let id = RunId(run.number.unsigned_abs());
        let now = timestamp(Timestamp::now());
        bus.publish(RunEvent::run(now, id, RunStatus::Started));
        let request = PreviewRequest {
            environment: self.request.environment,
            rehearsal: self.request.rehearsal,
            components: self.request.choices.components.clone(),
            parallel: self.request.choices.parallel,
        };
        let stop = cancellation.stop_token().clone();
        let report = preview(ports, &request, Arc::clone(&bus), stop, |_| ()).await;
        if let Ok(report) = &report {
            let warnings = report.warnings.clone();
            bus.publish(run_ended(id, report.result, None, warnings));
        }
        // Nobody publishes any more, so the writer comes to its end.
        bus.observe(Arc::new(Silence));
        let written = writer.await;
        written
            .map_err(|error| Error::new(nimbus_core::ErrorCode::INTERNAL, error.to_string()))??;
        Ok(report?.result)
    }
}

struct Recording(mpsc::UnboundedSender<RunEvent>);

impl RunObserver for Recording {
    fn event(&self, event: &RunEvent) {
        // An error is a writer that failed, and the run is told by it.
        let _ = self.0.send(event.clone());
    }
}

struct Silence;

impl RunObserver for Silence {
    fn event(&self, _event: &RunEvent) {}
}

async fn write(
    tables: DeploymentTables,
    mut receiver: mpsc::UnboundedReceiver<RunEvent>,
) -> Result<()> {
    let mut events = Vec::new();
    while receiver.recv_many(&mut events, 256).await > 0 {
        tables.append_events(&events).await?;
        events.clear();
    }
    Ok(())
}

fn run_ended(
    run: RunId,
    result: RunResult,
    message: Option<String>,
    warnings: Vec<String>,
) -> RunEvent {
    RunEvent::Run {
        at: timestamp(Timestamp::now()),
        run,
        status: RunStatus::Ended,
        result: Some(result),
        message,
        trigger: None,
        version: None,
        warnings,
    }
}

/// The last word of a run that could not go on.
fn ended(run: &StoredRun, error: &Error) -> RunEvent {
    let id = RunId(run.number.unsigned_abs());
    let message = format!("{}: {}", error.code(), error.message());
    run_ended(id, RunResult::Failed, Some(message), Vec::new())
}

fn problem(error: &Error) -> Value {
    json!({
        "code": error.code().to_string(),
        "message": error.message(),
        "help": error.help().map(|help| help.to_string()),
    })
}
