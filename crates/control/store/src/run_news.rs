//! That something about a run changed, as the database tells it to every server.

use sqlx::postgres::{PgListener, PgPoolOptions};
use uuid::Uuid;

use crate::{Store, StoreError};

const CHANNEL: &str = "nimbus_runs";

/// A connection that does nothing but listen.
pub struct RunNotices {
    listener: PgListener,
}

impl Store {
    /// Hears of every change from now on. The connection is not one of those that serve requests.
    pub async fn run_notices(&self) -> Result<RunNotices, StoreError> {
        let credentials = self.config.role_credentials(&self.config.roles.app);
        let pool = PgPoolOptions::new()
            .max_connections(1)
            .acquire_timeout(self.config.acquire_timeout)
            .connect_lazy_with(self.config.options(&credentials));
        let mut listener = PgListener::connect_with(&pool).await?;
        listener.listen(CHANNEL).await?;
        Ok(RunNotices { listener })
    }
}

impl RunNotices {
    /// The next run that changed. `None` when the connection was away, and news were missed.
    pub async fn next(&mut self) -> Result<Option<Uuid>, StoreError> {
        loop {
            match self.listener.try_recv().await? {
                None => return Ok(None),
                // Anybody who may connect may notify; what is not a run is nobody's news.
                Some(notice) => {
                    if let Ok(run) = notice.payload().parse() {
                        return Ok(Some(run));
                    }
                }
            }
        }
    }
}

impl std::fmt::Debug for RunNotices {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("RunNotices(..)")
    }
}
