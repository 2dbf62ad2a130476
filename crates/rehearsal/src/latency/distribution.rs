//! How long one kind of call takes: a time, or how times are spread.

use std::f64::consts::TAU;
use std::time::Duration;

use nimbus_core::Result;
use nimbus_document::{NodeKind, View};

/// The 95th percentile of the standard normal distribution.
const Z95: f64 = 1.644_853_626_951_472_2;
/// No call takes longer, whatever a spread says: two days.
const LONGEST: f64 = 172_800.0;

/// Times in seconds.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Distribution {
    Fixed(f64),
    Uniform {
        min: f64,
        max: f64,
    },
    /// Never below zero.
    Normal {
        p50: f64,
        p95: f64,
    },
    LogNormal {
        p50: f64,
        p95: f64,
    },
    /// Percent and time, both rising. Between two points times are spread evenly; what is beyond
    /// the last or before the first is taken for it.
    Percentiles(Vec<(f64, f64)>),
}

impl Distribution {
    /// The time for two independent draws from 0 (included) to 1 (excluded).
    pub(crate) fn sample(&self, draws: [f64; 2]) -> Duration {
        let [first, second] = draws;
        // Box and Muller: one standard normal value out of two even ones.
        let normal = || (-2.0 * (1.0 - first).ln()).sqrt() * (TAU * second).cos();
        let seconds = match self {
            Self::Fixed(seconds) => *seconds,
            Self::Uniform { min, max } => min + (max - min) * first,
            Self::Normal { p50, p95 } => p50 + (p95 - p50) / Z95 * normal(),
            Self::LogNormal { p50, p95 } => p50 * ((p95 / p50).ln() / Z95 * normal()).exp(),
            Self::Percentiles(points) => between(points, first * 100.0),
        };
        Duration::try_from_secs_f64(seconds.clamp(0.0, LONGEST)).unwrap_or_default()
    }

    pub(crate) fn read(view: &View<'_>) -> Result<Self> {
        if !matches!(view.node().kind, NodeKind::Mapping(_)) {
            return Ok(Self::Fixed(seconds(view)?));
        }
        view.only_keys(&[
            "fixed",
            "min",
            "max",
            "p50",
            "p95",
            "p99",
            "shape",
            "percentiles",
        ])?;
        let has = |key: &str| view.optional(key).map(|found| found.is_some());
        if has("fixed")? {
            view.only_keys(&["fixed"])?;
            Ok(Self::Fixed(seconds(&view.required("fixed")?)?))
        } else if has("percentiles")? {
            view.only_keys(&["percentiles"])?;
            percentiles(&view.required("percentiles")?)
        } else if has("min")? || has("max")? {
            view.only_keys(&["min", "max"])?;
            let min = seconds(&view.required("min")?)?;
            let max = no_less(&view.required("max")?, min, "min")?;
            Ok(Self::Uniform { min, max })
        } else if has("p50")? {
            middle_and_end(view)
        } else {
            let help = "a time such as 90s, or {min, max}, {p50, p95} or {percentiles}";
            Err(view.error("this says no time", help))
        }
    }
}

/// `{p50, p95}` and, without a shape, `p99`.
fn middle_and_end(view: &View<'_>) -> Result<Distribution> {
    let middle = view.required("p50")?;
    let p50 = seconds(&middle)?;
    let p95 = no_less(&view.required("p95")?, p50, "p50")?;
    let shape = view.optional("shape")?;
    if let Some(end) = view.optional("p99")? {
        let p99 = no_less(&end, p95, "p95")?;
        if let Some(shape) = shape {
            let help = "leave out shape, or p99";
            return Err(shape.error("a shape has two points, and here are three", help));
        }
        return Ok(Distribution::Percentiles(vec![
            (50.0, p50),
            (95.0, p95),
            (99.0, p99),
        ]));
    }
    match shape.as_ref().map(View::str).transpose()? {
        Some("normal") => Ok(Distribution::Normal { p50, p95 }),
        None | Some("lognormal") if p50 > 0.0 => Ok(Distribution::LogNormal { p50, p95 }),
        None | Some("lognormal") => {
            let help = "write a time above zero, or `shape: normal`";
            Err(middle.error("p50 of a lognormal spread is above zero", help))
        }
        Some(_) => {
            let at = shape.unwrap_or(middle);
            Err(at.error("there is no such shape", "one of lognormal, normal"))
        }
    }
}

fn percentiles(view: &View<'_>) -> Result<Distribution> {
    let mut points: Vec<(f64, f64)> = Vec::new();
    for (key, value) in view.entries()? {
        let percent = key.trim_start_matches('p').parse::<f64>();
        let percent = percent.ok().filter(|p| (0.0..=100.0).contains(p));
        let percent = percent.ok_or_else(|| {
            let message = format!("`{key}` is no percentile");
            value.error(message, "its name is from 0 to 100, such as 95 or p99.9")
        })?;
        let time = seconds(&value)?;
        if let Some((before, least)) = points.last()
            && (percent <= *before || time < *least)
        {
            let message = format!("percentile {key} does not come after {before}");
            return Err(value.error(message, "percentiles and their times must rise"));
        }
        points.push((percent, time));
    }
    if points.is_empty() {
        return Err(view.error("no percentile is given", "such as {50: 6m, 95: 10m}"));
    }
    Ok(Distribution::Percentiles(points))
}

fn between(points: &[(f64, f64)], percent: f64) -> f64 {
    let after = points.partition_point(|(known, _)| *known <= percent);
    match (
        after.checked_sub(1).and_then(|at| points.get(at)),
        points.get(after),
    ) {
        (Some((low, from)), Some((high, to))) => {
            from + (to - from) * (percent - low) / (high - low)
        }
        (Some((_, only)), None) | (None, Some((_, only))) => *only,
        (None, None) => 0.0,
    }
}

fn no_less(view: &View<'_>, least: f64, name: &str) -> Result<f64> {
    let time = seconds(view)?;
    if time < least {
        return Err(view.error(format!("this is less than {name}"), "times must rise"));
    }
    Ok(time)
}

/// A number of seconds, or a text such as `250ms`, `90s`, `6m`, `1h` or `9m30s`.
pub(super) fn seconds(view: &View<'_>) -> Result<f64> {
    let wrong = || {
        let place = if view.path().is_empty() {
            "this".to_owned()
        } else {
            format!("`{}`", view.path())
        };
        let message = format!("{place} is no time from 0 to two days");
        view.error(message, "seconds, or such as 250ms, 90s, 6m or 1h")
    };
    let text = view.scalar_text()?.trim();
    let time = text.parse().ok().or_else(|| spelled(text));
    time.filter(|seconds| (0.0..=LONGEST).contains(seconds))
        .ok_or_else(wrong)
}

fn spelled(text: &str) -> Option<f64> {
    let mut rest = text;
    let mut total = 0.0;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| c.is_ascii_alphabetic())?;
        let number: f64 = rest[..digits].trim().parse().ok()?;
        rest = &rest[digits..];
        let end = rest.find(|c: char| !c.is_ascii_alphabetic());
        let (unit, after) = rest.split_at(end.unwrap_or(rest.len()));
        total += number
            * match unit {
                "ms" => 0.001,
                "s" => 1.0,
                "m" | "min" => 60.0,
                "h" => 3600.0,
                _ => return None,
            };
        rest = after.trim_start();
    }
    (!text.is_empty()).then_some(total)
}

#[cfg(test)]
mod tests {
    use nimbus_document::Document;
    use proptest::prelude::*;

    use super::*;

    fn read(text: &str) -> Result<Distribution> {
        let document = Document::parse("latencies.yaml", text).unwrap();
        Distribution::read(&document.view())
    }

    fn at(text: &str, percent: f64) -> f64 {
        let Ok(Distribution::Percentiles(points)) = read(text) else {
            panic!("{text}")
        };
        between(&points, percent)
    }

    #[test]
    fn times_are_written_as_people_write_them() {
        for (text, seconds) in [
            ("2", 2.0),
            ("0.25", 0.25),
            ("250ms", 0.25),
            ("90s", 90.0),
            ("6m", 360.0),
            ("6 min", 360.0),
            ("1h", 3600.0),
            ("9m30s", 570.0),
            ("{fixed: 6m}", 360.0),
        ] {
            assert_eq!(read(text).unwrap(), Distribution::Fixed(seconds), "{text}");
        }
    }

    #[test]
    fn percentiles_are_joined_by_lines_and_flat_outside() {
        let text = "percentiles: {50: 10, 90: 30, p99: 39}";
        assert_eq!(at(text, 0.0), 10.0);
        assert_eq!(at(text, 50.0), 10.0);
        assert_eq!(at(text, 70.0), 20.0);
        assert_eq!(at(text, 99.9), 39.0);
        assert_eq!(at("{p50: 10, p95: 20, p99: 24}", 97.0), 22.0);
    }

    #[test]
    fn what_makes_no_sense_is_refused_and_says_where() {
        for (text, said) in [
            ("fast", "no time"),
            ("-1", "no time"),
            ("3 days", "no time"),
            (".nan", "no time"),
            ("1e300", "no time"),
            ("[1]", "must be"),
            ("{}", "says no time"),
            ("{min: 5}", "max"),
            ("{min: 5, max: 4}", "less than min"),
            ("{min: 1, max: 2, p50: 1}", "p50"),
            ("{p50: 5}", "p95"),
            ("{p50: 5, p95: 4}", "less than p50"),
            ("{p50: 5, p95: 6, p99: 5}", "less than p95"),
            ("{p50: 0, p95: 6}", "above zero"),
            ("{p50: 1, p95: 6, shape: round}", "no such shape"),
            ("{p50: 1, p95: 6, p99: 7, shape: normal}", "two points"),
            ("{percentiles: {}}", "no percentile"),
            ("{percentiles: {101: 1}}", "no percentile"),
            ("{percentiles: {50: 2, 95: 1}}", "does not come after"),
            ("{percentiles: {50: 2, 40: 3}}", "does not come after"),
            ("{typical: 3}", "typical"),
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.contains(said), "{text}: {error}");
        }
    }

    /// Draws as even as they can be.
    fn sorted(distribution: &Distribution) -> Vec<f64> {
        let steps = 200_u32;
        let even = |n: u32| (f64::from(n) + 0.5) / f64::from(steps);
        let mut times: Vec<f64> = (0..steps)
            .flat_map(|a| (0..steps).map(move |b| [even(a), even(b)]))
            .map(|draws| distribution.sample(draws).as_secs_f64())
            .collect();
        times.sort_by(f64::total_cmp);
        times
    }

    #[test]
    fn spreads_have_the_points_that_they_were_given_by() {
        for text in [
            "{p50: 100, p95: 180}",
            "{p50: 100, p95: 180, shape: normal}",
            "{p50: 100, p95: 180, p99: 200}",
            "{percentiles: {5: 10, 50: 100, 95: 180}}",
        ] {
            let times = sorted(&read(text).unwrap());
            let at = |percent: usize| times[times.len() * percent / 100];
            assert!((at(50) - 100.0).abs() < 2.0, "{text}: {}", at(50));
            assert!((at(95) - 180.0).abs() < 3.0, "{text}: {}", at(95));
        }
        let times = sorted(&read("{min: 2, max: 4}").unwrap());
        assert!(times[0] >= 2.0 && times[times.len() - 1] < 4.0);
        assert!((times[times.len() / 2] - 3.0).abs() < 0.05);
    }

    proptest! {
        #[test]
        fn no_draw_makes_a_time_that_cannot_be(
            p50 in 0.001_f64..1e5, more in 0.0_f64..1e5, a in 0.0_f64..1.0, b in 0.0_f64..1.0
        ) {
            let p95 = p50 + more;
            for distribution in [
                Distribution::Normal { p50, p95 },
                Distribution::LogNormal { p50, p95 },
                Distribution::Uniform { min: p50, max: p95 },
                Distribution::Percentiles(vec![(50.0, p50), (95.0, p95)]),
            ] {
                prop_assert!(distribution.sample([a, b]).as_secs_f64() <= LONGEST);
            }
        }

        #[test]
        fn a_text_is_a_time_or_refused(text in "[-0-9a-z. ]{0,12}") {
            if let Ok(document) = Document::parse("l", &text) {
                let _ = Distribution::read(&document.view());
            }
        }
    }
}
