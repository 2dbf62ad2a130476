//! The first line of a plugin's standard output: the port on which it listens.

use std::num::NonZeroU16;

/// Longer than any port with the decoration that tool chains put around it.
pub(crate) const MAX_LINE: usize = 4096;

/// Reads the port out of the line. Terminal control sequences count as nothing: `dotnet run`, for
/// one, writes progress marks even when nobody watches.
pub(crate) fn parse_port(line: &str) -> Option<NonZeroU16> {
    without_escapes(line).trim().parse().ok()
}

/// The line as it can be shown in an error: short and without control characters.
pub(crate) fn printable(line: &str) -> String {
    const SHOWN: usize = 120;
    let clean = without_escapes(line);
    let mut shown: String = clean
        .trim()
        .chars()
        .filter(|c| !c.is_control())
        .take(SHOWN)
        .collect();
    if clean.trim().chars().count() > SHOWN {
        shown.push('…');
    }
    shown
}

fn without_escapes(line: &str) -> String {
    const ESCAPE: char = '\u{1b}';
    const BELL: char = '\u{7}';
    let mut plain = String::with_capacity(line.len());
    let mut rest = line.chars();
    while let Some(c) = rest.next() {
        if c != ESCAPE {
            plain.push(c);
            continue;
        }
        match rest.next() {
            // An operating system command ends with a bell or with ESC \.
            Some(']') => {
                let mut previous = ']';
                for c in rest.by_ref() {
                    if c == BELL || (previous == ESCAPE && c == '\\') {
                        break;
                    }
                    previous = c;
                }
            }
            // A control sequence ends with its final byte.
            Some('[') => {
                let _ = rest.by_ref().find(|c| ('\u{40}'..='\u{7e}').contains(c));
            }
            _ => {}
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn port(line: &str) -> Option<u16> {
        parse_port(line).map(NonZeroU16::get)
    }

    #[test]
    fn a_port_is_read_through_white_space_and_terminal_decoration() {
        for line in [
            "1234",
            "1234\r",
            " 1234 ",
            "\u{1b}]9;4;3;\u{1b}\\1234\u{1b}]9;4;0;\u{1b}\\",
            "\u{1b}]0;title\u{7}1234",
            "\u{1b}[32m1234\u{1b}[0m",
        ] {
            assert_eq!(port(line), Some(1234), "{line:?}");
        }
    }

    #[test]
    fn anything_else_is_no_port() {
        for line in [
            "",
            "0",
            "-1",
            "65536",
            "12 34",
            "port 1234",
            "1234x",
            "\u{1b}]9;1234",
        ] {
            assert_eq!(port(line), None, "{line:?}");
        }
    }

    #[test]
    fn lines_are_shown_short_and_without_control_characters() {
        assert_eq!(printable("\u{1b}[31mError:\u{1b}[0m\tno\r"), "Error:no");
        assert_eq!(printable(&"x".repeat(500)).chars().count(), 121);
    }
}
