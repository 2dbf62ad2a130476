//! Subjects of commits: short enough for every list, and with the area that they are about.
//!
//! Only commits that the main branch does not have are looked at: what is published stays as it is.
//! Without git, as in an unpacked archive, there is nothing to look at.

use std::process::Command;

use super::BrokenRule;
use crate::process;
use crate::repo::Repo;

const LONGEST: usize = 72;
const REMEDY: &str = "`git commit --amend` or `git rebase -i`: see \"Commits\" in CONTRIBUTING.md";

/// Subjects of commits that are not on the main branch yet.
pub(super) fn unpublished(repo: &Repo) -> Vec<String> {
    let log = |base: &str| {
        let mut command = Command::new("git");
        command
            .args(["log", "--no-merges", "--format=%s"])
            .arg(format!("{base}..HEAD"))
            .current_dir(repo.root());
        process::capture(&mut command)
    };
    let subjects = log("origin/main").or_else(|_| log("main"));
    // No git, no main branch: nothing to compare with.
    let subjects = subjects.unwrap_or_default();
    subjects.lines().map(str::to_owned).collect()
}

pub(super) fn check(subjects: &[String]) -> Vec<BrokenRule> {
    let findings = subjects.iter().filter_map(|subject| {
        let what = if subject.chars().count() > LONGEST {
            format!("`{subject}` has more than {LONGEST} characters")
        } else if !has_area(subject) {
            format!("`{subject}` does not begin with its area, such as `engine: `")
        } else {
            return None;
        };
        Some(BrokenRule::file("commit", what, REMEDY))
    });
    findings.collect()
}

fn has_area(subject: &str) -> bool {
    // What git itself writes when a commit is taken back.
    if subject.starts_with("Revert ") {
        return true;
    }
    let Some((area, rest)) = subject.split_once(": ") else {
        return false;
    };
    let is_area = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-/,".contains(c);
    !area.is_empty() && area.chars().all(is_area) && !rest.trim().is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subject_is_short_and_names_its_area() {
        let good = ["runs: a thing", "engine/deploy: a thing", "Revert \"x: y\""];
        assert_eq!(check(&good.map(str::to_owned)), []);
        let long = format!("runs: {}", "x".repeat(LONGEST));
        for bad in [
            "A thing",
            "Runs: a thing",
            "runs:",
            ": a thing",
            long.as_str(),
        ] {
            assert_eq!(check(&[bad.to_owned()]).len(), 1, "{bad}");
        }
    }
}
