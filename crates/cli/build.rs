//! Embeds the pages of `docs/errors` so that `nimbus explain` needs no files.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    let pages = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/errors");
    println!("cargo::rerun-if-changed={}", pages.display());
    let mut names: Vec<String> = fs::read_dir(&pages)
        .expect("docs/errors is part of the repository")
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| name.starts_with("NIM-") && name.ends_with(".md"))
        .collect();
    names.sort();
    let mut table = String::from("&[\n");
    for name in names {
        let path = pages.join(&name);
        println!("cargo::rerun-if-changed={}", path.display());
        let code = name.trim_end_matches(".md");
        // The text itself, not a path: the binary must not depend on where it was built.
        let text = fs::read_to_string(&path).expect("a page that was just listed");
        let _ = writeln!(table, "    ({code:?}, {text:?}),");
    }
    table.push_str("]\n");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    fs::write(out.join("error_pages.rs"), table).expect("OUT_DIR is writable");
}
