//! Labels, and how their values stay few.

use std::collections::HashSet;

use parking_lot::Mutex;
use prometheus_client::encoding::EncodeLabelSet;

/// Whatever is not among the words that are counted apart.
pub const OTHER: &str = "other";

/// The word itself if it is one of these, else [`OTHER`].
pub fn known_word(word: &str, words: &[&'static str]) -> &'static str {
    let found = words.iter().find(|known| **known == word);
    found.copied().unwrap_or(OTHER)
}

/// Pairs of words that are counted apart, until there are too many.
#[derive(Debug)]
pub(crate) struct BoundedPairs {
    most: usize,
    seen: Mutex<HashSet<(String, String)>>,
}

impl BoundedPairs {
    pub(crate) fn new(most: usize) -> Self {
        Self {
            most,
            seen: Mutex::default(),
        }
    }

    /// Whether this pair is counted by its own name.
    pub(crate) fn admits(&self, first: &str, second: &str) -> bool {
        let pair = (first.to_owned(), second.to_owned());
        let mut seen = self.seen.lock();
        if seen.contains(&pair) {
            return true;
        }
        seen.len() < self.most && seen.insert(pair)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct RequestLabels {
    pub(crate) method: &'static str,
    pub(crate) path: &'static str,
    pub(crate) status: u16,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct RouteLabels {
    pub(crate) method: &'static str,
    pub(crate) path: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct AuditLabels {
    pub(crate) action: String,
    pub(crate) resource_type: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct RunLabels {
    pub(crate) action: &'static str,
    pub(crate) result: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct ActionLabel {
    pub(crate) action: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct ResourceLabels {
    pub(crate) operation: &'static str,
    pub(crate) outcome: &'static str,
}

/// A type of the semantic catalog, or [`OTHER`].
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct TypeLabels {
    pub(crate) provider: &'static str,
    pub(crate) r#type: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct DriftLabels {
    pub(crate) tenant_id: String,
    pub(crate) severity: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct WorkflowLabels {
    pub(crate) workflow_type: &'static str,
    pub(crate) status: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct WorkflowLabel {
    pub(crate) workflow_type: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct ActivityLabels {
    pub(crate) activity_type: &'static str,
    pub(crate) status: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct ScheduleLabels {
    pub(crate) schedule_name: &'static str,
    pub(crate) status: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct StackLabel {
    pub(crate) stack: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct StatusLabel {
    pub(crate) status: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct StateLabel {
    pub(crate) state: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct OutcomeLabel {
    pub(crate) outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct ReasonLabel {
    pub(crate) reason: &'static str,
}

/// A kind of event of the registry of `nimbus-control-events`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct KindLabel {
    pub(crate) kind: &'static str,
}

/// A way between servers.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct WayLabel {
    pub(crate) way: &'static str,
}

/// A code of `docs/errors`, of which there are as many as there are pages.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct CodeLabel {
    pub(crate) code: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct VersionLabel {
    pub(crate) version: &'static str,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_from_outside_are_those_of_the_list_or_other() {
        assert_eq!(known_word("deploy", &["deploy", "destroy"]), "deploy");
        assert_eq!(known_word("0f3b…", &["deploy", "destroy"]), OTHER);
    }

    #[test]
    fn a_set_of_pairs_stops_growing_and_keeps_what_it_has() {
        let pairs = BoundedPairs::new(2);
        assert!(pairs.admits("a", "b") && pairs.admits("a", "c"));
        assert!(!pairs.admits("a", "d"));
        assert!(pairs.admits("a", "b"), "what is known stays known");
    }
}
