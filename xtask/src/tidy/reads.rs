//! What a project names is opened by one reader.
//!
//! `nimbus-engine-files` opens files on behalf of a project, and for a stranger's the kernel keeps it
//! beneath the project's folder. In the crates that act for projects any other way of opening a file
//! could be led out by a link, held up by a pipe or filled up by holes, and nobody would notice.

use super::starts::test_lines;
use super::{BrokenRule, excused};
use crate::repo::RepoFile;

/// Where files are opened because a project says so.
const FOR_PROJECTS: [&str; 7] = [
    "crates/engine/backend/src/project/",
    "crates/engine/language/src/",
    "crates/engine/monitor/src/",
    "crates/engine/operations/src/",
    "crates/engine/plugin/src/",
    "crates/local/src/sources.rs",
    "crates/workspace/src/program.rs",
];

/// What among them has nothing to do with strangers' projects, and why.
const OTHERS: [(&str, &str); 4] = [
    (
        "crates/engine/operations/src/official/",
        "the official command line runs no strangers' programs: it refuses sandboxes",
    ),
    (
        "crates/engine/language/src/dependencies",
        "packages are not installed for strangers",
    ),
    (
        "crates/engine/language/src/warm.rs",
        "processes that wait are for one's own programs",
    ),
    (
        "crates/engine/language/src/contents.rs",
        "follows no link, waits for no pipe and keeps a digest only",
    ),
];

const READS: [&str; 10] = [
    "fs::read(",
    "fs::read_to_string(",
    "fs::read_dir(",
    ".read_dir()",
    "fs::copy(",
    "File::open(",
    "OpenOptions::new()",
    "Document::read(",
    "Project::find(",
    "Project::read(",
];

pub(super) fn check(file: &RepoFile) -> Vec<BrokenRule> {
    let path = &file.path;
    let asked = FOR_PROJECTS.iter().any(|place| path.starts_with(place));
    let other = OTHERS.iter().any(|(place, _)| path.starts_with(place));
    if !asked || other || !path.ends_with(".rs") || path.ends_with("tests.rs") {
        return Vec::new();
    }
    let lines: Vec<&str> = file.text.lines().collect();
    let test = test_lines(&lines);
    let reads = |line: &str| {
        let line = line.split("//").next().unwrap_or_default();
        READS.iter().any(|read| line.contains(read))
    };
    let found = lines.iter().enumerate().filter(|(_, line)| reads(line));
    found
        .filter(|(index, _)| !test[*index])
        .filter(|(index, _)| !excused(&lines, *index, "read"))
        .map(|(index, _)| {
            BrokenRule::at(
                path,
                index + 1,
                "a file is opened past the reader of projects' files",
                "use nimbus_engine_files::ProjectFiles, or say whose file it is with \
                 tidy-allow(read)",
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> Vec<usize> {
        let file = super::super::file(path, text);
        check(&file)
            .into_iter()
            .map(|finding| finding.line)
            .collect()
    }

    #[test]
    fn a_file_that_is_opened_by_hand_is_found() {
        let text = "fn f() {\n    let a = std::fs::read(path)?;\n    File::open(b);\n}\n";
        assert_eq!(found("crates/engine/language/src/node/x.rs", text), [2, 3]);
        for other in [
            "crates/engine/files/src/x.rs",
            "crates/engine/language/src/warm.rs",
            "crates/engine/language/tests/x.rs",
            "crates/engine/sandbox/src/x.rs",
        ] {
            assert_eq!(found(other, text), Vec::<usize>::new(), "{other}");
        }
    }

    #[test]
    fn tests_excuses_and_the_reader_itself_are_passed_over() {
        let text = "// tidy-allow(read): the operator's\nfs::read(path);\nfiles.read(path);\n\
                    // fs::read(path)\n#[cfg(test)]\nmod tests {\n    fn f() { fs::read(x); }\n}\n";
        let place = "crates/engine/plugin/src/x.rs";
        assert_eq!(found(place, text), Vec::<usize>::new());
    }
}
