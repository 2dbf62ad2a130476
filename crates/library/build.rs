//! Lists the files of `library/` so that they can be compiled in.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

/// What a build or an editor leaves behind.
const LEFT_OUT: &[&str] = &["node_modules", "bin", "dist", "coverage", ".vitest"];

fn main() -> io::Result<()> {
    let manifest = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let root = manifest.join("../../library");
    println!("cargo:rerun-if-changed=build.rs");
    // A path that is not there counts as changed, so a library that appears later is found.
    println!("cargo:rerun-if-changed={}", root.join("tools").display());
    let mut files = Vec::new();
    if root.is_dir() {
        let clean = collect(&root, &mut files)?;
        if clean {
            println!("cargo:rerun-if-changed={}", root.display());
        }
    }
    files.sort();
    let mut table = String::from("&[\n");
    for file in &files {
        println!("cargo:rerun-if-changed={}", file.display());
        let path = file
            .strip_prefix(&root)
            .unwrap_or(file)
            .display()
            .to_string();
        let _ = writeln!(
            table,
            "    ({path:?}, include_bytes!({:?})),",
            file.display().to_string()
        );
    }
    table.push(']');
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    fs::write(out.join("files.rs"), table)
}

/// Finds files, and tells cargo which directories to watch: those without anything left out below
/// them, because cargo looks at every file of a directory that it watches. Returns whether this
/// is one.
fn collect(directory: &Path, files: &mut Vec<PathBuf>) -> io::Result<bool> {
    let mut clean = true;
    let mut clean_children = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let name = entry.file_name();
        if LEFT_OUT.iter().any(|left_out| name == *left_out) {
            clean = false;
        } else if entry.file_type()?.is_dir() {
            if collect(&entry.path(), files)? {
                clean_children.push(entry.path());
            } else {
                clean = false;
            }
        } else {
            files.push(entry.path());
        }
    }
    if !clean {
        for child in clean_children {
            println!("cargo:rerun-if-changed={}", child.display());
        }
    }
    Ok(clean)
}
