//! What of a lock file that many programs share is one program's.
//!
//! A package workspace has one lock file for all its members, and a program reads only the packages that it can reach
//! from its own: what another member installs is no reason to run it again. Reached is what the packages ask for whose
//! sources the program consists of, what sources name without asking for it (a package manager puts those in reach as
//! well), and whatever these need in turn.
//!
//! Where a lock file is not understood it counts whole, and the reason is told: too much is run again rather than too
//! little. Nothing here reads files.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

use crate::program::FileDigest;

/// What is larger is not taken apart.
const LARGEST_LOCK: usize = 16 << 20;

/// What runs a program, or decides what it compiles to, whether it is asked for or not.
const ALWAYS: &[&str] = &["@pulumi/pulumi", "ts-node", "typescript"];

/// Kinds of needs in `package.json` and in npm's lock files; those of development are only installed for members.
const NEEDS: &[&str] = &["dependencies", "optionalDependencies", "peerDependencies"];
const DEVELOPMENT: &str = "devDependencies";

/// What a program can reach packages from.
#[derive(Clone, Debug, Default)]
pub(crate) struct PackageNeeds {
    /// Folders of packages below the lock file's, `""` for that folder itself, and what each asks for: name and range.
    pub(crate) members: BTreeMap<String, BTreeMap<String, String>>,
    /// Names in quotes in the program's sources that may be those of packages.
    pub(crate) mentioned: BTreeSet<String>,
}

/// Packages by their place in the lock file, with all that it says of them.
type LockedPackages = BTreeMap<String, String>;

/// Names and ranges that a `package.json` asks for.
pub(crate) fn asked_for(package: &Value) -> BTreeMap<String, String> {
    let kinds = NEEDS.iter().chain([&DEVELOPMENT]);
    let maps = kinds.filter_map(|kind| package.get(*kind)?.as_object());
    maps.flatten()
        .map(|(name, range)| (name.clone(), range.as_str().unwrap_or_default().to_owned()))
        .collect()
}

/// Whether a file of this name is the lock file of a package workspace.
pub(crate) fn is_lock(name: &str) -> bool {
    matches!(
        name,
        "package-lock.json" | "pnpm-lock.yaml" | "yarn.lock" | "uv.lock"
    )
}

/// The digest of what a program reads of a lock file, or why it counts whole.
pub(crate) fn digest(
    name: &str,
    text: &[u8],
    needs: &PackageNeeds,
) -> Result<FileDigest, &'static str> {
    if text.len() > LARGEST_LOCK {
        return Err("it has more than 16 MiB");
    }
    let text = std::str::from_utf8(text).map_err(|_| "it is no text")?;
    let packages = match name {
        "package-lock.json" => npm(text, needs)?,
        "pnpm-lock.yaml" => pnpm(text, needs)?,
        "yarn.lock" => yarn(text, needs)?,
        _ => return Err("only those of npm, pnpm and yarn are taken apart"),
    };
    let mut digest = Sha256::new();
    for part in packages.iter().flat_map(|(place, entry)| [place, entry]) {
        digest.update((part.len() as u64).to_be_bytes());
        digest.update(part.as_bytes());
    }
    Ok(digest.finalize().into())
}

/// Names that a source can import without asking for them.
fn named(needs: &PackageNeeds) -> impl Iterator<Item = &str> {
    let mentioned = needs.mentioned.iter().map(String::as_str);
    mentioned.chain(ALWAYS.iter().copied())
}

fn npm(text: &str, needs: &PackageNeeds) -> Result<LockedPackages, &'static str> {
    let lock: Value = serde_json::from_str(text).map_err(|_| "it is no JSON")?;
    if !matches!(lock["lockfileVersion"].as_u64(), Some(2 | 3)) {
        return Err("it is not of version 2 or 3");
    }
    let packages = lock["packages"].as_object();
    let packages = packages.ok_or("it has no `packages`")?;
    let mut open = Vec::new();
    for (member, asked) in &needs.members {
        open.push(member.clone());
        let names = asked.keys().map(String::as_str).chain(named(needs));
        open.extend(names.filter_map(|name| installed(packages, member, name)));
    }
    let mut found = LockedPackages::new();
    while let Some(place) = open.pop() {
        // A member that the lock file does not list asks for nothing in its name.
        let Some(entry) = packages.get(&place).filter(|_| !found.contains_key(&place)) else {
            continue;
        };
        if entry["link"] == true
            && let Some(target) = entry["resolved"].as_str()
        {
            open.push(target.to_owned());
        }
        let own = !place.split('/').any(|part| part == "node_modules");
        let kinds = NEEDS.iter().chain(own.then_some(&DEVELOPMENT));
        let maps = kinds.filter_map(|kind| entry.get(*kind)?.as_object());
        for name in maps.flat_map(|map| map.keys()) {
            open.extend(installed(packages, &place, name));
        }
        found.insert(place, entry.to_string());
    }
    Ok(found)
}

/// Where Node finds a package from a folder: beside it, or beside a folder above.
fn installed(packages: &Map<String, Value>, from: &str, name: &str) -> Option<String> {
    let mut folder = Some(from);
    while let Some(at) = folder {
        let place = match at {
            "" => format!("node_modules/{name}"),
            _ => format!("{at}/node_modules/{name}"),
        };
        if packages.contains_key(&place) {
            return Some(place);
        }
        folder = match at.rsplit_once('/') {
            Some((above, _)) => Some(above),
            None if at.is_empty() => None,
            None => Some(""),
        };
    }
    None
}

/// An entry of a lock file that is written in lines: its key and everything below it.
struct LineEntry<'a> {
    key: &'a str,
    lines: Vec<&'a str>,
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}

fn unquoted(text: &str) -> &str {
    let text = text.trim();
    let bare = |quote: char| text.strip_prefix(quote)?.strip_suffix(quote);
    bare('\'').or_else(|| bare('"')).unwrap_or(text)
}

/// `key: value`, or `key:` with an empty one. A colon within quotes, or within a word, divides nothing.
fn key_and_value(line: &str) -> Option<(&str, &str)> {
    let line = line.trim();
    let quote = line
        .chars()
        .next()
        .filter(|first| matches!(first, '\'' | '"'));
    let after_key = match quote {
        Some(quote) => 2 + line[1..].find(quote)?,
        None => line
            .find(": ")
            .or_else(|| line.strip_suffix(':').map(str::len))?,
    };
    let (key, rest) = line.split_at(after_key);
    Some((unquoted(key), rest.trim().strip_prefix(':')?.trim()))
}

/// Entries whose keys stand at a depth; what is deeper is theirs.
fn entries_at<'a>(lines: &[&'a str], depth: usize) -> Option<Vec<LineEntry<'a>>> {
    let mut entries: Vec<LineEntry<'a>> = Vec::new();
    let filled = |line: &&str| !matches!(line.trim(), "" | "{}");
    for line in lines.iter().copied().filter(filled) {
        if indent(line) == depth {
            let (key, value) = key_and_value(line)?;
            let lines = if value.is_empty() {
                vec![]
            } else {
                vec![value]
            };
            entries.push(LineEntry { key, lines });
        } else {
            entries.last_mut()?.lines.push(line);
        }
    }
    Some(entries)
}

const PNPM_SHAPE: &str = "it is not written as pnpm writes version 9";

fn pnpm(text: &str, needs: &PackageNeeds) -> Result<LockedPackages, &'static str> {
    let lines: Vec<&str> = text.lines().collect();
    let sections = entries_at(&lines, 0).ok_or(PNPM_SHAPE)?;
    let mut found = LockedPackages::new();
    let (mut importers, mut packages, mut snapshots) = (Vec::new(), Vec::new(), Vec::new());
    for section in sections {
        match section.key {
            "importers" => importers = entries_at(&section.lines, 2).ok_or(PNPM_SHAPE)?,
            "packages" => packages = entries_at(&section.lines, 2).ok_or(PNPM_SHAPE)?,
            "snapshots" => snapshots = entries_at(&section.lines, 2).ok_or(PNPM_SHAPE)?,
            // Settings, overrides, patches: they are everybody's.
            key => {
                found.insert(format!("#{key}"), section.lines.join("\n"));
            }
        }
    }
    let version = found.get("#lockfileVersion").map(|text| unquoted(text));
    if !version.is_some_and(|version| version.starts_with("9.")) {
        return Err(PNPM_SHAPE);
    }
    let mut open = Vec::new();
    let mut folders: Vec<String> = needs.members.keys().cloned().collect();
    while let Some(folder) = folders.pop() {
        let key = if folder.is_empty() {
            "."
        } else {
            folder.as_str()
        };
        let place = format!("@{key}");
        if found.contains_key(&place) {
            continue;
        }
        let importer = importers.iter().find(|one| one.key == key);
        let importer = importer.ok_or("it does not name a folder of this program")?;
        found.insert(place, importer.lines.join("\n"));
        for kind in entries_at(&importer.lines, 4).ok_or(PNPM_SHAPE)? {
            for asked in entries_at(&kind.lines, 6).ok_or(PNPM_SHAPE)? {
                let told = entries_at(&asked.lines, 8).ok_or(PNPM_SHAPE)?;
                let version = told.iter().find(|one| one.key == "version");
                let version = version.and_then(|one| one.lines.first());
                let version = unquoted(version.ok_or(PNPM_SHAPE)?);
                match version.strip_prefix("link:") {
                    Some(path) => folders.push(joined(&folder, path).ok_or(PNPM_SHAPE)?),
                    None => open.push(snapshot_key(asked.key, version)),
                }
            }
        }
    }
    for name in named(needs) {
        let of_name = |key: &str| {
            key.strip_prefix(name)
                .is_some_and(|rest| rest.starts_with('@'))
        };
        let mentioned = snapshots.iter().filter(|one| of_name(one.key));
        open.extend(mentioned.map(|one| one.key.to_owned()));
    }
    while let Some(key) = open.pop() {
        if found.contains_key(&key) {
            continue;
        }
        let snapshot = snapshots.iter().find(|one| one.key == key);
        let snapshot = snapshot.ok_or("a package that is needed is not in it")?;
        let plain = key.split('(').next().unwrap_or_default();
        let package = packages.iter().find(|one| one.key == plain);
        let package = package.map(|one| one.lines.join("\n")).unwrap_or_default();
        for kind in entries_at(&snapshot.lines, 4).ok_or(PNPM_SHAPE)? {
            if !NEEDS.contains(&kind.key) {
                continue;
            }
            for need in entries_at(&kind.lines, 6).ok_or(PNPM_SHAPE)? {
                let version = need.lines.first().ok_or(PNPM_SHAPE)?;
                open.push(snapshot_key(need.key, unquoted(version)));
            }
        }
        found.insert(key, format!("{package}\n{}", snapshot.lines.join("\n")));
    }
    Ok(found)
}

/// `name@version`; an alias names the package itself.
fn snapshot_key(name: &str, version: &str) -> String {
    let is_alias = version
        .split('(')
        .next()
        .is_some_and(|bare| bare.rfind('@') > Some(0));
    match is_alias {
        true => version.to_owned(),
        false => format!("{name}@{version}"),
    }
}

/// A relative path from a folder, below the lock file's.
fn joined(folder: &str, path: &str) -> Option<String> {
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

const YARN_SHAPE: &str = "it is not written as yarn writes version 1";

fn yarn(text: &str, needs: &PackageNeeds) -> Result<LockedPackages, &'static str> {
    if !text.contains("# yarn lockfile v1") {
        return Err(YARN_SHAPE);
    }
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    // A heading may list several requests that one version answers.
    let mut entries: Vec<(Vec<&str>, Vec<&str>)> = Vec::new();
    for line in lines.filter(|line| !line.trim().is_empty()) {
        if indent(line) == 0 {
            let heading = line.strip_suffix(':').ok_or(YARN_SHAPE)?;
            entries.push((heading.split(", ").map(unquoted).collect(), Vec::new()));
        } else {
            entries.last_mut().ok_or(YARN_SHAPE)?.1.push(line);
        }
    }
    let asked = needs.members.values().flatten();
    let asked = asked.map(|(name, range)| (name.clone(), range.clone()));
    let mut open: Vec<(String, String)> = asked.collect();
    open.extend(named(needs).map(|name| (name.to_owned(), String::new())));
    let mut found = LockedPackages::new();
    while let Some((name, range)) = open.pop() {
        let request = format!("{name}@{range}");
        let exact = |one: &&(Vec<&str>, Vec<&str>)| one.0.iter().any(|key| *key == request);
        let by_name = |one: &&(Vec<&str>, Vec<&str>)| {
            let mut names = one.0.iter().filter_map(|key| requested(key));
            names.any(|own| own == name)
        };
        let mut chosen: Vec<_> = entries.iter().filter(exact).collect();
        if chosen.is_empty() {
            // Another range can stand for it (`resolutions`); a member of the workspace has no entry.
            chosen = entries.iter().filter(by_name).collect();
        }
        for (heading, body) in chosen {
            let place = heading.join(", ");
            if found.contains_key(&place) {
                continue;
            }
            let mut needed = false;
            for line in body {
                match indent(line) {
                    2 => needed = NEEDS.contains(&line.trim().trim_end_matches(':')),
                    _ if needed => {
                        let (name, range) = name_and_range(line).ok_or(YARN_SHAPE)?;
                        open.push((name.to_owned(), range.to_owned()));
                    }
                    _ => {}
                }
            }
            found.insert(place, body.join("\n"));
        }
    }
    Ok(found)
}

/// The name in `name@range`; a scope begins with the same sign.
fn requested(request: &str) -> Option<&str> {
    let after_scope = request.get(1..)?.find('@')?;
    request.get(..=after_scope)
}

/// `name "range"`, with either in quotes.
fn name_and_range(line: &str) -> Option<(&str, &str)> {
    let line = line.trim();
    let end = match line.strip_prefix('"') {
        Some(rest) => 2 + rest.find('"')?,
        None => line.find(' ')?,
    };
    let (name, range) = line.split_at(end);
    Some((unquoted(name), unquoted(range)))
}

#[cfg(test)]
mod tests;
