//! Choices of resources by URN or pattern.

use std::collections::BTreeSet;

use nimbus_engine_model::Urn;
use regex::Regex;

/// A compiled choice. It grows while an operation finds dependants of what was chosen.
#[derive(Clone, Debug)]
pub(crate) struct TargetSet {
    literals: BTreeSet<String>,
    patterns: Vec<Regex>,
}

impl TargetSet {
    /// `*` stands for anything but `:`, `**` for anything. Without any `*` the text is a URN.
    pub(crate) fn new(texts: &[String]) -> Self {
        let (patterns, literals): (Vec<_>, Vec<_>) =
            texts.iter().partition(|text| text.contains('*'));
        Self {
            literals: literals.into_iter().cloned().collect(),
            patterns: patterns
                .into_iter()
                .filter_map(|text| compile(text))
                .collect(),
        }
    }

    /// Whether anything was chosen; otherwise an operation is about everything.
    pub(crate) fn is_constrained(&self) -> bool {
        !self.literals.is_empty() || !self.patterns.is_empty()
    }

    pub(crate) fn contains(&self, urn: &Urn) -> bool {
        self.literals.contains(urn.as_str())
            || self
                .patterns
                .iter()
                .any(|pattern| pattern.is_match(urn.as_str()))
    }

    /// Chosen as exactly this URN. These must exist; patterns may match nothing.
    pub(crate) fn literals(&self) -> impl Iterator<Item = &str> {
        self.literals.iter().map(String::as_str)
    }

    /// Chooses one more, unless everything is chosen already.
    pub(crate) fn add(&mut self, urn: &Urn) {
        if self.is_constrained() {
            self.literals.insert(urn.to_string());
        }
    }
}

fn compile(pattern: &str) -> Option<Regex> {
    let escaped: Vec<String> = pattern
        .split("**")
        .map(|part| {
            let pieces: Vec<String> = part.split('*').map(regex::escape).collect();
            pieces.join("[^:]*")
        })
        .collect();
    Regex::new(&format!("^{}$", escaped.join(".*"))).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choice(texts: &[&str]) -> TargetSet {
        TargetSet::new(
            &texts
                .iter()
                .map(|text| (*text).to_owned())
                .collect::<Vec<_>>(),
        )
    }

    #[test]
    fn a_star_stops_at_colons_and_two_do_not() {
        let urn = Urn::new("dev", "shop", None, "aws:s3:Bucket", "logs");
        assert!(choice(&["urn:pulumi:dev::shop::aws:s3:Bucket::logs"]).contains(&urn));
        assert!(choice(&["urn:pulumi:dev::shop::aws:s3:Bucket::*"]).contains(&urn));
        assert!(choice(&["**::logs"]).contains(&urn));
        assert!(choice(&["**s3:Buck*::lo*"]).contains(&urn));
        assert!(!choice(&["urn:pulumi:dev::*::logs"]).contains(&urn));
        assert!(!choice(&["**::log"]).contains(&urn));
    }

    #[test]
    fn other_special_characters_mean_themselves() {
        let urn = Urn::new("dev", "shop", None, "a:b:C", "n.1");
        assert!(choice(&["**n.1"]).contains(&urn));
        assert!(!choice(&["**n.1"]).contains(&Urn::new("dev", "shop", None, "a:b:C", "nx1")));
    }

    #[test]
    fn an_empty_choice_is_about_everything_and_stays_so() {
        let mut nothing = choice(&[]);
        nothing.add(&Urn::root_stack("dev", "shop"));
        assert!(!nothing.is_constrained());
    }
}
