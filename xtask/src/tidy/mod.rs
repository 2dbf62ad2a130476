//! `cargo xtask tidy`: the rules of the tree that the compiler and clippy cannot check.
//!
//! A rule is a pure function from file texts to findings, in a file of its own with its own tests.
//! To add one: write the function, call it in [`check`], describe it in CONTRIBUTING.md.
//! A line may break a text rule for a good reason: `tidy-allow(<rule>): <reason>` on that line or
//! the one before it.

mod borders;
mod conformance;
mod error_pages;
mod foundations;
mod generated;
mod lockfiles;
mod manifests;
mod markdown;
mod paths;
mod reads;
mod reliability;
mod settings;
mod sources;
mod spec_rows;
mod starts;
mod subjects;
mod thinness;
mod walkthrough;
mod words;

use std::fmt;

use anyhow::{Result, bail};

use crate::repo::{Repo, RepoFile};

#[derive(clap::Args, Default)]
pub(crate) struct TidyOptions {
    /// Write the generated documents instead of comparing them.
    #[arg(long)]
    bless: bool,
}

/// One broken rule: where, what, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct BrokenRule {
    pub(crate) path: String,
    /// Counted from 1; 0 when the whole file is meant.
    pub(crate) line: usize,
    pub(crate) what: String,
    pub(crate) remedy: &'static str,
}

impl BrokenRule {
    pub(crate) fn at(
        path: &str,
        line: usize,
        what: impl Into<String>,
        remedy: &'static str,
    ) -> Self {
        Self {
            path: path.to_owned(),
            line,
            what: what.into(),
            remedy,
        }
    }

    pub(crate) fn file(path: &str, what: impl Into<String>, remedy: &'static str) -> Self {
        Self::at(path, 0, what, remedy)
    }
}

impl fmt::Display for BrokenRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}\n    {}", self.path, self.what, self.remedy),
            line => write!(
                f,
                "{}:{line}: {}\n    {}",
                self.path, self.what, self.remedy
            ),
        }
    }
}

pub(crate) fn run(repo: &Repo, options: &TidyOptions) -> Result<()> {
    if options.bless {
        generated::write(repo)?;
        conformance::write(repo)?;
    }
    let findings = check(repo)?;
    for finding in &findings {
        println!("{finding}");
    }
    if findings.is_empty() {
        println!("tidy: no findings");
        return Ok(());
    }
    bail!("tidy: {} finding(s)", findings.len())
}

/// Every finding of every rule, sorted.
pub(crate) fn check(repo: &Repo) -> Result<Vec<BrokenRule>> {
    let files = repo.text_files()?;
    let packages = borders::packages(repo)?;
    let mut findings = borders::check(&packages);
    findings.extend(borders::check_map(
        &packages,
        &repo.read("ARCHITECTURE.md")?,
    ));
    for file in &files {
        findings.extend(manifests::check(file));
        findings.extend(sources::check(file));
        findings.extend(paths::check(file));
        findings.extend(starts::check(file));
        findings.extend(foundations::check(file));
        findings.extend(reads::check(file));
        findings.extend(thinness::check(file));
        findings.extend(lockfiles::check(file));
        findings.extend(markdown::check(file, &files));
    }
    findings.extend(subjects::check(&subjects::unpublished(repo)));
    findings.extend(spec_rows::check(&files));
    findings.extend(reliability::check(&files));
    findings.extend(settings::check(&files));
    findings.extend(words::check(&files));
    findings.extend(walkthrough::check(&files));
    findings.extend(error_pages::check(&files));
    findings.extend(conformance::check(&files));
    findings.extend(generated::check(repo, &files)?);
    findings.sort();
    Ok(findings)
}

/// Whether a line, or the one before it, carries a reasoned exception from `rule`.
fn excused(lines: &[&str], index: usize, rule: &str) -> bool {
    let marker = format!("tidy-allow({rule}): ");
    let has_reason = |line: &str| {
        line.split_once(marker.as_str())
            .is_some_and(|(_, reason)| !reason.trim().is_empty())
    };
    has_reason(lines[index]) || (index > 0 && has_reason(lines[index - 1]))
}

#[cfg(test)]
fn file(path: &str, text: &str) -> RepoFile {
    RepoFile {
        path: path.to_owned(),
        text: text.to_owned(),
    }
}

fn find<'a>(files: &'a [RepoFile], path: &str) -> Option<&'a RepoFile> {
    files.iter().find(|file| file.path == path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exception_needs_a_reason_and_the_right_rule() {
        let excuse = |line: &str| excused(&[line, "the line"], 1, "sleep");
        assert!(excuse(
            "// tidy-allow(sleep): the clock itself is under test"
        ));
        assert!(!excuse("// tidy-allow(sleep): "));
        assert!(!excuse("// tidy-allow(path): other"));
        assert!(!excused(&["x", "y", "z"], 2, "sleep"));
    }

    #[test]
    fn findings_read_like_compiler_messages() {
        let finding = BrokenRule::at("a/b.rs", 3, "too long", "split it");
        assert_eq!(finding.to_string(), "a/b.rs:3: too long\n    split it");
        assert_eq!(
            BrokenRule::file("a", "bad", "fix it").to_string(),
            "a: bad\n    fix it"
        );
    }
}
