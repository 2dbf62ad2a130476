//! Figures of units as pages: where a program's time goes, and how engines compare.

use serde::Deserialize;

use crate::bench::measure::Sample;
use crate::bench::report::{Alternative, Report};

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

/// One figure of a program.
type Figure = fn(&Phases) -> f64;

/// Medians over all programs.
pub(super) fn phase_table(phases: &[Phases]) -> String {
    let median = |value: Figure| {
        let mut values: Vec<f64> = phases.iter().map(value).collect();
        values.sort_by(f64::total_cmp);
        values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
    };
    let rows: [(&str, &str, Figure); 7] = [
        ("process start", "ms", |p| p.start),
        ("SDK loaded", "ms", |p| p.sdk),
        ("program and its packages loaded", "ms", |p| p.modules),
        ("waiting for the engine and the rest", "ms", |p| {
            p.total - p.start - p.sdk - p.modules
        }),
        ("whole process", "ms", |p| p.total),
        ("processor time", "ms", |p| p.user + p.system),
        ("peak memory", "MB", |p| p.memory / 1024.0),
    ];
    let mut text = format!(
        "# Where a program's time goes\n\nMedians over the {} programs of a first deployment, \
         written by `cargo xtask bench units --write`.\n\n| phase | median |\n|---|---|\n",
        phases.len()
    );
    for (name, unit, value) in rows {
        text.push_str(&format!("| {name} | {:.0} {unit} |\n", median(value)));
    }
    text
}

/// Every case with its alternatives, compared with the first of them.
pub(super) fn comparison(report: &Report) -> String {
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
        let table = phase_table(&[phases(200.0), phases(100.0), phases(900.0)]);
        assert!(table.contains("| SDK loaded | 200 ms |"), "{table}");
        assert!(table.contains("| peak memory | 100 MB |"), "{table}");
        assert!(table.contains("the 3 programs"), "{table}");
    }
}
