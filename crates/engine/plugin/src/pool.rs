//! Which plugin processes there are, and who uses them.
//!
//! A process is blank until it is configured, and configured once. Providers that ask for the very
//! same configuration of the same package share one process; a blank process that turns out not to
//! be needed waits for the next provider of its package. Nothing else is shared: two
//! configurations never meet in one process.

use std::sync::{Arc, Weak};

use nimbus_engine_model::PackageDescriptor;
use nimbus_engine_ports::{ConfigureRequest, EngineEvent, ProviderError};
use parking_lot::Mutex;
use tokio::sync::OnceCell;

use crate::error::PluginError;
use crate::options::{HostOptions, Limits};
use crate::plugin::{Plugin, Protocol};
use crate::start::start_provider;

pub(crate) struct Pool {
    options: HostOptions,
    processes: Mutex<Processes>,
}

#[derive(Default)]
struct Processes {
    blank: Vec<(PackageDescriptor, Arc<Plugin>)>,
    configured: Vec<Arc<Entry>>,
    /// Every process that was started, to end those that are still there.
    started: Vec<Weak<Plugin>>,
    closed: bool,
}

/// One configuration of one package, and the process that has it.
pub(crate) struct Entry {
    package: PackageDescriptor,
    request: ConfigureRequest,
    ready: OnceCell<(Arc<Plugin>, Protocol)>,
}

impl Entry {
    pub(crate) fn plugin(&self) -> Option<(Arc<Plugin>, Protocol)> {
        self.ready.get().cloned()
    }

    /// Configures with the first process that is offered; later ones find the work done.
    pub(crate) async fn configure<'a, F>(
        &'a self,
        configure: impl FnOnce(&'a ConfigureRequest) -> F,
    ) -> Result<(Arc<Plugin>, Protocol), ProviderError>
    where
        F: Future<Output = Result<(Arc<Plugin>, Protocol), ProviderError>>,
    {
        self.ready
            .get_or_try_init(|| configure(&self.request))
            .await
            .cloned()
    }

    /// Usable, or about to become so.
    fn is_alive(&self) -> bool {
        self.ready
            .get()
            .is_none_or(|(plugin, _)| plugin.link.is_alive())
    }
}

impl Pool {
    pub(crate) fn new(options: HostOptions) -> Self {
        Self {
            options,
            processes: Mutex::default(),
        }
    }

    pub(crate) fn options(&self) -> &HostOptions {
        &self.options
    }

    pub(crate) fn limits(&self) -> Limits {
        self.options.limits
    }

    pub(crate) fn tell(&self, event: EngineEvent) {
        self.options.events.emit(event);
    }

    /// A blank process for the package: one that waits, or a new one.
    pub(crate) async fn take(
        &self,
        package: &PackageDescriptor,
    ) -> Result<Arc<Plugin>, PluginError> {
        if let Some(plugin) = self.take_blank(package)? {
            return Ok(plugin);
        }
        let plugin = Arc::new(start_provider(&self.options, package).await?);
        let mut processes = self.processes.lock();
        // The host may have been closed in the meantime; dropping the plugin kills it.
        processes.refuse_when_closed(package)?;
        processes
            .started
            .retain(|started| started.strong_count() > 0);
        processes.started.push(Arc::downgrade(&plugin));
        Ok(plugin)
    }

    fn take_blank(&self, package: &PackageDescriptor) -> Result<Option<Arc<Plugin>>, PluginError> {
        let mut processes = self.processes.lock();
        processes.refuse_when_closed(package)?;
        processes.blank.retain(|(_, plugin)| plugin.link.is_alive());
        let found = processes
            .blank
            .iter()
            .position(|(blank, _)| blank == package);
        Ok(found.map(|index| processes.blank.swap_remove(index).1))
    }

    /// Keeps a process that was not configured for the next provider of its package.
    pub(crate) fn give_back(&self, package: &PackageDescriptor, plugin: Arc<Plugin>) {
        let mut processes = self.processes.lock();
        if !processes.closed {
            processes.blank.push((package.clone(), plugin));
        }
    }

    /// The place of this configuration, shared with whoever asks for the same one.
    pub(crate) fn entry(
        &self,
        package: &PackageDescriptor,
        request: ConfigureRequest,
    ) -> Arc<Entry> {
        let mut processes = self.processes.lock();
        let same = |entry: &&Arc<Entry>| {
            entry.is_alive() && entry.package == *package && entry.request == request
        };
        if let Some(entry) = processes.configured.iter().find(same) {
            return entry.clone();
        }
        let entry = Arc::new(Entry {
            package: package.clone(),
            request,
            ready: OnceCell::new(),
        });
        processes.configured.push(entry.clone());
        entry
    }

    /// Forgets a configuration that a plugin refused.
    pub(crate) fn forget(&self, entry: Arc<Entry>) {
        let mut processes = self.processes.lock();
        processes
            .configured
            .retain(|known| !Arc::ptr_eq(known, &entry) || known.ready.initialized());
    }

    /// Gives up one use of a configuration. The last user gets the process, to end it.
    pub(crate) fn release(&self, entry: Arc<Entry>) -> Option<Arc<Plugin>> {
        let mut processes = self.processes.lock();
        let index = processes
            .configured
            .iter()
            .position(|known| Arc::ptr_eq(known, &entry))?;
        drop(entry);
        if Arc::strong_count(&processes.configured[index]) > 1 {
            return None;
        }
        let entry = processes.configured.swap_remove(index);
        entry.plugin().map(|(plugin, _)| plugin)
    }

    /// Every process that is still there. Nothing can be started after closing.
    pub(crate) fn close(&self) -> Vec<Arc<Plugin>> {
        let mut processes = self.processes.lock();
        processes.closed = true;
        // Taken before the pool lets go of them, so that each is ended in the proper way.
        let left: Vec<_> = processes
            .started
            .drain(..)
            .filter_map(|p| p.upgrade())
            .collect();
        processes.blank.clear();
        processes.configured.clear();
        left
    }

    /// Every process that is there now.
    pub(crate) fn plugins(&self) -> Vec<Arc<Plugin>> {
        self.processes
            .lock()
            .started
            .iter()
            .filter_map(Weak::upgrade)
            .collect()
    }
}

impl Processes {
    fn refuse_when_closed(&self, package: &PackageDescriptor) -> Result<(), PluginError> {
        if !self.closed {
            return Ok(());
        }
        Err(PluginError::NotStarted {
            plugin: package.package().to_owned(),
            reason: "the run is ending".to_owned(),
        })
    }
}
