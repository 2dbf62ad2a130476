//! Whether what was deployed works: what is recorded is complete, and the commands of the manifest
//! succeed.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use nimbus_core::{ComponentName, Error, ErrorCode, Result};
use nimbus_orchestrator::{CheckCommand, CheckStatus, RunEvent, UnitGraph};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::bus::{EventBus, timestamp};
use crate::context::RunContext;
use crate::ports::{CheckOutput, CheckSubject};
use crate::record::RunRecord;
use crate::worker::RunWorker;

/// The name under which what is recorded is looked at.
const RECORDED: &str = "resources";

/// How a check ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckResult {
    pub name: String,
    pub status: CheckStatus,
    pub message: Option<String>,
    pub seconds: u64,
}

/// The checks of one run.
pub(crate) struct RunChecks {
    commands: BTreeMap<String, CheckCommand>,
    graph: UnitGraph,
    subject: CheckSubject,
    stop: CancellationToken,
    found: Mutex<CheckFindings>,
}

#[derive(Default)]
struct CheckFindings {
    results: Vec<CheckResult>,
    warnings: Vec<String>,
}

impl RunChecks {
    /// Commands of the manifest belong to a whole environment; a single component is only looked at.
    pub(crate) fn of_run(
        context: &RunContext,
        record: &RunRecord,
        graph: &UnitGraph,
        stop: &CancellationToken,
    ) -> Self {
        let whole = record.request.choices.components.is_none();
        let commands = context.target().filter(|_| whole);
        Self {
            commands: commands
                .map(|target| target.checks.clone())
                .unwrap_or_default(),
            graph: graph.clone(),
            subject: CheckSubject {
                deployment: context.id().clone(),
                environment: context.environment,
                rehearsal: record.request.rehearsal,
                run: record.run,
            },
            stop: stop.clone(),
            found: Mutex::default(),
        }
    }

    /// Results in order, and what is worth a warning.
    pub(crate) fn results(&self) -> (Vec<CheckResult>, Vec<String>) {
        let found = self.found.lock();
        (found.results.clone(), found.warnings.clone())
    }

    /// Whether everything that must work does.
    pub(crate) async fn run(&self, worker: &RunWorker, deployed: &[ComponentName]) -> bool {
        if !deployed.is_empty() {
            let started = Instant::now();
            let looked = self.look(&worker.context, deployed).await;
            if !self.ended(worker, RECORDED, true, started, looked) {
                return false;
            }
        }
        if self.commands.is_empty() {
            return true;
        }
        if let Err(error) = self.hand_outputs_over(&worker.context).await {
            return self.ended(worker, "outputs", true, Instant::now(), Err(error));
        }
        let mut good = true;
        for (name, check) in &self.commands {
            if self.subject.rehearsal && !check.rehearse {
                let why = Some("it does not run in a rehearsal".to_owned());
                publish(
                    &worker.bus,
                    &worker.now(),
                    name,
                    CheckStatus::Skipped,
                    &why,
                    None,
                );
                self.keep(name, CheckStatus::Skipped, why, 0);
                continue;
            }
            publish(
                &worker.bus,
                &worker.now(),
                name,
                CheckStatus::Running,
                &None,
                None,
            );
            let started = Instant::now();
            let output = self.output(name, worker);
            let checks = &worker.context.ports.checks;
            let ran = checks.run(name, check, &self.subject, &self.stop, output);
            good &= self.ended(worker, name, check.needed, started, ran.await);
        }
        good
    }

    /// Every unit that ran has a state, what its template promises is there, and everything that
    /// refers to it finds what it refers to.
    async fn look(&self, context: &RunContext, deployed: &[ComponentName]) -> Result<()> {
        let library = context.ports.components.templates().await?;
        for component in deployed {
            if context.state_version(component).await?.is_none() {
                let message = format!("nothing is recorded of {component}");
                return Err(Error::new(ErrorCode::CHECK_FAILED, message));
            }
            let outputs = context.outputs_of(component).await?;
            let promised = library
                .stacks
                .get(component)
                .map(|template| &template.outputs);
            let missing: Vec<&str> = promised
                .into_iter()
                .flat_map(|promised| promised.keys())
                .filter(|output| !outputs.contains_key(*output))
                .map(String::as_str)
                .collect();
            if !missing.is_empty() {
                let warning = format!("{component} has no output {}", missing.join(", "));
                self.found.lock().warnings.push(warning);
            }
            for dependant in self.graph.needed_by(component) {
                context.prepare(dependant).await?;
            }
        }
        Ok(())
    }

    async fn hand_outputs_over(&self, context: &RunContext) -> Result<()> {
        let mut all = BTreeMap::new();
        for component in self.graph.names() {
            all.insert(component.clone(), context.outputs_of(component).await?);
        }
        context.ports.checks.hand_over(&self.subject, &all).await
    }

    /// Tells and keeps how a check ended. Returns whether the run may go on.
    fn ended(
        &self,
        worker: &RunWorker,
        name: &str,
        needed: bool,
        started: Instant,
        result: Result<()>,
    ) -> bool {
        let seconds = started.elapsed().as_secs();
        let (status, message) = match result {
            Ok(()) => (CheckStatus::Passed, None),
            Err(error) if needed => (CheckStatus::Failed, Some(error)),
            Err(error) => (CheckStatus::Warned, Some(error)),
        };
        let message = message.map(|error| {
            let text = nimbus_telemetry::redact(error.message()).into_owned();
            format!("{} {text}", error.code())
        });
        if let Some(message) = message.as_ref().filter(|_| status == CheckStatus::Failed) {
            worker.blame(message.clone());
        }
        publish(
            &worker.bus,
            &worker.now(),
            name,
            status,
            &message,
            Some(seconds),
        );
        self.keep(name, status, message, seconds);
        status != CheckStatus::Failed
    }

    fn keep(&self, name: &str, status: CheckStatus, message: Option<String>, seconds: u64) {
        self.found.lock().results.push(CheckResult {
            name: name.to_owned(),
            status,
            message,
            seconds,
        });
    }

    fn output(&self, check: &str, worker: &RunWorker) -> Arc<CheckOutput> {
        let (check, bus) = (check.to_owned(), Arc::clone(&worker.bus));
        let context = Arc::clone(&worker.context);
        Arc::new(move |line| {
            let now = timestamp(context.ports.clock.now());
            publish(&bus, &now, &check, CheckStatus::Output, &Some(line), None);
        })
    }
}

fn publish(
    bus: &EventBus,
    now: &str,
    check: &str,
    status: CheckStatus,
    message: &Option<String>,
    seconds: Option<u64>,
) {
    bus.publish(RunEvent::Check {
        at: now.to_owned(),
        check: check.to_owned(),
        status,
        message: message.clone(),
        seconds,
    });
}
