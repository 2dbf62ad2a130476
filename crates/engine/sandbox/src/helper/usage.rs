//! What a program's processes use, counted from the process table.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use nix::sys::statvfs::statvfs;
use nix::unistd::{Pid, SysconfVar, getpid, sysconf};

use super::view;
use crate::plan::Walls;
use crate::verdict::Usage;

/// One line of the process table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Process {
    parent: i32,
    threads: u64,
    resident_pages: u64,
}

/// What everything that runs here uses at this moment.
pub(super) fn measure(walls: Walls) -> Usage {
    let processes = descendants(walls);
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
    if let (Walls::Namespaces, Ok(space)) = (walls, statvfs(view::TEMPORARY)) {
        usage.temporary_full = space.blocks() > 0 && space.blocks_available() == 0;
        usage.temporary_files_full = space.files() > 0 && space.files_available() == 0;
    }
    usage
}

/// Everybody who came from this process.
pub(super) fn pids(walls: Walls) -> Vec<Pid> {
    let processes = descendants(walls);
    processes.into_keys().map(Pid::from_raw).collect()
}

fn descendants(walls: Walls) -> BTreeMap<i32, Process> {
    let mut all = table();
    let own = getpid().as_raw();
    match walls {
        // Everybody else here came from this process.
        Walls::Namespaces => {
            all.remove(&own);
            all
        }
        Walls::Refusals => {
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

fn table() -> BTreeMap<i32, Process> {
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
fn parse(line: &str) -> Option<Process> {
    let (_, rest) = line.rsplit_once(") ")?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    Some(Process {
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
        let expected = Process {
            parent: 3,
            threads: 9,
            resident_pages: 55,
        };
        assert_eq!(parse(line), Some(expected));
        assert_eq!(parse("7 (x"), None);
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
