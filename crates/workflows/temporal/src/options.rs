//! Where the Temporal server is and how workflows are treated.

use std::time::Duration;

use nimbus_core::{Error, ErrorCode};
use secrecy::{ExposeSecret as _, SecretString};
use temporalio_client::{
    Client, ClientOptions, ClientTlsOptions, Connection, ConnectionOptions, TlsOptions, Url,
};

/// See the fields; [`TemporalOptions::new`] has what is usual.
#[derive(Clone, Debug)]
pub struct TemporalOptions {
    /// `http://host:7233`, or `https://…` for a server that speaks TLS.
    pub address: String,
    /// How the two sides of TLS are known to each other; without it, the system's roots are trusted.
    pub tls: Option<TemporalTls>,
    /// For servers that ask for one.
    pub api_key: Option<SecretString>,
    /// It exists: making one, and how long it keeps what ended, is up to whoever runs the server.
    pub namespace: String,
    /// Where work for our processes waits; also what tells our workflows and schedules from those of
    /// others in the namespace.
    pub queue: String,
    /// Of the workflows' code, for people who look at the server.
    pub version: String,
    /// How many steps run at once in this process.
    pub step_slots: usize,
    /// How many workflows are kept in memory, so that they need not be replayed when something happens.
    pub kept_flows: usize,
    /// How often a step says that it is alive, and learns that it is not wanted any more. After ten that
    /// are missed, its process is held to be gone.
    pub heartbeat: Duration,
    /// How long a process may take to say what a workflow does next before another one is asked.
    pub patience: Duration,
    /// How often a step may lose its process, besides its own attempts, before it is given up.
    pub lost_attempts: u32,
}

/// Certificates in PEM.
#[derive(Clone, Debug)]
pub struct TemporalTls {
    /// Who signed the server's certificate, if not one of the system's roots.
    pub root: Option<String>,
    /// Our certificate and its key, for servers that ask who we are.
    pub identity: Option<(String, SecretString)>,
}

impl TemporalOptions {
    pub fn new(address: impl Into<String>, namespace: impl Into<String>) -> Self {
        Self {
            address: address.into(),
            tls: None,
            api_key: None,
            namespace: namespace.into(),
            queue: "nimbus".to_owned(),
            version: "1".to_owned(),
            step_slots: 64,
            kept_flows: 1000,
            heartbeat: Duration::from_secs(1),
            patience: Duration::from_secs(10),
            lost_attempts: 10,
        }
    }

    /// The queue's name is put into queries.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let letter = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        if !self.queue.is_empty() && self.queue.len() <= 100 && self.queue.chars().all(letter) {
            return Ok(());
        }
        Err(invalid(format!(
            "`{}` is not a name of a queue of workflows",
            self.queue
        ))
        .with_help("use letters, digits and . _ - only, 100 at most"))
    }

    pub(crate) fn heartbeat_timeout(&self) -> Duration {
        self.heartbeat.saturating_mul(10)
    }

    pub(crate) async fn connect(&self) -> Result<Client, Error> {
        let address = Url::parse(&self.address)
            .map_err(|error| invalid(format!("the address of the Temporal server: {error}")))?;
        let encrypted = match address.scheme() {
            "https" => true,
            "http" if self.tls.is_none() && self.api_key.is_none() => false,
            "http" => {
                let what = "certificates and keys are not sent to a server without TLS";
                return Err(invalid(what).with_help("use an address that begins with https"));
            }
            other => {
                let what = format!("the address of the Temporal server begins with `{other}`");
                return Err(invalid(what).with_help("use http or https"));
            }
        };
        let connection = ConnectionOptions::new(address)
            .maybe_tls_options(encrypted.then(|| self.tls_options()))
            .maybe_api_key(
                self.api_key
                    .as_ref()
                    .map(|key| key.expose_secret().to_owned()),
            )
            .connect_timeout(Duration::from_secs(10))
            .build();
        let connection = Connection::connect(connection).await.map_err(unavailable)?;
        let client = ClientOptions::new(self.namespace.clone()).build();
        Client::new(connection, client).map_err(unavailable)
    }

    fn tls_options(&self) -> TlsOptions {
        let bytes = |text: &str| text.as_bytes().to_vec();
        let Some(tls) = &self.tls else {
            return TlsOptions::default();
        };
        let identity = tls.identity.as_ref().map(|(certificate, key)| {
            ClientTlsOptions::builder()
                .client_cert(bytes(certificate))
                .client_private_key(bytes(key.expose_secret()))
                .build()
        });
        TlsOptions::builder()
            .maybe_server_root_ca_cert(tls.root.as_deref().map(bytes))
            .maybe_client_tls_options(identity)
            .build()
    }
}

pub(crate) fn invalid(what: impl Into<String>) -> Error {
    Error::new(ErrorCode::WORKFLOW_INVALID, what.into())
}

/// Errors of the library hold no secrets: they name neither keys nor certificates.
pub(crate) fn unavailable(error: impl std::fmt::Display) -> Error {
    Error::new(
        ErrorCode::WORKFLOW_RUNTIME,
        format!("the Temporal server: {error}"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_that_would_end_a_query_is_refused() {
        let mut options = TemporalOptions::new("http://localhost:7233", "default");
        assert!(options.check().is_ok());
        for queue in ["", "a' OR 'b' = 'b", "a b"] {
            options.queue = queue.to_owned();
            assert!(options.check().is_err(), "{queue}");
        }
    }

    #[tokio::test]
    async fn keys_are_not_sent_in_the_clear_and_wrong_addresses_are_refused() {
        let mut options = TemporalOptions::new("http://127.0.0.1:9", "default");
        options.api_key = Some(SecretString::from("hush"));
        assert!(!format!("{options:?}").contains("hush"));
        let refused = options.connect().await.err();
        assert_eq!(
            refused.map(|error| error.code()),
            Some(ErrorCode::WORKFLOW_INVALID)
        );
        for address in ["nowhere", "ftp://127.0.0.1:9"] {
            let options = TemporalOptions::new(address, "default");
            let refused = options.connect().await.err();
            assert_eq!(
                refused.map(|error| error.code()),
                Some(ErrorCode::WORKFLOW_INVALID),
                "{address}"
            );
        }
    }
}
