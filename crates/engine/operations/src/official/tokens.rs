//! Packages that a program names in its own text.
//!
//! Most packages are known from the SDKs that are installed. A program may also register resources
//! by their type alone, such as `new CustomResource('shop:index:Cart', …)`, and then only its text
//! says that there is a package `shop`. A name too many does no harm here.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use nimbus_engine_model::provider_package;

/// Folders with other people's code.
const FOREIGN: [&str; 5] = [
    "node_modules",
    "venv",
    "site-packages",
    "__pycache__",
    "dist",
];
const SOURCES: [&str; 7] = ["ts", "js", "mts", "mjs", "cts", "cjs", "py"];
/// Larger ones are generated, and have an SDK's description beside them.
const LARGEST: u64 = 1024 * 1024;
const MOST_FILES: usize = 5_000;

/// Names in all sources below a folder.
pub(super) fn packages_below(folder: &Path) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let mut folders = vec![folder.to_owned()];
    let mut files = 0;
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let Ok(kind) = entry.file_type() else {
                continue;
            };
            if kind.is_dir() {
                folders.extend(own_folder(entry.path()));
            } else if is_source(&entry.path()) && files < MOST_FILES {
                files += 1;
                let small = entry.metadata().is_ok_and(|data| data.len() <= LARGEST);
                let text = small.then(|| fs::read_to_string(entry.path()).ok());
                names.extend(packages_in(&text.flatten().unwrap_or_default()));
            }
        }
    }
    names
}

fn own_folder(path: PathBuf) -> Option<PathBuf> {
    let name = path.file_name()?.to_str()?;
    let foreign = name.starts_with('.') || FOREIGN.contains(&name);
    (!foreign).then_some(path)
}

fn is_source(path: &Path) -> bool {
    let ending = path.extension().and_then(|ending| ending.to_str());
    ending.is_some_and(|ending| SOURCES.contains(&ending))
}

/// Packages of everything in quotes that looks like a type.
fn packages_in(text: &str) -> BTreeSet<String> {
    let quoted = text.split(['"', '\'', '`']);
    quoted.filter_map(package).map(str::to_owned).collect()
}

/// The package of `package:module:Type`.
fn package(token: &str) -> Option<&str> {
    if let Some(package) = provider_package(token) {
        return is_name(package).then_some(package);
    }
    let mut parts = token.splitn(3, ':');
    let (package, module, type_) = (parts.next()?, parts.next()?, parts.next()?);
    let is_token = is_name(package) && !module.contains(char::is_whitespace) && is_type(type_);
    // The engine's own types are nobody's package.
    (is_token && package != "pulumi").then_some(package)
}

fn is_name(text: &str) -> bool {
    let mut letters = text.chars();
    letters
        .next()
        .is_some_and(|first| first.is_ascii_lowercase())
        && letters.all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
}

/// Parts of a type may be put together only when the program runs.
fn is_type(text: &str) -> bool {
    let allowed = |c: char| c.is_alphanumeric() || "_${}".contains(c);
    !text.is_empty() && text.chars().all(allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_in_quotes_name_their_packages() {
        let text = "new Thing('shop:index:Cart', `till:x/y:${kind}`, \"pulumi:providers:aws\");\n\
                    super(\"my-own:index:Box\"); // arn 'arn:aws:iam::1:role/x' 'a: b' 'http://x:80/'\n\
                    'pulumi:pulumi:Stack'; 'urn:pulumi:dev::p::t::n'; 'note: this: that'";
        let found: Vec<_> = packages_in(text).into_iter().collect();
        assert_eq!(found, ["aws", "my-own", "shop", "till"]);
    }

    #[test]
    fn only_sources_of_the_program_itself_are_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().expect("a folder")).expect("writable");
            fs::write(path, text).expect("writable");
        };
        write("index.ts", "'a:x:Y'");
        write("parts/more.py", "\"b:x:Y\"");
        write("node_modules/c/index.js", "'c:x:Y'");
        write(".cache/d.js", "'d:x:Y'");
        write("readme.md", "'e:x:Y'");
        let found: Vec<_> = packages_below(folder.path()).into_iter().collect();
        assert_eq!(found, ["a", "b"]);
    }
}
