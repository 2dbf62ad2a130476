//! What a plan was made for: the parts of the world that must not move until it is carried out.

use std::fmt;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use walkdir::{DirEntry, WalkDir};

/// Digests are hexadecimal sha256.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Seal {
    pub(crate) project: String,
    pub(crate) stack: String,
    /// Names the recorded state that the plan starts from.
    pub(crate) state: String,
    /// The stack's configuration as it is written down, secrets still encrypted.
    pub(crate) config: String,
    /// Every file of the program that is not installed or generated.
    pub(crate) program: String,
}

/// A part that moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SealedPart {
    Project,
    Stack,
    State,
    Config,
    Program,
}

impl fmt::Display for SealedPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Project => "it is for another project",
            Self::Stack => "it is for another stack",
            Self::State => "the recorded state has changed",
            Self::Config => "the stack's configuration has changed",
            Self::Program => "the program's files have changed",
        })
    }
}

impl Seal {
    /// What is not as it was, with the most telling part first.
    pub(crate) fn moved(&self, now: &Self) -> Vec<SealedPart> {
        let parts = [
            (SealedPart::Project, self.project == now.project),
            (SealedPart::Stack, self.stack == now.stack),
            (SealedPart::State, self.state == now.state),
            (SealedPart::Config, self.config == now.config),
            (SealedPart::Program, self.program == now.program),
        ];
        parts
            .into_iter()
            .filter_map(|(part, same)| (!same).then_some(part))
            .collect()
    }
}

/// Folders whose content is installed, generated or kept by tools.
const SKIPPED_FOLDERS: [&str; 8] = [
    "node_modules",
    "__pycache__",
    "venv",
    ".venv",
    ".git",
    ".pulumi",
    ".nimbus",
    ".mypy_cache",
];

/// The digest of a program's files: their names and contents. `except` is the plan itself, which
/// may well lie beside the program; files of stack configuration are sealed apart.
pub(crate) fn program_digest(root: &Path, except: Option<&Path>) -> io::Result<String> {
    let except = except.and_then(|path| path.canonicalize().ok());
    let mut total = Sha256::new();
    let entries = WalkDir::new(root).sort_by_file_name();
    for entry in entries.into_iter().filter_entry(is_program) {
        let entry = entry.map_err(io::Error::from)?;
        let Some(content) = content(&entry, except.as_ref())? else {
            continue;
        };
        let name = entry
            .path()
            .strip_prefix(root)
            .unwrap_or_else(|_| entry.path());
        let name = name.to_string_lossy();
        total.update(u64::try_from(name.len()).unwrap_or(u64::MAX).to_be_bytes());
        total.update(name.as_bytes());
        total.update(content);
    }
    Ok(hex(&total.finalize()))
}

pub(crate) fn text_digest(text: &str) -> String {
    hex(&Sha256::digest(text.as_bytes()))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn is_program(entry: &DirEntry) -> bool {
    let name = entry.file_name().to_string_lossy();
    if entry.depth() == 0 {
        return true;
    }
    if entry.file_type().is_dir() {
        return !SKIPPED_FOLDERS.contains(&name.as_ref());
    }
    !is_stack_config(&name)
}

/// `Pulumi.<stack>.yaml`, but not `Pulumi.yaml`.
fn is_stack_config(name: &str) -> bool {
    let stem = name
        .strip_suffix(".yaml")
        .or_else(|| name.strip_suffix(".yml"));
    stem.and_then(|stem| stem.strip_prefix("Pulumi."))
        .is_some_and(|stack| !stack.is_empty())
}

/// Digest of what an entry holds; a link is where it points to.
fn content(entry: &DirEntry, except: Option<&PathBuf>) -> io::Result<Option<[u8; 32]>> {
    if entry.path_is_symlink() {
        let target = std::fs::read_link(entry.path())?;
        return Ok(Some(
            Sha256::digest(target.as_os_str().as_encoded_bytes()).into(),
        ));
    }
    if !entry.file_type().is_file() {
        return Ok(None);
    }
    if except.is_some() && entry.path().canonicalize().ok().as_ref() == except {
        return Ok(None);
    }
    // A file may be as large as it likes to be, and cost nothing: it is never held as a whole.
    let mut file = File::open(entry.path())?.take(LARGEST_FILE + 1);
    let mut digest = Digesting(Sha256::new());
    if io::copy(&mut file, &mut digest)? > LARGEST_FILE {
        return Err(io::Error::other(
            "a file of the program has more than 4 GiB",
        ));
    }
    Ok(Some(digest.0.finalize().into()))
}

/// What belongs to a program and is larger than this is no program.
const LARGEST_FILE: u64 = 4 << 30;

struct Digesting(Sha256);

impl io::Write for Digesting {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn seal() -> Seal {
        Seal {
            project: "p".into(),
            stack: "s".into(),
            state: "1".into(),
            config: "c".into(),
            program: "f".into(),
        }
    }

    #[test]
    fn every_part_that_moved_is_named() {
        assert_eq!(seal().moved(&seal()), []);
        let now = Seal {
            state: "2".into(),
            program: "g".into(),
            ..seal()
        };
        assert_eq!(seal().moved(&now), [SealedPart::State, SealedPart::Program]);
        let elsewhere = Seal {
            stack: "t".into(),
            ..seal()
        };
        assert_eq!(seal().moved(&elsewhere), [SealedPart::Stack]);
    }

    #[test]
    fn a_program_is_its_files_and_not_what_tools_put_beside_them() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        let write = |name: &str, text: &str| {
            let path = root.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("index.ts", "one");
        write("Pulumi.yaml", "name: p");
        let plan = root.join("plan.json");
        let digest = || program_digest(root, Some(&plan)).unwrap();
        let first = digest();
        for (name, text) in [
            ("node_modules/x/index.js", "installed"),
            ("Pulumi.dev.yaml", "config: {}"),
            (".git/HEAD", "ref"),
            ("plan.json", "{}"),
        ] {
            write(name, text);
            assert_eq!(digest(), first, "{name}");
        }
        write("src/lib.ts", "new");
        let second = digest();
        assert_ne!(second, first);
        fs::rename(root.join("src/lib.ts"), root.join("src/other.ts")).unwrap();
        assert_ne!(digest(), second, "a name is part of a program");
        write("Pulumi.yaml", "name: q");
        assert_ne!(digest(), second);
    }
}
