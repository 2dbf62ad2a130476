//! Processes are started where it is said whose code they run.
//!
//! `nimbus-engine-process` has the functions for it, and each takes an origin. Whoever starts a process
//! by hand could start a stranger's program as the engine itself, and nobody would notice.

use super::{BrokenRule, excused};
use crate::repo::RepoFile;

/// The crate that may.
const STARTER: &str = "crates/engine/process/";
/// Tools for tests start what tests need.
const TOOLS: [&str; 2] = ["crates/test-tools/", "crates/engine/parity/"];
/// How a command becomes a process.
const STARTS: [&str; 4] = [".spawn()", ".output()", ".status()", ".exec()"];

pub(super) fn check(file: &RepoFile) -> Vec<BrokenRule> {
    let path = &file.path;
    let source = path.starts_with("crates/") && path.contains("/src/") && path.ends_with(".rs");
    let free = path.starts_with(STARTER) || TOOLS.iter().any(|tool| path.starts_with(tool));
    if !source || free || path.ends_with("tests.rs") || !file.text.contains("Command::new(") {
        return Vec::new();
    }
    let lines: Vec<&str> = file.text.lines().collect();
    let tests = lines.iter().position(|line| line.trim() == "#[cfg(test)]");
    let code = &lines[..tests.unwrap_or(lines.len())];
    let starts = |line: &str| {
        let line = line.split("//").next().unwrap_or_default();
        STARTS.iter().any(|start| line.contains(start))
    };
    let found = code.iter().enumerate().filter(|(_, line)| starts(line));
    found
        .filter(|(index, _)| !excused(&lines, *index, "start"))
        .map(|(index, _)| {
            BrokenRule::at(
                path,
                index + 1,
                "a process is started without saying whose code it runs",
                "use nimbus_engine_process with an Origin, or give the origin with \
                 tidy-allow(start)",
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> Vec<usize> {
        let file = super::super::file(path, text);
        check(&file)
            .into_iter()
            .map(|finding| finding.line)
            .collect()
    }

    #[test]
    fn a_process_that_is_started_by_hand_is_found() {
        let by_hand = "let a = Command::new(x)\n    .arg(y)\n    .output();\n";
        assert_eq!(found("crates/engine/x/src/a.rs", by_hand), [3]);
        let spawned = "let mut c = Command::new(x);\nc.spawn()?;\n";
        assert_eq!(found("crates/engine/x/src/a.rs", spawned), [2]);
        for free in [
            "crates/engine/process/src/a.rs",
            "crates/engine/x/tests/a.rs",
        ] {
            assert_eq!(found(free, by_hand), Vec::<usize>::new(), "{free}");
        }
    }

    #[test]
    fn tests_and_excuses_are_passed_over() {
        let text = "let c = Command::new(x);\n// tidy-allow(start): the operator's\nc.spawn();\n\
                    #[cfg(test)]\nmod tests { fn f() { Command::new(x).spawn(); } }\n";
        assert_eq!(found("crates/engine/x/src/a.rs", text), Vec::<usize>::new());
        let other = "response.status()\n";
        assert_eq!(
            found("crates/engine/x/src/a.rs", other),
            Vec::<usize>::new()
        );
    }
}
