//! The API of a server: its keys, its use cases, its routes and what has to be done beside them.

use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use nimbus_control_api::{ApiState, Limits};
use nimbus_control_app::{App, AppKeys, AppSettings, GivenKeys};
use nimbus_control_store::Store;
use nimbus_core::Result;
use tracing::warn;

use crate::server::ServerOptions;

/// How much of the audit trail could be cut off unnoticed by whoever owns the database.
const CHECKPOINT_PAUSE: Duration = Duration::from_secs(10);
/// Checkpoints between two removals of ended sessions.
const CHECKPOINTS_PER_CLEANING: u32 = 360;

/// Refuses to start without the keys that the database names.
pub(crate) async fn open(options: &ServerOptions, store: Store) -> Result<App> {
    let data_dir = &options.database.data_dir;
    let folder = options
        .keys
        .clone()
        .unwrap_or_else(|| data_dir.join("keys"));
    let keys = AppKeys::in_folder(&folder, GivenKeys::default())?;
    let settings = AppSettings::new("nimbus", data_dir.join("audit"));
    App::open(store, keys, settings).await
}

pub(crate) fn router(app: &App, address: SocketAddr) -> Router {
    let origins = vec![format!("http://{address}")];
    nimbus_control_api::router(ApiState::new(app.clone(), origins, Limits::default()))
}

/// Signs how far the audit trail has come and removes what is of no use, until it is dropped.
pub(crate) async fn look_after(app: App) {
    for round in 0_u32.. {
        tokio::time::sleep(CHECKPOINT_PAUSE).await;
        app.checkpoint_audit(jiff::Timestamp::now()).await;
        if round % CHECKPOINTS_PER_CLEANING == 0
            && let Err(failure) = app.remove_ended_sessions().await
        {
            warn!(error = %failure.error.log_text(), "ended sessions were not removed");
        }
    }
}
