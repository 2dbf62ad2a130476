//! The packages of the shipped programs, fetched once into the data directory.

use std::path::{Path, PathBuf};

use nimbus_control_postgres::npm_install;
use nimbus_core::Result;

/// Where they are in what is shipped.
const BELOW: &str = "stacks";

/// The folder of the shipped programs with their packages, in a data directory.
fn entry(data_dir: &Path) -> PathBuf {
    data_dir.join("tools").join("packages")
}

/// What was fetched earlier: the shipped `stacks` with its `node_modules`.
pub fn fetched_packages(data_dir: &Path) -> Option<PathBuf> {
    let folder = entry(data_dir).join(BELOW);
    let lock = nimbus_library::files()
        .iter()
        .find(|(path, _)| *path == "stacks/package-lock.json")?;
    // Another release may need others.
    let same = std::fs::read(folder.join("package-lock.json")).is_ok_and(|kept| kept == lock.1);
    (same && folder.join("node_modules").is_dir()).then_some(folder)
}

/// Fetches the packages of the shipped programs.
///
/// # Errors
///
/// When npm is missing or fails; nothing is left then.
pub fn fetch_packages(data_dir: &Path) -> Result<PathBuf> {
    let target = entry(data_dir);
    let files = nimbus_library::files().iter();
    npm_install(
        &target,
        BELOW,
        files.map(|(path, content)| (*path, *content)),
        |_| Ok(()),
    )?;
    Ok(target.join(BELOW))
}
