//! Links between documents lead somewhere.

use super::BrokenRule;
use crate::repo::RepoFile;

pub(super) fn check(file: &RepoFile, files: &[RepoFile]) -> Vec<BrokenRule> {
    // Pages among the sources are parts of generated documents, whose links are checked there.
    if !file.path.ends_with(".md") || file.path.contains("/src/") {
        return Vec::new();
    }
    let mut findings = Vec::new();
    let mut in_code = false;
    for (index, line) in file.text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        }
        if in_code {
            continue;
        }
        for target in targets(line) {
            if !leads_somewhere(&file.path, target, files) {
                findings.push(BrokenRule::at(
                    &file.path,
                    index + 1,
                    format!("links to {target}, which does not exist"),
                    "correct the link or write the document",
                ));
            }
        }
    }
    findings
}

/// The targets of `[text](target)` in a line.
fn targets(line: &str) -> impl Iterator<Item = &str> {
    line.split("](")
        .skip(1)
        .filter_map(|rest| rest.split([')', ' ']).next())
}

fn leads_somewhere(from: &str, target: &str, files: &[RepoFile]) -> bool {
    let path = target.split('#').next().unwrap_or_default();
    if path.is_empty() || path.contains("://") || path.starts_with("mailto:") {
        return true;
    }
    let Some(resolved) = resolve(from, path) else {
        return false;
    };
    let folder = format!("{}/", resolved.trim_end_matches('/'));
    // Pictures are not text files, so they are looked for by ending only.
    let is_picture = [".png", ".gif", ".jpg"]
        .iter()
        .any(|ending| resolved.ends_with(ending));
    is_picture
        || files
            .iter()
            .any(|file| file.path == resolved || file.path.starts_with(&folder))
}

/// The target's path from the root; `None` when it leaves the repository.
fn resolve(from: &str, target: &str) -> Option<String> {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            name => parts.push(name),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::file;

    fn findings(line: &str) -> usize {
        let files = [
            file("docs/a.md", line),
            file("docs/adr/0001-x.md", ""),
            file("README.md", ""),
        ];
        check(&files[0], &files).len()
    }

    #[test]
    fn links_to_files_folders_addresses_and_anchors_pass() {
        for line in [
            "[x](adr/0001-x.md)",
            "[x](adr/0001-x.md#part)",
            "[x](adr/)",
            "[x](../README.md)",
            "[x](https://example.com)",
            "[x](#here)",
            "no link",
        ] {
            assert_eq!(findings(line), 0, "{line}");
        }
    }

    #[test]
    fn dead_links_are_found() {
        for line in [
            "[x](adr/0002-y.md)",
            "[a](../README.md) [b](gone.md)",
            "[x](../../out.md)",
        ] {
            assert_eq!(findings(line), 1, "{line}");
        }
    }

    #[test]
    fn code_blocks_are_not_links() {
        assert_eq!(findings("```\n[x](gone.md)\n```"), 0);
    }
}
