//! Text of others, made fit to be shown.

use std::borrow::Cow;

/// Whether a character is not seen and changes how those around it are: their direction, their order or their
/// line.
pub fn is_deceptive(c: char) -> bool {
    matches!(
        c,
        '\u{ad}'
            | '\u{61c}'
            | '\u{180e}'
            | '\u{200b}'
            | '\u{200e}'
            | '\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
            | '\u{e0000}'..='\u{e007f}'
    )
}

/// The text without anything that a terminal would act on: escape sequences and control characters are left out,
/// what turns or breaks a line is shown as text. Line ends and tabs stay.
pub fn printable(text: &str) -> Cow<'_, str> {
    let harmless = |c: char| matches!(c, '\n' | '\t') || !(c.is_control() || is_deceptive(c));
    if text.chars().all(harmless) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        match c {
            '\u{1b}' => rest = after_sequence(rest),
            '\u{9b}' => rest = after_control_sequence(rest),
            c if harmless(c) => shown.push(c),
            c if c.is_control() => {}
            c => shown.extend(c.escape_unicode()),
        }
    }
    Cow::Owned(shown)
}

/// The text on one line, with nothing in it that a terminal would act on: line ends, tabs, control characters and
/// what turns a line are all shown as text.
pub fn printable_line(text: &str) -> Cow<'_, str> {
    if !text.chars().any(|c| c.is_control() || is_deceptive(c)) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    text.chars().for_each(|c| push_shown(&mut shown, c));
    Cow::Owned(shown)
}

/// Lines that were put together for a terminal: line ends, tabs and, where they are wanted, colours stay; unwanted
/// colours are left out. All else that a terminal would act on is shown as text.
pub fn printable_page(text: &str, colours: bool) -> Cow<'_, str> {
    let harmless = |c: char| matches!(c, '\n' | '\t') || !(c.is_control() || is_deceptive(c));
    if text.chars().all(harmless) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let taken = match colour_length(rest) {
            Some(length) => {
                if colours {
                    shown.push_str(&rest[..length]);
                }
                length
            }
            None => {
                if harmless(c) {
                    shown.push(c);
                } else if !rest.starts_with("\r\n") {
                    push_shown(&mut shown, c);
                }
                c.len_utf8()
            }
        };
        rest = &rest[taken..];
    }
    Cow::Owned(shown)
}

fn push_shown(shown: &mut String, c: char) {
    if c.is_control() {
        shown.extend(c.escape_debug());
    } else if is_deceptive(c) {
        shown.extend(c.escape_unicode());
    } else {
        shown.push(c);
    }
}

/// Length of the sequence that the text begins with, if all it does is to set a colour.
fn colour_length(text: &str) -> Option<usize> {
    const START: &str = "\u{1b}[";
    let parameters = text.strip_prefix(START)?;
    let end = parameters.find(|c: char| !(c.is_ascii_digit() || c == ';'))?;
    parameters[end..]
        .starts_with('m')
        .then_some(START.len() + end + 1)
}

/// What follows an escape sequence, after its first character.
fn after_sequence(rest: std::str::Chars<'_>) -> std::str::Chars<'_> {
    let mut ahead = rest.clone();
    match ahead.next() {
        Some('[') => after_control_sequence(ahead),
        // Commands with a text, such as the title of a window: up to a bell or `ESC \`.
        Some(']' | 'P' | 'X' | '^' | '_') => {
            let mut text = ahead.clone();
            while let Some(c) = text.next() {
                if c == '\u{7}' || c == '\u{9c}' {
                    return text;
                }
                if c == '\u{1b}' {
                    let mut end = text.clone();
                    return match end.next() {
                        Some('\\') => end,
                        _ => text,
                    };
                }
            }
            // It has no end, so it is not one: what follows is shown.
            ahead
        }
        Some(c) if c.is_ascii_graphic() => ahead,
        // Alone.
        _ => rest,
    }
}

/// Parameters, and the letter that ends them.
fn after_control_sequence(rest: std::str::Chars<'_>) -> std::str::Chars<'_> {
    let mut ahead = rest.clone();
    loop {
        let before = ahead.clone();
        match ahead.next() {
            Some(' '..='?') => {}
            Some('@'..='~') => return ahead,
            _ => return before,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_act_on_is_gone() {
        for (given, shown) in [
            ("plain\n\ttext", "plain\n\ttext"),
            ("\u{1b}[31mred\u{1b}[0m", "red"),
            ("\u{1b}]0;title\u{7}after", "after"),
            (
                "\u{1b}]8;;http://evil\u{1b}\\link\u{1b}]8;;\u{1b}\\",
                "link",
            ),
            ("\u{9b}2Jcleared", "cleared"),
            ("a\rb\u{8}c\u{7}", "abc"),
            ("\u{1b}", ""),
            ("\u{1b}[", ""),
            ("\u{1b}]never ends", "never ends"),
            ("safe\u{202e}txt.exe", "safe\\u{202e}txt.exe"),
            ("\u{1b}cform", "form"),
        ] {
            assert_eq!(printable(given), shown, "{given:?}");
        }
        let plain = "nothing to do";
        assert!(matches!(printable_line(plain), Cow::Borrowed(_)));
        assert!(matches!(printable_page(plain, false), Cow::Borrowed(_)));
        assert!(matches!(printable(plain), Cow::Borrowed(_)));
    }

    #[test]
    fn a_line_stays_one_line_and_says_what_was_in_it() {
        for (given, shown) in [
            ("größe-日本", "größe-日本"),
            ("a\nb\tc\r", r"a\nb\tc\r"),
            ("\u{1b}[31mred", r"\u{1b}[31mred"),
            ("\u{9b}2J\u{7f}", r"\u{9b}2J\u{7f}"),
        ] {
            assert_eq!(printable_line(given), shown, "{given:?}");
        }
        let turning = ('\u{202a}'..='\u{202e}').chain('\u{2066}'..='\u{2069}');
        for c in turning.chain(['\u{200e}', '\u{200f}']) {
            let shown = format!("x\\u{{{:x}}}y", u32::from(c));
            assert_eq!(printable_line(&format!("x{c}y")), shown);
            assert_eq!(printable_page(&format!("x{c}y"), true), shown);
        }
    }

    #[test]
    fn a_page_keeps_its_lines_and_only_wanted_colours() {
        let page = "\u{1b}[1;32mok\u{1b}[0m\r\n\tx\u{1b}[2J\u{1b}]0;t\u{7}\r\n";
        let rest = r"\u{1b}[2J\u{1b}]0;t\u{7}";
        assert_eq!(
            printable_page(page, true),
            format!("\u{1b}[1;32mok\u{1b}[0m\n\tx{rest}\n")
        );
        assert_eq!(printable_page(page, false), format!("ok\n\tx{rest}\n"));
    }
}
