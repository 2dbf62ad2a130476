//! Lists the files of the built console so that they are compiled in. Without a build of it (no Node on the
//! machine, or nobody asked) the list is empty, and the server says how to make one.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

/// Where `cargo xtask console` puts it, seen from this crate.
const BUILT: &str = "../../../target/console-packed";

fn main() -> io::Result<()> {
    let manifest = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let built = manifest.join(BUILT);
    // The stamp is written last, and only by a build that succeeded.
    let stamp = built.join(".built");
    println!("cargo:rerun-if-changed={}", stamp.display());
    let mut source = String::from("const FILES: &[ConsoleFile] = &[\n");
    if stamp.is_file() {
        let built = built.canonicalize()?;
        list(&mut source, &built, &built)?;
    }
    source.push_str("];\n");
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    fs::write(out.join("files.rs"), source)
}

fn list(source: &mut String, root: &Path, folder: &Path) -> io::Result<()> {
    let mut entries: Vec<PathBuf> = fs::read_dir(folder)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<io::Result<_>>()?;
    entries.sort();
    for entry in entries {
        if entry.is_dir() {
            list(source, root, &entry)?;
            continue;
        }
        // Every file lies there in both forms, and in no other.
        if entry.extension().is_none_or(|ending| ending != "gz") {
            continue;
        }
        let file = entry.with_extension("");
        let brotli = entry.with_extension("br");
        let name = file.strip_prefix(root).map_err(io::Error::other)?;
        let name = format!("/{}", name.to_string_lossy().replace('\\', "/"));
        let (gzip, brotli) = (entry.display().to_string(), brotli.display().to_string());
        let _ = writeln!(
            source,
            "    ConsoleFile {{ path: {name:?}, gzip: include_bytes!({gzip:?}), brotli: include_bytes!({brotli:?}) }},"
        );
    }
    Ok(())
}
