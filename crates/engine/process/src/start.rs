//! Starting a child that dies when we do.
//!
//! The kernel kills a child when its parent goes, but by "parent" it means the *thread* that
//! started it, and threads of an async runtime come and go. So one thread that never ends starts
//! them all. It runs nothing that could panic, because with it every child would die.

use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;

use nix::sys::signal::{SigHandler, Signal, signal};
use parking_lot::Mutex;

/// Something to do on the thread that starts children.
type Job = Box<dyn FnOnce() + Send>;

static STARTER: Mutex<Option<mpsc::Sender<Job>>> = Mutex::new(None);

/// Does the job on the thread that never ends.
pub(crate) fn on_starter(job: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let mut starter = STARTER.lock();
    let jobs = match &*starter {
        Some(jobs) => jobs,
        None => starter.insert(start_thread()?),
    };
    jobs.send(Box::new(job))
        .map_err(|_| io::Error::other("the thread that starts processes is gone"))
}

fn start_thread() -> io::Result<mpsc::Sender<Job>> {
    let (sender, jobs) = mpsc::channel::<Job>();
    std::thread::Builder::new()
        .name("process-starter".to_owned())
        .spawn(move || jobs.into_iter().for_each(|job| job()))?;
    Ok(sender)
}

/// Starts the command as the leader of its own group. To be called on the starter's thread.
pub(crate) fn spawn(mut command: Command) -> io::Result<Child> {
    command
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    prepare_child(&mut command);
    command.spawn()
}

/// What the child does for itself before it becomes the program: it listens to requests to end
/// even if we were started deaf to them, as in the background of a script, and it dies with us.
#[allow(
    unsafe_code,
    reason = "what a child does between fork and exec cannot be said otherwise"
)]
fn prepare_child(command: &mut Command) {
    #[cfg(target_os = "linux")]
    let parent = nix::unistd::getpid();
    // SAFETY: between fork and exec only system calls are made and nothing is allocated.
    unsafe {
        command.pre_exec(move || {
            for request in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGCHLD] {
                signal(request, SigHandler::SigDfl)?;
            }
            #[cfg(target_os = "linux")]
            {
                nix::sys::prctl::set_pdeathsig(Signal::SIGKILL)?;
                // The parent may have gone before the kernel was asked.
                if nix::unistd::getppid() != parent {
                    return Err(nix::Error::ESRCH.into());
                }
            }
            Ok(())
        });
    }
}
