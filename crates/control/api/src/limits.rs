//! How often somebody may ask.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use nimbus_control_app::{Failure, Identity};
use nimbus_control_auth::network::Network;
use nimbus_control_auth::rate::{Limit, Limiter};
use nimbus_core::TenantId;
use parking_lot::Mutex;

/// Limits of one server process.
#[derive(Debug)]
pub struct ApiLimits {
    started: Instant,
    /// Per network of a caller, before anything is looked at.
    addresses: Mutex<Limiter<Option<Network>>>,
    /// Attempts to sign in, per network of a caller.
    sign_ins: Mutex<Limiter<Option<Network>>>,
    /// Per user of a tenant.
    callers: Mutex<Limiter<String>>,
    /// Per tenant, of all its callers together.
    tenants: Mutex<Limiter<TenantId>>,
    /// Networks from which a worker proved itself, and when it last did.
    workers: Mutex<HashMap<Option<Network>, Instant>>,
}

/// For so long a network is a worker's after it proved itself.
const WORKER_PROOF: Duration = Duration::from_secs(60);

impl ApiLimits {
    /// Requests from one address.
    pub const ADDRESS: Limit = Limit::per_second(100);
    /// Attempts to sign in from one address.
    pub const SIGN_IN: Limit = Limit::per_minute(10);

    pub fn new(addresses: Limit, sign_ins: Limit, callers: Limit) -> Self {
        Self {
            started: Instant::now(),
            addresses: Mutex::new(Limiter::new(addresses)),
            sign_ins: Mutex::new(Limiter::new(sign_ins)),
            callers: Mutex::new(Limiter::new(callers)),
            tenants: Mutex::new(Limiter::new(Limit::NONE)),
            workers: Mutex::default(),
        }
    }

    /// A worker proved itself from there.
    pub(crate) fn worker_proved(&self, ip: Option<IpAddr>) {
        let mut workers = self.workers.lock();
        workers.retain(|_, proved| proved.elapsed() < WORKER_PROOF);
        workers.insert(ip.map(Network::of_caller), Instant::now());
    }

    /// Whether a worker proved itself from there of late: its calls are as many as its runs need.
    pub(crate) fn is_worker(&self, ip: Option<IpAddr>) -> bool {
        let workers = self.workers.lock();
        let proved = workers.get(&ip.map(Network::of_caller));
        proved.is_some_and(|proved| proved.elapsed() < WORKER_PROOF)
    }

    /// What all callers of a tenant may ask for together, so that no tenant takes the server from the others.
    pub fn with_tenants(mut self, tenants: Limit) -> Self {
        self.tenants = Mutex::new(Limiter::new(tenants));
        self
    }

    fn now(&self) -> f64 {
        self.started.elapsed().as_secs_f64()
    }

    pub(crate) fn take_address(&self, ip: Option<IpAddr>) -> Result<(), Failure> {
        self.addresses
            .lock()
            .take(ip.map(Network::of_caller), self.now())
            .map_err(wait)
    }

    pub(crate) fn take_sign_in(&self, ip: Option<IpAddr>) -> Result<(), Failure> {
        self.sign_ins
            .lock()
            .take(ip.map(Network::of_caller), self.now())
            .map_err(wait)
    }

    pub(crate) fn take_caller(&self, who: &Identity) -> Result<(), Failure> {
        let key = format!("{}/{}", who.home, who.user);
        // The caller first: whoever is above a limit of his own takes nothing from his colleagues.
        self.callers.lock().take(key, self.now()).map_err(wait)?;
        self.tenants.lock().take(who.home, self.now()).map_err(wait)
    }

    /// As many requests as one stands for, beside the one that was counted already.
    pub(crate) fn take_more(&self, who: &Identity, requests: usize) -> Result<(), Failure> {
        (1..requests).try_for_each(|_| self.take_caller(who))
    }

    /// The same, for requests of nobody who is known.
    pub(crate) fn take_more_of_address(
        &self,
        ip: Option<IpAddr>,
        requests: usize,
    ) -> Result<(), Failure> {
        (1..requests).try_for_each(|_| self.take_address(ip))
    }
}

fn wait(seconds: f64) -> Failure {
    Failure::wait(seconds.ceil().max(1.0) as u64)
}
