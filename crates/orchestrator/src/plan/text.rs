//! A plan as people read it: lines of a terminal's width, layer by layer, with what is known of their time.
//!
//! Made from what a plan's event says and from nothing else, so that whoever heard of a plan from a server
//! reads the same text as whoever made it.

use std::fmt::{self, Write as _};

use nimbus_core::EnvironmentName;
use textwrap::core::display_width;

use super::{DEPENDS, PlanSubject, SKIP};
use crate::record::PlannedEvent;

/// A plan as people read it, from what its event says: it reads the same wherever it was made.
#[derive(Clone, Copy, Debug)]
pub struct PlanText<'a> {
    pub subject: &'a PlanSubject,
    pub environment: EnvironmentName,
    pub layers: &'a [Vec<PlannedEvent>],
}

impl PlannedEvent {
    pub fn is_skipped(&self) -> bool {
        self.decision == SKIP
    }
}

/// No line of a plan is wider: a terminal has eighty columns, and a log is read on one.
const WIDEST: usize = 80;
/// More units than this that are skipped in one layer are one entry.
const SKIPPED_SHOWN: usize = 4;

/// What is known of some units' time: the longest of each layer, summed up.
#[derive(Clone, Copy, Debug, Default)]
struct KnownTime {
    minutes: u64,
    rehearsed: u64,
    /// Units of which nobody knows how long they take in the cloud.
    unknown: usize,
    known: usize,
    /// Those of the known ones whose time is that of a run.
    from_runs: usize,
    /// Whether a rehearsal was measured.
    measured: bool,
}

impl KnownTime {
    /// Of the units that a layer runs, or of all of them.
    fn of_layer(layer: &[PlannedEvent], all: bool) -> Self {
        let counted = || layer.iter().filter(|unit| all || !unit.is_skipped());
        let unknown = counted().filter(|unit| unit.minutes.is_none()).count();
        Self {
            minutes: counted().filter_map(|unit| unit.minutes).max().unwrap_or(0),
            rehearsed: counted()
                .filter_map(|unit| unit.rehearsed_seconds)
                .max()
                .unwrap_or(0),
            unknown,
            known: counted().count() - unknown,
            from_runs: counted()
                .filter(|unit| unit.minutes.is_some() && unit.measured)
                .count(),
            measured: counted().any(|unit| unit.rehearsed_seconds.is_some()),
        }
    }

    fn of(layers: &[Vec<PlannedEvent>], all: bool) -> Self {
        let each = layers.iter().map(|layer| Self::of_layer(layer, all));
        each.fold(Self::default(), |sum, one| Self {
            minutes: sum.minutes + one.minutes,
            rehearsed: sum.rehearsed + one.rehearsed,
            unknown: sum.unknown + one.unknown,
            known: sum.known + one.known,
            from_runs: sum.from_runs + one.from_runs,
            measured: sum.measured || one.measured,
        })
    }
}

impl KnownTime {
    /// How it is known, for whoever reads the plan of a rehearsal.
    fn source(&self) -> &'static str {
        match (self.known, self.from_runs) {
            (0, _) => "",
            (_, 0) => ", as templates say",
            (known, measured) if known == measured => ", as it took last time",
            _ => ", as it took last time or templates say",
        }
    }
}

impl fmt::Display for PlanText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = || self.layers.iter().flatten();
        let (skipped, active): (Vec<_>, Vec<_>) = units().partition(|unit| unit.is_skipped());
        let names: Vec<_> = active.iter().map(|unit| unit.unit.as_str()).collect();
        let rehearsal = matches!(self.subject, PlanSubject::Rehearsal(_));
        let time = KnownTime::of(self.layers, false);
        let in_full = KnownTime::of(self.layers, true).minutes;
        let saved = in_full.saturating_sub(time.minutes);
        let percent = (saved * 100).checked_div(in_full).unwrap_or(0);
        let place = if rehearsal { " in the cloud" } else { "" };
        let source = if rehearsal { time.source() } else { "" };
        let minutes = time.minutes;
        let more = match time.unknown {
            0 => String::new(),
            count => format!(", without {} of which nothing is known", stacks(count)),
        };
        writeln!(f, "Deployment: {}", self.subject)?;
        writeln!(f, "Environment: {}", self.environment)?;
        writeln!(f, "Total Stacks: {} enabled", units().count())?;
        let changed = format!("Changed Stacks: {}{}", active.len(), listed(&names));
        write_wrapped(f, &changed)?;
        writeln!(f, "Skipped Stacks: {} (no changes detected)", skipped.len())?;
        // Nothing is said where nothing is known.
        let known = time.known > 0 || active.is_empty();
        if known {
            let saving = format!("({percent}% time savings)");
            write_wrapped(
                f,
                &format!("Estimated Time: {minutes} minutes{place}{source}{more} {saving}"),
            )?;
        }
        if time.measured {
            let seconds = time.rehearsed;
            writeln!(
                f,
                "Rehearsal Time: ~{seconds} seconds, as it took last time"
            )?;
        }
        writeln!(f, "\nExecution Plan:")?;
        for (at, layer) in self.layers.iter().enumerate() {
            write_layer(f, at + 1, layer)?;
        }
        let count =
            |units: &[&PlannedEvent]| units.iter().filter_map(|unit| unit.resources).sum::<u64>();
        if known {
            writeln!(f, "Total Estimated Time: {minutes} minutes{place}")?;
        }
        // Of what runs all is known, or the sum would be none.
        let counted = active.iter().all(|unit| unit.resources.is_some());
        if counted && units().any(|unit| unit.resources.is_some()) {
            let (a, b) = (count(&active), count(&skipped));
            writeln!(f, "Total Resource Count: ~{a} resources ({b} skipped)")?;
        }
        if known {
            writeln!(f, "Time Saved: ~{saved} minutes ({percent}% reduction)")?;
        }
        Ok(())
    }
}

fn stacks(count: usize) -> String {
    match count {
        1 => "1 stack".to_owned(),
        _ => format!("{count} stacks"),
    }
}

fn listed(names: &[&str]) -> String {
    if names.is_empty() {
        String::new()
    } else {
        format!(" ({})", names.join(", "))
    }
}

fn write_wrapped(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    for line in wrapped(text, WIDEST, "  ") {
        writeln!(f, "{line}")?;
    }
    Ok(())
}

/// Lines that are no wider, with words whole.
fn wrapped(text: &str, width: usize, indent: &str) -> Vec<String> {
    let options = textwrap::Options::new(width)
        .subsequent_indent(indent)
        .break_words(false)
        // Unicode would break keys and URNs at their slashes and colons.
        .word_separator(textwrap::WordSeparator::AsciiSpace)
        // Said, because what the library does otherwise depends on who else is built with it.
        .wrap_algorithm(textwrap::WrapAlgorithm::FirstFit)
        .word_splitter(textwrap::WordSplitter::NoHyphenation);
    let lines = textwrap::wrap(text, options).into_iter();
    lines.map(|line| line.into_owned()).collect()
}

fn write_layer(f: &mut fmt::Formatter<'_>, number: usize, layer: &[PlannedEvent]) -> fmt::Result {
    let mode = if layer.len() > 1 {
        "Parallel"
    } else {
        "Sequential"
    };
    let after = match number {
        1 => "No Dependencies".to_owned(),
        2 => "Depends on Layer 1".to_owned(),
        n => format!("Depends on Layers 1-{}", n - 1),
    };
    let room = WIDEST - 4;
    let mut lines = vec![format!("Layer {number} ({mode} - {after})")];
    let skipped: Vec<&str> = layer
        .iter()
        .filter(|unit| unit.is_skipped())
        .map(|unit| unit.unit.as_str())
        .collect();
    let together = skipped.len() > SKIPPED_SHOWN;
    let shown = || layer.iter().filter(|unit| !together || !unit.is_skipped());
    let width = shown().map(|unit| unit.unit.len()).max().unwrap_or(0);
    for unit in shown() {
        let mut line = format!("  - {:<width$} [Priority: {}] ", unit.unit, unit.priority);
        let reason = unit.reason.as_deref().unwrap_or_default();
        let time = unit.minutes.map(|minutes| format!(" - {minutes} min"));
        let time = time.unwrap_or_default();
        let _ = match unit.decision.as_str() {
            SKIP => write!(line, "[SKIPPED - No changes]"),
            DEPENDS => write!(line, "[DEPLOYING{time}] if {reason} change"),
            _ => write!(line, "[DEPLOYING{time}] {reason}"),
        };
        lines.extend(wrapped(&line, room, "      "));
    }
    if together {
        let line = format!(
            "  - [SKIPPED - No changes] {}: {}",
            skipped.len(),
            skipped.join(", ")
        );
        lines.extend(wrapped(&line, room, "      "));
    }
    let active = layer.iter().filter(|unit| !unit.is_skipped()).count();
    let time = KnownTime::of_layer(layer, false);
    let mut last = format!("  Parallelization: {active} active");
    if time.known > 0 || active == 0 {
        let _ = write!(last, " │ Layer time: ~{} min", time.minutes);
    }
    lines.push(last);
    let inner = lines
        .iter()
        .map(|line| display_width(line))
        .max()
        .unwrap_or(0)
        .max(60);
    let rule = "─".repeat(inner + 2);
    writeln!(f, "┌{rule}┐")?;
    for line in lines {
        let blanks = " ".repeat(inner - display_width(&line));
        writeln!(f, "│ {line}{blanks} │")?;
    }
    writeln!(f, "└{rule}┘\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_broken_at_spaces_alone() {
        let lines = wrapped("reads config network/vpc-main:cidr", 20, "  ");
        assert_eq!(lines, ["reads config", "  network/vpc-main:cidr"]);
    }
}
