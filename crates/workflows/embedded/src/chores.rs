//! What the owner does beside executing: looks for cancellations, starts schedules, tries again what is
//! stuck, and deletes what ended long ago.

use std::time::Duration;

use serde_json::Value;
use tokio::time::{MissedTickBehavior, interval};

use crate::options::EmbeddedOptions;
use crate::store::RecordedEnd;
use crate::worker::Shared;

const WATCH: Duration = Duration::from_millis(250);
const SWEEP: Duration = Duration::from_secs(60);

/// Never returns. An error is logged and the chore done again at its next turn: the database may be away.
pub(crate) async fn run(shared: &Shared, client: &dbos::Client, options: &EmbeddedOptions) {
    let mut watch = interval(WATCH);
    let mut sweep = interval(SWEEP);
    for ticks in [&mut watch, &mut sweep] {
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    }
    loop {
        tokio::select! {
            _ = watch.tick() => look(shared).await,
            _ = sweep.tick() => clean(shared, client, options).await,
        }
    }
}

async fn look(shared: &Shared) {
    match shared.store.all_cancelled().await {
        Ok(ids) => {
            let ids = ids.into_iter().collect();
            shared.cancelled.send_if_modified(|known| {
                let new = *known != ids;
                *known = ids;
                new
            });
        }
        Err(error) => tracing::debug!(%error, "cancellations cannot be read"),
    }
    loop {
        match shared.store.start_due().await {
            Ok(true) => {}
            Ok(false) => return,
            Err(error) => {
                tracing::warn!(%error, "a schedule cannot be started");
                return;
            }
        }
    }
}

async fn clean(shared: &Shared, client: &dbos::Client, options: &EmbeddedOptions) {
    let again = shared.store.long_stuck().await.unwrap_or_default();
    for id in again {
        tracing::warn!(workflow = id, "a workflow that is stuck is begun again");
        let resumed = client.resume::<Value, RecordedEnd>(&id).await;
        if let Err(error) = resumed {
            tracing::warn!(workflow = id, %error, "it cannot be begun");
        }
    }
    if let Err(error) = shared.store.forgive(false).await {
        tracing::warn!(%error, "the count of begun workflows stays");
    }
    match shared.store.purge(options.retention).await {
        Ok(0) => {}
        Ok(purged) => tracing::info!(purged, "workflows that ended long ago were deleted"),
        Err(error) => tracing::warn!(%error, "workflows that ended long ago stay"),
    }
}
