//! Finding the programs of PostgreSQL.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use crate::PostgresError;

/// Below this the control plane does not work.
const OLDEST: u32 = 15;

/// Folders whose children are versions, and where the programs are in each.
const VERSIONED: [(&str, &str); 3] = [
    ("/usr/lib/postgresql", "bin"),
    ("/opt/homebrew/opt", "bin"),
    ("/usr/local/opt", "bin"),
];
const FIXED: [&str; 2] = ["/usr/local/pgsql/bin", "/usr/libexec/postgresql"];

/// A folder with `initdb` and `postgres` of one version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binaries {
    folder: PathBuf,
    major: u32,
}

impl Binaries {
    /// Looks on `PATH` and where systems install it, and takes the newest.
    /// With `data`, the version that the data was made with.
    pub fn find(data: Option<u32>) -> Result<Self, PostgresError> {
        let looked = places();
        let mut found: Vec<Self> = looked.iter().filter_map(|place| Self::at(place)).collect();
        found.sort_by_key(|binaries| std::cmp::Reverse(binaries.major));
        let newest = found.first().map(|binaries| binaries.major);
        let fitting = found.into_iter().find(|binaries| match data {
            Some(major) => binaries.major == major,
            None => binaries.major >= OLDEST,
        });
        match (fitting, data, newest) {
            (Some(binaries), _, _) => Ok(binaries),
            (None, Some(data), Some(found)) => Err(PostgresError::WrongVersion { data, found }),
            _ => Err(PostgresError::Missing { looked }),
        }
    }

    /// The programs in a folder, if both are there and run.
    pub fn at(folder: &Path) -> Option<Self> {
        // A link on PATH is not enough: PostgreSQL finds its other files beside the real program.
        let postgres = fs::canonicalize(folder.join("postgres")).ok()?;
        let folder = postgres.parent()?.to_owned();
        if !folder.join("initdb").exists() {
            return None;
        }
        // tidy-allow(start): PostgreSQL, the operator's
        let output = Command::new(&postgres).arg("--version").output().ok()?;
        let major = major_version(&String::from_utf8_lossy(&output.stdout))?;
        Some(Self { folder, major })
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    pub fn major(&self) -> u32 {
        self.major
    }

    pub(crate) fn program(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }
}

fn places() -> Vec<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let versioned = VERSIONED.iter().flat_map(|(folder, below)| {
        let children = fs::read_dir(folder).into_iter().flatten().flatten();
        children.map(move |child| child.path().join(below))
    });
    let mut places: Vec<PathBuf> = env::split_paths(&path)
        .filter(|folder| folder.join("postgres").exists())
        .collect();
    places.extend(versioned);
    places.extend(FIXED.iter().map(PathBuf::from));
    places
}

/// Reads `postgres (PostgreSQL) 15.18 (Debian …)`.
fn major_version(text: &str) -> Option<u32> {
    let version = text.split_once("(PostgreSQL) ")?.1;
    let digits: String = version.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_in_every_spelling() {
        for (text, major) in [
            (
                "postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)\n",
                Some(15),
            ),
            ("postgres (PostgreSQL) 18beta1", Some(18)),
            ("postgres (EnterpriseDB) 15", None),
            ("", None),
        ] {
            assert_eq!(major_version(text), major, "{text}");
        }
    }
}
