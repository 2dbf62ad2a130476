//! How far the process of a plugin may be shared.
//!
//! A process that serves several operations must behave the same for each of them. What is known to
//! depend on the operation is never shared; what may depend on the program's folder is shared
//! between operations in that folder; and only packages on a reviewed list are shared everywhere.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::pool::ProviderPool;

/// Packages that are shared between programs in different folders unless the user says otherwise.
///
/// A package belongs here when what its provider does depends on its configuration, its environment
/// and the request, and on nothing beside: not on the folder that it runs in, not on the name of the
/// provider resource, and not on what it was asked before. That holds for providers that turn a
/// request into calls of a web API (clouds) or into a computation (`random`, `tls`). Files that they
/// are given come as assets, which are made absolute for them; the few inputs that are paths in the
/// form of text are recognised, see `folder`.
///
/// Not here, for a reason: `command`, `docker`, `docker-build` and `local` work in their folder;
/// `kubernetes` keeps what it learned about a cluster's types; `terraform` and other providers that
/// run further tools hand the folder on; component packages (`awsx`, `eks`) run programs.
pub const SHARED_EVERYWHERE: &[&str] = &[
    "aws",
    "aws-native",
    "azure-native",
    "azuread",
    "gcp",
    "random",
    "tls",
];

/// How an operation takes part in a pool that outlives it.
#[derive(Clone)]
pub struct SharedPlugins {
    pub pool: Arc<ProviderPool>,
    /// Whose operation it is. Processes of different owners are different, whatever else is equal.
    pub owner: String,
    /// Packages that are shared between folders.
    pub everywhere: Arc<BTreeSet<String>>,
}

impl SharedPlugins {
    /// The packages that are shared everywhere by default.
    pub fn reviewed() -> Arc<BTreeSet<String>> {
        let names = SHARED_EVERYWHERE.iter().map(|name| (*name).to_owned());
        Arc::new(names.collect())
    }
}

/// Between whom a process is shared, from the narrowest to the widest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum SharingReach {
    /// The providers of one operation.
    Operation,
    /// Operations in the same folder.
    Folder,
    /// Operations anywhere.
    Everywhere,
}

impl SharingReach {
    /// Its name where it is part of what a process is known by.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Operation => "operation",
            Self::Folder => "folder",
            Self::Everywhere => "everywhere",
        }
    }
}
