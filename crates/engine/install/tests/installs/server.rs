//! A file server that can be told to misbehave. It speaks just enough HTTP.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};

/// How a file is served.
#[derive(Clone, Debug)]
pub(crate) struct Served {
    pub(crate) body: Vec<u8>,
    pub(crate) etag: Option<String>,
    /// Every answer ends after this many bytes.
    pub(crate) cut_after: Option<usize>,
    /// The next answers are these statuses.
    pub(crate) fails: Vec<u16>,
    /// The answers after the next file are these statuses.
    pub(crate) fails_then: Vec<u16>,
    pub(crate) redirect: Option<String>,
}

/// What was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Asked {
    pub(crate) path: String,
    pub(crate) range: Option<String>,
    pub(crate) authorization: Option<String>,
}

#[derive(Clone, Default)]
struct State {
    files: Arc<Mutex<BTreeMap<String, Served>>>,
    asked: Arc<Mutex<Vec<Asked>>>,
}

pub(crate) struct Server {
    address: String,
    state: State,
    accepting: tokio::task::JoinHandle<()>,
}

impl Server {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        let state = State::default();
        let shared = state.clone();
        let accepting = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let state = shared.clone();
                // A client that goes away is its own affair.
                tokio::spawn(async move { answer(stream, state).await.ok() });
            }
        });
        Self {
            address,
            state,
            accepting,
        }
    }

    pub(crate) fn host(&self) -> &str {
        &self.address
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(crate) fn serve(&self, path: &str, served: Served) {
        let mut files = self
            .state
            .files
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        files.insert(path.to_owned(), served);
    }

    pub(crate) fn asked(&self) -> Vec<Asked> {
        let asked = self
            .state
            .asked
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        asked.clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl Served {
    pub(crate) fn file(body: impl Into<Vec<u8>>) -> Self {
        Self {
            body: body.into(),
            etag: Some("\"one\"".to_owned()),
            cut_after: None,
            fails: Vec::new(),
            fails_then: Vec::new(),
            redirect: None,
        }
    }
}

async fn answer(stream: TcpStream, state: State) -> std::io::Result<()> {
    let mut stream = BufReader::new(stream);
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await?;
        match line.trim() {
            "" => break,
            text => lines.push(text.to_owned()),
        }
    }
    let path = lines.first().and_then(|line| line.split(' ').nth(1));
    let header = |name: &str| {
        lines.iter().skip(1).find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name)
                .then(|| value.trim().to_owned())
        })
    };
    let asked = Asked {
        path: path.unwrap_or_default().to_owned(),
        range: header("range"),
        authorization: header("authorization"),
    };
    let (head, body) = respond(&state, &asked, header("if-range"));
    state
        .asked
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .push(asked);
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(&body).await?;
    stream.shutdown().await
}

fn respond(state: &State, asked: &Asked, if_range: Option<String>) -> (String, Vec<u8>) {
    let mut files = state.files.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(file) = files.get_mut(&asked.path) else {
        return status(404);
    };
    if !file.fails.is_empty() {
        return status(file.fails.remove(0));
    }
    if let Some(place) = &file.redirect {
        let head = format!(
            "HTTP/1.1 302 Found\r\nLocation: {place}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        );
        return (head, Vec::new());
    }
    file.fails = std::mem::take(&mut file.fails_then);
    let total = file.body.len();
    let fits = if_range.is_none() || if_range == file.etag;
    let from = asked.range.as_ref().filter(|_| fits).and_then(|range| {
        let digits = range.strip_prefix("bytes=")?.strip_suffix('-')?;
        digits.parse::<usize>().ok()
    });
    if from.is_some_and(|from| from >= total) {
        return status(416);
    }
    let etag = file.etag.as_ref().map(|etag| format!("ETag: {etag}\r\n"));
    let (line, range) = match from {
        Some(from) => {
            let range = format!("Content-Range: bytes {from}-{}/{total}\r\n", total - 1);
            ("206 Partial Content", range)
        }
        None => ("200 OK", String::new()),
    };
    let body = &file.body[from.unwrap_or(0)..];
    let head = format!(
        "HTTP/1.1 {line}\r\nContent-Length: {}\r\n{range}{}Connection: close\r\n\r\n",
        body.len(),
        etag.unwrap_or_default()
    );
    let sent = file.cut_after.unwrap_or(usize::MAX).min(body.len());
    (head, body[..sent].to_vec())
}

fn status(code: u16) -> (String, Vec<u8>) {
    let head = format!("HTTP/1.1 {code} X\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    (head, Vec::new())
}
