//! Calls to the server. Each may come twice, so one that is not answered is made again for a while.

use std::time::{Duration, Instant};

use async_trait::async_trait;
use nimbus_control_client::{Client, ClientError};
use nimbus_control_runs::{HolderCall, RunAddress, RunServer};
use nimbus_core::{Error, ErrorCode, Result};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tracing::debug;
use url::{Host, Url};
use uuid::Uuid;

/// So long a call is made again. Longer than a server takes to come back, and than a run's lease.
const PATIENCE: Duration = Duration::from_secs(60);
/// Between two attempts, at first and at most.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// A server, as the worker that joined it.
#[derive(Clone, Debug)]
pub(crate) struct WorkerServer {
    client: Client,
    worker: Uuid,
}

impl WorkerServer {
    /// # Errors
    ///
    /// When the address is none, or would carry secrets in the clear over a network.
    pub(crate) fn new(server: &str, key: String, worker: Uuid, plain: bool) -> Result<Self> {
        let client = Client::with_token(server, key)?;
        if !plain && is_plain_network(client.server()) {
            let message = format!(
                "{} is reached without TLS, and a worker is given secrets of tenants",
                client.server()
            );
            return Err(Error::new(ErrorCode::WORKER_WITHOUT_TLS, message)
                .with_help("use https://, or --allow-plain-http where nobody else can listen"));
        }
        Ok(Self { client, worker })
    }

    pub(crate) fn address(&self) -> &str {
        self.client.server()
    }

    /// The path of something about this worker.
    pub(crate) fn path(&self, rest: &str) -> String {
        format!("/api/v1/workers/{}{rest}", self.worker)
    }

    /// Asks once, within a time.
    pub(crate) async fn once<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &Value,
        within: Duration,
    ) -> Result<T, WorkerFailure> {
        let mut client = self.client.clone();
        let asked = tokio::time::timeout(within, client.post(path, body));
        let answer = match asked.await {
            Ok(answer) => answer.map_err(WorkerFailure::of)?,
            Err(_) => {
                let message = format!("{} did not answer in time", self.address());
                let error = Error::new(ErrorCode::SERVER_UNREACHABLE, message);
                return Err(WorkerFailure { error, again: true });
            }
        };
        serde_json::from_value(answer).map_err(|error| WorkerFailure {
            error: Error::new(ErrorCode::SERVER_ANSWER, error.to_string()),
            again: false,
        })
    }

    /// Asks until there is an answer, or for as long as it makes sense.
    pub(crate) async fn ask<T: DeserializeOwned>(&self, path: &str, body: &Value) -> Result<T> {
        let begun = Instant::now();
        let mut pause = FIRST_PAUSE;
        loop {
            let failure = match self.once(path, body, PATIENCE).await {
                Ok(answer) => return Ok(answer),
                Err(failure) => failure,
            };
            if !failure.again || begun.elapsed() + pause > PATIENCE {
                return Err(failure.error);
            }
            debug!(path, error = %failure.error.log_text(), "a call is made again");
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Leaves, in order.
    pub(crate) async fn leave(&self) -> Result<()> {
        self.client.clone().delete(&self.path("")).await?;
        Ok(())
    }

    fn run_path(&self, of: &RunAddress) -> String {
        self.path(&format!("/runs/{}", of.run))
    }

    fn body(of: &RunAddress, call: &Value) -> Value {
        json!({"tenant": of.tenant.to_string(), "epoch": of.epoch, "call": call})
    }

    /// One call about a run, made again for a while.
    pub(crate) async fn about(&self, of: &RunAddress, call: &Value) -> Result<Value> {
        let answer: Value = self.ask(&self.run_path(of), &Self::body(of, call)).await?;
        Ok(answer["answer"].clone())
    }

    /// One call about a run, made once.
    pub(crate) async fn about_once(
        &self,
        of: &RunAddress,
        call: &Value,
        within: Duration,
    ) -> Result<Value> {
        let body = Self::body(of, call);
        let answer = self.once::<Value>(&self.run_path(of), &body, within).await;
        let answer = answer.map_err(|failure| failure.error)?;
        Ok(answer["answer"].clone())
    }
}

#[async_trait]
impl RunServer for WorkerServer {
    async fn call(&self, of: &RunAddress, call: HolderCall) -> Result<Value> {
        let call = serde_json::to_value(call).map_err(|error| {
            Error::new(
                ErrorCode::INTERNAL,
                format!("a call cannot be written: {error}"),
            )
        })?;
        self.about(of, &call).await
    }
}

/// Why a call failed, and whether it is worth making again.
#[derive(Debug)]
pub(crate) struct WorkerFailure {
    pub(crate) error: Error,
    pub(crate) again: bool,
}

impl WorkerFailure {
    fn of(error: ClientError) -> Self {
        let again = match &error {
            ClientError::Unreachable { .. } | ClientError::Broken { .. } => true,
            // Something on the way that stands in for a server that is away, or half an answer.
            ClientError::Answer { .. } => true,
            ClientError::Refused { status, .. } => *status >= 500 || *status == 429,
            ClientError::NotSignedIn { .. }
            | ClientError::File { .. }
            | ClientError::NoProfile { .. }
            | ClientError::OtherServer { .. }
            | ClientError::SeveralProfiles { .. }
            | ClientError::Address { .. } => false,
        };
        Self {
            error: error.into(),
            again,
        }
    }
}

/// Whether an address leads over a network, readable for whoever is on the way.
fn is_plain_network(server: &str) -> bool {
    let Ok(url) = Url::parse(server) else {
        return false;
    };
    let here = match url.host() {
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        Some(Host::Domain(name)) => name == "localhost",
        None => false,
    };
    url.scheme() == "http" && !here
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_go_over_a_network_only_with_tls_or_when_somebody_says_so() {
        let new = |server: &str, plain| {
            let made = WorkerServer::new(server, "key".to_owned(), Uuid::nil(), plain);
            made.map(drop).map_err(|error| error.code())
        };
        for server in [
            "https://nimbus.example",
            "http://127.0.0.1:8000",
            "http://localhost:1",
            "http://[::1]:8000",
        ] {
            assert_eq!(new(server, false), Ok(()), "{server}");
        }
        for server in ["http://nimbus.example", "http://10.0.0.1:8000"] {
            assert_eq!(new(server, false), Err(ErrorCode::WORKER_WITHOUT_TLS));
            assert_eq!(new(server, true), Ok(()), "{server}");
        }
    }
}
