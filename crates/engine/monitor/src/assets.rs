//! Hashes of assets and archives.
//!
//! What an asset is, is decided by its content: the engine compares hashes, not paths. An asset's
//! hash is that of its bytes. An archive's is that of its file, or, for a directory or a table of
//! assets, of the tar stream made of it, which is therefore fixed to the last byte.

mod archive;
mod tar;

use std::collections::hash_map::Entry;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use nimbus_engine_files::ProjectFiles;
use nimbus_engine_model::{Archive, Asset, PropertyMap, PropertyValue};
use sha2::{Digest as _, Sha256};

use crate::error::MonitorError;
use crate::monitor::Monitor;

pub(crate) use archive::Fetched;

/// What is held in memory as a whole. Larger assets are read piece by piece.
const LARGEST: u64 = 1 << 30;
/// What is held in memory for one resource of a stranger's, all its assets together. A sparse file costs its
/// owner nothing, and a small archive can be unpacked into a large one as often as it is named.
const MOST_OF_STRANGERS: u64 = 256 << 20;
/// The largest file of a stranger's that is read piece by piece. Reading zeros has an end.
const LARGEST_OF_STRANGERS: u64 = 4 << 30;
/// How many resources of a stranger's have their assets read at a time.
pub(crate) const READ_AT_ONCE: usize = 2;

/// Reads what is behind the address of a remote asset or archive.
#[async_trait]
pub trait AssetReader: Send + Sync {
    async fn read(&self, uri: &str) -> Result<Vec<u8>, String>;

    /// Whether anything at a network address may be named at all. Whoever gets the name, such as a
    /// provider, might read what is there.
    fn reaches_out(&self) -> bool {
        true
    }
}

/// For runs that must not reach out: remote assets are refused.
pub struct NoRemoteAssets;

#[async_trait]
impl AssetReader for NoRemoteAssets {
    async fn read(&self, _uri: &str) -> Result<Vec<u8>, String> {
        Err("assets at network addresses cannot be read here".to_owned())
    }

    fn reaches_out(&self) -> bool {
        false
    }
}

impl Monitor {
    /// Fills in every hash that is missing.
    pub(crate) async fn with_asset_hashes(
        &self,
        properties: PropertyMap,
    ) -> Result<PropertyMap, MonitorError> {
        self.refuse_foreign_files(&properties).await?;
        let mut uris = Vec::new();
        let mut found = false;
        for value in properties.values() {
            survey(value, &mut found, &mut uris);
        }
        if !found {
            return Ok(properties);
        }
        let _turn = match &self.settings.confinement {
            Some(_) => self.asset_turns.acquire().await.ok(),
            None => None,
        };
        let files = self.files();
        let room = AssetBudget::of(&files);
        let mut fetched = Fetched::new();
        for uri in uris {
            if let Entry::Vacant(vacant) = fetched.entry(uri) {
                let content = self.fetch(vacant.key(), &room).await?;
                vacant.insert(content);
            }
        }
        let directory = self.settings.program_dir.clone();
        let hashed = tokio::task::spawn_blocking(move || {
            let hasher = AssetHasher {
                files,
                directory,
                fetched,
                room,
            };
            hasher.map(properties)
        });
        hashed.await.unwrap_or(Err(MonitorError::Ending))
    }

    async fn fetch(&self, uri: &str, room: &AssetBudget) -> Result<Vec<u8>, MonitorError> {
        let failed = |reason: String| MonitorError::Asset {
            path: uri.to_owned(),
            reason,
        };
        let url = url::Url::parse(uri).map_err(|error| failed(error.to_string()))?;
        if url.scheme() != "file" {
            let content = self.ports.assets.read(uri).await.map_err(failed)?;
            let taken = room.take(content.len());
            taken.map_err(|error| failed(error.to_string()))?;
            return Ok(content);
        }
        let path = url
            .to_file_path()
            .map_err(|()| failed("it is not a path on this machine".to_owned()))?;
        let (files, most) = (self.files(), room.left().min(LARGEST));
        let content = tokio::task::spawn_blocking(move || files.read_at_most(&path, most));
        let content = content.await.map_err(|error| failed(error.to_string()))?;
        let content = content.map_err(|error| failed(error.to_string()))?;
        let taken = room.take(content.len());
        taken.map_err(|error| failed(error.to_string()))?;
        Ok(content)
    }

    /// Opens what the program may use.
    fn files(&self) -> ProjectFiles {
        let confinement = self.settings.confinement.as_ref();
        confinement.map_or(ProjectFiles::UNRESTRICTED, |confined| {
            confined.files.clone()
        })
    }
}

/// Whether there is any hash to compute, and which addresses have to be read for that.
fn survey(value: &PropertyValue, found: &mut bool, uris: &mut Vec<String>) {
    match value {
        PropertyValue::Asset(asset) => {
            *found |= asset_lacks_hash(asset);
            if let Asset::Uri { hash, uri } = asset
                && hash.is_empty()
            {
                uris.push(uri.clone());
            }
        }
        PropertyValue::Archive(Archive::Uri { hash, uri }) if hash.is_empty() => {
            *found = true;
            uris.push(uri.clone());
        }
        PropertyValue::Archive(Archive::Path { hash, .. }) => *found |= hash.is_empty(),
        PropertyValue::Archive(Archive::Assets { hash, .. }) => {
            *found |= hash.is_empty();
            value.parts().for_each(|member| survey(member, found, uris));
        }
        other => other.parts().for_each(|part| survey(part, found, uris)),
    }
}

fn asset_lacks_hash(asset: &Asset) -> bool {
    match asset {
        Asset::Text { hash, .. } | Asset::Path { hash, .. } | Asset::Uri { hash, .. } => {
            hash.is_empty()
        }
        Asset::HashOnly { .. } => false,
    }
}

/// What may still be held in memory for one resource.
pub(crate) struct AssetBudget(AtomicU64);

impl AssetBudget {
    pub(crate) fn of(files: &ProjectFiles) -> Self {
        Self(AtomicU64::new(match files.is_restricted() {
            true => MOST_OF_STRANGERS,
            false => u64::MAX,
        }))
    }

    pub(crate) fn left(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    pub(crate) fn take(&self, bytes: usize) -> io::Result<()> {
        let left = self.left().checked_sub(bytes as u64);
        let left = left.ok_or_else(|| {
            io::Error::other("the assets of one resource have more bytes than are held for it")
        })?;
        self.0.store(left, Ordering::Relaxed);
        Ok(())
    }
}

pub(crate) struct AssetHasher {
    pub(crate) files: ProjectFiles,
    pub(crate) directory: PathBuf,
    pub(crate) fetched: Fetched,
    pub(crate) room: AssetBudget,
}

impl AssetHasher {
    fn map(&self, properties: PropertyMap) -> Result<PropertyMap, MonitorError> {
        let value = |(key, value)| Ok((key, self.value(value)?));
        properties.into_iter().map(value).collect()
    }

    fn value(&self, value: PropertyValue) -> Result<PropertyValue, MonitorError> {
        Ok(match value {
            PropertyValue::Asset(asset) => PropertyValue::Asset(self.asset(asset)?),
            PropertyValue::Archive(archive) => PropertyValue::Archive(self.archive(archive)?),
            PropertyValue::Array(items) => {
                let items = items.into_iter().map(|item| self.value(item));
                PropertyValue::Array(items.collect::<Result<_, _>>()?)
            }
            PropertyValue::Object(map) => PropertyValue::Object(self.map(map)?),
            PropertyValue::Secret(inner) => PropertyValue::Secret(Box::new(self.value(*inner)?)),
            PropertyValue::Output(mut output) => {
                output.value = output.value.map(|inner| self.value(inner)).transpose()?;
                PropertyValue::Output(output)
            }
            other => other,
        })
    }

    fn asset(&self, asset: Asset) -> Result<Asset, MonitorError> {
        if !asset_lacks_hash(&asset) {
            return Ok(asset);
        }
        let hash = match &asset {
            // Of any size, and so read piece by piece.
            Asset::Path { path, .. } => {
                archive::file_hash(&self.files, &self.directory.join(path))?
            }
            Asset::Uri { uri, .. } => hex::encode(Sha256::digest(self.fetched(uri)?)),
            other => hex::encode(Sha256::digest(self.content(other)?)),
        };
        Ok(match asset {
            Asset::Text { text, .. } => Asset::Text { hash, text },
            Asset::Path { path, .. } => Asset::Path { hash, path },
            Asset::Uri { uri, .. } => Asset::Uri { hash, uri },
            known @ Asset::HashOnly { .. } => known,
        })
    }

    fn archive(&self, archive: Archive) -> Result<Archive, MonitorError> {
        Ok(match archive {
            Archive::Path { hash, path } if hash.is_empty() => {
                let hash = self.archive_hash(&Archive::Path {
                    hash,
                    path: path.clone(),
                })?;
                Archive::Path { hash, path }
            }
            Archive::Uri { hash, uri } if hash.is_empty() => {
                let hash = hex::encode(Sha256::digest(self.fetched(&uri)?));
                Archive::Uri { hash, uri }
            }
            Archive::Assets { hash, assets } => {
                let assets = self.map(assets)?;
                let hash = if hash.is_empty() {
                    self.archive_hash(&Archive::Assets {
                        hash,
                        assets: assets.clone(),
                    })?
                } else {
                    hash
                };
                Archive::Assets { hash, assets }
            }
            known @ (Archive::Path { .. } | Archive::Uri { .. } | Archive::HashOnly { .. }) => {
                known
            }
        })
    }

    /// The bytes of an asset.
    pub(crate) fn content(&self, asset: &Asset) -> Result<Vec<u8>, MonitorError> {
        match asset {
            Asset::Text { text, .. } => Ok(text.clone().into_bytes()),
            Asset::Path { path, .. } => {
                let full = self.directory.join(path);
                self.whole(&full)
            }
            Asset::Uri { uri, .. } => self.copied(uri),
            Asset::HashOnly { hash } => Err(MonitorError::Asset {
                path: format!("asset {hash}"),
                reason: "its content is not known, only its hash".to_owned(),
            }),
        }
    }

    /// A file as a whole.
    pub(crate) fn whole(&self, path: &Path) -> Result<Vec<u8>, MonitorError> {
        let most = self.room.left().min(LARGEST);
        let content = self.files.read_at_most(path, most).and_then(|content| {
            self.room.take(content.len())?;
            Ok(content)
        });
        content.map_err(|error| unreadable(path, &error))
    }

    /// What is behind an address, once more.
    pub(crate) fn copied(&self, uri: &str) -> Result<Vec<u8>, MonitorError> {
        let content = self.fetched(uri)?;
        let taken = self.room.take(content.len());
        taken.map_err(|error| unreadable(Path::new(uri), &error))?;
        Ok(content.to_vec())
    }

    pub(crate) fn fetched(&self, uri: &str) -> Result<&[u8], MonitorError> {
        let content = self.fetched.get(uri).map(Vec::as_slice);
        content.ok_or_else(|| MonitorError::Asset {
            path: uri.to_owned(),
            reason: "it was not read".to_owned(),
        })
    }
}

pub(crate) fn unreadable(path: &Path, error: &io::Error) -> MonitorError {
    MonitorError::Asset {
        path: path.display().to_string(),
        reason: error.to_string(),
    }
}
