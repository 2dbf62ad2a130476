//! What is inside an archive, in the order in which it is hashed.

use std::collections::{HashMap, HashSet};
use std::io::{self, Cursor, Read};
use std::path::{Path, PathBuf};

use nimbus_engine_files::ProjectFiles;
use nimbus_engine_model::{Archive, Asset, PropertyMap, PropertyValue};
use sha2::{Digest as _, Sha256};

use super::tar::TarStream;
use super::{AssetBudget, AssetHasher, LARGEST_OF_STRANGERS, unreadable};
use crate::error::MonitorError;

/// What one archive may hold when it is unpacked in memory. A few megabytes of it can say terabytes.
const MOST_UNPACKED: u64 = 1 << 30;

/// Contents by address.
pub(crate) type Fetched = HashMap<String, Vec<u8>>;

/// Directories and files of this name belong to the engine and are never part of an archive.
const BOOKKEEPING: &str = ".pulumi";

#[derive(Clone, Copy, PartialEq, Eq)]
enum ArchiveFormat {
    Tar,
    TarGzip,
    Zip,
}

impl ArchiveFormat {
    fn of(path: &str) -> Option<Self> {
        let formats = [
            (".tar", Self::Tar),
            (".tgz", Self::TarGzip),
            (".tar.gz", Self::TarGzip),
            (".zip", Self::Zip),
            (".jar", Self::Zip),
        ];
        let found = formats.iter().find(|(ending, _)| path.ends_with(ending));
        found.map(|(_, format)| *format)
    }
}

struct ArchiveMember {
    name: String,
    source: MemberSource,
}

enum MemberSource {
    File(PathBuf),
    Bytes(Vec<u8>),
}

impl AssetHasher {
    pub(super) fn archive_hash(&self, archive: &Archive) -> Result<String, MonitorError> {
        if let Archive::Path { path, .. } = archive
            && ArchiveFormat::of(path).is_some()
        {
            return file_hash(&self.files, &self.directory.join(path));
        }
        let mut seen = HashSet::new();
        let mut stream = TarStream::new(DigestWriter(Sha256::new()));
        for member in self.members(archive)? {
            // Overlapping parts may bring the same file twice; the first counts.
            if seen.insert(member.name.clone()) {
                append(&self.files, &mut stream, &member)?;
            }
        }
        let digest = stream.finish();
        let digest = digest.map_err(|error| unreadable(Path::new("archive"), &error))?;
        Ok(hex::encode(digest.0.finalize()))
    }

    fn members(&self, archive: &Archive) -> Result<Vec<ArchiveMember>, MonitorError> {
        match archive {
            Archive::Assets { assets, .. } => self.table_members(assets),
            Archive::Path { path, .. } => {
                let full = self.directory.join(path);
                match ArchiveFormat::of(path) {
                    Some(format) => {
                        let content = self.whole(&full)?;
                        let members = unpacked(format, content, &self.room);
                        members.map_err(|error| unreadable(&full, &error))
                    }
                    None => directory_members(&self.files, &full),
                }
            }
            Archive::Uri { uri, .. } => {
                let refused = |reason: &str| MonitorError::Asset {
                    path: uri.clone(),
                    reason: reason.to_owned(),
                };
                let path = url::Url::parse(uri).map_err(|error| refused(&error.to_string()))?;
                let format = ArchiveFormat::of(path.path());
                let format = format.ok_or_else(|| refused("it is no archive of a known kind"))?;
                let content = self.copied(uri)?;
                let members = unpacked(format, content, &self.room);
                members.map_err(|error| refused(&error.to_string()))
            }
            Archive::HashOnly { hash } => Err(MonitorError::Asset {
                path: format!("archive {hash}"),
                reason: "its content is not known, only its hash".to_owned(),
            }),
        }
    }

    fn table_members(&self, assets: &PropertyMap) -> Result<Vec<ArchiveMember>, MonitorError> {
        let mut members = Vec::new();
        for (name, value) in assets {
            match value {
                PropertyValue::Asset(asset) => members.push(ArchiveMember {
                    name: name.clone(),
                    source: self.source(asset)?,
                }),
                PropertyValue::Archive(inner) => {
                    let inner = self.members(inner)?.into_iter();
                    members.extend(inner.map(|member| ArchiveMember {
                        name: clean(&format!("{name}/{}", member.name)),
                        ..member
                    }));
                }
                _ => {
                    return Err(MonitorError::Asset {
                        path: name.clone(),
                        reason: "it is neither an asset nor an archive".to_owned(),
                    });
                }
            }
        }
        Ok(members)
    }

    fn source(&self, asset: &Asset) -> Result<MemberSource, MonitorError> {
        match asset {
            Asset::Path { path, .. } => Ok(MemberSource::File(self.directory.join(path))),
            Asset::Text { .. } | Asset::Uri { .. } | Asset::HashOnly { .. } => {
                self.content(asset).map(MemberSource::Bytes)
            }
        }
    }
}

pub(super) fn file_hash(files: &ProjectFiles, path: &Path) -> Result<String, MonitorError> {
    let hash = || -> io::Result<String> {
        let mut digest = DigestWriter(Sha256::new());
        let most = match files.is_restricted() {
            true => LARGEST_OF_STRANGERS,
            false => u64::MAX - 1,
        };
        let file = files.open(path)?;
        let too_large = || io::Error::other("it has more than 4 GiB");
        if file.metadata()?.len() > most || io::copy(&mut file.take(most + 1), &mut digest)? > most
        {
            return Err(too_large());
        }
        Ok(hex::encode(digest.0.finalize()))
    };
    hash().map_err(|error| unreadable(path, &error))
}

fn append(
    files: &ProjectFiles,
    stream: &mut TarStream<DigestWriter>,
    member: &ArchiveMember,
) -> Result<(), MonitorError> {
    match &member.source {
        MemberSource::Bytes(content) => {
            let size = content.len() as u64;
            let written = stream.file(&member.name, size, &mut content.as_slice());
            written.map_err(|error| unreadable(Path::new(&member.name), &error))
        }
        MemberSource::File(path) => {
            let mut copy = || -> io::Result<()> {
                let mut file = files.open(path)?;
                let size = file.metadata()?.len();
                if files.is_restricted() && size > LARGEST_OF_STRANGERS {
                    return Err(io::Error::other("it has more than 4 GiB"));
                }
                stream.file(&member.name, size, &mut file)
            };
            copy().map_err(|error| unreadable(path, &error))
        }
    }
}

/// Files of a directory, depth first, each level by name. Links to files count as files.
fn directory_members(
    files: &ProjectFiles,
    root: &Path,
) -> Result<Vec<ArchiveMember>, MonitorError> {
    let metadata = files
        .metadata(root)
        .map_err(|error| unreadable(root, &error))?;
    if !metadata.is_dir() {
        return Err(MonitorError::Asset {
            path: root.display().to_string(),
            reason: "it is neither a directory nor an archive of a known kind".to_owned(),
        });
    }
    let skips = |path: &Path| path.file_name().is_some_and(|name| name == BOOKKEEPING);
    let tree = files
        .tree(root, skips)
        .map_err(|error| unreadable(root, &error))?;
    let members = tree.into_iter().map(|file| ArchiveMember {
        name: file.name.to_string_lossy().into_owned(),
        source: MemberSource::File(file.path),
    });
    Ok(members.collect())
}

fn unpacked(
    format: ArchiveFormat,
    content: Vec<u8>,
    room: &AssetBudget,
) -> io::Result<Vec<ArchiveMember>> {
    let most = room.left().min(MOST_UNPACKED);
    let members = match format {
        ArchiveFormat::Tar => untarred(content.as_slice(), most),
        ArchiveFormat::TarGzip => untarred(flate2::read::GzDecoder::new(content.as_slice()), most),
        ArchiveFormat::Zip => unzipped(content, most),
    }?;
    let sizes = members.iter().map(|member| match &member.source {
        MemberSource::Bytes(content) => content.len(),
        MemberSource::File(_) => 0,
    });
    room.take(sizes.sum())?;
    Ok(members)
}

/// All of a member, as long as there is `room` for it.
fn unpack(member: impl Read, room: &mut u64) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    member.take(*room + 1).read_to_end(&mut content)?;
    let left = room.checked_sub(content.len() as u64);
    *room =
        left.ok_or_else(|| io::Error::other("it holds more than is unpacked for a resource"))?;
    Ok(content)
}

fn untarred(stream: impl Read, mut room: u64) -> io::Result<Vec<ArchiveMember>> {
    let mut members = Vec::new();
    for entry in ::tar::Archive::new(stream).entries()? {
        let entry = entry?;
        if !entry.header().entry_type().is_file() {
            continue;
        }
        let name = clean(&entry.path()?.to_string_lossy());
        let content = unpack(entry, &mut room)?;
        members.push(ArchiveMember {
            name,
            source: MemberSource::Bytes(content),
        });
    }
    Ok(members)
}

fn unzipped(content: Vec<u8>, mut room: u64) -> io::Result<Vec<ArchiveMember>> {
    let mut archive = zip::ZipArchive::new(Cursor::new(content)).map_err(io::Error::other)?;
    let mut members = Vec::new();
    for index in 0..archive.len() {
        let file = archive.by_index(index).map_err(io::Error::other)?;
        if file.is_dir() {
            continue;
        }
        let name = clean(&file.name().map_err(io::Error::other)?);
        let content = unpack(file, &mut room)?;
        members.push(ArchiveMember {
            name,
            source: MemberSource::Bytes(content),
        });
    }
    Ok(members)
}

/// A path without empty segments and dots.
fn clean(path: &str) -> String {
    let mut segments: Vec<&str> = Vec::new();
    for segment in path.split('/') {
        match segment {
            "" | "." => {}
            ".." if segments.last().is_some_and(|last| *last != "..") => drop(segments.pop()),
            other => segments.push(other),
        }
    }
    let joined = segments.join("/");
    if path.starts_with('/') {
        format!("/{joined}")
    } else {
        joined
    }
}

struct DigestWriter(Sha256);

impl io::Write for DigestWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hasher(directory: &Path) -> AssetHasher {
        AssetHasher {
            files: ProjectFiles::unrestricted(),
            directory: directory.to_owned(),
            fetched: Fetched::new(),
            room: AssetBudget::of(&ProjectFiles::unrestricted()),
        }
    }

    fn text(text: &str) -> PropertyValue {
        PropertyValue::Asset(Asset::Text {
            hash: String::new(),
            text: text.to_owned(),
        })
    }

    fn table(members: &[(&str, PropertyValue)]) -> Archive {
        let members = members.iter();
        Archive::Assets {
            hash: String::new(),
            assets: members
                .map(|(name, value)| ((*name).to_owned(), value.clone()))
                .collect(),
        }
    }

    fn path(path: &str) -> Archive {
        Archive::Path {
            hash: String::new(),
            path: path.to_owned(),
        }
    }

    #[test]
    fn what_swells_when_it_is_unpacked_is_not_unpacked() {
        const SIZE: u64 = 1 << 20;
        let mut header = ::tar::Header::new_gnu();
        header.set_size(SIZE);
        let mut tar = ::tar::Builder::new(Vec::new());
        let nothing = io::repeat(0).take(SIZE);
        tar.append_data(&mut header, "zeros", nothing)
            .expect("an archive");
        let tar = tar.into_inner().expect("an archive");
        let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
        zip.start_file("zeros", zip::write::SimpleFileOptions::default())
            .expect("an archive");
        io::copy(&mut io::repeat(0).take(SIZE), &mut zip).expect("an archive");
        let zip = zip.finish().expect("an archive").into_inner();
        assert!((zip.len() as u64) < SIZE / 100, "it swells");
        for (room, fits) in [(SIZE, true), (SIZE - 1, false)] {
            assert_eq!(untarred(tar.as_slice(), room).is_ok(), fits);
            assert_eq!(unzipped(zip.clone(), room).is_ok(), fits);
        }
    }

    #[test]
    fn hashes_are_those_that_the_official_engine_records() {
        let hash = |archive| {
            hasher(Path::new("/"))
                .archive_hash(&archive)
                .expect("readable")
        };
        assert_eq!(
            hash(table(&[])),
            "5f70bf18a086007016e948b04aed3b82103a36bea41755b6cddfaf10ace3c6ef"
        );
        assert_eq!(
            hash(table(&[("foo", text("a test asset"))])),
            "27ab4a14a617df10cff3e1cf4e30cf510302afe56bf4cc91f84041c9f7b62fd8"
        );
        assert_eq!(
            hash(table(&[("foo", text(""))])),
            "d2587a875f82cdf3d3e6cfe9f8c6e6032be5dde8c344466e664e628da15757b0"
        );
    }

    #[test]
    fn a_directory_and_a_table_of_its_files_are_the_same() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let root = directory.path().join("folder");
        std::fs::create_dir_all(root.join("sub/.pulumi")).expect("directories");
        std::fs::write(root.join("sub/b.txt"), "b").expect("a file");
        std::fs::write(root.join("a.txt"), "a").expect("a file");
        std::fs::write(root.join("sub/.pulumi/state"), "not part of it").expect("a file");
        std::os::unix::fs::symlink("a.txt", root.join("link.txt")).expect("a link");
        let hasher = hasher(directory.path());
        let table = table(&[
            ("a.txt", text("a")),
            ("link.txt", text("a")),
            ("sub/b.txt", text("b")),
        ]);
        assert_eq!(
            hasher.archive_hash(&path("folder")),
            hasher.archive_hash(&table)
        );
    }

    #[test]
    fn a_link_to_a_directory_is_the_directory() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        std::fs::create_dir(directory.path().join("folder")).expect("a directory");
        std::fs::write(directory.path().join("folder/a.txt"), "a").expect("a file");
        std::os::unix::fs::symlink("folder", directory.path().join("link")).expect("a link");
        let hasher = hasher(directory.path());
        let hash = |name: &str| hasher.archive_hash(&path(name)).expect("readable");
        assert_eq!(hash("link"), hash("folder"));
        assert_ne!(
            hash("link"),
            hasher.archive_hash(&table(&[])).expect("empty")
        );
    }

    #[test]
    fn an_archive_file_is_hashed_as_it_is_and_unpacked_inside_another() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let mut builder = ::tar::Builder::new(Vec::new());
        let mut header = ::tar::Header::new_gnu();
        header.set_size(1);
        header.set_cksum();
        builder
            .append_data(&mut header, "./inner.txt", &b"i"[..])
            .expect("writing to memory");
        let bytes = builder.into_inner().expect("writing to memory");
        std::fs::write(directory.path().join("x.tar"), &bytes).expect("a file");
        let hasher = hasher(directory.path());
        let alone = hasher.archive_hash(&path("x.tar")).expect("readable");
        assert_eq!(alone, hex::encode(Sha256::digest(&bytes)));
        let nested = table(&[("lib", PropertyValue::Archive(path("x.tar")))]);
        let flat = table(&[("lib/inner.txt", text("i"))]);
        assert_eq!(hasher.archive_hash(&nested), hasher.archive_hash(&flat));
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let error = hasher(Path::new("/nowhere")).archive_hash(&path("folder"));
        assert!(
            error
                .expect_err("absent")
                .to_string()
                .starts_with("/nowhere/folder: ")
        );
    }
}
