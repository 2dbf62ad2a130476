//! A program in its own process, as the deployment sees it.
//!
//! A program has two ends. It has asked for everything when it announces its end, or, with an SDK
//! too old for that, when it exits. It is gone when its process group is. How it ended is judged
//! from both sides, its exit code and the monitor's own book, because the code alone lies: an SDK
//! may exit with zero after a failed registration.

use std::sync::Arc;

use async_trait::async_trait;
use nimbus_engine_monitor::{Completion, MonitorPorts, MonitorServer, MonitorSettings};
use nimbus_engine_ports::{
    DeploymentContext, Diagnostic, EngineEvent, Program, ProgramError, Registrar, Severity,
};
use nimbus_engine_process::Exit;
use parking_lot::Mutex;
use tokio::process::Command;
use tokio::time::timeout;

use crate::entry::Entry;
use crate::error::LaunchError;
use crate::node::NodeLaunch;
use crate::process::ProgramProcess;
use crate::python::PythonLaunch;
use crate::spec::{ProgramPorts, ProgramSpec, Runtime};

/// The exit code of a program that failed and has told the engine why.
const REPORTED: i32 = 32;

pub struct LanguageProgram {
    spec: ProgramSpec,
    ports: ProgramPorts,
    entry: Entry,
    launch: Launch,
    /// A program that has asked for everything and waits to be let go.
    waiting: Mutex<Option<Running>>,
}

#[derive(Clone, Debug)]
enum Launch {
    Node(NodeLaunch),
    Python(PythonLaunch),
}

/// A process and the monitor that it talks to. Dropped, both are gone.
struct Running {
    process: ProgramProcess,
    server: MonitorServer,
}

/// Why the program is not running any more.
enum End {
    Announced,
    Exited(Exit),
    /// The monitor turned it away after a failure.
    Aborted,
    Cancelled,
}

impl LanguageProgram {
    /// Finds everything that is needed to run the program. Nothing is started yet, so what is
    /// missing is known before anything is changed.
    pub async fn prepare(spec: ProgramSpec, ports: ProgramPorts) -> Result<Self, LaunchError> {
        let entry = Entry::find(&spec.root, spec.main.as_deref())?;
        let launch = match spec.runtime {
            Runtime::Node => Launch::Node(NodeLaunch::prepare(&spec, &entry).await?),
            Runtime::Python => Launch::Python(PythonLaunch::prepare(&spec, &entry).await?),
        };
        Ok(Self {
            spec,
            ports,
            entry,
            launch,
            waiting: Mutex::default(),
        })
    }

    async fn start(&self, registrar: Arc<dyn Registrar>) -> Result<Running, LaunchError> {
        let settings = MonitorSettings {
            context: self.spec.context.clone(),
            project_root: self.spec.root.clone(),
            program_dir: self.entry.directory.clone(),
            packages: self.spec.packages.clone(),
        };
        let ports = MonitorPorts {
            registrar,
            events: Arc::clone(&self.ports.events),
            hooks: Arc::clone(&self.ports.hooks),
            assets: Arc::clone(&self.ports.assets),
            resources: Arc::clone(&self.ports.resources),
        };
        let failed = |what: &str| {
            let what = what.to_owned();
            move |source| LaunchError::NotStarted { what, source }
        };
        let server = MonitorServer::start(&self.spec.listen, settings, ports).await;
        let server = server.map_err(failed("the monitor"))?;
        let command = self.command(server.monitor().context());
        let process = ProgramProcess::start(command, &self.ports.events).await;
        let process = process.map_err(failed("the program"))?;
        Ok(Running { process, server })
    }

    fn command(&self, context: &DeploymentContext) -> Command {
        let mut command = match &self.launch {
            Launch::Node(launch) => launch.command(&self.spec, &self.entry, context),
            Launch::Python(launch) => launch.command(&self.spec, &self.entry, context),
        };
        command.current_dir(&self.entry.directory);
        command
    }

    async fn until_end(&self, running: &mut Running) -> End {
        let monitor = running.server.monitor();
        tokio::select! {
            biased;
            () = self.ports.cancel.cancelled() => End::Cancelled,
            () = monitor.aborted() => End::Aborted,
            () = monitor.end_announced() => End::Announced,
            exit = running.process.wait() => End::Exited(exit),
        }
    }

    /// Ends what is left of a program and says how it ended.
    async fn conclude(&self, mut running: Running, end: End) -> Result<(), ProgramError> {
        let grace = self.spec.grace;
        let exit = match end {
            End::Cancelled => {
                running.server.monitor().abort();
                running.process.end(grace).await;
                running.server.stop().await;
                return Err(ProgramError::Cancelled);
            }
            End::Exited(exit) => exit,
            End::Aborted | End::Announced => {
                running.server.monitor().release();
                match timeout(grace, running.process.wait()).await {
                    Ok(exit) => exit,
                    Err(_) => {
                        self.warn("the program did not end by itself and was made to");
                        running.process.end(grace).await;
                        // It was done; how long it would have lingered is not its result.
                        Exit::Code(0)
                    }
                }
            }
        };
        let completion = running.server.monitor().completion();
        let last_errors = running.process.last_errors();
        running.server.stop().await;
        judge(&exit, completion, &last_errors)
    }

    fn warn(&self, message: &str) {
        self.ports.events.emit(EngineEvent::Diagnostic(Diagnostic {
            severity: Severity::Warning,
            urn: None,
            message: message.to_owned(),
            stream_id: 0,
            ephemeral: false,
        }));
    }
}

#[async_trait]
impl Program for LanguageProgram {
    async fn run(&self, registrar: Arc<dyn Registrar>) -> Result<(), ProgramError> {
        let running = self.start(registrar).await;
        let mut running = running.map_err(|error| ProgramError::Failed {
            message: format!("{error}; {}", error.help()),
        })?;
        let end = self.until_end(&mut running).await;
        let complete = running.server.monitor().completion() == Completion::Complete;
        if matches!(end, End::Announced) && complete {
            *self.waiting.lock() = Some(running);
            return Ok(());
        }
        self.conclude(running, end).await
    }

    async fn finish(&self) -> Result<(), ProgramError> {
        let waiting = self.waiting.lock().take();
        let Some(running) = waiting else {
            return Ok(());
        };
        let end = if self.ports.cancel.is_cancelled() {
            End::Cancelled
        } else {
            End::Announced
        };
        self.conclude(running, end).await
    }
}

fn judge(exit: &Exit, completion: Completion, last_errors: &[String]) -> Result<(), ProgramError> {
    if completion == Completion::Failed || *exit == Exit::Code(REPORTED) {
        return Err(ProgramError::AlreadyReported);
    }
    let failed = |message: String| Err(ProgramError::Failed { message });
    match (exit, completion) {
        (Exit::Code(0), Completion::Complete) => Ok(()),
        (Exit::Code(0), Completion::NoStack) => {
            failed("the program ended without registering its stack".to_owned())
        }
        (Exit::Code(0), _) => failed(
            "the program ended before it had asked for everything it wants, so nothing is deleted \
             on its account"
                .to_owned(),
        ),
        (exit, _) => failed(with_errors(
            format!("the program ended ({exit})"),
            last_errors,
        )),
    }
}

/// A program that fails without telling the engine has told somebody else.
fn with_errors(mut message: String, last_errors: &[String]) -> String {
    if !last_errors.is_empty() {
        message.push_str("; the last it wrote to standard error:\n");
        message.push_str(&last_errors.join("\n"));
    }
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(exit: Exit, completion: Completion) -> Result<(), String> {
        judge(&exit, completion, &["Error: boom".to_owned()]).map_err(|error| match error {
            ProgramError::AlreadyReported => "reported".to_owned(),
            ProgramError::Cancelled => "cancelled".to_owned(),
            ProgramError::Failed { message } => message,
        })
    }

    #[test]
    fn success_takes_exit_code_and_book() {
        assert_eq!(judged(Exit::Code(0), Completion::Complete), Ok(()));
        for (exit, completion) in [
            (Exit::Code(0), Completion::Failed),
            (Exit::Code(0), Completion::NoStack),
            (Exit::Code(0), Completion::EndedEarly),
            (Exit::Code(1), Completion::Complete),
            (Exit::Code(32), Completion::Complete),
            (Exit::Signal(9), Completion::Complete),
        ] {
            assert!(
                judged(exit, completion).is_err(),
                "{exit:?} {completion:?}"
            );
        }
    }

    #[test]
    fn what_was_said_already_is_not_said_again() {
        assert_eq!(
            judged(Exit::Code(32), Completion::NoStack),
            Err("reported".to_owned())
        );
        assert_eq!(
            judged(Exit::Code(1), Completion::Failed),
            Err("reported".to_owned())
        );
    }

    #[test]
    fn a_silent_failure_is_explained_by_what_was_printed() {
        let message = judged(Exit::Code(1), Completion::NoStack).expect_err("it failed");
        assert!(
            message.contains("exit code 1") && message.ends_with("Error: boom"),
            "{message}"
        );
        let message = judged(Exit::Signal(9), Completion::EndedEarly).expect_err("it was killed");
        assert!(message.contains("SIGKILL"), "{message}");
    }
}
