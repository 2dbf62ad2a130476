//! Requests to a server.

use std::sync::Arc;
use std::time::{Duration, Instant};

/// Text as part of an address.
pub use nimbus_core::percent_encoded as encoded;
use reqwest::{Method, Response, StatusCode, Upgraded};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::Mutex;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::{self, protocol::Role};
use url::Url;

use crate::ClientError;
use crate::profile::{ProfileTokens, Profiles, ServerProfile};

const PATIENCE: Duration = Duration::from_secs(60);

/// The most items of one page.
const LARGEST_PAGE: u32 = 500;
/// Where an answer that is not JSON goes on.
const NEXT_HEADER: &str = "x-nimbus-next";
/// A request with this header happens once, however often it comes.
pub(crate) const REPEAT_KEY: &str = "idempotency-key";
/// So often a request is sent once more whose connection broke.
const REPETITIONS: u32 = 2;

/// What became of asking for a socket.
pub(crate) enum SocketAnswer {
    Open(Box<WebSocketStream<Upgraded>>),
    /// Something on the way does not know sockets.
    NotSpoken,
}

/// How long the server wants us to wait.
fn retry_after(response: &Response) -> Duration {
    let header = response.headers().get("retry-after");
    let seconds = header.and_then(|value| value.to_str().ok()?.parse().ok());
    Duration::from_secs(seconds.unwrap_or(1))
}

/// Where a client's credentials come from.
#[derive(Debug)]
enum ClientCredentials {
    /// An API key or a token that was given for this run.
    Given(String),
    /// A profile's tokens, renewed and stored as needed.
    Stored {
        profiles: Profiles,
        name: String,
        tokens: ProfileTokens,
    },
    None,
}

impl ClientCredentials {
    fn token(&self) -> Option<String> {
        match self {
            Self::Given(token) => Some(token.clone()),
            Self::Stored { tokens, .. } => Some(tokens.access.clone()),
            Self::None => None,
        }
    }
}

/// A server, and who asks. Copies share their credentials: what one renews, all have.
#[derive(Clone, Debug)]
pub struct Client {
    http: reqwest::Client,
    server: Url,
    credentials: Arc<Mutex<ClientCredentials>>,
}

/// A request, as often as it has to be sent.
#[derive(Clone, Debug)]
struct ClientRequest<'a> {
    method: Method,
    path: &'a str,
    body: Option<&'a Value>,
    headers: Vec<(&'static str, String)>,
}

impl<'a> ClientRequest<'a> {
    fn new(method: Method, path: &'a str, body: Option<&'a Value>) -> Self {
        Self {
            method,
            path,
            body,
            headers: Vec::new(),
        }
    }

    /// Whether it may be sent once more when nobody knows what became of it.
    fn is_repeatable(&self) -> bool {
        self.method == Method::GET || self.headers.iter().any(|(name, _)| *name == REPEAT_KEY)
    }
}

impl Client {
    /// A client without credentials.
    pub fn anonymous(server: &str) -> Result<Self, ClientError> {
        let address = || ClientError::Address {
            text: server.to_owned(),
        };
        let url: Url = server.parse().map_err(|_| address())?;
        if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
            return Err(address());
        }
        let http = reqwest::Client::builder()
            .timeout(PATIENCE)
            // A token goes to the server that it belongs to and nowhere else.
            .redirect(reqwest::redirect::Policy::none())
            .user_agent(concat!("nimbus/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|error| ClientError::Unreachable {
                server: server.to_owned(),
                reason: error.to_string(),
            })?;
        Ok(Self {
            http,
            server: url,
            credentials: Arc::new(Mutex::new(ClientCredentials::None)),
        })
    }

    /// A client that proves itself with an API key or a token.
    pub fn with_token(server: &str, token: String) -> Result<Self, ClientError> {
        Ok(Self {
            credentials: Arc::new(Mutex::new(ClientCredentials::Given(token))),
            ..Self::anonymous(server)?
        })
    }

    /// A client of somebody who signed in before.
    pub fn of_profile(
        profiles: &Profiles,
        name: &str,
        profile: &ServerProfile,
    ) -> Result<Self, ClientError> {
        let tokens = profiles
            .tokens(name)?
            .ok_or_else(|| ClientError::NotSignedIn {
                server: profile.server.clone(),
            })?;
        let stored = ClientCredentials::Stored {
            profiles: profiles.clone(),
            name: name.to_owned(),
            tokens,
        };
        Ok(Self {
            credentials: Arc::new(Mutex::new(stored)),
            ..Self::anonymous(&profile.server)?
        })
    }

    /// The address of the server, without a slash at its end.
    pub fn server(&self) -> &str {
        self.server.as_str().trim_end_matches('/')
    }

    pub async fn get(&mut self, path: &str) -> Result<Value, ClientError> {
        self.call(Method::GET, path, None).await
    }

    /// A whole list, page after page.
    pub async fn list(&mut self, path: &str) -> Result<Value, ClientError> {
        let joint = if path.contains('?') { '&' } else { '?' };
        let mut items = Vec::new();
        let mut after = String::new();
        loop {
            let mut page = self
                .get(&format!("{path}{joint}limit={LARGEST_PAGE}{after}"))
                .await?;
            if let Some(more) = page["items"].as_array_mut() {
                items.append(more);
            }
            match page["next"].as_str() {
                Some(next) => after = format!("&after={}", encoded(next)),
                None => return Ok(json!({ "items": items })),
            }
        }
    }

    pub async fn post(&mut self, path: &str, body: &Value) -> Result<Value, ClientError> {
        self.call(Method::POST, path, Some(body)).await
    }

    pub async fn put(&mut self, path: &str, body: &Value) -> Result<Value, ClientError> {
        self.call(Method::PUT, path, Some(body)).await
    }

    pub async fn patch(&mut self, path: &str, body: &Value) -> Result<Value, ClientError> {
        self.call(Method::PATCH, path, Some(body)).await
    }

    pub async fn delete(&mut self, path: &str) -> Result<Value, ClientError> {
        self.call(Method::DELETE, path, None).await
    }

    /// An answer that is not JSON, and where it goes on if there is more.
    pub async fn get_text(&mut self, path: &str) -> Result<(String, Option<String>), ClientError> {
        let response = self
            .send(ClientRequest::new(Method::GET, path, None))
            .await?;
        let response = self.check(response).await?;
        let next = response
            .headers()
            .get(NEXT_HEADER)
            .and_then(|value| value.to_str().ok())
            .map(str::to_owned);
        let text = response.text().await;
        Ok((text.map_err(|error| self.strange(&error))?, next))
    }

    async fn call(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Value, ClientError> {
        self.answer(ClientRequest::new(method, path, body)).await
    }

    /// The answer to a request as one of the API's types.
    pub(crate) async fn ask<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
        headers: Vec<(&'static str, String)>,
    ) -> Result<T, ClientError> {
        let request = ClientRequest {
            headers,
            ..ClientRequest::new(method, path, body)
        };
        let answer = self.answer(request).await?;
        serde_json::from_value(answer).map_err(|error| self.strange(&error))
    }

    async fn answer(&self, request: ClientRequest<'_>) -> Result<Value, ClientError> {
        let response = self.send(request).await?;
        let response = self.check(response).await?;
        let bytes = response
            .bytes()
            .await
            .map_err(|error| self.strange(&error))?;
        if bytes.is_empty() {
            return Ok(Value::Null);
        }
        serde_json::from_slice(&bytes).map_err(|error| self.strange(&error))
    }

    /// Sends; an access token that has expired is renewed once, and a server that wants us to wait is waited for. What
    /// may be sent twice is, when the connection broke under it.
    async fn send(&self, request: ClientRequest<'_>) -> Result<Response, ClientError> {
        let started = Instant::now();
        let mut broken = 0;
        loop {
            match self.send_renewed(&request).await {
                Ok(response) if response.status() == StatusCode::TOO_MANY_REQUESTS => {
                    let pause = retry_after(&response);
                    if started.elapsed() + pause > PATIENCE {
                        return Ok(response);
                    }
                    tokio::time::sleep(pause).await;
                }
                Ok(response) => return Ok(response),
                Err(ClientError::Broken { .. })
                    if request.is_repeatable() && broken < REPETITIONS =>
                {
                    broken += 1;
                }
                Err(error) => return Err(error),
            }
        }
    }

    async fn send_renewed(&self, request: &ClientRequest<'_>) -> Result<Response, ClientError> {
        let token = self.credentials.lock().await.token();
        let response = self.send_once(request, token.as_deref()).await?;
        if response.status() != StatusCode::UNAUTHORIZED {
            return Ok(response);
        }
        match self.renew(token.as_deref()).await? {
            None => Ok(response),
            renewed => self.send_once(request, renewed.as_deref()).await,
        }
    }

    async fn send_once(
        &self,
        sent: &ClientRequest<'_>,
        token: Option<&str>,
    ) -> Result<Response, ClientError> {
        let url = self
            .server
            .join(sent.path)
            .map_err(|error| self.strange(&error))?;
        let mut request = self.http.request(sent.method.clone(), url);
        if let Some(token) = token {
            request = request.bearer_auth(token);
        }
        for (name, value) in &sent.headers {
            request = request.header(*name, value);
        }
        if let Some(body) = sent.body {
            request = request
                .header("content-type", "application/json")
                .body(body.to_string());
        }
        request.send().await.map_err(|error| {
            let server = self.server.to_string();
            let reason = nimbus_core::innermost(&error).to_string();
            if error.is_connect() || error.is_builder() {
                ClientError::Unreachable { server, reason }
            } else {
                ClientError::Broken { server, reason }
            }
        })
    }

    /// A socket at a path, or the answer that was given instead.
    pub(crate) async fn upgrade(&self, path: &str) -> Result<SocketAnswer, ClientError> {
        // Sockets need HTTP 1.1, and no limit for how long they take.
        let http = reqwest::Client::builder()
            .http1_only()
            .connect_timeout(PATIENCE)
            .redirect(reqwest::redirect::Policy::none())
            .user_agent(concat!("nimbus/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|error| self.strange(&error))?;
        let once = Self {
            http,
            server: self.server.clone(),
            credentials: Arc::clone(&self.credentials),
        };
        let key = tungstenite::handshake::client::generate_key();
        let request = ClientRequest {
            headers: vec![
                ("connection", "Upgrade".to_owned()),
                ("upgrade", "websocket".to_owned()),
                ("sec-websocket-version", "13".to_owned()),
                ("sec-websocket-key", key.clone()),
            ],
            ..ClientRequest::new(Method::GET, path, None)
        };
        let asked = once.send_renewed(&request);
        let response = match tokio::time::timeout(PATIENCE, asked).await {
            Ok(response) => response?,
            Err(_) => {
                return Err(ClientError::Broken {
                    server: self.server.to_string(),
                    reason: "there was no answer".to_owned(),
                });
            }
        };
        let proof = response.headers().get("sec-websocket-accept");
        let proven = proof.is_some_and(|proof| {
            *proof == *tungstenite::handshake::derive_accept_key(key.as_bytes())
        });
        if response.status() == StatusCode::SWITCHING_PROTOCOLS && proven {
            let upgraded = response.upgrade().await;
            let upgraded = upgraded.map_err(|error| self.strange(&error))?;
            let stream = WebSocketStream::from_raw_socket(upgraded, Role::Client, None).await;
            return Ok(SocketAnswer::Open(Box::new(stream)));
        }
        if response.status().is_success() || response.status() == StatusCode::UPGRADE_REQUIRED {
            return Ok(SocketAnswer::NotSpoken);
        }
        match self.check(response).await {
            // A proxy that does not know sockets answers something else.
            Ok(_) | Err(ClientError::Answer { .. }) => Ok(SocketAnswer::NotSpoken),
            Err(error) => Err(error),
        }
    }

    /// A token that counts in place of one that does not any more. `None` when there is no such.
    async fn renew(&self, refused: Option<&str>) -> Result<Option<String>, ClientError> {
        // Held until the new tokens are stored: a refresh token counts once.
        let mut credentials = self.credentials.lock().await;
        let ClientCredentials::Stored {
            profiles,
            name,
            tokens,
        } = &mut *credentials
        else {
            return Ok(None);
        };
        if refused != Some(tokens.access.as_str()) {
            return Ok(Some(tokens.access.clone()));
        }
        // Another command may have been here meanwhile.
        if let Some(stored) = profiles.tokens(name)?
            && stored.access != tokens.access
        {
            *tokens = stored;
            return Ok(Some(tokens.access.clone()));
        }
        let body = json!({"refresh_token": tokens.refresh});
        let request = ClientRequest::new(Method::POST, "/api/v1/auth/refresh", Some(&body));
        let response = self.send_once(&request, None).await?;
        if !response.status().is_success() {
            return Ok(None);
        }
        let bytes = response
            .bytes()
            .await
            .map_err(|error| self.strange(&error))?;
        let answer: Value = serde_json::from_slice(&bytes).map_err(|error| self.strange(&error))?;
        let Some(renewed) = tokens_of(&answer) else {
            return Ok(None);
        };
        profiles.put_tokens(name, Some(&renewed))?;
        *tokens = renewed;
        Ok(Some(tokens.access.clone()))
    }

    async fn check(&self, response: Response) -> Result<Response, ClientError> {
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let bytes = response
            .bytes()
            .await
            .map_err(|error| self.strange(&error))?;
        let body: Value = serde_json::from_slice(&bytes)
            .map_err(|_| self.strange(&format!("status {status} without an explanation")))?;
        let text = |name: &str| body["error"][name].as_str().unwrap_or_default().to_owned();
        if text("message").is_empty() {
            return Err(self.strange(&format!("status {status} without an explanation")));
        }
        Err(ClientError::Refused {
            status: status.as_u16(),
            message: text("message"),
            reference: text("reference"),
            trace_id: text("trace_id"),
            help: body["error"]["help"].as_str().map(str::to_owned),
        })
    }

    pub(crate) fn strange(&self, reason: &dyn std::fmt::Display) -> ClientError {
        ClientError::Answer {
            server: self.server.to_string(),
            reason: reason.to_string(),
        }
    }
}

/// The tokens of an answer to a sign-in.
pub(crate) fn tokens_of(answer: &Value) -> Option<ProfileTokens> {
    let text = |name: &str| Some(answer[name].as_str()?.to_owned());
    Some(ProfileTokens {
        access: text("access_token")?,
        refresh: text("refresh_token")?,
    })
}

impl ProfileTokens {
    /// Those of an answer to a sign-in.
    pub fn of_answer(answer: &Value) -> Option<Self> {
        tokens_of(answer)
    }
}

#[cfg(test)]
mod tests;
