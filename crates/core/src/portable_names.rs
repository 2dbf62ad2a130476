//! Names of files that mean the same on every machine.
//!
//! What one person puts on a server another writes to a disk on which letters may have no case, where some names are
//! devices, and where some folders are programs' own: whoever gets there by another spelling is there as well. Pure.

use std::collections::BTreeMap;
use std::fmt;

/// Devices of one system, whatever follows a dot.
const DEVICES: [&str; 6] = ["con", "prn", "aux", "nul", "com", "lpt"];
/// Folders that programs on people's machines act on: what lies in one is carried out or believed.
const OWNED: [&str; 6] = [".git", ".hg", ".svn", ".bzr", ".nimbus", ".pulumi"];

/// Why a name of a file or folder cannot be kept everywhere; `None` if it can.
///
/// Only letters, digits and `._-@+` are known to mean the same everywhere.
pub fn unportable_name(name: &str) -> Option<&'static str> {
    let known = |byte: u8| byte.is_ascii_alphanumeric() || b"._-@+".contains(&byte);
    if name.is_empty() || name == "." || name == ".." {
        return Some("names no file");
    }
    if name.len() > 100 {
        return Some("is longer than 100 characters");
    }
    if !name.bytes().all(known) {
        return Some("has other characters than letters, digits and ._-@+");
    }
    if name.ends_with('.') {
        return Some("ends with a dot, which some systems leave out");
    }
    let folded = name.to_ascii_lowercase();
    if OWNED.contains(&folded.as_str()) {
        return Some("is a folder that other programs act on");
    }
    if is_device(folded.split('.').next().unwrap_or_default()) {
        return Some("is a device on some systems");
    }
    None
}

fn is_device(stem: &str) -> bool {
    let numbered = |device: &str| match stem.strip_prefix(device) {
        Some(number) => number.len() == 1 && number.bytes().all(|byte| byte.is_ascii_digit()),
        None => false,
    };
    DEVICES[..4].contains(&stem) || DEVICES[4..].iter().any(|device| numbered(device))
}

/// Two paths that cannot be beside each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NameCollision<'a> {
    /// Files or folders that are one where letters have no case.
    Case { one: &'a str, other: &'a str },
    /// A file where another one has a folder.
    Inside { file: &'a str, path: &'a str },
}

impl fmt::Display for NameCollision<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Case { one, other } => write!(f, "`{one}` and `{other}` differ by case alone"),
            Self::Inside { file, path } => {
                write!(f, "`{file}` is a file, and `{path}` is inside of it")
            }
        }
    }
}

/// The first two of these paths, with `/` between their parts, that cannot be beside each other. Each is given once.
pub fn name_collision<'a>(paths: impl Iterator<Item = &'a str>) -> Option<NameCollision<'a>> {
    struct KnownName<'a> {
        spelled: &'a str,
        path: &'a str,
    }
    let mut known: BTreeMap<String, KnownName<'a>> = BTreeMap::new();
    for path in paths {
        let ends = path.match_indices('/').map(|(end, _)| end);
        for end in ends.chain([path.len()]) {
            let spelled = &path[..end];
            let folded = spelled.to_ascii_lowercase();
            let Some(before) = known.get(&folded) else {
                known.insert(folded, KnownName { spelled, path });
                continue;
            };
            if before.spelled != spelled {
                let (one, other) = (before.spelled, spelled);
                return Some(NameCollision::Case { one, other });
            }
            // One of the two ends here, and the other goes on.
            if before.path == before.spelled && path != spelled {
                let file = before.path;
                return Some(NameCollision::Inside { file, path });
            }
            if before.path != before.spelled && path == spelled {
                let (file, path) = (path, before.path);
                return Some(NameCollision::Inside { file, path });
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_devices_or_belong_to_programs_are_known_in_every_spelling() {
        let refused = [
            "",
            ".",
            "..",
            "con",
            "CON",
            "Con.ts",
            "aux.h",
            "nul",
            "NUL.tar.gz",
            "com1",
            "LPT9.txt",
            "prn.",
            "x.",
            ".git",
            ".GIT",
            ".Git",
            ".hg",
            ".svn",
            ".nimbus",
            ".NIMBUS",
            ".pulumi",
            "a b",
            "a\u{200c}b",
            "\u{212a}",
            "a:b",
            "a\\b",
            "a\0b",
            "a*",
            "café",
            "a~1",
        ];
        for name in refused {
            assert!(unportable_name(name).is_some(), "{name:?}");
        }
        assert!(unportable_name(&"x".repeat(101)).is_some());
        let kept = [
            "index.ts",
            "Pulumi.yaml",
            ".gitignore",
            "console.ts",
            "com.ts",
            "com10.ts",
            "lpt",
            "nullable.py",
            "auxiliary",
            "@scope",
            "a+b",
            "tsconfig.json",
            "x-1_2",
            ".eslintrc",
        ];
        for name in kept {
            assert_eq!(unportable_name(name), None, "{name:?}");
        }
    }

    #[test]
    fn paths_that_are_one_place_on_some_disk_are_found() {
        let of = |paths: &[&'static str]| {
            name_collision(paths.iter().copied()).map(|found| found.to_string())
        };
        let case = of(&["stacks/a/src/Index.ts", "stacks/a/src/index.ts"]);
        assert!(case.is_some_and(|text| text.contains("differ by case alone")));
        // Folders of the two become one, and with it programs that have nothing to do with each other.
        let folders = of(&["stacks/Net/src/a.ts", "stacks/net/src/b.ts"]);
        assert_eq!(
            folders.as_deref(),
            Some("`stacks/Net` and `stacks/net` differ by case alone")
        );
        for paths in [["a/b", "a/b/c"], ["a/b/c", "a/b"]] {
            let inside = of(&paths);
            assert_eq!(
                inside.as_deref(),
                Some("`a/b` is a file, and `a/b/c` is inside of it")
            );
        }
        assert_eq!(of(&["a/b", "a/bc", "a/b.c", "a/d/e", "a/d/f", "b"]), None);
    }
}
