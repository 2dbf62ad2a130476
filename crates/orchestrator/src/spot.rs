//! Where in a manifest something is, so that a complaint can point at a line and a column.
//!
//! What is wrong is mostly found in values that have left their file. A spot is remembered with
//! the finding and looked up in the file when it is shown.

use nimbus_core::{ComponentName, EnvironmentName, Error, ErrorCode};
use nimbus_document::{Document, Position, Span};

/// Keys from the root of the manifest, and a text inside of the value there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ManifestSpot {
    pub path: Vec<String>,
    pub text: Option<String>,
}

impl ManifestSpot {
    pub fn of(path: &[&str]) -> Self {
        Self {
            path: path.iter().map(|key| (*key).to_owned()).collect(),
            text: None,
        }
    }

    /// A configuration value of a stack.
    pub fn config(component: &ComponentName, environment: EnvironmentName, key: &str) -> Self {
        Self::of(&[
            "spec",
            "stacks",
            component,
            "config",
            environment.as_str(),
            key,
        ])
    }

    pub fn with_text(mut self, text: &str) -> Self {
        self.text = Some(text.to_owned());
        self
    }

    /// Where a value is inherited from, nearest first, if it is one that can be.
    fn inherited(&self) -> Vec<Vec<&str>> {
        let path: Vec<&str> = self.path.iter().map(String::as_str).collect();
        let ["spec", "stacks", stack, "config", environment, rest @ ..] = path.as_slice() else {
            return Vec::new();
        };
        vec![
            [&["spec", "stacks", stack, "defaults"], rest].concat(),
            [&["spec", "environments", environment, "defaults"], rest].concat(),
            [&["spec", "defaults"], rest].concat(),
        ]
    }

    /// The bytes that are meant. Where the path ends early, what is there of it.
    pub fn span(&self, document: &Document) -> Span {
        let own: Vec<&str> = self.path.iter().map(String::as_str).collect();
        let is_there = |path: &&Vec<&str>| {
            let mut node = Some(document.root());
            for key in *path {
                node = node.and_then(|node| node.get(key));
            }
            node.is_some()
        };
        let inherited = self.inherited();
        let found = Some(&own).filter(is_there);
        let found = found.or_else(|| inherited.iter().find(is_there));
        self.span_of(found.unwrap_or(&own), document)
    }

    fn span_of(&self, path: &[&str], document: &Document) -> Span {
        let mut node = document.root();
        let mut span = Span::at(node.span.start);
        for key in path {
            let Some(entry) = node.as_mapping().and_then(|mapping| mapping.entry(key)) else {
                break;
            };
            node = &entry.value;
            span = entry.key_span;
            if !node.span.is_empty() && node.as_mapping().is_none() {
                span = node.span;
            }
        }
        let inside = self.text.as_deref().and_then(|text| {
            let start = node.span.start + document.source(node.span).find(text)?;
            Some(Span::new(start, start + text.len()))
        });
        inside.unwrap_or(span)
    }

    pub fn position(&self, document: &Document) -> Position {
        document.position(self.span(document))
    }

    /// The error again, pointing at this place.
    pub fn point(&self, document: &Document, code: ErrorCode, message: String) -> Error {
        document.error(code, self.span(document), message, "here")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "spec:\n  stacks:\n    web:\n      config:\n        dev:\n          list:\n            - \
                        a-{{RUNTIME:network:vpcId}}\n          size: 3\n";

    fn at(spot: &ManifestSpot) -> (usize, usize) {
        let document = Document::parse("m.yaml", TEXT).unwrap();
        let Position { line, column } = spot.position(&document);
        (line, column)
    }

    fn in_web(key: &str) -> ManifestSpot {
        ManifestSpot::config(&"web".parse().unwrap(), EnvironmentName::DEV, key)
    }

    #[test]
    fn values_texts_and_missing_keys_are_found() {
        let list = in_web("list");
        assert_eq!(at(&list.with_text("{{RUNTIME:network:vpcId}}")), (7, 17));
        assert_eq!(at(&in_web("size")), (8, 17));
        let missing = in_web("nope");
        assert_eq!(at(&missing), (5, 9), "the mapping that lacks it");
        assert_eq!(at(&ManifestSpot::default()), (1, 1));
    }
}
