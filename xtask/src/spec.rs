//! `cargo xtask spec`: how many requirements of each group are met.
//!
//! `docs/spec/README.md` has the groups with their totals; `docs/spec/<group>.md` has one row per
//! requirement that is met, with the test that proves it. `cargo xtask tidy` checks the rows.

use anyhow::{Context, Result};

use crate::repo::Repo;

const FOLDER: &str = "docs/spec/";
const TOTALS: &str = "docs/spec/README.md";

/// A requirement that is met.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SpecRow {
    pub(crate) id: String,
    pub(crate) tests: Vec<String>,
    /// Counted from 1.
    pub(crate) line: usize,
}

pub(crate) fn run(repo: &Repo) -> Result<()> {
    let totals = totals(&repo.read(TOTALS)?)?;
    let files = repo.text_files()?;
    let mut sum = (0, 0);
    println!("{:<6} {:>4} {:>6}", "group", "met", "total");
    for (group, total) in totals {
        let path = format!("{FOLDER}{}.md", group.to_lowercase());
        let met = files
            .iter()
            .find(|file| file.path == path)
            .map_or(0, |file| rows(&file.text).len());
        println!("{group:<6} {met:>4} {total:>6}");
        sum = (sum.0 + met, sum.1 + total);
    }
    println!("{:<6} {:>4} {:>6}", "all", sum.0, sum.1);
    Ok(())
}

pub(crate) fn is_group_file(path: &str) -> bool {
    path.starts_with(FOLDER) && path.ends_with(".md") && path != TOTALS
}

/// `docs/spec/eng.md` is about the group `ENG`.
pub(crate) fn group_of(path: &str) -> String {
    path.trim_start_matches(FOLDER)
        .trim_end_matches(".md")
        .to_uppercase()
}

/// The rows `| ENG-003 | one line | path/to/file.rs::test_name, … |` of a group's file.
pub(crate) fn rows(text: &str) -> Vec<SpecRow> {
    text.lines()
        .enumerate()
        .filter_map(|(index, line)| {
            let mut cells = cells(line)?;
            let id = cells.next().filter(|cell| is_id(cell))?.to_owned();
            let tests = cells
                .nth(1)
                .unwrap_or_default()
                .split([',', ' '])
                .map(|test| test.trim_matches('`'))
                .filter(|test| !test.is_empty())
                .map(str::to_owned)
                .collect();
            Some(SpecRow {
                id,
                tests,
                line: index + 1,
            })
        })
        .collect()
}

/// The rows `| ENG | title | 23 |` of the overview.
fn totals(text: &str) -> Result<Vec<(String, usize)>> {
    text.lines()
        .filter_map(cells)
        .map(Iterator::collect::<Vec<_>>)
        .filter(|cells| cells.first().is_some_and(|name| is_group(name)))
        .map(|cells| {
            let total = cells
                .get(2)
                .and_then(|cell| cell.parse().ok())
                .with_context(|| format!("{TOTALS}: the row of {} has no total", cells[0]))?;
            Ok((cells[0].to_owned(), total))
        })
        .collect()
}

fn cells(line: &str) -> Option<impl Iterator<Item = &str>> {
    let inner = line.trim().strip_prefix('|')?.strip_suffix('|')?;
    Some(inner.split('|').map(str::trim))
}

fn is_id(cell: &str) -> bool {
    cell.split_once('-').is_some_and(|(group, number)| {
        is_group(group) && !number.is_empty() && number.chars().all(|c| c.is_ascii_digit())
    })
}

fn is_group(cell: &str) -> bool {
    (2..=5).contains(&cell.len())
        && cell
            .chars()
            .all(|c| c.is_ascii_uppercase() || c.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_read_and_other_lines_are_not() {
        let text = "# Title\n\n| id | what | test |\n|---|---|---|\n\
            | ENG-003 | up | `a/b.rs::one`, a/c.rs::two |\n";
        assert_eq!(
            rows(text),
            [SpecRow {
                id: "ENG-003".into(),
                tests: vec!["a/b.rs::one".into(), "a/c.rs::two".into()],
                line: 5
            }]
        );
    }

    #[test]
    fn totals_are_read_and_a_missing_one_is_an_error() {
        let text = "| Group | Title | Total |\n|---|---|---|\n| ENG | engine | 23 |\n";
        assert_eq!(totals(text).unwrap(), [("ENG".to_owned(), 23)]);
        assert!(totals("| ENG | engine | many |").is_err());
    }

    #[test]
    fn the_group_comes_from_the_file_name() {
        assert!(is_group_file("docs/spec/eng.md"));
        assert!(!is_group_file("docs/spec/README.md"));
        assert_eq!(group_of("docs/spec/eng.md"), "ENG");
    }
}
