//! `cargo xtask test`: sets up, then runs every check and test, and closes with one summary.
//!
//! All stages run even after one failed, so that one run tells everything. A test that lacks a
//! third-party tool reports itself in the file named by `NIMBUS_TEST_SKIPS`; its binary counts it as
//! passed, the summary does not.

mod binaries;
mod counts;
mod hangs;
mod schedule;
mod timings;

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use self::binaries::{BuiltTests, TestBinary};
use self::counts::Counts;
use self::hangs::{LIMIT, LONG_LIMIT, SlowTests, watch_for_hangs};
use self::schedule::{FinishedBinary, TestSetting};
use self::timings::{RunTimes, StageTime};
use crate::bench;
use crate::console;
use crate::env;
use crate::library;
use crate::linted;
use crate::process;
use crate::repo::Repo;
use crate::setup::{self, InstalledTools, SetupScope};
use crate::tidy;

#[derive(clap::Args)]
pub(crate) struct TestOptions {
    /// Run the tests that have a long form in it: the full numbers of docs/reliability.md, in about
    /// an hour on a machine of its own.
    #[arg(long)]
    long: bool,
    /// Leave out the official command line, which is otherwise built from pinned Go modules where there is
    /// Go: the engine is then compared with recordings, and what runs only live is skipped.
    #[arg(long)]
    recorded: bool,
    /// Also run the browser tests of the console, three minutes with a Chromium.
    #[arg(long)]
    browser: bool,
    /// Write how long everything took to docs/bench/tests.md, by which the next run is ordered.
    #[arg(long)]
    timings: bool,
    /// Arguments for `cargo test` instead of the whole workspace, such as `-p nimbus-core`; with these
    /// only the tests run, without formatting, lints and tidy.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    cargo: Vec<String>,
}

impl TestOptions {
    fn limit(&self) -> Duration {
        if self.long { LONG_LIMIT } else { LIMIT }
    }
}

/// A run of all stages: what happened so far.
#[derive(Default)]
struct TestRun {
    counts: Counts,
    failed: Vec<&'static str>,
    times: RunTimes,
}

pub(crate) fn run(repo: &Repo, options: &TestOptions) -> Result<()> {
    let mut run = TestRun::default();
    let mut tools = setup::install(repo, SetupScope::Integration)?;
    // Checks leave processor time unused, and downloads use none. Who asks for some tests
    // only gets along with what an earlier run built.
    let builds = options.cargo.is_empty() && !options.recorded;
    let (prepared, go_tools) = thread::scope(|scope| {
        let building = builds.then(|| scope.spawn(|| setup::install_go_tools(repo)));
        let prepared = run
            .check(repo, options)
            .and_then(|()| run.build(repo, options));
        (prepared, building.map(|building| building.join()))
    });
    let built = prepared?;
    match go_tools {
        None if options.recorded => tools.leave_go_tools_out("left out with `--recorded`"),
        None => {}
        Some(Ok(go_tools)) => tools.add_go_tools(go_tools?),
        Some(Err(_)) => {
            bail!("set-up of the Go tools ended in a defect; the lines above say where")
        }
    }
    run.tests(repo, options, &tools, built)?;
    if options.cargo.is_empty() && tools.pulumi.path().is_some() {
        run.stage("bench engine, in short", |_| {
            bench::engine::short(repo, &tools)
        })?;
    }
    if options.browser {
        run.stage("browser", |run| {
            let skips = repo.join("target/browser-skips.txt");
            run.counts.passed += console::browser(repo, &tools, &skips, false)?;
            let skipped = read(&skips)?;
            // The runner does not count skipped tests as passed, as cargo does.
            run.counts.passed += skipped.lines().count();
            run.counts.read_skips(&skipped);
            Ok(())
        })?;
    }
    run.times.sort();
    if options.timings {
        run.times.write(repo)?;
    }
    run.summarize();
    if run.failed.is_empty() {
        return Ok(());
    }
    bail!("failed: {}", run.failed.join(", "))
}

impl TestRun {
    fn stage(
        &mut self,
        name: &'static str,
        body: impl FnOnce(&mut Self) -> Result<()>,
    ) -> Result<()> {
        println!("\n== {name}");
        let begun = Instant::now();
        match body(self) {
            Err(error) if process::interrupted() => return Err(error),
            Err(error) => {
                println!("{name}: {error:#}");
                self.failed.push(name);
            }
            Ok(()) => {}
        }
        self.times.stages.push(StageTime {
            name: name.to_owned(),
            wall_s: begun.elapsed().as_secs_f64().round(),
        });
        Ok(())
    }

    /// Everything that needs no tool of a test.
    fn check(&mut self, repo: &Repo, options: &TestOptions) -> Result<()> {
        if options.cargo.is_empty() {
            self.stage("formatting", |_| {
                cargo(repo, &["fmt", "--all", "--check"])
                    .context("run `cargo fmt --all` and commit the result")
            })?;
            self.stage("tidy", |_| tidy::run(repo, &tidy::TidyOptions::default()))?;
            self.stage("library", |run| {
                run.counts.passed += library::check(repo)?;
                Ok(())
            })?;
            // Before the tests, so that the servers of tests carry the console that was just built.
            self.stage("console", |run| {
                run.counts.passed += console::check(repo)?;
                Ok(())
            })?;
        }
        if options.long {
            println!("\nlong forms: this may take an hour, and wants the machine for itself");
        }
        Ok(())
    }

    /// The tests, where they are not left to cargo. They need tools only when they run.
    fn build(&mut self, repo: &Repo, options: &TestOptions) -> Result<Vec<TestBinary>> {
        let mut built = Vec::new();
        if options.cargo.is_empty() {
            self.stage("build of the tests, with lints", |_| {
                let BuiltTests {
                    binaries,
                    complaints,
                } = binaries::build(repo)?;
                built = binaries;
                anyhow::ensure!(complaints == 0, "{complaints} complaints, see above");
                Ok(())
            })?;
            timings::longest_first(repo, &mut built);
        }
        Ok(built)
    }

    fn tests(
        &mut self,
        repo: &Repo,
        options: &TestOptions,
        tools: &InstalledTools,
        built: Vec<TestBinary>,
    ) -> Result<()> {
        let skips = repo.join("target/test-skips.txt");
        fs::create_dir_all(repo.join("target"))?;
        fs::write(&skips, "")?;
        let mut variables = env::variables(tools);
        variables.push((env::SKIPS, skips.clone().into_os_string()));
        if options.long {
            variables.push((env::LONG, "1".into()));
        }
        if options.cargo.is_empty() {
            let setting = TestSetting {
                variables: variables.clone(),
                limit: options.limit(),
                outputs: repo.join("target/test-output"),
            };
            self.stage("tests", |run| run.side_by_side(built, &setting))?;
        } else {
            let given = &options.cargo;
            self.stage("tests", |run| {
                run.cargo_test(repo, given, &variables, options.limit())
            })?;
        }
        self.counts.read_skips(&read(&skips)?);
        Ok(())
    }

    fn side_by_side(&mut self, built: Vec<TestBinary>, setting: &TestSetting<'_>) -> Result<()> {
        let mut failed = Vec::new();
        let (counts, times) = (&mut self.counts, &mut self.times);
        schedule::run(built, setting, |ended| {
            let FinishedBinary {
                name,
                lines,
                passed,
                time,
                tests,
            } = ended;
            if !passed {
                lines.iter().for_each(|line| println!("{line}"));
                failed.push(name.clone());
            }
            lines.iter().for_each(|line| counts.read_line(line));
            let word = if passed { "ok" } else { "FAILED" };
            println!(
                "{:8.1} s  {word}  {name} ({} tests)",
                time.wall_s, time.tests
            );
            times.binaries.push(time);
            times.tests.extend(tests);
        })?;
        anyhow::ensure!(failed.is_empty(), "tests failed in {}", failed.join(", "));
        Ok(())
    }

    /// Tests as cargo runs them, one binary after the other.
    fn cargo_test(
        &mut self,
        repo: &Repo,
        arguments: &[String],
        variables: &[(&str, OsString)],
        limit: Duration,
    ) -> Result<()> {
        let mut command = linted::cargo()?;
        command
            // Without this the first failing crate hides the results of the others.
            .args(["test", "--no-fail-fast"])
            .args(arguments)
            .current_dir(repo.root())
            .envs(variables.iter().map(|(name, value)| (name, value)));
        let slow = Mutex::new(SlowTests::default());
        let over = AtomicBool::new(false);
        let (status, hung) = thread::scope(|scope| {
            let watchdog = scope.spawn(|| watch_for_hangs(&slow, &over, limit));
            let status = process::run_watched(&mut command, |line| {
                println!("{line}");
                self.counts.read_line(line);
                if let Ok(mut slow) = slow.lock() {
                    slow.read_line("cargo", line, Instant::now());
                }
            });
            over.store(true, Ordering::SeqCst);
            watchdog.thread().unpark();
            (status, watchdog.join().unwrap_or_default())
        });
        let status = status?;
        anyhow::ensure!(
            hung.is_empty(),
            "ended after {} minutes in: {}",
            limit.as_secs() / 60,
            hung.join(", ")
        );
        anyhow::ensure!(status.success(), "some tests failed");
        Ok(())
    }

    fn summarize(&self) {
        println!("\n== time\n{}", self.times.slowest());
        println!("== summary");
        for (reason, tests) in &self.counts.skipped {
            println!(
                "skipped: {reason} ({tests} {})",
                if *tests == 1 { "test" } else { "tests" }
            );
        }
        for name in &self.failed {
            println!("failed: {name}");
        }
        println!("{}", self.counts.closing_line());
    }
}

fn cargo(repo: &Repo, arguments: &[&str]) -> Result<()> {
    process::run_foreground(process::cargo().args(arguments).current_dir(repo.root()))
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_long_forms_are_asked_for_before_what_cargo_is_told() {
        #[derive(clap::Parser)]
        struct Line {
            #[command(flatten)]
            options: TestOptions,
        }
        let read = |words: &[&str]| {
            let words = ["xtask"].iter().chain(words);
            let line = <Line as clap::Parser>::try_parse_from(words).unwrap();
            (line.options.long, line.options.cargo)
        };
        assert_eq!(read(&["--long"]), (true, Vec::new()));
        let narrow = ["-p".to_owned(), "nimbus-core".to_owned()];
        assert_eq!(
            read(&["--long", "-p", "nimbus-core"]),
            (true, narrow.into())
        );
        assert!(!read(&["-p", "nimbus-core"]).0);
    }
}
