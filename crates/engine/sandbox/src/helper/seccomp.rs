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
use crate::plan::{HelperPlan, ProcessIsolation};
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
        rules.insert(libc::SYS_prctl, other_process_options()?);
        rules.insert(libc::SYS_setsockopt, programs_of_sockets()?);
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

/// Calls that give memory which belongs to no process and to no file that has a name: files in memory, pages
/// that a pipe or socket holds on to after their file or process gave them up, rules and filters that the
/// kernel keeps. Where only the supervisor counts, nobody would count it. The kernel's own groups count it.
/// Filters of system calls are not among them: the kernel keeps at most 32,768 instructions for a process, and a
/// program that is a sandbox itself needs them.
const UNCOUNTED: &[i64] = &[
    libc::SYS_landlock_add_rule,
    libc::SYS_landlock_create_ruleset,
    libc::SYS_landlock_restrict_self,
    libc::SYS_memfd_create,
    libc::SYS_memfd_secret,
    libc::SYS_mq_open,
    libc::SYS_msgget,
    libc::SYS_semget,
    libc::SYS_shmget,
    libc::SYS_splice,
    libc::SYS_tee,
    libc::SYS_vmsplice,
];

/// What programs and their runtimes set and ask about themselves with `prctl`. Others make tables in the kernel
/// (of futexes, of names of memory), install filters, or allow huge pages again.
const PROCESS_OPTIONS: &[i32] = &[
    libc::PR_SET_PDEATHSIG,
    libc::PR_GET_PDEATHSIG,
    libc::PR_GET_DUMPABLE,
    libc::PR_SET_DUMPABLE,
    libc::PR_GET_KEEPCAPS,
    libc::PR_SET_NAME,
    libc::PR_GET_NAME,
    libc::PR_GET_SECCOMP,
    libc::PR_SET_KEEPCAPS,
    libc::PR_CAPBSET_READ,
    libc::PR_CAPBSET_DROP,
    libc::PR_CAP_AMBIENT,
    libc::PR_GET_SECUREBITS,
    libc::PR_SET_SECUREBITS,
    libc::PR_SET_TIMERSLACK,
    libc::PR_GET_TIMERSLACK,
    libc::PR_SET_CHILD_SUBREAPER,
    libc::PR_GET_CHILD_SUBREAPER,
    libc::PR_SET_NO_NEW_PRIVS,
    libc::PR_GET_NO_NEW_PRIVS,
    libc::PR_GET_THP_DISABLE,
];

fn other_process_options() -> Result<Vec<SeccompRule>, seccompiler::BackendError> {
    let others: Result<Vec<_>, _> = PROCESS_OPTIONS
        .iter()
        .map(|option| when(0, Op::Ne, u64::from(option.cast_unsigned())))
        .collect();
    Ok(vec![SeccompRule::new(others?)?])
}

/// Filters and protocols that the kernel keeps for a socket.
fn programs_of_sockets() -> Result<Vec<SeccompRule>, seccompiler::BackendError> {
    const ATTACH_FILTER: i32 = 26;
    const ATTACH_BPF: i32 = 50;
    const ATTACH_REUSEPORT_CBPF: i32 = 51;
    const ATTACH_REUSEPORT_EBPF: i32 = 52;
    const TCP_ULP: i32 = 31;
    let number = |value: i32| u64::from(value.cast_unsigned());
    [
        (libc::SOL_SOCKET, ATTACH_FILTER),
        (libc::SOL_SOCKET, ATTACH_BPF),
        (libc::SOL_SOCKET, ATTACH_REUSEPORT_CBPF),
        (libc::SOL_SOCKET, ATTACH_REUSEPORT_EBPF),
        (libc::IPPROTO_TCP, TCP_ULP),
    ]
    .into_iter()
    .map(|(level, option)| {
        SeccompRule::new(vec![
            when(1, Op::Eq, number(level))?,
            when(2, Op::Eq, number(option))?,
        ])
    })
    .collect()
}

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
    let exposed = plan.measures.isolation == ProcessIsolation::Refusals
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
    // Of the internet's protocols the usual two: others have queues and tables that nobody counts.
    for family in [libc::AF_INET, libc::AF_INET6] {
        rules.push(SeccompRule::new(vec![
            when(0, Op::Eq, number(family))?,
            when(2, Op::Ne, 0)?,
            when(2, Op::Ne, number(libc::IPPROTO_TCP))?,
            when(2, Op::Ne, number(libc::IPPROTO_UDP))?,
        ])?);
    }
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
        assert!(other_process_options().is_ok());
        assert!(programs_of_sockets().is_ok());
    }
}
