//! How long calls to the simulated cloud take.
//!
//! The time of a call follows from the seed, the resource and the call alone: the same rehearsal
//! takes the same time again, whatever runs beside it. How long one really waits is a factor of
//! its own, so that hours can be rehearsed in seconds; it does not touch what a call is said to
//! take.

mod distribution;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use nimbus_core::Result;
use nimbus_document::{Document, View};
use sha2::{Digest, Sha256};

use crate::orders::CloudCall;
use crate::pattern::Pattern;
use distribution::Distribution;

/// Times to begin with, until a user has measured.
pub const EXAMPLE: &str = include_str!("../../data/latencies.yaml");

type Calls = BTreeMap<CloudCall, Distribution>;

/// See the module's documentation.
#[derive(Clone, Debug, Default)]
pub struct Latencies {
    /// What is waited is what a call takes times this; one when nothing is said.
    pub scale: Option<f64>,
    /// Zero when nothing is said.
    pub seed: Option<u64>,
    usual: Calls,
    /// What says most comes first.
    types: Vec<(Pattern, Calls)>,
}

impl Latencies {
    pub const LARGEST_SCALE: f64 = 1000.0;

    pub fn read(path: &Path) -> Result<Self> {
        Self::from_view(&Document::read(path)?.view())
    }

    /// From a text; `name` is what complaints call it.
    pub fn parse(name: &str, text: &str) -> Result<Self> {
        Self::from_view(&Document::parse(name, text)?.view())
    }

    /// The shipped example, as it is written.
    pub fn example_text() -> &'static str {
        EXAMPLE
    }

    /// The shipped example.
    pub fn example() -> Result<Self> {
        Self::from_view(&Document::parse("the example", EXAMPLE)?.view())
    }

    pub(crate) fn from_view(view: &View<'_>) -> Result<Self> {
        view.only_keys(&[
            "scale", "seed", "create", "read", "update", "delete", "types",
        ])?;
        let mut found = Self {
            usual: calls(view)?,
            ..Self::default()
        };
        if let Some(scale) = view.optional("scale")? {
            let factor = scale.f64()?;
            if !(0.0..=Self::LARGEST_SCALE).contains(&factor) {
                return Err(scale.error("no such scale", "from 0, for no waiting, to 1000"));
            }
            found.scale = Some(factor);
        }
        if let Some(seed) = view.optional("seed")? {
            found.seed = Some(seed.u64()?);
        }
        if let Some(types) = view.optional("types")? {
            for (pattern, own) in types.entries()? {
                own.only_keys(&["create", "read", "update", "delete"])?;
                found.types.push((Pattern::new(pattern), calls(&own)?));
            }
        }
        found.sort();
        Ok(found)
    }

    fn sort(&mut self) {
        self.types
            .sort_by_key(|(pattern, _)| std::cmp::Reverse(pattern.weight()));
    }

    /// Takes from another what nothing is said about here.
    pub fn or(mut self, other: Self) -> Self {
        for (call, distribution) in other.usual {
            self.usual.entry(call).or_insert(distribution);
        }
        self.types.extend(other.types);
        self.scale = self.scale.or(other.scale);
        self.seed = self.seed.or(other.seed);
        // Equal patterns stay in order: ours first.
        self.sort();
        self
    }

    /// How long calls take that nothing else is said about.
    pub fn or_seconds(&mut self, seconds: f64) {
        for call in [
            CloudCall::Create,
            CloudCall::Read,
            CloudCall::Update,
            CloudCall::Delete,
        ] {
            self.usual
                .entry(call)
                .or_insert(Distribution::Fixed(seconds));
        }
    }

    /// How long this call takes. `who` is the resource's URN.
    pub fn of(&self, call: CloudCall, type_: &str, who: &str) -> Duration {
        let own = self
            .types
            .iter()
            .filter(|(pattern, _)| pattern.fits(type_))
            .find_map(|(_, calls)| calls.get(&call));
        own.or_else(|| self.usual.get(&call))
            .map(|distribution| distribution.sample(self.draws(call, who)))
            .unwrap_or_default()
    }

    /// How long to wait for a call that takes so long.
    pub fn scaled(&self, time: Duration) -> Duration {
        Duration::try_from_secs_f64(time.as_secs_f64() * self.scale.unwrap_or(1.0))
            .unwrap_or_default()
    }

    fn draws(&self, call: CloudCall, who: &str) -> [f64; 2] {
        let digest = Sha256::digest(format!("{} {} {who}", self.seed.unwrap_or(0), call.word()));
        let part = |at: usize| {
            let eight = digest[at..].first_chunk().copied().unwrap_or_default();
            // As many bits as a fraction holds.
            (u64::from_be_bytes(eight) >> 11) as f64 / (1_u64 << 53) as f64
        };
        [part(0), part(8)]
    }
}

/// A time as files write it.
pub(crate) fn time(view: &View<'_>) -> Result<Duration> {
    let seconds = distribution::seconds(view)?;
    Ok(Duration::try_from_secs_f64(seconds).unwrap_or_default())
}

fn calls(view: &View<'_>) -> Result<Calls> {
    let mut found = Calls::new();
    for call in [
        CloudCall::Create,
        CloudCall::Read,
        CloudCall::Update,
        CloudCall::Delete,
    ] {
        if let Some(time) = view.optional(call.word())? {
            found.insert(call, Distribution::read(&time)?);
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn latencies(text: &str) -> Result<Latencies> {
        Latencies::from_view(&Document::parse("latencies.yaml", text).unwrap().view())
    }

    fn seconds(latencies: &Latencies, call: CloudCall, type_: &str) -> f64 {
        latencies.of(call, type_, "urn").as_secs_f64()
    }

    #[test]
    fn a_type_comes_before_a_pattern_and_a_pattern_before_the_usual() {
        let found = latencies(
            "create: 1\ndelete: 2\ntypes:\n  'a:*': {create: 3}\n  'a:rds/*': {create: 4}\n  a:rds/db:Db: {create: 5}\n",
        )
        .unwrap();
        assert_eq!(seconds(&found, CloudCall::Create, "x:y:Z"), 1.0);
        assert_eq!(seconds(&found, CloudCall::Create, "a:y:Z"), 3.0);
        assert_eq!(seconds(&found, CloudCall::Create, "a:rds/x:X"), 4.0);
        assert_eq!(seconds(&found, CloudCall::Create, "a:rds/db:Db"), 5.0);
        assert_eq!(seconds(&found, CloudCall::Delete, "a:rds/db:Db"), 2.0);
        assert_eq!(seconds(&found, CloudCall::Read, "a:rds/db:Db"), 0.0);
    }

    #[test]
    fn a_call_takes_the_same_time_again_and_another_with_another_seed_resource_or_call() {
        let spread = "{min: 1, max: 1000}";
        let found = latencies(&format!("create: {spread}\ndelete: {spread}")).unwrap();
        let of = |l: &Latencies, call, who| l.of(call, "t", who);
        let first = of(&found, CloudCall::Create, "urn:a");
        assert_eq!(first, of(&found, CloudCall::Create, "urn:a"));
        assert_ne!(first, of(&found, CloudCall::Create, "urn:b"));
        assert_ne!(first, of(&found, CloudCall::Delete, "urn:a"));
        let other = Latencies {
            seed: Some(1),
            ..found
        };
        assert_ne!(first, of(&other, CloudCall::Create, "urn:a"));
        // Written down, so that no release changes what a seed means.
        assert_eq!(first.as_millis(), 689_150);
    }

    #[test]
    fn one_file_fills_what_another_leaves_open() {
        let own = latencies("scale: 0.5\ncreate: 1\ntypes: {'a:*': {create: 2}}").unwrap();
        let other = latencies(
            "scale: 2\nseed: 3\ncreate: 9\nread: 3\ntypes: {'a:*': {create: 8, delete: 4}}",
        )
        .unwrap();
        let mut both = own.or(other);
        assert_eq!((both.scale, both.seed), (Some(0.5), Some(3)));
        assert_eq!(seconds(&both, CloudCall::Create, "x"), 1.0);
        assert_eq!(seconds(&both, CloudCall::Read, "x"), 3.0);
        assert_eq!(seconds(&both, CloudCall::Create, "a:x"), 2.0);
        assert_eq!(seconds(&both, CloudCall::Delete, "a:x"), 4.0);
        both.or_seconds(7.0);
        assert_eq!(seconds(&both, CloudCall::Update, "x"), 7.0);
        assert_eq!(seconds(&both, CloudCall::Create, "x"), 1.0);
        assert_eq!(
            both.scaled(Duration::from_secs(3)),
            Duration::from_millis(1500)
        );
    }

    #[test]
    fn the_example_is_read_and_says_that_it_is_one() {
        let example = Latencies::example().unwrap();
        let minutes = |type_: &str| seconds(&example, CloudCall::Create, type_) / 60.0;
        assert!(minutes("aws:rds/instance:Instance") > 2.0);
        assert!(minutes("aws:iam/role:Role") < 1.0);
        assert!(EXAMPLE.starts_with("# An example"), "{EXAMPLE}");
    }

    #[test]
    fn a_wrong_file_says_where() {
        for (text, line) in [
            ("create: 1\nscale: -1", 2),
            ("create: 1\n\nseed: x", 3),
            ("types:\n  a: {make: 1}", 2),
            ("types:\n  a:\n    create: {p50: 3, p95: 1}", 3),
            ("types: [1]", 1),
        ] {
            let error = latencies(text).unwrap_err();
            let (at, _) = error.spans()[0].line_and_column();
            assert_eq!(at, line, "{text}: {error}");
        }
    }
}
