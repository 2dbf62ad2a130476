//! What everybody needs is written once, and deciding touches no files.
//!
//! `nimbus-disk` has the order of write, sync and rename; whoever moves a temporary file into place by
//! hand forgets one of them sooner or later. Hexadecimal text comes from the `hex` crate, chains of
//! causes and text in percent form from `nimbus-core`. A backend is opened where it is asked whose word the names of
//! stacks are. `orchestrator` and `runs` decide: files come to them through ports.

use super::starts::test_lines;
use super::{BrokenRule, excused};
use crate::repo::RepoFile;

/// Something that has one home.
struct Foundation {
    /// Nobody, where a crate of others has it.
    home: Option<&'static str>,
    /// How a copy of it looks.
    copies: &'static [&'static str],
    what: &'static str,
    remedy: &'static str,
}

const FOUNDATIONS: [Foundation; 7] = [
    Foundation {
        home: Some("crates/disk/"),
        copies: &[".persist(", ".persist_noclobber("],
        what: "a file is moved into place by hand",
        remedy: "use nimbus_disk::replace, create or Draft, which sync as well",
    },
    Foundation {
        home: Some("crates/disk/"),
        copies: &[".sync_all()"],
        what: "a file is brought to disk by hand",
        remedy: "use nimbus_disk, or say in a tidy-allow why a sync alone is meant",
    },
    Foundation {
        home: Some("crates/disk/"),
        copies: &["fs::rename("],
        what: "something is moved by hand",
        remedy: "use nimbus_disk::replace, place_folder or rename, which sync as well",
    },
    Foundation {
        home: Some("crates/core/src/percent.rs"),
        copies: &[":02X}"],
        what: "percent form is made by hand",
        remedy: "use nimbus_core::percent_encoded, or the hex crate",
    },
    Foundation {
        home: None,
        copies: &[":02x}"],
        what: "hexadecimal text is made by hand",
        remedy: "use the hex crate",
    },
    Foundation {
        home: Some("crates/core/src/causes.rs"),
        copies: &[".source();", ".source() {"],
        what: "a chain of causes is walked by hand",
        remedy: "use nimbus_core::causes, innermost or with_causes",
    },
    Foundation {
        home: Some("crates/engine/operations/src/workspace.rs"),
        copies: &["Backend::open("],
        what: "a backend is opened without a grant",
        remedy: "use StackAccess or backend_of, which ask which stacks a stranger's folder may name",
    },
];

/// Crates without files.
const WITHOUT_FILES: [&str; 2] = ["crates/orchestrator/src/", "crates/runs/src/"];
const FILES: [&str; 4] = ["std::fs", "tokio::fs", "tempfile::", "nimbus_disk::"];

pub(super) fn check(file: &RepoFile) -> Vec<BrokenRule> {
    let path = file.path.as_str();
    let ours = path.starts_with("crates/") || path.starts_with("xtask/");
    let source = ours && path.contains("/src/") && path.ends_with(".rs");
    // This file names what it looks for.
    if !source || path.ends_with("/tests.rs") || path.ends_with("tidy/foundations.rs") {
        return Vec::new();
    }
    let lines: Vec<&str> = file.text.lines().collect();
    let test = test_lines(&lines);
    let pure = WITHOUT_FILES.iter().any(|folder| path.starts_with(folder));
    let mut findings = Vec::new();
    for (index, line) in lines.iter().enumerate().filter(|(index, _)| !test[*index]) {
        let code = line.split("//").next().unwrap_or_default();
        let has = |words: &[&str]| words.iter().any(|word| code.contains(word));
        let copied = FOUNDATIONS
            .iter()
            .filter(|foundation| {
                let home = foundation.home.is_some_and(|home| path.starts_with(home));
                !home && has(foundation.copies)
            })
            .filter(|_| !excused(&lines, index, "copy"));
        for Foundation { what, remedy, .. } in copied {
            findings.push(BrokenRule::at(path, index + 1, *what, remedy));
        }
        if pure && has(&FILES) {
            let what = "files are touched where things are decided";
            let remedy = "let a port bring it; crates/local implements ports on files";
            findings.push(BrokenRule::at(path, index + 1, what, remedy));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::file;
    use super::*;

    fn lines(path: &str, text: &str) -> Vec<usize> {
        let findings = check(&file(path, text));
        findings.iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn a_file_that_is_moved_into_place_by_hand_is_found() {
        let text = "let a = 1;\ndraft.persist(path)?; // done\n#[cfg(test)]\nmod tests {\n    x.persist(y);\n}\n";
        assert_eq!(lines("crates/local/src/a.rs", text), [2]);
        assert_eq!(lines("crates/disk/src/draft.rs", text), [0; 0]);
        assert_eq!(lines("crates/local/src/a.rs", "file.sync_all()?;\n"), [1]);
        assert_eq!(lines("crates/local/tests/a.rs", text), [0; 0]);
        let moved = "std::fs::rename(a, b)?;\nfs::rename(c, d)?;\nnimbus_disk::rename(e, f)?;\n";
        assert_eq!(lines("crates/engine/install/src/a.rs", moved), [1, 2]);
        assert_eq!(lines("crates/disk/src/draft.rs", moved), [0; 0]);
    }

    #[test]
    fn percent_form_has_no_second_author() {
        let text = "write!(text, \"%{byte:02X}\")\n";
        assert_eq!(lines("crates/telemetry/src/a.rs", text), [1]);
        assert_eq!(lines("crates/core/src/percent.rs", text), [0; 0]);
    }

    #[test]
    fn hexadecimal_text_and_chains_of_causes_have_no_second_author() {
        let text = "bytes.iter().map(|b| format!(\"{b:02x}\"))\nlet next = error.source();\n";
        assert_eq!(lines("crates/aws/src/a.rs", text), [1, 2]);
        assert_eq!(lines("crates/core/src/causes.rs", text), [1]);
        assert_eq!(lines("xtask/src/cache.rs", text), [1, 2]);
        let allowed = "// tidy-allow(copy): a table for people\nformat!(\"{b:02x} \")\n";
        assert_eq!(lines("crates/aws/src/a.rs", allowed), [0; 0]);
    }

    #[test]
    fn a_backend_has_one_door() {
        let text = "let backend = Backend::open(&address, &environment, options).await?;\n";
        assert_eq!(lines("crates/local/src/a.rs", text), [1]);
        assert_eq!(
            lines("crates/engine/operations/src/workspace.rs", text),
            [0; 0]
        );
    }

    #[test]
    fn what_decides_names_no_files() {
        let text = "use std::fs;\n// std::fs is elsewhere\n";
        assert_eq!(lines("crates/orchestrator/src/plan.rs", text), [1]);
        assert_eq!(lines("crates/runs/src/session.rs", text), [1]);
        assert_eq!(lines("crates/runs/testing/src/world.rs", text), [0; 0]);
        assert_eq!(lines("crates/local/src/a.rs", text), [0; 0]);
    }
}
