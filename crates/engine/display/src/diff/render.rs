//! A tree of differences as lines.

use std::collections::BTreeMap;

use nimbus_engine_model::{Asset, PropertyValue};

use super::structural::{settled, value as compare};
use super::value::{LinePrefix, as_json, inline, is_block};
use super::{DiffNode, DiffNodes, PropertyChange};
use crate::line::{StyledLine, Tone};
use crate::text::clean_name;

const INDENT: usize = 4;
const FORCES_REPLACEMENT: &str = "forces replacement";

/// How much of a long text is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TextLimits {
    /// Characters of a text on one line.
    pub(crate) line: usize,
    /// Lines of a text of several.
    pub(crate) block: usize,
}

impl TextLimits {
    pub(crate) const SHORT: Self = Self {
        line: 150,
        block: 12,
    };
    pub(crate) const NONE: Self = Self {
        line: usize::MAX,
        block: usize::MAX,
    };
}

/// Collects lines at a depth.
pub(crate) struct Renderer {
    lines: Vec<StyledLine>,
    depth: usize,
    pub(super) limits: TextLimits,
}

impl Renderer {
    pub(crate) fn new(depth: usize, limits: TextLimits) -> Self {
        Self {
            lines: Vec::new(),
            depth,
            limits,
        }
    }

    pub(crate) fn finish(self) -> Vec<StyledLine> {
        self.lines
    }

    /// Everything that differs, with aligned keys.
    pub(crate) fn diff(&mut self, diff: &DiffNodes) {
        let width = diff.keys().map(|key| clean_name(key).chars().count()).max();
        for (key, node) in diff {
            let title = format!("{:<width$}: ", clean_name(key), width = width.unwrap_or(0));
            self.node(&title, node);
        }
    }

    pub(crate) fn node(&mut self, title: &str, node: &DiffNode) {
        let note = if node.forces_replacement {
            FORCES_REPLACEMENT
        } else {
            ""
        };
        match &node.change {
            PropertyChange::Added(value) => self.value(title, value, LinePrefix::ADDED, note),
            PropertyChange::Removed(value) => self.value(title, value, LinePrefix::REMOVED, note),
            PropertyChange::Set { old, new } => self.set(title, old, new, note),
            PropertyChange::Object(inner) => {
                self.line(LinePrefix::CHANGED, format!("{title}{{"), note);
                self.indented(|renderer| renderer.diff(inner));
                self.line(LinePrefix::CHANGED.closing(), "}", "");
            }
            PropertyChange::Array(items) => self.array(title, items, note),
        }
    }

    fn array(&mut self, title: &str, items: &BTreeMap<usize, DiffNode>, note: &str) {
        self.line(LinePrefix::CHANGED, format!("{title}["), note);
        self.indented(|renderer| {
            for (index, node) in items {
                renderer.node(&format!("[{index}]: "), node);
            }
        });
        self.line(LinePrefix::CHANGED.closing(), "]", "");
    }

    fn set(&mut self, title: &str, old: &PropertyValue, new: &PropertyValue, note: &str) {
        let (old, new) = (settled(old), settled(new));
        if let (Some(old), Some(new)) = (as_text(&old), as_text(&new))
            && self.text_change(title, old, new, note)
        {
            return;
        }
        match (
            inline(&old, self.limits.line),
            inline(&new, self.limits.line),
        ) {
            (Some(old), Some(new)) => {
                let mut line = self.start(LinePrefix::CHANGED);
                line.push(LinePrefix::CHANGED.tone, title);
                line.push(Tone::Delete, old);
                line.push(LinePrefix::CHANGED.tone, " => ");
                line.push(Tone::Create, new);
                self.push(line, note);
            }
            _ => {
                self.value(title, &old, LinePrefix::REMOVED, note);
                self.value(title, &new, LinePrefix::ADDED, "");
            }
        }
    }

    /// Shows the change of a text inside the text, where that reads better than both of them.
    fn text_change(&mut self, title: &str, old: &str, new: &str, note: &str) -> bool {
        if let (Some(old), Some(new)) = (as_json(old), as_json(new)) {
            if let Some(change @ (PropertyChange::Object(_) | PropertyChange::Array(_))) =
                compare(&old, &new)
            {
                let mut node = DiffNode::new(change);
                node.forces_replacement = !note.is_empty();
                self.node(&format!("{title}(json) "), &node);
                return true;
            }
            return false;
        }
        if !is_block(old) && !is_block(new) {
            return false;
        }
        self.line(LinePrefix::CHANGED, format!("{title}|"), note);
        self.indented(|renderer| renderer.text_diff(old, new));
        true
    }

    pub(super) fn indented(&mut self, inner: impl FnOnce(&mut Self)) {
        self.depth += 1;
        inner(self);
        self.depth -= 1;
    }

    pub(crate) fn line(&mut self, mark: LinePrefix, text: impl Into<String>, note: &str) {
        let line = self.start(mark).with(mark.tone, text);
        self.push(line, note);
    }

    /// Indentation whose last two columns are the mark.
    fn start(&self, mark: LinePrefix) -> StyledLine {
        let columns = (self.depth * INDENT).saturating_sub(mark.symbol.len());
        StyledLine::of(Tone::Plain, " ".repeat(columns)).with(mark.tone, mark.symbol)
    }

    fn push(&mut self, mut line: StyledLine, note: &str) {
        if !note.is_empty() {
            line.push(Tone::Replace, format!("  ({note})"));
        }
        self.lines.push(line.trimmed());
    }
}

/// The text of a string or of a text asset.
fn as_text(value: &PropertyValue) -> Option<&str> {
    match value {
        PropertyValue::String(text) | PropertyValue::Asset(Asset::Text { text, .. }) => Some(text),
        _ => None,
    }
}
