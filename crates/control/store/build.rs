//! Lists the migrations so that they are compiled in: a new file is found without a line of code.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let manifest = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let mut source = String::new();
    for (constant, folder) in [("GLOBAL", "global"), ("TENANT", "tenant")] {
        let folder = manifest.join("migrations").join(folder);
        println!("cargo:rerun-if-changed={}", folder.display());
        list(&mut source, constant, &folder)?;
    }
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    fs::write(out.join("migrations.rs"), source)
}

fn list(source: &mut String, constant: &str, folder: &Path) -> io::Result<()> {
    let mut files: Vec<PathBuf> = fs::read_dir(folder)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<io::Result<_>>()?;
    files.retain(|path| path.extension().is_some_and(|extension| extension == "sql"));
    files.sort();
    let _ = writeln!(source, "pub(super) const {constant}: &[(&str, &str)] = &[");
    for file in files {
        println!("cargo:rerun-if-changed={}", file.display());
        let stem = file.file_stem().unwrap_or_default().to_string_lossy();
        let path = file.display().to_string();
        let _ = writeln!(source, "    ({stem:?}, include_str!({path:?})),");
    }
    source.push_str("];\n");
    Ok(())
}
