//! `cargo xtask setup`: installs what tests and the demo need.
//!
//! Everything comes from the language registries, Valkey from Debian's packages where the system has none, and lands in the per-user cache; nothing global is
//! touched. Node and npm must be there. Python and Go are used when they are there; what is missing
//! is said with the way to get it, and the tests that need it report themselves as skipped.

mod chromium;
mod go;
pub(crate) mod library;
mod node;
mod postgres;
mod python;
mod socket_io;
mod valkey;
pub(crate) mod version;

use std::path::PathBuf;

use anyhow::Result;

use self::go::GoTools;
use crate::cache::DownloadCache;
use crate::repo::Repo;

#[derive(clap::Args)]
pub(crate) struct SetupOptions {
    /// Also install the third-party tools of the parity and integration tests.
    #[arg(long)]
    integration: bool,
}

/// How much to install.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum SetupScope {
    /// The SDKs that programs run with.
    Basic,
    /// These, the packages of `library/`, PostgreSQL and an S3 server. What is built from Go takes
    /// minutes, so it is asked for by itself: [`install_go_tools`].
    Integration,
}

/// A tool that is there, or why it is not.
pub(crate) enum InstalledTool {
    Ready(PathBuf),
    Missing(String),
}

impl InstalledTool {
    pub(crate) fn path(&self) -> Option<&PathBuf> {
        match self {
            Self::Ready(path) => Some(path),
            Self::Missing(_) => None,
        }
    }

    fn map_ready(self, change: impl FnOnce(PathBuf) -> PathBuf) -> Self {
        match self {
            Self::Ready(path) => Self::Ready(change(path)),
            missing @ Self::Missing(_) => missing,
        }
    }
}

/// What a set-up installed, or what an earlier one left.
pub(crate) struct InstalledTools {
    /// A folder with `node_modules`.
    pub(crate) node_sdk: InstalledTool,
    /// The interpreter of a virtual environment with the Pulumi SDK.
    pub(crate) python: InstalledTool,
    /// An executable that serves S3: `moto_server -H HOST -p PORT`.
    pub(crate) moto: InstalledTool,
    /// The interpreter of a virtual environment with schemathesis.
    pub(crate) schemathesis: InstalledTool,
    /// The official command line; its language hosts are beside it.
    pub(crate) pulumi: InstalledTool,
    /// A folder of `pulumi-resource-*` executables.
    pub(crate) plugins: InstalledTool,
    /// `library/stacks` with its packages.
    pub(crate) library: InstalledTool,
    /// A folder with `initdb` and `postgres`.
    pub(crate) postgres: InstalledTool,
    /// Prometheus' own check of rules; only where it is installed.
    pub(crate) promtool: InstalledTool,
    /// Helm; only where it is installed.
    pub(crate) helm: InstalledTool,
    /// A Valkey (or Redis) server.
    pub(crate) valkey: InstalledTool,
    /// A folder with the `node_modules` of the Socket.IO client.
    pub(crate) socket_io: InstalledTool,
    /// Temporal's command line, which has its development server.
    pub(crate) temporal: InstalledTool,
    /// The browser in which the console is tested.
    pub(crate) chromium: InstalledTool,
}

pub(crate) fn run(repo: &Repo, options: &SetupOptions) -> Result<()> {
    let scope = if options.integration {
        SetupScope::Integration
    } else {
        SetupScope::Basic
    };
    let mut tools = install(repo, scope)?;
    if options.integration {
        tools.add_go_tools(install_go_tools(repo)?);
    }
    println!("ready; `cargo xtask env` prints where everything is");
    Ok(())
}

/// The tools that nothing works without are there, and new enough.
pub(crate) fn check() -> Result<()> {
    version::check_cargo()?;
    version::check_node().map(|_| ())
}

/// Installs what is not there yet. Fails only where nothing would work without it.
pub(crate) fn install(repo: &Repo, scope: SetupScope) -> Result<InstalledTools> {
    let cache = DownloadCache::locate()?;
    println!("setup: cache {}", cache.root().display());
    version::check_cargo()?;
    let node_sdk = report(
        "Node SDK",
        Ok(InstalledTool::Ready(node::install(repo, &cache)?)),
    )?;
    let python = report("Python SDK", python::install_sdk(repo, &cache))?;
    if scope == SetupScope::Basic {
        return Ok(InstalledTools {
            node_sdk,
            python,
            ..find(repo)?
        });
    }
    let library = report("library", library::install(repo))?;
    let postgres = report("PostgreSQL", postgres::install(repo, &cache))?;
    let valkey = report("Valkey", valkey::install(&cache))?;
    let socket_io = report("Socket.IO client", socket_io::install(repo, &cache))?;
    let moto = report("S3 server", python::install_moto(repo, &cache))?;
    let schemathesis = report("fuzzer of APIs", python::install_schemathesis(repo, &cache))?;
    let temporal = report(
        "Temporal server",
        Ok(python::install_temporal(repo, &cache)),
    )?;
    let chromium = report("Chromium", chromium::install(repo, &cache))?;
    Ok(InstalledTools {
        node_sdk,
        python,
        moto,
        schemathesis,
        library,
        postgres,
        valkey,
        socket_io,
        temporal,
        chromium,
        ..find(repo)?
    })
}

/// Builds the official command line and the plugin; other work may go on meanwhile.
pub(crate) fn install_go_tools(repo: &Repo) -> Result<GoTools> {
    let GoTools { pulumi, plugins } = go::install(repo, &DownloadCache::locate()?)?;
    Ok(GoTools {
        pulumi: report("Pulumi command line", Ok(pulumi))?,
        plugins: report("provider plugins", Ok(plugins))?,
    })
}

impl InstalledTools {
    pub(crate) fn add_go_tools(&mut self, tools: GoTools) {
        self.pulumi = tools.pulumi;
        self.plugins = tools.plugins;
    }

    /// Also those that an earlier set-up built.
    pub(crate) fn leave_go_tools_out(&mut self, reason: &str) {
        let missing = || InstalledTool::Missing(reason.to_owned());
        self.add_go_tools(GoTools {
            pulumi: missing(),
            plugins: missing(),
        });
    }
}

/// What is installed already; installs nothing.
pub(crate) fn find(repo: &Repo) -> Result<InstalledTools> {
    let cache = DownloadCache::locate()?;
    let GoTools { pulumi, plugins } = go::find(repo, &cache)?;
    Ok(InstalledTools {
        node_sdk: node::find(repo, &cache)?,
        python: python::find_sdk(repo, &cache)?,
        moto: python::find_moto(repo, &cache)?,
        schemathesis: python::find_schemathesis(repo, &cache)?,
        pulumi,
        plugins,
        library: library::find(repo)?,
        postgres: postgres::find(repo, &cache)?,
        promtool: on_path("promtool"),
        helm: on_path("helm"),
        valkey: valkey::find(&cache),
        socket_io: socket_io::find(repo, &cache)?,
        temporal: python::find_temporal(repo, &cache)?,
        chromium: chromium::find(repo, &cache)?,
    })
}

/// A program that is not ours to install.
fn on_path(name: &str) -> InstalledTool {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&folders)
        .map(|folder| folder.join(name))
        .find(|program| program.is_file());
    match found {
        Some(program) => InstalledTool::Ready(program),
        None => InstalledTool::Missing(format!("there is no {name} on PATH")),
    }
}

fn report(name: &str, tool: Result<InstalledTool>) -> Result<InstalledTool> {
    let tool = tool?;
    match &tool {
        InstalledTool::Ready(path) => println!("setup: {name}: {}", path.display()),
        InstalledTool::Missing(reason) => println!("setup: {name}: not available: {reason}"),
    }
    Ok(tool)
}
