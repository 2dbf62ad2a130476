//! How bytes arrive.
//!
//! An archive grows in a `.part` file that outlives the process: the next attempt, or the next
//! command, asks only for the rest, provided that the server can say that it is still the same
//! file. What the server cannot say so of is fetched from the start.

use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use reqwest::header::{
    ACCEPT, AUTHORIZATION, CONTENT_RANGE, ETAG, HeaderMap, IF_RANGE, LAST_MODIFIED, RANGE,
};
use reqwest::redirect::Policy;
use reqwest::{Client, Response, StatusCode};

use crate::checksum::Checksum;
use crate::error::InstallError;
use crate::source::DownloadRequest;

/// Attempts that bring nothing new are given up after this many.
const FRUITLESS_ATTEMPTS: u32 = 4;
/// A server that ends every answer early is not asked for ever.
const ATTEMPTS: u32 = 12;
/// Descriptions and lists of checksums are small.
const SMALL: u64 = 4 << 20;

pub(crate) struct Fetcher {
    client: Client,
    largest: u64,
    pause: Duration,
}

/// Why an attempt ended without the file.
enum FetchFailure {
    /// It may work when tried again.
    MayPass(String),
    Final(InstallError),
    NotThere,
}

/// A download that is under way, or was when somebody stopped it.
struct PartialDownload {
    data: PathBuf,
    validator: PathBuf,
}

/// What is known while bytes arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Arrived {
    pub(crate) bytes: u64,
    pub(crate) total: Option<u64>,
}

impl Fetcher {
    pub(crate) fn new(largest: u64) -> Result<Self, InstallError> {
        let client = Client::builder()
            .user_agent(concat!("nimbus/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(Duration::from_secs(30))
            // Of silence, not of the whole download.
            .read_timeout(Duration::from_secs(60))
            .redirect(Policy::limited(5))
            .build()
            .map_err(|error| InstallError::Answer {
                place: "the HTTP client".to_owned(),
                problem: nimbus_core::innermost(&error).to_string(),
            })?;
        Ok(Self {
            client,
            largest,
            pause: Duration::from_millis(250),
        })
    }

    /// A small file as text; `None` when it is not there.
    pub(crate) async fn text(
        &self,
        request: &DownloadRequest,
    ) -> Result<Option<String>, InstallError> {
        let mut fruitless = 0;
        loop {
            match self.small(request).await {
                Ok(text) => return Ok(Some(text)),
                Err(FetchFailure::NotThere) => return Ok(None),
                Err(FetchFailure::Final(error)) => return Err(error),
                Err(FetchFailure::MayPass(problem)) => {
                    fruitless += 1;
                    if fruitless == FRUITLESS_ATTEMPTS {
                        return Err(interrupted(request, problem));
                    }
                    self.wait(fruitless).await;
                }
            }
        }
    }

    async fn small(&self, request: &DownloadRequest) -> Result<String, FetchFailure> {
        let mut response = self.send(request, None).await?;
        let mut bytes = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(broken)? {
            bytes.extend_from_slice(&chunk);
            if bytes.len() as u64 > SMALL {
                return Err(FetchFailure::Final(answer(request, "it is far too long")));
            }
        }
        String::from_utf8(bytes).map_err(|_| FetchFailure::Final(answer(request, "it is not text")))
    }

    /// Downloads a file into `folder`, going on with what an earlier attempt left there. Returns
    /// its path and whether it was put together from several attempts; `None` when it is not
    /// offered.
    pub(crate) async fn file(
        &self,
        request: &DownloadRequest,
        folder: &Path,
        progress: &(dyn Fn(Arrived) + Send + Sync),
    ) -> Result<Option<(PathBuf, bool)>, InstallError> {
        let part = PartialDownload::of(request, folder);
        let mut continued = false;
        let (mut fruitless, mut attempts) = (0, 0);
        loop {
            let before = part.len();
            continued |= before > 0;
            let problem = match self.attempt(request, &part, progress).await {
                Ok(()) => return Ok(Some((part.data, continued))),
                Err(FetchFailure::NotThere) => {
                    part.discard();
                    return Ok(None);
                }
                Err(FetchFailure::Final(error)) => return Err(error),
                Err(FetchFailure::MayPass(problem)) => problem,
            };
            attempts += 1;
            fruitless = if part.len() > before {
                0
            } else {
                fruitless + 1
            };
            if fruitless == FRUITLESS_ATTEMPTS || attempts == ATTEMPTS {
                return Err(interrupted(request, problem));
            }
            self.wait(fruitless).await;
        }
    }

    /// Forgets a download, finished or not.
    pub(crate) fn forget(request: &DownloadRequest, folder: &Path) {
        PartialDownload::of(request, folder).discard();
    }

    async fn attempt(
        &self,
        request: &DownloadRequest,
        part: &PartialDownload,
        progress: &(dyn Fn(Arrived) + Send + Sync),
    ) -> Result<(), FetchFailure> {
        let mut response = self.send(request, part.rest().as_ref()).await?;
        if response.status() == StatusCode::RANGE_NOT_SATISFIABLE {
            part.discard();
            return Err(FetchFailure::MayPass(
                "there is nothing left to send".to_owned(),
            ));
        }
        let from = match response.status() {
            StatusCode::PARTIAL_CONTENT => range_start(response.headers()),
            _ => Some(0),
        };
        let from = match from {
            Some(0) => 0,
            Some(from) if from == part.len() => from,
            _ => {
                part.discard();
                return Err(FetchFailure::MayPass("it sent another part".to_owned()));
            }
        };
        let total = response.content_length().map(|length| from + length);
        if total.is_some_and(|total| total > self.largest) {
            return Err(FetchFailure::Final(answer(
                request,
                "the archive is far too large",
            )));
        }
        let mut file = part
            .open(from, response.headers())
            .map_err(FetchFailure::Final)?;
        let mut bytes = from;
        progress(Arrived { bytes, total });
        while let Some(chunk) = response.chunk().await.map_err(broken)? {
            bytes += chunk.len() as u64;
            if bytes > self.largest {
                part.discard();
                return Err(FetchFailure::Final(answer(
                    request,
                    "the archive is far too large",
                )));
            }
            file.write_all(&chunk)
                .map_err(|error| FetchFailure::Final(InstallError::written(&part.data)(error)))?;
            progress(Arrived { bytes, total });
        }
        match total {
            Some(total) if bytes < total => {
                let problem = format!("it ended after {bytes} of {total} bytes");
                Err(FetchFailure::MayPass(problem))
            }
            _ => Ok(()),
        }
    }

    async fn send(
        &self,
        request: &DownloadRequest,
        rest: Option<&(u64, String)>,
    ) -> Result<Response, FetchFailure> {
        let mut builder = self.client.get(&request.url).header(ACCEPT, request.accept);
        if let Some(token) = &request.token {
            builder = builder.header(AUTHORIZATION, format!("Bearer {token}"));
        }
        if let Some((from, validator)) = rest {
            builder = builder
                .header(RANGE, format!("bytes={from}-"))
                .header(IF_RANGE, validator);
        }
        let response = builder.send().await.map_err(|error| {
            if error.is_builder() || error.is_redirect() {
                return FetchFailure::Final(answer(
                    request,
                    &nimbus_core::innermost(&error).to_string(),
                ));
            }
            broken(error)
        })?;
        let status = response.status();
        match status.as_u16() {
            200 | 206 | 416 => Ok(response),
            404 | 410 => Err(FetchFailure::NotThere),
            429 | 500..=599 => Err(FetchFailure::MayPass(format!("HTTP status {status}"))),
            401 | 403 => Err(FetchFailure::Final(InstallError::Denied {
                place: request.shown(),
                status: status.as_u16(),
            })),
            _ => Err(FetchFailure::Final(answer(
                request,
                &format!("HTTP status {status}"),
            ))),
        }
    }

    async fn wait(&self, fruitless: u32) {
        tokio::time::sleep(self.pause * (1 << fruitless.min(5))).await;
    }
}

impl PartialDownload {
    /// Files of one address are never taken for those of another.
    fn of(request: &DownloadRequest, folder: &Path) -> Self {
        let address = Checksum::of_text(&request.url).to_string();
        Self {
            data: folder.join(format!("{}.part", &address[..16])),
            validator: folder.join(format!("{}.etag", &address[..16])),
        }
    }

    fn len(&self) -> u64 {
        fs::metadata(&self.data).map_or(0, |metadata| metadata.len())
    }

    /// From where on to ask, and by what the server knows that it is the same file.
    fn rest(&self) -> Option<(u64, String)> {
        let validator = fs::read_to_string(&self.validator).ok()?;
        let length = self.len();
        (length > 0 && !validator.is_empty()).then_some((length, validator))
    }

    fn open(&self, from: u64, headers: &HeaderMap) -> Result<File, InstallError> {
        // First what the bytes are of, then the bytes: the other way round they might be mixed.
        let validator = validator(headers).unwrap_or_default();
        fs::write(&self.validator, validator).map_err(InstallError::written(&self.validator))?;
        OpenOptions::new()
            .create(true)
            .append(from > 0)
            .truncate(from == 0)
            .write(true)
            .open(&self.data)
            .map_err(InstallError::written(&self.data))
    }

    fn discard(&self) {
        // What cannot be removed is overwritten by the next attempt.
        let _ = fs::remove_file(&self.data);
        let _ = fs::remove_file(&self.validator);
    }
}

/// A strong tag or a date. A weak tag does not promise equal bytes.
fn validator(headers: &HeaderMap) -> Option<String> {
    let tag = headers.get(ETAG).and_then(|value| value.to_str().ok());
    let date = headers
        .get(LAST_MODIFIED)
        .and_then(|value| value.to_str().ok());
    let strong = tag.filter(|tag| !tag.starts_with("W/"));
    strong.or(date).map(str::to_owned)
}

fn range_start(headers: &HeaderMap) -> Option<u64> {
    let text = headers.get(CONTENT_RANGE)?.to_str().ok()?;
    let (from, _) = text.strip_prefix("bytes ")?.split_once('-')?;
    from.trim().parse().ok()
}

fn broken(error: reqwest::Error) -> FetchFailure {
    FetchFailure::MayPass(nimbus_core::innermost(&error).to_string())
}

fn interrupted(request: &DownloadRequest, problem: String) -> InstallError {
    InstallError::Interrupted {
        place: request.shown(),
        problem,
    }
}

fn answer(request: &DownloadRequest, problem: &str) -> InstallError {
    InstallError::Answer {
        place: request.shown(),
        problem: problem.to_owned(),
    }
}
