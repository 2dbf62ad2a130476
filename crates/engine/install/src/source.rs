//! Where a plugin is offered.
//!
//! The public schemes: releases of a GitHub or GitLab project, any HTTP server with a flat folder
//! of archives, and without further word the releases of the `pulumi` organisation on GitHub, then
//! get.pulumi.com. A folder of this machine is a source too. What is decided here is only where to
//! ask; nothing is asked.

use std::collections::BTreeSet;
use std::fmt;
use std::path::PathBuf;

use url::Url;

use crate::error::InstallError;
use crate::name::{Platform, PluginName, Release};

const GITHUB: &str = "api.github.com";
const GITLAB: &str = "gitlab.com";
const GET_PULUMI: &str = "https://get.pulumi.com/releases/plugins";

/// Where to ask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DownloadSource {
    /// GitHub releases of the `pulumi` organisation, then get.pulumi.com.
    Public,
    /// A flat folder of archives behind HTTP. May contain `${NAME}`, `${VERSION}`, `${OS}` and
    /// `${ARCH}`.
    Http(String),
    Github {
        host: String,
        owner: String,
        /// `pulumi-<name>` unless said otherwise.
        repository: Option<String>,
    },
    Gitlab {
        host: String,
        project: String,
    },
    /// A folder of archives or unpacked plugins.
    Folder(PathBuf),
}

/// What private projects ask for, from the environment. A package may name any host as the place of its
/// plugin, so a token goes to the host that it is known to be for, and to those that the operator named.
#[derive(Clone, Default)]
pub struct DownloadTokens {
    github: Option<String>,
    gitlab: Option<String>,
    trusted: BTreeSet<String>,
}

impl DownloadTokens {
    pub fn new(github: Option<String>, gitlab: Option<String>) -> Self {
        Self {
            github,
            gitlab,
            trusted: BTreeSet::new(),
        }
    }

    /// Also for the host of a source that the operator named, and not a package.
    #[must_use]
    pub fn trusting(mut self, source: &DownloadSource) -> Self {
        match source {
            DownloadSource::Github { host, .. } | DownloadSource::Gitlab { host, .. } => {
                self.trusted.insert(host.clone());
            }
            DownloadSource::Public | DownloadSource::Http(_) | DownloadSource::Folder(_) => {}
        }
        self
    }

    fn github_for(&self, host: &str) -> Option<&String> {
        let known = host == GITHUB || self.trusted.contains(host);
        self.github.as_ref().filter(|_| known)
    }

    fn gitlab_for(&self, host: &str) -> Option<&String> {
        let known = host == GITLAB || self.trusted.contains(host);
        self.gitlab.as_ref().filter(|_| known)
    }
}

/// One GET.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct DownloadRequest {
    pub(crate) url: String,
    pub(crate) accept: &'static str,
    pub(crate) token: Option<String>,
}

/// A place where the archive may be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Candidate {
    /// The archive itself, and where its checksum would be, best first.
    Files {
        archive: DownloadRequest,
        checksums: Vec<DownloadRequest>,
    },
    /// The description of a release, which names its files.
    GithubRelease(DownloadRequest),
}

impl DownloadSource {
    /// Reads `https://…`, `http://…`, `github://HOST/OWNER[/REPOSITORY]`, `gitlab://HOST/PROJECT`
    /// and `file:///…`.
    pub fn parse(text: &str) -> Result<Self, InstallError> {
        let malformed = || InstallError::Malformed {
            text: text.to_owned(),
            expected: "an address that plugins are downloaded from",
        };
        let url = Url::parse(text).map_err(|_| malformed())?;
        let host = match (url.host_str().unwrap_or_default(), url.port()) {
            ("", _) => String::new(),
            (host, None) => host.to_owned(),
            (host, Some(port)) => format!("{host}:{port}"),
        };
        let parts: Vec<&str> = url
            .path()
            .split('/')
            .filter(|part| !part.is_empty())
            .collect();
        match (url.scheme(), &parts[..]) {
            // Kept as it was written: `${NAME}` must not be escaped.
            ("http" | "https", _) if !host.is_empty() => {
                Ok(Self::Http(text.trim_end_matches('/').to_owned()))
            }
            ("github", [owner]) if !host.is_empty() => Ok(Self::Github {
                host,
                owner: (*owner).to_owned(),
                repository: None,
            }),
            ("github", [owner, repository]) if !host.is_empty() => Ok(Self::Github {
                host,
                owner: (*owner).to_owned(),
                repository: Some((*repository).to_owned()),
            }),
            ("gitlab", [project]) if !host.is_empty() => Ok(Self::Gitlab {
                host,
                project: (*project).to_owned(),
            }),
            ("file", _) => url
                .to_file_path()
                .map(Self::Folder)
                .map_err(|()| malformed()),
            _ => Err(malformed()),
        }
    }

    /// How overrides know it.
    pub(crate) fn address(&self, name: &PluginName) -> String {
        match self {
            Self::Public => format!("github://{GITHUB}/pulumi/pulumi-{name}"),
            Self::Http(base) => base.clone(),
            Self::Github {
                host,
                owner,
                repository,
            } => format!(
                "github://{host}/{owner}/{}",
                repository_of(repository, name)
            ),
            Self::Gitlab { host, project } => format!("gitlab://{host}/{project}"),
            Self::Folder(folder) => format!("file://{}", folder.display()),
        }
    }

    /// Where to ask for the newest version; `None` where the scheme has no such place.
    pub(crate) fn newest(
        &self,
        name: &PluginName,
        tokens: &DownloadTokens,
        api: &str,
    ) -> Option<DownloadRequest> {
        let (url, token) = match self {
            Self::Public => {
                let public = Self::public_github();
                return public.newest(name, tokens, api);
            }
            Self::Github {
                host,
                owner,
                repository,
            } => {
                let repository = repository_of(repository, name);
                let url = format!("{api}://{host}/repos/{owner}/{repository}/releases/latest");
                (url, tokens.github_for(host))
            }
            Self::Gitlab { host, project } => {
                let path = format!("api/v4/projects/{project}/releases/permalink/latest");
                (format!("{api}://{host}/{path}"), tokens.gitlab_for(host))
            }
            Self::Http(_) | Self::Folder(_) => return None,
        };
        Some(DownloadRequest {
            url,
            accept: "application/json",
            token: token.cloned(),
        })
    }

    /// The places where a release may be, best first. A folder has none: it is looked into.
    pub(crate) fn candidates(
        &self,
        release: &Release,
        platform: &Platform,
        tokens: &DownloadTokens,
        api: &str,
    ) -> Vec<Candidate> {
        match self {
            Self::Public => {
                let direct = format!(
                    "https://github.com/pulumi/pulumi-{}/releases/download/v{}",
                    release.name, release.version
                );
                vec![
                    files(&direct, release, platform),
                    files(GET_PULUMI, release, platform),
                ]
            }
            Self::Http(base) => vec![files(&filled(base, release, platform), release, platform)],
            Self::Github {
                host,
                owner,
                repository,
            } => {
                let repository = repository_of(repository, &release.name);
                let version = &release.version;
                vec![Candidate::GithubRelease(DownloadRequest {
                    url: format!(
                        "{api}://{host}/repos/{owner}/{repository}/releases/tags/v{version}"
                    ),
                    accept: "application/json",
                    token: tokens.github_for(host).cloned(),
                })]
            }
            Self::Gitlab { host, project } => {
                let version = &release.version;
                let base = format!(
                    "{api}://{host}/api/v4/projects/{project}/releases/v{version}/downloads"
                );
                vec![with_token(
                    files(&base, release, platform),
                    tokens.gitlab_for(host),
                )]
            }
            Self::Folder(_) => Vec::new(),
        }
    }

    fn public_github() -> Self {
        Self::Github {
            host: GITHUB.to_owned(),
            owner: "pulumi".to_owned(),
            repository: None,
        }
    }
}

fn repository_of(repository: &Option<String>, name: &PluginName) -> String {
    let usual = || format!("pulumi-{name}");
    repository.clone().unwrap_or_else(usual)
}

fn files(base: &str, release: &Release, platform: &Platform) -> Candidate {
    let archive = format!("{base}/{}", escaped(&release.archive(platform)));
    let checksums = [
        format!("{base}/{}", escaped(&release.checksums())),
        format!("{archive}.sha256"),
    ];
    Candidate::Files {
        archive: DownloadRequest::file(archive),
        checksums: checksums.into_iter().map(DownloadRequest::file).collect(),
    }
}

fn with_token(candidate: Candidate, token: Option<&String>) -> Candidate {
    let add = |request: DownloadRequest| DownloadRequest {
        token: token.cloned(),
        ..request
    };
    match candidate {
        Candidate::Files { archive, checksums } => Candidate::Files {
            archive: add(archive),
            checksums: checksums.into_iter().map(add).collect(),
        },
        other @ Candidate::GithubRelease(_) => other,
    }
}

/// Of all that names and versions may contain, only `+` means something else in an address.
fn escaped(text: &str) -> String {
    text.replace('+', "%2B")
}

fn filled(base: &str, release: &Release, platform: &Platform) -> String {
    let version = escaped(&release.version.to_string());
    let values = [
        ("NAME", release.name.as_str()),
        ("VERSION", &version),
        ("OS", &platform.os),
        ("ARCH", &platform.arch),
    ];
    // Whoever read the address before may have escaped the braces.
    values.iter().fold(base.to_owned(), |text, (word, value)| {
        text.replace(&format!("${{{word}}}"), value)
            .replace(&format!("$%7B{word}%7D"), value)
    })
}

impl Candidate {
    pub(crate) fn shown(&self) -> String {
        match self {
            Self::Files { archive, .. } => archive.shown(),
            Self::GithubRelease(request) => request.shown(),
        }
    }
}

impl DownloadRequest {
    pub(crate) fn file(url: String) -> Self {
        Self {
            url,
            accept: "application/octet-stream",
            token: None,
        }
    }

    /// A file that an answer to this request named. The token goes along to the same host only.
    pub(crate) fn named_file(&self, url: &str) -> Self {
        let host = |text: &str| {
            let url = Url::parse(text).ok()?;
            Some((
                url.scheme().to_owned(),
                url.host_str()?.to_owned(),
                url.port(),
            ))
        };
        let same = host(&self.url).is_some() && host(&self.url) == host(url);
        Self {
            token: self.token.clone().filter(|_| same),
            ..Self::file(url.to_owned())
        }
    }

    /// The address without a password, for messages.
    pub(crate) fn shown(&self) -> String {
        let Ok(mut url) = Url::parse(&self.url) else {
            return "an address that is none".to_owned();
        };
        // Both fail only for addresses that cannot have them.
        let _ = url.set_password(None);
        let _ = url.set_username("");
        url.to_string()
    }
}

impl fmt::Debug for DownloadRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("DownloadRequest")
            .field(&self.shown())
            .finish()
    }
}

#[cfg(test)]
mod tests;
