//! Ranges of versions as programs write them to say which engine they need.
//!
//! Alternatives are separated by `||`; within one, all comparisons must hold. Comparisons are `=`
//! (or nothing), `!` and `!=`, `<`, `<=`, `>`, `>=`. A missing or `x` part stands for any number.

use std::ops::Range;

use semver::Version;

/// The version of the official engine whose behaviour and protocol this one has.
pub(super) const COMPATIBLE_VERSION: Version = Version::new(3, 260, 0);

pub(super) struct VersionRange {
    alternatives: Vec<Vec<VersionComparison>>,
}

struct VersionComparison {
    operator: Operator,
    /// The versions that the written one stands for: itself, or all with its given parts.
    span: VersionSpan,
}

#[derive(Clone, Copy)]
enum Operator {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

enum VersionSpan {
    One(Version),
    Many(Range<Version>),
    All,
}

impl VersionRange {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let alternatives = text.split("||").map(|alternative| {
            let comparisons = joined(alternative).into_iter();
            let comparisons: Vec<_> = comparisons
                .map(|comparison| VersionComparison::parse(&comparison))
                .collect::<Option<_>>()?;
            (!comparisons.is_empty()).then_some(comparisons)
        });
        let alternatives = alternatives.collect::<Option<_>>();
        let alternatives =
            alternatives.ok_or_else(|| format!("{text:?} is not a range of versions"))?;
        Ok(Self { alternatives })
    }

    pub(super) fn contains(&self, version: &Version) -> bool {
        let mut alternatives = self.alternatives.iter();
        alternatives.any(|all| all.iter().all(|comparison| comparison.holds(version)))
    }
}

/// Splits at spaces, but keeps an operator with the version that follows it.
fn joined(alternative: &str) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    for word in alternative.split_whitespace() {
        let is_operator = |part: &String| part.chars().all(|c| "<>=!".contains(c));
        match parts.last_mut() {
            Some(last) if is_operator(last) => last.push_str(word),
            _ => parts.push(word.to_owned()),
        }
    }
    parts
}

impl VersionComparison {
    fn parse(text: &str) -> Option<Self> {
        let digits = text.find(|c: char| !"<>=!".contains(c))?;
        let (operator, version) = text.split_at(digits);
        let operator = match operator {
            "" | "=" | "==" => Operator::Equal,
            "!" | "!=" => Operator::NotEqual,
            "<" => Operator::Less,
            "<=" => Operator::LessOrEqual,
            ">" => Operator::Greater,
            ">=" => Operator::GreaterOrEqual,
            _ => return None,
        };
        let span = span(version.strip_prefix('v').unwrap_or(version))?;
        Some(Self { operator, span })
    }

    fn holds(&self, version: &Version) -> bool {
        let (first, last, inside) = match &self.span {
            VersionSpan::All => return !matches!(self.operator, Operator::NotEqual),
            VersionSpan::One(one) => (*version < *one, *version > *one, version == one),
            VersionSpan::Many(many) => (
                *version < many.start,
                *version >= many.end,
                many.contains(version),
            ),
        };
        match self.operator {
            Operator::Equal => inside,
            Operator::NotEqual => !inside,
            Operator::Less => first,
            Operator::LessOrEqual => first || inside,
            Operator::Greater => last,
            Operator::GreaterOrEqual => last || inside,
        }
    }
}

fn span(text: &str) -> Option<VersionSpan> {
    if let Ok(version) = Version::parse(text) {
        return Some(VersionSpan::One(version));
    }
    let parts: Vec<&str> = text.split('.').collect();
    if parts.len() > 3 {
        return None;
    }
    let given = parts
        .iter()
        .take_while(|part| !matches!(**part, "x" | "X" | "*"));
    let given: Vec<u64> = given.map(|part| part.parse().ok()).collect::<Option<_>>()?;
    // After an open part everything is open.
    let open = &parts[given.len()..];
    if !open.iter().all(|part| matches!(*part, "x" | "X" | "*")) {
        return None;
    }
    match *given.as_slice() {
        [] => Some(VersionSpan::All),
        [major] => Some(VersionSpan::Many(
            Version::new(major, 0, 0)..Version::new(major + 1, 0, 0),
        )),
        [major, minor] => Some(VersionSpan::Many(
            Version::new(major, minor, 0)..Version::new(major, minor + 1, 0),
        )),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contains(range: &str, version: &str) -> bool {
        let range = VersionRange::parse(range).expect("a range");
        range.contains(&Version::parse(version).expect("a version"))
    }

    #[test]
    fn versions_are_inside_or_outside() {
        for (range, inside, outside) in [
            (">=3.1.0 <4.0.0", "3.260.0", "4.0.0"),
            (">= 3.1.0", "3.1.0", "3.0.9"),
            ("3.x", "3.7.1", "4.0.0"),
            ("3.2", "3.2.9", "3.3.0"),
            ("<3.2.x", "3.1.9", "3.2.0"),
            (">3.2.x", "3.3.0", "3.2.9"),
            ("!=3.2.0", "3.2.1", "3.2.0"),
            ("<2.0.0 || >=3.0.0", "3.0.0", "2.5.0"),
            ("=3.2.0", "3.2.0", "3.2.1"),
            ("v3.2.0", "3.2.0", "3.2.1"),
        ] {
            assert!(contains(range, inside), "{range} has {inside}");
            assert!(!contains(range, outside), "{range} has not {outside}");
        }
        assert!(contains("*", "3.0.0"));
    }

    #[test]
    fn what_is_no_range_is_refused() {
        for text in [
            "", "latest", "3.0.0 ||", ">>3", "3.x.1", "1.2.3.4", "~3.0.0",
        ] {
            assert!(VersionRange::parse(text).is_err(), "{text}");
        }
    }
}
