//! `nimbus doctor`: what this machine has, and the exact fix for what it lacks.
//!
//! Every probe is bounded in time, changes nothing, and reports instead of failing; a broken
//! settings file is a finding like any other. Only what every command needs decides the exit code:
//! a machine without Python is fine for somebody who writes TypeScript.

mod fix;
mod sandbox;
mod services;
mod storage;
mod tools;

use nimbus_core::{ErrorKind, Result};
use schemars::JsonSchema;
use serde::Serialize;

use crate::context::CommandContext;
use crate::exit::CommandOutcome;
use crate::output::Report;
use crate::style::{Terminal, TextStyle};

#[derive(clap::Args, Debug)]
pub(crate) struct DoctorArgs {}

pub(crate) async fn run(_: DoctorArgs, context: &CommandContext) -> Result<CommandOutcome> {
    let (languages, services) = futures::join!(tools::check_all(), services::check_all(context));
    let sandbox = sandbox::check_all().await;
    let storage = storage::check_all(context);
    let report = DoctorReport::new([languages, services, sandbox, storage].concat());
    context.output.result(&report)?;
    match report.ok {
        true => Ok(CommandOutcome::Done),
        false => Ok(CommandOutcome::Reported(ErrorKind::Unavailable)),
    }
}

#[derive(JsonSchema, Serialize)]
pub(crate) struct DoctorReport {
    /// Whether everything that every command needs is there.
    ok: bool,
    checks: Vec<DoctorCheck>,
}

#[derive(Clone, Debug, JsonSchema, PartialEq, Eq, Serialize)]
pub(crate) struct DoctorCheck {
    /// Stable name, such as `node` or `landlock`.
    id: &'static str,
    group: CheckGroup,
    title: &'static str,
    state: CheckState,
    /// Whether every command needs it.
    required: bool,
    /// What was found: a version, a path, a reason.
    detail: String,
    /// What to do about it; null when nothing needs doing.
    fix: Option<String>,
}

#[derive(Clone, Copy, Debug, JsonSchema, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum CheckGroup {
    Programs,
    Services,
    Sandbox,
    Storage,
}

#[derive(Clone, Copy, Debug, JsonSchema, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum CheckState {
    Ok,
    /// It works, but not as well as it should.
    Warning,
    /// It is not there.
    Missing,
    /// It is there and does not work.
    Failed,
    /// It is not set up or not known on this system, which is no fault.
    NotUsed,
}

impl DoctorCheck {
    fn ok(
        id: &'static str,
        group: CheckGroup,
        title: &'static str,
        detail: impl Into<String>,
    ) -> Self {
        Self {
            id,
            group,
            title,
            state: CheckState::Ok,
            required: false,
            detail: detail.into(),
            fix: None,
        }
    }

    fn state(mut self, state: CheckState, fix: impl Into<String>) -> Self {
        self.state = state;
        self.fix = Some(fix.into());
        self
    }

    fn required(mut self) -> Self {
        self.required = true;
        self
    }

    fn blocks(&self) -> bool {
        self.required && matches!(self.state, CheckState::Missing | CheckState::Failed)
    }
}

impl CheckState {
    fn word(self) -> (&'static str, TextStyle) {
        match self {
            Self::Ok => ("ok", TextStyle::Good),
            Self::Warning => ("warning", TextStyle::Warning),
            Self::Missing => ("missing", TextStyle::Warning),
            Self::Failed => ("failed", TextStyle::Bad),
            Self::NotUsed => ("-", TextStyle::Faint),
        }
    }
}

impl CheckGroup {
    fn heading(self) -> &'static str {
        match self {
            Self::Programs => "Programs",
            Self::Services => "Settings and services",
            Self::Sandbox => "Sandbox for programs",
            Self::Storage => "Disk and permissions",
        }
    }
}

impl DoctorReport {
    fn new(checks: Vec<DoctorCheck>) -> Self {
        Self {
            ok: !checks.iter().any(DoctorCheck::blocks),
            checks,
        }
    }

    fn summary(&self) -> String {
        let count =
            |wanted: fn(&DoctorCheck) -> bool| self.checks.iter().filter(|c| wanted(c)).count();
        let blocking = count(DoctorCheck::blocks);
        let optional = count(|check| {
            !check.blocks() && !matches!(check.state, CheckState::Ok | CheckState::NotUsed)
        });
        match (blocking, optional) {
            (0, 0) => "everything is here".to_owned(),
            (0, more) => format!("everything needed is here; {more} more could be improved"),
            (some, more) => format!("{some} must be fixed, {more} more could be improved"),
        }
    }
}

impl Report for DoctorReport {
    const SCHEMA: &'static str = "nimbus/doctor/1";

    fn text(&self, terminal: Terminal) -> String {
        let width = self
            .checks
            .iter()
            .map(|check| check.title.chars().count())
            .max()
            .unwrap_or(0);
        let mut text = String::new();
        let mut group = None;
        for check in &self.checks {
            if group != Some(check.group) {
                let gap = if group.is_none() { "" } else { "\n" };
                let heading = terminal.paint(TextStyle::Heading, check.group.heading());
                text.push_str(&format!("{gap}{heading}\n"));
                group = Some(check.group);
            }
            let (word, tone) = check.state.word();
            let word = terminal.paint(tone, &format!("{word:7}"));
            text.push_str(&format!(
                "  {word}  {:width$}  {}\n",
                check.title, check.detail
            ));
            for line in check.fix.iter().flat_map(|fix| fix.lines()) {
                text.push_str(&format!("             {line}\n"));
            }
        }
        text + "\n" + &self.summary() + "\n"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(state: CheckState) -> DoctorCheck {
        DoctorCheck::ok("x", CheckGroup::Programs, "X", "d").state(state, "do it")
    }

    #[test]
    fn only_required_things_that_are_broken_fail_the_command() {
        let ok = |checks: Vec<DoctorCheck>| DoctorReport::new(checks).ok;
        assert!(ok(vec![
            check(CheckState::Missing),
            check(CheckState::Failed)
        ]));
        assert!(ok(vec![check(CheckState::Warning).required()]));
        assert!(!ok(vec![check(CheckState::Missing).required()]));
        assert!(!ok(vec![check(CheckState::Failed).required()]));
    }

    #[test]
    fn the_text_has_a_line_per_check_with_its_fix_below() {
        let report = DoctorReport::new(vec![
            DoctorCheck::ok(
                "node",
                CheckGroup::Programs,
                "Node.js",
                "20.1.0 at /usr/bin/node",
            ),
            DoctorCheck::ok("npm", CheckGroup::Programs, "npm", "not found")
                .state(CheckState::Missing, "get npm"),
            DoctorCheck::ok("temp", CheckGroup::Storage, "Temporary", "full")
                .state(CheckState::Failed, "a\nb")
                .required(),
        ]);
        let plain = Terminal {
            interactive: false,
            color: false,
        };
        insta::assert_snapshot!(report.text(plain), @r"
        Programs
          ok       Node.js    20.1.0 at /usr/bin/node
          missing  npm        not found
                     get npm

        Disk and permissions
          failed   Temporary  full
                     a
                     b

        1 must be fixed, 1 more could be improved
        ");
    }
}
