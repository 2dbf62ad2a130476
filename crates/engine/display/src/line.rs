//! Lines of text whose colours have a meaning instead of an escape code.
//!
//! Everything that renders returns these, so that one value serves terminals, plain output and
//! golden tests, and so that widths can be computed without parsing escape sequences.

use std::borrow::Cow;
use std::fmt::Write as _;

use anstyle::{AnsiColor, Style};
use console::measure_text_width;

/// What a piece of text is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Tone {
    #[default]
    Plain,
    Heading,
    Dim,
    Create,
    Update,
    Delete,
    Replace,
    CreateReplacement,
    DeleteReplaced,
    Read,
    Error,
    Warning,
    Info,
}

impl Tone {
    fn style(self) -> Style {
        let color = |color: AnsiColor| Style::new().fg_color(Some(color.into()));
        match self {
            Self::Plain => Style::new(),
            Self::Heading => color(AnsiColor::BrightMagenta).bold(),
            Self::Dim => Style::new().dimmed(),
            Self::Create => color(AnsiColor::Green),
            Self::Update => color(AnsiColor::Yellow),
            Self::Delete => color(AnsiColor::Red),
            Self::Replace => color(AnsiColor::BrightMagenta),
            Self::CreateReplacement => color(AnsiColor::BrightGreen),
            Self::DeleteReplaced => color(AnsiColor::BrightRed),
            Self::Read => color(AnsiColor::BrightCyan),
            Self::Error => color(AnsiColor::Red).bold(),
            Self::Warning => color(AnsiColor::Yellow).bold(),
            Self::Info => color(AnsiColor::Cyan),
        }
    }

    /// Short name used in golden tests.
    pub fn name(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Heading => "heading",
            Self::Dim => "dim",
            Self::Create => "create",
            Self::Update => "update",
            Self::Delete => "delete",
            Self::Replace => "replace",
            Self::CreateReplacement => "create2",
            Self::DeleteReplaced => "delete2",
            Self::Read => "read",
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Info => "info",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct StyledText {
    tone: Tone,
    text: String,
}

/// One line, without its line end.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct StyledLine(Vec<StyledText>);

impl StyledLine {
    pub fn new() -> Self {
        Self::default()
    }

    /// A line of one tone.
    pub fn of(tone: Tone, text: impl Into<String>) -> Self {
        Self::new().with(tone, text)
    }

    pub fn with(mut self, tone: Tone, text: impl Into<String>) -> Self {
        self.push(tone, text);
        self
    }

    pub fn push(&mut self, tone: Tone, text: impl Into<String>) {
        let text = text.into();
        if text.is_empty() {
            return;
        }
        match self.0.last_mut() {
            Some(last) if last.tone == tone => last.text.push_str(&text),
            _ => self.0.push(StyledText { tone, text }),
        }
    }

    /// Adds another line's text at the end of this one.
    pub fn append(&mut self, other: Self) {
        for span in other.0 {
            self.push(span.tone, span.text);
        }
    }

    /// Adds spaces until the line is `width` columns wide.
    pub fn pad_to(&mut self, width: usize) {
        let missing = width.saturating_sub(self.width());
        self.push(Tone::Plain, " ".repeat(missing));
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Columns on a terminal.
    pub fn width(&self) -> usize {
        self.0
            .iter()
            .map(|span| measure_text_width(&span.text))
            .sum()
    }

    /// The line cut to `width` columns, with an ellipsis where something was cut.
    pub fn truncated(&self, width: usize) -> Self {
        if self.width() <= width {
            return self.clone();
        }
        let mut left = width.saturating_sub(1);
        let mut line = Self::new();
        for span in &self.0 {
            let own = measure_text_width(&span.text);
            if own <= left {
                line.push(span.tone, span.text.clone());
                left -= own;
                continue;
            }
            let head = console::truncate_str(&span.text, left, "");
            line.push(span.tone, head.into_owned());
            break;
        }
        if width > 0 {
            line.push(Tone::Dim, "…");
        }
        line
    }

    /// The line without trailing spaces.
    pub fn trimmed(mut self) -> Self {
        while let Some(last) = self.0.last_mut() {
            let length = last.text.trim_end_matches(' ').len();
            last.text.truncate(length);
            if !last.text.is_empty() {
                break;
            }
            self.0.pop();
        }
        self
    }

    pub fn plain(&self) -> String {
        self.0.iter().map(|span| span.text.as_str()).collect()
    }

    pub fn ansi(&self) -> String {
        let mut text = String::new();
        for span in &self.0 {
            let style = span.tone.style();
            // Writing to a string cannot fail.
            let _ = write!(
                text,
                "{}{}{}",
                style.render(),
                span.text,
                style.render_reset()
            );
        }
        text
    }

    /// The line with `‹tone›` marks, for tests that are read by people.
    pub fn marked(&self) -> String {
        self.0
            .iter()
            .map(|span| match span.tone {
                Tone::Plain => Cow::Borrowed(span.text.as_str()),
                tone => Cow::Owned(format!("‹{}:{}›", tone.name(), span.text)),
            })
            .collect()
    }
}

/// Whether text may carry colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paint {
    Colour,
    Plain,
}

impl Paint {
    pub fn line(self, line: &StyledLine) -> String {
        match self {
            Self::Colour => line.ansi(),
            Self::Plain => line.plain(),
        }
    }

    /// Lines, each with its line end.
    pub fn lines(self, lines: &[StyledLine]) -> String {
        lines.iter().map(|line| self.line(line) + "\n").collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn truncation_counts_columns_and_keeps_tones() {
        let line = StyledLine::of(Tone::Create, "日本語").with(Tone::Dim, "abcdef");
        assert_eq!(line.width(), 12);
        assert_eq!(line.truncated(12), line);
        assert_eq!(line.truncated(9).marked(), "‹create:日本語›‹dim:ab…›");
        assert_eq!(line.truncated(4).marked(), "‹create:日›‹dim:…›");
        assert_eq!(line.truncated(0).plain(), "");
    }

    #[test]
    fn plain_text_has_no_escape_codes_and_colour_ends_where_it_began() {
        let line = StyledLine::of(Tone::Delete, "gone").with(Tone::Plain, " now");
        assert_eq!(Paint::Plain.line(&line), "gone now");
        assert_eq!(Paint::Colour.line(&line), "\u{1b}[31mgone\u{1b}[0m now");
    }

    #[test]
    fn neighbours_of_one_tone_are_one_piece_and_trailing_spaces_go() {
        let mut line = StyledLine::of(Tone::Info, "a").with(Tone::Info, "b");
        line.pad_to(5);
        assert_eq!(line.marked(), "‹info:ab›   ");
        assert_eq!(line.trimmed().marked(), "‹info:ab›");
    }
}
