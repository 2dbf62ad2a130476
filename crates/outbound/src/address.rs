//! Which addresses are called.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use url::{Host, Url};

use crate::error::OutboundError;

/// A network of the operator's that is called although it is not public.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AllowedNetwork {
    address: IpAddr,
    bits: u8,
}

/// Says what a network looks like.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a network such as 10.1.0.0/16")]
pub struct NotAnAllowedNetwork(String);

impl FromStr for AllowedNetwork {
    type Err = NotAnAllowedNetwork;

    fn from_str(text: &str) -> Result<Self, NotAnAllowedNetwork> {
        let malformed = || NotAnAllowedNetwork(text.to_owned());
        let (address, bits) = text.split_once('/').ok_or_else(malformed)?;
        let address: IpAddr = address.parse().map_err(|_| malformed())?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let bits = bits.parse().map_err(|_| malformed())?;
        match bits <= most {
            true => Ok(Self { address, bits }),
            false => Err(malformed()),
        }
    }
}

impl AllowedNetwork {
    fn contains(&self, address: IpAddr) -> bool {
        let (own, other, shift) = match (self.address, address) {
            (IpAddr::V4(own), IpAddr::V4(other)) => (
                u128::from(own.to_bits()),
                u128::from(other.to_bits()),
                32 - u32::from(self.bits),
            ),
            (IpAddr::V6(own), IpAddr::V6(other)) => {
                (own.to_bits(), other.to_bits(), 128 - u32::from(self.bits))
            }
            _ => return false,
        };
        own.checked_shr(shift).unwrap_or(0) == other.checked_shr(shift).unwrap_or(0)
    }
}

/// What an operator may set about calls.
#[derive(Clone, Debug, Default)]
pub struct AddressRules {
    /// Networks that are called although they are not public. Where clouds keep credentials is never among them.
    pub allowed: Vec<AllowedNetwork>,
    /// Also without encryption.
    pub plain: bool,
    /// Also to other ports than the usual ones.
    pub ports: Vec<u16>,
}

impl AddressRules {
    /// Whether what is written may be called, for whoever gives an address long before it is. What its name stands for is
    /// found out each time.
    ///
    /// # Errors
    ///
    /// When it is no address, or one that is never called.
    pub fn check_text(&self, text: &str) -> Result<Url, OutboundError> {
        let url = Url::parse(text).map_err(|_| {
            let text: String = text.chars().take(200).collect();
            OutboundError::NotAnAddress(text)
        })?;
        self.check(&url)?;
        Ok(url)
    }

    /// Whether what is written in an address may be called; what its name stands for is checked when it is resolved.
    pub(crate) fn check(&self, url: &Url) -> Result<(), OutboundError> {
        match (url.scheme(), self.plain) {
            ("https", _) | ("http", true) => {}
            (other, plain) => {
                let taken = if plain { "http and https" } else { "https" };
                return Err(OutboundError::Scheme(other.to_owned(), taken));
            }
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(OutboundError::Credentials);
        }
        let port = url.port_or_known_default().unwrap_or_default();
        if !matches!(port, 80 | 443) && !self.ports.contains(&port) {
            return Err(OutboundError::Port(port));
        }
        let literal = match url.host() {
            None => return Err(OutboundError::NotAnAddress(url.to_string())),
            Some(Host::Domain(name)) => name.trim_end_matches('.').parse().ok(),
            Some(Host::Ipv4(address)) => Some(IpAddr::V4(address)),
            Some(Host::Ipv6(address)) => Some(IpAddr::V6(address)),
        };
        match literal.is_none_or(|address| self.allows(address)) {
            true => Ok(()),
            false => Err(OutboundError::Inwards(place(url))),
        }
    }

    /// Whether an address may be connected to. One of IPv4 inside one of IPv6 is what it leads to.
    pub(crate) fn allows(&self, address: IpAddr) -> bool {
        let all = [Some(address), embedded(address).map(IpAddr::V4)];
        all.into_iter().flatten().all(|address| {
            let address = address.to_canonical();
            let named = self.allowed.iter().any(|one| one.contains(address));
            !is_metadata(address) && (named || is_public(address))
        })
    }
}

/// The server part of an address, as messages name it.
pub(crate) fn place(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    let text: String = host.chars().take(200).collect();
    text
}

/// Where clouds keep a machine's credentials.
fn is_metadata(address: IpAddr) -> bool {
    const V4: [Ipv4Addr; 4] = [
        Ipv4Addr::new(169, 254, 169, 254),
        Ipv4Addr::new(169, 254, 170, 2),
        Ipv4Addr::new(169, 254, 170, 23),
        Ipv4Addr::new(100, 100, 100, 200),
    ];
    const V6: [Ipv6Addr; 2] = [
        Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254),
        Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x23),
    ];
    match address {
        IpAddr::V4(address) => V4.contains(&address),
        IpAddr::V6(address) => V6.contains(&address),
    }
}

/// The address of IPv4 that one of IPv6 leads to, by whatever way of translating.
fn embedded(address: IpAddr) -> Option<Ipv4Addr> {
    let IpAddr::V6(address) = address else {
        return None;
    };
    let parts = address.segments();
    let low = Ipv4Addr::from_bits((u32::from(parts[6]) << 16) | u32::from(parts[7]));
    let second = Ipv4Addr::from_bits((u32::from(parts[1]) << 16) | u32::from(parts[2]));
    match parts {
        // Mapped, compatible, translated (RFC 2765).
        [0, 0, 0, 0, 0, 0xffff | 0, ..] | [0, 0, 0, 0, 0xffff, 0, ..] => Some(low),
        // NAT64.
        [0x64, 0xff9b, ..] => Some(low),
        // 6to4.
        [0x2002, ..] => Some(second),
        _ => None,
    }
}

/// Whether an address is everybody's.
fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let shared = a == 100 && (64..128).contains(&b);
    let assigned = a == 192 && b == 0 && c == 0;
    let relay = a == 192 && b == 88 && c == 99;
    let benchmark = a == 198 && (18..20).contains(&b);
    !(a == 0
        || a >= 240
        || shared
        || assigned
        || relay
        || benchmark
        || address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_documentation()
        || address.is_multicast()
        || address.is_broadcast())
}

/// Of IPv6 only what is given out to everybody, without what stands for something else.
fn is_public_v6(address: Ipv6Addr) -> bool {
    let parts = address.segments();
    let global = parts[0] & 0xe000 == 0x2000;
    let documentation = parts[0] == 0x2001 && parts[1] == 0xdb8 || parts[0] == 0x3fff;
    // Teredo, ORCHID, benchmarks and other protocols of their own.
    let protocols = parts[0] == 0x2001 && parts[1] < 0x200;
    global && !documentation && !protocols && parts[0] != 0x2002
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_everybodys_is_public() {
        let rules = AddressRules::default();
        for inwards in [
            "127.0.0.1",
            "127.255.255.254",
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.1.1",
            "169.254.169.254",
            "169.254.170.2",
            "100.64.0.1",
            "100.100.100.200",
            "192.0.0.192",
            "192.0.2.1",
            "192.88.99.1",
            "198.18.0.1",
            "198.51.100.1",
            "203.0.113.1",
            "224.0.0.1",
            "239.255.255.255",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::ffff:127.0.0.1",
            "::ffff:a9fe:a9fe",
            "::ffff:10.0.0.1",
            "::127.0.0.1",
            "::ffff:0:127.0.0.1",
            "64:ff9b::169.254.169.254",
            "64:ff9b:1::10.0.0.1",
            "2002:a9fe:a9fe::1",
            "2002:7f00:1::",
            "2001:0:4136:e378::1",
            "2001:db8::1",
            "2001:10::1",
            "3fff::1",
            "fc00::1",
            "fd00:ec2::254",
            "fe80::1",
            "fec0::1",
            "ff02::1",
            "100::1",
            "5f00::1",
        ] {
            assert!(!rules.allows(inwards.parse().unwrap()), "{inwards}");
        }
        for public in [
            "8.8.8.8",
            "1.1.1.1",
            "172.32.0.1",
            "100.128.0.1",
            "2606:4700::1111",
            "::ffff:8.8.8.8",
            "2a00:1450:4001::1",
        ] {
            assert!(rules.allows(public.parse().unwrap()), "{public}");
        }
    }

    #[test]
    fn an_allowed_network_is_called_and_never_the_place_of_credentials() {
        let allowed = [
            "10.1.0.0/16",
            "169.254.0.0/16",
            "fd00::/8",
            "0.0.0.0/0",
            "::/0",
        ];
        let allowed = allowed.iter().map(|text| text.parse().unwrap()).collect();
        let rules = AddressRules {
            allowed,
            ..AddressRules::default()
        };
        for called in ["10.1.2.3", "fd12::1", "127.0.0.1"] {
            assert!(rules.allows(called.parse().unwrap()), "{called}");
        }
        for never in [
            "169.254.169.254",
            "::ffff:169.254.169.254",
            "fd00:ec2::254",
            "64:ff9b::a9fe:a9fe",
            "100.100.100.200",
        ] {
            assert!(!rules.allows(never.parse().unwrap()), "{never}");
        }
        for text in ["10.0.0.0", "10.0.0.0/33", "x/8", "", "::/129"] {
            assert!(text.parse::<AllowedNetwork>().is_err(), "{text}");
        }
    }

    #[test]
    fn whatever_an_address_is_written_like_it_is_what_it_leads_to() {
        let rules = AddressRules {
            plain: true,
            ..AddressRules::default()
        };
        for inwards in [
            "http://127.0.0.1/",
            "http://2130706433/",
            "http://0x7f000001/",
            "http://0177.0.0.1/",
            "http://127.1/",
            "http://0/",
            "http://[::1]/",
            "http://[::ffff:127.0.0.1]/",
            "http://[::ffff:a9fe:a9fe]/",
            "http://[::]/",
            "http://127.0.0.1./",
            "http://①②⑦.⓪.⓪.①/",
            "http://１２７.0.0.1/",
            "http://169.254.169.254/latest/",
            "http://0xa9fea9fe/",
            "http://2852039166/",
            "http://0251.0376.0251.0376/",
            "http:\\\\127.0.0.1\\",
            "http:127.0.0.1",
        ] {
            let url = Url::parse(inwards).unwrap();
            assert!(rules.check(&url).is_err(), "{inwards}");
        }
        for other in [
            "file:///etc/passwd",
            "ftp://8.8.8.8/",
            "gopher://8.8.8.8/",
            "data:,x",
            "https://user@8.8.8.8/",
            "https://user:password@8.8.8.8/",
            "https://8.8.8.8:22/",
            "https://8.8.8.8:6379/",
            "javascript:alert(1)",
            "ws://8.8.8.8/",
        ] {
            assert!(rules.check(&Url::parse(other).unwrap()).is_err(), "{other}");
        }
        assert!(
            rules
                .check(&Url::parse("https://8.8.8.8/").unwrap())
                .is_ok()
        );
        assert!(
            rules
                .check(&Url::parse("https://example.org/a").unwrap())
                .is_ok()
        );
        let strict = AddressRules::default();
        assert!(
            strict
                .check(&Url::parse("http://8.8.8.8/").unwrap())
                .is_err()
        );
    }
}
