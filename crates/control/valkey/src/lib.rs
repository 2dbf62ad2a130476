//! News between several servers, by way of Valkey (or Redis, whose protocol it speaks).
//!
//! Only announcements go this way, and an announcement says where to look. What there is to see is in the database. So
//! nothing is lost with Valkey, nobody learns anything from it, and it needs no disk.

use std::fmt;
use std::pin::Pin;
use std::time::Duration;

use async_trait::async_trait;
use futures::{Stream, StreamExt as _};
use nimbus_control_events::{FanOut, LiveNotice, NoticeSource};
use nimbus_core::{Error, ErrorCode, Result};
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, Msg};
use tokio::sync::Mutex;

const CONNECTED: Duration = Duration::from_secs(3);
const ANSWERED: Duration = Duration::from_secs(2);
/// No message is longer, so that none delays others.
const MOST_BYTES: usize = 64 * 1024;

/// A Valkey that all servers of an installation use.
pub struct ValkeyFanOut {
    client: Client,
    channel: String,
    /// The one that announcements go over; made anew after a failure.
    sending: Mutex<Option<MultiplexedConnection>>,
}

impl fmt::Debug for ValkeyFanOut {
    /// Without the address, which may have a password in it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ValkeyFanOut")
            .field("channel", &self.channel)
            .finish_non_exhaustive()
    }
}

impl ValkeyFanOut {
    /// `address` is `valkey://user:password@host:port/database`, or `valkeys://` for TLS. Installations that share a
    /// Valkey do not hear each other. Nothing is connected yet.
    ///
    /// # Errors
    ///
    /// When the address cannot be one.
    pub fn new(address: &str, installation: impl fmt::Display) -> Result<Self> {
        let client = Client::open(address).map_err(|error| {
            // Its text may have the address in it.
            let message = format!("the address of Valkey cannot be used ({:?})", error.kind());
            Error::new(ErrorCode::VALKEY_ADDRESS, message)
                .with_help("write NIMBUS_VALKEY_URL as valkey://host:6379/0, or valkeys:// for TLS")
        })?;
        Ok(Self {
            client,
            channel: format!("nimbus:{installation}:events"),
            sending: Mutex::default(),
        })
    }

    async fn publish(&self, text: &str) -> redis::RedisResult<()> {
        // Announcements follow each other anyway: who waits here would wait there.
        let mut sending = self.sending.lock().await;
        let mut connection = match sending.take() {
            Some(connection) => connection,
            None => {
                let config = AsyncConnectionConfig::new()
                    .set_connection_timeout(Some(CONNECTED))
                    .set_response_timeout(Some(ANSWERED));
                self.client
                    .get_multiplexed_async_connection_with_config(&config)
                    .await?
            }
        };
        // The answer is Valkey's word that it has it.
        let told: redis::RedisResult<i64> = redis::cmd("PUBLISH")
            .arg(&self.channel)
            .arg(text)
            .query_async(&mut connection)
            .await;
        told?;
        *sending = Some(connection);
        Ok(())
    }
}

#[async_trait]
impl FanOut for ValkeyFanOut {
    fn name(&self) -> &'static str {
        "valkey"
    }

    async fn announce(&self, news: &LiveNotice) -> Result<()> {
        for text in news.texts(MOST_BYTES) {
            self.publish(&text).await.map_err(away)?;
        }
        Ok(())
    }

    async fn listen(&self) -> Result<Box<dyn NoticeSource>> {
        let open = async {
            let mut connection = self.client.get_async_pubsub().await?;
            connection.subscribe(&self.channel).await?;
            Ok(connection.into_on_message())
        };
        let opened = tokio::time::timeout(CONNECTED, open).await;
        let messages = opened
            .map_err(|_| Error::new(ErrorCode::VALKEY_AWAY, "Valkey does not answer"))?
            .map_err(away)?;
        Ok(Box::new(ValkeyNotices(Box::pin(messages))))
    }
}

struct ValkeyNotices(Pin<Box<dyn Stream<Item = Msg> + Send>>);

#[async_trait]
impl NoticeSource for ValkeyNotices {
    async fn next(&mut self) -> Result<Option<LiveNotice>> {
        let Some(message) = self.0.next().await else {
            return Err(Error::new(ErrorCode::VALKEY_AWAY, "Valkey is gone"));
        };
        // What is no text is nobody's news.
        let text: String = message.get_payload().unwrap_or_default();
        Ok(Some(LiveNotice::parse(&text)))
    }
}

/// The kind alone: texts of the library may have the address in them.
fn away(error: redis::RedisError) -> Error {
    let message = format!("Valkey is not reached ({:?})", error.kind());
    Error::new(ErrorCode::VALKEY_AWAY, message)
        .with_help("look whether NIMBUS_VALKEY_URL is right and Valkey runs")
}
