//! Documents that the program writes about itself are the ones it would write today.
//!
//! `nimbus internal-docs --out DIR` writes the command-line reference and the schema of the
//! configuration file; `docs/reference/` holds what it wrote. `cargo xtask tidy --bless` renews it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::BrokenRule;
use crate::linted;
use crate::process;
use crate::repo::{Repo, RepoFile};

const FOLDER: &str = "docs/reference/";
const REMEDY: &str = "run `cargo xtask tidy --bless` and commit the result";

pub(super) fn check(repo: &Repo, files: &[RepoFile]) -> Result<Vec<BrokenRule>> {
    // Until the command line has a program there is nothing that could write them.
    if !repo.join("crates/cli/src/main.rs").is_file() {
        return Ok(Vec::new());
    }
    let output = repo.join("target/internal-docs");
    produce(repo, &output)?;
    let committed = files
        .iter()
        .filter_map(|file| {
            Some((
                file.path.strip_prefix(FOLDER)?.to_owned(),
                file.text.clone(),
            ))
        })
        .collect();
    Ok(compare(&read_folder(&output, &output)?, &committed))
}

pub(super) fn write(repo: &Repo) -> Result<()> {
    let folder = repo.join(FOLDER);
    fs::create_dir_all(&folder)?;
    // Made beside and moved file by file: whoever interrupts this has whole documents, old or new.
    let fresh = tempfile::Builder::new()
        .prefix(".reference-")
        .tempdir_in(repo.join("docs"))?;
    produce(repo, fresh.path())?;
    replace_folder(fresh.path(), &folder)
}

/// Moves every file of one folder over those of another, and only then removes what is left over.
fn replace_folder(fresh: &Path, folder: &Path) -> Result<()> {
    let names = read_folder(fresh, fresh)?;
    for name in names.keys() {
        let target = folder.join(name);
        fs::create_dir_all(target.parent().unwrap_or(folder))?;
        // tidy-allow(copy): documents that are made again if need be
        fs::rename(fresh.join(name), target)?;
    }
    let there = read_folder(folder, folder)?;
    for name in there.keys().filter(|name| !names.contains_key(*name)) {
        fs::remove_file(folder.join(name))?;
    }
    Ok(())
}

fn produce(repo: &Repo, folder: &Path) -> Result<()> {
    if folder.is_dir() {
        fs::remove_dir_all(folder)?;
    }
    fs::create_dir_all(folder)?;
    // As the tests are built: by itself the program would be built once more, for other features of what it uses.
    process::capture(
        linted::cargo()?
            .args(["test", "--workspace", "--no-run", "--quiet"])
            .args(["--test", "command_line"])
            .current_dir(repo.root()),
    )
    .context("the program cannot be built")?;
    process::capture(
        Command::new(repo.join("target/debug/nimbus"))
            .args(["internal-docs", "--out"])
            .arg(folder)
            .current_dir(repo.root()),
    )
    .map(drop)
    .context("the generated documents cannot be made")
}

fn compare(
    fresh: &BTreeMap<String, String>,
    committed: &BTreeMap<String, String>,
) -> Vec<BrokenRule> {
    let path = |name: &str| format!("{FOLDER}{name}");
    let stale = fresh
        .iter()
        .filter_map(|(name, text)| match committed.get(name) {
            Some(old) if old == text => None,
            Some(_) => Some(BrokenRule::file(&path(name), "is out of date", REMEDY)),
            None => Some(BrokenRule::file(&path(name), "is missing", REMEDY)),
        });
    let left_over = committed
        .keys()
        .filter(|name| !fresh.contains_key(*name))
        .map(|name| BrokenRule::file(&path(name), "is no longer generated", REMEDY));
    stale.chain(left_over).collect()
}

fn read_folder(root: &Path, folder: &Path) -> Result<BTreeMap<String, String>> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(folder)? {
        let path: PathBuf = entry?.path();
        if path.is_dir() {
            files.extend(read_folder(root, &path)?);
        } else {
            let name = path.strip_prefix(root)?.to_string_lossy().into_owned();
            files.insert(name, fs::read_to_string(&path)?);
        }
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fresh_documents_replace_the_old_ones_file_by_file() {
        let temp = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = temp.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("fresh/cli.md", "new");
        write("fresh/schemas/a.json", "{}");
        write("docs/cli.md", "old");
        write("docs/gone/b.md", "left over");
        let (fresh, docs) = (temp.path().join("fresh"), temp.path().join("docs"));
        let expected = read_folder(&fresh, &fresh).unwrap();
        replace_folder(&fresh, &docs).unwrap();
        assert_eq!(read_folder(&docs, &docs).unwrap(), expected);
    }

    #[test]
    fn stale_missing_and_left_over_documents_are_found() {
        let map = |pairs: &[(&str, &str)]| {
            pairs
                .iter()
                .map(|(name, text)| ((*name).to_owned(), (*text).to_owned()))
                .collect()
        };
        let fresh = map(&[("cli.md", "new"), ("same.md", "x"), ("schema.json", "{}")]);
        let committed = map(&[("cli.md", "old"), ("same.md", "x"), ("gone.md", "")]);
        let whats: Vec<_> = compare(&fresh, &committed)
            .into_iter()
            .map(|finding| format!("{} {}", finding.path, finding.what))
            .collect();
        assert_eq!(
            whats,
            [
                "docs/reference/cli.md is out of date",
                "docs/reference/schema.json is missing",
                "docs/reference/gone.md is no longer generated",
            ]
        );
    }
}
