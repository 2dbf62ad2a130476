//! A runtime in memory: the reference for what the others do, and quick enough for every test.

mod control;
mod durable;
mod store;
mod worker;

pub use control::MemoryControl;
pub use store::MemoryStore;
pub use worker::MemoryWorker;
