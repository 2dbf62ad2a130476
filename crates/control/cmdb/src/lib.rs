//! Configuration items, decided: which items a unit's state has, what of them may be known, what changed since they were
//! last recorded, by which words they are found, and what a file that is imported says.
//!
//! This crate does no I/O. The store keeps what is decided here, in the transaction in which a run ends.
//!
//! Reading order: `shown` (what of a value may be known), `attributes` (how much of it is kept), `item`, `state` (a state
//! as items), `plan` (what has to be written), `words` (search), `import`.

mod attributes;
mod import;
mod item;
mod plan;
mod shown;
mod state;
mod words;

pub use attributes::{ItemAttributes, kept_attributes};
pub use import::{
    ImportFormat, ImportLine, ImportProblem, MOST_IMPORT_LINES, RelationLine, first_problems,
    is_relationship, read_import,
};
pub use item::{ItemContent, ItemDigest, UNIT_CLASS, UnitSnapshot, provider_of};
pub use plan::{ItemChange, KnownItem, PlannedWrite, changes_between, plan_unit};
pub use shown::{SECRET, SIGNATURE, shown};
pub use state::{StateEdge, StateItem, items_of};
pub use words::{MOST_WORDS, attribute_word, item_words, query_words};
