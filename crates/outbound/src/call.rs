//! A call: sent, followed where it leads, and read to an end that is known before.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode, header};
use nimbus_core::causes;
use reqwest::redirect::Policy;
use url::Url;

use crate::address::{AddressRules, place};
use crate::error::OutboundError;
use crate::resolve::{CheckedResolver, NameResolver, ResolveRefusal, SystemResolver};

/// How much a call may be.
#[derive(Clone, Copy, Debug)]
pub struct OutboundLimits {
    /// For all of it, from the name to the last byte.
    pub time: Duration,
    pub connect: Duration,
    /// Of an answer.
    pub bytes: usize,
    /// Only of what changes nothing.
    pub redirects: u8,
}

impl Default for OutboundLimits {
    fn default() -> Self {
        Self {
            time: Duration::from_secs(10),
            connect: Duration::from_secs(5),
            bytes: 1024 * 1024,
            redirects: 3,
        }
    }
}

/// What is sent.
#[derive(Clone, Debug)]
pub struct OutboundCall {
    pub method: Method,
    pub url: String,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl OutboundCall {
    pub fn get(url: impl Into<String>) -> Self {
        Self {
            method: Method::GET,
            url: url.into(),
            headers: HeaderMap::new(),
            body: Bytes::new(),
        }
    }

    pub fn post(url: impl Into<String>, body: impl Into<Bytes>) -> Self {
        Self {
            method: Method::POST,
            body: body.into(),
            ..Self::get(url)
        }
    }
}

/// What came back.
#[derive(Clone, Debug)]
pub struct OutboundAnswer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Bytes,
}

/// Calls addresses that somebody else gave. Cheap to clone.
#[derive(Clone, Debug)]
pub struct OutboundClient {
    client: reqwest::Client,
    rules: Arc<AddressRules>,
    limits: OutboundLimits,
}

impl OutboundClient {
    /// # Errors
    ///
    /// When the machine has no certificates to check others with.
    pub fn new(rules: AddressRules, limits: OutboundLimits) -> Result<Self, OutboundError> {
        Self::resolving_with(rules, limits, Arc::new(SystemResolver))
    }

    /// # Errors
    ///
    /// When the machine has no certificates to check others with.
    pub fn resolving_with(
        rules: AddressRules,
        limits: OutboundLimits,
        names: Arc<dyn NameResolver>,
    ) -> Result<Self, OutboundError> {
        let rules = Arc::new(rules);
        let resolver = CheckedResolver {
            rules: Arc::clone(&rules),
            names,
        };
        let client = reqwest::Client::builder()
            .dns_resolver(Arc::new(resolver))
            // A proxy of the environment would be asked for addresses that nobody checked.
            .no_proxy()
            .redirect(Policy::none())
            .connect_timeout(limits.connect)
            // Nobody finds a connection that was made for another name.
            .pool_max_idle_per_host(0)
            .user_agent("nimbus")
            .build()
            .map_err(|_| OutboundError::Unreachable("this machine".to_owned()))?;
        Ok(Self {
            client,
            rules,
            limits,
        })
    }

    /// Makes a call and reads nothing but the number of its answer, whatever follows it. A redirect is an answer.
    ///
    /// # Errors
    ///
    /// When the address is not called, or does not answer within the limits.
    pub async fn status(&self, call: OutboundCall) -> Result<StatusCode, OutboundError> {
        let url = self.rules.check_text(&call.url)?;
        match tokio::time::timeout(self.limits.time, self.send(&url, &call)).await {
            Ok(response) => Ok(response?.status()),
            Err(_) => Err(OutboundError::Late(place(&url))),
        }
    }

    /// Makes a call and reads its answer.
    ///
    /// # Errors
    ///
    /// When the address is not called, or does not answer within the limits.
    pub async fn call(&self, call: OutboundCall) -> Result<OutboundAnswer, OutboundError> {
        let url = Url::parse(&call.url).map_err(|_| {
            let text: String = call.url.chars().take(200).collect();
            OutboundError::NotAnAddress(text)
        })?;
        let name = place(&url);
        match tokio::time::timeout(self.limits.time, self.follow(url, call)).await {
            Ok(answer) => answer,
            Err(_) => Err(OutboundError::Late(name)),
        }
    }

    async fn follow(
        &self,
        mut url: Url,
        mut call: OutboundCall,
    ) -> Result<OutboundAnswer, OutboundError> {
        let first = place(&url);
        let follows = matches!(call.method, Method::GET | Method::HEAD);
        for _ in 0..=self.limits.redirects {
            self.rules.check(&url)?;
            let response = self.send(&url, &call).await?;
            if !follows || !response.status().is_redirection() {
                return self.read(&url, response).await;
            }
            let Some(target) = response.headers().get(header::LOCATION) else {
                return self.read(&url, response).await;
            };
            let target = target.to_str().ok().and_then(|text| url.join(text).ok());
            let target = target.ok_or_else(|| OutboundError::RedirectsNowhere(place(&url)))?;
            if target.origin() != url.origin() {
                // What was meant for one server is not told to another.
                for name in [header::AUTHORIZATION, header::COOKIE] {
                    call.headers.remove(name);
                }
            }
            url = target;
        }
        Err(OutboundError::Redirects(first))
    }

    async fn send(
        &self,
        url: &Url,
        call: &OutboundCall,
    ) -> Result<reqwest::Response, OutboundError> {
        let request = self
            .client
            .request(call.method.clone(), url.clone())
            .headers(call.headers.clone())
            .body(call.body.clone());
        request.send().await.map_err(|error| failed(&error, url))
    }

    async fn read(
        &self,
        url: &Url,
        mut response: reqwest::Response,
    ) -> Result<OutboundAnswer, OutboundError> {
        let most = self.limits.bytes;
        let large = || OutboundError::Large(place(url), most);
        let announced = response.content_length().unwrap_or_default();
        if usize::try_from(announced).is_ok_and(|length| length > most) {
            return Err(large());
        }
        let (status, headers) = (response.status(), response.headers().clone());
        let mut body = Vec::new();
        while let Some(part) = response
            .chunk()
            .await
            .map_err(|error| failed(&error, url))?
        {
            if body.len() + part.len() > most {
                return Err(large());
            }
            body.extend_from_slice(&part);
        }
        Ok(OutboundAnswer {
            status,
            headers,
            body: body.into(),
        })
    }
}

/// What the client says has our own refusal among its causes, if that was it.
fn failed(error: &reqwest::Error, url: &Url) -> OutboundError {
    let refusal = causes(error).find_map(|cause| cause.downcast_ref());
    match refusal {
        Some(ResolveRefusal::Inwards | ResolveRefusal::Unknown) => {
            return OutboundError::Unknown(place(url));
        }
        None => {}
    }
    match error.is_timeout() {
        true => OutboundError::Late(place(url)),
        false => OutboundError::Unreachable(place(url)),
    }
}
