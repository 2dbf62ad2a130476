//! How many connections a program may have at a time.
//!
//! Those beyond wait in the kernel's queue, which is short: whoever opens connections without end keeps
//! nobody waiting but itself, and the engine holds buffers and descriptors for a few.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_stream::Stream;
use tonic::transport::server::{Connected, UdsConnectInfo};

pub(super) struct Admission {
    listener: UnixListener,
    places: Arc<Semaphore>,
}

impl Admission {
    /// `None` for a program of one's own.
    pub(super) fn new(listener: UnixListener, most: Option<usize>) -> Self {
        let most = most.unwrap_or(Semaphore::MAX_PERMITS);
        Self {
            listener,
            places: Arc::new(Semaphore::new(most)),
        }
    }

    pub(super) fn connections(self) -> impl Stream<Item = io::Result<AdmittedConnection>> {
        futures::stream::unfold(self, |admission| async move {
            let place = Arc::clone(&admission.places).acquire_owned().await.ok()?;
            let accepted = admission.listener.accept().await;
            let accepted = accepted.map(|(stream, _)| AdmittedConnection {
                stream,
                _place: place,
            });
            Some((accepted, admission))
        })
    }
}

/// A connection that gives its place back when it ends.
pub(super) struct AdmittedConnection {
    stream: UnixStream,
    _place: OwnedSemaphorePermit,
}

impl Connected for AdmittedConnection {
    type ConnectInfo = UdsConnectInfo;

    fn connect_info(&self) -> UdsConnectInfo {
        self.stream.connect_info()
    }
}

impl AsyncRead for AdmittedConnection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for AdmittedConnection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, buffer)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffers: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, buffers)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
