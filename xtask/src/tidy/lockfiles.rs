//! Lock files pin versions and checksums, not the host a package was downloaded from: everyone
//! resolves through their own registry or mirror.

use super::BrokenRule;
use crate::repo::RepoFile;

/// The one source name that cargo writes for the default registry, wherever it really downloads.
const DEFAULT_CARGO_SOURCE: &str = "registry+https://github.com/rust-lang/crates.io-index";

pub(super) fn check(file: &RepoFile) -> Vec<BrokenRule> {
    let name = file.path.rsplit('/').next().unwrap_or_default();
    let foreign: fn(&str) -> bool = match name {
        "package-lock.json" | "npm-shrinkwrap.json" => {
            |line| line.contains("\"resolved\":") && line.contains("://")
        }
        "Cargo.lock" => {
            |line| line.starts_with("source = ") && !line.contains(DEFAULT_CARGO_SOURCE)
        }
        _ if is_requirements(&file.path) => |line| line.contains("://"),
        _ => return Vec::new(),
    };
    file.text
        .lines()
        .enumerate()
        .filter(|(_, line)| foreign(line.trim()))
        .map(|(index, _)| {
            BrokenRule::at(
                &file.path,
                index + 1,
                "names the host of a package",
                "for npm: rebuild it with --omit-lockfile-registry-resolved; otherwise use the default registry",
            )
        })
        .collect()
}

fn is_requirements(path: &str) -> bool {
    path.starts_with("tools/python/") && path.ends_with(".txt")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::file;

    #[test]
    fn hosts_are_found_in_every_kind_of_lock_file() {
        for (path, text) in [
            (
                "tools/node/package-lock.json",
                "\"resolved\": \"https://mirror.invalid/x.tgz\",",
            ),
            (
                "Cargo.lock",
                "source = \"registry+https://mirror.invalid/index\"",
            ),
            (
                "tools/python/requirements.txt",
                "--index-url https://mirror.invalid/simple",
            ),
        ] {
            assert_eq!(check(&file(path, text)).len(), 1, "{path}");
        }
    }

    #[test]
    fn ordinary_lock_files_pass() {
        for (path, text) in [
            (
                "tools/node/package-lock.json",
                "\"integrity\": \"sha512-x\"",
            ),
            (
                "Cargo.lock",
                "source = \"registry+https://github.com/rust-lang/crates.io-index\"",
            ),
            ("tools/python/requirements.txt", "pulumi==3.260.0"),
            ("docs/a.txt", "https://example.com"),
        ] {
            assert_eq!(check(&file(path, text)), [], "{path}");
        }
    }
}
