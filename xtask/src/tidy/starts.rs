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
/// How a process is made without one.
const FORKS: [&str; 3] = ["::fork(", "execv", "posix_spawn"];
/// The helper of the sandbox becomes the program that it was given.
const HELPER: &str = "crates/engine/sandbox/src/helper/";

pub(super) fn check(file: &RepoFile) -> Vec<BrokenRule> {
    let path = &file.path;
    let source = path.starts_with("crates/") && path.contains("/src/") && path.ends_with(".rs");
    let free = path.starts_with(STARTER) || TOOLS.iter().any(|tool| path.starts_with(tool));
    if !source || free || path.ends_with("tests.rs") {
        return Vec::new();
    }
    // However a command was made, whoever has one says so: a path, an import, the type of a parameter.
    let commands = file.text.contains("Command");
    let forks = !path.starts_with(HELPER);
    let lines: Vec<&str> = file.text.lines().collect();
    let test = test_lines(&lines);
    let starts = |line: &str| {
        let line = line.split("//").next().unwrap_or_default();
        (commands && STARTS.iter().any(|start| line.contains(start)))
            || (forks && FORKS.iter().any(|start| line.contains(start)))
    };
    let found = lines.iter().enumerate().filter(|(_, line)| starts(line));
    found
        .filter(|(index, _)| !test[*index])
        .filter(|(index, _)| !excused(&lines, *index, "start"))
        .map(|(index, _)| {
            BrokenRule::at(
                path,
                index + 1,
                "a process is started without saying whose code it runs",
                "use nimbus_engine_process with a CodeOrigin, or give the origin with \
                 tidy-allow(start)",
            )
        })
        .collect()
}

/// Which lines belong to tests: each item below `#[cfg(test)]`, to its closing brace, and not what follows.
pub(super) fn test_lines(lines: &[&str]) -> Vec<bool> {
    let mut test = vec![false; lines.len()];
    let mut index = 0;
    while index < lines.len() {
        let line = lines[index];
        if line.trim() != "#[cfg(test)]" {
            index += 1;
            continue;
        }
        let indent = &line[..line.len() - line.trim_start().len()];
        let closing = format!("{indent}}}");
        let rest = lines[index..].iter().position(|line| {
            let one_line = line.starts_with(indent)
                && !line.trim_start().starts_with('#')
                && (line.ends_with(';') || line.ends_with('}'))
                && !line[indent.len()..].starts_with(' ');
            *line == closing || one_line
        });
        let end = rest.map_or(lines.len(), |rest| index + rest + 1);
        test[index..end].fill(true);
        index = end;
    }
    test
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
        let after = "#[cfg(test)]\nuse x::Y;\nfn f(c: &mut Command) {\n    c.spawn();\n}\n";
        assert_eq!(found("crates/engine/x/src/a.rs", after), [4]);
        let made_elsewhere = "let c = tokio::process::Command::from(x);\nc.output();\n";
        assert_eq!(found("crates/engine/x/src/a.rs", made_elsewhere), [2]);
        let forked = "unsafe { libc::fork() };\nlet forked = unforked();\nexecve(a, b, c);\n";
        assert_eq!(found("crates/engine/x/src/a.rs", forked), [1, 3]);
        let helper = "crates/engine/sandbox/src/helper/a.rs";
        assert_eq!(found(helper, forked), Vec::<usize>::new());
        let other = "response.status()\n";
        assert_eq!(
            found("crates/engine/x/src/a.rs", other),
            Vec::<usize>::new()
        );
    }
}
