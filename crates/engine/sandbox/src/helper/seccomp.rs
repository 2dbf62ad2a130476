//! Seccomp: which system calls a program may make.
//!
//! A list of what is allowed, so that a call that the kernel learns tomorrow is refused. It answers
//! as a kernel without that call would, which runtimes cope with; what is known to be a door out of
//! a sandbox is refused by name, with the answer that says so. Two filters, because a filter has one
//! answer; the kernel takes the stricter.

use std::collections::BTreeMap;
use std::io;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen as Length, SeccompCmpOp as Op, SeccompCondition,
    SeccompFilter, SeccompRule, TargetArch, apply_filter,
};

use super::syscalls::{ALLOWED, FORBIDDEN};
use crate::plan::{HelperPlan, ProcessWalls};
use crate::policy::ProgramNetwork;

type SeccompRules = BTreeMap<i64, Vec<SeccompRule>>;

pub(super) fn restrict(plan: &HelperPlan) -> io::Result<()> {
    // The filter that is installed last decides which of two refusals is seen.
    apply(allowed().map_err(failed)?)?;
    if plan.sealed_memory {
        apply(socket_buffers().map_err(failed)?)?;
    }
    apply(forbidden(plan).map_err(failed)?)
}

fn failed(error: seccompiler::BackendError) -> io::Error {
    io::Error::other(error.to_string())
}

fn apply(program: BpfProgram) -> io::Result<()> {
    apply_filter(&program).map_err(|error| io::Error::other(error.to_string()))
}

fn machine() -> Result<TargetArch, seccompiler::BackendError> {
    TargetArch::try_from(std::env::consts::ARCH)
}

/// Everything but these does not exist.
fn allowed() -> Result<BpfProgram, seccompiler::BackendError> {
    let rules: SeccompRules = ALLOWED.iter().map(|call| (*call, Vec::new())).collect();
    let missing = SeccompAction::Errno(libc::ENOSYS as u32);
    SeccompFilter::new(rules, missing, SeccompAction::Allow, machine()?)?.try_into()
}

/// These are not permitted.
fn forbidden(plan: &HelperPlan) -> Result<BpfProgram, seccompiler::BackendError> {
    let mut rules: SeccompRules = FORBIDDEN.iter().map(|call| (*call, Vec::new())).collect();
    rules.insert(libc::SYS_clone, new_namespaces()?);
    rules.insert(libc::SYS_ioctl, terminal_input()?);
    rules.insert(libc::SYS_socket, sockets(plan)?);
    if plan.sealed_memory {
        rules.extend(UNCOUNTED.iter().map(|call| (*call, Vec::new())));
        rules.insert(libc::SYS_mmap, shared_without_file()?);
    }
    let refused = SeccompAction::Errno(libc::EPERM as u32);
    SeccompFilter::new(rules, SeccompAction::Allow, refused, machine()?)?.try_into()
}

fn when(
    argument: u8,
    operator: Op,
    value: u64,
) -> Result<SeccompCondition, seccompiler::BackendError> {
    SeccompCondition::new(argument, Length::Dword, operator, value)
}

/// Calls that give memory which belongs to no process and to no file that has a name: where only the
/// supervisor counts, nobody would count it. The kernel's own groups count it.
const UNCOUNTED: &[i64] = &[
    libc::SYS_memfd_create,
    libc::SYS_memfd_secret,
    libc::SYS_mq_open,
    libc::SYS_msgget,
    libc::SYS_semget,
    libc::SYS_shmget,
];

/// Memory that is shared without a file stays when a process unmaps its pages, and is seen by nobody.
fn shared_without_file() -> Result<Vec<SeccompRule>, seccompiler::BackendError> {
    let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
    let flags = u64::from(flags.cast_unsigned());
    Ok(vec![SeccompRule::new(vec![when(
        3,
        Op::MaskedEq(flags),
        flags,
    )?])?])
}

/// A socket holds what it holds from the beginning, so that the supervisor knows how much that is.
/// Asking for more is granted and changes nothing, as it does where the kernel's own limit is small.
fn socket_buffers() -> Result<BpfProgram, seccompiler::BackendError> {
    let number = |value: i32| u64::from(value.cast_unsigned());
    let larger = [libc::SO_SNDBUF, libc::SO_SNDBUFFORCE].map(|option| {
        SeccompRule::new(vec![
            when(1, Op::Eq, number(libc::SOL_SOCKET))?,
            when(2, Op::Eq, number(option))?,
        ])
    });
    let rules: Result<Vec<_>, _> = larger.into_iter().collect();
    let rules = SeccompRules::from([(libc::SYS_setsockopt, rules?)]);
    let granted = SeccompAction::Errno(0);
    SeccompFilter::new(rules, SeccompAction::Allow, granted, machine()?)?.try_into()
}

/// New processes stay in the namespaces that they are in.
fn new_namespaces() -> Result<Vec<SeccompRule>, seccompiler::BackendError> {
    let flags = [
        libc::CLONE_NEWCGROUP,
        libc::CLONE_NEWIPC,
        libc::CLONE_NEWNET,
        libc::CLONE_NEWNS,
        libc::CLONE_NEWPID,
        libc::CLONE_NEWUSER,
        libc::CLONE_NEWUTS,
    ];
    flags
        .into_iter()
        .map(|flag| {
            let flag = u64::from(flag.cast_unsigned());
            SeccompRule::new(vec![when(0, Op::MaskedEq(flag), flag)?])
        })
        .collect()
}

/// Nobody types on a terminal in the name of somebody else.
fn terminal_input() -> Result<Vec<SeccompRule>, seccompiler::BackendError> {
    const TIOCSTI: u64 = 0x5412;
    const TIOCLINUX: u64 = 0x541c;
    [TIOCSTI, TIOCLINUX]
        .into_iter()
        .map(|request| SeccompRule::new(vec![when(1, Op::Eq, request)?]))
        .collect()
}

/// Which sockets are refused: families that programs have no business with, and, where there is no
/// network of its own to be alone in, what landlock cannot refuse.
fn sockets(plan: &HelperPlan) -> Result<Vec<SeccompRule>, seccompiler::BackendError> {
    const TYPE: u64 = 0xf;
    let number = |value: i32| u64::from(value.cast_unsigned());
    let exposed = plan.measures.walls == ProcessWalls::Refusals
        && plan.policy.network == ProgramNetwork::None;
    let landlock_refuses_tcp = plan.measures.landlock_abi >= 4;
    let mut families = vec![libc::AF_UNIX, libc::AF_NETLINK];
    if !exposed || landlock_refuses_tcp {
        families.extend([libc::AF_INET, libc::AF_INET6]);
    }
    let unknown: Result<Vec<_>, _> = families
        .iter()
        .map(|family| when(0, Op::Ne, number(*family)))
        .collect();
    // Of the kernel's own channels only the one that lists network interfaces.
    let netlink = vec![
        when(0, Op::Eq, number(libc::AF_NETLINK))?,
        when(2, Op::Ne, number(libc::NETLINK_ROUTE))?,
    ];
    let mut rules = vec![SeccompRule::new(unknown?)?, SeccompRule::new(netlink)?];
    if exposed && landlock_refuses_tcp {
        for family in [libc::AF_INET, libc::AF_INET6] {
            for kind in [libc::SOCK_DGRAM, libc::SOCK_RAW] {
                rules.push(SeccompRule::new(vec![
                    when(0, Op::Eq, number(family))?,
                    when(1, Op::MaskedEq(TYPE), number(kind))?,
                ])?);
            }
        }
    }
    Ok(rules)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn no_call_is_both_allowed_and_forbidden() {
        let allowed: BTreeSet<_> = ALLOWED.iter().collect();
        let both: Vec<_> = FORBIDDEN.iter().filter(|c| allowed.contains(c)).collect();
        assert!(both.is_empty(), "{both:?}");
    }

    #[test]
    fn doors_out_of_a_sandbox_are_forbidden() {
        for call in [
            libc::SYS_bpf,
            libc::SYS_io_uring_setup,
            libc::SYS_kexec_load,
            libc::SYS_mount,
            libc::SYS_ptrace,
            libc::SYS_setns,
            libc::SYS_unshare,
        ] {
            assert!(FORBIDDEN.contains(&call), "{call}");
        }
        // Its arguments cannot be looked at, so runtimes are told to use the older one.
        assert!(!ALLOWED.contains(&libc::SYS_clone3));
    }

    #[test]
    fn the_filters_compile() {
        assert!(allowed().is_ok());
        assert!(shared_without_file().is_ok());
        assert!(socket_buffers().is_ok());
    }
}
