//! Every promised number has a row in `docs/reliability.md`, and the tests that a row names exist.
//!
//! A number that nothing proves yet keeps its row, with the reason: a table without it would read as if it
//! were held.

use std::collections::BTreeMap;

use super::{BrokenRule, find, spec_rows};
use crate::repo::RepoFile;

const PAGE: &str = "docs/reliability.md";

/// How many there are of each kind: faults, tenancy, security, tenants' code, load.
const NUMBERS: [(&str, u32); 5] = [("F", 25), ("P", 11), ("S", 26), ("X", 8), ("L", 9)];

pub(super) fn check(files: &[RepoFile]) -> Vec<BrokenRule> {
    let Some(page) = find(files, PAGE) else {
        return Vec::new();
    };
    let mut findings = Vec::new();
    let mut rows: BTreeMap<&str, usize> = BTreeMap::new();
    for (index, line) in page.text.lines().enumerate() {
        let Some(row) = NumberRow::read(line) else {
            continue;
        };
        let at = |what: String, remedy| BrokenRule::at(PAGE, index + 1, what, remedy);
        if rows.insert(row.number, index + 1).is_some() {
            findings.push(at(
                format!("{} has a row already", row.number),
                "keep one row for each number",
            ));
        }
        for test in row
            .tests
            .iter()
            .filter(|test| !spec_rows::exists(test, files))
        {
            findings.push(at(
                format!("{} names a test that does not exist: {test}", row.number),
                "name it as path/to/file.rs::test_name",
            ));
        }
        if row.tests.is_empty() && row.rest.is_empty() {
            findings.push(at(
                format!("{} names no test and no reason", row.number),
                "name the test, or say in the last cell what is missing",
            ));
        }
    }
    for (kind, count) in NUMBERS {
        for number in 1..=count {
            let name = format!("{kind}{number}");
            if !rows.contains_key(name.as_str()) {
                findings.push(BrokenRule::file(
                    PAGE,
                    format!("{name} has no row"),
                    "every promised number has one, held or not",
                ));
            }
        }
    }
    findings
}

/// `| F1 | promise | tests | long form | what is missing |`.
struct NumberRow<'a> {
    number: &'a str,
    tests: Vec<&'a str>,
    /// What is missing.
    rest: &'a str,
}

impl<'a> NumberRow<'a> {
    fn read(line: &'a str) -> Option<Self> {
        let cells: Vec<&str> = line.strip_prefix('|')?.split('|').map(str::trim).collect();
        let number = *cells.first()?;
        let is_number = NUMBERS.iter().any(|(kind, _)| {
            number
                .strip_prefix(kind)
                .is_some_and(|digits| digits.parse::<u32>().is_ok())
        });
        let named = |text: &&'a str| text.contains("::");
        let tests = cells.get(2).copied().unwrap_or_default();
        is_number.then(|| Self {
            number,
            tests: tests.split([',', ' ', '`']).filter(named).collect(),
            rest: cells.get(4).copied().unwrap_or_default(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::file;

    fn findings(rows: &str) -> Vec<String> {
        let files = [
            file(PAGE, rows),
            file("crates/x/tests/up.rs", "#[test]\nfn holds() {}\n"),
        ];
        let all = check(&files).into_iter().map(|finding| finding.what);
        all.filter(|what| !what.ends_with("has no row")).collect()
    }

    #[test]
    fn a_row_names_a_test_that_exists_or_what_is_missing() {
        let held = "| F1 | nothing is lost | `crates/x/tests/up.rs::holds` | 500 | |";
        assert!(findings(held).is_empty());
        assert!(findings("| F2 | x | | | comes with workers elsewhere |").is_empty());
        for (row, expected) in [
            ("| F2 | x | | | |", "names no test"),
            (
                "| S1 | x | `crates/x/tests/up.rs::gone` | | |",
                "does not exist",
            ),
        ] {
            let found = findings(row);
            assert!(found[0].contains(expected), "{found:?}");
        }
        assert!(findings(&format!("{held}\n{held}"))[0].contains("already"));
    }

    #[test]
    fn a_number_without_a_row_is_missed() {
        let files = [file(PAGE, "| F1 | x | | | later |")];
        let missed = check(&files);
        let all: u32 = NUMBERS.iter().map(|(_, count)| count).sum();
        assert_eq!(missed.len(), all as usize - 1);
    }
}
