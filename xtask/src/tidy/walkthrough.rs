//! "Follow a deploy" in ARCHITECTURE.md leads through code that is there.
//!
//! A reader goes from row to row and opens each file. A function that moved or was renamed since ends the walk, and
//! nobody who moves one thinks of the document: this does. Rows say files in their first cell, relative to the folder of
//! the heading above them, and functions or types in their second. Elsewhere a name and its file stand together as
//! `` `name` (`file.rs`) `` or `` (`name`, `file.rs`) ``; names without a file are prose.

use super::{BrokenRule, find};
use crate::repo::RepoFile;

const DOCUMENT: &str = "ARCHITECTURE.md";
const SECTION: &str = "## Follow a deploy";
const REMEDY: &str = "say where it is now, or take it out of the walk";

pub(super) fn check(files: &[RepoFile]) -> Vec<BrokenRule> {
    let Some(document) = find(files, DOCUMENT) else {
        return Vec::new();
    };
    let mut walk = DeployWalk {
        files,
        base: String::new(),
        findings: Vec::new(),
    };
    let lines = document.text.lines().enumerate();
    let section = lines.skip_while(|(_, line)| *line != SECTION).skip(1);
    let mut rows = 0;
    for (index, line) in section.take_while(|(_, line)| !line.starts_with("## ")) {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        if let ([first, second, third], true) = (cells.as_slice(), line.starts_with("| ")) {
            rows += 1;
            walk.row(index + 1, first, second, third);
        }
    }
    if rows == 0 {
        let what = format!("has no rows below `{SECTION}`");
        return vec![BrokenRule::file(DOCUMENT, what, "write them there")];
    }
    walk.findings
}

struct DeployWalk<'a> {
    files: &'a [RepoFile],
    /// The folder that the last heading named.
    base: String,
    findings: Vec<BrokenRule>,
}

impl<'a> DeployWalk<'a> {
    fn row(&mut self, line: usize, first: &str, second: &str, third: &str) {
        if first.starts_with("**") {
            let folder = quoted(first).find(|text| text.starts_with("crates/"));
            self.base = folder.unwrap_or_default().to_owned();
            self.heading(line, second);
            return;
        }
        let mut places: Vec<&RepoFile> = Vec::new();
        for name in quoted(first).filter(|text| is_file(text)) {
            // The second file of a cell may be told by its name alone.
            let beside = places.last().map_or("", |file| folder_of(&file.path));
            match self.resolve(name, beside) {
                Some(file) => places.push(file),
                None => self.missing(line, name),
            }
        }
        if places.is_empty() {
            return;
        }
        for name in quoted(second).filter(|text| !is_file(text)) {
            if !places.iter().any(|file| has(&file.text, name)) {
                let paths: Vec<&str> = places.iter().map(|file| file.path.as_str()).collect();
                self.unknown(line, name, &paths.join(", "));
            }
        }
        let beside = folder_of(&places[0].path).to_owned();
        self.prose(line, third, &beside);
    }

    /// A heading may say what is called there: in a file that it names, or anywhere in its folder.
    fn heading(&mut self, line: usize, second: &str) {
        let named: Vec<&str> = quoted(second).filter(|text| is_file(text)).collect();
        let folder = format!("{}/", self.base);
        for name in quoted(second).filter(|text| !is_file(text)) {
            let in_place = |file: &&RepoFile| match named.is_empty() {
                true => file.path.starts_with(&folder),
                false => named.contains(&file.path.as_str()),
            };
            let mut places = self.files.iter().filter(in_place);
            if !places.any(|file| has(&file.text, name)) {
                self.unknown(line, name, &self.base.clone());
            }
        }
    }

    /// Names that stand with their file.
    fn prose(&mut self, line: usize, text: &str, beside: &str) {
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('(') {
            let (inside, next) = after.split_once(')').unwrap_or((after, ""));
            rest = next;
            let named: Vec<&str> = quoted(inside).filter(|text| is_file(text)).collect();
            let [path] = named.as_slice() else {
                continue;
            };
            let Some(file) = self.resolve(path, beside) else {
                self.missing(line, path);
                continue;
            };
            let before = before.trim_end();
            let owner = before.ends_with('`').then(|| quoted(before).last());
            let names = quoted(inside).filter(|text| !is_file(text));
            for name in names.chain(owner.flatten()) {
                if !has(&file.text, name) {
                    self.unknown(line, name, &file.path);
                }
            }
        }
    }

    /// A file by its whole path, below the heading's folder, or below a folder on the way to `beside`.
    fn resolve(&self, name: &str, beside: &str) -> Option<&'a RepoFile> {
        if name.starts_with("crates/") {
            return find(self.files, name);
        }
        let on_the_way = std::iter::successors(Some(beside), |folder| {
            (!folder.is_empty()).then(|| folder_of(folder))
        });
        let folders = on_the_way.take_while(|folder| folder.starts_with(self.base.as_str()));
        let folders = folders.chain([self.base.as_str()]);
        let mut paths = folders.map(|folder| format!("{folder}/{name}"));
        paths.find_map(|path| find(self.files, &path))
    }

    fn missing(&mut self, line: usize, name: &str) {
        let what = format!("there is no `{name}` in {}", self.base);
        let finding = BrokenRule::at(DOCUMENT, line, what, REMEDY);
        self.findings.push(finding);
    }

    fn unknown(&mut self, line: usize, name: &str, place: &str) {
        let what = format!("there is no `{name}` in {place}");
        let finding = BrokenRule::at(DOCUMENT, line, what, REMEDY);
        self.findings.push(finding);
    }
}

/// What stands between backquotes.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

fn is_file(text: &str) -> bool {
    text.ends_with(".rs")
}

fn folder_of(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// Whether a source has the function or type, and names the type that a function is of.
fn has(source: &str, name: &str) -> bool {
    let (owner, last) = match name.rsplit_once("::") {
        Some((owner, last)) => (owner.rsplit("::").next(), last),
        None => (None, name),
    };
    let is_type = |word: &str| word.starts_with(char::is_uppercase);
    let owned = owner.is_none_or(|owner| !is_type(owner) || words(source).any(|w| w == owner));
    let keywords: &[&str] = match is_type(last) {
        true => &["struct", "enum", "trait", "type", "for", "impl"],
        false => &["fn"],
    };
    let mut before = "";
    let declared = words(source).any(|word| {
        let found = word == last && keywords.contains(&before);
        before = word;
        found
    });
    owned && declared
}

fn words(source: &str) -> impl Iterator<Item = &str> {
    let part_of_name = |character: char| character.is_alphanumeric() || character == '_';
    let words = source.split(move |character| !part_of_name(character));
    words.filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::super::file;
    use super::*;

    const RUN: &str = "impl<'a> Run<'a> {\n    pub async fn begin(&self) {}\n}\nstruct Board;\n";

    fn findings(rows: &str) -> Vec<String> {
        let text =
            format!("# A\n\n## Follow a deploy\n\n{rows}\n## Map\n\n| `gone.rs` | `x` | |\n");
        let files = [
            file(DOCUMENT, &text),
            file("crates/a/src/run/mod.rs", RUN),
            file("crates/a/src/run/state.rs", "enum State {}\nfn next() {}\n"),
            file("crates/b/src/lib.rs", "pub fn local_ports() {}\n"),
        ];
        let found = check(&files).into_iter();
        found
            .map(|finding| format!("{}: {}", finding.line, finding.what))
            .collect()
    }

    #[test]
    fn what_is_there_is_passed() {
        let rows = "| file | functions | what happens |\n|---|---|---|\n\
                    | **⇢ `Port`, `crates/a/src`** | `Run::begin` | |\n\
                    | `run/mod.rs`, `state.rs` | `Run::begin`, `Board`, `next` | does (`State`, `state.rs`) |\n\
                    | `run/mod.rs` | `begin` | with `local_ports` (`crates/b/src/lib.rs`), then `whatever` |\n\
                    | **`crates/a/src`** | by `crates/b/src/lib.rs`: `local_ports` | |\n";
        assert_eq!(findings(rows), [""; 0]);
    }

    #[test]
    fn what_moved_or_was_renamed_is_found_in_each_cell() {
        let rows = "| **`crates/a/src`** | `gone` | |\n\
                    | `old.rs` | `begin` | |\n\
                    | `run/mod.rs` | `Other::begin`, `beginning` | |\n\
                    | `run/mod.rs` | `begin` | `elsewhere` (`crates/b/src/lib.rs`), (`Run`, `state.rs`), (`no.rs`) |\n";
        assert_eq!(
            findings(rows),
            [
                "5: there is no `gone` in crates/a/src",
                "6: there is no `old.rs` in crates/a/src",
                "7: there is no `Other::begin` in crates/a/src/run/mod.rs",
                "7: there is no `beginning` in crates/a/src/run/mod.rs",
                "8: there is no `elsewhere` in crates/b/src/lib.rs",
                "8: there is no `Run` in crates/a/src/run/state.rs",
                "8: there is no `no.rs` in crates/a/src",
            ]
        );
    }

    #[test]
    fn a_document_without_the_walk_is_told() {
        let found = check(&[file(DOCUMENT, "# A\n")]);
        assert_eq!(found.len(), 1);
    }
}
