//! Processes of Node.js programs that are started before anybody needs them.
//!
//! A spare process has loaded our script and the SDK and waits for its orders: arguments, variables
//! and folder of the program that it becomes. From then on it is what a process would be that was
//! started for this program. It serves one program, and only one that would have been started with
//! the very same interpreter, flags, SDK and variables; none in a sandbox.
//!
//! Nobody knows here how many programs follow. Two of a kind are taken as a sign that there are
//! more, and then one spare is kept. It goes when nobody has come for a while, and with us. On
//! processors that have enough to do, a spare would only take from the programs that run.

use std::collections::{BTreeMap, HashMap};
use std::ffi::{OsStr, OsString};
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use nimbus_engine_process::{ChildProcess, CodeIsolation, CodeOrigin, Started};
use nix::sys::stat::Mode;
use parking_lot::Mutex;
use serde_json::json;
use tempfile::TempDir;
use tokio::process::Command;

/// Tells our script where orders come from.
const ORDERS: &str = "NIMBUS_ORDERS";

/// What it puts beside its orders when it is ready for them.
const READY: &str = "ready";

/// A spare that nobody has come for in this time is given up.
const PATIENCE: Duration = Duration::from_secs(5 * 60);

/// What a pipe takes without a reader. Who has more to say starts a process anew.
const LONGEST_ORDERS: usize = 60_000;

/// Keeps spare processes for everybody in this process.
#[derive(Debug, Default)]
pub struct WarmStarts {
    kinds: Mutex<HashMap<WarmProcessKey, WarmProcesses>>,
    taken: AtomicUsize,
    only_when_idle: bool,
}

/// What a process has before it has its orders.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct WarmProcessKey {
    pub(crate) node: PathBuf,
    /// Flags of Node.js, with the script that is loaded first.
    pub(crate) flags: Vec<String>,
    pub(crate) main: PathBuf,
    pub(crate) variables: BTreeMap<OsString, OsString>,
}

#[derive(Default)]
struct WarmProcesses {
    started: usize,
    spare: Option<Spare>,
}

impl std::fmt::Debug for WarmProcesses {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WarmProcesses")
            .field("started", &self.started)
            .finish_non_exhaustive()
    }
}

/// A process that waits, and what it is told through.
pub(crate) struct Spare {
    pub(crate) started: Started,
    pub(crate) orders: StartPipe,
}

/// A pipe. Its content is lost when nobody has it open, and a process may be late to read it, so it
/// is kept as long as the process.
pub(crate) struct StartPipe {
    pipe: File,
    folder: TempDir,
}

impl WarmStarts {
    /// Starts spares only while a processor has nothing else to do.
    pub fn when_idle() -> Self {
        Self {
            only_when_idle: true,
            ..Self::default()
        }
    }

    /// A process that does what the command would do, if one is there.
    pub(crate) fn start(
        self: &Arc<Self>,
        kind: &WarmProcessKey,
        command: &Command,
    ) -> Option<Spare> {
        let spare = {
            let mut kinds = self.kinds.lock();
            let warm = kinds.entry(kind.clone()).or_default();
            warm.started += 1;
            // One that is still getting ready is for the next.
            warm.spare
                .take_if(|spare| spare.is_ready() || spare.has_ended())
        };
        let started = spare.and_then(|spare| spare.become_one(kind, command));
        if started.is_some() {
            self.taken.fetch_add(1, Ordering::Relaxed);
        }
        self.provide(kind);
        started
    }

    /// The numbers of processes that were started ahead and are ready.
    pub fn ready(&self) -> Vec<i32> {
        let kinds = self.kinds.lock();
        let spares = kinds.values().filter_map(|warm| warm.spare.as_ref());
        let ready = spares.filter(|spare| spare.is_ready());
        ready.map(|spare| spare.started.process.id()).collect()
    }

    /// How many programs got a process that was started ahead.
    pub fn taken(&self) -> usize {
        self.taken.load(Ordering::Relaxed)
    }

    /// Starts a spare, beside everything else.
    fn provide(self: &Arc<Self>, kind: &WarmProcessKey) {
        let wanted = |warm: &WarmProcesses| warm.started > 1 && warm.spare.is_none();
        if !self.kinds.lock().get(kind).is_some_and(wanted) {
            return;
        }
        if self.only_when_idle && !a_processor_is_idle() {
            return;
        }
        let (pool, kind) = (Arc::downgrade(self), kind.clone());
        tokio::spawn(async move {
            let Ok(spare) = Spare::start(&kind).await else {
                return;
            };
            let id = spare.started.process.id();
            {
                let Some(pool) = pool.upgrade() else { return };
                let mut kinds = pool.kinds.lock();
                if let Some(warm) = kinds.get_mut(&kind).filter(|warm| wanted(warm)) {
                    warm.spare = Some(spare);
                }
            }
            tokio::time::sleep(PATIENCE).await;
            if let Some(pool) = pool.upgrade()
                && let Some(warm) = pool.kinds.lock().get_mut(&kind)
            {
                warm.spare.take_if(|spare| spare.started.process.id() == id);
            }
        });
    }
}

/// Where that cannot be told, it is taken for true.
fn a_processor_is_idle() -> bool {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    at_work(&load).is_none_or(|at_work| at_work < processors)
}

/// How many threads of the machine run or want to, of which we are one and about to wait.
fn at_work(load: &str) -> Option<usize> {
    let (running, _) = load.split_whitespace().nth(3)?.split_once('/')?;
    Some(running.parse::<usize>().ok()?.saturating_sub(1))
}

impl Spare {
    async fn start(kind: &WarmProcessKey) -> io::Result<Self> {
        let folder = tempfile::tempdir()?;
        let pipe = folder.path().join("orders");
        nix::unistd::mkfifo(&pipe, Mode::S_IRUSR | Mode::S_IWUSR)?;
        // Open to both sides, so that nobody waits for the other to open it.
        let orders = StartPipe {
            pipe: OpenOptions::new().read(true).write(true).open(&pipe)?,
            folder,
        };
        let mut command = std::process::Command::new(&kind.node);
        command
            .args(&kind.flags)
            .arg(&kind.main)
            .env_clear()
            .envs(&kind.variables)
            .env(ORDERS, &pipe)
            .current_dir("/");
        let started =
            ChildProcess::start(command, CodeOrigin::Tenants(CodeIsolation::OwnProject)).await?;
        Ok(Self { started, orders })
    }

    /// Whether it has nothing left to do but to wait.
    fn is_ready(&self) -> bool {
        self.orders.folder.path().join(READY).exists()
    }

    fn has_ended(&self) -> bool {
        self.started.process.exit().is_some()
    }

    /// `None` when it has ended meanwhile, or cannot be told everything.
    fn become_one(mut self, kind: &WarmProcessKey, command: &Command) -> Option<Self> {
        let mut line = orders(&kind.main, command)?;
        line.push('\n');
        if line.len() > LONGEST_ORDERS || self.has_ended() {
            return None;
        }
        self.orders.pipe.write_all(line.as_bytes()).ok()?;
        Some(self)
    }
}

/// What the process is to become, as one line.
fn orders(main: &Path, command: &Command) -> Option<String> {
    let command = command.as_std();
    let text = |value: &OsStr| value.to_str().map(str::to_owned);
    let arguments: Option<Vec<String>> = command.get_args().map(text).collect();
    let arguments = arguments?;
    let at = arguments.iter().position(|word| Path::new(word) == main)?;
    let variables: Option<HashMap<String, String>> = command
        .get_envs()
        .filter_map(|(name, value)| Some((name, value?)))
        .map(|(name, value)| Some((text(name)?, text(value)?)))
        .collect();
    let orders = json!({
        "arguments": arguments[at + 1..],
        "variables": variables?,
        "folder": text(command.get_current_dir()?.as_os_str())?,
    });
    Some(orders.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_tells_how_many_threads_are_at_work_besides_this_one() {
        assert_eq!(at_work("0.83 2.75 2.91 3/711 24711\n"), Some(2));
        assert_eq!(at_work("0.00 0.00 0.00 0/711 24711\n"), Some(0));
        assert_eq!(at_work(""), None);
    }
}
