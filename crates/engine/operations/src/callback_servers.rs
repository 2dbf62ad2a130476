//! Addresses at which shared plugins find the engine.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use nimbus_engine_monitor::{EngineEndpoint, Listen, RequestLimits};
use nimbus_engine_plugin::{CallbackServer, CallbackServers};
use nimbus_engine_ports::EventSink;

/// A port of its own for each, so that it is known who speaks.
pub(crate) struct CallbackPorts;

#[async_trait]
impl CallbackServers for CallbackPorts {
    async fn open(&self, audience: Arc<dyn EventSink>) -> io::Result<CallbackServer> {
        let endpoint = EngineEndpoint::start(&Listen::Loopback, audience, None).await?;
        Ok(CallbackServer {
            address: endpoint.address().to_owned(),
            server: Box::new(endpoint),
        })
    }

    async fn open_at(
        &self,
        socket: PathBuf,
        audience: Arc<dyn EventSink>,
        most_bytes: u64,
    ) -> io::Result<CallbackServer> {
        let limits = RequestLimits::of_total(most_bytes);
        let listen = Listen::UnixSocket(socket);
        let endpoint = EngineEndpoint::start(&listen, audience, Some(limits)).await?;
        Ok(CallbackServer {
            address: endpoint.address().to_owned(),
            server: Box::new(endpoint),
        })
    }
}
