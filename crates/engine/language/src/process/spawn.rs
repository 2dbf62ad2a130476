//! Starting a process that dies when we do.
//!
//! The kernel can kill a child when its parent goes, but by "parent" it means the thread that
//! started it, and threads of the runtime come and go. So one thread that never ends starts them
//! all.

use std::io;
use std::sync::OnceLock;
use std::sync::mpsc::{Sender, channel};

use tokio::process::{Child, Command};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

type Job = Box<dyn FnOnce() + Send>;

/// Starts the command as the leader of its own process group.
pub(super) async fn spawn(mut command: Command) -> io::Result<Child> {
    command.process_group(0).kill_on_drop(true);
    prepare_child(&mut command);
    let (reply, started) = oneshot::channel();
    let runtime = Handle::current();
    let job = move || {
        let _context = runtime.enter();
        // If nobody waits any more, the child is dropped and thereby killed.
        let _ = reply.send(command.spawn());
    };
    let gone = || io::Error::other("the thread that starts processes is gone");
    starter()?.send(Box::new(job)).map_err(|_| gone())?;
    started.await.map_err(|_| gone())?
}

fn starter() -> io::Result<Sender<Job>> {
    static STARTER: OnceLock<Sender<Job>> = OnceLock::new();
    if let Some(starter) = STARTER.get() {
        return Ok(starter.clone());
    }
    let (sender, jobs) = channel::<Job>();
    std::thread::Builder::new()
        .name("program-starter".to_owned())
        .spawn(move || jobs.into_iter().for_each(|job| job()))?;
    // If two came at once, the thread of the second ends for want of a sender.
    Ok(STARTER.get_or_init(|| sender).clone())
}

/// What the child does for itself before it becomes the program: it listens to the request to end
/// even if we were started deaf to it, as in the background of a script, and it dies with us.
#[allow(
    unsafe_code,
    reason = "what a child does between fork and exec cannot be said otherwise"
)]
fn prepare_child(command: &mut Command) {
    use nix::sys::signal::{SigHandler, Signal, signal};

    #[cfg(target_os = "linux")]
    let parent = nix::unistd::getpid();
    // SAFETY: between fork and exec only system calls are made and nothing is allocated.
    unsafe {
        command.pre_exec(move || {
            signal(Signal::SIGINT, SigHandler::SigDfl)?;
            #[cfg(target_os = "linux")]
            {
                nix::sys::prctl::set_pdeathsig(Signal::SIGKILL)?;
                // The parent may have gone before the kernel was asked.
                if nix::unistd::getppid() != parent {
                    return Err(io::Error::from_raw_os_error(nix::libc::ESRCH));
                }
            }
            Ok(())
        });
    }
}
