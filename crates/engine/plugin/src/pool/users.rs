//! Who hears what a process says.
//!
//! A process that several operations use has one line to the engine. What it says about a resource
//! is for the operation that asked for it; the rest is for all that use it at the time. Operations
//! of different owners never use the same process, so nothing crosses that border.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use nimbus_engine_model::Urn;
use nimbus_engine_ports::{EngineEvent, EventSink};
use parking_lot::Mutex;

static NEXT_USER: AtomicU64 = AtomicU64::new(0);

/// One operation.
pub(crate) struct PoolUser {
    id: u64,
    events: Arc<dyn EventSink>,
    asked: Mutex<CallsUnderWay>,
}

#[derive(Default)]
struct CallsUnderWay {
    /// Calls under way, by the resource that they are about.
    about: BTreeMap<Urn, usize>,
    /// Project and stack, as soon as a call told them.
    home: Option<(String, String)>,
}

impl PoolUser {
    pub(crate) fn new(events: Arc<dyn EventSink>) -> Self {
        Self {
            id: NEXT_USER.fetch_add(1, Ordering::Relaxed),
            events,
            asked: Mutex::default(),
        }
    }

    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// A call about the resource begins.
    pub(crate) fn asks(&self, urn: &Urn) {
        let mut asked = self.asked.lock();
        *asked.about.entry(urn.clone()).or_default() += 1;
        if asked.home.is_none() {
            asked.home = Some((urn.project().to_owned(), urn.stack().to_owned()));
        }
    }

    /// A call about the resource is over.
    pub(crate) fn has_asked(&self, urn: &Urn) {
        let mut asked = self.asked.lock();
        if let Some(calls) = asked.about.get_mut(urn) {
            *calls -= 1;
            if *calls == 0 {
                asked.about.remove(urn);
            }
        }
    }

    fn is_asking_about(&self, urn: &Urn) -> bool {
        self.asked.lock().about.contains_key(urn)
    }

    fn is_home_of(&self, urn: &Urn) -> bool {
        let asked = self.asked.lock();
        let home = asked.home.as_ref();
        home.is_some_and(|(project, stack)| project == urn.project() && stack == urn.stack())
    }
}

/// The operations that use one process.
#[derive(Default)]
pub(crate) struct PoolUsers {
    users: Mutex<Vec<Arc<PoolUser>>>,
}

impl PoolUsers {
    pub(crate) fn add(&self, user: &Arc<PoolUser>) {
        let mut users = self.users.lock();
        if !users.iter().any(|known| known.id == user.id) {
            users.push(Arc::clone(user));
        }
    }

    pub(crate) fn remove(&self, user: &PoolUser) {
        self.users.lock().retain(|known| known.id != user.id);
    }

    /// Whom this is for: who waits for an answer about the resource, else whose stack it is in.
    fn meant(&self, event: &EngineEvent) -> Vec<Arc<PoolUser>> {
        let mut users = self.users.lock().clone();
        let EngineEvent::Diagnostic(diagnostic) = event else {
            return users;
        };
        let Some(urn) = &diagnostic.urn else {
            return users;
        };
        if users.iter().any(|user| user.is_asking_about(urn)) {
            users.retain(|user| user.is_asking_about(urn));
        } else {
            users.retain(|user| user.is_home_of(urn));
        }
        users
    }
}

impl EventSink for PoolUsers {
    fn emit(&self, event: EngineEvent) {
        for user in self.meant(&event) {
            user.events.emit(event.clone());
        }
    }
}
