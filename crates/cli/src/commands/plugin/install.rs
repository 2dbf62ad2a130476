//! `nimbus plugin install`: get a plugin, everything in a folder, or what a program needs.

use std::env;
use std::fmt::Write as _;
use std::path::PathBuf;

use nimbus_core::{Error, ErrorCode, Result};
use nimbus_engine_install::{
    Checksum, DownloadSource, DownloadTokens, InstallKind, InstallOutcome as Ended, Installed,
    Installer, Order, Overrides, PluginName, Proof, UnpackLimits,
};
use nimbus_engine_model::PackageDescriptor;
use nimbus_engine_operations::{refused_provider, required_plugins};
use nimbus_engine_sandbox::SandboxSettings;
use schemars::JsonSchema;
use serde::Serialize;

use super::progress::InstallObserver;
use super::{Named, store};
use crate::commands::program::sandbox_settings;
use crate::context::CommandContext;
use crate::exit::CommandOutcome;
use crate::output::Report;
use crate::style::{Terminal, TextStyle};

#[derive(clap::Args, Debug)]
pub(crate) struct PluginInstallArgs {
    /// [KIND] NAME [VERSION]: `aws`, `aws 7.0.0`, `aws@7.0.0` or `analyzer pack 1.0.0`
    ///
    /// Without a version the newest is taken, where the publisher says which that is. Without a
    /// name everything is installed that the packages of the program need, or that is in the folder
    /// of --from.
    #[arg(value_name = "PLUGIN")]
    plugin: Vec<String>,

    /// Folder of the program whose plugins are installed when none is named
    #[arg(long, value_name = "DIR", default_value = ".")]
    dir: PathBuf,

    /// Take archives or unpacked plugins from this folder, without any network
    #[arg(long, value_name = "DIR", conflicts_with = "server")]
    from: Option<PathBuf>,

    /// Where the plugin is published: https://…, github://HOST/OWNER[/REPOSITORY] or
    /// gitlab://HOST/PROJECT
    #[arg(long, value_name = "URL")]
    server: Option<String>,

    /// SHA-256 checksum that the archive must have
    #[arg(long, value_name = "HEX", requires = "plugin")]
    checksum: Option<String>,

    /// Refuse a plugin of which no checksum is published
    #[arg(long)]
    require_checksum: bool,

    /// Install it again although it is there
    #[arg(long)]
    reinstall: bool,
}

pub(crate) async fn run(
    args: PluginInstallArgs,
    context: &CommandContext,
) -> Result<CommandOutcome> {
    let source = args.source(context)?;
    let orders = args.orders(context).await?;
    let plugins = fetch(&orders, source.as_ref(), context).await?;
    context.output.result(&InstallReport {
        plugins: plugins.into_iter().map(PluginLine::from).collect(),
    })?;
    Ok(CommandOutcome::Done)
}

/// Installs one after the other, with progress. Tokens go where the user sent them.
pub(super) async fn fetch(
    orders: &[Order],
    source: Option<&DownloadSource>,
    context: &CommandContext,
) -> Result<Vec<Installed>> {
    let follower = InstallObserver::new(context.output);
    let tokens = match source {
        Some(source) => tokens().trusting(source),
        None => tokens(),
    };
    let installer = installer()?
        .with_tokens(tokens)
        .with_overrides(overrides()?)
        .watched_by(follower.watcher());
    let mut installed = Vec::new();
    for order in orders {
        follower.begin(&order.name, order.version.as_ref());
        let ended = installer.install(order).await;
        follower.end();
        installed.push(ended?);
    }
    Ok(installed)
}

fn installer() -> Result<Installer> {
    Ok(Installer::new(store()?, UnpackLimits::default())?)
}

/// The mirror of the settings, if there is one.
pub(super) fn mirror(context: &CommandContext) -> Result<Option<DownloadSource>> {
    let mirror = &context.settings()?.settings.engine.plugin_mirror_url.value;
    let mirror = mirror
        .as_ref()
        .map(|mirror| DownloadSource::parse(mirror.url().as_str()));
    Ok(mirror.transpose()?)
}

/// From the given source, or from where the package says.
pub(super) fn order_of(
    package: PackageDescriptor,
    source: Option<&DownloadSource>,
) -> Result<Order> {
    let source = match (source, package.download_url.as_str()) {
        (Some(source), _) => source.clone(),
        (None, "") => DownloadSource::Public,
        (None, url) => DownloadSource::parse(url)?,
    };
    Ok(Order {
        kind: InstallKind::Resource,
        name: PluginName::parse(&package.name)?,
        version: package.version,
        source,
        checksum: None,
        require_checksum: false,
        reinstall: false,
    })
}

impl PluginInstallArgs {
    async fn orders(&self, context: &CommandContext) -> Result<Vec<Order>> {
        let source = self.source(context)?;
        let checksum = self.checksum.as_deref().map(Checksum::parse).transpose()?;
        let adjusted = |order: Order| Order {
            require_checksum: self.require_checksum,
            reinstall: self.reinstall,
            ..order
        };
        if let Some(named) = Named::parse(&self.plugin)? {
            return Ok(vec![adjusted(Order {
                kind: named.kind,
                name: named.name,
                version: named.version,
                source: source.unwrap_or(DownloadSource::Public),
                checksum,
                require_checksum: false,
                reinstall: false,
            })]);
        }
        if let Some(folder) = &self.from {
            let orders = installer()?.orders_of(&context.directory.join(folder))?;
            return Ok(orders.into_iter().map(adjusted).collect());
        }
        let orders = self.needed(source, context).await?;
        Ok(orders.into_iter().map(adjusted).collect())
    }

    /// What was asked for, or the mirror; `None` leaves it to each plugin.
    fn source(&self, context: &CommandContext) -> Result<Option<DownloadSource>> {
        if let Some(folder) = &self.from {
            return Ok(Some(DownloadSource::Folder(context.directory.join(folder))));
        }
        if let Some(server) = &self.server {
            return Ok(Some(DownloadSource::parse(server)?));
        }
        mirror(context)
    }

    async fn needed(
        &self,
        source: Option<DownloadSource>,
        context: &CommandContext,
    ) -> Result<Vec<Order>> {
        let sandbox = sandbox_settings(context)?;
        let folder = context.directory.join(&self.dir);
        let (packages, problems) = required_plugins(&folder, sandbox.as_ref()).await?;
        for problem in problems {
            context.output.note(&problem);
        }
        let mut orders = Vec::new();
        let strict = sandbox.as_ref().filter(|sandbox| sandbox.is_strict());
        for package in packages {
            if let Some(strict) = strict {
                strangers_package(&package, strict)?;
                if source.is_none() && !package.download_url.is_empty() {
                    return Err(strangers_source(&package, &package.download_url));
                }
            }
            orders.push(order_of(package, source.as_ref())?);
        }
        Ok(orders)
    }
}

/// Plugins run outside of the sandbox, so a stranger's package gets only those installed that its program
/// may use.
fn strangers_package(package: &PackageDescriptor, strict: &SandboxSettings) -> Result<()> {
    match refused_provider(strict, package) {
        Some(why) => {
            let message = format!("{} is not installed for a stranger: {why}", package.name);
            Err(Error::new(ErrorCode::PROVIDER_NOT_ALLOWED, message)
                .with_help("an operator who wants it names it: nimbus plugin install NAME"))
        }
        None => Ok(()),
    }
}

fn strangers_source(package: &PackageDescriptor, url: &str) -> Error {
    let message = format!(
        "a stranger's package says that the plugin {} is at {url}, and it would run outside of the \
         sandbox",
        package.name
    );
    Error::new(ErrorCode::PLUGIN_NOT_OPERATORS, message).with_help(
        "say where it is with --server, --from or engine.plugin_mirror_url, or install it by name",
    )
}

fn tokens() -> DownloadTokens {
    let token = |name: &str| {
        let value = env::var(name).ok().filter(|value| !value.is_empty())?;
        nimbus_telemetry::register_secret(&value);
        Some(value)
    };
    DownloadTokens::new(token("GITHUB_TOKEN"), token("GITLAB_TOKEN"))
}

fn overrides() -> Result<Overrides> {
    let text = env::var(Overrides::VARIABLE).unwrap_or_default();
    Ok(Overrides::parse(&text)?)
}

#[derive(JsonSchema, Serialize)]
pub(crate) struct InstallReport {
    /// In the order in which they were installed.
    plugins: Vec<PluginLine>,
}

#[derive(JsonSchema, Serialize)]
struct PluginLine {
    /// `resource`, `analyzer`, `language`, `converter` or `tool`.
    kind: String,
    name: String,
    version: String,
    folder: String,
    /// Whether it was installed just now; otherwise it was there already.
    installed: bool,
    /// What the archive's checksum was compared with: `given`, `published` or `none`. Absent if
    /// nothing was installed.
    #[serde(skip_serializing_if = "Option::is_none")]
    checksum: Option<String>,
}

impl From<Installed> for PluginLine {
    fn from(plugin: Installed) -> Self {
        let (installed, checksum) = match plugin.outcome {
            Ended::Installed(proof) => (true, Some(proof.as_str().to_owned())),
            Ended::WasThere => (false, None),
        };
        Self {
            kind: plugin.kind.to_string(),
            name: plugin.name.to_string(),
            version: plugin.version.to_string(),
            folder: plugin.folder.display().to_string(),
            installed,
            checksum,
        }
    }
}

impl Report for InstallReport {
    const SCHEMA: &'static str = "nimbus/plugin-install/1";

    fn text(&self, terminal: Terminal) -> String {
        if self.plugins.is_empty() {
            return "no plugin is needed\n".to_owned();
        }
        let mut text = String::new();
        for plugin in &self.plugins {
            let PluginLine {
                kind,
                name,
                version,
                folder,
                ..
            } = plugin;
            let what = match plugin.checksum.as_deref() {
                None => terminal.paint(TextStyle::Faint, "was there already"),
                Some(proof) if proof == Proof::None.as_str() => terminal.paint(
                    TextStyle::Warning,
                    "installed; no checksum is published for it",
                ),
                Some(proof) => {
                    let what = format!("installed; it has the {proof} checksum");
                    terminal.paint(TextStyle::Good, &what)
                }
            };
            // Writing to a string does not fail.
            let _ = writeln!(text, "{kind} {name} {version}: {what}\n  {folder}");
        }
        text
    }
}
