//! The command line has arguments, prompts and views: it makes no engine and drives no run itself.
//!
//! Whoever could put an engine together in a command would sooner or later do so a little differently
//! from everybody else. The factory of `engine/operations` and the use cases of `crates/runs` are the
//! only ways.

use super::{BrokenRule, excused};
use crate::repo::RepoFile;

/// What only the layers below may name, and who has it instead. Each is one word, so that it is found
/// however it is imported: by its path, in braces or on a line of its own.
const BELOW: &[(&str, &str)] = &[
    ("EmbeddedEngine", "`nimbus_engine_operations::engine_for`"),
    ("OfficialEngine", "`nimbus_engine_operations::engine_for`"),
    ("Processes", "`nimbus_engine_operations::engine_for`"),
    ("nimbus_engine_deploy", "`nimbus_engine_operations`"),
    ("nimbus_engine_plugin", "`nimbus_engine_operations`"),
    ("nimbus_engine_language", "`nimbus_engine_operations`"),
    ("scheduler", "`RunSession` and `PlannedRun`"),
    ("UnitWorker", "`RunSession` and `PlannedRun`"),
    ("RunListener", "`RunSession` and `PlannedRun`"),
];
const REMEDY: &str =
    "call the use case, or add one to `crates/runs`, `crates/local` or `engine/operations`";

pub(super) fn check(file: &RepoFile) -> Vec<BrokenRule> {
    if !file.path.starts_with("crates/cli/src/") || !file.path.ends_with(".rs") {
        return Vec::new();
    }
    let lines: Vec<&str> = file.text.lines().collect();
    let mut findings = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        if line.trim_start().starts_with("//") || excused(&lines, index, "engine") {
            continue;
        }
        let named = BELOW.iter().filter(|(name, _)| has_word(line, name));
        findings.extend(named.map(|(name, instead)| {
            let what = format!("the command line names `{name}`; {instead} has it");
            BrokenRule::at(&file.path, index + 1, what, REMEDY)
        }));
    }
    findings
}

/// Whether a line has a name, and not only as part of a longer one.
fn has_word(line: &str, name: &str) -> bool {
    let part_of_name = |character: char| character.is_alphanumeric() || character == '_';
    line.split(|character| !part_of_name(character))
        .any(|word| word == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::file;

    #[test]
    fn engines_are_made_below_the_command_line() {
        let text = "//! x\nlet engine = EmbeddedEngine::new();\n";
        let found = check(&file("crates/cli/src/commands/x.rs", text));
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].line, 2);
        assert_eq!(check(&file("crates/local/src/x.rs", text)), []);
        assert_eq!(check(&file("crates/cli/tests/x.rs", text)), []);
        let said = "// EmbeddedEngine is elsewhere\n";
        assert_eq!(check(&file("crates/cli/src/x.rs", said)), []);
    }

    #[test]
    fn a_name_is_found_however_it_is_imported_and_not_within_another() {
        for text in [
            "use nimbus_runs::scheduler::execute;\n",
            "use nimbus_runs::{EventBus, scheduler};\n",
            "use nimbus_runs::{scheduler as runs, RunSession};\n",
            "    scheduler,\n",
            "use nimbus_engine_operations::{Processes, Engine};\n",
        ] {
            assert_eq!(check(&file("crates/cli/src/x.rs", text)).len(), 1, "{text}");
        }
        for text in ["let rescheduler = 1;\n", "fn with_processes() {}\n"] {
            assert_eq!(check(&file("crates/cli/src/x.rs", text)), [], "{text}");
        }
    }
}
