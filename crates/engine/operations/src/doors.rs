//! Addresses at which shared plugins find the engine.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use nimbus_engine_monitor::{EngineEndpoint, Listen};
use nimbus_engine_plugin::{EngineDoor, EngineDoors};
use nimbus_engine_ports::EventSink;

/// A port of its own for each, so that it is known who speaks.
pub(crate) struct Ports;

#[async_trait]
impl EngineDoors for Ports {
    async fn open(&self, audience: Arc<dyn EventSink>) -> io::Result<EngineDoor> {
        let endpoint = EngineEndpoint::start(&Listen::Loopback, audience).await?;
        Ok(EngineDoor {
            address: endpoint.address().to_owned(),
            server: Box::new(endpoint),
        })
    }

    async fn open_at(
        &self,
        socket: PathBuf,
        audience: Arc<dyn EventSink>,
    ) -> io::Result<EngineDoor> {
        let endpoint = EngineEndpoint::start(&Listen::UnixSocket(socket), audience).await?;
        Ok(EngineDoor {
            address: endpoint.address().to_owned(),
            server: Box::new(endpoint),
        })
    }
}
