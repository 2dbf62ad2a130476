//! What is different between the files of two versions.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use similar::TextDiff;

/// What became of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileChange {
    Added,
    Removed,
    Changed,
}

/// A file that is not the same in two versions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileDifference {
    pub path: String,
    pub change: FileChange,
    /// In the unified form.
    pub text: String,
}

/// Lines around a change.
const CONTEXT: usize = 3;
/// Files with more lines are told as changed, without their lines.
const MOST_LINES: usize = 20_000;

/// Files that are different, by path.
pub fn compare_files(
    old: &BTreeMap<String, String>,
    new: &BTreeMap<String, String>,
) -> Vec<FileDifference> {
    let mut found = Vec::new();
    let paths: std::collections::BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    for path in paths {
        let (before, after) = (old.get(path), new.get(path));
        let change = match (before, after) {
            (None, Some(_)) => FileChange::Added,
            (Some(_), None) => FileChange::Removed,
            (Some(before), Some(after)) if before != after => FileChange::Changed,
            _ => continue,
        };
        let (before, after) = (
            before.map_or("", String::as_str),
            after.map_or("", String::as_str),
        );
        found.push(FileDifference {
            path: path.clone(),
            change,
            text: unified(path, before, after),
        });
    }
    found
}

fn unified(path: &str, before: &str, after: &str) -> String {
    if before.lines().count() + after.lines().count() > MOST_LINES {
        return String::new();
    }
    TextDiff::from_lines(before, after)
        .unified_diff()
        .context_radius(CONTEXT)
        .header(&format!("a/{path}"), &format!("b/{path}"))
        .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_came_went_and_changed_are_told() {
        let files = |list: &[(&str, &str)]| {
            list.iter()
                .map(|(path, text)| ((*path).to_owned(), (*text).to_owned()))
                .collect::<BTreeMap<_, _>>()
        };
        let old = files(&[("a.ts", "1\n"), ("b.ts", "x\n"), ("c.ts", "same\n")]);
        let new = files(&[("a.ts", "2\n"), ("c.ts", "same\n"), ("d.ts", "y\n")]);
        let found = compare_files(&old, &new);
        let told: Vec<_> = found
            .iter()
            .map(|one| (one.path.as_str(), one.change))
            .collect();
        assert_eq!(
            told,
            [
                ("a.ts", FileChange::Changed),
                ("b.ts", FileChange::Removed),
                ("d.ts", FileChange::Added)
            ]
        );
        assert!(found[0].text.contains("-1\n+2\n"), "{}", found[0].text);
    }
}
