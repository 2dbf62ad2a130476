//! Pieces of Markdown for comments and job summaries, in which nothing that a program said becomes
//! markup of its own.

/// Comments of GitHub end at 65,536 characters; a page stays below that with room for its frame.
pub(crate) const PAGE_LIMIT: usize = 60_000;

/// A text for a line or a cell of a table.
pub(crate) fn inline(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\r' => shown.push(' '),
            '&' => shown.push_str("&amp;"),
            '<' => shown.push_str("&lt;"),
            '>' => shown.push_str("&gt;"),
            // Nobody is called to a plan by what a resource is named.
            '@' => shown.push_str("@\u{200b}"),
            '|' | '`' | '*' | '_' | '[' | ']' | '\\' | '#' => {
                shown.push('\\');
                shown.push(c);
            }
            c => shown.push(c),
        }
    }
    shown
}

/// A block that shows the text as it is, whatever is in it.
pub(crate) fn fenced(language: &str, text: &str) -> String {
    let longest = text
        .split(|c| c != '`')
        .map(str::len)
        .max()
        .unwrap_or_default();
    let fence = "`".repeat((longest + 1).max(3));
    format!("{fence}{language}\n{}\n{fence}\n", text.trim_end())
}

/// A part that is folded until somebody opens it.
pub(crate) fn folded(title: &str, body: &str) -> String {
    format!(
        "<details><summary>{}</summary>\n\n{body}\n</details>\n",
        inline(title)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_programs_say_is_no_markup() {
        assert_eq!(
            inline("a|b <img> @all\n`x`"),
            "a\\|b &lt;img&gt; @\u{200b}all \\`x\\`"
        );
        let block = fenced("diff", "+ one\n```\n<b>\n");
        assert_eq!(block, "````diff\n+ one\n```\n<b>\n````\n");
        assert_eq!(fenced("", ""), "```\n\n```\n");
    }
}
