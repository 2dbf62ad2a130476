//! Whether the database can be written to, asked on a connection of its own.

use std::time::{Duration, Instant};

use sqlx::PgConnection;

use crate::store::run_script;
use crate::{Store, StoreError};

/// New room is asked for this often; it costs a file.
const ROOM_PAUSE: Duration = Duration::from_secs(10);

/// A connection that does nothing but try.
#[derive(Debug)]
pub struct WriteProbe {
    connection: PgConnection,
    room_found: Option<Instant>,
}

impl Store {
    pub async fn write_probe(&self) -> Result<WriteProbe, StoreError> {
        Ok(WriteProbe {
            connection: self.owner_connection().await?,
            room_found: None,
        })
    }
}

impl WriteProbe {
    /// Writes and commits. Once in a while it takes new room as well, because a row that is there already
    /// can be replaced on a disk that is full.
    pub async fn write(&mut self) -> Result<(), StoreError> {
        sqlx::query(
            "INSERT INTO nimbus_core.heartbeat (at) VALUES (now())
             ON CONFLICT (singleton) DO UPDATE SET at = excluded.at",
        )
        .execute(&mut self.connection)
        .await?;
        if self
            .room_found
            .is_some_and(|found| found.elapsed() < ROOM_PAUSE)
        {
            return Ok(());
        }
        self.room_found = None;
        let take = "BEGIN; TRUNCATE nimbus_core.room;
                    INSERT INTO nimbus_core.room SELECT repeat(md5(n::text), 40) FROM generate_series(1, 64) n; COMMIT";
        let taken = run_script(&mut self.connection, take.to_owned()).await;
        if let Err(error) = taken {
            // The transaction is open and lost.
            let _ = run_script(&mut self.connection, "ROLLBACK".to_owned()).await;
            return Err(error.into());
        }
        self.room_found = Some(Instant::now());
        Ok(())
    }
}
