//! Which plugin processes there are, and who uses them.
//!
//! A process is started once for all who want the same, asked about one configuration, and
//! configured once. Two configurations never meet in one process. An operation leases the process
//! that fits and gives it back; a process that nobody uses waits for a while.
//!
//! A host has a pool of its own, for what belongs to its operation alone, and may take part in one
//! that outlives it. The rules for sharing are in `sharing`; here is only the keeping.

mod keep;
mod key;
mod lease;
mod slot;
mod users;

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Weak};
use std::time::Instant;

use async_trait::async_trait;
use futures::FutureExt as _;
use futures::future::join_all;
use nimbus_engine_ports::EventSink;
use parking_lot::Mutex;

use crate::error::PluginError;
use crate::link::CallError;
use crate::options::PluginTimeouts;
use crate::plugin::Plugin;
use crate::sharing::SharingReach;
use crate::start::StartPlan;
use slot::PooledProcess;

pub use keep::KeepWarm;
pub(crate) use key::{ConfigurationKeys, DigestFields, KeyDigest};
pub(crate) use lease::ProcessLease;
pub(crate) use slot::{Configuring, Starting};
pub(crate) use users::PoolUser;
use users::PoolUsers;

/// Opens addresses at which plugins find the engine.
#[async_trait]
pub trait CallbackServers: Send + Sync {
    /// What is said at the new address goes to `audience`.
    async fn open(&self, audience: Arc<dyn EventSink>) -> std::io::Result<CallbackServer>;

    /// The same at a socket in the file system, for strangers' code that has no network. What it sends
    /// may take so many bytes in all.
    async fn open_at(
        &self,
        socket: PathBuf,
        audience: Arc<dyn EventSink>,
        most_bytes: u64,
    ) -> std::io::Result<CallbackServer>;
}

/// An address that is served until this is dropped.
pub struct CallbackServer {
    pub address: String,
    pub server: Box<dyn Send + Sync>,
}

/// Processes of provider plugins that operations share, and that stay warm between them.
pub struct ProviderPool {
    keep: KeepWarm,
    limits: PluginTimeouts,
    servers: CallbackAddress,
    keys: ConfigurationKeys,
    table: Mutex<ProcessTable>,
    this: Weak<Self>,
}

enum CallbackAddress {
    /// Everybody has the same address.
    One(String),
    /// Every process has an address of its own, so that it is known who speaks.
    Each(Arc<dyn CallbackServers>),
}

#[derive(Default)]
struct ProcessTable {
    slots: Vec<PooledProcess>,
    next: u64,
    closed: bool,
}

impl ProviderPool {
    pub fn new(
        keep: KeepWarm,
        limits: PluginTimeouts,
        servers: Arc<dyn CallbackServers>,
    ) -> Arc<Self> {
        Self::with_servers(keep, limits, CallbackAddress::Each(servers))
    }

    /// For one operation.
    pub(crate) fn of_operation(limits: PluginTimeouts, address: String) -> Arc<Self> {
        Self::with_servers(KeepWarm::NOTHING, limits, CallbackAddress::One(address))
    }

    fn with_servers(keep: KeepWarm, limits: PluginTimeouts, servers: CallbackAddress) -> Arc<Self> {
        Arc::new_cyclic(|this| Self {
            keep,
            limits,
            servers,
            keys: ConfigurationKeys::new(),
            table: Mutex::default(),
            this: this.clone(),
        })
    }

    pub(crate) fn fields(&self) -> DigestFields {
        self.keys.fields()
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.table.lock().closed
    }

    /// How many processes there are.
    pub fn len(&self) -> usize {
        let table = self.table.lock();
        table.slots.iter().filter(|slot| slot.is_alive()).count()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Any process that was started like this, to see that there can be one.
    pub(crate) fn any(
        &self,
        plan: &StartPlan,
        launch: KeyDigest,
        user: &Arc<PoolUser>,
    ) -> Result<ProcessLease, PluginError> {
        let mut table = self.open_table()?;
        let found = self.find(&table, launch, |_| true);
        Ok(self.lease(&mut table, found, plan, launch, user))
    }

    /// The process that is asked about this configuration.
    pub(crate) fn to_check(
        &self,
        plan: &StartPlan,
        launch: KeyDigest,
        configuration: KeyDigest,
        user: &Arc<PoolUser>,
    ) -> Result<ProcessLease, PluginError> {
        let mut table = self.open_table()?;
        let found = self
            .find(&table, launch, |slot| slot.checked == Some(configuration))
            .or_else(|| self.find(&table, launch, PooledProcess::is_blank));
        let lease = self.lease(&mut table, found, plan, launch, user);
        if let Some(slot) = table.slot(lease.slot) {
            slot.checked = Some(configuration);
        }
        Ok(lease)
    }

    /// The process that has this configuration, or is given it: the one of `held` if it has none
    /// yet, else a new one.
    pub(crate) fn to_configure(
        &self,
        plan: &StartPlan,
        (launch, configuration): (KeyDigest, KeyDigest),
        held: Option<&ProcessLease>,
        user: &Arc<PoolUser>,
        configure: impl FnOnce(Starting) -> Configuring,
    ) -> Result<(ProcessLease, Configuring), PluginError> {
        let mut table = self.open_table()?;
        let has = |slot: &PooledProcess| matches!(&slot.configured, Some((has, _)) if *has == configuration);
        let is_held = |slot: &PooledProcess| {
            let held = held.filter(|held| std::ptr::eq(Arc::as_ptr(&held.pool), self));
            held.is_some_and(|held| held.slot == slot.id) && slot.configured.is_none()
        };
        let found = self
            .find(&table, launch, has)
            .or_else(|| self.find(&table, launch, is_held))
            .or_else(|| self.find(&table, launch, PooledProcess::is_blank));
        let lease = self.lease(&mut table, found, plan, launch, user);
        let slot = table.slot(lease.slot).expect("it was leased just now");
        let configuring = slot.configure(configuration, configure);
        Ok((lease, configuring))
    }

    fn open_table(&self) -> Result<parking_lot::MutexGuard<'_, ProcessTable>, PluginError> {
        let table = self.table.lock();
        if table.closed {
            return Err(PluginError::Ending);
        }
        Ok(table)
    }

    fn find(
        &self,
        table: &ProcessTable,
        launch: KeyDigest,
        fits: impl Fn(&PooledProcess) -> bool,
    ) -> Option<u64> {
        let usable = |slot: &&PooledProcess| {
            slot.launch == launch && fits(slot) && slot.is_usable(self.keep.age)
        };
        table.slots.iter().find(usable).map(|slot| slot.id)
    }

    fn lease(
        &self,
        table: &mut ProcessTable,
        found: Option<u64>,
        plan: &StartPlan,
        launch: KeyDigest,
        user: &Arc<PoolUser>,
    ) -> ProcessLease {
        let id = found.unwrap_or_else(|| {
            let audience = Arc::new(PoolUsers::default());
            let starting = self.start(plan.clone(), Arc::clone(&audience));
            table.next += 1;
            let slot = PooledProcess::new(table.next, (launch, plan.reach()), starting, audience);
            table.slots.push(slot);
            table.next
        });
        let slot = table.slot(id).expect("it was found or added just now");
        ProcessLease {
            hurry: slot.enter(user),
            starting: slot.starting.clone(),
            slot: id,
            user: Arc::clone(user),
            pool: self.this.upgrade().expect("somebody holds it to call this"),
            given_back: AtomicBool::new(false),
        }
    }

    fn start(&self, plan: StartPlan, audience: Arc<PoolUsers>) -> Starting {
        let servers = match &self.servers {
            CallbackAddress::One(address) => CallbackAddress::One(address.clone()),
            CallbackAddress::Each(servers) => CallbackAddress::Each(Arc::clone(servers)),
        };
        let starting = async move {
            let (address, server) = match servers {
                CallbackAddress::One(address) => (address, None),
                CallbackAddress::Each(servers) => {
                    let server = servers.open(Arc::clone(&audience) as _).await;
                    let server = server.map_err(|error| {
                        plan.not_started(&format!("no local port can be opened: {error}"))
                    })?;
                    (server.address, Some(server.server))
                }
            };
            let mut plugin = plan.start(address, audience).await?;
            plugin.engine = server;
            Ok(Arc::new(plugin))
        };
        starting
            .map(|result: Result<_, PluginError>| result.map_err(Arc::new))
            .boxed()
            .shared()
    }

    /// Somebody is done with a process. One that is to end is handed to the caller.
    fn leave(&self, id: u64, user: &PoolUser) -> Option<Arc<Plugin>> {
        let mut table = self.table.lock();
        let slot = table.slot(id)?;
        if !slot.leave(user) {
            // Those who are left all want to stop, and nobody is in their way any more.
            let due = slot.is_cancelled() && !slot.stopped;
            let stopped = due.then(|| slot.stop()).flatten();
            drop(table);
            if let (Some(plugin), Ok(runtime)) = (stopped, tokio::runtime::Handle::try_current()) {
                let limit = self.limits.shutdown;
                runtime.spawn(async move { plugin.cancel(limit).await });
            }
            return None;
        }
        let keep = self.keep;
        let may_wait = slot.reach == SharingReach::Everywhere || !keep.only_reviewed;
        let usable = slot.is_usable(keep.age) && !slot.is_starting();
        let wanted = keep.most > 0 && may_wait && usable;
        if !wanted {
            return table.remove(id).and_then(|slot| slot.plugin());
        }
        slot.idle = Some(Instant::now());
        let too_many = self.too_many(&mut table);
        drop(table);
        too_many
            .into_iter()
            .for_each(|plugin| self.end_aside(plugin));
        self.sweep_later();
        None
    }

    /// Processes over the number that may wait.
    fn too_many(&self, table: &mut ProcessTable) -> Vec<Arc<Plugin>> {
        let mut waiting: Vec<_> = table
            .slots
            .iter()
            .filter_map(|slot| Some((slot.idle?, slot.id)))
            .collect();
        waiting.sort_unstable();
        let over = waiting.len().saturating_sub(self.keep.most);
        let over = waiting.into_iter().take(over);
        over.filter_map(|(_, id)| table.remove(id)?.plugin())
            .collect()
    }

    /// Ends what has waited long enough, when it has.
    fn sweep_later(&self) {
        let (Some(idle), Ok(runtime)) = (self.keep.idle, tokio::runtime::Handle::try_current())
        else {
            return;
        };
        let pool = self.this.clone();
        runtime.spawn(async move {
            tokio::time::sleep(idle).await;
            if let Some(pool) = pool.upgrade() {
                pool.sweep().await;
            }
        });
    }

    async fn sweep(&self) {
        let Some(idle) = self.keep.idle else {
            return;
        };
        let ended: Vec<_> = {
            let mut table = self.table.lock();
            let over =
                |slot: &&PooledProcess| slot.idle.is_some_and(|since| since.elapsed() >= idle);
            let over: Vec<_> = table
                .slots
                .iter()
                .filter(over)
                .map(|slot| slot.id)
                .collect();
            over.into_iter()
                .filter_map(|id| table.remove(id)?.plugin())
                .collect()
        };
        join_all(ended.iter().map(|plugin| plugin.end(self.limits))).await;
    }

    fn end_aside(&self, plugin: Arc<Plugin>) {
        let limits = self.limits;
        // Without anybody to do it politely, dropping the plugin kills it.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move { plugin.end(limits).await });
        }
    }

    /// The process takes no new users.
    fn retire(&self, id: u64) {
        if let Some(slot) = self.table.lock().slot(id) {
            slot.retired = true;
        }
    }

    /// An operation wants to stop. The plugin is told when everybody who uses it does, because it
    /// would stop the work of all; until then the operation goes on without the answers to calls
    /// that change nothing. What changes something is waited for: only the answer says what became
    /// of it.
    pub(crate) async fn cancel(&self, lease: &ProcessLease) -> Result<(), CallError> {
        let plugin = {
            let mut table = self.table.lock();
            let Some(slot) = table.slot(lease.slot) else {
                return Ok(());
            };
            slot.cancel(&lease.user);
            if !slot.is_cancelled() {
                slot.hurry(&lease.user);
                return Ok(());
            }
            slot.stop()
        };
        match plugin {
            Some(plugin) => plugin.cancel(self.limits.shutdown).await,
            None => Ok(()),
        }
    }

    /// Ends every process, whoever uses it. Nothing can be started afterwards.
    pub async fn close(&self) {
        let left: Vec<_> = {
            let mut table = self.table.lock();
            table.closed = true;
            let slots = std::mem::take(&mut table.slots);
            slots.iter().filter_map(PooledProcess::plugin).collect()
        };
        join_all(left.iter().map(|plugin| plugin.end(self.limits))).await;
    }
}

impl ProcessTable {
    fn slot(&mut self, id: u64) -> Option<&mut PooledProcess> {
        self.slots.iter_mut().find(|slot| slot.id == id)
    }

    fn remove(&mut self, id: u64) -> Option<PooledProcess> {
        let index = self.slots.iter().position(|slot| slot.id == id)?;
        Some(self.slots.swap_remove(index))
    }
}
