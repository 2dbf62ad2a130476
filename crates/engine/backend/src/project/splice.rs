//! Changing one value of a YAML text and nothing else.
//!
//! The functions here propose a new text, or none where the text is laid out in a way that they
//! cannot work with. They may be wrong about exotic YAML: whoever uses them reads the proposal back
//! and compares.

use nimbus_document::{Document, Node, NodeKind, Span};
use nimbus_engine_model::PathSegment;

use super::render;
use super::value::ConfigValue;

/// Looks up what a path from the root holds after the change.
pub(super) type DesiredLookup<'a> = dyn Fn(&[PathSegment]) -> Option<ConfigValue> + 'a;

pub(super) struct Splicer<'a> {
    document: &'a Document,
    text: &'a str,
    newline: &'static str,
}

impl<'a> Splicer<'a> {
    pub(super) fn new(document: &'a Document, text: &'a str) -> Self {
        let newline = if text.contains("\r\n") { "\r\n" } else { "\n" };
        Self {
            document,
            text,
            newline,
        }
    }

    /// Puts the value that `wanted` has at `path` there. Goes into the text at most `depth` steps,
    /// and rewrites what is below.
    pub(super) fn put(
        &self,
        path: &[PathSegment],
        depth: usize,
        wanted: &DesiredLookup<'_>,
    ) -> Option<String> {
        let (slots, innermost) = self.follow(path, depth);
        if let Some(segment) = path.get(slots.len()).filter(|_| slots.len() < depth) {
            let new = wanted(&path[..=slots.len()]);
            let inserted = new.and_then(|new| self.insert(innermost, segment, &new));
            if inserted.is_some() {
                return inserted;
            }
        }
        let rewritable = slots.iter().rposition(|slot| self.is_block_slot(slot))?;
        let new = wanted(&path[..=rewritable])?;
        Some(self.replace(&slots[rewritable], &new))
    }

    /// Takes away exactly what is at `path`.
    pub(super) fn take(&self, path: &[PathSegment]) -> Option<String> {
        let (slots, _) = self.follow(path, path.len());
        let last = slots.last().filter(|_| slots.len() == path.len())?;
        self.remove(last)
    }

    /// The children along a path as far as they exist, and the value where it ends.
    fn follow(&self, path: &[PathSegment], depth: usize) -> (Vec<ChildSpan<'a>>, &'a Node) {
        let mut node = self.document.root();
        let mut slots = Vec::new();
        for segment in path.iter().take(depth) {
            let Some(slot) = slot(node, segment) else {
                break;
            };
            node = slot.value;
            slots.push(slot);
        }
        (slots, node)
    }

    fn is_block(&self, node: &Node) -> bool {
        !self.document.source(node.span).starts_with(['{', '['])
    }

    fn is_block_slot(&self, slot: &ChildSpan<'_>) -> bool {
        self.is_block(slot.container) && (slot.is_entry || self.dash(slot).is_some())
    }

    /// Adds a child to a block container that has some already.
    fn insert(&self, node: &Node, segment: &PathSegment, new: &ConfigValue) -> Option<String> {
        if !self.is_block(node) {
            return None;
        }
        let (indent, line) = match (&node.kind, segment) {
            (NodeKind::Mapping(mapping), PathSegment::Key(key)) => {
                let (_, first) = mapping.iter().next()?;
                let indent = self.column(first.key_span.start);
                let value = render::after_key(new, indent, self.newline);
                (indent, format!("{}:{value}", render::scalar(key)))
            }
            (NodeKind::Sequence(items), PathSegment::Index(index)) => {
                let first = slot(node, &PathSegment::Index(0))?;
                if usize::try_from(*index).ok()? != items.len() {
                    return None;
                }
                let indent = self.column(self.dash(&first)?);
                (indent, render::item(new, indent, self.newline))
            }
            _ => return None,
        };
        let last = match &node.kind {
            NodeKind::Mapping(mapping) => {
                let (_, entry) = mapping.iter().last()?;
                self.end_of(&entry.value, entry.key_span)
            }
            NodeKind::Sequence(items) => self.end_of(items.last()?, items.last()?.span),
            _ => return None,
        };
        let at = self.line_end(last);
        let pad = " ".repeat(indent);
        Some(self.with(Span::at(at), &format!("{}{pad}{line}", self.newline)))
    }

    fn replace(&self, slot: &ChildSpan<'_>, new: &ConfigValue) -> String {
        let end = self.end_of(slot.value, slot.start);
        if slot.is_entry {
            let indent = self.column(slot.start.start);
            let value = render::after_key(new, indent, self.newline);
            return self.with(Span::new(slot.start.end, end), &format!(":{value}"));
        }
        let dash = self.dash(slot).unwrap_or(slot.start.start);
        let item = render::item(new, self.column(dash), self.newline);
        self.with(Span::new(dash, end), &item)
    }

    fn remove(&self, slot: &ChildSpan<'_>) -> Option<String> {
        let start = if slot.is_entry {
            slot.start.start
        } else {
            self.dash(slot)?
        };
        let line = self.line_start(start);
        let alone_on_line = self.text[line..start].trim().is_empty();
        // Without this one the container would be empty, which block style cannot say.
        if !alone_on_line || slot.siblings == 0 {
            return None;
        }
        let end = self.line_end(self.end_of(slot.value, slot.start));
        let end = if self.text[end..].starts_with(self.newline) {
            end + self.newline.len()
        } else {
            end
        };
        Some(self.with(Span::new(line, end), ""))
    }

    /// Takes a whole entry of the root away, whatever is left.
    pub(super) fn remove_root_entry(&self, key: &str) -> Option<String> {
        let slot = slot(self.document.root(), &PathSegment::from(key))?;
        self.remove(&ChildSpan {
            siblings: 1,
            ..slot
        })
    }

    /// Where the dash of a list's element is.
    fn dash(&self, slot: &ChildSpan<'_>) -> Option<usize> {
        let line = self.line_start(slot.start.start);
        let before = &self.text[line..slot.start.start];
        let dash = before.rfind('-')?;
        let only_blanks_after = before[dash + 1..].trim().is_empty();
        only_blanks_after.then_some(line + dash)
    }

    /// The end of what is written for a value.
    fn end_of(&self, value: &Node, key: Span) -> usize {
        // A missing value has no place of its own; it ends with the colon.
        if value.span.is_empty() {
            let colon = self.text[key.end..].find(':').map_or(0, |at| at + 1);
            return key.end + colon;
        }
        let written = &self.text[..value.span.end];
        written.trim_end().len()
    }

    fn line_start(&self, offset: usize) -> usize {
        self.text[..offset].rfind('\n').map_or(0, |at| at + 1)
    }

    fn line_end(&self, offset: usize) -> usize {
        let end = self.text[offset..]
            .find('\n')
            .map_or(self.text.len(), |at| offset + at);
        if self.text[..end].ends_with('\r') {
            end - 1
        } else {
            end
        }
    }

    fn column(&self, offset: usize) -> usize {
        self.text[self.line_start(offset)..offset].chars().count()
    }

    fn with(&self, span: Span, new: &str) -> String {
        format!(
            "{}{new}{}",
            &self.text[..span.start],
            &self.text[span.end..]
        )
    }
}

/// A child of a list or mapping, and how it is written.
struct ChildSpan<'a> {
    container: &'a Node,
    /// The key, or the element itself.
    start: Span,
    is_entry: bool,
    value: &'a Node,
    siblings: usize,
}

/// The child that a step leads to.
fn slot<'n>(node: &'n Node, segment: &PathSegment) -> Option<ChildSpan<'n>> {
    match (&node.kind, segment) {
        (NodeKind::Mapping(mapping), PathSegment::Key(key)) => {
            let entry = mapping.entry(key)?;
            Some(ChildSpan {
                container: node,
                start: entry.key_span,
                is_entry: true,
                value: &entry.value,
                siblings: mapping.len() - 1,
            })
        }
        (NodeKind::Sequence(items), PathSegment::Index(index)) => {
            let value = items.get(usize::try_from(*index).ok()?)?;
            Some(ChildSpan {
                container: node,
                start: value.span,
                is_entry: false,
                value,
                siblings: items.len() - 1,
            })
        }
        _ => None,
    }
}
