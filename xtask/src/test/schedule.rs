//! Runs test binaries side by side.
//!
//! Cargo runs one after the other, and each ends with its slowest test while the other processors wait;
//! many tests wait themselves, for processes that start or for time to pass. So there are as many binaries
//! at once as there are processors, each with as many tests at once, and those that take longest begin.
//! What a binary printed is shown when it failed, and is kept in any case.

use std::collections::VecDeque;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::binaries::TestBinary;
use super::hangs::{SlowTests, watch_for_hangs};
use super::timings::{BinaryTime, TestTime, TimedLines};
use crate::process::{self, EndedProgram};

/// How tests are run.
pub(super) struct TestSetting<'a> {
    /// Variables that tests are told things by.
    pub(super) variables: Vec<(&'a str, std::ffi::OsString)>,
    /// No test may take longer.
    pub(super) limit: Duration,
    /// What binaries print is kept here.
    pub(super) outputs: PathBuf,
}

/// What came of a binary.
pub(super) struct FinishedBinary {
    pub(super) name: String,
    pub(super) lines: Vec<String>,
    pub(super) passed: bool,
    pub(super) time: BinaryTime,
    pub(super) tests: Vec<TestTime>,
}

/// Runs all of them, in this order, and hands each over when it has ended.
///
/// # Errors
///
/// When a test hangs, or a binary cannot be run at all. That tests failed is for the caller to say.
pub(super) fn run(
    binaries: Vec<TestBinary>,
    setting: &TestSetting<'_>,
    mut on_end: impl FnMut(FinishedBinary),
) -> Result<()> {
    fs::create_dir_all(&setting.outputs)?;
    let width = thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let waiting = Mutex::new(VecDeque::from(binaries));
    let slow = Mutex::new(SlowTests::default());
    let over = AtomicBool::new(false);
    let (sender, ended) = mpsc::channel();
    let (hung, failure) = thread::scope(|scope| {
        let watchdog = scope.spawn(|| watch_for_hangs(&slow, &over, setting.limit));
        for _ in 0..width {
            let (sender, waiting, slow, over) = (sender.clone(), &waiting, &slow, &over);
            scope.spawn(move || {
                while !over.load(Ordering::SeqCst) {
                    let Some(binary) = next(waiting) else {
                        return;
                    };
                    if sender.send(run_one(&binary, width, setting, slow)).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        let mut failure = None;
        for finished in ended {
            match finished {
                Ok(finished) => on_end(finished),
                Err(error) => {
                    over.store(true, Ordering::SeqCst);
                    failure = failure.or(Some(error));
                }
            }
        }
        over.store(true, Ordering::SeqCst);
        watchdog.thread().unpark();
        (watchdog.join().unwrap_or_default(), failure)
    });
    anyhow::ensure!(
        hung.is_empty(),
        "ended after {} minutes in: {}",
        setting.limit.as_secs() / 60,
        hung.join(", ")
    );
    failure.map_or(Ok(()), Err)
}

fn next(waiting: &Mutex<VecDeque<TestBinary>>) -> Option<TestBinary> {
    waiting.lock().ok()?.pop_front()
}

fn run_one(
    binary: &TestBinary,
    width: usize,
    setting: &TestSetting<'_>,
    slow: &Mutex<SlowTests>,
) -> Result<FinishedBinary> {
    let name = &binary.name;
    // With one at a time a binary says which test has begun, not which has ended.
    let threads = width.max(2);
    let mut lines = Vec::new();
    let mut timed = TimedLines::new(threads, Instant::now());
    let ended = process::run_beside(command(binary, threads, setting), |line| {
        let now = Instant::now();
        timed.read_line(line, now);
        if let Ok(mut slow) = slow.lock() {
            slow.read_line(name, line, now);
        }
        lines.push(line.to_owned());
    })
    .with_context(|| format!("cannot run the tests of {name}"))?;
    if let Ok(mut slow) = slow.lock() {
        slow.ended(name);
    }
    let EndedProgram {
        status,
        wall,
        cpu,
        left_processes,
    } = ended;
    if left_processes {
        lines.push("(processes that it started are still running)".to_owned());
    }
    if !status.success() && !lines.iter().any(|line| line.starts_with("test result: ")) {
        lines.push(format!("(it did not come to its end: {status})"));
    }
    keep(&setting.outputs, name, &lines)?;
    let tests = timed.tests();
    Ok(FinishedBinary {
        time: BinaryTime {
            name: name.clone(),
            tests: tests.len(),
            wall_s: wall.as_secs_f64(),
            cpu_s: cpu.map(|cpu| cpu.as_secs_f64()),
        },
        tests: tests
            .into_iter()
            .map(|(test, took)| TestTime {
                name: format!("{name} {test}"),
                wall_s: took.as_secs_f64(),
            })
            .collect(),
        name: name.clone(),
        lines,
        passed: status.success(),
    })
}

/// As cargo would run it.
fn command(binary: &TestBinary, threads: usize, setting: &TestSetting<'_>) -> Command {
    let mut command = Command::new(&binary.program);
    command
        .arg(format!("--test-threads={threads}"))
        .current_dir(&binary.package)
        .env("CARGO_MANIFEST_DIR", &binary.package)
        .envs(setting.variables.iter().map(|(name, value)| (name, value)));
    command
}

fn keep(folder: &Path, name: &str, lines: &[String]) -> Result<()> {
    let file = folder.join(format!("{}.txt", name.replace('/', "-")));
    let mut text = lines.join("\n");
    text.push('\n');
    fs::write(&file, text).with_context(|| format!("cannot write {}", file.display()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use crate::test::hangs::LIMIT;

    fn binary(folder: &Path, name: &str, script: &str) -> TestBinary {
        let program = folder.join(name);
        fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o700)).unwrap();
        TestBinary {
            name: format!("crates/{name}"),
            program,
            package: folder.to_path_buf(),
        }
    }

    #[test]
    fn every_binary_runs_and_what_it_said_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let good = "echo 'test a ... ok'; echo \"$GIVEN $1\" >&2; echo 'test result: ok. 1 passed; 0 failed;'";
        let binaries = vec![
            binary(folder.path(), "good", good),
            binary(folder.path(), "bad", "echo 'test b ... FAILED'; exit 101"),
        ];
        let setting = TestSetting {
            variables: vec![("GIVEN", "told".into())],
            limit: LIMIT,
            outputs: folder.path().join("outputs"),
        };
        let mut seen = Vec::new();
        run(binaries, &setting, |ended| {
            seen.push((ended.name, ended.passed, ended.lines, ended.tests.len()));
        })
        .unwrap();
        seen.sort();
        let threads = thread::available_parallelism().unwrap().get().max(2);
        let (name, passed, lines, tests) = &seen[1];
        assert_eq!((name.as_str(), *passed, *tests), ("crates/good", true, 1));
        assert_eq!(lines[1], format!("told --test-threads={threads}"));
        let (name, passed, lines, _) = &seen[0];
        assert_eq!((name.as_str(), *passed), ("crates/bad", false));
        assert!(lines[1].contains("did not come to its end"), "{lines:?}");
        let kept = fs::read_to_string(setting.outputs.join("crates-good.txt")).unwrap();
        assert!(kept.starts_with("test a ... ok\n"), "{kept}");
    }
}
