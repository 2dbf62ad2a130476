//! What an archive must be.

use std::fmt;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use sha2::{Digest as _, Sha256};

use crate::error::InstallError;

/// A SHA-256 checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checksum([u8; 32]);

/// What the archive was compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proof {
    /// A checksum that the caller gave.
    Given,
    /// A checksum that is published beside the archive.
    Published,
    /// Nobody said what it should be.
    None,
}

impl Proof {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Given => "given",
            Self::Published => "published",
            Self::None => "none",
        }
    }
}

impl Checksum {
    /// Reads 64 hexadecimal digits.
    pub fn parse(text: &str) -> Result<Self, InstallError> {
        Self::read(text).ok_or_else(|| InstallError::Malformed {
            text: text.to_owned(),
            expected: "a SHA-256 checksum of 64 hexadecimal digits",
        })
    }

    fn read(text: &str) -> Option<Self> {
        let text = text.trim();
        let mut bytes = [0; 32];
        hex::decode_to_slice(text, &mut bytes).ok()?;
        Some(Self(bytes))
    }

    /// The checksum of a file in a list: lines of `<checksum>  <name>`, or one checksum alone.
    pub(crate) fn in_list(list: &str, file: &str) -> Option<Self> {
        let lines = list.lines().filter(|line| !line.trim().is_empty());
        let of_file = |line: &str| {
            let (checksum, name) = line.trim().split_once(char::is_whitespace)?;
            let name = name.trim().trim_start_matches('*');
            let name = name.rsplit('/').next().unwrap_or(name);
            (name == file).then(|| Self::read(checksum)).flatten()
        };
        let mut all = lines.clone();
        match (all.next(), all.next()) {
            (Some(only), None) if Self::read(only).is_some() => Self::read(only),
            _ => lines.into_iter().find_map(of_file),
        }
    }

    pub(crate) fn of_file(path: &Path) -> io::Result<Self> {
        let mut file = File::open(path)?;
        let mut hasher = Sha256::new();
        let mut buffer = vec![0; 1 << 16];
        loop {
            match file.read(&mut buffer)? {
                0 => return Ok(Self(hasher.finalize().into())),
                count => hasher.update(&buffer[..count]),
            }
        }
    }

    pub(crate) fn of_text(text: &str) -> Self {
        Self(Sha256::digest(text).into())
    }
}

impl fmt::Display for Checksum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_name_their_files_in_every_common_form() {
        let (a, b) = (Checksum::of_text("a"), Checksum::of_text("b"));
        let list = format!("{a}  x.tar.gz\n\n{b} *dist/y.tar.gz\nnonsense z.tar.gz\n");
        assert_eq!(Checksum::in_list(&list, "x.tar.gz"), Some(a));
        assert_eq!(Checksum::in_list(&list, "y.tar.gz"), Some(b));
        assert_eq!(Checksum::in_list(&list, "z.tar.gz"), None);
        assert_eq!(Checksum::in_list(&list, "tar.gz"), None);
        assert_eq!(Checksum::in_list(&format!("{a}\n"), "any"), Some(a));
        assert_eq!(Checksum::in_list(&format!("{a}  other\n"), "any"), None);
    }

    #[test]
    fn a_checksum_reads_back_and_nonsense_does_not() {
        let checksum = Checksum::of_text("x");
        let text = checksum.to_string().to_uppercase();
        assert_eq!(Checksum::parse(&text).expect("digits"), checksum);
        for text in ["", "abc", &"g".repeat(64), &"ä".repeat(32)] {
            assert!(Checksum::parse(text).is_err(), "{text}");
        }
    }
}
