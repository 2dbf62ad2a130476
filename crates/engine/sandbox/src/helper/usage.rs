//! What a program's processes use, counted from the process table.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::net::UnixDatagram;
use std::path::Path;

use nix::sys::socket::getsockopt;
use nix::sys::socket::sockopt::SndBuf;
use nix::sys::statvfs::statvfs;
use nix::unistd::{Pid, SysconfVar, getpid, sysconf};

use super::view;
use crate::plan::ProcessIsolation;
use crate::verdict::Usage;

/// One line of the process table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ProcessTableLine {
    parent: i32,
    threads: u64,
    resident_pages: u64,
}

/// What everything that runs here uses at this moment. Memory up to `limit` may be counted more
/// than once where processes share it.
pub(super) fn measure(isolation: ProcessIsolation, limit: u64) -> Usage {
    let processes = descendants(isolation);
    let page = sysconf(SysconfVar::PAGE_SIZE).ok().flatten();
    let page = page
        .and_then(|page| u64::try_from(page).ok())
        .unwrap_or(4096);
    let mut usage = Usage::default();
    for (pid, process) in &processes {
        usage.memory_bytes += process.resident_pages * page;
        usage.processes += process.threads;
        usage.open_files = usage.open_files.max(open_files(*pid));
    }
    if usage.memory_bytes > limit {
        let share = |(pid, process): (&i32, &ProcessTableLine)| {
            let whole = process.resident_pages * page;
            proportional(*pid, &["Pss:"]).unwrap_or(whole)
        };
        usage.memory_bytes = processes.iter().map(share).sum();
    }
    if let (ProcessIsolation::Namespaces, Ok(space)) = (isolation, statvfs(view::TEMPORARY)) {
        usage.temporary_full = space.blocks() > 0 && space.blocks_available() == 0;
        usage.temporary_files_full = space.files() > 0 && space.files_available() == 0;
    }
    usage
}

/// The same where nobody else counts and the program is a stranger's: also what temporary files
/// hold, the tables that the kernel keeps for mapped memory, and the most that its buffers can hold.
/// Memory without a name is not given at all, see `seccomp`.
pub(super) fn measure_everything(isolation: ProcessIsolation, limit: u64) -> Usage {
    let mut usage = measure(isolation, limit);
    let processes: Vec<i32> = descendants(isolation).into_keys().collect();
    let mut mapped: u64 = processes.iter().map(|pid| mapped_by(*pid)).sum();
    if mapped > limit {
        let share = |pid: &i32| {
            let mapped = proportional(*pid, &["Pss_Anon:", "Pss_File:"]);
            mapped.map_or_else(|| mapped_by(*pid), |mapped| mapped + page_tables(*pid))
        };
        mapped = processes.iter().map(share).sum();
    }
    let descriptors: u64 = processes.iter().map(|pid| open_files(*pid)).sum();
    let files: u64 = [view::TEMPORARY, view::SHARED_MEMORY]
        .iter()
        .map(|place| held_by(place))
        .sum();
    let sockets = lines_of("/proc/net/unix") * socket_buffer() + queued_in_sockets();
    let locks = lines_of("/proc/locks") * LOCK;
    usage.memory_bytes = mapped + files + descriptors * DESCRIPTOR + sockets + locks;
    usage
}

/// Bytes that a process has in memory, with those that it shares, and the tables that the kernel
/// keeps for them.
fn mapped_by(pid: i32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    // Of shared memory only files are left, which are counted as such.
    let fields = ["RssAnon:", "RssFile:", "VmPTE:"];
    let kibibytes: u64 = fields
        .iter()
        .map(|field| status_field(&status, field))
        .sum();
    kibibytes * 1024
}

fn page_tables(pid: i32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    status_field(&status, "VmPTE:") * 1024
}

/// The same with only a share of what several processes have: pages that a process and those that
/// it forked share are in each of them, and are one memory. It takes the kernel a walk through
/// every page, so only who seems to have too much is counted this way. A process that does not let
/// itself be looked at has no share; it is counted whole.
fn proportional(pid: i32, fields: &[&str]) -> Option<u64> {
    let rollup = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
    sum_of(&rollup, fields)
}

/// The sum of fields in kibibytes, if each is there.
fn sum_of(rollup: &str, fields: &[&str]) -> Option<u64> {
    let present = fields.iter().all(|field| rollup.contains(field));
    let share = fields.iter().map(|field| status_field(rollup, field));
    present.then(|| share.sum::<u64>() * 1024)
}

/// What an open file costs at least: its own record, and for a pipe the pages that it has when its
/// user has many.
const DESCRIPTOR: u64 = 2 * 4096;
const LOCK: u64 = 512;

/// Bytes in the files of a file system in memory.
fn held_by(place: &str) -> u64 {
    statvfs(place).map_or(0, |space| {
        let used = space.blocks().saturating_sub(space.blocks_free());
        used.saturating_mul(space.fragment_size())
    })
}

/// The most that can wait in a socket of the file system, whose queues nobody shows: what a new one
/// may hold, for programs cannot ask for more, see `seccomp`; and as much again, for the last piece
/// may be larger than the room that is left.
fn socket_buffer() -> u64 {
    const USUAL: usize = 212_992;
    let socket = UnixDatagram::unbound().ok();
    let most = socket.and_then(|socket| getsockopt(&socket, SndBuf).ok());
    2 * most.unwrap_or(USUAL) as u64
}

/// Bytes that wait in other sockets. The kernel keeps them in pieces, so they take twice the room.
fn queued_in_sockets() -> u64 {
    let tables = ["tcp", "tcp6", "udp", "udp6"];
    let table = |name| fs::read_to_string(format!("/proc/net/{name}")).unwrap_or_default();
    tables.iter().map(|name| 2 * queued(&table(name))).sum()
}

/// The sum of both queues, which are hexadecimal and joined by a colon in the fifth column.
fn queued(table: &str) -> u64 {
    let queues = table.lines().skip(1).filter_map(|line| {
        let (sent, received) = line.split_whitespace().nth(4)?.split_once(':')?;
        let number = |text| u64::from_str_radix(text, 16).ok();
        Some(number(sent)? + number(received)?)
    });
    queues.sum()
}

fn lines_of(table: &str) -> u64 {
    let Ok(table) = fs::File::open(table) else {
        return 0;
    };
    BufReader::new(table).split(b'\n').count() as u64
}

fn status_field(status: &str, field: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix(field));
    let number = line.and_then(|line| line.split_whitespace().next());
    number.and_then(|number| number.parse().ok()).unwrap_or(0)
}

/// Everybody who came from this process.
pub(super) fn pids(isolation: ProcessIsolation) -> Vec<Pid> {
    let processes = descendants(isolation);
    processes.into_keys().map(Pid::from_raw).collect()
}

fn descendants(isolation: ProcessIsolation) -> BTreeMap<i32, ProcessTableLine> {
    let mut all = table();
    let own = getpid().as_raw();
    match isolation {
        // Everybody else here came from this process.
        ProcessIsolation::Namespaces => {
            all.remove(&own);
            all
        }
        ProcessIsolation::Refusals => {
            let parents: BTreeMap<i32, i32> = all
                .iter()
                .map(|(pid, process)| (*pid, process.parent))
                .collect();
            all.retain(|pid, _| descends(*pid, own, &parents));
            all
        }
    }
}

fn descends(pid: i32, from: i32, parents: &BTreeMap<i32, i32>) -> bool {
    let mut ancestors = std::iter::successors(parents.get(&pid), |pid| parents.get(pid));
    ancestors.any(|ancestor| *ancestor == from)
}

fn table() -> BTreeMap<i32, ProcessTableLine> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    pids.filter_map(|pid| {
        // Gone in the meantime, or nothing to us.
        let line = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        Some((pid, parse(&line)?))
    })
    .collect()
}

/// The name of a process is in parentheses and may contain anything, parentheses too.
fn parse(line: &str) -> Option<ProcessTableLine> {
    let (_, rest) = line.rsplit_once(") ")?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    Some(ProcessTableLine {
        parent: fields.get(1)?.parse().ok()?,
        threads: fields.get(17)?.parse().ok()?,
        resident_pages: fields.get(21)?.parse().ok()?,
    })
}

fn open_files(pid: i32) -> u64 {
    let entries = fs::read_dir(Path::new("/proc").join(pid.to_string()).join("fd"));
    entries.map_or(0, |entries| entries.count() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_can_call_itself_what_it_likes() {
        let line = "7 (a) b) S 3 7 7 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 9 0 100 4096 55 999";
        let expected = ProcessTableLine {
            parent: 3,
            threads: 9,
            resident_pages: 55,
        };
        assert_eq!(parse(line), Some(expected));
        assert_eq!(parse("7 (x"), None);
    }

    #[test]
    fn what_waits_in_sockets_is_read() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr\n\
                     0: 0100007F:1F90 00000000:0000 0A 00000010:00000020 00:00000000\n\
                     1: 0100007F:1F91 00000000:0000 01 00000001:00000000 00:00000000\n";
        assert_eq!(queued(table), 0x10 + 0x20 + 1);
        assert_eq!(queued(""), 0);
    }

    #[test]
    fn the_state_of_a_process_is_read() {
        let status = "Name:\tx\nVmPTE:\t      44 kB\nRssAnon:\t  1000 kB\n";
        assert_eq!(status_field(status, "VmPTE:"), 44);
        assert_eq!(status_field(status, "RssAnon:"), 1000);
        assert_eq!(status_field(status, "RssFile:"), 0);
    }

    #[test]
    fn what_is_shared_is_counted_in_shares_where_that_is_known() {
        let rollup = "Rss:  900 kB\nPss:  300 kB\nPss_Anon:  100 kB\nPss_File:  50 kB\n";
        let fields = ["Pss_Anon:", "Pss_File:"];
        assert_eq!(sum_of(rollup, &fields), Some(150 * 1024));
        assert_eq!(sum_of("Rss:  900 kB\nPss:  300 kB\n", &fields), None);
        assert_eq!(sum_of("", &fields), None);
    }

    #[test]
    fn this_process_is_in_the_table() {
        let own = table().remove(&getpid().as_raw()).expect("it runs");
        assert!(own.threads >= 1 && own.resident_pages > 0);
    }

    #[test]
    fn descent_goes_through_several_generations() {
        let parents = BTreeMap::from([(2, 1), (3, 2), (4, 3), (5, 1), (1, 0)]);
        assert!(descends(4, 2, &parents));
        assert!(!descends(5, 2, &parents));
        assert!(!descends(2, 2, &parents));
    }
}
