//! One run from its taking to its end, through the run core.

use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;
use nimbus_control_store::{CmdbSync, StoredRun};
use nimbus_core::{Error, ErrorCode, Result, TenantId};
use nimbus_engine_operations::Cancellation;
use nimbus_orchestrator::{RunAction, RunEvent, RunId, RunResult, RunStatus, progress_of};
use nimbus_runs::ports::RunPorts;
use nimbus_runs::{
    EventBus, PreviewRequest, ResumeRequest, RunObserver, RunRequest, RunSession, preview, resume,
    timestamp,
};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::access::RunAccess;
use crate::credential_end::{credentials_ended, require_time, with_credentials};
use crate::tenant_run::{TenantRun, TenantRuns, goes_on};
use crate::tenant_texts::TenantTexts;

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

    /// What the run left as configuration items, to be written when it is given back. Nothing unless somebody knows.
    async fn inventory(&self, _tenant: TenantId, _run: &StoredRun) -> Result<Option<CmdbSync>> {
        Ok(None)
    }

    /// A run was given back, and its row says how.
    fn given_back(&self, _tenant: TenantId, _run: &StoredRun) {}

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
        tenant_run.verdict(run, cancellation).await
    }

    async fn inventory(&self, tenant: TenantId, run: &StoredRun) -> Result<Option<CmdbSync>> {
        self.read_inventory(tenant, run).await.map(Some)
    }

    fn problem(&self, error: &Error) -> Value {
        told_problem(self.texts(), error)
    }
}

/// A problem as a tenant may read it.
pub(crate) fn told_problem(texts: &TenantTexts, error: &Error) -> Value {
    let mut problem = problem(error);
    texts.record(&mut problem);
    problem
}

impl TenantRun {
    /// Carries the run out and says what became of it.
    pub(crate) async fn verdict(&self, run: &StoredRun, cancellation: &Cancellation) -> RunVerdict {
        match Box::pin(self.carry(run, cancellation)).await {
            Ok(result) => RunVerdict::Ended(result),
            Err(error) => {
                // The record says how it ended, for whoever watches.
                let told = self.access.append_events(&[ended(run, &error)]).await;
                RunVerdict::Refused(told.err().unwrap_or(error))
            }
        }
    }

    async fn carry(&self, run: &StoredRun, cancellation: &Cancellation) -> Result<RunResult> {
        let end = self.credentials_end().await?;
        require_time(end, Timestamp::now())?;
        let work = self.carry_on(run, cancellation);
        let (result, stopped) = with_credentials(end, cancellation, Box::pin(work)).await;
        match (result, end) {
            (Ok(RunResult::Interrupted), Some(end)) if stopped => Err(credentials_ended(end)),
            (result, _) => result,
        }
    }

    async fn carry_on(&self, run: &StoredRun, cancellation: &Cancellation) -> Result<RunResult> {
        let bus = Arc::new(EventBus::default());
        let ports = Arc::new(self.ports(&bus, cancellation).await?);
        let stop = cancellation.stop_token().clone();
        // What runs that are over left held may be what this one needs.
        self.access.settle_ended(self.request.environment).await?;
        if self.request.action == RunAction::Preview {
            return self.preview(run, ports, bus, cancellation).await;
        }
        let command = format!("run {} on the server", RunId(run.number.unsigned_abs()));
        let planned = if run.began_at.is_some() {
            let id = RunId(run.number.unsigned_abs());
            let progress = progress_of(&self.access.go_on(id).await?);
            let forget_creates = run.wish.as_deref() == Some("forget_creates");
            // Its worker died between the last word of its record and giving it back.
            match progress.result {
                Some(result) if !goes_on(run) => return Ok(result),
                Some(_) | None => {}
            }
            self.refuse_weaker_sandbox()?;
            // Before the core looks at any unit: it would be refused by leases of the dead, which a
            // server does not wait out.
            self.end_leases(self.request.environment).await?;
            let resumption = ResumeRequest {
                run: id,
                forget_creates,
            };
            resume(ports, resumption, &command, None).await?
        } else {
            let session = RunSession::open(ports, self.recorded(), &command, None).await?;
            session.plan().await?
        };
        Ok(planned.carry_out(bus, stop).await?.result)
    }

    /// The request with what its programs are kept from. Filled in by whoever carries it out and not when it
    /// is queued: the server that takes a request need not be the one that runs it.
    fn recorded(&self) -> RunRequest {
        let mut request = self.request.clone();
        request.choices.sandbox = self.programs.isolation();
        request
    }

    /// A run keeps the guarantees that it began with: another worker may have been set up with less since.
    fn refuse_weaker_sandbox(&self) -> Result<()> {
        let began_with = &self.request.choices.sandbox;
        if !self.programs.isolation().is_weaker_than(began_with) {
            return Ok(());
        }
        let message =
            "the run began in a sandbox that keeps its programs from more than this server's";
        Err(Error::new(ErrorCode::PLAN_MOVED, message).with_help(
            "set engine.sandbox as it was, or start a new run; what did not change is skipped",
        ))
    }

    /// A preview is recorded like any run, and changes nothing.
    async fn preview(
        &self,
        run: &StoredRun,
        ports: Arc<RunPorts>,
        bus: Arc<EventBus>,
        cancellation: &Cancellation,
    ) -> Result<RunResult> {
        ports.runs.begin(self.recorded()).await?;
        let (sender, receiver) = mpsc::unbounded_channel();
        bus.observe(Arc::new(Recording(sender)));
        let writer = tokio::spawn(write(Arc::clone(&self.access), receiver));
        let id = RunId(run.number.unsigned_abs());
        let now = timestamp(Timestamp::now());
        bus.publish(RunEvent::run(now, id, RunStatus::Started));
        let request = PreviewRequest {
            environment: self.request.environment,
            rehearsal: self.request.rehearsal,
            components: self.request.choices.components.clone(),
            parallel: self.request.choices.parallel,
            engine: self.request.choices.engine,
        };
        let stop = cancellation.stop_token().clone();
        let report = preview(ports, &request, Arc::clone(&bus), stop, |_| ()).await;
        if let Ok(report) = &report {
            // Before its end is told: whoever sees that it succeeded can ask to be held to it.
            if let Some(plan) = &report.sealed {
                self.access.keep_plan(plan).await?;
            }
            let warnings = report.warnings.clone();
            bus.publish(run_ended(id, report.result, None, warnings));
        }
        // Nobody publishes any more, so the writer comes to its end.
        bus.observe(Arc::new(Silence));
        let written = writer.await;
        written.map_err(|error| Error::new(ErrorCode::INTERNAL, error.to_string()))??;
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
    access: Arc<dyn RunAccess>,
    mut receiver: mpsc::UnboundedReceiver<RunEvent>,
) -> Result<()> {
    let mut events = Vec::new();
    while receiver.recv_many(&mut events, 256).await > 0 {
        access.append_events(&events).await?;
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
