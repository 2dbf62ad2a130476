//! A port of the loopback interface that serves one package.

use std::io;
use std::net::Ipv4Addr;
use std::num::NonZeroU16;
use std::sync::Arc;

use nimbus_engine_model::PackageDescriptor;
use nimbus_engine_ports::ProviderHost;
use nimbus_engine_proto::MAX_MESSAGE_BYTES;
use nimbus_engine_proto::resource_provider_server::ResourceProviderServer;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_stream::StreamExt as _;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::transport::Server;

use crate::connection::{ConnectionState, ConnectionStream};
use crate::service::Service;

/// Serves until it is dropped: then nobody new is let in, and connections end with their last call.
pub struct ProviderServer {
    port: NonZeroU16,
    task: JoinHandle<()>,
}

impl ProviderServer {
    /// Every connection gets what `host` loads for `package`.
    pub async fn start(
        host: Arc<dyn ProviderHost>,
        package: PackageDescriptor,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let port = NonZeroU16::new(listener.local_addr()?.port())
            .ok_or_else(|| io::Error::other("the system gave no port"))?;
        let lines = TcpListenerStream::new(listener).map(move |stream| {
            let stream = stream?;
            stream.set_nodelay(true)?;
            let connection = Arc::new(ConnectionState::new(Arc::clone(&host), package.clone()));
            io::Result::Ok(ConnectionStream { stream, connection })
        });
        let service = ResourceProviderServer::new(Service)
            .max_decoding_message_size(MAX_MESSAGE_BYTES)
            .max_encoding_message_size(MAX_MESSAGE_BYTES);
        // An engine may have any number of calls under way; none may wait for another to end.
        let server = Server::builder().max_concurrent_streams(Some(u32::MAX));
        let task = tokio::spawn(async move {
            let mut server = server;
            let served = server
                .add_service(service)
                .serve_with_incoming_shutdown(lines, std::future::pending())
                .await;
            if let Err(error) = served {
                tracing::warn!(%error, "a served provider ended");
            }
        });
        Ok(Self { port, task })
    }

    pub fn port(&self) -> NonZeroU16 {
        self.port
    }
}

impl Drop for ProviderServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}
