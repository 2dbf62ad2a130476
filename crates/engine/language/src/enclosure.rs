//! A program in a sandbox: the session that it runs in, and what that has to do with how it ended.

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use nimbus_engine_files::ProjectFiles;
use nimbus_engine_monitor::{Confinement, Dial, Listen, RequestLimits};
use nimbus_engine_ports::{EngineEvent, EventSink, ProgramError, Severity};
use nimbus_engine_sandbox::{
    Dialer, ExceededLimit, Interpreter, Intervention, Readable, Sandbox, SandboxError,
    SandboxSession, explain,
};
use parking_lot::Mutex;
use tokio::net::TcpStream;
use tokio::process::Command;

use crate::entry::ProgramEntry;
use crate::process::ProgramProcess;
use crate::spec::ProgramSpec;

pub(crate) struct Enclosure {
    session: SandboxSession,
    overheard: Arc<SandboxHintSink>,
}

impl Enclosure {
    /// A session, and in front of the events somebody who listens for what the sandbox explains.
    pub(crate) fn open(
        sandbox: &Sandbox,
        events: Arc<dyn EventSink>,
    ) -> Result<Self, SandboxError> {
        let session = sandbox.open()?;
        let overheard = Arc::new(SandboxHintSink {
            events,
            policy: session.policy().clone(),
            hint: Mutex::default(),
        });
        Ok(Self { session, overheard })
    }

    pub(crate) fn listen(&self) -> Listen {
        Listen::UnixSocket(self.session.socket())
    }

    pub(crate) fn events(&self) -> Arc<dyn EventSink> {
        Arc::clone(&self.overheard) as _
    }

    pub(crate) fn most_output(&self) -> u64 {
        self.session.policy().limits.output_bytes
    }

    /// What the engine does not do for a program in here. A stranger's has its own files and what it is
    /// shown. For a program of one's own, its code may be anywhere, and what it uses as assets lies
    /// there, in the project or in the operator's roots.
    pub(crate) fn confinement(
        &self,
        spec: &ProgramSpec,
        entry: &ProgramEntry,
        visible: &Readable,
    ) -> Result<Confinement, SandboxError> {
        let files = match spec.files.is_restricted() {
            true => spec.files.only(&visible.exact),
            false => {
                let mut roots = spec.readable.clone();
                roots.push(entry.directory.clone());
                ProjectFiles::beneath(&spec.root, &roots)?
            }
        };
        Ok(Confinement {
            files,
            dial: self
                .session
                .dialer()
                .map(|dialer| Arc::new(Inside(dialer)) as _),
            requests: RequestLimits::of_total(self.session.policy().limits.request_bytes),
        })
    }

    /// What a program is shown in here, which is also what an audit looks at.
    pub(crate) fn view(
        &self,
        files: &ProjectFiles,
        root: &Path,
        directory: &Path,
        interpreter: Interpreter<'_>,
    ) -> Result<Readable, SandboxError> {
        let sandbox = self.session.sandbox();
        sandbox.view(files, root, directory, interpreter)
    }

    /// The command in the session.
    pub(crate) fn enclose(
        &mut self,
        command: &Command,
        readable: &Readable,
    ) -> Result<Command, SandboxError> {
        let enclosed = self.session.enclose(command.as_std(), readable, &[]);
        enclosed.map(Command::from)
    }

    /// How the program ended, with what the sandbox knows about it.
    pub(crate) fn judge(
        &self,
        judged: Result<(), ProgramError>,
        process: &ProgramProcess,
    ) -> Result<(), ProgramError> {
        if process.flooded() {
            let bytes = self.most_output();
            return Err(stopped(ExceededLimit::Output { bytes }));
        }
        match self.session.intervention() {
            Some(Intervention::Stopped(cause)) => return Err(stopped(cause)),
            Some(Intervention::NotRun { step, reason }) => {
                let error = SandboxError::Setup { step, reason };
                let message = format!("{error}; {}", error.help());
                return Err(ProgramError::Failed { message });
            }
            None => {}
        }
        match judged {
            Err(ProgramError::Failed { message }) => {
                let overheard = *self.overheard.hint.lock();
                let hint = self.session.explain(&message).or(overheard);
                let message = match hint {
                    Some(hint) => format!("{message}\n{hint}"),
                    None => message,
                };
                Err(ProgramError::Failed { message })
            }
            Err(ProgramError::AlreadyReported) => {
                if let Some(hint) = *self.overheard.hint.lock() {
                    self.overheard.explain(hint);
                }
                Err(ProgramError::AlreadyReported)
            }
            other => other,
        }
    }
}

fn stopped(cause: ExceededLimit) -> ProgramError {
    let message = format!("the program was stopped: {cause}");
    ProgramError::Failed { message }
}

/// Connections into a sandbox are made by its helper.
struct Inside(Dialer);

impl fmt::Debug for Inside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Inside")
    }
}

#[async_trait]
impl Dial for Inside {
    async fn dial(&self, port: u16) -> io::Result<TcpStream> {
        let dialer = self.0.clone();
        let connected = tokio::task::spawn_blocking(move || dialer.connect(port));
        let connection = connected.await.map_err(io::Error::other)??;
        connection.set_nonblocking(true)?;
        TcpStream::from_std(connection)
    }
}

/// Passes events on and remembers what the sandbox has to say about the errors among them.
struct SandboxHintSink {
    events: Arc<dyn EventSink>,
    policy: nimbus_engine_sandbox::SandboxPolicy,
    hint: Mutex<Option<&'static str>>,
}

impl SandboxHintSink {
    fn explain(&self, hint: &str) {
        self.events
            .emit(EngineEvent::Diagnostic(nimbus_engine_ports::Diagnostic {
                severity: Severity::Warning,
                urn: None,
                message: hint.to_owned(),
                stream_id: 0,
                ephemeral: false,
            }));
    }
}

impl EventSink for SandboxHintSink {
    fn emit(&self, event: EngineEvent) {
        if let EngineEvent::Diagnostic(diagnostic) = &event {
            let found = explain(&diagnostic.message, &self.policy);
            if found.is_some() {
                *self.hint.lock() = found;
            }
        }
        self.events.emit(event);
    }
}
