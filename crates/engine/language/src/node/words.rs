//! Splitting a command line into words as a shell does, without any expansion.

/// `None` when a quote is not closed.
pub(super) fn split(line: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut chars = line.chars();
    while let Some(char) = chars.next() {
        match char {
            '\'' | '"' => {
                let word = word.get_or_insert_default();
                quoted(char, &mut chars, word)?;
            }
            '\\' => word.get_or_insert_default().push(chars.next()?),
            space if space.is_whitespace() => words.extend(word.take()),
            other => word.get_or_insert_default().push(other),
        }
    }
    words.extend(word);
    Some(words)
}

fn quoted(quote: char, chars: &mut std::str::Chars<'_>, word: &mut String) -> Option<()> {
    loop {
        match chars.next()? {
            end if end == quote => return Some(()),
            '\\' if quote == '"' => match chars.next()? {
                escaped @ ('"' | '\\') => word.push(escaped),
                other => word.extend(['\\', other]),
            },
            other => word.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_split_as_a_shell_splits_them() {
        for (line, expected) in [
            ("", vec![]),
            (
                "  --max-old-space-size=4096  --trace ",
                vec!["--max-old-space-size=4096", "--trace"],
            ),
            (
                r#"--require "./a b.js" 'c d'"#,
                vec!["--require", "./a b.js", "c d"],
            ),
            (r#"a\ b "say \"hi\"" '\'"#, vec!["a b", "say \"hi\"", "\\"]),
            (r#""" x"#, vec!["", "x"]),
        ] {
            assert_eq!(
                split(line),
                Some(expected.into_iter().map(String::from).collect()),
                "{line}"
            );
        }
    }

    #[test]
    fn an_open_quote_is_no_command_line() {
        for line in ["'a", "\"a", "a\\"] {
            assert_eq!(split(line), None, "{line}");
        }
    }
}
