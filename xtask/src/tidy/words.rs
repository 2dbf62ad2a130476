//! One word for one thing: a type's name can be searched for, and is a word of the field.
//!
//! The words to avoid are the table at the end of docs/glossary.md, so that people and this rule
//! read the same list. They are forbidden as words of type names and as names of files; prose may
//! use any word. A name may exist more than once where two crates truly mean their own thing, but
//! not often: whoever searches for a type should find it.

use std::collections::BTreeMap;

use super::{BrokenRule, find};
use crate::repo::RepoFile;

const GLOSSARY: &str = "docs/glossary.md";
const SECTION: &str = "## Words to avoid";
/// How many names may exist more than once in the workspace.
const MOST_REPEATED: usize = 25;
const DECLARATIONS: [&str; 4] = ["struct ", "enum ", "trait ", "type "];

pub(super) fn check(files: &[RepoFile]) -> Vec<BrokenRule> {
    check_with(files, MOST_REPEATED)
}

fn check_with(files: &[RepoFile], most: usize) -> Vec<BrokenRule> {
    let avoided = find(files, GLOSSARY).map_or_else(Vec::new, |file| words_to_avoid(&file.text));
    if avoided.is_empty() {
        let what = format!("has no table below `{SECTION}`");
        return vec![BrokenRule::file(GLOSSARY, what, "list the words there")];
    }
    let mut findings = Vec::new();
    let mut declared: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for file in files.iter().filter(|file| is_product_code(&file.path)) {
        findings.extend(file_name(file, &avoided));
        for (line, name) in type_names(&file.text) {
            findings.extend(type_name(file, line, name, &avoided));
            let place = format!("{}:{line}", file.path);
            declared.entry(name).or_default().push(place);
        }
    }
    declared.retain(|_, places| places.len() > 1);
    if declared.len() > most {
        findings.push(too_many(&declared, most));
    }
    findings
}

fn too_many(declared: &BTreeMap<&str, Vec<String>>, most: usize) -> BrokenRule {
    let names: Vec<_> = declared
        .iter()
        .map(|(name, places)| format!("{name} ({})", places.join(", ")))
        .collect();
    BrokenRule::file(
        GLOSSARY,
        format!(
            "{} type names exist more than once, and {most} may: {}",
            declared.len(),
            names.join("; ")
        ),
        "say in the name what the thing is, such as LeaseRecord instead of Record",
    )
}

/// Words in the first column of the table, in lower case.
fn words_to_avoid(glossary: &str) -> Vec<String> {
    let section = glossary.lines().skip_while(|line| *line != SECTION).skip(1);
    section
        .take_while(|line| !line.starts_with("## "))
        .filter_map(|line| line.strip_prefix("| `")?.split_once('`'))
        .map(|(word, _)| word.to_lowercase())
        .collect()
}

fn is_product_code(path: &str) -> bool {
    let tree = path.starts_with("crates/") || path.starts_with("xtask/");
    let tests = ["/tests/", "/fuzz/", "/examples/", "/benches/"];
    tree && path.ends_with(".rs")
        && !path.ends_with("/tests.rs")
        && !tests.iter().any(|part| path.contains(part))
}

fn file_name(file: &RepoFile, avoided: &[String]) -> Option<BrokenRule> {
    let mut parts = file.path.rsplit('/');
    let name = parts.next()?.strip_suffix(".rs")?;
    let name = if name == "mod" { parts.next()? } else { name };
    let avoids = |part: &str| avoided.iter().any(|word| word == part);
    name.split('_').any(avoids).then(|| {
        let what = format!("`{name}` is a word to avoid in names of files");
        BrokenRule::file(
            &file.path,
            what,
            "docs/glossary.md says what to say instead",
        )
    })
}

fn type_name(file: &RepoFile, line: usize, name: &str, avoided: &[String]) -> Option<BrokenRule> {
    let word = words(name).into_iter().find(|word| {
        let singular = word.strip_suffix('s').unwrap_or(word);
        avoided
            .iter()
            .any(|avoid| avoid == word || avoid == singular)
    })?;
    let what = format!("`{word}` in `{name}` is a word to avoid in names of types");
    let remedy = "docs/glossary.md says what to say instead";
    Some(BrokenRule::at(&file.path, line, what, remedy))
}

/// The words of a name in camel case, in lower case.
fn words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for character in name.chars() {
        if character.is_uppercase() || words.is_empty() {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut() {
            word.extend(character.to_lowercase());
        }
    }
    words
}

/// Types that a text declares outside of its tests, with their lines from 1. Associated types are
/// named by their trait.
fn type_names(text: &str) -> Vec<(usize, &str)> {
    let lines: Vec<&str> = text.lines().collect();
    let tests = lines
        .windows(2)
        .position(|pair| pair[0] == "#[cfg(test)]" && pair[1].starts_with("mod "));
    let code = &lines[..tests.unwrap_or(lines.len())];
    let names = code
        .iter()
        .enumerate()
        .filter_map(|(index, line)| Some((index + 1, declared(line)?)));
    names.collect()
}

fn declared(line: &str) -> Option<&str> {
    let code = line.trim_start();
    let inner = code.len() < line.len();
    let code = match code.strip_prefix("pub(") {
        Some(rest) => rest.split_once(") ")?.1,
        None => code.strip_prefix("pub ").unwrap_or(code),
    };
    let keyword = DECLARATIONS.iter().find(|word| code.starts_with(**word))?;
    if *keyword == "type " && inner {
        return None;
    }
    let rest = &code[keyword.len()..];
    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_');
    let name = &rest[..end.unwrap_or(rest.len())];
    name.starts_with(char::is_uppercase).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::super::file;
    use super::*;

    const WORDS: &str = "# Glossary\n\n## Words to avoid\n\n| word | say |\n|---|---|\n\
                         | `Desk` | allocator |\n| `door` | callback server |\n\n## More\n\n| `lease` | x |\n";

    fn found(sources: &[(&str, &str)], most: usize) -> Vec<String> {
        let mut files: Vec<_> = sources
            .iter()
            .map(|(path, text)| file(path, text))
            .collect();
        files.push(file(GLOSSARY, WORDS));
        let findings = check_with(&files, most);
        findings.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_word_to_avoid_is_found_in_types_and_files_and_nowhere_else() {
        let text = "pub(crate) struct Desk;\nenum EngineDoors<'a> {}\nstruct Doorway;\n// a desk\nlet desk = 1;\n";
        let all = found(&[("crates/x/src/desk.rs", text)], 9);
        assert_eq!(all.len(), 3, "{all:?}");
        assert!(
            all[0].starts_with("crates/x/src/desk.rs: `desk` is a word"),
            "{all:?}"
        );
        assert!(
            all[1].starts_with("crates/x/src/desk.rs:1: `desk` in `Desk`"),
            "{all:?}"
        );
        assert!(all[2].contains(":2: `doors` in `EngineDoors`"), "{all:?}");
        assert_eq!(found(&[("crates/x/src/door/mod.rs", "")], 9).len(), 1);
    }

    #[test]
    fn words_count_only_in_the_table_to_avoid() {
        assert_eq!(
            found(&[("crates/x/src/a.rs", "struct Lease;\n")], 9),
            [""; 0]
        );
    }

    #[test]
    fn tests_fuzzers_and_examples_name_things_as_they_like() {
        let text = "struct Desk;\n";
        for path in [
            "crates/x/tests/a.rs",
            "crates/x/src/a/tests.rs",
            "crates/x/examples/a.rs",
            "fuzz/fuzz_targets/a.rs",
        ] {
            assert_eq!(found(&[(path, text)], 0), [""; 0], "{path}");
        }
        let inside = "struct A;\n#[cfg(test)]\nmod tests {\n    struct Desk;\n}\n";
        assert_eq!(found(&[("crates/x/src/a.rs", inside)], 0), [""; 0]);
    }

    #[test]
    fn names_that_exist_too_often_are_listed_with_their_places() {
        let sources = [
            (
                "crates/x/src/a.rs",
                "pub struct Entry<T>(T);\nimpl A {\n    type Error = X;\n}\n",
            ),
            (
                "crates/y/src/b.rs",
                "fn a() {\n    enum Entry {}\n}\nstruct Lone;\n    type Error = Y;\n",
            ),
        ];
        assert_eq!(found(&sources, 1), [""; 0]);
        let all = found(&sources, 0);
        assert_eq!(all.len(), 1);
        let listed = "1 type names exist more than once, and 0 may: Entry (crates/x/src/a.rs:1, crates/y/src/b.rs:2)";
        assert!(all[0].contains(listed), "{all:?}");
    }

    #[test]
    fn a_glossary_without_the_table_is_a_finding() {
        let files = [
            file(GLOSSARY, "# Glossary\n"),
            file("crates/x/src/a.rs", "struct Desk;\n"),
        ];
        assert_eq!(check_with(&files, 9).len(), 1);
    }
}
