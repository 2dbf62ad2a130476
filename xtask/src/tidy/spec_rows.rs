//! A requirement is met only if the test that proves it exists.

use std::collections::BTreeMap;

use super::{BrokenRule, find};
use crate::repo::RepoFile;
use crate::spec::{self, SpecRow};

pub(super) fn check(files: &[RepoFile]) -> Vec<BrokenRule> {
    let mut findings = Vec::new();
    let mut seen: BTreeMap<String, String> = BTreeMap::new();
    for file in files.iter().filter(|file| spec::is_group_file(&file.path)) {
        let group = spec::group_of(&file.path);
        for row in spec::rows(&file.text) {
            findings.extend(check_row(&file.path, &group, &row, files));
            if let Some(other) = seen.insert(row.id.clone(), file.path.clone()) {
                findings.push(BrokenRule::at(
                    &file.path,
                    row.line,
                    format!("{} has a row already, in {other}", row.id),
                    "keep one row per requirement; a row may name several tests",
                ));
            }
        }
    }
    findings
}

fn check_row(path: &str, group: &str, row: &SpecRow, files: &[RepoFile]) -> Vec<BrokenRule> {
    let mut findings = Vec::new();
    if row.id.split('-').next() != Some(group) {
        findings.push(BrokenRule::at(
            path,
            row.line,
            format!("{} does not belong to the group {group}", row.id),
            "move the row to docs/spec/<group>.md",
        ));
    }
    if row.tests.is_empty() {
        findings.push(BrokenRule::at(
            path,
            row.line,
            format!("{} names no test", row.id),
            "name one as path/to/file.rs::test_name, or remove the row until it is proved",
        ));
    }
    for test in row.tests.iter().filter(|test| !exists(test, files)) {
        findings.push(BrokenRule::at(
            path,
            row.line,
            format!("{} names a test that does not exist: {test}", row.id),
            "name it as path/to/file.rs::test_name",
        ));
    }
    let all_skippable = row.tests.iter().all(|test| can_be_skipped(test, files));
    let unproved = !row.tests.is_empty() && all_skippable;
    let known = ELSEWHERE.contains(&row.id.as_str());
    if known && !unproved {
        findings.push(BrokenRule::at(
            path,
            row.line,
            format!("{} is proved by every run of the tests now", row.id),
            "take it from the list ELSEWHERE in xtask/src/tidy/spec_rows.rs",
        ));
    }
    if unproved && !known {
        findings.push(BrokenRule::at(
            path,
            row.line,
            format!(
                "{} is proved only where a tool is installed that tests go without",
                row.id
            ),
            "name a test besides that every run of the tests carries out",
        ));
    }
    findings
}

/// Tools that may be missing after `cargo xtask test` has installed what it can: without them a test is skipped, and
/// proves nothing.
const OPTIONAL: [&str; 7] = [
    "Tool::PulumiCli",
    "Tool::ProviderPlugins",
    "Tool::Promtool",
    "Tool::Helm",
    "Tool::Valkey",
    "Tool::Python",
    "Tool::SocketIoClient",
];

/// How a test says that this machine lacks something that no set-up installs, such as a sandbox.
const GIVES_UP: [&str; 2] = ["::record_skip(", " record_skip("];

/// Rows that only `cargo xtask test --browser` proves: what a page shows, and what happens when somebody acts on it. A row goes from here with the first test that every run carries out, and none is added.
const ELSEWHERE: [&str; 7] = [
    "UI-003", "UI-008", "UI-009", "UI-011", "UI-012", "UI-016", "UI-032",
];

/// Whether a test, or a function of its file that it calls, leaves off without a tool that may be missing. Tests in a browser
/// are run when they are asked for.
fn can_be_skipped(test: &str, files: &[RepoFile]) -> bool {
    let Some((path, name)) = test.split_once("::") else {
        return false;
    };
    if path.starts_with("console/e2e/") {
        return true;
    }
    let Some(file) = find(files, path) else {
        return false;
    };
    let leaves_off = |body: &str| {
        let mut words = OPTIONAL.iter().chain(&GIVES_UP);
        words.any(|word| body.contains(word))
    };
    let Some(body) = body_of(&file.text, name) else {
        return false;
    };
    leaves_off(body)
        || functions(&file.text)
            .filter(|helper| body.contains(&format!("{helper}(")))
            .any(|helper| body_of(&file.text, helper).is_some_and(leaves_off))
}

/// A function from its name to the brace that ends it at the same depth as it began.
fn body_of<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let start = text.find(&format!("fn {name}("))?;
    let line = text[..start].rfind('\n').map_or(0, |end| end + 1);
    let indent: String = text[line..].chars().take_while(|c| *c == ' ').collect();
    let rest = &text[start..];
    let end = rest.find(&format!("\n{indent}}}")).unwrap_or(rest.len());
    Some(&rest[..end])
}

fn functions(text: &str) -> impl Iterator<Item = &str> {
    text.match_indices("fn ").filter_map(|(at, found)| {
        let rest = &text[at + found.len()..];
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_')?;
        (end > 0 && rest[end..].starts_with('(')).then(|| &rest[..end])
    })
}

/// `path/to/file.rs::name` exists when that file has a test function of that name,
/// `path/to/file.test.ts::beginning_of_a_title` (or a file of `console/e2e`) when it has a test whose title begins so; spaces are
/// written as in names of functions, because spaces and commas separate tests here.
/// `path/to/file.rs::module::name` is a test that a macro makes: the file gives `module` to a macro whose
/// definition has a test function of that name, or makes one of each name in its list.
pub(super) fn exists(test: &str, files: &[RepoFile]) -> bool {
    let Some((path, name)) = test.split_once("::") else {
        return false;
    };
    let Some(file) = find(files, path) else {
        return false;
    };
    if path.ends_with(".test.ts") || path.starts_with("console/e2e/") {
        let title = name.replace('_', " ");
        return file.text.contains(&format!("it(\"{title}"))
            || is_title_of_each(&file.text, &title);
    }
    match name.split_once("::") {
        Some((module, name)) => macro_given(&file.text, module).is_some_and(|maker| {
            files
                .iter()
                .filter_map(|file| file.text.split_once(&format!("macro_rules! {maker} {{")))
                .any(|(_, definition)| has_test(definition, name) || makes_test(definition, name))
        }),
        None => has_test(&file.text, name),
    }
}

/// A macro that makes a test of each name in a list: `fn $name` with the name in the list.
fn makes_test(definition: &str, name: &str) -> bool {
    definition.contains("async fn $") && definition.contains(&format!(" {name},"))
}

/// A test for each row of a table has the row's word first: `"in %s: the title"`.
fn is_title_of_each(text: &str, title: &str) -> bool {
    text.contains("it.each(")
        && ["\"", "%s: ", "%s "]
            .iter()
            .any(|before| text.contains(&format!("{before}{title}")))
}

fn has_test(text: &str, name: &str) -> bool {
    text.match_indices(&format!("fn {name}("))
        .any(|(start, _)| has_test_attribute(&text[..start]))
}

/// The macro that makes a module: the name in `name!(module, …)`.
fn macro_given<'a>(text: &'a str, module: &str) -> Option<&'a str> {
    text.match_indices("!(").find_map(|(start, call)| {
        let arguments = text[start + call.len()..].trim_start();
        let given = arguments
            .strip_prefix(module)
            .is_some_and(|rest| rest.starts_with([',', ')']));
        let before = &text[..start];
        let name = before.rfind(|c: char| !c.is_alphanumeric() && c != '_');
        given.then(|| name.map_or(before, |end| &before[end + 1..]))
    })
}

/// Whether the attributes directly above a function make it a test.
fn has_test_attribute(before: &str) -> bool {
    let line_start = before.rfind('\n').unwrap_or(0);
    before[..line_start]
        .lines()
        .rev()
        .map(str::trim)
        .take_while(|line| line.starts_with("#[") || line.starts_with("//"))
        .any(|line| line.contains("test]") || line.contains("test("))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::file;

    const SOURCE: &str = "#[test]\nfn up_creates() {}\n\nfn helper() {}\n";

    fn findings(rows: &str) -> Vec<String> {
        let files = [
            file("docs/spec/eng.md", rows),
            file("crates/x/tests/up.rs", SOURCE),
            file(
                "crates/x/tests/both.rs",
                "crate::in_both_ways!(\n    rows_are_apart,\n    apart\n);\n",
            ),
            file(
                "crates/x/tests/support.rs",
                "macro_rules! in_both_ways {\n #[tokio::test]\n async fn one_way() {}\n fn helper() {}\n",
            ),
            file(
                "library/dns.test.ts",
                "  it(\"names the zone, once\", () => {",
            ),
        ];
        check(&files)
            .into_iter()
            .map(|finding| finding.what)
            .collect()
    }

    #[test]
    fn a_row_with_a_real_test_passes() {
        assert!(
            findings("| ENG-003 | up returns outputs | `crates/x/tests/up.rs::up_creates` |")
                .is_empty()
        );
    }

    #[test]
    fn a_test_of_the_library_is_named_by_the_beginning_of_its_title() {
        assert!(findings("| ENG-1 | x | library/dns.test.ts::names_the_zone |").is_empty());
        let gone = findings("| ENG-1 | x | library/dns.test.ts::the_zone |");
        assert!(gone[0].contains("does not exist"), "{gone:?}");
        assert!(is_title_of_each(
            "it.each(X)(\"in %s: all go away\",",
            "all go away"
        ));
        assert!(!is_title_of_each(
            "it.each(X)(\"in %s: all go away\",",
            "go away"
        ));
    }

    #[test]
    fn a_test_that_a_macro_makes_is_named_by_its_module() {
        let both =
            |name: &str| findings(&format!("| ENG-1 | x | crates/x/tests/both.rs::{name} |"));
        assert!(both("rows_are_apart::one_way").is_empty());
        for gone in [
            "rows_are_apart::helper",
            "rows_are::one_way",
            "apart::one_way",
        ] {
            assert!(both(gone)[0].contains("does not exist"), "{gone}");
        }
    }

    #[test]
    fn rows_that_prove_nothing_are_found() {
        for (row, expected) in [
            (
                "| ENG-1 | x | crates/x/tests/up.rs::gone |",
                "does not exist",
            ),
            (
                "| ENG-1 | x | crates/x/tests/gone.rs::up_creates |",
                "does not exist",
            ),
            (
                "| ENG-1 | x | crates/x/tests/up.rs::helper |",
                "does not exist",
            ),
            ("| ENG-1 | x | |", "names no test"),
            (
                "| ORC-1 | x | crates/x/tests/up.rs::up_creates |",
                "does not belong",
            ),
        ] {
            let found = findings(row);
            assert_eq!(found.len(), 1, "{row}: {found:?}");
            assert!(found[0].contains(expected), "{row}: {found:?}");
        }
    }

    #[test]
    fn a_row_that_every_test_of_can_be_skipped_is_named() {
        let source = "#[test]\nfn compared() {\n    let cli = tool_or_skip!(Tool::PulumiCli);\n}\n\n\
                      fn official() -> Option<PathBuf> {\n    Tool::PulumiCli.find()\n}\n\n\
                      #[test]\nfn by_way() {\n    let Some(cli) = official() else {\n        return;\n    };\n}\n\n\
                      #[test]\nfn walled() {\n    nimbus_test_tools::record_skip(\"no sandbox\", \"walled\");\n}\n\n\
                      #[test]\nfn heard() {\n    let client = tool_or_skip!(Tool::SocketIoClient);\n}\n\n\
                      #[test]\nfn always() {\n    let node = Tool::NodeSdk.find_or_record_skip(\"always\");\n}\n";
        let rows = |tests: &str| {
            let row = format!("| ENG-1 | x | {tests} |");
            check(&[
                file("docs/spec/eng.md", &row),
                file("crates/x/tests/t.rs", source),
            ])
        };
        for only in ["compared", "by_way", "walled", "heard"] {
            let found = rows(&format!("crates/x/tests/t.rs::{only}"));
            assert!(
                found[0].what.contains("ENG-1 is proved only where"),
                "{found:?}"
            );
        }
        let both = "crates/x/tests/t.rs::compared, crates/x/tests/t.rs::always";
        assert_eq!(rows(both), []);
    }

    #[test]
    fn a_row_that_only_a_browser_proves_is_named_unless_it_is_known() {
        let rows = |id: &str, tests: &str| {
            let page = "console/e2e/console.e2e.ts";
            let found = check(&[
                file(
                    "docs/spec/ui.md",
                    &format!("| {id} | x | {page}::signs_in{tests} |"),
                ),
                file(page, "it(\"signs in\", async () => {"),
                file("crates/x/tests/up.rs", SOURCE),
            ]);
            found.into_iter().map(|one| one.what).collect::<Vec<_>>()
        };
        assert!(rows("UI-999", "")[0].contains("is proved only where"));
        assert_eq!(rows("UI-003", ""), [""; 0]);
        let proved = ", crates/x/tests/up.rs::up_creates";
        assert_eq!(rows("UI-999", proved), [""; 0]);
        assert!(rows("UI-003", proved)[0].contains("by every run of the tests now"));
    }

    #[test]
    fn a_requirement_has_one_row() {
        let row = "| ENG-003 | x | crates/x/tests/up.rs::up_creates |\n";
        assert!(findings(&row.repeat(2))[0].contains("has a row already"));
    }
}
