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
        assert!(matches!(printable(plain), Cow::Borrowed(_)));
    }
}
