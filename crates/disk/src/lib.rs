//! Files of our own: written whole and on disk when it is said so, and where below `.nimbus` they are.
//!
//! Everything that Nimbus writes for good goes through [`replace`], [`create`] or a [`Draft`], so
//! that the order of write, sync and rename is decided once. Files that grow under names that can be guessed go
//! through [`append_beneath`]. Files of a tenant's project are read elsewhere (`nimbus-engine-files`), and a
//! tenant's workspace is looked through there before anything of it is used. What is used of it afterwards goes through
//! [`FolderFiles`], which holds on to the folder that was looked through; the rest of this crate follows links like any
//! program does.

mod append;
mod draft;
mod edit;
mod error;
mod folder_files;
mod held;
pub mod layout;

pub use append::append_beneath;
pub use draft::{
    Draft, FileMode, create, create_folders, place_folder, rename, replace, replace_cached,
    sync_folder,
};
pub use edit::FolderEdit;
pub use error::{unreadable, unwritable};
pub use folder_files::{FolderDraft, FolderFiles};
