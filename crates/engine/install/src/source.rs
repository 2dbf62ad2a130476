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
mod tests {
    use super::*;

    fn release() -> Release {
        Release::from_folder("resource-aws-v7.0.0").expect("a folder")
    }

    fn platform() -> Platform {
        Platform {
            os: "linux".to_owned(),
            arch: "arm64".to_owned(),
        }
    }

    fn places(source: &DownloadSource) -> Vec<String> {
        let tokens = DownloadTokens::default();
        let candidates = source.candidates(&release(), &platform(), &tokens, "https");
        let place = |candidate| match candidate {
            Candidate::Files { archive, .. } => archive.url,
            Candidate::GithubRelease(request) => request.url,
        };
        candidates.into_iter().map(place).collect()
    }

    #[test]
    fn without_a_word_github_is_asked_before_get_pulumi_com() {
        assert_eq!(
            places(&DownloadSource::Public),
            [
                "https://github.com/pulumi/pulumi-aws/releases/download/v7.0.0/pulumi-resource-aws-v7.0.0-linux-arm64.tar.gz",
                "https://get.pulumi.com/releases/plugins/pulumi-resource-aws-v7.0.0-linux-arm64.tar.gz",
            ]
        );
        let newest =
            DownloadSource::Public.newest(&release().name, &DownloadTokens::default(), "https");
        assert_eq!(
            newest.expect("GitHub says").url,
            "https://api.github.com/repos/pulumi/pulumi-aws/releases/latest"
        );
    }

    #[test]
    fn servers_are_read_in_every_scheme() {
        for (text, place) in [
            (
                "https://mirror/plugins/",
                "https://mirror/plugins/pulumi-resource-aws-v7.0.0-linux-arm64.tar.gz",
            ),
            (
                "http://m/${NAME}/${VERSION}/${OS}-${ARCH}",
                "http://m/aws/7.0.0/linux-arm64/pulumi-resource-aws-v7.0.0-linux-arm64.tar.gz",
            ),
            (
                "http://m/$%7BNAME%7D",
                "http://m/aws/pulumi-resource-aws-v7.0.0-linux-arm64.tar.gz",
            ),
            (
                "github://api.github.com/me",
                "https://api.github.com/repos/me/pulumi-aws/releases/tags/v7.0.0",
            ),
            (
                "github://git.corp/me/mine",
                "https://git.corp/repos/me/mine/releases/tags/v7.0.0",
            ),
            (
                "gitlab://gitlab.com/42",
                "https://gitlab.com/api/v4/projects/42/releases/v7.0.0/downloads/pulumi-resource-aws-v7.0.0-linux-arm64.tar.gz",
            ),
        ] {
            let source = DownloadSource::parse(text).expect(text);
            assert_eq!(places(&source), [place], "{text}");
        }
        assert_eq!(
            DownloadSource::parse("file:///srv/plugins").expect("a folder"),
            DownloadSource::Folder("/srv/plugins".into())
        );
        for text in [
            "",
            "mirror",
            "ftp://x/y",
            "github://x",
            "github://h/a/b/c",
            "gitlab://h/a/b",
        ] {
            assert!(DownloadSource::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_token_goes_to_the_host_that_it_is_for() {
        let tokens = DownloadTokens::new(Some("hub".to_owned()), Some("lab".to_owned()));
        let sent = |text: &str, tokens: &DownloadTokens| {
            let source = DownloadSource::parse(text).expect(text);
            let mut asked = source.candidates(&release(), &platform(), tokens, "https");
            let newest = source.newest(&release().name, tokens, "https");
            let token = match asked.remove(0) {
                Candidate::Files { archive, .. } => archive.token,
                Candidate::GithubRelease(request) => request.token,
            };
            assert_eq!(newest.expect("a place").token, token);
            token
        };
        assert_eq!(
            sent("github://api.github.com/me", &tokens).as_deref(),
            Some("hub")
        );
        assert_eq!(
            sent("gitlab://gitlab.com/42", &tokens).as_deref(),
            Some("lab")
        );
        for evil in [
            "github://evil.example/me",
            "gitlab://evil.example/42",
            "github://gitlab.com/me",
            "github://api.github.com.evil.example/me",
            "github://api.github.com:8443/me",
        ] {
            assert_eq!(sent(evil, &tokens), None, "{evil}");
        }
        let own = DownloadSource::parse("github://git.corp/me").expect("a source");
        let trusting = tokens.trusting(&own);
        assert!(sent("github://git.corp/other", &trusting).is_some());

        let request = DownloadRequest {
            token: Some("hub".to_owned()),
            ..DownloadRequest::file("https://api.github.com/x".to_owned())
        };
        assert!(
            request
                .named_file("https://api.github.com/y")
                .token
                .is_some()
        );
        for elsewhere in ["https://evil.example/y", "http://api.github.com/y"] {
            assert_eq!(request.named_file(elsewhere).token, None);
        }
    }

    #[test]
    fn a_password_is_never_shown() {
        let request = DownloadRequest::file("https://me:hunter2@mirror/x".to_owned());
        assert_eq!(request.shown(), "https://mirror/x");
        assert!(!format!("{request:?}").contains("hunter2"));
    }
}
