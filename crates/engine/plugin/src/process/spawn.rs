//! Starting a child that cannot outlive us.
//!
//! The child leads a process group of its own, so that it can be ended together with whatever it
//! started, and the kernel kills it when we die, however we die. The kernel ties that promise to
//! the *thread* that started the child, and threads of an async runtime come and go; children are
//! therefore started from one thread that stays for the life of the process.

use std::io;
use std::sync::mpsc;

use parking_lot::Mutex;
use tokio::process::{Child, Command};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

struct Job {
    command: Command,
    runtime: Handle,
    reply: oneshot::Sender<io::Result<Child>>,
}

static STARTER: Mutex<Option<mpsc::Sender<Job>>> = Mutex::new(None);

/// Starts the command as leader of a new process group that dies with this process.
pub(crate) async fn spawn(mut command: Command) -> io::Result<Child> {
    command.process_group(0).kill_on_drop(true);
    die_with_parent(&mut command);
    let (reply, answer) = oneshot::channel();
    let job = Job {
        command,
        runtime: Handle::current(),
        reply,
    };
    starter()?
        .send(job)
        .map_err(|_| io::Error::other("the thread that starts plugins is gone"))?;
    answer
        .await
        .map_err(|_| io::Error::other("the thread that starts plugins is gone"))?
}

fn starter() -> io::Result<mpsc::Sender<Job>> {
    let mut starter = STARTER.lock();
    if let Some(sender) = &*starter {
        return Ok(sender.clone());
    }
    let (sender, jobs) = mpsc::channel::<Job>();
    std::thread::Builder::new()
        .name("plugin-starter".into())
        .spawn(move || {
            for mut job in jobs {
                let _runtime = job.runtime.enter();
                // A caller that went away drops the child, which kills it.
                let _ = job.reply.send(job.command.spawn());
            }
        })?;
    *starter = Some(sender.clone());
    Ok(sender)
}

#[cfg(target_os = "linux")]
#[allow(
    unsafe_code,
    reason = "only the child itself can ask to die with its parent"
)]
fn die_with_parent(command: &mut Command) {
    use nix::sys::prctl::set_pdeathsig;
    use nix::sys::signal::Signal;
    use nix::unistd::{getpid, getppid};

    let parent = getpid();
    // SAFETY: between fork and exec the closure makes two system calls and allocates nothing.
    unsafe {
        command.pre_exec(move || {
            set_pdeathsig(Signal::SIGKILL)?;
            // The parent may have died before the request was made.
            if getppid() != parent {
                return Err(nix::Error::ESRCH.into());
            }
            Ok(())
        });
    }
}

#[cfg(not(target_os = "linux"))]
fn die_with_parent(_command: &mut Command) {}
