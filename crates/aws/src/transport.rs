//! Sending a question, signed, until it is answered or refused.
//!
//! What may pass by itself is tried again with growing, uneven pauses: no connection, a busy or
//! broken service, throttling. A refusal is final.

use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use nimbus_core::percent_encoded;
use reqwest::Client;
use reqwest::redirect::Policy;
use secrecy::ExposeSecret as _;
use serde_json::Value;
use url::Url;

use crate::credentials::AwsCredentials;
use crate::error::AwsError;
use crate::responses::refusal;
use crate::sign::{SignedRequest, authorization};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AwsService {
    Ec2,
    Kms,
    Ssm,
    SecretsManager,
    Sts,
}

impl AwsService {
    /// In host names and signatures.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Ec2 => "ec2",
            Self::Kms => "kms",
            Self::Ssm => "ssm",
            Self::SecretsManager => "secretsmanager",
            Self::Sts => "sts",
        }
    }

    /// In the variable that sets its endpoint.
    pub(super) fn variable(self) -> &'static str {
        match self {
            Self::Ec2 => "EC2",
            Self::Kms => "KMS",
            Self::Ssm => "SSM",
            Self::SecretsManager => "SECRETS_MANAGER",
            Self::Sts => "STS",
        }
    }
}

/// What is sent, in one of the two forms that these services speak.
pub(super) struct RequestBody {
    action: String,
    content_type: &'static str,
    /// The action, where it is not part of the text.
    target: Option<String>,
    text: String,
}

impl RequestBody {
    pub(super) fn form(action: &str, version: &str, fields: &[(&str, &str)]) -> Self {
        let own = [("Action", action), ("Version", version)];
        let pairs: Vec<String> = own
            .iter()
            .chain(fields)
            .map(|(name, value)| format!("{name}={}", percent_encoded(value)))
            .collect();
        Self {
            action: action.to_owned(),
            content_type: "application/x-www-form-urlencoded; charset=utf-8",
            target: None,
            text: pairs.join("&"),
        }
    }

    pub(super) fn json(target: &str, document: &Value) -> Self {
        Self {
            action: target.rsplit('.').next().unwrap_or(target).to_owned(),
            content_type: "application/x-amz-json-1.1",
            target: Some(target.to_owned()),
            text: document.to_string(),
        }
    }
}

pub(super) struct AwsCall<'a> {
    pub(super) service: AwsService,
    pub(super) region: &'a str,
    pub(super) endpoint: Url,
    pub(super) body: RequestBody,
}

pub(super) struct AwsTransport {
    client: Client,
    attempts: u32,
    /// The first pause; later ones double.
    pause: Duration,
}

/// How an attempt ended without an answer.
enum TransportFailure {
    MayPass(AwsError),
    Final(AwsError),
}

impl AwsTransport {
    pub(super) fn new(attempts: u32) -> Result<Self, AwsError> {
        let client = Client::builder()
            .connect_timeout(Duration::from_secs(10))
            .timeout(Duration::from_secs(30))
            // A signature is for one host; nobody else gets the request.
            .redirect(Policy::none())
            .user_agent(concat!("nimbus/", env!("CARGO_PKG_VERSION")))
            .build();
        let client = client.map_err(|error| AwsError::Unreachable {
            endpoint: "AWS".to_owned(),
            problem: nimbus_core::innermost(&error).to_string(),
        })?;
        Ok(Self {
            client,
            attempts,
            pause: Duration::from_millis(200),
        })
    }

    /// The text of the answer.
    pub(super) async fn send(
        &self,
        call: &AwsCall<'_>,
        credentials: &AwsCredentials,
    ) -> Result<String, AwsError> {
        let mut pause = self.pause;
        let mut left = self.attempts;
        loop {
            left -= 1;
            match self.attempt(call, credentials).await {
                Ok(text) => return Ok(text),
                Err(TransportFailure::Final(error)) => return Err(error),
                Err(TransportFailure::MayPass(error)) if left == 0 => return Err(error),
                Err(TransportFailure::MayPass(_)) => {
                    // Uneven, so that many clients do not come back together.
                    let share = f64::from(rand::random::<f32>()) / 2.0 + 0.5;
                    tokio::time::sleep(pause.mul_f64(share)).await;
                    pause = (pause * 2).min(Duration::from_secs(10));
                }
            }
        }
    }

    async fn attempt(
        &self,
        call: &AwsCall<'_>,
        credentials: &AwsCredentials,
    ) -> Result<String, TransportFailure> {
        let unreachable = |error: &reqwest::Error| AwsError::Unreachable {
            endpoint: call.endpoint.origin().ascii_serialization(),
            problem: nimbus_core::innermost(error).to_string(),
        };
        let mut request = self
            .client
            .post(call.endpoint.clone())
            .body(call.body.text.clone());
        for (name, value) in headers(call, credentials) {
            request = request.header(name, value);
        }
        let response = request
            .send()
            .await
            .map_err(|error| TransportFailure::MayPass(unreachable(&error)))?;
        let status = response.status();
        let text = response
            .text()
            .await
            .map_err(|error| TransportFailure::MayPass(unreachable(&error)))?;
        if status.is_success() {
            return Ok(text);
        }
        let Some((code, message)) = refusal(&text) else {
            let error = AwsError::NotUnderstood {
                action: call.body.action.clone(),
                problem: format!("HTTP status {status}"),
            };
            return Err(if status.is_server_error() || status.as_u16() == 429 {
                TransportFailure::MayPass(error)
            } else {
                TransportFailure::Final(error)
            });
        };
        let passes = status.is_server_error() || status.as_u16() == 429 || is_throttling(&code);
        let error = AwsError::Refused {
            action: call.body.action.clone(),
            code,
            message,
        };
        Err(if passes {
            TransportFailure::MayPass(error)
        } else {
            TransportFailure::Final(error)
        })
    }
}

fn is_throttling(code: &str) -> bool {
    matches!(
        code,
        "Throttling"
            | "ThrottlingException"
            | "ThrottledException"
            | "RequestLimitExceeded"
            | "TooManyRequestsException"
            | "SlowDown"
            | "RequestTimeout"
    )
}

fn headers(call: &AwsCall<'_>, credentials: &AwsCredentials) -> Vec<(&'static str, String)> {
    let host = match (call.endpoint.host_str(), call.endpoint.port()) {
        (Some(host), Some(port)) => format!("{host}:{port}"),
        (host, _) => host.unwrap_or_default().to_owned(),
    };
    let time = Timestamp::now()
        .to_zoned(TimeZone::UTC)
        .strftime("%Y%m%dT%H%M%SZ")
        .to_string();
    // In the order of their names, as the signature wants them.
    let mut headers = vec![
        ("content-type", call.body.content_type.to_owned()),
        ("host", host),
        ("x-amz-date", time.clone()),
    ];
    if let Some(token) = &credentials.token {
        headers.push(("x-amz-security-token", token.expose_secret().to_owned()));
    }
    if let Some(target) = &call.body.target {
        headers.push(("x-amz-target", target.clone()));
    }
    let signed: Vec<(&str, &str)> = headers.iter().map(|(n, v)| (*n, v.as_str())).collect();
    let request = SignedRequest {
        method: "POST",
        path: call.endpoint.path(),
        headers: &signed,
        body: call.body.text.as_bytes(),
        region: call.region,
        service: call.service.name(),
        time: &time,
    };
    let authorization = authorization(&request, credentials);
    headers.push(("authorization", authorization));
    headers
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader, Read as _, Write as _};
    use std::net::TcpListener;
    use std::thread;

    use super::*;

    /// A server that gives these answers, one for each connection, and then says what it heard.
    fn server(answers: Vec<&'static str>) -> (Url, thread::JoinHandle<Vec<String>>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let heard = thread::spawn(move || {
            let mut heard = Vec::new();
            for answer in answers {
                let (stream, _) = listener.accept().unwrap();
                let mut reader = BufReader::new(stream);
                let (mut head, mut length) = (String::new(), 0);
                loop {
                    let mut line = String::new();
                    reader.read_line(&mut line).unwrap();
                    if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                        length = value.trim().parse().unwrap();
                    }
                    head.push_str(&line);
                    if line.trim().is_empty() {
                        break;
                    }
                }
                let mut body = vec![0; length];
                reader.read_exact(&mut body).unwrap();
                heard.push(head + &String::from_utf8(body).unwrap());
                reader.into_inner().write_all(answer.as_bytes()).unwrap();
            }
            heard
        });
        (url.parse().unwrap(), heard)
    }

    async fn send(endpoint: Url, attempts: u32) -> Result<String, AwsError> {
        let mut transport = AwsTransport::new(attempts)?;
        transport.pause = Duration::from_millis(1);
        let call = AwsCall {
            service: AwsService::Ec2,
            region: "eu-west-1",
            endpoint,
            body: RequestBody::form("DescribeImages", "1", &[("Owner.1", "a b")]),
        };
        let credentials = AwsCredentials::new("key", "secret", Some("token"), "a test".to_owned());
        transport.send(&call, &credentials).await
    }

    const BUSY: &str = "HTTP/1.1 503 Busy\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
    const THROTTLED: &str = "HTTP/1.1 400 Bad\r\ncontent-length: 51\r\nconnection: close\r\n\r\n\
                             {\"__type\":\"ThrottlingException\",\"message\":\"slowly\"}";
    const DENIED: &str = "HTTP/1.1 403 No\r\ncontent-length: 52\r\nconnection: close\r\n\r\n\
                          {\"__type\":\"x#AccessDeniedException\",\"Message\":\"not\"}";
    const FINE: &str = "HTTP/1.1 200 OK\r\ncontent-length: 4\r\nconnection: close\r\n\r\nfine";

    #[tokio::test]
    async fn what_may_pass_is_tried_again() {
        let (url, heard) = server(vec![BUSY, THROTTLED, FINE]);
        assert_eq!(send(url, 4).await.unwrap(), "fine");
        let heard = heard.join().unwrap();
        assert_eq!(heard.len(), 3);
        assert!(heard[2].ends_with("Action=DescribeImages&Version=1&Owner.1=a%20b"));
        assert!(heard[2].contains("x-amz-security-token: token"));
        assert!(
            !heard[2].contains("secret\r"),
            "the key itself is never sent"
        );
    }

    #[tokio::test]
    async fn a_refusal_is_final_and_patience_ends() {
        let (url, heard) = server(vec![DENIED]);
        let error = send(url, 4).await.unwrap_err();
        assert_eq!(
            error.to_string(),
            "AWS refuses DescribeImages: not (AccessDeniedException)"
        );
        assert_eq!(heard.join().unwrap().len(), 1);
        let (url, heard) = server(vec![BUSY, BUSY]);
        assert!(matches!(
            send(url, 2).await,
            Err(AwsError::NotUnderstood { .. })
        ));
        assert_eq!(heard.join().unwrap().len(), 2);
    }

    #[tokio::test]
    async fn nobody_there_is_told_with_the_address() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        drop(listener);
        let error = send(format!("http://{address}/").parse().unwrap(), 2)
            .await
            .unwrap_err()
            .to_string();
        assert!(
            error.starts_with(&format!("http://{address} does not answer: ")),
            "{error}"
        );
    }
}
