//! The one style sheet: colours by meaning, and none where they are not wanted.

use std::env;
use std::io::{IsTerminal as _, stderr, stdout};

use anstyle::{AnsiColor, Style};

use crate::wrapping::wrapped;

/// What a stream can show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Terminal {
    /// Somebody is looking: a terminal, not a file or a pipe.
    pub(crate) interactive: bool,
    pub(crate) color: bool,
}

impl Terminal {
    pub(crate) fn stdout(no_color: bool) -> Self {
        Self::of(stdout().is_terminal(), no_color)
    }

    pub(crate) fn stderr(no_color: bool) -> Self {
        Self::of(stderr().is_terminal(), no_color)
    }

    /// `NO_COLOR` counts when it is set to anything but the empty text (no-color.org).
    fn of(interactive: bool, no_color: bool) -> Self {
        let unwanted = no_color
            || env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
            || env::var_os("TERM").is_some_and(|value| value == "dumb");
        Self {
            interactive,
            color: interactive && !unwanted,
        }
    }

    /// The text as it fits on what somebody is looking at.
    pub(crate) fn fitted(self, text: String) -> String {
        match self.interactive {
            true => wrapped(&text, Self::width()),
            false => text,
        }
    }

    /// Columns of the terminal.
    pub(crate) fn width() -> usize {
        let (_, columns) = console::Term::stderr().size();
        usize::from(columns)
    }

    /// The text in a tone, if this stream has tones.
    pub(crate) fn paint(self, tone: TextStyle, text: &str) -> String {
        if !self.color {
            return text.to_owned();
        }
        let style = tone.style();
        format!("{style}{text}{style:#}")
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TextStyle {
    Good,
    Warning,
    Bad,
    Faint,
    Heading,
}

impl TextStyle {
    fn style(self) -> Style {
        match self {
            Self::Good => AnsiColor::Green.on_default(),
            Self::Warning => AnsiColor::Yellow.on_default(),
            Self::Bad => AnsiColor::Red.on_default(),
            Self::Faint => Style::new().dimmed(),
            Self::Heading => Style::new().bold(),
        }
    }
}
