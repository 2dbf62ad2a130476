//! The helper: a process with one thread that closes the sandbox around itself and becomes the
//! program.
//!
//! The engine has many threads, and between a fork and an exec such a process can do next to
//! nothing safely. So it starts its own binary again, which does all of it in peace:
//!
//! - the *outer* process stays outside, gives the namespaces their user numbers and repeats how the
//!   program ended;
//! - the *first* process lives inside, builds the view, and watches over what the program uses;
//! - the third restricts itself and becomes the program.
//!
//! Whatever cannot be done as planned ends the helper before the program has run.

mod certificates;
mod identity;
mod kernel;
mod landlock;
mod loopback;
mod owned;
mod program;
mod report;
mod seccomp;
mod supervisor;
mod syscalls;
mod tables;
mod trial;
mod usage;
mod view;

use std::ffi::OsString;
use std::fs;
use std::io::{self, Read as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixListener;
use std::process::ExitCode;

use nix::sched::CloneFlags;
use nix::sys::prctl;
use nix::sys::signal::{SigHandler, SigSet, Signal, raise, signal};
use nix::sys::wait::waitpid;

use identity::NamespaceUser;
use owned::Owned;
use program::{NOT_RUN, become_program};
use report::{NamedStep as _, Reporter, SetupError};
use supervisor::{SupervisedEnd, Supervisor, children_signal};

use crate::launch::{OBSERVE, PROBE, RUN};
use crate::plan::{HelperPlan, ProcessIsolation};
use crate::policy::ProgramNetwork;

/// The work of the helper, with the arguments after the word that calls it.
pub(crate) fn work(mut arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let verb = arguments.next().unwrap_or_default();
    if verb == PROBE {
        return trial::report();
    }
    if verb == OBSERVE {
        return match serde_json::to_writer(io::stdout(), &crate::observe::look_around()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::FAILURE,
        };
    }
    let plan = arguments.next().unwrap_or_default();
    let command: Vec<OsString> = arguments.collect();
    let plan = plan
        .to_str()
        .and_then(|text| serde_json::from_str(text).ok());
    match plan {
        Some(plan) if verb == RUN => run(&plan, &command),
        _ => ExitCode::FAILURE,
    }
}

fn run(plan: &HelperPlan, command: &[OsString]) -> ExitCode {
    // Whoever cannot be told finds out by the exit code.
    let Ok(reporter) = Reporter::connect(&plan.control) else {
        return exit_code(NOT_RUN);
    };
    let end = stay_deaf()
        .step("become deaf to signals")
        .and_then(|()| join_group(plan))
        .and_then(|()| match plan.measures.isolation {
            ProcessIsolation::Namespaces => in_namespaces(plan, command, &reporter),
            ProcessIsolation::Refusals => in_place(plan, command, &reporter),
        });
    match end {
        Ok(SupervisedEnd::Code(code)) => exit_code(code),
        Ok(SupervisedEnd::Signal(number)) => end_by(number),
        Err(error) => {
            reporter.failed(&error);
            exit_code(NOT_RUN)
        }
    }
}

fn exit_code(code: i32) -> ExitCode {
    ExitCode::from(u8::try_from(code & 0xff).unwrap_or(u8::MAX))
}

/// Requests to end are for the program, which is in the same group and gets them too. A helper that
/// heeded them would take the program with it before it could answer.
fn stay_deaf() -> nix::Result<()> {
    let mut deaf = children_signal();
    for signal in [
        Signal::SIGHUP,
        Signal::SIGINT,
        Signal::SIGQUIT,
        Signal::SIGTERM,
    ] {
        deaf.add(signal);
    }
    deaf.thread_set_mask()
}

fn join_group(plan: &HelperPlan) -> Result<(), SetupError> {
    match &plan.cgroup {
        Some(group) => fs::write(group.join("cgroup.procs"), "0").step("join the control group"),
        None => Ok(()),
    }
}

/// Ends as the program did, so that whoever waits for the helper sees that.
fn end_by(number: i32) -> ExitCode {
    if let Ok(signal_number) = Signal::try_from(number) {
        #[expect(
            unsafe_code,
            reason = "the wrapper is unsafe for handlers; this sets none"
        )]
        // SAFETY: no handler is installed; the default is.
        let _ = unsafe { signal(signal_number, SigHandler::SigDfl) };
        let _ = raise(signal_number);
        // Until here it was blocked.
        let _ = SigSet::empty().thread_set_mask();
    }
    exit_code(128 + number)
}

fn namespaces(network: ProgramNetwork) -> CloneFlags {
    let all = CloneFlags::CLONE_NEWUSER
        | CloneFlags::CLONE_NEWNS
        | CloneFlags::CLONE_NEWPID
        | CloneFlags::CLONE_NEWIPC
        | CloneFlags::CLONE_NEWUTS
        | CloneFlags::CLONE_NEWCGROUP;
    match network {
        ProgramNetwork::None => all | CloneFlags::CLONE_NEWNET,
        ProgramNetwork::Full => all,
    }
}

/// The outer process.
fn in_namespaces(
    plan: &HelperPlan,
    command: &[OsString],
    reporter: &Reporter,
) -> Result<SupervisedEnd, SetupError> {
    let dial = match plan.policy.network {
        ProgramNetwork::None => {
            let dial = UnixListener::bind(&plan.dial).step("listen for the engine")?;
            Some(dial)
        }
        ProgramNetwork::Full => None,
    };
    // The program may have a number of its own; the directory above is closed to everybody else.
    for socket in &plan.policy.sockets {
        let _ = fs::set_permissions(socket, fs::Permissions::from_mode(0o666));
    }
    let expected = NamespaceUser::expected(nix::unistd::getpid());
    let owned = Owned::prepare(plan, expected);
    let (mut identities, mut identity) = io::pipe().step("make a pipe")?;
    let (mut ends, mut end) = io::pipe().step("make a pipe")?;
    let flags = namespaces(plan.policy.network);
    let told_by = identity.as_raw_fd();
    let first = kernel::clone_into(flags, || {
        // Held open by its reader, a pipe would never end.
        let _ = nix::unistd::close(told_by);
        let first = First {
            plan,
            command,
            reporter,
            dial: dial.as_ref(),
            owned: &owned,
            expected,
        };
        first.run(&mut identities, &mut end)
    });
    let first = first.step("make namespaces")?;
    drop(end);
    let given = NamespaceUser::give(first).step("give user numbers")?;
    identity
        .write_all(&given.encode())
        .step("tell the number")?;
    drop(identity);
    let mut answer = [0; 5];
    let heard = ends.read_exact(&mut answer);
    // When this returns, the kernel has ended everything that was inside.
    let status = waitpid(first, None).step("wait for the sandbox")?;
    match (heard, SupervisedEnd::of(&status)) {
        (Ok(()), _) => Ok(SupervisedEnd::decode(answer)),
        (Err(_), Some((_, end))) => Ok(end),
        (Err(error), None) => Err(error).step("hear how it ended"),
    }
}

/// The first process inside.
struct First<'a> {
    plan: &'a HelperPlan,
    command: &'a [OsString],
    reporter: &'a Reporter,
    dial: Option<&'a UnixListener>,
    owned: &'a Owned,
    expected: NamespaceUser,
}

impl First<'_> {
    fn run(&self, identities: &mut io::PipeReader, end: &mut io::PipeWriter) -> i32 {
        match self.supervise(identities) {
            Ok(ended) => {
                let _ = end.write_all(&ended.encode());
                0
            }
            Err(error) => {
                self.reporter.failed(&error);
                NOT_RUN
            }
        }
    }

    fn supervise(&self, identities: &mut io::PipeReader) -> Result<SupervisedEnd, SetupError> {
        prctl::set_pdeathsig(Signal::SIGKILL).step("die with the helper")?;
        let mut number = [0; 4];
        // If the helper has gone already, this ends without a number.
        identities.read_exact(&mut number).step("hear the number")?;
        let identity = NamespaceUser::decode(number);
        let nobody = Owned::default();
        // Mounts were prepared for the number that was expected.
        let owned = match identity == self.expected {
            true => self.owned,
            false => &nobody,
        };
        view::enter(self.plan, owned)?;
        if self.plan.policy.network == ProgramNetwork::None {
            loopback::bring_up().step("bring up the loopback")?;
        }
        prctl::set_dumpable(false).step("hide from the program")?;
        let program =
            kernel::fork_into(|| become_program(self.plan, identity, self.command, self.reporter));
        let supervisor = Supervisor {
            plan: self.plan,
            program: program.step("make the program's process")?,
            reporter: self.reporter,
            dial: self.dial,
        };
        supervisor.watch().step("watch the program")
    }
}

/// Without namespaces this process watches over the program itself.
fn in_place(
    plan: &HelperPlan,
    command: &[OsString],
    reporter: &Reporter,
) -> Result<SupervisedEnd, SetupError> {
    prctl::set_child_subreaper(true).step("adopt what is left behind")?;
    let program =
        kernel::fork_into(|| become_program(plan, NamespaceUser::Same, command, reporter));
    let supervisor = Supervisor {
        plan,
        program: program.step("make the program's process")?,
        reporter,
        dial: None,
    };
    let end = supervisor.watch().step("watch the program")?;
    supervisor.kill_all();
    Ok(end)
}
