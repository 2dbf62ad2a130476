//! Files at web addresses.
//!
//! What may pass by itself is tried again: no connection, a busy or broken server. Anything but a
//! success is an error: the page that says that something is missing is not that something.

use std::time::Duration;

use reqwest::{Client, Response, StatusCode};
use url::Url;

const ATTEMPTS: u32 = 4;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum WebError {
    #[error("{scheme}: is not an address of the web")]
    Scheme { scheme: String },
    #[error("{host} does not answer: {problem}")]
    Unreachable { host: String, problem: String },
    #[error("{host} answers {status}")]
    Refused { host: String, status: u16 },
    #[error("it is larger than {largest} bytes")]
    TooLarge { largest: u64 },
}

/// Reads files of a size that fits into memory.
pub(crate) struct Web {
    client: Client,
    largest: u64,
    /// The first pause; later ones double.
    pause: Duration,
}

impl Web {
    pub(crate) fn new(largest: u64) -> Result<Self, WebError> {
        let client = Client::builder()
            .connect_timeout(Duration::from_secs(30))
            .read_timeout(Duration::from_secs(60))
            .user_agent(concat!("nimbus/", env!("CARGO_PKG_VERSION")))
            .build();
        let client = client.map_err(|error| WebError::Unreachable {
            host: "the network".to_owned(),
            problem: error.to_string(),
        })?;
        Ok(Self {
            client,
            largest,
            pause: Duration::from_millis(200),
        })
    }

    pub(crate) async fn read(&self, url: &Url) -> Result<Vec<u8>, WebError> {
        if !matches!(url.scheme(), "http" | "https") {
            let scheme = url.scheme().to_owned();
            return Err(WebError::Scheme { scheme });
        }
        let mut pause = self.pause;
        for _ in 1..ATTEMPTS {
            match self.attempt(url).await {
                Err(WebError::Unreachable { .. }) => {}
                Err(WebError::Refused { status, .. }) if passes(status) => {}
                other => return other,
            }
            tokio::time::sleep(pause).await;
            pause *= 2;
        }
        self.attempt(url).await
    }

    async fn attempt(&self, url: &Url) -> Result<Vec<u8>, WebError> {
        let host = url.host_str().unwrap_or_default().to_owned();
        let unreachable = |error: reqwest::Error| WebError::Unreachable {
            host: host.clone(),
            // An address may hold a token.
            problem: error.without_url().to_string(),
        };
        let answer = self.client.get(url.clone()).send().await;
        let mut answer: Response = answer.map_err(unreachable)?;
        if !answer.status().is_success() {
            let status = answer.status().as_u16();
            return Err(WebError::Refused { host, status });
        }
        let mut bytes = Vec::new();
        while let Some(part) = answer.chunk().await.map_err(unreachable)? {
            bytes.extend_from_slice(&part);
            if bytes.len() as u64 > self.largest {
                let largest = self.largest;
                return Err(WebError::TooLarge { largest });
            }
        }
        Ok(bytes)
    }
}

fn passes(status: u16) -> bool {
    status >= 500 || status == StatusCode::TOO_MANY_REQUESTS.as_u16()
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::TcpListener;

    use super::*;

    /// A server that gives these answers, one after another.
    fn server(answers: Vec<String>) -> Url {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        std::thread::spawn(move || {
            for answer in answers {
                let (mut connection, _) = listener.accept().unwrap();
                let mut request = Vec::new();
                while !request.ends_with(b"\r\n\r\n") {
                    let mut byte = [0];
                    connection.read_exact(&mut byte).unwrap();
                    request.push(byte[0]);
                }
                connection.write_all(answer.as_bytes()).unwrap();
            }
        });
        format!("http://127.0.0.1:{port}/file?token=hush")
            .parse()
            .unwrap()
    }

    fn answer(status: &str, body: &str) -> String {
        let length = body.len();
        format!("HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}")
    }

    fn web() -> Web {
        Web {
            pause: Duration::ZERO,
            ..Web::new(10).unwrap()
        }
    }

    #[tokio::test]
    async fn a_busy_server_is_asked_again() {
        let url = server(vec![answer("503 Busy", ""), answer("200 OK", "content")]);
        assert_eq!(web().read(&url).await.unwrap(), b"content");
    }

    #[tokio::test]
    async fn what_is_not_there_is_not_mistaken_for_its_error_page() {
        let url = server(vec![answer("404 Not Found", "sorry")]);
        let error = web().read(&url).await.unwrap_err();
        assert!(matches!(error, WebError::Refused { status: 404, .. }));
        assert!(!error.to_string().contains("hush"), "{error}");
    }

    #[tokio::test]
    async fn a_file_without_end_is_given_up() {
        let url = server(vec![answer("200 OK", "more than ten bytes")]);
        assert_eq!(
            web().read(&url).await,
            Err(WebError::TooLarge { largest: 10 })
        );
    }

    #[tokio::test]
    async fn nobody_is_asked_over_other_protocols() {
        let url = "ftp://127.0.0.1/x".parse().unwrap();
        assert!(matches!(
            web().read(&url).await,
            Err(WebError::Scheme { .. })
        ));
        let silent = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = silent.local_addr().unwrap().port();
        drop(silent);
        let url: Url = format!("http://127.0.0.1:{port}/?token=hush")
            .parse()
            .unwrap();
        let error = web().read(&url).await.unwrap_err();
        assert!(matches!(error, WebError::Unreachable { .. }));
        assert!(!error.to_string().contains("hush"), "{error}");
    }
}
