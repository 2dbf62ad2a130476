//! A run or a preview as a page of Markdown: a comment on a change, or the summary of a job.

use std::collections::BTreeMap;

use super::super::view::changes_text;
use super::{RunSummary, UnitSummaryReport};
use crate::actions::{ActionsJob, AnnotationLevel};
use crate::markdown::{PAGE_LIMIT, fenced, folded, inline};

/// What each unit would change, in the order in which they run, as `--diff` shows it.
pub(super) type UnitDiffs = [(String, String)];

impl RunSummary {
    /// The page. Differences that would make it too long for a comment are left out, and said to be.
    pub(crate) fn markdown(&self, diffs: &UnitDiffs) -> String {
        let mut page = self.heading();
        page.push_str(&self.table());
        page.push_str(&self.problems());
        let mut left_out = Vec::new();
        for (name, diff) in diffs {
            let title = match self.unit(name).map(|unit| counts(&unit.changes)) {
                Some(counts) => format!("{name}: {counts}"),
                None => name.clone(),
            };
            let part = folded(&title, &fenced("diff", diff));
            if page.len() + part.len() > PAGE_LIMIT {
                left_out.push(inline(name));
            } else {
                page.push_str(&part);
            }
        }
        if !left_out.is_empty() {
            page.push_str(&format!(
                "\nLeft out, because a comment has a limit: the differences of {}. \
                 `nimbus preview {} --environment {} --diff` shows them.\n",
                left_out.join(", "),
                self.deployment,
                self.environment
            ));
        }
        page
    }

    /// Tells a job of GitHub Actions what it can show.
    pub(crate) fn tell_job(&self, job: &ActionsJob, diffs: &UnitDiffs) {
        for unit in self.units.iter().filter(|unit| unit.status == "failed") {
            let title = format!("{} of {} {}", unit.name, self.deployment, self.environment);
            let message = unit.message.as_deref().unwrap_or("it failed");
            job.annotate(AnnotationLevel::Error, &title, message);
        }
        let title = format!("{} {}", self.deployment, self.environment);
        for item in &self.attention {
            job.annotate(AnnotationLevel::Error, &title, item);
        }
        for warning in &self.warnings {
            job.annotate(AnnotationLevel::Warning, &title, warning);
        }
        job.summarize(&self.markdown(diffs));
    }

    fn heading(&self) -> String {
        let rehearsal = if self.rehearsal {
            ", rehearsed on a simulated cloud"
        } else {
            ""
        };
        let run = self.run.as_ref().map(|run| format!(" ({run})"));
        let what = match (self.kind, self.result) {
            ("preview", "succeeded") => self.total(),
            (_, result) => format!("{}; {}", result.replace('_', " "), self.total()),
        };
        // Whoever updates a comment finds it again by the first line.
        format!(
            "<!-- nimbus {} {} {} -->\n### {} of {} in {}{rehearsal}: {what}{}\n\n",
            self.kind,
            self.deployment,
            self.environment,
            capitalized(self.kind),
            inline(&self.deployment),
            inline(&self.environment),
            run.unwrap_or_default(),
        )
    }

    fn total(&self) -> String {
        let mut totals = BTreeMap::new();
        for (op, count) in self.units.iter().flat_map(|unit| &unit.changes) {
            *totals.entry(op.clone()).or_default() += count;
        }
        counts(&totals)
    }

    fn table(&self) -> String {
        let (shown, quiet): (Vec<_>, Vec<_>) =
            self.units.iter().partition(|unit| says_something(unit));
        let mut text = String::new();
        if !shown.is_empty() {
            text.push_str("| Stack | Result | Resources | Why |\n|---|---|---|---|\n");
        }
        for unit in shown {
            text.push_str(&format!(
                "| {} | {} | {} | {} |\n",
                inline(&unit.name),
                inline(&unit.status.replace('_', " ")),
                counts(&unit.changes),
                inline(unit.reason.as_deref().unwrap_or_default()),
            ));
        }
        if !quiet.is_empty() {
            let names: Vec<String> = quiet.iter().map(|unit| inline(&unit.name)).collect();
            text.push_str(&format!("\nUnchanged: {}\n", names.join(", ")));
        }
        text.push('\n');
        text
    }

    fn problems(&self) -> String {
        let mut text = String::new();
        for unit in self.units.iter().filter(|unit| unit.status == "failed") {
            let message = unit.message.as_deref().unwrap_or_default();
            text.push_str(&format!("**{}** failed:\n\n", inline(&unit.name)));
            text.push_str(&fenced("text", message));
            text.push('\n');
        }
        for check in self.checks.iter().filter(|check| check.status != "passed") {
            let message = check.message.as_deref().unwrap_or_default();
            text.push_str(&format!(
                "- Check {}: {} {}\n",
                inline(&check.name),
                check.status,
                inline(message)
            ));
        }
        for warning in &self.warnings {
            text.push_str(&format!("- Warning: {}\n", inline(warning)));
        }
        for item in &self.attention {
            text.push_str(&format!("- Needs attention: {}\n", inline(item)));
        }
        if let Some(next) = &self.next {
            text.push_str(&format!("\nNext: {next}\n"));
        }
        if !text.is_empty() {
            text.push('\n');
        }
        text
    }

    /// Whether there is a difference to show.
    pub(super) fn changes_unit(&self, name: &str) -> bool {
        self.unit(name).is_some_and(says_something)
    }

    fn unit(&self, name: &str) -> Option<&UnitSummaryReport> {
        self.units.iter().find(|unit| unit.name == name)
    }
}

/// Whether a reader wants a row of its own for it.
fn says_something(unit: &UnitSummaryReport) -> bool {
    let changed = unit
        .changes
        .iter()
        .any(|(op, count)| op != "same" && *count > 0);
    changed || !matches!(unit.status.as_str(), "succeeded" | "skipped")
}

fn counts(changes: &BTreeMap<String, u64>) -> String {
    changes_text(changes)
}

fn capitalized(word: &str) -> String {
    let mut letters = word.chars();
    match letters.next() {
        Some(first) => first.to_uppercase().chain(letters).collect(),
        None => String::new(),
    }
}
