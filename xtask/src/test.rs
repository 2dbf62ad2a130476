//! `cargo xtask test`: sets up, then runs every check and test, and closes with one summary.
//!
//! All stages run even after one failed, so that one run tells everything. A test that lacks a
//! third-party tool reports itself in the file named by `NIMBUS_TEST_SKIPS`; cargo counts it as
//! passed, the summary does not.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::console;
use crate::env;
use crate::library;
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
    /// Also build the official command line and its hosts from pinned Go modules, a quarter of an hour
    /// the first time, and compare with them live instead of with recordings.
    #[arg(long)]
    official: bool,
    /// Also run the browser tests of the console, three minutes with a Chromium.
    #[arg(long)]
    browser: bool,
    /// Arguments for `cargo test` instead of `--workspace`, such as `-p nimbus-core`; with these
    /// only the tests run, without formatting, lints and tidy.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    cargo: Vec<String>,
}

pub(crate) fn run(repo: &Repo, options: &TestOptions) -> Result<()> {
    let mut tools = setup::install(repo, SetupScope::Integration)?;
    // Lints leave processor time unused at their end, and downloads use none.
    let (checked, go_tools) = thread::scope(|scope| {
        let building = options
            .official
            .then(|| scope.spawn(|| setup::install_go_tools(repo)));
        let checked = check(repo, options);
        (checked, building.map(|building| building.join()))
    });
    let (mut counts, mut failed) = checked?;
    match go_tools {
        None => {}
        Some(Ok(go_tools)) => tools.add_go_tools(go_tools?),
        Some(Err(_)) => {
            bail!("set-up of the Go tools ended in a defect; the lines above say where")
        }
    }
    stage(&mut failed, "tests", || {
        run_tests(repo, options, &tools, &mut counts)
    })?;
    if options.browser {
        stage(&mut failed, "browser", || {
            let skips = repo.join("target/browser-skips.txt");
            counts.passed += console::browser(repo, &tools, &skips, false)?;
            let skipped = read(&skips)?;
            // The runner does not count skipped tests as passed, as cargo does.
            counts.passed += skipped.lines().count();
            counts.read_skips(&skipped);
            Ok(())
        })?;
    }
    summarize(&counts, &failed);
    if failed.is_empty() {
        return Ok(());
    }
    bail!("failed: {}", failed.join(", "))
}

/// Everything that needs no tool of a test.
fn check(repo: &Repo, options: &TestOptions) -> Result<(Counts, Vec<&'static str>)> {
    let mut failed = Vec::new();
    if options.cargo.is_empty() {
        stage(&mut failed, "formatting", || {
            cargo(repo, &["fmt", "--all", "--check"])
                .context("run `cargo fmt --all` and commit the result")
        })?;
        stage(&mut failed, "lints", || {
            cargo(
                repo,
                &[
                    "clippy",
                    "--workspace",
                    "--all-targets",
                    "--",
                    "-D",
                    "warnings",
                ],
            )
        })?;
        stage(&mut failed, "tidy", || {
            tidy::run(repo, &tidy::TidyOptions::default())
        })?;
    }
    let mut counts = Counts::default();
    if options.cargo.is_empty() {
        stage(&mut failed, "library", || {
            counts.passed += library::check(repo)?;
            Ok(())
        })?;
        // Before the tests, so that the servers of tests carry the console that was just built.
        stage(&mut failed, "console", || {
            counts.passed += console::check(repo)?;
            Ok(())
        })?;
    }
    if options.long {
        println!("\nlong forms: this may take an hour, and wants the machine for itself");
    }
    Ok((counts, failed))
}

fn stage(
    failed: &mut Vec<&'static str>,
    name: &'static str,
    body: impl FnOnce() -> Result<()>,
) -> Result<()> {
    println!("\n== {name}");
    match body() {
        Err(error) if process::interrupted() => return Err(error),
        Err(error) => {
            println!("{name}: {error:#}");
            failed.push(name);
        }
        Ok(()) => {}
    }
    Ok(())
}

fn cargo(repo: &Repo, arguments: &[&str]) -> Result<()> {
    process::run_foreground(
        Command::new("cargo")
            .args(arguments)
            .current_dir(repo.root()),
    )
}

fn run_tests(
    repo: &Repo,
    options: &TestOptions,
    tools: &InstalledTools,
    counts: &mut Counts,
) -> Result<()> {
    let skips = repo.join("target/test-skips.txt");
    fs::create_dir_all(repo.join("target"))?;
    fs::write(&skips, "")?;
    let mut command = Command::new("cargo");
    command
        // Without this the first failing crate hides the results of the others.
        .args(["test", "--no-fail-fast"])
        .args(if options.cargo.is_empty() {
            &WORKSPACE[..]
        } else {
            &options.cargo[..]
        })
        .current_dir(repo.root())
        .envs(env::variables(tools))
        .env(env::SKIPS, &skips);
    let mut limit = LIMIT;
    if options.long {
        command.env(env::LONG, "1");
        limit = LONG_LIMIT;
    }
    let slow = Mutex::new(SlowTests::default());
    let over = AtomicBool::new(false);
    let (status, hung) = thread::scope(|scope| {
        let watchdog = scope.spawn(|| watch_for_hangs(&slow, &over, limit));
        let status = process::run_watched(&mut command, |line| {
            println!("{line}");
            counts.read_line(line);
            if let Ok(mut slow) = slow.lock() {
                slow.read_line(line, Instant::now());
            }
        });
        over.store(true, Ordering::SeqCst);
        watchdog.thread().unpark();
        (status, watchdog.join().unwrap_or_default())
    });
    let status = status?;
    counts.read_skips(&read(&skips)?);
    anyhow::ensure!(
        hung.is_empty(),
        "ended after {} minutes in: {}",
        limit.as_secs() / 60,
        hung.join(", ")
    );
    anyhow::ensure!(status.success(), "some tests failed");
    Ok(())
}

/// No test takes so long, on a busy machine of two cores either. One that does waits for something that
/// never comes.
const LIMIT: Duration = Duration::from_secs(1800);

/// One test's long form takes minutes; none is meant to take as long as all of them together.
const LONG_LIMIT: Duration = Duration::from_secs(7200);

/// Ends the tests when one of them hangs, and says which.
fn watch_for_hangs(slow: &Mutex<SlowTests>, over: &AtomicBool, limit: Duration) -> Vec<String> {
    while !over.load(Ordering::SeqCst) {
        let overdue = slow.lock().map(|slow| slow.overdue(Instant::now(), limit));
        let overdue = overdue.unwrap_or_default();
        if !overdue.is_empty() {
            process::end_running();
            return overdue;
        }
        thread::park_timeout(Duration::from_secs(1));
    }
    Vec::new()
}

/// Tests that are running for long, as their binaries tell by themselves: `test a::b has been running
/// for over 60 seconds`.
#[derive(Debug, Default)]
struct SlowTests(BTreeMap<String, Instant>);

impl SlowTests {
    const TOLD_AFTER: Duration = Duration::from_secs(60);

    fn read_line(&mut self, line: &str, now: Instant) {
        if line.starts_with("test result: ") {
            self.0.clear();
            return;
        }
        let Some(rest) = line.strip_prefix("test ") else {
            return;
        };
        if let Some(name) = rest.strip_suffix(" has been running for over 60 seconds") {
            let begun = now.checked_sub(Self::TOLD_AFTER).unwrap_or(now);
            self.0.insert(name.to_owned(), begun);
        } else if let Some((name, _)) = rest.split_once(" ... ") {
            self.0.remove(name);
        }
    }

    fn overdue(&self, now: Instant, limit: Duration) -> Vec<String> {
        let late = self.0.iter().filter(|(_, begun)| now - **begun >= limit);
        late.map(|(name, _)| name.clone()).collect()
    }
}

static WORKSPACE: std::sync::LazyLock<Vec<String>> =
    std::sync::LazyLock::new(|| vec!["--workspace".to_owned()]);

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

fn summarize(counts: &Counts, failed: &[&str]) {
    println!("\n== summary");
    for (reason, tests) in &counts.skipped {
        println!(
            "skipped: {reason} ({tests} {})",
            if *tests == 1 { "test" } else { "tests" }
        );
    }
    for name in failed {
        println!("failed: {name}");
    }
    println!("{}", counts.closing_line());
}

/// What happened to the tests of a whole run.
#[derive(Debug, Default, PartialEq, Eq)]
struct Counts {
    passed: usize,
    failed: usize,
    /// Switched off in the source. Tidy forbids these, so they are shown as what they are.
    ignored: usize,
    /// How many tests were skipped for which reason.
    skipped: BTreeMap<String, usize>,
}

impl Counts {
    /// Adds up the closing lines of test binaries:
    /// `test result: ok. 3 passed; 0 failed; 0 ignored; …`.
    fn read_line(&mut self, line: &str) {
        let Some((_, numbers)) = line
            .strip_prefix("test result: ")
            .and_then(|rest| rest.split_once(". "))
        else {
            return;
        };
        for part in numbers.split(';') {
            let mut words = part.split_whitespace();
            let (Some(number), Some(what)) = (words.next(), words.next()) else {
                continue;
            };
            let Ok(number) = number.parse::<usize>() else {
                continue;
            };
            match what {
                "passed" => self.passed += number,
                "failed" => self.failed += number,
                "ignored" => self.ignored += number,
                _ => {}
            }
        }
    }

    /// Reads lines `SKIPPED(no pulumi CLI): some::test`. A line of another form is counted under its
    /// own text: whatever it means, that test did not pass.
    fn read_skips(&mut self, text: &str) {
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            let reason = line
                .strip_prefix("SKIPPED(")
                .and_then(|rest| rest.split_once("): "))
                .map_or(line, |(reason, _)| reason);
            *self.skipped.entry(reason.to_owned()).or_default() += 1;
        }
    }

    /// A skipped test returned early, so cargo counted it as passed.
    fn closing_line(&self) -> String {
        let skipped: usize = self.skipped.values().sum();
        format!(
            "{} passed, {} failed, {} skipped",
            self.passed.saturating_sub(skipped),
            self.failed,
            skipped + self.ignored
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_of_all_binaries_are_added_up() {
        let mut counts = Counts::default();
        for line in [
            "running 3 tests",
            "test a ... ok",
            "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out",
            "test result: FAILED. 2 passed; 1 failed; 0 ignored; 0 measured; 9 filtered out",
        ] {
            counts.read_line(line);
        }
        assert_eq!((counts.passed, counts.failed, counts.ignored), (5, 1, 1));
    }

    #[test]
    fn a_test_that_hangs_is_named_and_one_that_ends_is_not() {
        let mut slow = SlowTests::default();
        let now = Instant::now();
        for line in [
            "test a::ends has been running for over 60 seconds",
            "test b::hangs has been running for over 60 seconds",
            "test a::ends ... ok",
            "test c::fine ... ok",
        ] {
            slow.read_line(line, now);
        }
        assert_eq!(slow.overdue(now, LIMIT), Vec::<String>::new());
        assert_eq!(slow.overdue(now + LIMIT, LIMIT), ["b::hangs"]);
        slow.read_line("test result: ok. 3 passed; 0 failed;", now);
        assert_eq!(slow.overdue(now + LIMIT, LIMIT), Vec::<String>::new());
    }

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

    #[test]
    fn skipped_tests_are_counted_by_reason_and_not_as_passed() {
        let mut counts = Counts {
            passed: 10,
            failed: 1,
            ..Counts::default()
        };
        counts.read_skips(
            "SKIPPED(no pulumi CLI): a::b\nSKIPPED(no S3 server): c\n\n\
             SKIPPED(no pulumi CLI): d\nin words of its own\n",
        );
        assert_eq!(counts.skipped["no pulumi CLI"], 2);
        assert_eq!(counts.skipped["in words of its own"], 1);
        assert_eq!(counts.closing_line(), "6 passed, 1 failed, 4 skipped");
    }
}
