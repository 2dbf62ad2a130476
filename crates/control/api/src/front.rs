//! What stands in front of the server, and where callers are.

use std::net::IpAddr;

use axum::http::HeaderMap;
use nimbus_control_auth::network::{Network, NotANetwork};

/// Proxies that may say for whom they ask, and names for networks.
#[derive(Clone, Debug, Default)]
pub struct Front {
    proxies: Vec<Network>,
    locations: Vec<(String, Network)>,
}

/// A list in the settings that is not understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrontError {
    #[error(transparent)]
    Network(#[from] NotANetwork),
    #[error("`{0}` is not a place such as office=10.0.0.0/8")]
    Location(String),
}

impl Front {
    /// `proxies` are networks and `locations` are `name=network`, separated by commas.
    pub fn parse(proxies: &str, locations: &str) -> Result<Self, FrontError> {
        Ok(Self {
            proxies: items(proxies)
                .map(|text| text.parse().map_err(FrontError::from))
                .collect::<Result<_, _>>()?,
            locations: items(locations)
                .map(|text| {
                    let (name, network) = text
                        .split_once('=')
                        .ok_or_else(|| FrontError::Location(text.to_owned()))?;
                    Ok((name.trim().to_owned(), network.trim().parse()?))
                })
                .collect::<Result<_, FrontError>>()?,
        })
    }

    /// The caller's address: the nearest one in `X-Forwarded-For` that is not one of our proxies. What
    /// anybody else claims there is not looked at.
    pub fn client(&self, peer: Option<IpAddr>, headers: &HeaderMap) -> Option<IpAddr> {
        let mut client = peer?.to_canonical();
        let claimed: Vec<&str> = headers
            .get_all("x-forwarded-for")
            .iter()
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.split(','))
            .map(str::trim)
            .collect();
        for hop in claimed.into_iter().rev() {
            if !self.proxies.iter().any(|proxy| proxy.contains(client)) {
                break;
            }
            match hop.parse::<IpAddr>() {
                Ok(address) => client = address.to_canonical(),
                Err(_) => break,
            }
        }
        Some(client)
    }

    /// Whether something in between says that it passed the request on, and is not known here: then nobody knows
    /// where the request comes from.
    pub fn is_passed_on_by_strangers(&self, peer: IpAddr, headers: &HeaderMap) -> bool {
        let passed_on = ["forwarded", "via", "x-forwarded-for", "x-real-ip"]
            .iter()
            .any(|name| headers.contains_key(*name));
        passed_on && !self.is_proxy(peer)
    }

    /// Whether requests of everybody come from here.
    pub fn is_proxy(&self, peer: IpAddr) -> bool {
        self.proxies.iter().any(|proxy| proxy.contains(peer))
    }

    pub(crate) fn location(&self, client: Option<IpAddr>) -> Option<String> {
        let client = client?;
        self.locations
            .iter()
            .find(|(_, network)| network.contains(client))
            .map(|(name, _)| name.clone())
    }
}

fn items(text: &str) -> impl Iterator<Item = &str> {
    text.split(',')
        .map(str::trim)
        .filter(|item| !item.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(proxies: &str, peer: &str, forwarded: &[&str]) -> String {
        let mut headers = HeaderMap::new();
        for value in forwarded {
            headers.append("x-forwarded-for", value.parse().unwrap());
        }
        let front = Front::parse(proxies, "").unwrap();
        let found = front.client(Some(peer.parse().unwrap()), &headers);
        found.unwrap().to_string()
    }

    #[test]
    fn only_a_trusted_proxy_is_believed() {
        assert_eq!(client("", "10.0.0.1", &["1.2.3.4"]), "10.0.0.1");
        assert_eq!(client("10.0.0.0/8", "9.9.9.9", &["1.2.3.4"]), "9.9.9.9");
        assert_eq!(client("10.0.0.0/8", "10.0.0.1", &["1.2.3.4"]), "1.2.3.4");
        assert_eq!(
            client("10.0.0.0/8", "::ffff:10.0.0.1", &["1.2.3.4"]),
            "1.2.3.4"
        );
    }

    #[test]
    fn what_a_caller_wrote_in_front_of_the_proxys_word_is_not_believed() {
        let spoofed = ["127.0.0.1, 1.2.3.4"];
        assert_eq!(client("10.0.0.0/8", "10.0.0.1", &spoofed), "1.2.3.4");
        let two_proxies = ["127.0.0.1", "1.2.3.4, 10.0.0.2"];
        assert_eq!(client("10.0.0.0/8", "10.0.0.1", &two_proxies), "1.2.3.4");
        assert_eq!(client("10.0.0.0/8", "10.0.0.1", &["unknown"]), "10.0.0.1");
    }

    #[test]
    fn places_are_networks_with_names() {
        let front = Front::parse("", "office=10.1.0.0/16, lab = fd00::/8").unwrap();
        let place = |ip: &str| front.location(Some(ip.parse().unwrap()));
        assert_eq!(place("10.1.2.3").as_deref(), Some("office"));
        assert_eq!(place("fd00::1").as_deref(), Some("lab"));
        assert_eq!(place("10.2.0.1"), None);
        assert!(Front::parse("", "office").is_err());
        assert!(Front::parse("everybody", "").is_err());
    }
}
