//! Runs one program and tells what it used: time, processor time and peak memory.
//!
//! Processor time comes from the kernel's accounting of waited-for children. It is a sum over all
//! children a process ever had, so every measurement is a process of its own: `bench` calls the
//! hidden command `measure`. A process whose parent ends first is inherited by somebody else, and
//! its time with it; so this process makes itself the heir of everything below it, and waits for
//! those that are left when the program has ended. Peak memory is the largest sum over everything
//! below this process, sampled; programs too short for a sample report their largest process.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use nix::errno::Errno;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use serde::{Deserialize, Serialize};

/// The kernel's unit for the largest resident set: bytes on macOS, kilobytes elsewhere.
const UNITS_PER_KB: u64 = if cfg!(target_os = "macos") { 1024 } else { 1 };
const BETWEEN_SAMPLES: Duration = Duration::from_millis(10);

#[derive(clap::Args)]
pub(crate) struct MeasureOptions {
    /// Where the program's output goes.
    #[arg(long)]
    log: PathBuf,
    #[arg(trailing_var_arg = true, required = true, allow_hyphen_values = true)]
    program: Vec<String>,
}

/// What one run of a program used.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
pub(crate) struct Sample {
    pub(crate) wall_ms: f64,
    pub(crate) cpu_ms: f64,
    pub(crate) peak_mb: f64,
}

/// Measures `command` in a process of its own. A program that fails has no figures.
pub(super) fn sample(command: &Command, log: &Path) -> Result<Sample> {
    let mut helper = Command::new(std::env::current_exe()?);
    helper.arg("measure").arg("--log").arg(log).arg("--");
    helper.arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => helper.env(name, value),
            None => helper.env_remove(name),
        };
    }
    if let Some(folder) = command.get_current_dir() {
        helper.current_dir(folder);
    }
    let text = crate::process::capture(&mut helper)
        .with_context(|| fs::read_to_string(log).unwrap_or_default())?;
    serde_json::from_str(&text).context("the measurement is not understood")
}

pub(crate) fn run(options: &MeasureOptions) -> Result<()> {
    let log = File::create(&options.log)
        .with_context(|| format!("cannot write {}", options.log.display()))?;
    let (program, arguments) = options
        .program
        .split_first()
        .context("no program was given")?;
    inherit_orphans()?;
    let start = Instant::now();
    let child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        .spawn()
        .with_context(|| format!("cannot run {program}"))?;
    let (sampled_kb, wall) = watch(child, start)?;
    wait_for_orphans()?;
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let cpu_us = [usage.user_time(), usage.system_time()]
        .iter()
        .map(|time| time.tv_sec() * 1_000_000 + time.tv_usec())
        .sum::<i64>();
    let peak_kb = sampled_kb.max(u64::try_from(usage.max_rss())? / UNITS_PER_KB);
    let sample = Sample {
        wall_ms: wall.as_secs_f64() * 1e3,
        cpu_ms: cpu_us as f64 / 1e3,
        peak_mb: peak_kb as f64 / 1024.0,
    };
    println!("{}", serde_json::to_string(&sample)?);
    Ok(())
}

/// Waits for the program on a thread of its own, so that the end is seen at once, and samples
/// memory meanwhile.
fn watch(mut child: Child, start: Instant) -> Result<(u64, Duration)> {
    let root = std::process::id();
    let (report, ended) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let status = child.wait();
        // The receiver lives until this arrives.
        let _ = report.send((status, start.elapsed()));
    });
    let mut peak = 0;
    loop {
        match ended.recv_timeout(BETWEEN_SAMPLES) {
            Ok((status, wall)) => {
                let status = status?;
                anyhow::ensure!(status.success(), "the program {status}");
                return Ok((peak, wall));
            }
            Err(_) => peak = peak.max(below_kb(root, &processes())),
        }
    }
}

/// A process: its parent and its resident memory.
struct ProcessMemory {
    parent: u32,
    resident_kb: u64,
}

/// All processes of the machine; empty where there is no `/proc`.
fn processes() -> BTreeMap<u32, ProcessMemory> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return BTreeMap::new();
    };
    entries
        .flatten()
        .filter_map(|entry| {
            let pid = entry.file_name().to_str()?.parse().ok()?;
            let status = fs::read_to_string(entry.path().join("status")).ok()?;
            Some((pid, parse_status(&status)?))
        })
        .collect()
}

fn parse_status(text: &str) -> Option<ProcessMemory> {
    let field = |name: &str| {
        text.lines()
            .find_map(|line| line.strip_prefix(name)?.split_whitespace().next())
    };
    // A process that is ending has no memory left.
    let resident_kb = field("VmRSS:").map_or(Some(0), |text| text.parse().ok())?;
    Some(ProcessMemory {
        parent: field("PPid:")?.parse().ok()?,
        resident_kb,
    })
}

/// Memory of everything that `root` started, and what that started.
fn below_kb(root: u32, processes: &BTreeMap<u32, ProcessMemory>) -> u64 {
    let children = processes
        .iter()
        .filter(|(_, process)| process.parent == root);
    children
        .map(|(pid, process)| process.resident_kb + below_kb(*pid, processes))
        .sum()
}

/// From now on processes below this one whose parent ends become children of this one.
#[cfg(target_os = "linux")]
fn inherit_orphans() -> Result<()> {
    Ok(nix::sys::prctl::set_child_subreaper(true)?)
}

#[cfg(not(target_os = "linux"))]
fn inherit_orphans() -> Result<()> {
    Ok(())
}

/// What a program leaves behind has cost as much as the rest. It has a minute to end; what then
/// still runs is no part of the run, and the measurement would be wrong.
fn wait_for_orphans() -> Result<()> {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
            Err(Errno::ECHILD) => return Ok(()),
            Ok(WaitStatus::StillAlive) => {
                anyhow::ensure!(
                    Instant::now() < deadline,
                    "processes of the program are still running a minute after its end"
                );
                std::thread::sleep(BETWEEN_SAMPLES);
            }
            Ok(_) | Err(Errno::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_summed_over_everything_below_and_nothing_else() {
        let process = |parent, resident_kb| ProcessMemory {
            parent,
            resident_kb,
        };
        let processes = BTreeMap::from([
            (1, process(0, 1000)),
            (10, process(1, 10)),
            (11, process(10, 5)),
            (12, process(11, 2)),
            (20, process(1, 500)),
        ]);
        assert_eq!(below_kb(10, &processes), 7);
        assert_eq!(below_kb(20, &processes), 0);
    }

    #[test]
    fn the_kernels_own_words_are_read() {
        let process = parse_status("Name:\tx\nPPid:\t7\nVmRSS:\t  120 kB\n").unwrap();
        assert_eq!((process.parent, process.resident_kb), (7, 120));
        assert_eq!(parse_status("PPid:\t7\n").unwrap().resident_kb, 0);
    }
}
