//! A receiver of webhooks on a real socket that answers as it is told and keeps what it heard.

use std::collections::VecDeque;
use std::sync::Arc;

use axum::http::{HeaderMap, HeaderName, HeaderValue};
use parking_lot::Mutex;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// How the next call is answered; with 200 when nothing was said.
#[derive(Clone, Debug)]
pub(crate) enum Reply {
    Status(u16),
    Redirect(String),
    /// Takes the call and never answers.
    Silent,
    /// Takes it, and answers with a body that never ends.
    Endless,
}

/// A call as it came.
#[derive(Clone, Debug)]
pub(crate) struct HeardCall {
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl HeardCall {
    pub(crate) fn header(&self, name: &str) -> String {
        self.headers[name].to_str().unwrap().to_owned()
    }
}

#[derive(Clone)]
pub(crate) struct WebhookReceiver {
    pub(crate) port: u16,
    heard: Arc<Mutex<Vec<HeardCall>>>,
    replies: Arc<Mutex<VecDeque<Reply>>>,
}

impl WebhookReceiver {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let receiver = Self {
            port: listener.local_addr().unwrap().port(),
            heard: Arc::default(),
            replies: Arc::default(),
        };
        let own = receiver.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let own = own.clone();
                tokio::spawn(async move { own.answer(stream).await });
            }
        });
        receiver
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}/hook", self.port)
    }

    pub(crate) fn reply(&self, replies: impl IntoIterator<Item = Reply>) {
        self.replies.lock().extend(replies);
    }

    pub(crate) fn heard(&self) -> Vec<HeardCall> {
        self.heard.lock().clone()
    }

    async fn answer(&self, mut stream: TcpStream) {
        let Some(call) = read_call(&mut stream).await else {
            return;
        };
        self.heard.lock().push(call);
        let reply = self.replies.lock().pop_front();
        let head = match reply.clone().unwrap_or(Reply::Status(200)) {
            Reply::Status(status) => format!("HTTP/1.1 {status} x\r\ncontent-length: 0\r\n\r\n"),
            Reply::Redirect(to) => {
                format!("HTTP/1.1 302 x\r\nlocation: {to}\r\ncontent-length: 0\r\n\r\n")
            }
            Reply::Endless => "HTTP/1.1 200 x\r\ncontent-length: 1000000000\r\n\r\nx".to_owned(),
            Reply::Silent => String::new(),
        };
        let _ = stream.write_all(head.as_bytes()).await;
        if matches!(reply, Some(Reply::Silent | Reply::Endless)) {
            // Until the caller hangs up.
            let _ = stream.read(&mut [0; 1]).await;
        }
    }
}

async fn read_call(stream: &mut TcpStream) -> Option<HeardCall> {
    let mut bytes = Vec::new();
    let mut part = [0; 4096];
    let end = loop {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break end + 4;
        }
        match stream.read(&mut part).await {
            Ok(count) if count > 0 => bytes.extend_from_slice(&part[..count]),
            _ => return None,
        }
    };
    let head = String::from_utf8(bytes[..end].to_vec()).ok()?;
    let mut headers = HeaderMap::new();
    for line in head.lines().skip(1).filter(|line| !line.is_empty()) {
        let (name, value) = line.split_once(": ")?;
        let name: HeaderName = name.parse().ok()?;
        headers.insert(name, HeaderValue::from_str(value).ok()?);
    }
    let length: usize = headers.get("content-length")?.to_str().ok()?.parse().ok()?;
    let mut body = bytes[end..].to_vec();
    while body.len() < length {
        match stream.read(&mut part).await {
            Ok(count) if count > 0 => body.extend_from_slice(&part[..count]),
            _ => return None,
        }
    }
    Some(HeardCall { headers, body })
}
