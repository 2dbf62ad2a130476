//! Latencies out of what real runs took, in the form that rehearsals read.
//!
//! No precision is made up: few measurements give a middle, more of them a spread, and only many
//! give percentiles.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::orders::CloudCall;

/// So many measurements are needed for a spread, and for percentiles.
const FOR_SPREAD: usize = 5;
const FOR_PERCENTILES: usize = 20;

/// Times in seconds, by type and call.
#[derive(Clone, Debug, Default)]
pub struct Measurements {
    times: BTreeMap<(String, CloudCall), Vec<f64>>,
}

/// What was measured of one call to one type.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    pub type_: String,
    /// `create`, `read`, `update` or `delete`.
    pub call: &'static str,
    pub count: usize,
    pub p5: f64,
    pub p50: f64,
    pub p95: f64,
}

impl Measurements {
    /// Counts a step of a run if it is one call: a replacement is several, and a resource that
    /// stays is none.
    pub fn add(&mut self, type_: &str, step: &str, seconds: f64) {
        let call = match step {
            "create" | "create-replacement" => CloudCall::Create,
            "update" => CloudCall::Update,
            "delete" | "delete-replaced" => CloudCall::Delete,
            "read" | "refresh" | "import" => CloudCall::Read,
            _ => return,
        };
        // The engine's own types are nobody's calls.
        if type_.starts_with("pulumi:") || !seconds.is_finite() || seconds < 0.0 {
            return;
        }
        let key = (type_.to_owned(), call);
        self.times.entry(key).or_default().push(seconds);
    }

    pub fn is_empty(&self) -> bool {
        self.times.is_empty()
    }

    pub fn all(&self) -> Vec<Measured> {
        let measured = |((type_, call), times): (&(String, CloudCall), &Vec<f64>)| {
            let mut sorted = times.clone();
            sorted.sort_by(f64::total_cmp);
            let at = |percent: usize| {
                let rank = (sorted.len() * percent).div_ceil(100).max(1);
                (sorted[rank - 1] * 10.0).round() / 10.0
            };
            Measured {
                type_: type_.clone(),
                call: call.word(),
                count: sorted.len(),
                p5: at(5),
                p50: at(50),
                p95: at(95),
            }
        };
        self.times.iter().map(measured).collect()
    }

    /// The file; `origin` says in its head where the times are from.
    pub fn to_yaml(&self, origin: &str) -> String {
        let mut text = String::from("# How long calls took, in seconds, by type.\n");
        for line in origin.lines() {
            // A string takes everything that is written to it.
            let _ = writeln!(text, "# {line}");
        }
        text.push_str("types:\n");
        let mut before = String::new();
        for one in self.all() {
            if one.type_ != before {
                let _ = writeln!(text, "  {}:", serde_json::Value::from(one.type_.as_str()));
                before.clone_from(&one.type_);
            }
            let _ = writeln!(text, "    {}: {}  # of {}", one.call, one.time(), one.count);
        }
        text
    }
}

impl Measured {
    fn time(&self) -> String {
        let Self { p5, p50, p95, .. } = self;
        match self.count {
            count if count >= FOR_PERCENTILES => {
                format!("{{percentiles: {{5: {p5}, 50: {p50}, 95: {p95}}}}}")
            }
            count if count >= FOR_SPREAD && *p50 > 0.0 => format!("{{p50: {p50}, p95: {p95}}}"),
            _ => p50.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use nimbus_document::Document;
    use proptest::prelude::*;

    use super::*;
    use crate::Latencies;

    #[test]
    fn few_times_give_a_middle_more_a_spread_and_many_percentiles() {
        let mut measurements = Measurements::default();
        for (count, type_) in [(3, "a:b:Few"), (7, "a:b:More"), (40, "a:b:Many")] {
            for n in 1..=count {
                measurements.add(type_, "create", f64::from(n));
            }
        }
        measurements.add("a:b:Few", "delete", 0.04);
        measurements.add("a:b:Few", "same", 1.0);
        measurements.add("a:b:Few", "replace", 1.0);
        measurements.add("pulumi:pulumi:Stack", "create", 1.0);
        let file = measurements.to_yaml("from R0001\nand R0002");
        let expected = "\
# How long calls took, in seconds, by type.
# from R0001
# and R0002
types:
  \"a:b:Few\":
    create: 2  # of 3
    delete: 0  # of 1
  \"a:b:Many\":
    create: {percentiles: {5: 2, 50: 20, 95: 38}}  # of 40
  \"a:b:More\":
    create: {p50: 4, p95: 7}  # of 7
";
        assert_eq!(file, expected);
    }

    proptest! {
        #[test]
        fn whatever_was_measured_can_be_rehearsed_with(
            times in prop::collection::vec(0.0_f64..90_000.0, 1..60)
        ) {
            let mut measurements = Measurements::default();
            for time in &times {
                measurements.add("a:b:C", "update", *time);
            }
            let file = measurements.to_yaml("");
            let document = Document::parse("latencies.yaml", &file).unwrap();
            let latencies = Latencies::from_view(&document.view());
            prop_assert!(latencies.is_ok(), "{file}: {:?}", latencies.err());
        }
    }
}
