//! What the server counts, for whoever watches over it.
//!
//! Nothing here names a tenant or a person, but how much goes on in an installation is not for everybody either: only the
//! networks that the operator names may ask, and for everybody else there is nothing here. The database is not asked who
//! somebody is, so that the numbers can be had when it is away.

use std::net::SocketAddr;
use std::time::Duration;

use axum::extract::{ConnectInfo, Request, State};
use axum::http::header;
use axum::response::{IntoResponse as _, Response};
use nimbus_control_api::{Front, NetworkOfCaller};
use nimbus_control_metrics::CONTENT_TYPE;
use tracing::warn;

use super::{ServerState, unknown};
use crate::readiness::Condition;

/// Whoever scrapes waits no longer for what the database knows.
const PATIENCE: Duration = Duration::from_secs(2);

/// Who may read the metrics.
#[derive(Clone, Debug)]
pub struct MetricsReaders(Vec<NetworkOfCaller>);

impl Default for MetricsReaders {
    /// This machine.
    fn default() -> Self {
        Self::parse(Self::THIS_MACHINE).expect("these are networks")
    }
}

impl MetricsReaders {
    const THIS_MACHINE: &str = "127.0.0.0/8,::1/128";

    /// Networks, separated by commas; an empty text is nobody.
    ///
    /// # Errors
    ///
    /// The part that is not a network.
    pub fn parse(networks: &str) -> Result<Self, String> {
        let parts = networks.split(',').map(str::trim);
        let parts = parts.filter(|part| !part.is_empty());
        let network = |part: &str| part.parse().map_err(|_| part.to_owned());
        Ok(Self(parts.map(network).collect::<Result<_, _>>()?))
    }

    fn admit(&self, front: &Front, request: &Request) -> bool {
        let peer = request.extensions().get::<ConnectInfo<SocketAddr>>();
        let Some(peer) = peer.map(|info| info.0.ip()) else {
            return false;
        };
        // A proxy on this machine would make everybody somebody of this machine.
        if front.is_passed_on_by_strangers(peer, request.headers()) {
            return false;
        }
        front
            .client(Some(peer), request.headers())
            .is_some_and(|client| self.0.iter().any(|network| network.contains(client)))
    }
}

pub(crate) async fn metrics(State(state): State<ServerState>, request: Request) -> Response {
    if !state.readers.admit(&state.front, &request) {
        return unknown(request.uri().clone()).await;
    }
    let metrics = state.store.metrics();
    let ready = state.readiness.now().await == Condition::Ready;
    metrics.set_ready(ready);
    state.store.measure_pool();
    // What cannot be asked now keeps the value that it had.
    if ready {
        match tokio::time::timeout(PATIENCE, state.store.active_tenants()).await {
            Ok(Ok(tenants)) => metrics.set_active_tenants(tenants),
            Ok(Err(error)) => warn!(%error, "tenants were not counted"),
            Err(_) => warn!("tenants were not counted in time"),
        }
    }
    ([(header::CONTENT_TYPE, CONTENT_TYPE)], metrics.text()).into_response()
}

#[cfg(test)]
mod tests {
    use axum::body::Body;

    use super::*;

    fn admitted(readers: &str, proxies: &str, peer: &str, forwarded: Option<&str>) -> bool {
        let mut request = Request::builder().uri("/metrics");
        if let Some(forwarded) = forwarded {
            request = request.header("x-forwarded-for", forwarded);
        }
        let mut request = request.body(Body::empty()).unwrap();
        let peer: SocketAddr = format!("{peer}:4000").parse().unwrap();
        request.extensions_mut().insert(ConnectInfo(peer));
        let front = Front::parse(proxies, "").unwrap();
        MetricsReaders::parse(readers)
            .unwrap()
            .admit(&front, &request)
    }

    #[test]
    fn only_the_networks_that_are_named_may_read() {
        let machine = MetricsReaders::THIS_MACHINE;
        assert!(admitted(machine, "", "127.0.0.1", None));
        assert!(admitted(machine, "", "[::1]", None));
        assert!(!admitted(machine, "", "10.0.0.7", None));
        assert!(admitted("10.0.0.0/8", "", "10.0.0.7", None));
        assert!(!admitted("", "", "127.0.0.1", None), "nobody is nobody");
        assert!(MetricsReaders::parse("10.0.0.0/8, somewhere").is_err());
    }

    #[test]
    fn what_a_proxy_passes_on_counts_as_whoever_asked_the_proxy() {
        let machine = MetricsReaders::THIS_MACHINE;
        assert!(!admitted(machine, "", "127.0.0.1", Some("127.0.0.1")));
        assert!(!admitted(
            machine,
            "127.0.0.1",
            "127.0.0.1",
            Some("9.9.9.9")
        ));
        let inside = admitted("10.0.0.0/8", "127.0.0.1", "127.0.0.1", Some("10.1.1.1"));
        assert!(inside);
    }
}
