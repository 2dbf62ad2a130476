//! The configuration management database: items, classes, relationships, and how runs and imports keep them.
//!
//! `item` reads, `write` writes many at once with their history and words, `sync` makes what is recorded of a unit equal to
//! its state, `import` takes what people give, `graph` goes from item to item, `told` says it live.

mod class;
mod graph;
mod import;
mod item;
mod sync;
mod told;
mod write;

pub use class::{NewClass, StoredClass};
pub use graph::{GraphLimits, GraphPart, NewRelationship, StoredRelationship};
pub use import::{CheckedImport, ImportCounts, NewImport, StoredImport};
pub use item::{ItemCount, ItemFilter, ItemStatus, StoredHistory, StoredItem};
pub use sync::{CmdbSync, KnownSync, StoredSync, SyncCounts};
pub use told::MOST_ITEMS_TOLD;
