//! The process of the official command line: started, followed by its event log, stopped, and cleaned up after.

use std::collections::HashMap;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use nimbus_core::{Error, ErrorCode, Result};
use nimbus_engine_model::{PropertyMap, ROOT_STACK_TYPE, Urn};
use nimbus_engine_ports::{EngineEvent, EventSink, FailureCause, Severity, Summary};
use nimbus_engine_process::{
    ChildProcess, CodeIsolation, CodeOrigin, Exit, OutputLines, Signal, Tail,
};
use uuid::Uuid;

use super::arguments::{self, CliLocation};
use super::copy::WorkspaceCopy;
use super::events::{self, Logged};
use super::follow::LineReader;
use super::outcome::ObservedOperation;
use super::simulated_providers::{self, SimulatedProviders};
use super::{OfficialOperation, reap, surroundings};
use crate::workspace::{BACKEND_VARIABLE, backend_address};

/// How often the event log is looked at.
const GLANCE: Duration = Duration::from_millis(50);
/// How long pipes and clean-ups may take after the end.
const PATIENCE: Duration = Duration::from_secs(30);

/// What a child left when it had gone.
pub(super) struct ExitedChild {
    pub(super) exit: Exit,
    pub(super) seen: ObservedOperation,
    pub(super) written: String,
    pub(super) killed: bool,
    pub(super) summary: Option<Summary>,
    /// Outputs of the stack as events told them.
    pub(super) outputs: PropertyMap,
}

impl OfficialOperation<'_> {
    pub(super) async fn run_child(
        &self,
        copy: Option<&WorkspaceCopy>,
        stage: Option<&SimulatedProviders>,
    ) -> Result<ExitedChild> {
        let scratch = simulated_providers::empty_folder()?;
        let log = scratch.path().join("events.json");
        let directory = match copy {
            Some(copy) => copy.directory(),
            None => self.workspace.project.directory(),
        };
        let stack = self.workspace.access.name.to_string();
        let place = CliLocation {
            directory,
            stack: &stack,
            config: copy.map(WorkspaceCopy::config),
            log: &log,
        };
        let arguments = arguments::arguments(self.request, &place)?;
        let mark = Uuid::new_v4().to_string();
        let mut command = self.command(directory)?;
        command.args(&arguments).env(reap::MARK, &mark);
        if let Some(stage) = stage {
            stage.lead(&mut command);
        }
        let ended = self.follow(command, &log).await;
        // Plugins of a child that was killed do not know that nobody needs them any more.
        let marked = tokio::task::spawn_blocking(move || reap::kill_marked(&mark));
        let _ = marked.await;
        let ended = ended?;
        if ended.killed {
            self.cancel(directory, &stack).await?;
        }
        Ok(ended)
    }

    fn command(&self, directory: &Path) -> Result<Command> {
        let mut command = Command::new(&self.cli.program);
        surroundings(&mut command, self.environment);
        let project = Some(&self.workspace.project);
        let backend = backend_address(&self.request.location.states(), project, self.environment)?;
        command
            .current_dir(directory)
            .env(BACKEND_VARIABLE, backend)
            .env("PULUMI_SKIP_UPDATE_CHECK", "true")
            // Without it there is no --event-log.
            .env("PULUMI_DEBUG_COMMANDS", "true");
        if self.request.options.transpile_only {
            command.env("PULUMI_NODEJS_TRANSPILE_ONLY", "true");
        }
        Ok(command)
    }

    /// Passes events on until the child has gone.
    async fn follow(&self, command: Command, log: &Path) -> Result<ExitedChild> {
        let origin = CodeOrigin::Tenants(CodeIsolation::OwnProject);
        let started = ChildProcess::start(command, origin)
            .await
            .map_err(|error| {
                let message = format!("{} cannot be started: {error}", self.cli.program.display());
                Error::new(ErrorCode::OFFICIAL_CLI_UNUSABLE, message).with_source(error)
            })?;
        let tail = Arc::new(Tail::default());
        let mut pumps = [
            // What people would see is told by the events.
            OutputLines::start(started.stdout, |_| ()),
            OutputLines::start(started.stderr, {
                let tail = Arc::clone(&tail);
                move |line| tail.push(line)
            }),
        ];
        let process = started.process;
        let mut logged = EventLogState::default();
        let mut follower = LineReader::new(log);
        let (exit, killed) = self.watch(&process, &mut follower, &mut logged).await;
        for pump in &mut pumps {
            pump.drain(PATIENCE).await;
        }
        logged.take(&mut follower, self.events.as_ref());
        Ok(ExitedChild {
            exit,
            seen: logged.seen,
            written: tail.text(),
            killed,
            summary: logged.summary,
            outputs: logged.outputs,
        })
    }

    /// How it ended, and whether we killed it.
    async fn watch(
        &self,
        process: &ChildProcess,
        follower: &mut LineReader,
        logged: &mut EventLogState,
    ) -> (Exit, bool) {
        let mut asked = false;
        loop {
            tokio::select! {
                exit = process.ended() => return (exit, false),
                () = self.cancellation.killed() => {
                    process.signal(Signal::SIGKILL);
                    return (process.ended().await, true);
                }
                () = self.cancellation.stop_token().cancelled(), if !asked => {
                    // Once: it takes a second one for an order to drop everything.
                    process.signal(Signal::SIGINT);
                    asked = true;
                }
                () = tokio::time::sleep(GLANCE) => logged.take(follower, self.events.as_ref()),
            }
        }
    }

    /// Frees the stack of a child that was killed and cannot do it itself.
    async fn cancel(&self, directory: &Path, stack: &str) -> Result<()> {
        let mut command = self.command(directory)?;
        command.args(["cancel", "--yes", "--non-interactive", "--stack", stack]);
        if let Ok(started) = ChildProcess::start(command, CodeOrigin::Operators).await {
            let _drained = [
                OutputLines::start(started.stdout, |_| ()),
                OutputLines::start(started.stderr, |_| ()),
            ];
            // If it cannot, the lock stays and says who left it.
            let _ = tokio::time::timeout(PATIENCE, started.process.ended()).await;
        }
        Ok(())
    }
}

/// What the event log has said so far.
#[derive(Default)]
struct EventLogState {
    seen: ObservedOperation,
    /// Kept until the exit code is known.
    summary: Option<Summary>,
    outputs: PropertyMap,
    /// Of resources, by what their errors say. The log has no cause of its own.
    causes: HashMap<Urn, FailureCause>,
}

impl EventLogState {
    fn take(&mut self, follower: &mut LineReader, events: &dyn EventSink) {
        for line in follower.lines() {
            let Logged::Event(event) = events::parse(&line) else {
                continue;
            };
            self.seen.note(&event);
            match event {
                EngineEvent::Summary(summary) => self.summary = Some(summary),
                // What is wrong with a resource is said before that its step failed.
                EngineEvent::Diagnostic(said) => {
                    if let Some(urn) = said
                        .urn
                        .as_ref()
                        .filter(|_| said.severity == Severity::Error)
                    {
                        let cause = FailureCause::of_provider_text(&said.message);
                        self.causes.insert(urn.clone(), cause);
                    }
                    events.emit(EngineEvent::Diagnostic(said));
                }
                EngineEvent::ResourceFailed { step, planning, .. } => {
                    let cause = self.causes.get(&step.urn).copied().unwrap_or_default();
                    events.emit(EngineEvent::ResourceFailed {
                        step,
                        planning,
                        cause,
                    });
                }
                EngineEvent::ResourceOutputs { step, planning } => {
                    if let Some(new) = step.new.as_ref().filter(|new| is_root(&new.type_)) {
                        self.outputs = new.outputs.clone();
                    }
                    events.emit(EngineEvent::ResourceOutputs { step, planning });
                }
                event => events.emit(event),
            }
        }
    }
}

fn is_root(type_: &str) -> bool {
    type_ == ROOT_STACK_TYPE
}
