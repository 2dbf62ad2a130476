//! The API of a server: its keys, its use cases, its routes and what has to be done beside them.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use axum::Router;
use nimbus_control_api::{ApiLimits, ApiState, Front, Limit};
use nimbus_control_app::{
    App, AppKeys, AppSettings, ArchiveAddress, GivenKeys, MailRelay, RecoverInput, Recovered,
    WebhookSettings,
};
use nimbus_control_store::{BackupManifest, RestoreKeys, Store, StoreError};
use nimbus_core::Result;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::http::MetricsReaders;
use crate::server::ServerOptions;

/// How much of the audit trail could be cut off unnoticed by whoever owns the database.
const CHECKPOINT_PAUSE: Duration = Duration::from_secs(10);
/// Between two rounds of counting; each asks every tenant.
const COUNT_PAUSE: Duration = Duration::from_secs(300);
const DAY: Duration = Duration::from_secs(24 * 3600);

/// What an operator may set about the API.
#[derive(Clone, Debug)]
pub struct ApiOptions {
    pub given_keys: GivenKeys,
    pub access_seconds: u32,
    pub refresh_seconds: u32,
    /// Where people reach the server; without it, where it listens.
    pub public_url: Option<String>,
    pub front: Front,
    /// Requests of a caller; none is no limit.
    pub rate: Option<RequestRates>,
    pub archive: Option<ArchiveAddress>,
    /// Where states are exported to; without one they are not.
    pub state_export: Option<ArchiveAddress>,
    pub audit_retention_days: u32,
    pub tenant_grace_days: u32,
    pub metrics_readers: MetricsReaders,
    /// Whether documents may ask about the GraphQL schema itself.
    pub graphql_introspection: bool,
    pub webhooks: WebhookSettings,
    /// Who takes mail; without one none is sent.
    pub mail: Option<MailRelay>,
}

impl Default for ApiOptions {
    fn default() -> Self {
        Self {
            given_keys: GivenKeys::default(),
            access_seconds: 3600,
            refresh_seconds: 604_800,
            public_url: None,
            front: Front::default(),
            rate: Some(RequestRates {
                caller: Limit::per_second(30),
                tenant: Limit::per_second(300),
            }),
            archive: None,
            state_export: None,
            audit_retention_days: 365,
            tenant_grace_days: 30,
            metrics_readers: MetricsReaders::default(),
            graphql_introspection: false,
            webhooks: WebhookSettings::default(),
            mail: None,
        }
    }
}

/// How often somebody may ask.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RequestRates {
    pub caller: Limit,
    /// All callers of one tenant together.
    pub tenant: Limit,
}

impl ApiOptions {
    pub(crate) fn url(&self, address: SocketAddr) -> String {
        match &self.public_url {
            Some(url) => url.trim_end_matches('/').to_owned(),
            None => format!("http://{address}"),
        }
    }

    fn limits(&self) -> ApiLimits {
        match self.rate {
            // What one address may do is a multiple of what one caller may: several share one.
            Some(rate) => {
                let addresses = ApiLimits::ADDRESS.max(rate.caller);
                ApiLimits::new(addresses, ApiLimits::SIGN_IN, rate.caller).with_tenants(rate.tenant)
            }
            None => ApiLimits::new(Limit::NONE, ApiLimits::SIGN_IN, Limit::NONE),
        }
    }
}

/// Refuses to start without the keys that the database names.
pub(crate) async fn open(options: &ServerOptions, store: Store) -> Result<App> {
    let data_dir = &options.database.data_dir;
    let api = &options.api;
    let keys = keys_of(&store, data_dir, options.keys.as_deref(), &api.given_keys).await?;
    let mut settings = AppSettings::new("nimbus", data_dir.join("audit"));
    settings.access_seconds = api.access_seconds;
    settings.refresh_seconds = api.refresh_seconds;
    settings.archive = api.archive.clone();
    settings.state_export = api.state_export.clone();
    settings.audit_retention =
        jiff::SignedDuration::from_hours(24 * i64::from(api.audit_retention_days));
    settings.webhooks = api.webhooks.clone();
    settings.mail = api.mail.clone();
    settings.public_url = api.public_url.clone();
    settings.tenant_grace = DAY * api.tenant_grace_days;
    App::open(store, keys, settings).await
}

/// The keys of an installation: in the folder that was given, or in its data directory.
async fn keys_of(
    store: &Store,
    data_dir: &Path,
    folder: Option<&Path>,
    given: &GivenKeys,
) -> Result<AppKeys> {
    let folder = folder.map_or_else(|| data_dir.join("keys"), Path::to_owned);
    AppKeys::of_installation(&folder, given.clone(), &store.outer_keys().await?)
}

/// Where an installation's keys are, for work on its machine beside a server.
#[derive(Clone, Debug)]
pub struct InstallationKeys {
    pub data_dir: PathBuf,
    pub folder: Option<PathBuf>,
    pub given: GivenKeys,
}

/// Makes an administrator for an installation that lost its own.
pub async fn recover(
    store: Store,
    keys: &InstallationKeys,
    wanted: RecoverInput,
) -> Result<Recovered> {
    if store.restore_unfinished().await? {
        return Err(StoreError::RestoreUnfinished.into());
    }
    let opened = keys_of(&store, &keys.data_dir, keys.folder.as_deref(), &keys.given).await?;
    let settings = AppSettings::new("nimbus", keys.data_dir.join("audit"));
    let app = App::open(store, opened, settings).await?;
    let recovered = app.recover_administrator(wanted).await;
    app.checkpoint_audit(jiff::Timestamp::now()).await;
    recovered.map_err(|failure| failure.error)
}

/// Gives one tenant back what a backup has.
pub async fn restore_tenant(
    store: &Store,
    keys: &InstallationKeys,
    source: &Path,
) -> Result<BackupManifest> {
    let opened = keys_of(store, &keys.data_dir, keys.folder.as_deref(), &keys.given).await?;
    let keys = RestoreKeys {
        vault: &opened.vault,
        audit: &opened.audit,
    };
    Ok(store.restore_tenant(source, &keys).await?)
}

pub(crate) fn router(
    app: &App,
    options: &ApiOptions,
    address: SocketAddr,
    stop: CancellationToken,
) -> Router {
    let origins = vec![options.url(address)];
    let state = ApiState::new(app.clone(), origins, options.limits())
        .behind(options.front.clone())
        .with_introspection(options.graphql_introspection)
        .until(stop);
    nimbus_control_api::router(state)
}

/// Does what nobody asks for and what is every server's own, until it is dropped: wraps data keys again after the outer
/// key was replaced, signs how far the audit trail has come, ends approvals whose time is over and whose workflow is
/// away, goes on with roll-outs, which any number of servers may do at once, and counts what tenants have. What one
/// server does for all is a schedule of a workflow.
pub(crate) async fn look_after(app: App) {
    match app.rewrap_data_keys().await {
        Ok(0) => {}
        Ok(count) => info!(count, "data keys were wrapped with the new key"),
        Err(failure) => {
            warn!(error = %failure.error.log_text(), "data keys were not wrapped again");
        }
    }
    if let Err(failure) = app.note_rollouts().await {
        warn!(error = %failure.error.log_text(), "roll-outs of before may wait for somebody to look at them");
    }
    let sweep = async {
        loop {
            tokio::time::sleep(CHECKPOINT_PAUSE).await;
            app.checkpoint_audit(jiff::Timestamp::now()).await;
            if let Err(failure) = app.sweep_approvals(jiff::Timestamp::now()).await {
                warn!(error = %failure.error.log_text(), "nobody looked for approvals whose time is over");
            }
            if let Err(failure) = app.sweep_rollouts(jiff::Timestamp::now()).await {
                warn!(error = %failure.error.log_text(), "roll-outs did not go on");
            }
        }
    };
    let count = async {
        loop {
            if let Err(failure) = app.count_resources().await {
                warn!(error = %failure.error.log_text(), "items were not counted");
            }
            tokio::time::sleep(COUNT_PAUSE).await;
        }
    };
    tokio::join!(sweep, count);
}
