//! Making text from elsewhere fit for a terminal.
//!
//! Providers and programs may send anything, escape sequences included. Nothing of theirs reaches
//! a terminal without passing through here.

use std::time::Duration;

use nimbus_core::is_deceptive;

/// Text without escape sequences and control characters; line ends and tabs stay. Characters that
/// are not seen but turn or break a line are shown as text.
pub(crate) fn clean(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in console::strip_ansi_codes(text).chars() {
        match c {
            '\n' | '\t' => shown.push(c),
            c if c.is_control() => {}
            c if is_deceptive(c) => shown.extend(c.escape_unicode()),
            c => shown.push(c),
        }
    }
    shown
}

/// A name, key, type or URN, on one line: whatever could make it look like something else is shown
/// as text.
pub(crate) fn clean_name(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in console::strip_ansi_codes(text).chars() {
        match c {
            // They join letters of some scripts; of two names that look the same, one has none.
            '\u{200c}' | '\u{200d}' => shown.extend(c.escape_unicode()),
            c if c.is_control() => shown.extend(c.escape_debug()),
            c if is_deceptive(c) => shown.extend(c.escape_unicode()),
            c => shown.push(c),
        }
    }
    shown
}

/// Text on one line: line ends become spaces.
pub(crate) fn clean_line(text: &str) -> String {
    clean(text).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A string value as it is shown, quoted and escaped.
pub(crate) fn quoted(text: &str) -> String {
    format!("{text:?}")
}

/// A number as people write it: no fraction where there is none.
pub(crate) fn number(value: f64) -> String {
    match serde_json::Number::from_f64(value) {
        Some(number) => {
            let text = number.to_string();
            text.strip_suffix(".0").unwrap_or(&text).to_owned()
        }
        None => value.to_string(),
    }
}

/// `850ms`, `4s`, `3m07s`, `2h05m`.
pub(crate) fn duration(value: Duration) -> String {
    let seconds = value.as_secs();
    match seconds {
        0 => format!("{}ms", value.as_millis()),
        1..60 => format!("{seconds}s"),
        60..3600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        _ => format!("{}h{:02}m", seconds / 3600, seconds % 3600 / 60),
    }
}

/// First characters of a content hash.
pub(crate) fn short_hash(hash: &str) -> &str {
    hash.get(..7).unwrap_or(hash)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_sequences_of_strangers_do_not_reach_the_terminal() {
        assert_eq!(clean("a\u{1b}[31mred\u{1b}[0m\u{7}b\r\n\tc"), "aredb\n\tc");
        assert_eq!(clean("\u{1b}]0;title\u{7}x"), "x");
        assert_eq!(clean_line("one\n  two\n"), "one two");
        assert_eq!(quoted("a\"b\u{1b}"), r#""a\"b\u{1b}""#);
    }

    #[test]
    fn names_of_strangers_stay_what_they_are_and_on_their_line() {
        assert_eq!(clean_name("a\n + b\tc\0"), r"a\n + b\tc\0");
        assert_eq!(clean_name("a\u{1b}[31mb\u{7}"), r"ab\u{7}");
        assert_eq!(clean_name("größe-日本"), "größe-日本");
        for c in [
            '\u{202e}', '\u{2066}', '\u{200b}', '\u{2028}', '\u{2029}', '\u{feff}',
        ] {
            let shown = format!("x\\u{{{:x}}}y", u32::from(c));
            assert_eq!(clean_name(&format!("x{c}y")), shown);
            assert_eq!(clean(&format!("x{c}y")), shown);
            assert_eq!(clean_line(&format!("x{c}y")), shown);
        }
    }

    #[test]
    fn numbers_and_durations_read_well() {
        assert_eq!(number(3.0), "3");
        assert_eq!(number(-0.5), "-0.5");
        assert_eq!(number(1e21), "1e+21");
        assert_eq!(number(f64::NAN), "NaN");
        assert_eq!(duration(Duration::from_millis(850)), "850ms");
        assert_eq!(duration(Duration::from_secs(4)), "4s");
        assert_eq!(duration(Duration::from_secs(187)), "3m07s");
        assert_eq!(duration(Duration::from_secs(7500)), "2h05m");
    }
}
