//! What plugins are called: on the command line, as archives and as folders.
//!
//! `pulumi-<kind>-<name>-v<version>-<os>-<arch>.tar.gz` is an archive, `<kind>-<name>-v<version>`
//! the folder that it becomes, and `pulumi-<kind>-<name>` the program in it. Names are facts of the
//! public scheme; everything that reaches a path or an address was checked here.

use std::fmt;

use semver::Version;

use crate::error::InstallError;

/// What a plugin is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum InstallKind {
    Resource,
    Analyzer,
    Language,
    Converter,
    Tool,
}

impl InstallKind {
    pub const ALL: [Self; 5] = [
        Self::Resource,
        Self::Analyzer,
        Self::Language,
        Self::Converter,
        Self::Tool,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Resource => "resource",
            Self::Analyzer => "analyzer",
            Self::Language => "language",
            Self::Converter => "converter",
            Self::Tool => "tool",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text)
    }
}

impl fmt::Display for InstallKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A name that is safe in paths and addresses: letters, digits, `-`, `_` and inner dots.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PluginName(String);

impl PluginName {
    pub fn parse(text: &str) -> Result<Self, InstallError> {
        let ends_well = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
        let bytes = text.as_bytes();
        let fits = bytes.len() <= 128
            && ends_well(bytes.first())
            && ends_well(bytes.last())
            && bytes
                .iter()
                .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'));
        if fits {
            return Ok(Self(text.to_owned()));
        }
        Err(InstallError::Malformed {
            text: text.to_owned(),
            expected: "a plugin's name",
        })
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for PluginName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// For which machines an archive is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Platform {
    pub os: String,
    pub arch: String,
}

impl Platform {
    /// The machine that this runs on.
    pub fn current() -> Result<Self, InstallError> {
        let os = match std::env::consts::OS {
            "macos" => "darwin",
            os @ ("linux" | "windows") => os,
            other => return Err(InstallError::Platform(other.to_owned())),
        };
        let arch = match std::env::consts::ARCH {
            "x86_64" => "amd64",
            "aarch64" => "arm64",
            other => return Err(InstallError::Platform(format!("{os} on {other}"))),
        };
        Ok(Self {
            os: os.to_owned(),
            arch: arch.to_owned(),
        })
    }
}

/// One release of one plugin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Release {
    pub(crate) kind: InstallKind,
    pub(crate) name: PluginName,
    pub(crate) version: Version,
}

impl Release {
    pub(crate) fn folder(&self) -> String {
        format!("{}-{}-v{}", self.kind, self.name, self.version)
    }

    pub(crate) fn archive(&self, platform: &Platform) -> String {
        let Platform { os, arch } = platform;
        format!("pulumi-{}-{os}-{arch}.tar.gz", self.folder())
    }

    /// What releases call the list of their checksums.
    pub(crate) fn checksums(&self) -> String {
        format!("pulumi-{}_{}_checksums.txt", self.name, self.version)
    }

    /// The program in the folder.
    pub(crate) fn program(&self) -> String {
        format!("pulumi-{}-{}", self.kind, self.name)
    }

    /// Reads a folder's name.
    pub(crate) fn from_folder(text: &str) -> Option<Self> {
        let (kind, rest) = text.split_once('-')?;
        let kind = InstallKind::parse(kind)?;
        // A name may contain `-v`, a version may not begin with anything but a digit.
        rest.match_indices("-v").find_map(|(at, mark)| {
            Some(Self {
                kind,
                name: PluginName::parse(&rest[..at]).ok()?,
                version: Version::parse(&rest[at + mark.len()..]).ok()?,
            })
        })
    }

    /// Reads an archive's name, if it is for this platform.
    pub(crate) fn from_archive(text: &str, platform: &Platform) -> Option<Self> {
        let Platform { os, arch } = platform;
        let inner = text
            .strip_prefix("pulumi-")?
            .strip_suffix(&format!("-{os}-{arch}.tar.gz"))?;
        Self::from_folder(inner)
    }
}

/// A version as people write it, with or without `v`.
pub fn parse_version(text: &str) -> Result<Version, InstallError> {
    let digits = text.strip_prefix('v').unwrap_or(text);
    Version::parse(digits).map_err(|_| InstallError::Malformed {
        text: text.to_owned(),
        expected: "a version such as 7.0.0",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn linux() -> Platform {
        Platform {
            os: "linux".to_owned(),
            arch: "amd64".to_owned(),
        }
    }

    #[test]
    fn archives_and_folders_read_back() {
        for (name, version) in [
            ("aws", "7.48.0"),
            ("azure-native", "3.0.0-beta.1"),
            ("a-v2", "0.1.0+build.5"),
        ] {
            let release = Release {
                kind: InstallKind::Resource,
                name: PluginName::parse(name).expect("a name"),
                version: parse_version(version).expect("a version"),
            };
            assert_eq!(
                Release::from_folder(&release.folder()),
                Some(release.clone())
            );
            let archive = release.archive(&linux());
            assert_eq!(Release::from_archive(&archive, &linux()), Some(release));
        }
    }

    #[test]
    fn the_public_names_are_met() {
        let release = Release::from_folder("resource-random-v4.21.0").expect("a folder");
        assert_eq!(
            release.archive(&linux()),
            "pulumi-resource-random-v4.21.0-linux-amd64.tar.gz"
        );
        assert_eq!(release.checksums(), "pulumi-random_4.21.0_checksums.txt");
        assert_eq!(release.program(), "pulumi-resource-random");
    }

    #[test]
    fn names_that_would_leave_the_folder_are_refused() {
        for text in [
            "", "..", "a/b", "../a", "a\\b", ".a", "a.", "-a", "a b", "ä", "a\0",
        ] {
            assert!(PluginName::parse(text).is_err(), "{text:?}");
        }
        for text in ["1.0", "x", "", "1.0.0/../..", "latest"] {
            assert!(parse_version(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn other_files_are_passed_over() {
        for text in [
            "resource-aws",
            "resource-aws-v1",
            "thing-aws-v1.0.0",
            "resource-aws-v1.0.0.lock",
            "resource-aws-v1.0.0.partial",
            ".nimbus",
        ] {
            assert_eq!(Release::from_folder(text), None, "{text}");
        }
        let other = "pulumi-resource-aws-v1.0.0-darwin-arm64.tar.gz";
        assert_eq!(Release::from_archive(other, &linux()), None);
    }
}
