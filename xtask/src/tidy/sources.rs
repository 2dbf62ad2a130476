//! Source files: a header that says what the file is for, a size that can be read, and no test that
//! sleeps or is switched off.
//!
//! What clippy checks (`unwrap`, `panic!`, `todo!`, printing) is not repeated here.

use super::{BrokenRule, excused};
use crate::repo::RepoFile;

const LONGEST: usize = 800;
const SOURCES: &[&str] = &[".rs", ".ts", ".js", ".mjs", ".py", ".go", ".sh"];

pub(super) fn check(file: &RepoFile) -> Vec<BrokenRule> {
    if !SOURCES.iter().any(|ending| file.path.ends_with(ending)) || is_generated(&file.text) {
        return Vec::new();
    }
    let mut findings = Vec::new();
    let length = file.text.lines().count();
    if length > LONGEST {
        findings.push(BrokenRule::file(
            &file.path,
            format!("has {length} lines, more than {LONGEST}"),
            "split it into a folder of files with one concern each",
        ));
    }
    if file.path.ends_with(".rs") {
        findings.extend(header(file));
        findings.extend(lines(file));
        findings.extend(example_in_comment(file));
    }
    findings
}

fn is_generated(text: &str) -> bool {
    text.lines().take(5).any(|line| line.contains("@generated"))
}

fn header(file: &RepoFile) -> Option<BrokenRule> {
    // The tests of a module are explained by the module.
    if file.path.contains("/src/") && is_test_file(&file.path) {
        return None;
    }
    let has_header = file
        .text
        .lines()
        .find(|line| !line.trim().is_empty())?
        .starts_with("//!");
    (!has_header).then(|| {
        BrokenRule::file(
            &file.path,
            "has no header",
            "begin with `//!`: what it does, why so, and what it must not do",
        )
    })
}

/// Examples in comments would be built in a pass of their own, with dependencies of other features.
fn example_in_comment(file: &RepoFile) -> Option<BrokenRule> {
    const RUST: &[&str] = &["rust", "no_run", "should_panic", "compile_fail", "edition"];
    let mut inside = false;
    for (index, line) in file.text.lines().map(str::trim_start).enumerate() {
        let comment = line
            .strip_prefix("//!")
            .or_else(|| line.strip_prefix("///"));
        let Some(info) = comment.and_then(|text| text.trim().strip_prefix("```")) else {
            continue;
        };
        if !inside && (info.is_empty() || RUST.iter().any(|word| info.starts_with(word))) {
            return Some(BrokenRule::at(
                &file.path,
                index + 1,
                "an example in a comment is never built",
                "put it below `examples/` of its crate and name it here; other texts are ```text",
            ));
        }
        inside = !inside;
    }
    None
}

fn lines(file: &RepoFile) -> Vec<BrokenRule> {
    // This file names what it forbids.
    if file.path == "xtask/src/tidy/sources.rs" {
        return Vec::new();
    }
    let lines: Vec<_> = file.text.lines().collect();
    let tests_from = first_test_line(file, &lines);
    let mut findings = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        let code = line.split("//").next().unwrap_or_default();
        if code.trim_start().starts_with("#[ignore") {
            findings.push(BrokenRule::at(
                &file.path,
                index + 1,
                "a test is switched off",
                "make it pass, or let it assert what happens today",
            ));
        }
        if code.contains("allow(dead_code)") {
            findings.push(BrokenRule::at(
                &file.path,
                index + 1,
                "dead code is kept",
                "remove the code",
            ));
        }
        if index >= tests_from && sleeps(&lines, index) && !excused(&lines, index, "sleep") {
            findings.push(BrokenRule::at(
                &file.path,
                index + 1,
                "a test sleeps",
                "wait for the event itself, or give the reason with tidy-allow(sleep)",
            ));
        }
    }
    findings
}

/// Whether a line sleeps on its own account: not in a text, and not as the pause of a loop that
/// watches for an event.
fn sleeps(lines: &[&str], index: usize) -> bool {
    let code = lines[index].split("//").next().unwrap_or_default();
    let Some(start) = code.find("sleep(") else {
        return false;
    };
    let in_text = code[..start].matches('"').count() % 2 == 1;
    let watches = lines[index.saturating_sub(3)..index]
        .iter()
        .any(|line| line.trim_start().starts_with("while ") || line.contains("loop {"));
    !in_text && !watches
}

/// Test code stands at the end of a file, or fills the files of a `tests` folder.
fn first_test_line(file: &RepoFile, lines: &[&str]) -> usize {
    if is_test_file(&file.path) {
        return 0;
    }
    lines
        .windows(2)
        .position(|pair| pair[0].trim() == "#[cfg(test)]" && pair[1].trim().starts_with("mod "))
        .unwrap_or(lines.len())
}

fn is_test_file(path: &str) -> bool {
    path.contains("/tests/") || path.ends_with("/tests.rs")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::file;

    fn whats(path: &str, text: &str) -> Vec<String> {
        check(&file(path, text))
            .into_iter()
            .map(|finding| finding.what)
            .collect()
    }

    #[test]
    fn examples_are_told_from_other_texts() {
        let found = |text: &str| !whats("crates/x/src/lib.rs", text).is_empty();
        assert!(found("//! X.\n//! ```\n//! let a = 1;\n//! ```\n"));
        assert!(found("//! X.\n    /// ```no_run\n    /// ```\n"));
        assert!(!found("//! X.\n//! ```text\n//! a\n//! ```\n"));
        assert!(!found("//! X.\nlet fence = \"```\";\n// ```\n"));
    }

    #[test]
    fn a_file_with_a_header_passes() {
        assert_eq!(
            check(&file("crates/x/src/lib.rs", "//! Does x.\nfn x() {}\n")),
            []
        );
    }

    #[test]
    fn a_missing_header_is_found() {
        for path in [
            "crates/x/src/lib.rs",
            "crates/x/src/a/b.rs",
            "crates/x/tests/a.rs",
        ] {
            assert_eq!(whats(path, "\nuse std::fs;\n"), ["has no header"], "{path}");
        }
        assert_eq!(
            check(&file("crates/x/src/a/tests.rs", "use super::*;\n")),
            []
        );
    }

    #[test]
    fn a_long_file_is_found_unless_it_is_generated() {
        let long = "x\n".repeat(LONGEST + 1);
        assert_eq!(whats("a.ts", &long).len(), 1);
        assert_eq!(
            check(&file("a.ts", &format!("// @generated by x\n{long}"))),
            []
        );
    }

    #[test]
    fn tests_that_sleep_or_are_off_are_found() {
        let text = "//! x\n#[test]\n#[ignore]\nfn a() { std::thread::sleep(LONG); }\n";
        assert_eq!(
            whats("crates/x/tests/a.rs", text),
            ["a test is switched off", "a test sleeps"]
        );
        let text =
            "//! x\nfn poll() { sleep(SHORT) }\n#[cfg(test)]\nmod tests { fn a() { sleep(1) } }\n";
        assert_eq!(check(&file("crates/x/src/a.rs", text))[0].line, 4);
    }

    #[test]
    fn watching_for_an_event_and_programs_that_sleep_pass() {
        for text in [
            "//! x\nwhile !file.exists() {\n    sleep(SHORT);\n}\n",
            "//! x\nlet program = \"time.sleep(100)\";\n",
        ] {
            assert_eq!(check(&file("crates/x/tests/a.rs", text)), [], "{text}");
        }
    }

    #[test]
    fn a_sleep_with_a_reason_passes() {
        let text = "//! x\n// tidy-allow(sleep): proves that the timer fires\nsleep(SHORT);\n";
        assert_eq!(check(&file("crates/x/tests/a.rs", text)), []);
    }
}
