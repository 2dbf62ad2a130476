//! Where a plugin is: its newest version, and the file or folder that it is made from.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use semver::Version;
use serde::Deserialize;

use super::{InstallProgress, Installer, PluginFile};
use crate::checksum::Checksum;
use crate::error::InstallError;
use crate::fetch::Arrived;
use crate::name::{InstallKind, PluginName, Release, parse_version};
use crate::source::{Candidate, DownloadRequest, DownloadSource};

impl Installer {
    pub(super) async fn newest(
        &self,
        source: &DownloadSource,
        kind: InstallKind,
        name: &PluginName,
    ) -> Result<Version, InstallError> {
        if let DownloadSource::Folder(folder) = source {
            let fitting = self.in_folder(folder)?.into_iter();
            let newest = fitting
                .map(|(release, _)| release)
                .filter(|release| release.kind == kind && release.name == *name)
                .map(|release| release.version)
                .max_by_key(|version| (version.pre.is_empty(), version.clone()));
            return newest.ok_or_else(|| InstallError::NotOffered {
                archive: format!("pulumi-{kind}-{name}"),
                places: vec![folder.display().to_string()],
            });
        }
        let unknown = || InstallError::NoNewest {
            plugin: name.to_string(),
            place: source.address(name),
        };
        let request = source.newest(name, &self.tokens_for(source), self.api);
        let request = request.ok_or_else(unknown)?;
        let text = self.fetcher.text(&request).await?.ok_or_else(unknown)?;
        let latest: Latest = read(&request, &text)?;
        parse_version(&latest.tag_name)
    }

    pub(super) async fn find(
        &self,
        source: &DownloadSource,
        release: &Release,
    ) -> Result<PluginFile, InstallError> {
        if let DownloadSource::Folder(folder) = source {
            return self.find_in(folder, release);
        }
        let tokens = self.tokens_for(source);
        let candidates = source.candidates(release, &self.platform, &tokens, self.api);
        let mut places = Vec::new();
        let mut failure = None;
        for candidate in candidates {
            match self.ask(&candidate, release).await {
                Ok(Some(found)) => return Ok(found),
                Ok(None) => places.push(candidate.shown()),
                // The next one may be reachable from here, or may have it whole.
                Err(error) => failure = Some(error),
            }
        }
        let archive = release.archive(&self.platform);
        Err(failure.unwrap_or(InstallError::NotOffered { archive, places }))
    }

    /// `None` if the release or the archive is not there.
    async fn ask(
        &self,
        candidate: &Candidate,
        release: &Release,
    ) -> Result<Option<PluginFile>, InstallError> {
        match candidate {
            Candidate::Files { archive, checksums } => {
                self.download(archive, checksums, release).await
            }
            Candidate::GithubRelease(request) => match self.github_files(request, release).await? {
                Some((archive, checksums)) => self.download(&archive, &checksums, release).await,
                None => Ok(None),
            },
        }
    }

    async fn download(
        &self,
        archive: &DownloadRequest,
        checksums: &[DownloadRequest],
        release: &Release,
    ) -> Result<Option<PluginFile>, InstallError> {
        (self.watcher)(InstallProgress::Downloading {
            from: archive.shown(),
        });
        let watcher = Arc::clone(&self.watcher);
        let progress =
            move |Arrived { bytes, total }| watcher(InstallProgress::Arrived { bytes, total });
        let folder = self.store.downloads()?;
        let Some((path, continued)) = self.fetcher.file(archive, &folder, &progress).await? else {
            return Ok(None);
        };
        let name = release.archive(&self.platform);
        let mut proof = None;
        for list in checksums {
            let text = self.fetcher.text(list).await?;
            proof = text.and_then(|text| Checksum::in_list(&text, &name));
            if proof.is_some() {
                break;
            }
        }
        Ok(Some(PluginFile::Archive {
            path,
            proof,
            download: Some(archive.clone()),
            continued,
        }))
    }

    /// The archive and the checksums among the files of a release; `None` if it has no archive.
    async fn github_files(
        &self,
        request: &DownloadRequest,
        release: &Release,
    ) -> Result<Option<(DownloadRequest, Vec<DownloadRequest>)>, InstallError> {
        let Some(text) = self.fetcher.text(request).await? else {
            return Ok(None);
        };
        let described: ReleaseDescription = read(request, &text)?;
        let file = |asset: &ReleaseAsset| request.named_file(&asset.url);
        let name = release.archive(&self.platform);
        let archive = described.assets.iter().find(|asset| asset.name == name);
        let lists = described.assets.iter().filter(|asset| {
            asset.name == format!("{name}.sha256")
                || asset.name.ends_with("checksums.txt")
                || asset.name == "SHA256SUMS"
        });
        Ok(archive.map(|archive| (file(archive), lists.map(file).collect())))
    }

    fn find_in(&self, folder: &Path, release: &Release) -> Result<PluginFile, InstallError> {
        let fitting = self.in_folder(folder)?.into_iter();
        let found = fitting
            .filter(|(other, _)| other == release)
            .map(|(_, path)| path);
        // An archive can be checked, so it goes first.
        let mut found: Vec<PathBuf> = found.collect();
        found.sort_by_key(|path| path.is_dir());
        let Some(path) = found.into_iter().next() else {
            return Err(InstallError::NotOffered {
                archive: release.archive(&self.platform),
                places: vec![folder.display().to_string()],
            });
        };
        if path.is_dir() {
            return Ok(PluginFile::Folder(path));
        }
        let name = release.archive(&self.platform);
        let lists = [release.checksums(), format!("{name}.sha256")];
        let proof = lists.iter().find_map(|list| {
            let text = fs::read_to_string(folder.join(list)).ok()?;
            Checksum::in_list(&text, &name)
        });
        Ok(PluginFile::Archive {
            path,
            proof,
            download: None,
            continued: false,
        })
    }

    pub(super) fn in_folder(&self, folder: &Path) -> Result<Vec<(Release, PathBuf)>, InstallError> {
        let entries = fs::read_dir(folder).map_err(InstallError::read(folder))?;
        let mut found: Vec<(Release, PathBuf)> = entries
            .filter_map(|entry| {
                let path = entry.ok()?.path();
                let name = path.file_name()?.to_str()?;
                let release = if path.is_dir() {
                    let unfinished = folder.join(format!("{name}.partial"));
                    Release::from_folder(name).filter(|_| !unfinished.exists())
                } else {
                    Release::from_archive(name, &self.platform)
                };
                Some((release?, path))
            })
            .collect();
        found.sort_by_key(|(release, path)| (release.folder(), path.is_dir()));
        Ok(found)
    }
}

/// The newest release as GitHub and GitLab describe it.
#[derive(Deserialize)]
struct Latest {
    tag_name: String,
}

/// A release as GitHub describes it.
#[derive(Deserialize)]
struct ReleaseDescription {
    assets: Vec<ReleaseAsset>,
}

#[derive(Deserialize)]
struct ReleaseAsset {
    name: String,
    url: String,
}

fn read<T: for<'a> Deserialize<'a>>(
    request: &DownloadRequest,
    text: &str,
) -> Result<T, InstallError> {
    serde_json::from_str(text).map_err(|error| InstallError::Answer {
        place: request.shown(),
        problem: error.to_string(),
    })
}
