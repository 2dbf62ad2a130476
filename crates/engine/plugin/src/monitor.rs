//! Reaching our own monitor by the address that programs are given.

use std::path::PathBuf;

use hyper_util::rt::TokioIo;
use tokio::net::UnixStream;
use tonic::transport::{Channel, Endpoint};

/// `host:port`, or `unix:` and the path of a socket.
pub(crate) async fn connect(address: &str) -> Result<Channel, String> {
    let failed = |error: tonic::transport::Error| {
        format!("the resource monitor at {address} cannot be reached: {error}")
    };
    let Some(path) = address.strip_prefix("unix:") else {
        let endpoint = Endpoint::from_shared(format!("http://{address}")).map_err(failed)?;
        return endpoint.connect().await.map_err(failed);
    };
    let path = PathBuf::from(path.trim_start_matches("//"));
    let connector = Socket { path };
    Endpoint::from_static("http://monitor")
        .connect_with_connector(connector)
        .await
        .map_err(failed)
}

struct Socket {
    path: PathBuf,
}

impl tower::Service<http::Uri> for Socket {
    type Response = TokioIo<UnixStream>;
    type Error = std::io::Error;
    type Future = std::pin::Pin<
        Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send + 'static>,
    >;

    fn poll_ready(
        &mut self,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Result<(), Self::Error>> {
        std::task::Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: http::Uri) -> Self::Future {
        let path = self.path.clone();
        Box::pin(async move { Ok(TokioIo::new(UnixStream::connect(path).await?)) })
    }
}
