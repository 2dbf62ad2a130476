//! Whether what was deployed works: what is recorded is complete, and the commands of the manifest
//! succeed.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use nimbus_core::{Error, ErrorCode, Result};
use nimbus_engine_operations::Cancellation;
use nimbus_local::{CheckScene, FoundRun, Line, run_check, write_outputs};
use nimbus_orchestrator::graph::Graph;
use nimbus_orchestrator::manifest::Check;
use nimbus_orchestrator::record::{CheckStatus, RunEvent};
use nimbus_orchestrator::unit::Board;

use super::crew::Crew;
use super::hub::{Hub, now};
use super::session::Order;
use super::summary::CheckSummary;
use crate::commands::deployment::local::RunArgs;

/// The name under which what is recorded is looked at.
const RECORDED: &str = "resources";

pub(super) struct Checks {
    commands: BTreeMap<String, Check>,
    graph: Graph,
    scene: CheckScene,
    cancellation: Cancellation,
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    results: Vec<CheckSummary>,
    warnings: Vec<String>,
}

impl Checks {
    /// Commands of the manifest belong to a whole environment; a single stack is only looked at.
    pub(super) fn of_run(
        board: &Board,
        order: &Order,
        found: &FoundRun,
        args: &RunArgs,
        cancellation: &Cancellation,
    ) -> Self {
        let target = board.manifest.environments.get(&board.environment);
        let commands = target.filter(|_| order.choices.stacks.is_none());
        Self {
            commands: commands
                .map(|target| target.checks.clone())
                .unwrap_or_default(),
            graph: order.graph.clone(),
            scene: CheckScene {
                deployment: board.id().to_string(),
                environment: board.environment,
                rehearsal: args.rehearse,
                directory: board.directory.clone(),
                outputs: found.folder.join("outputs.json"),
            },
            cancellation: cancellation.clone(),
            seen: Mutex::default(),
        }
    }

    /// Results in order, and what is worth a warning.
    pub(super) fn results(&self) -> (Vec<CheckSummary>, Vec<String>) {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        (seen.results.clone(), seen.warnings.clone())
    }

    /// Whether everything that must work does.
    pub(super) async fn run(&self, crew: &Crew) -> bool {
        let worked_on = crew.worked_on();
        if !worked_on.is_empty() {
            let started = Instant::now();
            let looked = self.look(&crew.board, &worked_on).await;
            if !self.ended(crew, RECORDED, true, started, looked) {
                return false;
            }
        }
        if self.commands.is_empty() {
            return true;
        }
        if let Err(error) = self.hand_outputs_over(&crew.board).await {
            return self.ended(crew, "outputs", true, Instant::now(), Err(error));
        }
        let mut good = true;
        for (name, check) in &self.commands {
            if self.scene.rehearsal && !check.rehearse {
                let why = "it does not run in a rehearsal";
                self.tell(
                    &crew.hub,
                    name,
                    CheckStatus::Skipped,
                    Some(why.to_owned()),
                    None,
                );
                self.keep(name, CheckStatus::Skipped, Some(why.to_owned()), 0);
                continue;
            }
            self.tell(&crew.hub, name, CheckStatus::Running, None, None);
            let started = Instant::now();
            let cancel = self.cancellation.stop_token();
            let line = self.lines(name, &crew.hub);
            let ran = run_check(name, check, &self.scene, cancel, &line).await;
            good &= self.ended(crew, name, check.needed, started, ran.map(|_| ()));
        }
        good
    }

    /// Every unit that ran has a state, what its template promises is there, and everything that
    /// refers to it finds what it refers to.
    async fn look(&self, board: &Board, worked_on: &[String]) -> Result<()> {
        let library = board.workspace.library()?;
        for stack in worked_on {
            if board.state_version(stack).await?.is_none() {
                let message = format!("nothing is recorded of {stack}");
                return Err(Error::new(ErrorCode::CHECK_FAILED, message));
            }
            let outputs = board.outputs_of(stack).await?;
            let promised = library.stacks.get(stack).map(|template| &template.outputs);
            let missing: Vec<&str> = promised
                .into_iter()
                .flat_map(|promised| promised.keys())
                .filter(|output| !outputs.contains_key(*output))
                .map(String::as_str)
                .collect();
            if !missing.is_empty() {
                let warning = format!("{stack} has no output {}", missing.join(", "));
                let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
                seen.warnings.push(warning);
            }
            for dependant in self.graph.needed_by(stack) {
                board.prepare(dependant).await?;
            }
        }
        Ok(())
    }

    async fn hand_outputs_over(&self, board: &Board) -> Result<()> {
        let mut all = BTreeMap::new();
        for stack in self.graph.names() {
            all.insert(stack.to_owned(), board.outputs_of(stack).await?);
        }
        write_outputs(&self.scene.outputs, &all)
    }

    /// Tells and keeps how a check ended. Returns whether the run may go on.
    fn ended(
        &self,
        crew: &Crew,
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
            crew.blame(message.clone());
        }
        self.tell(&crew.hub, name, status, message.clone(), Some(seconds));
        self.keep(name, status, message, seconds);
        status != CheckStatus::Failed
    }

    fn keep(&self, name: &str, status: CheckStatus, message: Option<String>, seconds: u64) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.results.push(CheckSummary {
            name: name.to_owned(),
            status: status.word(),
            message,
            seconds,
        });
    }

    fn tell(
        &self,
        hub: &Hub,
        check: &str,
        status: CheckStatus,
        message: Option<String>,
        seconds: Option<u64>,
    ) {
        hub.tell(RunEvent::Check {
            at: now(),
            check: check.to_owned(),
            status,
            message,
            seconds,
        });
    }

    fn lines(&self, check: &str, hub: &Arc<Hub>) -> Line {
        let (check, hub) = (check.to_owned(), Arc::clone(hub));
        Arc::new(move |line| {
            hub.tell(RunEvent::Check {
                at: now(),
                check: check.clone(),
                status: CheckStatus::Output,
                message: Some(line),
                seconds: None,
            });
        })
    }
}
