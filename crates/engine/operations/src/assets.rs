//! Content behind the addresses of remote assets.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::web::Web;
use async_trait::async_trait;
use nimbus_engine_monitor::{AssetReader, NoRemoteAssets};
use nimbus_engine_sandbox::ProgramNetwork;
use tokio::sync::Mutex;
use url::Url;

/// An asset is held in memory while its hash is computed.
const LARGEST: u64 = 1 << 30;

/// Whoever may not reach the network does not get it through the engine either.
pub(crate) fn reader(network: ProgramNetwork) -> Arc<dyn AssetReader> {
    match network {
        ProgramNetwork::None => Arc::new(NoRemoteAssets),
        ProgramNetwork::Full => Arc::new(WebAssets::default()),
    }
}

/// Reads `http://` and `https://` addresses, each once: a run sees one content behind one address,
/// however often its program names it.
#[derive(Default)]
pub(crate) struct WebAssets {
    read: Mutex<BTreeMap<String, Arc<Vec<u8>>>>,
}

#[async_trait]
impl AssetReader for WebAssets {
    async fn read(&self, uri: &str) -> Result<Vec<u8>, String> {
        // Held while reading: who asks for the same waits for the first answer.
        let mut read = self.read.lock().await;
        if let Some(content) = read.get(uri) {
            return Ok(content.to_vec());
        }
        let url: Url = uri.parse().map_err(|_| "it is not an address".to_owned())?;
        let web = Web::new(LARGEST).map_err(|error| error.to_string())?;
        let content = web.read(&url).await.map_err(|error| error.to_string())?;
        let content = Arc::new(content);
        read.insert(uri.to_owned(), Arc::clone(&content));
        Ok(content.to_vec())
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::TcpListener;

    use super::*;

    /// A server that answers once.
    fn server(body: &'static str) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        std::thread::spawn(move || {
            let (mut connection, _) = listener.accept().unwrap();
            let mut request = Vec::new();
            while !request.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                connection.read_exact(&mut byte).unwrap();
                request.push(byte[0]);
            }
            let length = body.len();
            let head = format!("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {length}");
            let answer = format!("{head}\r\n\r\n{body}");
            connection.write_all(answer.as_bytes()).unwrap();
        });
        format!("http://127.0.0.1:{port}/file")
    }

    #[tokio::test]
    async fn an_address_is_read_once_in_a_run() {
        let uri = server("content");
        let assets = WebAssets::default();
        assert_eq!(assets.read(&uri).await.unwrap(), b"content");
        assert_eq!(assets.read(&uri).await.unwrap(), b"content");
        let error = assets.read("ftp://127.0.0.1/x").await.unwrap_err();
        assert!(error.contains("ftp"), "{error}");
    }

    #[tokio::test]
    async fn a_program_without_network_cannot_have_the_engine_ask() {
        let uri = server("content");
        assert!(reader(ProgramNetwork::None).read(&uri).await.is_err());
        let content = reader(ProgramNetwork::Full).read(&uri).await.unwrap();
        assert_eq!(content, b"content");
    }
}
