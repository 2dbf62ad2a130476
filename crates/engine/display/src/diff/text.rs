//! Differences inside a text of several lines.

use similar::{ChangeTag, TextDiff};

use super::render::Renderer;
use super::value::LinePrefix;
use crate::line::Tone;
use crate::text::clean;

const CONTEXT: usize = 3;

impl Renderer {
    /// The lines that differ, with a few around them.
    pub(super) fn text_diff(&mut self, old: &str, new: &str) {
        let (old, new) = (clean(old), clean(new));
        let diff = TextDiff::from_lines(&old, &new);
        for (position, group) in diff.grouped_ops(CONTEXT).iter().enumerate() {
            if position > 0 {
                self.line(
                    LinePrefix {
                        symbol: "  ",
                        tone: Tone::Dim,
                    },
                    "…",
                    "",
                );
            }
            for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
                let mark = match change.tag() {
                    ChangeTag::Equal => LinePrefix::NONE,
                    ChangeTag::Delete => LinePrefix::REMOVED,
                    ChangeTag::Insert => LinePrefix::ADDED,
                };
                self.line(mark, change.value().trim_end_matches('\n'), "");
            }
        }
    }
}
