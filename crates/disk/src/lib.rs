//! Files of our own: written whole and on disk when it is said so, and where below `.nimbus` they are.
//!
//! Everything that Nimbus writes for good goes through [`replace`], [`create`] or a [`Draft`], so
//! that the order of write, sync and rename is decided once. Files of a tenant's project are read
//! elsewhere (`nimbus-engine-files`): this crate follows links like any program does.

mod draft;
mod error;
pub mod layout;

pub use draft::{
    Draft, FileMode, create, create_folders, place_folder, replace, replace_cached, sync_folder,
};
pub use error::{unreadable, unwritable};
