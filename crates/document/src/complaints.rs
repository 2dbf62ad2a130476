//! The YAML scanner's complaints in words a person can act on.
//!
//! The scanner's texts are matched by a part of them. One that is not listed is passed on as it is,
//! so that a new version of the library never hides what is wrong.

/// What the scanner says (a part of it), what that means to a person, and what to do. The first
/// match counts.
const COMPLAINTS: &[(&str, &str, &str)] = &[
    (
        "unknown anchor",
        "an alias names an anchor that does not exist",
        "define it earlier with `&name`, or quote a text that starts with `*`",
    ),
    (
        "mapping values are not allowed",
        "a `:` stands where no key can be",
        "quote a text that contains `: `, and check the indentation of this line",
    ),
    (
        "illegal placement of ':'",
        "a `:` stands where no key can be",
        "check that every bracket above this line is closed",
    ),
    (
        "unexpected character",
        "a text cannot start with this character",
        "put the text in quotes",
    ),
    (
        "handle wasn't declared",
        "a tag starts with a handle that is not declared",
        "put the text in quotes if it is not a tag",
    ),
    (
        "escape",
        "a backslash escape is not known",
        "double the backslash, or use single quotes, which keep it as it is",
    ),
    (
        "quoted scalar",
        "a quoted text is never closed",
        "add the closing quote",
    ),
    (
        "flow mapping",
        "a `{` is never closed or a comma is missing",
        "check the braces and commas",
    ),
    (
        "flow sequence",
        "a `[` is never closed or a comma is missing",
        "check the brackets and commas",
    ),
    (
        "expected node content",
        "a value is missing, or a bracket is never closed",
        "check the brackets and commas up to here",
    ),
    (
        "indentation",
        "the indentation does not fit what is above",
        "keys of one mapping start in the same column",
    ),
    (
        "expected key",
        "the indentation does not fit what is above",
        "keys of one mapping start in the same column",
    ),
    (
        "simple key expect",
        "a key without `:`",
        "write `key: value`, with a space after the colon",
    ),
];

/// The scanner's complaint in words a person can act on, and what to do.
pub(crate) fn explain(info: &str, line: &str) -> (String, Option<&'static str>) {
    let indent = &line[..line.len() - line.trim_start().len()];
    if indent.contains('\t') || info.contains("tab") {
        return (
            "a tab is used for indentation".into(),
            Some("YAML indents with spaces only; replace the tab, two spaces per level"),
        );
    }
    match COMPLAINTS.iter().find(|(needle, ..)| info.contains(needle)) {
        Some((_, what, help)) => ((*what).to_owned(), Some(help)),
        None => (info.to_owned(), None),
    }
}
