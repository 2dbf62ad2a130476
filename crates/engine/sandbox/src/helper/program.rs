//! The last moments before the program: this process gives up everything it will not need.

use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use nix::sys::prctl;
use nix::sys::resource::{Resource, setrlimit};
use nix::sys::signal::{SigHandler, SigSet, Signal, signal};
use nix::unistd::chdir;

use super::identity::{NamespaceUser, forget_numbers};
use super::kernel;
use super::report::{NamedStep as _, Reporter, SetupError};
use super::{landlock, seccomp, view};
use crate::plan::{HelperPlan, ProcessIsolation};
use crate::policy::ResourceLimits;

/// The exit code of a helper that could not run the program.
pub(super) const NOT_RUN: i32 = 125;

/// The kernel counts the supervisor too, and stops counting right at the limit.
const SPARE_PROCESSES: u64 = 16;

/// More than runtimes ever have.
const PENDING_SIGNALS: u64 = 4096;

/// Becomes the program. Returns only if that did not work.
pub(super) fn become_program(
    plan: &HelperPlan,
    identity: NamespaceUser,
    command: &[OsString],
    reporter: &Reporter,
) -> i32 {
    let Err(error) = prepare(plan, identity).and_then(|()| execute(plan, command));
    reporter.failed(&error);
    NOT_RUN
}

/// Where the program's temporary directory is.
fn temporary(plan: &HelperPlan) -> PathBuf {
    match plan.measures.isolation {
        ProcessIsolation::Namespaces => view::TEMPORARY.into(),
        ProcessIsolation::Refusals => plan.temporary.clone(),
    }
}

fn prepare(plan: &HelperPlan, identity: NamespaceUser) -> Result<(), SetupError> {
    limit(&plan.policy.limits, plan.measures.isolation)?;
    kernel::be_nice().step("let others compute first")?;
    // In a sandbox of the same kind they are off already, and nobody may say anything about them.
    if plan.sealed_memory && !prctl::get_thp_disable().is_ok_and(|off| off) {
        // A huge page of which one small page is held on to is held whole, and counted as one small one.
        prctl::set_thp_disable(true).step("go without huge pages")?;
    }
    identity.assume().step("give up privileges")?;
    if plan.measures.isolation == ProcessIsolation::Namespaces {
        forget_numbers().step("hide user numbers")?;
    }
    prctl::set_no_new_privs().step("refuse new privileges")?;
    chdir(&plan.directory).step(format!("enter {}", plan.directory.display()))?;
    kernel::close_on_exec().step("close what is open")?;
    landlock::restrict(plan, &temporary(plan)).step("landlock")?;
    listen_to_signals().step("listen to signals")?;
    // Last, because it refuses what the steps before need.
    if plan.measures.seccomp {
        seccomp::restrict(plan).step("seccomp")?;
    }
    Ok(())
}

fn execute(
    plan: &HelperPlan,
    command: &[OsString],
) -> Result<std::convert::Infallible, SetupError> {
    let temporary = temporary(plan);
    let [program, arguments @ ..] = command else {
        let nothing = std::io::Error::other("no program was named");
        return Err(nothing).step("start the program");
    };
    let error = Command::new(program)
        .args(arguments)
        .env("HOME", &temporary)
        .env("TMPDIR", &temporary)
        // tidy-allow(start): the helper becomes the program, inside
        .exec();
    Err(error).step(format!("start {}", Path::new(program).display()))
}

/// The helper is deaf to requests to end, and the program must not inherit that.
fn listen_to_signals() -> nix::Result<()> {
    #[expect(
        unsafe_code,
        reason = "the wrapper is unsafe for handlers; this sets none"
    )]
    // SAFETY: no handler is installed; the default is.
    unsafe {
        signal(Signal::SIGPIPE, SigHandler::SigDfl)?;
        signal(Signal::SIGINT, SigHandler::SigDfl)?;
    }
    SigSet::empty().thread_set_mask()
}

fn limit(limits: &ResourceLimits, isolation: ProcessIsolation) -> Result<(), SetupError> {
    // One process may ask for more than all may use, so that using too much is noticed and told
    // before asking fails.
    let address = limits.memory_bytes.saturating_mul(2);
    // Outside of a namespace everything else that the user runs would count as well.
    let processes = match isolation {
        // A little more than the count at which the supervisor acts, so that it is reached.
        ProcessIsolation::Namespaces => limits.processes.saturating_add(SPARE_PROCESSES),
        ProcessIsolation::Refusals => u64::MAX,
    };
    for (resource, value) in [
        (Resource::RLIMIT_CORE, 0),
        (Resource::RLIMIT_DATA, address),
        (Resource::RLIMIT_FSIZE, limits.file_bytes),
        (Resource::RLIMIT_MEMLOCK, 64 << 10),
        (Resource::RLIMIT_MSGQUEUE, 0),
        (Resource::RLIMIT_NOFILE, limits.open_files),
        (Resource::RLIMIT_NPROC, processes),
        (Resource::RLIMIT_RTPRIO, 0),
        // What is queued for a process is the kernel's memory.
        (Resource::RLIMIT_SIGPENDING, PENDING_SIGNALS),
    ] {
        let had = nix::sys::resource::getrlimit(resource)
            .step("read limits")?
            .1;
        let value = value.min(had);
        setrlimit(resource, value, value).step(format!("limit {resource:?}"))?;
    }
    Ok(())
}
