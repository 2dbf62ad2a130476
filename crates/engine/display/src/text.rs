//! Making text from elsewhere fit for a terminal.
//!
//! Providers and programs may send anything, escape sequences included. Nothing of theirs reaches
//! a terminal without passing through here.

use std::time::Duration;

/// Text without escape sequences and control characters; line ends and tabs stay.
pub(crate) fn clean(text: &str) -> String {
    console::strip_ansi_codes(text)
        .chars()
        .filter(|c| !c.is_control() || matches!(c, '\n' | '\t'))
        .collect()
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
