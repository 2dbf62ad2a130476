//! Text for a terminal: no line wider than it, and no word broken.
//!
//! A terminal that is left to break lines breaks words. Lines that are too wide are broken here, at spaces,
//! and go on below the text of their own line. A word that is wider than the terminal, such as an address,
//! stays whole on a line of its own, so that it can be copied. Colours count for nothing.

use textwrap::core::display_width;
use textwrap::{Options, WordSeparator, WordSplitter, WrapAlgorithm};

/// Less room than this is not worth the trouble.
const NARROWEST: usize = 20;

/// The text with every line that is too wide broken into several.
pub(crate) fn wrapped(text: &str, width: usize) -> String {
    let width = width.max(NARROWEST);
    let mut result = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let (line, end) = match line.strip_suffix('\n') {
            Some(line) => (line, "\n"),
            None => (line, ""),
        };
        // What moves the cursor is a picture, and fits already.
        if display_width(line) <= width || line.contains('\r') {
            result.push_str(line);
        } else {
            let indent = " ".repeat(hanging(line).min(width / 2));
            let options = Options::new(width)
                .subsequent_indent(&indent)
                .break_words(false)
                // Unicode would break addresses and URNs at their slashes and colons.
                .word_separator(WordSeparator::AsciiSpace)
                // Said, because what the library does otherwise depends on who else is built with it.
                .wrap_algorithm(WrapAlgorithm::FirstFit)
                .word_splitter(WordSplitter::NoHyphenation);
            result.push_str(&textwrap::wrap(line, options).join("\n"));
        }
        result.push_str(end);
    }
    result
}

/// Where the text of a line begins: after its blanks and the mark of a list.
fn hanging(line: &str) -> usize {
    let blanks = line.len() - line.trim_start_matches(' ').len();
    let marks = ["- ", "• ", "→ ", "✓ ", "✗ ", "! ", "· "];
    let marked = marks.iter().any(|mark| line[blanks..].starts_with(mark));
    blanks + 2 * usize::from(marked || blanks == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_broken_between_words_and_go_on_below_their_text() {
        let text = "short\n  - a list that is longer than what there is room for\n";
        assert_eq!(
            wrapped(text, 30),
            "short\n  - a list that is longer than\n    what there is room for\n"
        );
    }

    #[test]
    fn a_long_word_stays_whole_and_colours_take_no_room() {
        let urn = "urn:pulumi:dev::shop::aws:s3/bucket:Bucket::logs";
        let text = format!("see {urn} for more");
        assert!(wrapped(&text, 30).lines().any(|line| line.contains(urn)));
        let painted = "\u{1b}[32m123456789 123456789\u{1b}[0m";
        assert_eq!(wrapped(painted, 20), painted);
    }

    #[test]
    fn what_moves_the_cursor_is_left_alone() {
        let line = format!("\r{}", "x ".repeat(40));
        assert_eq!(wrapped(&line, 30), line);
    }
}
