//! What belongs to one connection: a provider of its own, and what the engine at the other end
//! understands.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use nimbus_engine_model::{PackageDescriptor, Parameterization};
use nimbus_engine_ports::{Provider, ProviderHost};
use nimbus_engine_wire::{Accept, UnknownEncoding};
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tonic::transport::server::Connected;
use tonic::{Code, Status};

use crate::failure;

pub(crate) struct ConnectionState {
    host: Arc<dyn ProviderHost>,
    served: tokio::sync::Mutex<Served>,
    engine: Mutex<Accept>,
}

struct Served {
    package: PackageDescriptor,
    provider: Option<Arc<dyn Provider>>,
}

impl ConnectionState {
    pub(crate) fn new(host: Arc<dyn ProviderHost>, package: PackageDescriptor) -> Self {
        let served = Served {
            package,
            provider: None,
        };
        // Engines that never say what they understand are those which understand secrets.
        let engine = Accept {
            unknowns: UnknownEncoding::Keep,
            secrets: true,
            resources: true,
            ..Accept::default()
        };
        Self {
            host,
            served: tokio::sync::Mutex::new(served),
            engine: Mutex::new(engine),
        }
    }

    /// What answers may contain.
    pub(crate) fn accept(&self) -> Accept {
        *self.engine.lock()
    }

    pub(crate) fn learn(&self, what: impl FnOnce(&mut Accept)) {
        what(&mut self.engine.lock());
    }

    pub(crate) async fn package(&self) -> PackageDescriptor {
        self.served.lock().await.package.clone()
    }

    /// Loaded by the first call that needs it.
    pub(crate) async fn provider(&self) -> Result<Arc<dyn Provider>, Status> {
        let mut served = self.served.lock().await;
        if let Some(provider) = &served.provider {
            return Ok(Arc::clone(provider));
        }
        let provider = self.host.load(&served.package).await;
        let provider =
            provider.map_err(|error| Status::new(Code::Unavailable, error.to_string()))?;
        served.provider = Some(Arc::clone(&provider));
        Ok(provider)
    }

    /// Makes the package another one, which is possible only before it is used. Afterwards it is extended:
    /// engines ask for both with the same call.
    pub(crate) async fn become_package(&self, package: Parameterization) -> Result<(), Status> {
        let mut served = self.served.lock().await;
        if let Some(provider) = &served.provider {
            let extended = provider.extend(&package).await;
            return extended.map_err(|error| failure::status(error, self.accept()));
        }
        served.package.parameterization = Some(package);
        Ok(())
    }
}

impl Drop for ConnectionState {
    fn drop(&mut self) {
        let Some(provider) = self.served.get_mut().provider.take() else {
            return;
        };
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move { provider.close().await });
        }
    }
}

/// A connection that carries its state to every call that comes over it.
pub(crate) struct ConnectionStream {
    pub(crate) stream: TcpStream,
    pub(crate) connection: Arc<ConnectionState>,
}

impl Connected for ConnectionStream {
    type ConnectInfo = Arc<ConnectionState>;

    fn connect_info(&self) -> Arc<ConnectionState> {
        Arc::clone(&self.connection)
    }
}

impl AsyncRead for ConnectionStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for ConnectionStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
