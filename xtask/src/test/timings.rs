//! How long tests take, and the page that says so.
//!
//! The page's figures also say which binaries begin (see `schedule`), so they are worth renewing when
//! suites grow.

use std::collections::BTreeMap;
use std::fs;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use super::binaries::TestBinary;
use crate::repo::Repo;

const FIGURES: &str = "docs/bench/tests.json";
const PAGE: &str = "docs/bench/tests.md";
/// So many are shown at the end of every run.
const SHOWN: usize = 10;
/// So many are on the page.
const ON_PAGE: usize = 40;
/// Nobody has measured it yet.
const UNKNOWN: f64 = 10.0;

#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(super) struct BinaryTime {
    pub(super) name: String,
    pub(super) tests: usize,
    pub(super) wall_s: f64,
    #[serde(default)]
    pub(super) cpu_s: Option<f64>,
}

#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(super) struct TestTime {
    pub(super) name: String,
    pub(super) wall_s: f64,
}

/// The time that each stage, binary and test of a run took.
#[derive(Debug, Default, Deserialize, Serialize)]
pub(super) struct RunTimes {
    pub(super) stages: Vec<StageTime>,
    pub(super) binaries: Vec<BinaryTime>,
    pub(super) tests: Vec<TestTime>,
}

#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(super) struct StageTime {
    pub(super) name: String,
    pub(super) wall_s: f64,
}

/// Reads from a binary's lines when each of its tests ended, which says when it began: they begin in
/// the order of their names, and the next one when one has ended.
pub(super) struct TimedLines {
    at_once: usize,
    begun: Instant,
    ended: Vec<(String, Instant)>,
}

impl TimedLines {
    pub(super) fn new(at_once: usize, begun: Instant) -> Self {
        Self {
            at_once,
            begun,
            ended: Vec::new(),
        }
    }

    pub(super) fn read_line(&mut self, line: &str, now: Instant) {
        let test = line.strip_prefix("test ");
        if let Some((name, _)) = test.and_then(|rest| rest.split_once(" ... ")) {
            let name = name.strip_suffix(" - should panic").unwrap_or(name);
            self.ended.push((name.to_owned(), now));
        }
    }

    pub(super) fn tests(self) -> Vec<(String, Duration)> {
        let ends: Vec<Instant> = self.ended.iter().map(|(_, at)| *at).collect();
        let mut by_name = self.ended;
        by_name.sort_by(|one, other| one.0.cmp(&other.0));
        let began = |place: usize| match place.checked_sub(self.at_once) {
            None => self.begun,
            Some(before) => ends[before],
        };
        let timed = by_name.into_iter().enumerate();
        timed
            .map(|(place, (name, end))| (name, end.saturating_duration_since(began(place))))
            .collect()
    }
}

/// Those that take longest first, so that none of them is left alone at the end.
pub(super) fn longest_first(repo: &Repo, binaries: &mut [TestBinary]) {
    let known: RunTimes = fs::read_to_string(repo.join(FIGURES))
        .ok()
        .and_then(|text| serde_json::from_str(&text).ok())
        .unwrap_or_default();
    let known: BTreeMap<String, f64> = known
        .binaries
        .into_iter()
        .map(|binary| (binary.name, binary.wall_s))
        .collect();
    let expected = |binary: &TestBinary| known.get(&binary.name).copied().unwrap_or(UNKNOWN);
    binaries.sort_by(|one, other| expected(other).total_cmp(&expected(one)));
}

impl RunTimes {
    pub(super) fn sort(&mut self) {
        self.binaries
            .sort_by(|one, other| other.wall_s.total_cmp(&one.wall_s));
        self.tests
            .sort_by(|one, other| other.wall_s.total_cmp(&one.wall_s));
    }

    /// What took longest, for the end of a run.
    pub(super) fn slowest(&self) -> String {
        let mut text = String::from("stages:\n");
        for StageTime { name, wall_s } in &self.stages {
            text.push_str(&format!("{wall_s:8.1} s  {name}\n"));
        }
        text.push_str("slowest binaries (and their processor time):\n");
        for binary in self.binaries.iter().take(SHOWN) {
            text.push_str(&format!(
                "{:8.1} s ({:>7} s)  {}\n",
                binary.wall_s,
                seconds(binary.cpu_s),
                binary.name
            ));
        }
        text.push_str("slowest tests:\n");
        for TestTime { name, wall_s } in self.tests.iter().take(SHOWN) {
            text.push_str(&format!("{wall_s:8.1} s  {name}\n"));
        }
        text
    }

    /// Writes the page and the figures that the next run goes by.
    pub(super) fn write(&self, repo: &Repo) -> Result<()> {
        let kept = Self {
            stages: self.stages.clone(),
            binaries: self.binaries.iter().map(BinaryTime::rounded).collect(),
            tests: self
                .tests
                .iter()
                .take(ON_PAGE)
                .map(TestTime::rounded)
                .collect(),
        };
        let mut figures = serde_json::to_string_pretty(&kept)?;
        figures.push('\n');
        for (file, text) in [(FIGURES, figures), (PAGE, kept.page())] {
            fs::write(repo.join(file), text).with_context(|| format!("cannot write {file}"))?;
        }
        println!("written: {PAGE}, {FIGURES}");
        Ok(())
    }

    fn page(&self) -> String {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let total: f64 = self.binaries.iter().filter_map(|binary| binary.cpu_s).sum();
        let mut text = format!(
            "# How long the tests take\n\nWritten by `cargo xtask test --timings` on a machine of {cores} processors. \
             Binaries run side by side, so their\ntimes overlap; all of them together used {total:.0} s of \
             processor time. Every run ends with its ten slowest.\n\n| stage | s |\n|---|---|\n"
        );
        for StageTime { name, wall_s } in &self.stages {
            text.push_str(&format!("| {name} | {wall_s:.0} |\n"));
        }
        text.push_str("\n| binary | tests | s | processor s |\n|---|---|---|---|\n");
        for binary in self.binaries.iter().take(ON_PAGE) {
            let BinaryTime {
                name,
                tests,
                wall_s,
                cpu_s,
            } = binary;
            let cpu = seconds(*cpu_s);
            text.push_str(&format!("| `{name}` | {tests} | {wall_s:.1} | {cpu} |\n"));
        }
        text.push_str("\n| test | s |\n|---|---|\n");
        for TestTime { name, wall_s } in &self.tests {
            text.push_str(&format!("| `{name}` | {wall_s:.1} |\n"));
        }
        text
    }
}

impl BinaryTime {
    fn rounded(&self) -> Self {
        Self {
            wall_s: tenths(self.wall_s),
            cpu_s: self.cpu_s.map(tenths),
            ..self.clone()
        }
    }
}

impl TestTime {
    fn rounded(&self) -> Self {
        Self {
            wall_s: tenths(self.wall_s),
            ..self.clone()
        }
    }
}

fn tenths(seconds: f64) -> f64 {
    (seconds * 10.0).round() / 10.0
}

fn seconds(cpu: Option<f64>) -> String {
    cpu.map_or_else(|| "?".to_owned(), |cpu| format!("{cpu:.1}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_begins_when_one_before_it_has_ended() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut timed = TimedLines::new(2, start);
        for (line, second) in [
            ("running 4 tests", 0),
            ("test b ... ok", 3),
            ("test c - should panic ... ok", 4),
            ("test a ... FAILED", 10),
            ("test d ... ok", 11),
        ] {
            timed.read_line(line, at(second));
        }
        let took = |seconds| Duration::from_secs(seconds);
        let expected = [
            ("a", took(10)),
            ("b", took(3)),
            ("c", took(1)),
            ("d", took(7)),
        ];
        let expected = expected.map(|(name, took)| (name.to_owned(), took));
        assert_eq!(timed.tests(), expected);
    }

    #[test]
    fn what_is_shown_is_sorted() {
        let binary = |name: &str, wall_s| BinaryTime {
            name: name.to_owned(),
            tests: 1,
            wall_s,
            cpu_s: None,
        };
        let mut times = RunTimes {
            binaries: vec![binary("quick", 1.0), binary("slow", 9.0)],
            ..RunTimes::default()
        };
        times.sort();
        let text = times.slowest();
        assert!(text.find("slow\n") < text.find("quick\n"), "{text}");
    }
}
