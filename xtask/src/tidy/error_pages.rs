//! Every error code has its page, and every page has its code.

use std::collections::BTreeMap;

use super::{BrokenRule, find};
use crate::repo::RepoFile;

const REGISTRY: &str = "crates/core/src/codes.rs";
const PAGES: &str = "docs/errors/";

pub(super) fn check(files: &[RepoFile]) -> Vec<BrokenRule> {
    let Some(registry) = find(files, REGISTRY) else {
        return Vec::new();
    };
    let codes = codes(&registry.text);
    let mut findings: Vec<_> = codes
        .iter()
        .filter(|(code, _)| find(files, &format!("{PAGES}{code}.md")).is_none())
        .map(|(code, line)| {
            BrokenRule::at(
                REGISTRY,
                *line,
                format!("{code} has no page"),
                "write docs/errors/NIM-NNNN.md: what happened, why, what to do",
            )
        })
        .collect();
    for file in files {
        let Some(name) = file.path.strip_prefix(PAGES) else {
            continue;
        };
        let Some(code) = name
            .strip_suffix(".md")
            .filter(|name| name.starts_with("NIM-"))
        else {
            continue;
        };
        if !codes.contains_key(code) {
            findings.push(BrokenRule::file(
                &file.path,
                format!("{code} is not registered"),
                "register the code in crates/core/src/codes.rs or remove the page",
            ));
        }
    }
    findings
}

/// Reads `NAME = 12, Kind, …;` lines: the code in its printed form, and its line.
fn codes(text: &str) -> BTreeMap<String, usize> {
    text.lines()
        .enumerate()
        .filter_map(|(index, line)| {
            let (name, rest) = line.trim().split_once(" = ")?;
            let number: u16 = rest.split(',').next()?.parse().ok()?;
            let is_name = name
                .chars()
                .all(|c| c.is_ascii_uppercase() || c == '_' || c.is_ascii_digit());
            (is_name && rest.ends_with(';')).then(|| (format!("NIM-{number:04}"), index + 1))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::file;

    const CODES: &str = "codes! {\n    INTERNAL = 1, Internal, final, \"x\";\n    \
        USAGE = 2, Invalid, final, \"y\";\n}\nconst LIMIT: u8 = 3;\n";

    #[test]
    fn codes_and_pages_that_match_pass() {
        let files = [
            file(REGISTRY, CODES),
            file("docs/errors/NIM-0001.md", ""),
            file("docs/errors/NIM-0002.md", ""),
            file("docs/errors/README.md", ""),
        ];
        assert_eq!(check(&files), []);
    }

    #[test]
    fn a_code_without_page_and_a_page_without_code_are_found() {
        let files = [
            file(REGISTRY, CODES),
            file("docs/errors/NIM-0001.md", ""),
            file("docs/errors/NIM-0099.md", ""),
        ];
        let whats: Vec<_> = check(&files)
            .into_iter()
            .map(|finding| finding.what)
            .collect();
        assert_eq!(
            whats,
            ["NIM-0002 has no page", "NIM-0099 is not registered"]
        );
    }
}
