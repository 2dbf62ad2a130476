//! The files that make up a stack's program, for its fingerprint.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::fingerprint::{Fingerprint, Input};

/// What a program does not consist of: installed packages (the lock file stands for them), what a
/// run or an editor leaves behind, and tests.
const LEFT_OUT: &[&str] = &[
    "node_modules",
    "__pycache__",
    "venv",
    ".venv",
    "dist",
    "bin",
    "coverage",
    ".git",
    ".nimbus",
    "docs",
];

/// Adds every file below `directory`, and those files of the directories above it that decide which
/// packages are installed, up to and including `root`.
pub fn add_program(fingerprint: &mut Fingerprint, directory: &Path, root: &Path) -> io::Result<()> {
    for file in files(directory)? {
        let name = file
            .strip_prefix(directory)
            .unwrap_or(&file)
            .display()
            .to_string();
        fingerprint.add(Input::ProgramFile(name), fs::read(&file)?);
    }
    for above in directory
        .ancestors()
        .skip(1)
        .take_while(|above| above.starts_with(root))
    {
        for name in [
            "package.json",
            "package-lock.json",
            "tsconfig.json",
            "tsconfig.base.json",
        ] {
            let file = above.join(name);
            if file.is_file() {
                let depth = directory
                    .strip_prefix(above)
                    .map_or(0, |rest| rest.components().count());
                let shown = format!("{}{name}", "../".repeat(depth));
                fingerprint.add(Input::ProgramFile(shown), fs::read(&file)?);
            }
        }
    }
    Ok(())
}

/// Every file of a program, sorted.
pub fn files(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut open = vec![directory.to_owned()];
    while let Some(next) = open.pop() {
        for entry in fs::read_dir(&next)? {
            let entry = entry?;
            let name = entry.file_name();
            let kind = entry.file_type()?;
            if LEFT_OUT.iter().any(|left_out| name == *left_out) {
                continue;
            }
            if kind.is_dir() {
                open.push(entry.path());
            } else if kind.is_file() {
                found.push(entry.path());
            }
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fingerprint(root: &Path) -> Fingerprint {
        let mut fingerprint = Fingerprint::default();
        add_program(&mut fingerprint, &root.join("network/src"), root).unwrap();
        fingerprint
    }

    #[test]
    fn code_and_lock_file_count_and_installed_packages_do_not() {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path();
        fs::create_dir_all(root.join("network/src/node_modules/x")).unwrap();
        fs::write(root.join("network/src/index.ts"), "1").unwrap();
        fs::write(root.join("package-lock.json"), "{}").unwrap();
        let first = fingerprint(root);
        let names: Vec<_> = first.inputs().map(|(input, _)| input.to_string()).collect();
        assert_eq!(names, ["file ../../package-lock.json", "file index.ts"]);

        fs::write(root.join("network/src/node_modules/x/y.js"), "z").unwrap();
        assert_eq!(fingerprint(root), first);
        fs::write(root.join("package-lock.json"), "{\"a\":1}").unwrap();
        assert_ne!(fingerprint(root), first, "other packages may be installed");
        let second = fingerprint(root);
        fs::write(root.join("network/src/vpc.ts"), "2").unwrap();
        assert_ne!(fingerprint(root), second);
    }
}
