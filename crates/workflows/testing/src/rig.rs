//! What a runtime provides to be tested, and the one in memory.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use nimbus_workflows::Control;
use tempfile::TempDir;

use crate::effects::Effects;
use crate::memory::{MemoryControl, MemoryStore, MemoryWorker};
use crate::script::definitions;

/// Which version of the suite's workflow a worker has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    Original,
    /// With a step in front that was not there.
    Changed,
}

/// A runtime under test, with a world of its own.
#[async_trait]
pub trait Rig: Send + Sync {
    fn effects(&self) -> &Effects;
    fn control(&self) -> Arc<dyn Control>;
    /// Begins to execute workflows.
    async fn worker(&self, code: Code) -> Box<dyn WorkerHandle>;
    /// The same, as a process of its own where the runtime can.
    async fn process(&self, code: Code) -> Box<dyn WorkerHandle>;
}

/// What executes workflows.
#[async_trait]
pub trait WorkerHandle: Send {
    /// Ends it without a word.
    async fn kill(self: Box<Self>);
}

/// Waits for something that is going to be.
///
/// # Panics
/// If it is not after a minute.
pub async fn eventually(what: &str, mut is: impl AsyncFnMut() -> bool) {
    let watch = async {
        while !is().await {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let ended = tokio::time::timeout(Duration::from_secs(60), watch).await;
    assert!(ended.is_ok(), "not after a minute: {what}");
}

/// The runtime in memory.
#[derive(Debug)]
pub struct MemoryRig {
    store: MemoryStore,
    effects: Effects,
    _folder: TempDir,
}

impl MemoryRig {
    /// # Panics
    /// If there is no room for a folder.
    #[expect(clippy::new_without_default, reason = "it makes a folder")]
    pub fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        Self {
            store: MemoryStore::default(),
            effects: Effects::at(folder.path()),
            _folder: folder,
        }
    }
}

#[async_trait]
impl Rig for MemoryRig {
    fn effects(&self) -> &Effects {
        &self.effects
    }

    fn control(&self) -> Arc<dyn Control> {
        Arc::new(MemoryControl::new(&self.store))
    }

    async fn worker(&self, code: Code) -> Box<dyn WorkerHandle> {
        let definitions = definitions(&self.effects, code);
        Box::new(MemoryWorker::start(&self.store, definitions))
    }

    async fn process(&self, code: Code) -> Box<dyn WorkerHandle> {
        self.worker(code).await
    }
}

#[async_trait]
impl WorkerHandle for MemoryWorker {
    async fn kill(self: Box<Self>) {
        MemoryWorker::kill(*self).await;
    }
}
