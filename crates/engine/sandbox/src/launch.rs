//! The engine's side: a session per run, the command that starts the helper in it, and what the helper
//! had to say.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, IoSliceMut, Read as _, Write as _};
use std::net::TcpStream;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::os::unix::fs::DirBuilderExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use nimbus_engine_files::ProjectFiles;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg};
use tempfile::TempDir;

use crate::cgroup::{Cgroup, Offer};
use crate::environment;
use crate::error::SandboxError;
use crate::paths::{Interpreter, Readable, readable_by_program};
use crate::plan::{HelperPlan, Measures};
use crate::policy::{Allowances, IsolationMode, ProgramNetwork, ResourceLimits, SandboxPolicy};
use crate::probe::{Probe, Tried};
use crate::verdict::{ExceededLimit, HelperReport, explain};

/// The first argument that makes a program the helper.
pub(crate) const HELPER: &str = "internal-sandbox";
pub(crate) const OBSERVE: &str = "observe";
pub(crate) const PROBE: &str = "probe";
pub(crate) const RUN: &str = "run";

/// The program that becomes the helper: the one that is running, outside of tests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Helper {
    program: PathBuf,
}

impl Helper {
    /// A program that calls [`crate::help`] before it does anything else.
    pub fn at(program: impl Into<PathBuf>) -> Self {
        Self {
            program: program.into(),
        }
    }

    /// The program that is running.
    pub fn this_program() -> io::Result<Self> {
        // The link stays good when the file is replaced by an upgrade while we run.
        let own = Path::new("/proc/self/exe");
        match own.exists() {
            true => Ok(Self::at(format!("/proc/{}/exe", std::process::id()))),
            false => std::env::current_exe().map(Self::at),
        }
    }

    pub(crate) fn probe(&self) -> Result<Tried, String> {
        let answer = Command::new(&self.program)
            .args([HELPER, PROBE])
            .env_clear()
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            // tidy-allow(start): our own program, which closes the sandbox
            .output()
            .map_err(|error| error.to_string())?;
        serde_json::from_slice(&answer.stdout).map_err(|_| "the helper did not answer".to_owned())
    }
}

/// What is asked of a sandbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SandboxSettings {
    pub mode: IsolationMode,
    pub network: ProgramNetwork,
    pub limits: ResourceLimits,
    /// Names of variables that programs get beside the usual ones.
    pub environment: Vec<String>,
    /// Folders of the operator that strangers' projects may lead into.
    pub roots: Vec<PathBuf>,
    /// What else of the operator's they may use.
    pub allowances: Allowances,
}

impl SandboxSettings {
    /// Whether programs are strangers'.
    pub fn is_strict(&self) -> bool {
        matches!(self.mode, IsolationMode::Strict { .. })
    }

    /// Opens files for a project: for a stranger's only its own and those in the operator's roots.
    pub fn files_of(&self, project: &Path) -> Result<ProjectFiles, SandboxError> {
        match self.mode {
            IsolationMode::Strict { .. } => Ok(ProjectFiles::beneath(project, &self.roots)?),
            IsolationMode::BestEffort => Ok(ProjectFiles::unrestricted()),
        }
    }
}

/// How programs are run on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sandbox {
    helper: Helper,
    settings: SandboxSettings,
    measures: Measures,
    cgroup: Option<PathBuf>,
}

impl Sandbox {
    /// Decides what is done, or that nothing is run.
    pub fn new(
        helper: Helper,
        probe: &Probe,
        settings: SandboxSettings,
    ) -> Result<Self, SandboxError> {
        if !cfg!(target_os = "linux") {
            let missing = probe.missing();
            return Err(SandboxError::Weak { missing });
        }
        let measures = Measures::choose(probe, settings.mode, settings.network)?;
        let cgroup = match &probe.cgroup {
            Offer::Delegated { parent } => Some(parent.clone()),
            Offer::Missing { .. } => None,
        };
        Ok(Self {
            helper,
            settings,
            measures,
            cgroup,
        })
    }

    pub fn network(&self) -> ProgramNetwork {
        self.settings.network
    }

    /// The same for what serves a program and needs no network, whatever the program has.
    #[must_use]
    pub fn without_network(&self) -> Self {
        let mut alone = self.clone();
        alone.settings.network = ProgramNetwork::None;
        alone
    }

    /// Whether its programs are strangers'.
    pub fn is_strict(&self) -> bool {
        self.settings.is_strict()
    }

    pub fn limits(&self) -> &ResourceLimits {
        &self.settings.limits
    }

    /// What a program is shown, for whoever runs it and whoever only looks. Of the operator's roots a
    /// stranger's sees what its project leads to; one's own sees them whole.
    pub fn view(
        &self,
        files: &ProjectFiles,
        root: &Path,
        directory: &Path,
        interpreter: Interpreter<'_>,
    ) -> Result<Readable, SandboxError> {
        let found = readable_by_program(files, root, directory, interpreter)?;
        Ok(match files.is_restricted() {
            true => found,
            false => found.and(self.settings.roots.iter().cloned()),
        })
    }

    /// A place for one run.
    pub fn open(&self) -> Result<SandboxSession, SandboxError> {
        let prepare = |what| move |source| SandboxError::Prepare { what, source };
        let directory = tempfile::Builder::new()
            .prefix("nimbus-")
            .tempdir()
            .map_err(prepare("a private directory"))?;
        for name in ["root", "tmp"] {
            fs::DirBuilder::new()
                .mode(0o700)
                .create(directory.path().join(name))
                .map_err(prepare("a private directory"))?;
        }
        let control = UnixListener::bind(directory.path().join("control"))
            .and_then(|control| control.set_nonblocking(true).map(|()| control))
            .map_err(prepare("a socket for the helper"))?;
        let group = match &self.cgroup {
            None => None,
            Some(parent) => {
                let name = directory.path().file_name().unwrap_or_default();
                let group = Cgroup::create(parent, &name.to_string_lossy(), &self.settings.limits);
                Some(group.map_err(prepare("a control group"))?)
            }
        };
        Ok(SandboxSession {
            sandbox: self.clone(),
            policy: SandboxPolicy {
                network: self.settings.network,
                limits: self.settings.limits,
                ..SandboxPolicy::default()
            },
            group,
            control,
            directory,
        })
    }
}

/// The place of one run: its sockets, its limits, and what became of it.
#[derive(Debug)]
pub struct SandboxSession {
    sandbox: Sandbox,
    policy: SandboxPolicy,
    // Dropped before the directory, whose name it has.
    group: Option<Cgroup>,
    control: UnixListener,
    directory: TempDir,
}

/// How a run in a sandbox was ended by it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Intervention {
    /// The program was not run, because the sandbox could not be closed around it.
    NotRun { step: String, reason: String },
    /// The program used too much.
    Stopped(ExceededLimit),
}

impl SandboxSession {
    /// Where the engine listens for this program. Nobody else can get there.
    pub fn socket(&self) -> PathBuf {
        self.directory.path().join("engine")
    }

    pub fn sandbox(&self) -> &Sandbox {
        &self.sandbox
    }

    pub fn policy(&self) -> &SandboxPolicy {
        &self.policy
    }

    /// The command that runs `command` inside. It sees these paths and what the system has.
    pub fn enclose(
        &mut self,
        command: &Command,
        readable: &Readable,
        writable: &[PathBuf],
    ) -> Result<Command, SandboxError> {
        let shown = readable.named.iter().chain(&readable.exact).chain(writable);
        if let Some(path) = shown.into_iter().find(|path| is_too_wide(path)) {
            return Err(SandboxError::TooWide { path: path.clone() });
        }
        self.policy.read_only.clone_from(&readable.named);
        self.policy.exact.clone_from(&readable.exact);
        self.policy.writable = writable.to_vec();
        let socket = self.socket();
        self.policy.sockets = Vec::from_iter(socket.exists().then_some(socket));
        let plan = serde_json::to_string(&self.plan(command.get_current_dir()));
        let plan = plan.map_err(|error| SandboxError::Prepare {
            what: "a plan that can be written down",
            source: error.into(),
        })?;
        let mut enclosed = Command::new(&self.sandbox.helper.program);
        enclosed
            .args([HELPER, RUN])
            .arg(plan)
            .arg(command.get_program())
            .args(command.get_args())
            // Where the helper starts does not matter, as long as it exists.
            .current_dir(self.directory.path())
            .env_clear()
            .envs(self.environment(command));
        Ok(enclosed)
    }

    fn plan(&self, directory: Option<&Path>) -> HelperPlan {
        let place = |name: &str| self.directory.path().join(name);
        HelperPlan {
            measures: self.sandbox.measures,
            policy: self.policy.clone(),
            directory: directory.map_or_else(|| "/".into(), Path::to_owned),
            root: place("root"),
            temporary: place("tmp"),
            control: place("control"),
            dial: place("dial"),
            cgroup: self.group.as_ref().map(|group| group.path().to_owned()),
            sealed_memory: self.sandbox.is_strict() && self.group.is_none(),
        }
    }

    /// What of the command's own environment is let through. What it would inherit is not.
    fn environment(&self, command: &Command) -> BTreeMap<OsString, OsString> {
        let given: Vec<(&OsStr, &OsStr)> = command
            .get_envs()
            .filter_map(|(name, value)| Some((name, value?)))
            .collect();
        let mut left = environment::filter(given, &self.sandbox.settings.environment);
        if self.sandbox.is_strict()
            && let Some(path) = left.get_mut(OsStr::new("PATH"))
        {
            let operators = std::env::var_os("PATH");
            let program = command.get_program();
            *path = environment::strangers_path(program, path, operators.as_deref());
        }
        left
    }

    /// A way to reach ports that the program listens on; `None` where they are this machine's.
    pub fn dialer(&self) -> Option<Dialer> {
        use crate::plan::ProcessIsolation;
        let alone = self.sandbox.measures.isolation == ProcessIsolation::Namespaces;
        (alone && self.policy.network == ProgramNetwork::None).then(|| Dialer {
            socket: self.directory.path().join("dial").into(),
        })
    }

    /// What the sandbox did to the program. Asked when its process has ended.
    pub fn intervention(&self) -> Option<Intervention> {
        let report = self.report();
        match report {
            Some(HelperReport::Failed { step, reason }) => {
                return Some(Intervention::NotRun { step, reason });
            }
            Some(HelperReport::Stopped { cause }) => return Some(Intervention::Stopped(cause)),
            None => {}
        }
        let group = self.group.as_ref()?;
        let limits = &self.policy.limits;
        if group.ran_out_of_memory() {
            let bytes = limits.memory_bytes;
            return Some(Intervention::Stopped(ExceededLimit::Memory { bytes }));
        }
        let count = limits.processes;
        group
            .ran_out_of_processes()
            .then_some(Intervention::Stopped(ExceededLimit::Processes { count }))
    }

    fn report(&self) -> Option<HelperReport> {
        const PATIENCE: Duration = Duration::from_secs(1);
        let (mut helper, _) = self.control.accept().ok()?;
        helper.set_nonblocking(false).ok()?;
        helper.set_read_timeout(Some(PATIENCE)).ok()?;
        let mut text = Vec::new();
        // The helper has ended, and with it the other end of this.
        let _ = helper.read_to_end(&mut text);
        let text = String::from_utf8_lossy(&text).into_owned();
        let mut reports = text
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok());
        reports.next()
    }

    /// What the words of a failure have to do with the sandbox.
    pub fn explain(&self, words: &str) -> Option<&'static str> {
        explain(words, &self.policy)
    }
}

/// A program that sees all of these sees everybody's files.
fn is_too_wide(path: &Path) -> bool {
    const PUBLIC: [&str; 9] = [
        "/", "/dev", "/etc", "/home", "/proc", "/root", "/run", "/sys", "/var",
    ];
    let public = PUBLIC.iter().chain(&["/tmp", "/var/tmp", "/dev/shm"]);
    public.map(Path::new).any(|wide| path == wide) || !path.is_absolute()
}

/// Makes connections to a program that is alone in its network.
#[derive(Clone, Debug)]
pub struct Dialer {
    socket: Arc<Path>,
}

impl Dialer {
    /// A connection to a port of the program's own loopback. Blocks until it is made.
    pub fn connect(&self, port: u16) -> io::Result<TcpStream> {
        const PATIENCE: Duration = Duration::from_secs(10);
        let mut helper = UnixStream::connect(&*self.socket)?;
        helper.set_read_timeout(Some(PATIENCE))?;
        helper.write_all(&port.to_le_bytes())?;
        let mut byte = [0];
        let mut parts = [IoSliceMut::new(&mut byte)];
        let mut space = nix::cmsg_space!([std::os::fd::RawFd; 1]);
        #[cfg(target_os = "linux")]
        let flags = MsgFlags::MSG_CMSG_CLOEXEC;
        #[cfg(not(target_os = "linux"))]
        let flags = MsgFlags::empty();
        let message = recvmsg::<()>(helper.as_raw_fd(), &mut parts, Some(&mut space), flags)?;
        for control in message.cmsgs()? {
            if let ControlMessageOwned::ScmRights(descriptors) = control
                && let Some(descriptor) = descriptors.first()
            {
                #[expect(unsafe_code, reason = "descriptors arrive as numbers")]
                // SAFETY: the kernel has just opened this descriptor for us, and nobody else knows.
                let owned = unsafe { OwnedFd::from_raw_fd(*descriptor) };
                return Ok(owned.into());
            }
        }
        let refused = "the program does not listen on this port";
        Err(io::Error::new(io::ErrorKind::ConnectionRefused, refused))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_shown_everything() {
        for path in ["/", "/home", "/tmp", "/proc", "relative"] {
            assert!(is_too_wide(Path::new(path)), "{path}");
        }
        assert!(!is_too_wide(Path::new("/home/me/program")));
    }
}
