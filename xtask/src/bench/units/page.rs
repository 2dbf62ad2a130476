//! Figures of units as pages: where a program's time goes, and how engines compare.

use serde::Deserialize;

use crate::bench::chart::{StackedBars, draw_parts};
use crate::bench::measure::Sample;
use crate::bench::report::{Alternative, BenchReport};

/// What a program says about itself when it ends, in milliseconds and kilobytes.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(super) struct Phases {
    start: f64,
    sdk: f64,
    modules: f64,
    total: f64,
    user: f64,
    system: f64,
    memory: f64,
}

/// What the programs of two runs told.
#[derive(Default)]
pub(super) struct PhasesOfRuns {
    /// Of the first deployment.
    pub(super) first: Vec<Phases>,
    /// Of a run in which nothing had changed.
    pub(super) again: Vec<Phases>,
}

/// One figure of a program.
type UnitFigure = fn(&Phases) -> f64;

/// What a program does one after the other.
const PARTS: [(&str, UnitFigure); 4] = [
    ("process start", |p| p.start),
    ("SDK loaded", |p| p.sdk),
    ("program and its packages loaded", |p| p.modules),
    ("waiting for the engine and the rest", |p| {
        p.total - p.start - p.sdk - p.modules
    }),
];

fn median(phases: &[Phases], value: UnitFigure) -> f64 {
    let mut values: Vec<f64> = phases.iter().map(value).collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Medians over all programs.
pub(super) fn phase_table(phases: &PhasesOfRuns) -> String {
    let parts = PARTS.map(|(name, value)| (name, "ms", value));
    let sums: [(&str, &str, UnitFigure); 3] = [
        ("whole process", "ms", |p| p.total),
        ("processor time", "ms", |p| p.user + p.system),
        ("peak memory", "MB", |p| p.memory / 1024.0),
    ];
    let mut text = format!(
        "# Where a program's time goes\n\nMedians over the {} programs of a deployment on the \
         embedded engine, written by `cargo xtask bench units --write`.\n\n\
         | phase | first deploy | no-op, all run |\n|---|---|---|\n",
        phases.first.len()
    );
    for (name, unit, value) in parts.into_iter().chain(sums) {
        let (first, again) = (median(&phases.first, value), median(&phases.again, value));
        text.push_str(&format!(
            "| {name} | {first:.0} {unit} | {again:.0} {unit} |\n"
        ));
    }
    text
}

pub(super) fn phase_chart(phases: &PhasesOfRuns, machine: &str) -> String {
    let parts = |phases: &[Phases]| PARTS.map(|(_, value)| median(phases, value)).to_vec();
    draw_parts(&StackedBars {
        title: "Where a program's time goes",
        note: format!("medians on the embedded engine; {machine}"),
        names: PARTS.map(|(name, _)| name).to_vec(),
        bars: vec![
            ("first deploy", parts(&phases.first)),
            ("no-op, all run", parts(&phases.again)),
        ],
    })
}

/// Every case with its alternatives, compared with the first of them.
pub(super) fn comparison(report: &BenchReport) -> String {
    let mut text = String::from(
        "| case | engine | wall | processor | peak memory | wall ÷ first | memory ÷ first |\n\
         |---|---|---|---|---|---|---|\n",
    );
    for case in &report.cases {
        let Some(first) = case.alternatives.first() else {
            continue;
        };
        for alternative in &case.alternatives {
            text.push_str(&row(&case.name, alternative, first));
        }
    }
    text
}

fn row(case: &str, alternative: &Alternative, first: &Alternative) -> String {
    let ratio = |value: fn(&Sample) -> f64| alternative.median(value) / first.median(value);
    format!(
        "| {case} | {} | {:.1} s | {:.1} s | {:.0} MB | {:.2} | {:.2} |\n",
        alternative.name,
        alternative.median(|sample| sample.wall_ms) / 1e3,
        alternative.median(|sample| sample.cpu_ms) / 1e3,
        alternative.median(|sample| sample.peak_mb),
        ratio(|sample| sample.wall_ms),
        ratio(|sample| sample.peak_mb),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::report::example;

    #[test]
    fn engines_are_compared_with_the_first_one() {
        let text = comparison(&example());
        assert!(
            text.contains("| up | nimbus | 0.0 s | 0.0 s | 2 MB | 1.00 | 1.00 |"),
            "{text}"
        );
        assert!(
            text.contains("| up | pulumi | 0.0 s | 0.0 s | 2 MB | 2.00 | 1.00 |"),
            "{text}"
        );
    }

    #[test]
    fn the_table_shows_medians_and_what_is_left() {
        let phases = |sdk| Phases {
            start: 50.0,
            sdk,
            modules: 100.0,
            total: 1000.0,
            user: 300.0,
            system: 20.0,
            memory: 102_400.0,
        };
        let table = phase_table(&PhasesOfRuns {
            first: vec![phases(200.0), phases(100.0), phases(900.0)],
            again: vec![phases(50.0)],
        });
        assert!(table.contains("| SDK loaded | 200 ms | 50 ms |"), "{table}");
        assert!(
            table.contains("| peak memory | 100 MB | 100 MB |"),
            "{table}"
        );
        assert!(table.contains("the 3 programs"), "{table}");
    }
}
