//! No path of somebody's machine.
//!
//! In code an invented home or temporary folder may be the value of a test. A document, setting or
//! script that names one works on one machine only.

use super::{BrokenRule, excused};
use crate::repo::RepoFile;

const EVERYWHERE: &[&str] = &["/root/", "/work/"];
const IN_TEXTS: &[&str] = &["/home/", "/Users/", "/tmp/"];
const TEXTS: &[&str] = &[".md", ".sh", ".yml", ".yaml", ".toml", ".json"];

pub(super) fn check(file: &RepoFile) -> Vec<BrokenRule> {
    // This file names what it forbids.
    if file.path == "xtask/src/tidy/paths.rs" {
        return Vec::new();
    }
    let is_text = TEXTS.iter().any(|ending| file.path.ends_with(ending));
    let in_texts = if is_text { IN_TEXTS } else { &[] };
    let lines: Vec<_> = file.text.lines().collect();
    let mut findings = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        let named = EVERYWHERE
            .iter()
            .chain(in_texts)
            .find(|folder| names(line, folder));
        if let Some(folder) = named
            && !excused(&lines, index, "path")
        {
            findings.push(BrokenRule::at(
                &file.path,
                index + 1,
                format!("names a path below {folder}"),
                "use a relative path, a variable or a temporary folder made at run time",
            ));
        }
    }
    findings
}

/// Whether the line has `folder` as the start of a path with something below it, and not in the
/// middle of a longer one such as an address.
fn names(line: &str, folder: &str) -> bool {
    line.match_indices(folder).any(|(start, _)| {
        let before = line[..start].chars().next_back();
        let after = line[start + folder.len()..].chars().next();
        let begins = before.is_none_or(|c| !(c.is_alphanumeric() || "._-~}>)*".contains(c)));
        let goes_on = after.is_some_and(|c| c.is_alphanumeric() || c == '.' || c == '_');
        begins && goes_on
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::file;

    #[test]
    fn paths_of_a_machine_are_found() {
        for line in [
            "see /home/ann/x",
            "path = \"/root/.cache\"",
            "cd /work/main",
            "file:///Users/b/c",
        ] {
            assert_eq!(check(&file("docs/a.md", line)).len(), 1, "{line}");
        }
    }

    #[test]
    fn addresses_variables_and_relative_paths_pass() {
        for line in [
            "https://example.com/home/page",
            "$ROOT/work/x",
            "src/work/x.rs",
            "~/home/x",
            "the /home/ folder",
            "${dir}/tmp/x",
        ] {
            assert_eq!(check(&file("docs/a.md", line)), [], "{line}");
        }
    }

    #[test]
    fn invented_folders_are_found_in_texts_but_may_be_values_in_code() {
        assert_eq!(check(&file("a.rs", "parse(\"/home/ann/x\")")), []);
        assert_eq!(check(&file("a.sh", "cat /tmp/x")).len(), 1);
        assert_eq!(check(&file("a.rs", "parse(\"file:///tmp/x\")")), []);
    }

    #[test]
    fn a_path_with_a_reason_passes() {
        assert_eq!(
            check(&file(
                "a.md",
                "/home/ann <!-- tidy-allow(path): an example -->"
            )),
            []
        );
    }
}
