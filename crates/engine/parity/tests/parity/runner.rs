//! Runs a case on both engines, step by step, and compares what each step did.
//!
//! In the long form each engine does every step. In the short one the engines take turns at one stack,
//! and each step is compared with the recording: who begins depends on the language, and most programs
//! are there in both. Where the official command line is not installed, the recording alone stands in
//! for it, and the test says that the live comparison was skipped. `NIMBUS_PARITY_KEEP=1` keeps the
//! folders of a run, so that one can look at them.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use jiff::Timestamp;
use nimbus_test_tools::{Tool, is_long};
use serde_json::Value;
use similar::TextDiff;
use tempfile::TempDir;

use crate::case::{Case, End, Language, Operation, Step};
use crate::engine::{Engine, Told};
use crate::normal::Normal;
use crate::order;
use crate::record::{Recorder, is_unchanged};
use crate::recording::{self, digest};
use crate::side::Side;
use crate::tools::Tools;

/// Fails with readable differences where the engines differ. A step that differs does not end the
/// case: what follows may explain it.
pub(crate) fn check(case: &Case) {
    let mut folder = TempDir::with_prefix(format!("parity-{}-", case.program)).unwrap();
    folder.disable_cleanup(env::var_os("NIMBUS_PARITY_KEEP").is_some());
    // Programs see real paths, so everything else should.
    let root = folder.path().canonicalize().unwrap();
    let Some(tools) = Tools::find(case, &root) else {
        return;
    };
    let live = format!("live comparison of {}", case.program);
    let differences = match Tool::PulumiCli.find_or_record_skip(&live) {
        Some(program) if official_minor(&program) < case.official_since => {
            // An older one behaves otherwise, and what a newer one did was recorded.
            check_recorded(case, &root, &tools, Turns::AllEmbedded)
        }
        Some(_) if recording::is_compared(case) && !is_long() => {
            let first = match case.language {
                Language::TypeScript => Engine::Embedded,
                Language::Python => Engine::Official,
            };
            check_recorded(case, &root, &tools, Turns::Begins(first))
        }
        Some(_) => {
            let (differences, recorded) = check_live(case, &root, &tools);
            if differences.is_empty() {
                recording::keep(case, &recorded);
            }
            differences
        }
        // What was never recorded, such as a program drawn at random, runs only live; that it was
        // skipped is counted above.
        None if !recording::exists(case) => Vec::new(),
        None => check_recorded(case, &root, &tools, Turns::AllEmbedded),
    };
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

/// The 258 of `v3.258.0`.
fn official_minor(program: &Path) -> u32 {
    let output = Command::new(program).arg("version").output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let minor = text
        .trim()
        .split('.')
        .nth(1)
        .and_then(|minor| minor.parse().ok());
    minor.unwrap_or_else(|| panic!("{} says the version {text}", program.display()))
}

/// What differs, and what the official engine did.
fn check_live(case: &Case, root: &Path, tools: &Tools) -> (Vec<String>, Vec<String>) {
    let mut left = Running::start(case, root.join("left"), tools, Engine::Official);
    let mut right = Running::start(case, root.join("right"), tools, Engine::Embedded);
    let mut recorded = Vec::new();
    let mut before = None;
    let mut differences = Vec::new();
    for (index, step) in case.steps.iter().enumerate() {
        if step.swap {
            left.engine = left.engine.other();
            right.engine = right.engine.other();
        }
        let title = step.title(index + 1);
        let (first, second) = (left.run(step), right.run(step));
        let (official, embedded) = match left.engine {
            Engine::Official => (first, second),
            Engine::Embedded => (second, first),
        };
        differences.extend(unexpected(case, step, &title, &official, "official"));
        differences.extend(disorder(case, &title, &embedded, "nimbus"));
        let pretty = |done: &Done| serde_json::to_string_pretty(&done.record).unwrap();
        let printed = format!(
            "--- official printed\n{}\n--- nimbus printed\n{}",
            official.output,
            without_events(&embedded.output)
        );
        let difference = compare(&pretty(&official), &pretty(&embedded), &printed);
        differences.extend(difference.map(|text| format!("{}, {title}: {text}", case.program)));
        recorded.push(digest(&title, &official.record, before.as_ref()));
        before = recording::later(before, official.record);
    }
    (differences, recorded)
}

/// Who does the steps that are compared with a recording.
enum Turns {
    AllEmbedded,
    /// This one begins, and the engines change places where the case says so.
    Begins(Engine),
}

fn check_recorded(case: &Case, root: &Path, tools: &Tools, turns: Turns) -> Vec<String> {
    let (first, takes_turns) = match turns {
        Turns::AllEmbedded => (Engine::Embedded, false),
        Turns::Begins(first) => (first, true),
    };
    let mut running = Running::start(case, root.join("right"), tools, first);
    let recorded = recording::read(case);
    let (has, wants) = (recorded.len(), case.steps.len());
    assert_eq!(has, wants, "{}: record the case again", case.program);
    let mut before = None;
    let mut differences = Vec::new();
    for (index, (step, official)) in case.steps.iter().zip(recorded).enumerate() {
        if takes_turns && step.swap {
            running.engine = running.engine.other();
        }
        let title = step.title(index + 1);
        let done = running.run(step);
        let who = running.engine.name();
        differences.extend(unexpected(case, step, &title, &done, who));
        let now = digest(&title, &done.record, before.as_ref());
        let difference = compare(&official, &now, &without_events(&done.output));
        let place = format!("{}, {title}, {who} and the recording", case.program);
        differences.extend(difference.map(|text| format!("{place}: {text}")));
        before = recording::later(before, done.record);
    }
    differences
}

/// A side on which steps are carried out.
struct Running<'a> {
    side: Side,
    normal: Normal,
    engine: Engine,
    case: &'a Case,
    tools: &'a Tools,
    /// The state after the last step on each stack.
    state: Value,
}

/// What a step did, and what the engine printed meanwhile.
struct Done {
    record: Value,
    output: String,
    /// What came before something it is built on.
    disorder: Vec<String>,
}

impl<'a> Running<'a> {
    fn start(case: &'a Case, folder: PathBuf, tools: &'a Tools, engine: Engine) -> Self {
        let side = Side::create(folder, case, tools);
        let normal = Normal::new(case, &side, tools);
        Self {
            side,
            normal,
            engine,
            case,
            tools,
            state: Value::Null,
        }
    }

    fn run(&mut self, step: &Step) -> Done {
        self.side.set_version(step.version);
        for disturbance in &step.before {
            self.side.disturb(disturbance);
        }
        let file_before = self.side.state_file(step.stack);
        let since = Timestamp::now();
        let told = self.engine.run(step, &self.side, self.tools);
        let state = if step.operation == Operation::Preview {
            // Not one byte may differ, so there is nothing to compare.
            let untouched = self.side.state_file(step.stack) == file_before;
            let place = format!("{}, {:?}", self.case.program, self.engine);
            assert!(untouched, "{place}: a preview wrote");
            Value::Null
        } else {
            self.engine.export(step.stack, &self.side, self.tools)
        };
        self.normal.learn(&state);
        let recorder = Recorder {
            case: self.case,
            step,
            normal: &self.normal,
            since,
        };
        let record = recorder.record(&told, &state, &self.side);
        let mut disorder = Vec::new();
        if !state.is_null() {
            disorder = order::violations(&told.events, &self.state, &state);
            self.state = state;
        }
        let Told { output, .. } = told;
        Done {
            record,
            output,
            disorder,
        }
    }
}

/// What did not end as the case says, or came in an order that cannot be.
fn unexpected(case: &Case, step: &Step, title: &str, done: &Done, who: &str) -> Vec<String> {
    let end = match step.end {
        End::Succeeds => "succeeds",
        End::Fails => "fails",
    };
    let place = format!("{}, {title}, {who}", case.program);
    let mut found = disorder(case, title, done, who);
    if done.record["end"] != end {
        found.push(format!("{place}: this {end}\n{}", done.output));
    }
    if step.unchanged && !is_unchanged(&done.record) {
        found.push(format!("{place}: nothing should change\n{}", done.output));
    }
    found
}

fn disorder(case: &Case, title: &str, done: &Done, who: &str) -> Vec<String> {
    let place = format!("{}, {title}, {who}", case.program);
    let lines = done.disorder.iter();
    lines.map(|line| format!("{place}: {line}")).collect()
}

fn compare(official: &str, embedded: &str, printed: &str) -> Option<String> {
    if official == embedded {
        return None;
    }
    let diff = TextDiff::from_lines(official, embedded);
    let diff = diff
        .unified_diff()
        .context_radius(8)
        .header("official", "nimbus")
        .to_string();
    Some(format!("the engines differ\n{diff}\n{printed}"))
}

/// The events have been compared; what else was printed may explain.
fn without_events(output: &str) -> String {
    let lines = output
        .lines()
        .filter(|line| !line.starts_with("{\"sequence\""));
    lines.collect::<Vec<_>>().join("\n")
}
