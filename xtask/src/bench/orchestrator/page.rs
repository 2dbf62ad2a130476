//! The page `docs/bench/orchestrator.md`: the table, and what the figures say in words.

use super::{INIT, ONE_DEPLOY, ORDER, REAL, SPANS};
use crate::bench::report::BenchReport;

pub(super) fn write(report: &BenchReport, units: usize) -> String {
    let mut text = format!(
        "# Orchestrator\n\nWritten by `cargo xtask bench orchestrator --write` on {}. Medians of wall time. Programs are \
         real, the cloud is a rehearsal in which each resource takes a fixed time; what is saved on a real cloud depends \
         on its resources.\n\n| What | How | Time | Against the first |\n|---|---|---|---|\n",
        report.machine
    );
    for case in &report.cases {
        let first = case
            .alternatives
            .first()
            .map_or(f64::NAN, |one| one.median(|s| s.wall_ms));
        for alternative in &case.alternatives {
            let wall = alternative.median(|sample| sample.wall_ms);
            text.push_str(&format!(
                "| {} | {} | {} | {} |\n",
                case.name,
                alternative.name,
                duration(wall),
                share(wall, first),
            ));
        }
    }
    text.push('\n');
    for sentence in sentences(report, units) {
        text.push_str(&format!("- {sentence}\n"));
    }
    text
}

fn sentences(report: &BenchReport, units: usize) -> Vec<String> {
    let mut said = Vec::new();
    if let Some(init) = report.wall(INIT, "nimbus") {
        said.push(format!(
            "`init` of the default template takes {} (aim: 100 ms).",
            duration(init)
        ));
    }
    let plan = |size: u32| report.wall(&format!("{size} units, decisions"), "plan");
    if let (Some(small), Some(large)) = (plan(1_000), plan(10_000)) {
        said.push(format!(
            "A plan of 10,000 units takes {} (aim: 100 ms), {:.1} times that of 1,000.",
            duration(large),
            large / small
        ));
    }
    let large = format!("{units} units, rehearsed");
    if let Some(wall) = report.wall(&large, "nothing changed") {
        said.push(format!(
            "A no-op over {units} unchanged units takes {}.",
            duration(wall)
        ));
    }
    for case in [ORDER, REAL] {
        let Some(first) = report.wall(case, "one after the other") else {
            continue;
        };
        for way in [
            "layers as walls",
            "ready queue, 16 at once",
            "one unit changed",
        ] {
            if let Some(wall) = report.wall(case, way) {
                let saved = 100.0 * (1.0 - wall / first);
                said.push(format!(
                    "{case}: {way} saves {saved:.0} % of one after the other."
                ));
            }
        }
    }
    let deploy = report.wall(REAL, "ready queue, 16 at once");
    if let (Some(cost), Some(deploy)) = (report.wall(SPANS, ONE_DEPLOY), deploy) {
        said.push(format!(
            "Spans of traces cost {:.4} % of a deploy when nobody listens (aim: under 2 %).",
            100.0 * cost / deploy
        ));
    }
    said.push(
        "The specification promises 40 to 60 % from parallel runs and 70 to 90 % from skipping; the lines above are what \
         was measured."
            .to_owned(),
    );
    said
}

fn duration(milliseconds: f64) -> String {
    if milliseconds < 1000.0 {
        format!("{milliseconds:.1} ms")
    } else {
        format!("{:.2} s", milliseconds / 1000.0)
    }
}

fn share(wall: f64, first: f64) -> String {
    format!("{:.0} %", 100.0 * wall / first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::measure::Sample;

    #[test]
    fn the_page_says_what_order_and_skipping_save() {
        let mut report = BenchReport {
            bench: "orchestrator",
            title: "t",
            machine: "a machine".to_owned(),
            cases: Vec::new(),
        };
        for (way, wall_ms) in [
            ("one after the other", 1000.0),
            ("layers as walls", 500.0),
            ("ready queue, 16 at once", 250.0),
        ] {
            let sample = Sample {
                wall_ms,
                cpu_ms: 0.0,
                peak_mb: 0.0,
            };
            report.add(ORDER, way, sample);
        }
        let page = write(&report, 10);
        assert!(
            page.contains("| ready queue, 16 at once | 250.0 ms | 25 % |"),
            "{page}"
        );
        assert!(
            page.contains("layers as walls saves 50 % of one after the other"),
            "{page}"
        );
        assert!(
            page.contains("ready queue, 16 at once saves 75 %"),
            "{page}"
        );
    }
}
