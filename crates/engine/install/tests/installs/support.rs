//! Archives, orders and the store of one test.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use nimbus_engine_install::{
    DownloadSource, InstallError, InstallKind, Installed, Installer, Order, Platform, PluginName,
    PluginStore, UnpackLimits,
};
use sha2::{Digest as _, Sha256};
use tar::{Builder, EntryType, Header};
use tempfile::TempDir;

pub(crate) const PROGRAM: &str = "pulumi-resource-thing";

pub(crate) struct InstallSite {
    folder: TempDir,
}

impl InstallSite {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        Self { folder }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn store(&self) -> PluginStore {
        PluginStore::new(self.folder.path().join("plugins"))
    }

    pub(crate) fn installer(&self) -> Installer {
        Installer::new(self.store(), UnpackLimits::default()).expect("an installer")
    }

    pub(crate) fn plugin(&self) -> PathBuf {
        self.store().folder().join("resource-thing-v1.2.3")
    }

    /// Names of everything in the store but our own folder and locks.
    pub(crate) fn stored(&self) -> Vec<String> {
        let entries = fs::read_dir(self.store().folder()).into_iter().flatten();
        let names = entries
            .flatten()
            .map(|entry| entry.file_name().display().to_string());
        let mut names: Vec<_> = names
            .filter(|name| name != ".nimbus" && !name.ends_with(".lock"))
            .collect();
        names.sort();
        names
    }

    /// Names of what is under way.
    pub(crate) fn under_way(&self) -> Vec<String> {
        let entries = fs::read_dir(self.store().folder().join(".nimbus"));
        let entries = entries.into_iter().flatten().flatten();
        entries
            .map(|entry| entry.file_name().display().to_string())
            .collect()
    }

    pub(crate) async fn install(&self, source: DownloadSource) -> Result<Installed, InstallError> {
        self.installer().install(&order(source)).await
    }
}

pub(crate) fn order(source: DownloadSource) -> Order {
    Order {
        kind: InstallKind::Resource,
        name: PluginName::parse("thing").expect("a name"),
        version: Some(semver::Version::new(1, 2, 3)),
        source,
        checksum: None,
        require_checksum: false,
        reinstall: false,
    }
}

pub(crate) fn archive_name() -> String {
    let Platform { os, arch } = Platform::current().expect("a platform");
    format!("pulumi-resource-thing-v1.2.3-{os}-{arch}.tar.gz")
}

pub(crate) fn checksums(archive: &[u8]) -> String {
    format!("{}  {}\n", digest(archive), archive_name())
}

pub(crate) fn digest(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A plugin that says its version, large enough to arrive in pieces.
pub(crate) fn archive() -> Vec<u8> {
    let noise: Vec<u8> = (0_u32..60_000)
        .flat_map(|number| number.wrapping_mul(2_654_435_761).to_be_bytes())
        .collect();
    Pack::new()
        .file(PROGRAM, 0o755, b"#!/bin/sh\necho 1.2.3\n")
        .file("data/noise", 0o644, &noise)
        .done()
}

/// An archive, entry by entry; names are taken as they are.
pub(crate) struct Pack(Builder<Vec<u8>>);

impl Pack {
    pub(crate) fn new() -> Self {
        Self(Builder::new(Vec::new()))
    }

    pub(crate) fn file(self, name: &str, mode: u32, content: &[u8]) -> Self {
        self.entry(name, EntryType::Regular, mode, "", content)
    }

    pub(crate) fn link(self, name: &str, kind: EntryType, target: &str) -> Self {
        self.entry(name, kind, 0o777, target, b"")
    }

    pub(crate) fn entry(
        mut self,
        name: &str,
        kind: EntryType,
        mode: u32,
        target: &str,
        content: &[u8],
    ) -> Self {
        let mut header = Header::new_gnu();
        // Written by hand, because the library refuses to make what a stranger may send.
        let raw = header.as_mut_bytes();
        raw[..name.len()].copy_from_slice(name.as_bytes());
        raw[157..157 + target.len()].copy_from_slice(target.as_bytes());
        header.set_entry_type(kind);
        header.set_mode(mode);
        header.set_size(content.len() as u64);
        header.set_cksum();
        self.0.append(&header, content).expect("an entry");
        self
    }

    pub(crate) fn done(self) -> Vec<u8> {
        let tar = self.0.into_inner().expect("an archive");
        let mut zipped = GzEncoder::new(Vec::new(), Compression::fast());
        zipped.write_all(&tar).expect("memory");
        zipped.finish().expect("memory")
    }
}
