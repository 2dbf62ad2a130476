//! The official list of conformance tests, name by name, with the programs of ours that stand for it.
//!
//! `crates/engine/parity/conformance.toml` maps each name to parity cases, or says why there is none.
//! A case counts when it was recorded, which happens only after both engines did the same. The end of
//! `docs/engine-conformance.md` is written from that by `cargo xtask tidy --bless`.

use std::collections::BTreeMap;
use std::fs;

use anyhow::{Context, Result};
use serde::Deserialize;

use super::{BrokenRule, find};
use crate::repo::{Repo, RepoFile};

const TABLE: &str = "crates/engine/parity/conformance.toml";
const PAGE: &str = "docs/engine-conformance.md";
const PROGRAMS: &str = "crates/engine/parity/programs";
const RECORDINGS: &str = "crates/engine/parity/recordings";
const HEADING: &str = "## The official list";
const REMEDY: &str = "run `cargo xtask tidy --bless` and commit the result";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ConformanceTable {
    /// Names and the cases that stand for them.
    programs: BTreeMap<String, Vec<String>>,
    /// Names without a program, and why.
    without: BTreeMap<String, String>,
}

pub(super) fn check(files: &[RepoFile]) -> Vec<BrokenRule> {
    let (Some(table), Some(page)) = (find(files, TABLE), find(files, PAGE)) else {
        return Vec::new();
    };
    let table: ConformanceTable = match toml::from_str(&table.text) {
        Ok(table) => table,
        Err(error) => {
            let what = format!("is not understood: {error}");
            return vec![BrokenRule::file(TABLE, what, "name = [\"case\"]")];
        }
    };
    let mut findings = Vec::new();
    for (name, cases) in &table.programs {
        if cases.is_empty() || table.without.contains_key(name) {
            let what = format!("{name} has either cases or a reason");
            findings.push(BrokenRule::file(TABLE, what, "say one of both"));
        }
        for case in cases.iter().filter(|case| !is_proved(files, case)) {
            let what = format!("{name}: the case {case} has no program or no recording");
            findings.push(BrokenRule::file(TABLE, what, "record the case"));
        }
    }
    if page.text != with_list(&page.text, &list(&table, files)) {
        findings.push(BrokenRule::file(PAGE, "is out of date", REMEDY));
    }
    findings
}

pub(super) fn write(repo: &Repo) -> Result<()> {
    let files = repo.text_files()?;
    let table = repo.read(TABLE)?;
    let table = toml::from_str(&table).with_context(|| format!("{TABLE} is not understood"))?;
    let page = with_list(&repo.read(PAGE)?, &list(&table, &files));
    Ok(fs::write(repo.join(PAGE), page)?)
}

fn is_proved(files: &[RepoFile], case: &str) -> bool {
    let recorded = find(files, &format!("{RECORDINGS}/{case}.txt")).is_some();
    recorded && language(files, case).is_some()
}

/// What the first version of a program is written in.
fn language(files: &[RepoFile], case: &str) -> Option<&'static str> {
    let has = |ending: &str| find(files, &format!("{PROGRAMS}/{case}/step1.{ending}")).is_some();
    match (has("ts"), has("py")) {
        (true, _) => Some("ts"),
        (false, true) => Some("py"),
        (false, false) => None,
    }
}

/// The page with its last section replaced.
fn with_list(page: &str, list: &str) -> String {
    let before = page.split(HEADING).next().unwrap_or_default().trim_end();
    format!("{before}\n\n{list}")
}

fn list(table: &ConformanceTable, files: &[RepoFile]) -> String {
    let in_language = |cases: &[String], wanted: &str| -> Vec<String> {
        let those = cases.iter();
        let those = those.filter(|case| language(files, case) == Some(wanted));
        those.cloned().collect()
    };
    let count = |wanted: &str| {
        let all = table.programs.values();
        all.filter(|cases| !in_language(cases, wanted).is_empty())
            .count()
    };
    let names = table.programs.len() + table.without.len();
    let mut text = format!(
        "{HEADING}\n\n\
         Written by `cargo xtask tidy --bless` from `crates/engine/parity/conformance.toml` and the recordings; a case is\n\
         recorded only after both engines did the same with it.\n\n\
         {names} names; {} have a program of ours: {} in TypeScript, {} in Python. {} have none.\n\n\
         | Name | TypeScript | Python |\n|---|---|---|\n",
        table.programs.len(),
        count("ts"),
        count("py"),
        table.without.len(),
    );
    for (name, cases) in &table.programs {
        let cell = |wanted: &str| match in_language(cases, wanted) {
            cases if cases.is_empty() => "–".to_owned(),
            cases => cases.join(", "),
        };
        text.push_str(&format!("| {name} | {} | {} |\n", cell("ts"), cell("py")));
    }
    text.push_str("\n| Name without a program | Why |\n|---|---|\n");
    for (name, reason) in &table.without {
        text.push_str(&format!("| {name} | {reason} |\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::file;

    fn tree(table: &str, page: &str) -> Vec<RepoFile> {
        vec![
            file(TABLE, table),
            file(PAGE, page),
            file("crates/engine/parity/programs/basics/step1.ts", ""),
            file("crates/engine/parity/recordings/basics.txt", ""),
        ]
    }

    const GOOD: &str = "[programs]\na = [\"basics\"]\n[without]\nb = \"no use\"\n";

    #[test]
    fn the_page_ends_with_what_is_proved() {
        let page = with_list("# Page\n\nText.\n", "## The official list\n\nold\n");
        assert!(!check(&tree(GOOD, &page)).is_empty());
        let table: ConformanceTable = toml::from_str(GOOD).unwrap();
        let page = with_list(&page, &list(&table, &tree(GOOD, "")));
        assert_eq!(check(&tree(GOOD, &page)), []);
        assert!(page.starts_with("# Page\n\nText.\n\n## The official list\n"));
        assert!(page.contains(
            "2 names; 1 have a program of ours: 1 in TypeScript, 0 in Python. 1 have none."
        ));
        assert!(page.contains("| a | basics | – |\n"));
        assert!(page.contains("| b | no use |\n"));
    }

    #[test]
    fn a_case_that_was_never_recorded_proves_nothing() {
        let table = "[programs]\na = [\"other\"]\n[without]\n";
        let found = check(&tree(table, "# Page\n"));
        assert!(
            found
                .iter()
                .any(|finding| finding.what.contains("a: the case other"))
        );
    }
}
