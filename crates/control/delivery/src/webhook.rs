//! Sends a message to a webhook.
//!
//! What counts is the number of the answer: 2xx is delivered, everything else is not. A redirect is not followed, because
//! it would send a signed message somewhere that nobody set up, and the body of an answer is not read: a receiver that
//! accepts and then answers without an end has accepted.

use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use nimbus_outbound::{
    AddressRules, AllowedNetwork, NotAnAllowedNetwork, OutboundCall, OutboundClient, OutboundError,
    OutboundLimits,
};

use crate::outcome::{SendOutcome, SendVerdict};
use crate::signature::WebhookSecret;

/// What an operator may set about webhooks.
#[derive(Clone, Debug)]
pub struct WebhookSettings {
    /// Whether any is called.
    pub enabled: bool,
    pub rules: AddressRules,
    /// For all of a call.
    pub timeout: Duration,
}

impl Default for WebhookSettings {
    fn default() -> Self {
        Self {
            enabled: true,
            rules: AddressRules::default(),
            timeout: Duration::from_secs(30),
        }
    }
}

impl WebhookSettings {
    /// The usual, with networks and ports as an operator writes them: separated by commas.
    ///
    /// # Errors
    ///
    /// The part that is none.
    pub fn parse(networks: &str, ports: &str) -> Result<Self, String> {
        let parts = |text: &str| {
            let parts = text.split(',').map(|part| part.trim().to_owned());
            parts.filter(|part| !part.is_empty()).collect::<Vec<_>>()
        };
        let mut settings = Self::default();
        for part in parts(networks) {
            let network: AllowedNetwork = part
                .parse()
                .map_err(|error: NotAnAllowedNetwork| error.to_string())?;
            settings.rules.allowed.push(network);
        }
        for part in parts(ports) {
            let port: u16 = part
                .parse()
                .map_err(|_| format!("`{part}` is not a port"))?;
            settings.rules.ports.push(port);
        }
        Ok(settings)
    }
}

/// A message for one receiver.
#[derive(Clone, Debug)]
pub struct WebhookMessage {
    /// The same for each time that it is sent, so that a receiver knows it again.
    pub id: String,
    pub url: String,
    pub body: String,
    /// The present one first; during a rotation the one before it as well.
    pub secrets: Vec<WebhookSecret>,
    /// Of this attempt, in seconds of Unix time.
    pub timestamp: i64,
}

/// Calls webhooks. Cheap to clone.
#[derive(Clone, Debug)]
pub struct WebhookSender {
    client: OutboundClient,
}

impl WebhookSender {
    /// # Errors
    ///
    /// When the machine has no certificates to check others with.
    pub fn new(settings: &WebhookSettings) -> Result<Self, OutboundError> {
        let limits = OutboundLimits {
            time: settings.timeout,
            connect: settings.timeout.min(OutboundLimits::default().connect),
            ..OutboundLimits::default()
        };
        let client = OutboundClient::new(settings.rules.clone(), limits)?;
        Ok(Self { client })
    }

    pub async fn send(&self, message: &WebhookMessage) -> SendOutcome {
        let Some(headers) = headers(message) else {
            return SendOutcome::unanswered(SendVerdict::Refused, "the message cannot be sent");
        };
        let mut call = OutboundCall::post(&message.url, message.body.clone());
        call.headers = headers;
        match self.client.status(call).await {
            Ok(status) => outcome_of(status),
            // What the address leads to may change, so that even a refused one is tried again.
            Err(error) => SendOutcome::unanswered(SendVerdict::Retry, error.to_string()),
        }
    }
}

fn headers(message: &WebhookMessage) -> Option<HeaderMap> {
    let signatures: Vec<String> = message
        .secrets
        .iter()
        .map(|secret| secret.sign(&message.id, message.timestamp, &message.body))
        .collect();
    let mut headers = HeaderMap::new();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/json"),
    );
    for (name, value) in [
        ("webhook-id", message.id.clone()),
        ("webhook-timestamp", message.timestamp.to_string()),
        ("webhook-signature", signatures.join(" ")),
    ] {
        let value = HeaderValue::from_str(&value).ok()?;
        headers.insert(HeaderName::from_static(name), value);
    }
    Some(headers)
}

fn outcome_of(status: StatusCode) -> SendOutcome {
    let number = status.as_u16();
    let words = status.canonical_reason().unwrap_or("an unknown status");
    let problem = format!("it answered {number} {words}");
    match status {
        _ if status.is_success() => SendOutcome::delivered(number),
        StatusCode::GONE => SendOutcome::answered(SendVerdict::Gone, number, problem),
        _ if status.is_redirection() => SendOutcome::answered(
            SendVerdict::Retry,
            number,
            format!("{problem}; redirects are not followed"),
        ),
        _ => SendOutcome::answered(SendVerdict::Retry, number, problem),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_and_ports_are_read_as_operators_write_them() {
        let read = WebhookSettings::parse("10.1.0.0/16, 127.0.0.1/32", "8443,9000").unwrap();
        assert_eq!(read.rules.allowed.len(), 2);
        assert_eq!(read.rules.ports, [8443, 9000]);
        assert!(
            WebhookSettings::parse("", "")
                .unwrap()
                .rules
                .allowed
                .is_empty()
        );
        for (networks, ports) in [("10.0.0.1", ""), ("", "0x50"), ("", "70000")] {
            let problem = WebhookSettings::parse(networks, ports).unwrap_err();
            assert!(problem.contains('`'), "{problem}");
        }
    }

    #[test]
    fn only_success_is_delivered_and_only_gone_is_final() {
        for (status, verdict) in [
            (200, SendVerdict::Delivered),
            (204, SendVerdict::Delivered),
            (301, SendVerdict::Retry),
            (307, SendVerdict::Retry),
            (400, SendVerdict::Retry),
            (401, SendVerdict::Retry),
            (410, SendVerdict::Gone),
            (429, SendVerdict::Retry),
            (500, SendVerdict::Retry),
            (799, SendVerdict::Retry),
        ] {
            let outcome = outcome_of(StatusCode::from_u16(status).unwrap());
            assert_eq!(outcome.verdict, verdict, "{status}");
            assert_eq!(outcome.status, Some(status));
            let told = outcome.problem.is_some();
            assert_eq!(told, verdict != SendVerdict::Delivered);
        }
    }
}
