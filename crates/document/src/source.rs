//! The text of a document and the places in it.
//!
//! The YAML scanner counts characters and everything else counts bytes; this is the only module
//! that knows both.

use std::sync::Arc;

use nimbus_core::{Error, ErrorCode, InputSpan, line_and_column};

/// A range of bytes in the document's text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Span {
    pub start: usize,
    pub end: usize,
}

impl Span {
    pub fn new(start: usize, end: usize) -> Self {
        Self {
            start,
            end: end.max(start),
        }
    }

    pub fn at(offset: usize) -> Self {
        Self {
            start: offset,
            end: offset,
        }
    }

    /// The smallest span that holds both.
    pub fn to(self, other: Self) -> Self {
        Self {
            start: self.start.min(other.start),
            end: self.end.max(other.end),
        }
    }

    pub fn is_empty(self) -> bool {
        self.start == self.end
    }
}

/// Line and column as editors show them: both start at 1, columns count characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    pub line: usize,
    pub column: usize,
}

/// A named text.
#[derive(Clone, Debug)]
pub(crate) struct SourceText {
    pub(crate) name: Arc<str>,
    pub(crate) text: Arc<str>,
}

impl SourceText {
    pub(crate) fn new(name: &str, text: &str) -> Self {
        Self {
            name: Arc::from(name),
            text: Arc::from(text),
        }
    }

    /// The text of a span; empty where the span does not lie on character borders.
    pub(crate) fn slice(&self, span: Span) -> &str {
        self.text.get(span.start..span.end).unwrap_or("")
    }

    pub(crate) fn position(&self, offset: usize) -> Position {
        let (line, column) = line_and_column(&self.text, offset);
        Position { line, column }
    }

    /// The whole line that holds `offset`, without its line break.
    pub(crate) fn line_at(&self, offset: usize) -> &str {
        let offset = offset.min(self.text.len());
        let bytes = self.text.as_bytes();
        let start = bytes[..offset]
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(0, |at| at + 1);
        let end = bytes[offset..].iter().position(|byte| *byte == b'\n');
        let end = end.map_or(self.text.len(), |length| offset + length);
        self.text
            .get(start..end)
            .unwrap_or("")
            .trim_end_matches('\r')
    }

    /// An error at a place in this text. A span over several lines is shown by its first one,
    /// because a marker that covers half a file explains nothing.
    pub(crate) fn error(
        &self,
        code: ErrorCode,
        span: Span,
        message: impl Into<String>,
        label: impl Into<String>,
    ) -> Error {
        let shown = self.slice(span).lines().next().unwrap_or("").trim_end();
        Error::new(code, message).with_span(InputSpan {
            name: self.name.to_string(),
            text: Arc::clone(&self.text),
            offset: span.start.min(self.text.len()),
            length: shown.len(),
            label: label.into(),
        })
    }
}

/// Turns the scanner's character indices into byte offsets. One checkpoint per block keeps a
/// lookup short without a table as long as the text.
pub(crate) struct CharOffsets<'a> {
    text: &'a str,
    base: usize,
    checkpoints: Option<Vec<usize>>,
}

const BLOCK: usize = 256;

impl<'a> CharOffsets<'a> {
    /// `base` is added to every offset: what was cut off before the scanner saw the text.
    pub(crate) fn new(text: &'a str, base: usize) -> Self {
        let checkpoints = (!text.is_ascii()).then(|| {
            text.char_indices()
                .step_by(BLOCK)
                .map(|(offset, _)| offset)
                .collect()
        });
        Self {
            text,
            base,
            checkpoints,
        }
    }

    pub(crate) fn byte(&self, index: usize) -> usize {
        let offset = match &self.checkpoints {
            None => index.min(self.text.len()),
            Some(checkpoints) => {
                let start = checkpoints.get(index / BLOCK).copied();
                start.map_or(self.text.len(), |start| {
                    let within = self.text[start..].char_indices().nth(index % BLOCK);
                    within.map_or(self.text.len(), |(offset, _)| start + offset)
                })
            }
        };
        self.base + offset
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn positions_count_characters_and_lines_from_one() {
        let source = SourceText::new("a.yaml", "é: 1\nb: ü2\n");
        assert_eq!(source.position(0), Position { line: 1, column: 1 });
        assert_eq!(source.position(2), Position { line: 1, column: 2 });
        let offset = source.text.find('2').unwrap();
        assert_eq!(source.position(offset), Position { line: 2, column: 5 });
        assert_eq!(source.position(usize::MAX), Position { line: 3, column: 1 });
        assert_eq!(
            source.position(1),
            Position { line: 1, column: 1 },
            "inside a character"
        );
    }

    #[test]
    fn a_span_over_several_lines_is_shown_by_its_first() {
        let source = SourceText::new("a.yaml", "one  \ntwo");
        let error = source.error(ErrorCode::DOCUMENT_SHAPE, Span::new(0, 9), "m", "l");
        assert_eq!(error.spans()[0].length, 3);
    }

    proptest! {
        #[test]
        fn every_character_index_maps_to_its_byte(text in "(a|é|\u{1F600}|\n){0,900}") {
            let offsets = CharOffsets::new(&text, 3);
            for (index, (byte, _)) in text.char_indices().enumerate() {
                prop_assert_eq!(offsets.byte(index), byte + 3);
            }
            prop_assert_eq!(offsets.byte(text.chars().count()), text.len() + 3);
            prop_assert_eq!(offsets.byte(usize::MAX), text.len() + 3);
        }
    }
}
