//! A program in its own process, as the deployment sees it.
//!
//! A program has two ends. It has asked for everything when it announces its end, or, with an SDK
//! too old for that, when it exits. It is gone when its process group is. How it ended is judged
//! from both sides, its exit code and the monitor's own book, because the code alone lies: an SDK
//! may exit with zero after a failed registration.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use nimbus_engine_monitor::{Completion, MonitorPorts, MonitorServer, MonitorSettings};
use nimbus_engine_ports::{
    DeploymentContext, Diagnostic, EngineEvent, Program, ProgramError, Registrar, Severity,
};
use nimbus_engine_process::Exit;
use nimbus_engine_sandbox::{Interpreter, Readable, SandboxError, code_of_program};
use parking_lot::Mutex;
use tokio::process::Command;
use tokio::time::timeout;

use crate::check::TypeVerdict;
use crate::enclosure::Enclosure;
use crate::entry::ProgramEntry;
use crate::error::LaunchError;
use crate::gate::TypeCheckGate;
use crate::node::NodeLaunch;
use crate::process::ProgramProcess;
use crate::python::PythonLaunch;
use crate::spec::{ProgramPorts, ProgramSpec, Runtime};
use crate::warm::Spare;

/// The exit code of a program that failed and has told the engine why.
const REPORTED: i32 = 32;

pub struct LanguageProgram {
    spec: ProgramSpec,
    ports: ProgramPorts,
    entry: ProgramEntry,
    launch: ProgramLaunch,
    /// A program that has asked for everything and waits to be let go.
    waiting: Mutex<Option<RunningProgram>>,
}

#[derive(Clone, Debug)]
enum ProgramLaunch {
    Node(Box<NodeLaunch>),
    Python(PythonLaunch),
}

impl ProgramLaunch {
    /// Which interpreter runs the program, and who chose it.
    fn interpreter(&self) -> Interpreter<'_> {
        match self {
            Self::Node(launch) => Interpreter::Operators(launch.node()),
            Self::Python(launch) => launch.interpreter(),
        }
    }

    /// What the process reads besides the program and what is installed for it.
    fn reads(&self) -> Vec<PathBuf> {
        match self {
            Self::Node(launch) => launch.reads(),
            Self::Python(_) => Vec::new(),
        }
    }
}

/// A process and the monitor that it talks to. Dropped, both are gone.
struct RunningProgram {
    process: ProgramProcess,
    server: MonitorServer,
    /// Where it runs, if it is in a sandbox.
    enclosure: Option<Enclosure>,
}

/// Why the program is not running any more.
enum ProgramExit {
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
        let entry = ProgramEntry::find(&spec.files, &spec.root, spec.main.as_deref())?;
        if spec.files.is_restricted() {
            // Where it leads out is said before anything of it is looked at.
            code_of_program(&spec.files, &spec.root, &entry.directory)?;
        }
        let prepared = async {
            Ok::<_, LaunchError>(match spec.runtime {
                Runtime::Node => {
                    ProgramLaunch::Node(Box::new(NodeLaunch::prepare(&spec, &entry).await?))
                }
                Runtime::Python => {
                    ProgramLaunch::Python(PythonLaunch::prepare(&spec, &entry).await?)
                }
            })
        };
        // Some of it waits for processes that read what the project brought, which need not answer.
        let launch = tokio::select! {
            launch = prepared => launch?,
            () = ports.cancel.cancelled() => {
                let source = io::Error::new(io::ErrorKind::Interrupted, "the run was cancelled");
                let what = "the program".to_owned();
                return Err(LaunchError::NotStarted { what, source });
            }
        };
        Ok(Self {
            spec,
            ports,
            entry,
            launch,
            waiting: Mutex::default(),
        })
    }

    /// Why the program's TypeScript is compiled by the SDK, if it is.
    pub fn left_to_sdk(&self) -> Option<&str> {
        match &self.launch {
            ProgramLaunch::Node(launch) => launch.left_to_sdk(),
            ProgramLaunch::Python(_) => None,
        }
    }

    async fn start(
        &self,
        launch: &ProgramLaunch,
        registrar: Arc<dyn Registrar>,
    ) -> Result<RunningProgram, LaunchError> {
        let mut enclosure = self.enclosure()?;
        let visible = match &enclosure {
            Some(enclosure) => Some(self.visible(enclosure, launch)?),
            None => None,
        };
        let confined = match (&enclosure, &visible) {
            (Some(enclosure), Some(visible)) => {
                Some(enclosure.confinement(&self.spec, &self.entry, visible)?)
            }
            _ => None,
        };
        let events = match &enclosure {
            Some(enclosure) => enclosure.events(),
            None => Arc::clone(&self.ports.events),
        };
        let settings = MonitorSettings {
            context: self.spec.context.clone(),
            project_root: self.spec.root.clone(),
            program_dir: self.entry.directory.clone(),
            packages: self.spec.packages.clone(),
            confinement: confined,
        };
        let ports = MonitorPorts {
            registrar,
            events: Arc::clone(&events),
            hooks: Arc::clone(&self.ports.hooks),
            assets: Arc::clone(&self.ports.assets),
            resources: Arc::clone(&self.ports.resources),
        };
        let failed = |what: &str| {
            let what = what.to_owned();
            move |source| LaunchError::NotStarted { what, source }
        };
        let listen = enclosure.as_ref().map(Enclosure::listen);
        let listen = listen.unwrap_or_else(|| self.spec.listen.clone());
        let server = MonitorServer::start(&listen, settings, ports).await;
        let server = server.map_err(failed("the monitor"))?;
        let mut command = self.command(launch, server.monitor().context());
        let mut most_output = u64::MAX;
        if let (Some(enclosure), Some(visible)) = (&mut enclosure, visible) {
            most_output = enclosure.most_output();
            command = enclosure.enclose(&command, &visible.and(launch.reads()))?;
        }
        let process = match self.started_ahead(launch, &command) {
            Some(spare) => ProgramProcess::adopt(spare, &events, most_output),
            None => {
                let process =
                    ProgramProcess::start(command, self.spec.origin(), &events, most_output).await;
                process.map_err(failed("the program"))?
            }
        };
        Ok(RunningProgram {
            process,
            server,
            enclosure,
        })
    }

    /// What the program is shown, of which the engine reads for it.
    fn visible(
        &self,
        enclosure: &Enclosure,
        launch: &ProgramLaunch,
    ) -> Result<Readable, SandboxError> {
        let (root, directory) = (&self.spec.root, &self.entry.directory);
        enclosure.view(&self.spec.files, root, directory, launch.interpreter())
    }

    /// A process that only waits for such a program, if there is one.
    fn started_ahead(&self, launch: &ProgramLaunch, command: &Command) -> Option<Spare> {
        let ProgramLaunch::Node(launch) = launch else {
            return None;
        };
        let kind = launch.kind(&self.spec)?;
        self.spec.warm.as_ref()?.start(&kind, command)
    }

    fn enclosure(&self) -> Result<Option<Enclosure>, LaunchError> {
        let open = |sandbox| Enclosure::open(sandbox, Arc::clone(&self.ports.events));
        Ok(self.spec.sandbox.as_ref().map(open).transpose()?)
    }

    fn command(&self, launch: &ProgramLaunch, context: &DeploymentContext) -> Command {
        let mut command = match launch {
            ProgramLaunch::Node(launch) => launch.command(&self.spec, &self.entry, context),
            ProgramLaunch::Python(launch) => launch.command(&self.spec, &self.entry, context),
        };
        command.current_dir(&self.entry.directory);
        command
    }

    /// Runs the program until it has asked for everything, or is turned away at the gate.
    async fn run_as(
        &self,
        launch: &ProgramLaunch,
        registrar: Arc<dyn Registrar>,
        gate: Option<&TypeCheckGate>,
    ) -> Result<(), ProgramError> {
        let running = self.start(launch, registrar).await;
        let mut running = running.map_err(|error| ProgramError::Failed {
            message: format!("{error}; {}", error.help()),
        })?;
        let mut end = tokio::select! {
            end = self.until_end(&mut running) => end,
            () = denied(gate) => ProgramExit::Aborted,
        };
        let told = match gate {
            // Whoever cancels does not wait for the check either.
            Some(gate) => tokio::select! {
                biased;
                () = self.ports.cancel.cancelled() => {
                    end = ProgramExit::Cancelled;
                    None
                }
                told = self.turned_away(gate) => told,
            },
            None => None,
        };
        if let Some(told) = told {
            running.server.monitor().abort();
            running.process.end(self.spec.grace).await;
            running.server.stop().await;
            return told;
        }
        let complete = running.server.monitor().completion() == Completion::Complete;
        if matches!(end, ProgramExit::Announced) && complete {
            *self.waiting.lock() = Some(running);
            return Ok(());
        }
        self.conclude(running, end).await
    }

    /// How the program is started when it must be compiled as a whole, and what that depends on.
    fn check(
        &self,
    ) -> Option<(
        ProgramLaunch,
        impl Future<Output = TypeVerdict> + Send + use<>,
    )> {
        let ProgramLaunch::Node(launch) = &self.launch else {
            return None;
        };
        let request = launch.check()?.clone();
        let checker = Arc::clone(self.spec.checker.as_ref()?);
        let by_sdk = ProgramLaunch::Node(Box::new(
            launch.by_sdk("the program must be compiled as a whole"),
        ));
        Some((by_sdk, async move { checker.check(&request).await }))
    }

    /// Says what is wrong with the program's types. `None` when nothing is.
    async fn turned_away(&self, gate: &TypeCheckGate) -> Option<Result<(), ProgramError>> {
        match gate.verdict().await {
            TypeVerdict::Passed => return None,
            TypeVerdict::Failed(problems) => {
                for problem in &problems {
                    self.tell(Severity::Error, &problem.to_string());
                }
            }
            TypeVerdict::Whole => tracing::info!(
                "the program must be compiled as a whole and starts again, compiled by the SDK"
            ),
            TypeVerdict::Unavailable(reason) => tracing::warn!(
                %reason, "types could not be checked; the program starts again, compiled by the SDK"
            ),
        }
        Some(Err(ProgramError::AlreadyReported))
    }

    async fn until_end(&self, running: &mut RunningProgram) -> ProgramExit {
        let monitor = running.server.monitor();
        tokio::select! {
            biased;
            () = self.ports.cancel.cancelled() => ProgramExit::Cancelled,
            () = monitor.aborted() => ProgramExit::Aborted,
            () = monitor.end_announced() => ProgramExit::Announced,
            exit = running.process.wait() => ProgramExit::Exited(exit),
        }
    }

    /// Ends what is left of a program and says how it ended.
    async fn conclude(
        &self,
        mut running: RunningProgram,
        end: ProgramExit,
    ) -> Result<(), ProgramError> {
        let grace = self.spec.grace;
        let exit = match end {
            ProgramExit::Cancelled => {
                running.server.monitor().abort();
                running.process.end(grace).await;
                running.server.stop().await;
                return Err(ProgramError::Cancelled);
            }
            ProgramExit::Exited(exit) => exit,
            ProgramExit::Aborted | ProgramExit::Announced => {
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
        let judged = judge(&exit, completion, &last_errors);
        match &running.enclosure {
            Some(enclosure) => enclosure.judge(judged, &running.process),
            None => judged,
        }
    }

    fn warn(&self, message: &str) {
        self.tell(Severity::Warning, message);
    }

    fn tell(&self, severity: Severity, message: &str) {
        self.ports.events.emit(EngineEvent::Diagnostic(Diagnostic {
            severity,
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
        match self.check() {
            None => self.run_as(&self.launch, registrar, None).await,
            Some((launch, check)) => {
                let gate = TypeCheckGate::before(Arc::clone(&registrar), check);
                let held = Arc::clone(&gate) as _;
                match self.run_as(&self.launch, held, Some(&gate)).await {
                    Err(ProgramError::AlreadyReported) if gate.wants_whole_program() => {
                        self.run_as(&launch, registrar, None).await
                    }
                    ended => ended,
                }
            }
        }
    }

    async fn finish(&self) -> Result<(), ProgramError> {
        let waiting = self.waiting.lock().take();
        let Some(running) = waiting else {
            return Ok(());
        };
        let end = if self.ports.cancel.is_cancelled() {
            ProgramExit::Cancelled
        } else {
            ProgramExit::Announced
        };
        self.conclude(running, end).await
    }
}

async fn denied(gate: Option<&TypeCheckGate>) {
    match gate {
        Some(gate) => gate.denied().await,
        None => std::future::pending().await,
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
            assert!(judged(exit, completion).is_err(), "{exit:?} {completion:?}");
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
