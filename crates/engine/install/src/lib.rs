//! Plugins are fetched, checked, unpacked and put where the engine finds them.
//!
//! Reading order: `name` (what plugins, archives and folders are called), `source` (where a plugin
//! is offered), `fetch` (how bytes arrive, with resumption), `checksum` (what they must be),
//! `unpack` (how an archive becomes a folder that reaches nothing outside itself), `store` (the
//! folder of installed plugins), `install` (all of it in order).
//!
//! Nothing here starts a plugin or decides which one a program needs. A plugin is in the store
//! completely or not at all: it is unpacked aside and renamed into place under a lock.

mod checksum;
mod error;
mod fetch;
mod install;
mod name;
mod overrides;
mod source;
mod store;
mod unpack;

pub use checksum::{Checksum, Proof};
pub use error::InstallError;
pub use install::{InstallOutcome, InstallProgress, InstallWatcher, Installed, Installer, Order};
pub use name::{InstallKind, Platform, PluginName, parse_version};
pub use overrides::Overrides;
pub use source::{DownloadSource, DownloadTokens};
pub use store::{InstalledPlugin, PluginStore};
pub use unpack::UnpackLimits;
