//! The checks of `library/`: types, style and tests of the shipped components and the policy pack.

use std::process::Command;

use anyhow::{Context, Result};

use crate::process;
use crate::repo::Repo;
use crate::setup::library::{POLICIES, STACKS};

/// Runs every script of every package; returns how many tests passed.
pub(crate) fn check(repo: &Repo) -> Result<usize> {
    let mut passed = 0;
    for folder in [STACKS, POLICIES] {
        for script in ["typecheck", "lint", "test"] {
            println!("{folder}: npm run {script}");
            passed += run_script(repo, folder, script)
                .with_context(|| format!("`npm run {script}` in {folder}"))?;
        }
    }
    Ok(passed)
}

fn run_script(repo: &Repo, folder: &str, script: &str) -> Result<usize> {
    let mut passed = 0;
    let mut npm = Command::new("npm");
    npm.args(["run", "--silent", script])
        .current_dir(repo.join(folder))
        .env("NO_COLOR", "1");
    let status = process::run_watched(&mut npm, |line| {
        println!("{line}");
        passed += passed_tests(line).unwrap_or(0);
    })?;
    anyhow::ensure!(status.success(), "it failed, see above");
    Ok(passed)
}

/// Reads the closing line of the test runner: `      Tests  225 passed (225)`.
pub(crate) fn passed_tests(line: &str) -> Option<usize> {
    let mut words = line.split_whitespace();
    (words.next()? == "Tests").then_some(())?;
    let count = words.next()?.parse().ok()?;
    (words.next()? == "passed").then_some(count)
}

#[cfg(test)]
mod tests {
    use super::passed_tests;

    #[test]
    fn the_runners_closing_line_is_counted() {
        assert_eq!(passed_tests("      Tests  225 passed (225)"), Some(225));
        assert_eq!(passed_tests(" Test Files  19 passed (19)"), None);
        assert_eq!(passed_tests("      Tests  1 failed | 3 passed (4)"), None);
    }
}
