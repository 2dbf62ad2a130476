//! The requests of the credential chain, sent with the HTTP client that we have anyway.
//!
//! Metadata services speak plain HTTP on this machine or its host, so what is not encrypted is never
//! sent to a proxy.

use std::sync::OnceLock;
use std::time::Duration;

use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_runtime_api::http::StatusCode;
use aws_smithy_types::body::SdkBody;
use reqwest::redirect::Policy;
use reqwest::{Client, Method};

/// Makes connectors with the time limits that are asked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct PlainHttp;

impl HttpClient for PlainHttp {
    fn http_connector(
        &self,
        settings: &HttpConnectorSettings,
        _components: &RuntimeComponents,
    ) -> SharedHttpConnector {
        SharedHttpConnector::new(TimedConnector {
            connect: settings.connect_timeout(),
            read: settings.read_timeout(),
            clients: Default::default(),
        })
    }
}

#[derive(Debug)]
struct TimedConnector {
    connect: Option<Duration>,
    read: Option<Duration>,
    /// For plain and for encrypted requests.
    clients: [OnceLock<Client>; 2],
}

impl TimedConnector {
    fn client(&self, encrypted: bool) -> Result<Client, ConnectorError> {
        let kept = &self.clients[usize::from(encrypted)];
        if let Some(client) = kept.get() {
            return Ok(client.clone());
        }
        let mut builder = Client::builder()
            .connect_timeout(self.connect.unwrap_or(Duration::from_secs(10)))
            .timeout(self.read.unwrap_or(Duration::from_secs(30)))
            // A token is for one host; nobody else gets it.
            .redirect(Policy::none());
        if !encrypted {
            builder = builder.no_proxy();
        }
        let client = builder
            .build()
            .map_err(|error| ConnectorError::other(error.into(), None))?;
        Ok(kept.get_or_init(|| client).clone())
    }
}

impl HttpConnector for TimedConnector {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let client = self.client(request.uri().starts_with("https:"));
        HttpConnectorFuture::new(async move { send(&client?, request).await })
    }
}

async fn send(client: &Client, request: HttpRequest) -> Result<HttpResponse, ConnectorError> {
    let method = Method::from_bytes(request.method().as_bytes())
        .map_err(|error| ConnectorError::user(error.into()))?;
    let mut sent = client.request(method, request.uri());
    for (name, value) in request.headers() {
        sent = sent.header(name, value);
    }
    if let Some(body) = request.body().bytes() {
        sent = sent.body(body.to_vec());
    }
    let answer = sent.send().await.map_err(failed)?;
    let status = StatusCode::try_from(answer.status().as_u16())
        .map_err(|error| ConnectorError::other(error.into(), None))?;
    let headers = answer.headers().clone();
    let body = answer.bytes().await.map_err(failed)?;
    let mut response = HttpResponse::new(status, SdkBody::from(body.to_vec()));
    for (name, value) in &headers {
        if let Ok(value) = value.to_str() {
            response
                .headers_mut()
                .append(name.as_str().to_owned(), value.to_owned());
        }
    }
    Ok(response)
}

/// Without the address: it may have a token in it.
fn failed(error: reqwest::Error) -> ConnectorError {
    let error = error.without_url();
    if error.is_timeout() {
        ConnectorError::timeout(error.into())
    } else {
        ConnectorError::io(error.into())
    }
}
